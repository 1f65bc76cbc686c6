package hub

import (
	"context"
	"net"

	"fletch/state"
)

// peer is the process at the other end of a connection, as the kernel tells
// it at the moment it connected.
type peer struct {
	By    state.By
	fault error // why it may not talk to the hub; nil for those who may
	// sealed says that it descends from a keeper: it may look, not decide.
	sealed bool
}

type peerKey struct{}

// peerConn carries what is known of a connection's peer.
type peerConn struct {
	net.Conn
	peer peer
}

// peerListener finds out who connects.
type peerListener struct{ net.Listener }

func (l peerListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &peerConn{conn, identify(conn)}, nil
}

// withPeer is http.Server.ConnContext.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*peerConn); ok {
		return context.WithValue(ctx, peerKey{}, c.peer)
	}
	return ctx
}

func peerOf(ctx context.Context) (peer, bool) {
	p, ok := ctx.Value(peerKey{}).(peer)
	return p, ok
}
