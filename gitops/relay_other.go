//go:build !unix

package gitops

import "os"

// oneWay is a pipe. No engine reads a workspace outside unix here.
func oneWay() (read, write *os.File, err error) { return os.Pipe() }

func hangUp(write *os.File) { _ = write.Close() }
