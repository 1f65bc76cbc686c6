// fletch runs a fleet of coding agents, each sealed in a sandbox and in its
// own checkout, and publishes nothing that a person has not seen and allowed.
package main

import (
	"os"

	"fletch/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
