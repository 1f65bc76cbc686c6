//go:build !linux

package keeper

// harden is for Linux: elsewhere the system keeps processes apart by itself
// or not at all.
func harden() error { return nil }

// bootID has no counterpart here.
func bootID() string { return "" }
