//go:build !linux

package hub

import "net"

// identify relies on the socket's mode (0600) where fletch has no way yet to
// ask the kernel for more; not run end to end there.
func identify(net.Conn) peer { return peer{} }
