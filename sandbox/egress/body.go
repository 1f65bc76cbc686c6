package egress

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// writeChunks writes src in chunks, the closing one included, without the
// trailer's empty line.
func writeChunks(to io.Writer, src io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			chunk := net.Buffers{fmt.Appendf(nil, "%x\r\n", n), buf[:n], []byte("\r\n")}
			if _, err := chunk.WriteTo(to); err != nil {
				return err
			}
		}
		if err == io.EOF {
			_, err := io.WriteString(to, "0\r\n")
			return err
		}
		if err != nil {
			return err
		}
	}
}

// readTrailer reads what follows the last chunk.
func readTrailer(r *bufio.Reader) (http.Header, error) {
	raw, err := readHead(r, maxTrailer)
	if err != nil {
		return nil, fmt.Errorf("reading the trailer: %w", err)
	}
	return parseFields(raw)
}

// counter counts what goes through a connection.
type counter struct {
	net.Conn
	in, out atomic.Int64
	full    atomic.Bool // a write has failed
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.Add(int64(n))
	return n, err
}

// CloseWrite ends the direction to the host, where the connection can.
func (c *counter) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.out.Add(int64(n))
	if err != nil {
		c.full.Store(true)
	}
	return n, err
}
