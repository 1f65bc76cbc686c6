//go:build !failpoints

package hub

// failpoint does nothing in a program that people use; see failpoint_on.go.
func failpoint(string) {}
