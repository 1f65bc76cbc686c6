//go:build !linux && !darwin

package attach

import "net"

// checkPeer admits everybody: the system does not say who connects, and the
// directory of the socket admits nobody but its owner.
func checkPeer(net.Conn) error { return nil }

// peerPID is not known here.
func peerPID(net.Conn) int { return 0 }
