package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"fletch/sandbox"

	"golang.org/x/sys/unix"
)

// running is one sandbox. Its goroutine waits for bwrap, then for the last
// process inside, and then takes the control group away.
type running struct {
	cmd      *exec.Cmd
	near     *os.File // nil without a terminal
	listener net.Listener
	group    *group
	facts    []sandbox.Fact
	copied   <-chan struct{} // closed when the program's stderr is all there
	pid      int             // the program
	onEnd    func()          // called when bwrap has ended

	mu      sync.Mutex
	init    *os.File // pidfd of the sandbox's first process
	program *os.File // pidfd of the program

	gone   chan struct{} // closed when exit and fault are set
	exit   sandbox.Exit
	fault  error // of taking the control group away
	remove sync.Once
}

// run starts bwrap and the goroutine that waits for it. Both happen on one
// thread that lives as long: the kernel kills bwrap when the thread that
// started it ends.
func (r *running) run() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := r.cmd.Start()
		started <- err
		if err == nil {
			err = r.cmd.Wait()
			r.onEnd()
		}
		r.end(err)
	}()
	return <-started
}

// end waits until nothing of the sandbox is left, and says how it ended.
func (r *running) end(err error) {
	// bwrap ends with the program. What the program left behind is killed
	// with the sandbox's first process, whose end the kernel reports last.
	r.mu.Lock()
	init := r.init
	r.mu.Unlock()
	if init != nil {
		waitPidfd(init)
	}
	if r.group != nil {
		ctx, cancel := context.WithTimeout(context.Background(), endPatience)
		r.fault = r.group.remove(ctx)
		cancel()
	}
	if r.copied != nil {
		select {
		case <-r.copied:
		case <-time.After(endPatience):
		}
	}
	r.exit = exitOf(r.cmd.ProcessState, err)
	r.mu.Lock()
	for _, f := range []*os.File{r.init, r.program} {
		if f != nil {
			f.Close() // a handle only
		}
	}
	r.init, r.program = nil, nil
	r.mu.Unlock()
	close(r.gone)
}

// exitOf turns bwrap's end into the program's. bwrap says of a program that
// a signal ended what a shell says, 128+n; it cannot be told from a program
// that ended with that code itself.
func exitOf(state *os.ProcessState, err error) sandbox.Exit {
	if state == nil {
		return sandbox.Exit{Code: -1, Err: err}
	}
	status := state.Sys().(syscall.WaitStatus) // what Unix has
	if status.Signaled() {
		return sandbox.Exit{Code: 128 + int(status.Signal()), Signal: status.Signal().String()}
	}
	code := status.ExitStatus()
	if code > 128 && code <= 128+31 {
		return sandbox.Exit{Code: code, Signal: syscall.Signal(code - 128).String()}
	}
	return sandbox.Exit{Code: code}
}

// knowInit remembers the sandbox's first process. bwrap is its parent and
// waits for it, so its number cannot have passed to another.
func (r *running) knowInit(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("making the sandbox: %w", errors.Join(errNoWord, err))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.init = os.NewFile(uintptr(fd), "init")
	return nil
}

// knowProgram remembers the program to be, which waits for its word.
func (r *running) knowProgram(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("finding the sealed process: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.program != nil {
		r.program.Close() // a handle only
	}
	r.pid, r.program = pid, os.NewFile(uintptr(fd), "program")
	return nil
}

// waitPidfd returns when the process has ended.
func waitPidfd(f *os.File) {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}, -1)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func (r *running) Attach() *os.File { return r.near }

func (r *running) Resize(size sandbox.Size) error {
	if r.near == nil {
		return errors.New("resizing: there is no terminal")
	}
	return setSize(r.near, size)
}

func (r *running) Signal(sig os.Signal) error {
	n, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signalling: %v is no signal here", sig)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.program == nil {
		return os.ErrProcessDone
	}
	err := unix.PidfdSendSignal(int(r.program.Fd()), n, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// PID is the program itself, not bwrap and not the first process inside.
func (r *running) PID() int { return r.pid }

func (r *running) Listener() net.Listener { return r.listener }

func (r *running) Attestation() sandbox.Attestation {
	return sandbox.Attestation{Facts: slices.Clone(r.facts)}
}

func (r *running) Wait() sandbox.Exit {
	<-r.gone
	return r.exit
}

// kill ends everything: the first process inside, which takes all others
// along, bwrap, and whatever is in the control group.
func (r *running) kill() {
	r.mu.Lock()
	if r.init != nil {
		_ = unix.PidfdSendSignal(int(r.init.Fd()), unix.SIGKILL, nil, 0) // it has ended: fine
	} else if r.cmd.Process != nil {
		killUnknown(r.cmd.Process)
	}
	r.mu.Unlock()
	if r.cmd.Process != nil {
		_ = r.cmd.Process.Kill() // the same
	}
	if r.group != nil {
		r.group.kill()
	}
}

// killUnknown ends the first process inside where bwrap has not said yet
// which it is: it would outlive a bwrap that is killed this early. bwrap is
// held still meanwhile, so that it starts no other.
func killUnknown(bwrap *os.Process) {
	if bwrap.Signal(unix.SIGSTOP) != nil {
		return // it has ended
	}
	dir := fmt.Sprintf("/proc/%d", bwrap.Pid)
	for range 1000 {
		raw, err := os.ReadFile(dir + "/stat")
		i := strings.LastIndexByte(string(raw), ')')
		if err != nil || i < 0 || i+2 >= len(raw) || strings.IndexByte("TtZX", raw[i+2]) >= 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	raw, err := os.ReadFile(fmt.Sprintf("%s/task/%d/children", dir, bwrap.Pid))
	if err != nil {
		return // it has ended, or the kernel does not tell: List finds it
	}
	// Its children cannot be reaped while it is held, so the numbers hold.
	for _, word := range strings.Fields(string(raw)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 1 {
			_ = unix.Kill(pid, unix.SIGKILL) // it has ended: fine
		}
	}
}

func (r *running) Remove() error {
	r.remove.Do(func() {
		select {
		case <-r.gone:
		default:
			r.kill()
			<-r.gone
		}
		if r.listener != nil {
			r.listener.Close() // nobody is left to reach it
		}
		if r.near != nil {
			r.near.Close() // nobody is left at the far end
		}
	})
	return r.fault
}
