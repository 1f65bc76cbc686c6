//go:build unix

package keeper

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// near is the keeper's own handle on the near end of the agent's terminal.
//
// Setting a terminal's size through creack/pty makes the descriptor block,
// and a blocking write to a program that does not read can be ended by
// nothing, not even by closing. So the keeper has a descriptor of its own that
// does not block, and puts that right again after every resize: the flag
// belongs to what both descriptors share.
type near struct {
	file *os.File
	// blocking is held while the descriptor may block, and for each write.
	blocking sync.Mutex
}

func openNear(from *os.File) (*near, error) {
	if from == nil {
		return nil, errors.New("opening the agent's terminal: there is none")
	}
	raw, err := from.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("opening the agent's terminal: %w", err)
	}
	own := -1
	err2 := raw.Control(func(fd uintptr) { own, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("opening the agent's terminal: %w", err)
	}
	if err := unix.SetNonblock(own, true); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the agent's terminal: %w", err), unix.Close(own))
	}
	return &near{file: os.NewFile(uintptr(own), from.Name())}, nil
}

func (n *near) read(p []byte) (int, error) { return n.file.Read(p) }

// write writes all of p. It waits for a program that does not read until the
// terminal is closed.
func (n *near) write(p []byte) error {
	raw, err := n.file.SyscallConn()
	if err != nil {
		return err
	}
	for len(p) > 0 {
		wrote := 0
		var fault error
		err := raw.Write(func(fd uintptr) bool {
			n.blocking.Lock()
			defer n.blocking.Unlock()
			wrote, fault = unix.Write(int(fd), p)
			return !errors.Is(fault, unix.EAGAIN)
		})
		if err != nil {
			return err
		}
		if fault != nil && !errors.Is(fault, unix.EINTR) {
			return fault
		}
		p = p[max(wrote, 0):]
	}
	return nil
}

// resize calls f, which may make the descriptor block.
func (n *near) resize(f func() error) error {
	n.blocking.Lock()
	defer n.blocking.Unlock()
	err := f()
	return errors.Join(err, n.control(func(fd int) error { return unix.SetNonblock(fd, true) }))
}

// foreground reports whether the process pid itself has the terminal, not a
// command it runs. Where that cannot be told it has.
func (n *near) foreground(pid int) bool {
	group := 0
	err := n.control(func(fd int) (err error) {
		group, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	if err != nil || group <= 0 || group == pid {
		return true
	}
	own, err := unix.Getpgid(pid)
	return err != nil || group == own
}

func (n *near) control(f func(fd int) error) error {
	raw, err := n.file.SyscallConn()
	if err != nil {
		return err
	}
	var fault error
	err = raw.Control(func(fd uintptr) { fault = f(int(fd)) })
	return errors.Join(err, fault)
}

func (n *near) close() { _ = n.file.Close() }
