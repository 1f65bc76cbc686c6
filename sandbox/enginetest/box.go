package enginetest

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"sync"

	"fletch/sandbox"

	"github.com/creack/pty"
)

// fakeBox is one program that the fake runs.
type fakeBox struct {
	cmd      *exec.Cmd
	terminal *os.File // the near end; nil without one
	listener net.Listener

	gone   chan struct{} // closed when exit is set
	exit   sandbox.Exit
	remove sync.Once
}

// run starts the program and the goroutine that waits for it.
func (b *fakeBox) run(s sandbox.Spec) error {
	ownGroup(b.cmd, s.Terminal != nil)
	if s.Terminal != nil {
		near, far, err := pty.Open()
		if err != nil {
			return err
		}
		defer far.Close() // the program has its own copy
		b.terminal = near
		b.cmd.Stdin, b.cmd.Stdout, b.cmd.Stderr = far, far, far
		if err := b.Resize(*s.Terminal); err != nil {
			near.Close() // the start failed already
			return err
		}
	}
	if err := b.cmd.Start(); err != nil {
		if b.terminal != nil {
			b.terminal.Close() // the start failed already
		}
		return err
	}
	go func() {
		b.exit = exitOf(b.cmd, b.cmd.Wait())
		killGroup(b.cmd.Process.Pid) // what it left in its group
		close(b.gone)
	}()
	return nil
}

func (b *fakeBox) Attach() *os.File { return b.terminal }

func (b *fakeBox) Resize(size sandbox.Size) error {
	if b.terminal == nil {
		return errors.New("resizing: there is no terminal")
	}
	return pty.Setsize(b.terminal, &pty.Winsize{Cols: uint16(size.Cols), Rows: uint16(size.Rows)})
}

func (b *fakeBox) Signal(sig os.Signal) error { return b.cmd.Process.Signal(sig) }

func (b *fakeBox) PID() int { return b.cmd.Process.Pid }

func (b *fakeBox) Listener() net.Listener { return b.listener }

func (b *fakeBox) Attestation() sandbox.Attestation {
	return sandbox.Attestation{Facts: []sandbox.Fact{{Name: "sealed", Value: "no", Known: "reported"}}}
}

func (b *fakeBox) Wait() sandbox.Exit {
	<-b.gone
	return b.exit
}

func (b *fakeBox) Remove() error {
	b.remove.Do(func() {
		select {
		case <-b.gone:
		default:
			killGroup(b.cmd.Process.Pid)
			<-b.gone
		}
		if b.listener != nil {
			b.listener.Close() // nobody is left to reach it
		}
		if b.terminal != nil {
			b.terminal.Close() // the program is gone
		}
	})
	return nil
}

// exitOf says how a command ended in the words of a shell.
func exitOf(cmd *exec.Cmd, err error) sandbox.Exit {
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return sandbox.Exit{Err: err}
	}
	if sig, ok := killedBy(cmd.ProcessState); ok {
		return sandbox.Exit{Code: 128 + int(sig), Signal: sig.String()}
	}
	return sandbox.Exit{Code: cmd.ProcessState.ExitCode()}
}
