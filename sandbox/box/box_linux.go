package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxConfig bounds the order, in bytes: argv and environment are at most
// 1 MiB, and JSON may spell a byte in six.
const maxConfig = 8 << 20

// Main is the box. See [Main].
func (s Stage) Main(args []string) int {
	// Everything happens on this one thread, and it is the one that becomes
	// the program: exec ends all others, whatever they are still allowed.
	runtime.LockOSThread()

	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "error: fletch box is started by fletch itself")
		return 2
	}
	socket, err1 := strconv.Atoi(args[0])
	order, err2 := strconv.Atoi(args[1])
	if err := errors.Join(err1, err2); err != nil || socket < 3 || order < 3 {
		fmt.Fprintln(os.Stderr, "error: fletch box is started by fletch itself")
		return 2
	}
	b := &box{stage: s, socket: socket, order: order, listener: -1, report: Report{TID: unix.Gettid()}}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{StepConfig, b.read},
		{StepView, b.checkView},
		{StepListener, b.listen},
		{StepStreams, b.takeStreams},
		{StepProgram, b.findProgram},
		{StepLimits, b.limit},
		{StepUndumpable, func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }},
		{StepPrivileges, dropPrivileges},
		{StepLandlock, b.landlock},
		{StepFilter, b.filter},
		{StepDescriptors, b.closeRest},
	} {
		if err := b.step(step.name, step.do); err != nil {
			return b.fail(step.name, err)
		}
	}
	if err := b.await(); err != nil {
		return 1 // the engine is gone or said no: nobody listens
	}
	return b.fail(StepExec, b.step(StepExec, b.exec))
}

// box is one start on its way.
type box struct {
	stage    Stage
	socket   int // to the engine
	order    int
	config   Config
	program  string // absolute, found on the PATH
	listener int    // -1 without one
	report   Report
}

func (b *box) step(name string, do func() error) error {
	if b.stage.Before != nil {
		if err := b.stage.Before(name); err != nil {
			return err
		}
	}
	return do()
}

// fail tells the engine what went wrong. When it is gone the exit code says
// as much.
func (b *box) fail(step string, err error) int {
	b.report.Step, b.report.Cause = step, err.Error()
	_ = unix.Sendmsg(b.socket, b.report.bytes(), nil, nil, unix.MSG_NOSIGNAL)
	return 1
}

func (b *box) read() error {
	unix.CloseOnExec(b.socket)
	unix.CloseOnExec(b.order)
	file := os.NewFile(uintptr(b.order), "config")
	defer file.Close() // read only
	raw, err := io.ReadAll(io.LimitReader(file, maxConfig))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &b.config); err != nil {
		return err
	}
	if len(b.config.Argv) == 0 {
		return errors.New("no program is given")
	}
	return nil
}

// checkView makes sure that the mounts are what the engine opened. A mount
// that was led astray by a planted link shows another file here, or none.
func (b *box) checkView() error {
	for _, p := range b.config.Places {
		var at unix.Stat_t
		if err := unix.Lstat(p.Path, &at); err != nil {
			return fmt.Errorf("%s: %w", p.Path, err)
		}
		if uint64(at.Dev) != p.Dev || at.Ino != p.Ino {
			return fmt.Errorf("%s shows another file than the one opened", p.Path)
		}
		var fs unix.Statfs_t
		if err := unix.Statfs(p.Path, &fs); err != nil {
			return fmt.Errorf("%s: %w", p.Path, err)
		}
		if readOnly := fs.Flags&unix.ST_RDONLY != 0; !readOnly && !p.Write {
			return fmt.Errorf("%s is writable", p.Path)
		}
	}
	if err := unix.Chdir(b.config.Dir); err != nil {
		return fmt.Errorf("the working directory %s: %w", b.config.Dir, err)
	}
	return nil
}

// listen opens the one socket through which the program reaches a network. It
// belongs to this private network for good, whoever holds it.
func (b *box) listen() error {
	if !b.config.Listen {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: ProxyPort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("taking 127.0.0.1:%d: %w", ProxyPort, err)
	}
	if err := unix.Listen(fd, 1024); err != nil {
		return err
	}
	b.listener, b.report.Listen = fd, true
	return nil
}

// takeStreams gives the program its own stderr; so far it was the engine's,
// for the words of what failed.
//
// With a terminal it makes the program the leader of its own session there. The
// processes that built the sandbox are outside of it, so an
// interrupt typed there does not reach them.
func (b *box) takeStreams() error {
	if b.config.Stderr > 0 {
		if err := unix.Dup3(b.config.Stderr, 2, 0); err != nil {
			return fmt.Errorf("taking its stderr: %w", err)
		}
	}
	if !b.config.Terminal {
		return nil
	}
	if _, err := unix.Setsid(); err != nil {
		return fmt.Errorf("starting a session: %w", err)
	}
	if err := unix.IoctlSetInt(0, unix.TIOCSCTTY, 0); err != nil {
		return fmt.Errorf("taking the terminal: %w", err)
	}
	return nil
}

// findProgram looks Argv[0] up as execvp does, on the PATH of the program.
func (b *box) findProgram() error {
	name := b.config.Argv[0]
	if strings.Contains(name, "/") {
		if err := runnable(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		b.program = name
		return nil
	}
	search := ""
	for _, e := range b.config.Env {
		if rest, ok := strings.CutPrefix(e, "PATH="); ok {
			search = rest
		}
	}
	for _, dir := range filepath.SplitList(search) {
		if at := filepath.Join(dir, name); filepath.IsAbs(dir) && runnable(at) == nil {
			b.program = at
			return nil
		}
	}
	return fmt.Errorf("%s: not found on PATH inside", name)
}

func runnable(path string) error {
	var at unix.Stat_t
	if err := unix.Stat(path, &at); err != nil {
		return err
	}
	if at.Mode&unix.S_IFMT != unix.S_IFREG {
		return errors.New("not a regular file")
	}
	return unix.Access(path, unix.X_OK)
}

func (b *box) limit() error {
	l := b.config.Limits.Or()
	set := func(resource int, n int64) error {
		if n == 0 {
			return nil
		}
		return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: uint64(n), Max: uint64(n)})
	}
	// A core of one byte is none at all, and is the one size at which the
	// kernel does not start the host's handler of crashes either.
	limits := []struct {
		what string
		id   int
		n    int64
	}{
		{"core", unix.RLIMIT_CORE, 1},
		{"files", unix.RLIMIT_NOFILE, int64(l.Files)},
		{"file size", unix.RLIMIT_FSIZE, l.FileBytes},
		{"CPU time", unix.RLIMIT_CPU, int64(l.CPUSecs)},
	}
	for _, limit := range limits {
		if err := set(limit.id, limit.n); err != nil {
			return fmt.Errorf("%s: %w", limit.what, err)
		}
	}
	if b.config.CountProcesses {
		if err := set(unix.RLIMIT_NPROC, int64(l.PIDs)); err != nil {
			return fmt.Errorf("processes: %w", err)
		}
	}
	if b.config.BoundMemory {
		if err := set(unix.RLIMIT_DATA, l.Memory); err != nil {
			return fmt.Errorf("memory: %w", err)
		}
	}
	return nil
}

// dropPrivileges makes sure that none came along and none can come back.
func dropPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		return err
	}
	if on != 1 {
		return errors.New("no_new_privs did not hold")
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&head, &have[0]); err != nil {
		return err
	}
	for _, c := range have {
		if c.Effective|c.Permitted|c.Inheritable != 0 {
			return errors.New("capabilities are left")
		}
	}
	return nil
}

// closeRest lets exec close everything but the program's own descriptors:
// whatever the engine's process had open, by mistake or not, ends here.
func (b *box) closeRest() error {
	return unix.CloseRange(uint(3+b.config.Keep), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

// await sends the report, with the listening socket, and waits for the word.
func (b *box) await() error {
	var rights []byte
	if b.listener >= 0 {
		rights = unix.UnixRights(b.listener)
	}
	if err := unix.Sendmsg(b.socket, b.report.bytes(), rights, nil, unix.MSG_NOSIGNAL); err != nil {
		return err
	}
	if b.listener >= 0 {
		_ = unix.Close(b.listener) // the engine holds it now
	}
	word := make([]byte, 1)
	for {
		n, _, err := unix.Recvfrom(b.socket, word, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if n != 1 || word[0] != Go {
			return errors.New("the engine did not let it start")
		}
		return nil
	}
}

func (b *box) exec() error {
	restoreSignals()
	return syscall.Exec(b.program, b.config.Argv, b.config.Env)
}

// restoreSignals undoes what an ancestor ignored: a hub that ignores SIGHUP
// must not make every agent deaf to it.
func restoreSignals() {
	var standard [4]uint64 // struct sigaction: the default handler, nothing masked
	for n := uintptr(1); n <= 64; n++ {
		if n == uintptr(unix.SIGKILL) || n == uintptr(unix.SIGSTOP) {
			continue
		}
		_ = setAction(n, &standard)
	}
}
