package bubblewrap

import (
	"fmt"
	"os"

	"fletch/sandbox"

	"golang.org/x/sys/unix"
)

// openTerminal makes a new terminal. Its near end does not block a thread,
// takes deadlines, and a read of it ends when it is closed.
func openTerminal(size sandbox.Size) (near, far *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("opening a terminal: %w", err)
	}
	near = os.NewFile(uintptr(fd), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		near.Close() // nothing was written
		return nil, nil, fmt.Errorf("unlocking a terminal: %w", err)
	}
	// Not by its name: that could be looked up in another place than the one
	// it was made in.
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		near.Close() // nothing was written
		return nil, nil, fmt.Errorf("opening a terminal's far end: %w", errno)
	}
	far = os.NewFile(peer, "terminal")
	if err := setSize(near, size); err != nil {
		near.Close() // nothing was written
		far.Close()  // nothing was written
		return nil, nil, err
	}
	return near, far, nil
}

// setSize also lets the foreground program know, by SIGWINCH.
func setSize(terminal *os.File, size sandbox.Size) error {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return fmt.Errorf("setting the terminal's size: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: clamp(size.Rows), Col: clamp(size.Cols)})
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("setting the terminal's size: %w", err)
	}
	return nil
}

// clamp keeps a size in what a terminal can have.
func clamp(n int) uint16 { return uint16(min(max(n, 1), 10_000)) }
