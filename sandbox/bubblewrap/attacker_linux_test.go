package bubblewrap

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An attack is what a hostile program tries inside. It returns nil when the
// sandbox held, and what it could do otherwise. The arguments are the test's.
type attack func(args []string) error

// attacker runs the attacks named in args[0], separated by commas.
func attacker(args []string) int {
	code := 0
	for _, name := range strings.Split(args[0], ",") {
		try, ok := attacks[name]
		if !ok {
			fmt.Printf("%s: there is no such attack\n", name)
			return 3
		}
		if err := try(args[1:]); err != nil {
			fmt.Printf("%s: %v\n", name, err)
			code = 1
		}
	}
	return code
}

var attacks = map[string]attack{
	"gone":         notThere,
	"readonly":     notWritable,
	"proc-writes":  procWrites,
	"proc-reads":   procReads,
	"devices":      devices,
	"status":       ownStatus,
	"limits":       ownLimits,
	"init":         firstProcess,
	"secrets":      otherSecrets,
	"descriptors":  inherited,
	"calls":        forbiddenCalls,
	"clones":       clones,
	"tiocsti":      typing,
	"sockets":      socketKinds,
	"network":      reachNetwork,
	"abstract":     abstractSocket,
	"signal-host":  signalHost,
	"links":        linksOut,
	"move-mounts":  moveMounts,
	"landlock":     landlockHolds,
	"suid":         setUser,
	"nested":       nestedSandbox,
	"second-abi":   secondABI,
	"hostname":     hostname,
	"mounts":       mountFlags,
	"take-port":    takePort,
	"overwrite-me": overwriteBox,
}

// denied wants one of the errors with which the sandbox says no.
func denied(what string, err error, as ...error) error {
	if len(as) == 0 {
		as = []error{unix.EPERM, unix.EACCES, unix.EROFS}
	}
	for _, e := range as {
		if errors.Is(err, e) {
			return nil
		}
	}
	if err == nil {
		return fmt.Errorf("%s worked", what)
	}
	return fmt.Errorf("%s: %w instead of %v", what, err, as)
}

func notThere(paths []string) error {
	var faults []error
	for _, p := range paths {
		_, err := os.Stat(p)
		faults = append(faults, denied("seeing "+p, err, unix.ENOENT, unix.EACCES))
	}
	return errors.Join(faults...)
}

func notWritable(paths []string) error {
	var faults []error
	for _, dir := range append(paths, "/", "/usr", "/usr/bin", "/etc", "/dev", "/run/fletch", "/run/fletch/bin", "/var", "/proc", "/home") {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		err := os.WriteFile(filepath.Join(dir, "planted"), nil, 0o644)
		faults = append(faults, denied("writing into "+dir, err, unix.EROFS, unix.EACCES, unix.EPERM, unix.ENOENT))
		faults = append(faults, denied("making a folder in "+dir, os.Mkdir(filepath.Join(dir, "planted.d"), 0o755), unix.EROFS, unix.EACCES, unix.EPERM, unix.ENOENT))
	}
	for _, file := range []string{"/etc/passwd", "/etc/profile", "/usr/bin/env", "/run/fletch/box", "/etc/hosts"} {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		faults = append(faults, denied("writing "+file, err, unix.EROFS, unix.EACCES, unix.EPERM, unix.ETXTBSY))
		faults = append(faults, denied("removing "+file, os.Remove(file), unix.EROFS, unix.EACCES, unix.EPERM, unix.EBUSY))
	}
	return errors.Join(faults...)
}

// procWrites opens every file of /proc that is no process's for writing,
// without writing: what succeeds would change the host.
func procWrites([]string) error {
	var open []string
	seen := 0
	err := filepath.WalkDir("/proc", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // not even readable
		}
		base, isTop := filepath.Base(path), filepath.Dir(path) == "/proc"
		if isTop && (strings.Trim(base, "0123456789") == "" || base == "self" || base == "thread-self") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		seen++
		if fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
			unix.Close(fd)
			open = append(open, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if seen < 100 {
		return fmt.Errorf("only %d files were tried", seen)
	}
	if len(open) > 0 {
		return fmt.Errorf("%d files can be written: %q", len(open), open[:min(8, len(open))])
	}
	return nil
}

func procReads([]string) error {
	var faults []error
	for _, p := range []string{"/proc/kcore", "/proc/kmsg", "/proc/sysrq-trigger", "/proc/keys", "/proc/kallsyms", "/proc/timer_list", "/proc/1/mem"} {
		f, err := os.Open(p)
		if err == nil {
			f.Close()
		}
		faults = append(faults, denied("opening "+p, err, unix.EACCES, unix.EPERM, unix.ENOENT))
	}
	return errors.Join(faults...)
}

func devices([]string) error {
	known := []string{"console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}
	entries, err := os.ReadDir("/dev")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) {
			return fmt.Errorf("there is /dev/%s", e.Name())
		}
	}
	terminals, err := os.ReadDir("/dev/pts")
	if err != nil {
		return err
	}
	for _, e := range terminals {
		if e.Name() != "ptmx" {
			return fmt.Errorf("there is the terminal /dev/pts/%s", e.Name())
		}
	}
	return errors.Join(
		denied("a character device", unix.Mknod("/tmp/mem", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 1)))),
		denied("a block device", unix.Mknod("/tmp/disk", unix.S_IFBLK|0o666, int(unix.Mkdev(254, 0)))),
		unix.Mkfifo("/tmp/pipe", 0o600),
	)
}

// statusOf reads a field of /proc/self/status.
func statusOf(name string) string {
	raw, _ := os.ReadFile("/proc/thread-self/status") // empty: the caller complains
	for line := range strings.Lines(string(raw)) {
		if field, value, ok := strings.Cut(line, ":"); ok && field == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func ownStatus([]string) error {
	for name, want := range map[string]string{
		"CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapBnd": "0000000000000000",
		"CapInh": "0000000000000000", "CapAmb": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2",
	} {
		if got := statusOf(name); got != want {
			return fmt.Errorf("%s is %q", name, got)
		}
	}
	return nil
}

func ownLimits([]string) error {
	for what, l := range map[string]struct {
		id   int
		want uint64
	}{"core": {unix.RLIMIT_CORE, 1}, "files": {unix.RLIMIT_NOFILE, 123}, "file size": {unix.RLIMIT_FSIZE, 1 << 20}, "cpu": {unix.RLIMIT_CPU, 100}} {
		var have unix.Rlimit
		// Not Getrlimit: the Go runtime hides that it raised a soft limit.
		if err := unix.Prlimit(0, l.id, nil, &have); err != nil {
			return err
		}
		if have.Max != l.want {
			return fmt.Errorf("the limit of %s is %d, want %d", what, have.Max, l.want)
		}
	}
	return nil
}

// firstProcess looks into the sandbox's first process, bwrap.
func firstProcess([]string) error {
	var faults []error
	for _, name := range []string{"mem", "root", "cwd", "environ", "maps", "fd"} {
		path := "/proc/1/" + name
		raw, err := os.ReadFile(path)
		if err == nil && len(raw) > 0 {
			faults = append(faults, fmt.Errorf("%s says %q", path, raw))
		}
		// The numbers in fd may be listed; what they stand for is not told.
		entries, err := os.ReadDir(path)
		if err == nil && name != "fd" {
			faults = append(faults, fmt.Errorf("%s can be entered", path))
		}
		for _, e := range entries {
			if to, err := os.Readlink(filepath.Join(path, e.Name())); err == nil {
				faults = append(faults, fmt.Errorf("%s/%s leads to %s", path, e.Name(), to))
			}
		}
	}
	faults = append(faults, denied("signalling it", unix.Kill(1, unix.SIGTERM)))
	return errors.Join(faults...)
}

// otherSecrets looks for the test's secret in what other processes show.
func otherSecrets(args []string) error {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	own := fmt.Sprintf("/proc/%d/", os.Getpid())
	for _, f := range append(files, environs...) {
		raw, _ := os.ReadFile(f) // unreadable is well
		if !strings.HasPrefix(f, own) && strings.Contains(string(raw), args[0]) {
			return fmt.Errorf("%s shows the secret", f)
		}
	}
	if len(files) > 3 {
		return fmt.Errorf("there are %d processes", len(files))
	}
	return nil
}

func inherited([]string) error {
	var at unix.Stat_t
	for fd := 3; fd < 1024; fd++ {
		if unix.Fstat(fd, &at) != nil {
			continue
		}
		// The Go runtime opens these two for itself.
		if to, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); !strings.HasPrefix(to, "anon_inode:") {
			return fmt.Errorf("descriptor %d is open: %s", fd, to)
		}
	}
	return nil
}

// forbiddenCalls makes each call with arguments that do no harm where it is
// allowed: they are wrong, and then the error is another than EPERM.
func forbiddenCalls([]string) error {
	var faults []error
	for name, number := range map[string]uintptr{
		"io_uring_setup": unix.SYS_IO_URING_SETUP, "io_uring_enter": unix.SYS_IO_URING_ENTER, "io_uring_register": unix.SYS_IO_URING_REGISTER,
		"keyctl": unix.SYS_KEYCTL, "add_key": unix.SYS_ADD_KEY, "request_key": unix.SYS_REQUEST_KEY,
		"bpf": unix.SYS_BPF, "perf_event_open": unix.SYS_PERF_EVENT_OPEN, "userfaultfd": unix.SYS_USERFAULTFD, "fanotify_init": unix.SYS_FANOTIFY_INIT,
		"mount": unix.SYS_MOUNT, "umount2": unix.SYS_UMOUNT2, "pivot_root": unix.SYS_PIVOT_ROOT, "chroot": unix.SYS_CHROOT,
		"move_mount": unix.SYS_MOVE_MOUNT, "open_tree": unix.SYS_OPEN_TREE, "fsopen": unix.SYS_FSOPEN, "fsconfig": unix.SYS_FSCONFIG,
		"fsmount": unix.SYS_FSMOUNT, "fspick": unix.SYS_FSPICK, "mount_setattr": unix.SYS_MOUNT_SETATTR,
		"setns": unix.SYS_SETNS, "unshare": unix.SYS_UNSHARE, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT,
		"ptrace": unix.SYS_PTRACE, "process_vm_readv": unix.SYS_PROCESS_VM_READV, "process_vm_writev": unix.SYS_PROCESS_VM_WRITEV,
		"pidfd_getfd": unix.SYS_PIDFD_GETFD, "kcmp": unix.SYS_KCMP, "kexec_load": unix.SYS_KEXEC_LOAD, "init_module": unix.SYS_INIT_MODULE,
		"finit_module": unix.SYS_FINIT_MODULE, "delete_module": unix.SYS_DELETE_MODULE, "swapon": unix.SYS_SWAPON, "swapoff": unix.SYS_SWAPOFF,
		"reboot": unix.SYS_REBOOT, "syslog": unix.SYS_SYSLOG, "acct": unix.SYS_ACCT, "quotactl": unix.SYS_QUOTACTL, "vhangup": unix.SYS_VHANGUP,
	} {
		_, _, errno := unix.RawSyscall6(number, ^uintptr(0)-4095, ^uintptr(0)-4095, 0, 0, 0, 0)
		faults = append(faults, denied(name, errnoErr(errno), unix.EPERM))
	}
	for what, flag := range map[string]uintptr{"user": unix.CLONE_NEWUSER, "mount": unix.CLONE_NEWNS, "pid": unix.CLONE_NEWPID, "time": unix.CLONE_NEWTIME} {
		_, _, errno := unix.RawSyscall(unix.SYS_UNSHARE, flag, 0, 0)
		faults = append(faults, denied("a new "+what+" namespace", errnoErr(errno), unix.EPERM))
	}
	_, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, 0x0040000, 0, 0)
	faults = append(faults, denied("personality", errnoErr(errno), unix.EPERM))
	return errors.Join(faults...)
}

func errnoErr(e unix.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

func clones([]string) error {
	var faults []error
	for what, flags := range map[string]uintptr{
		"clone with a user namespace":    unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD),
		"clone with a network namespace": unix.CLONE_NEWNET | uintptr(unix.SIGCHLD),
		"clone with high bits":           1<<40 | unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD),
	} {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flags, 0, 0, 0, 0, 0)
		if errno == 0 && pid == 0 {
			unix.Exit(0) // the child of a clone that worked
		}
		faults = append(faults, denied(what, errnoErr(errno), unix.EPERM))
	}
	args := make([]uint64, 11)
	args[0] = unix.CLONE_NEWUSER
	pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args[0])), 88, 0)
	if errno == 0 && pid == 0 {
		unix.Exit(0)
	}
	faults = append(faults, denied("clone3", errnoErr(errno), unix.ENOSYS))
	cmd := exec.Command("/bin/true") // an ordinary one still works
	return errors.Join(append(faults, cmd.Run())...)
}

// typing tries to type a command into the terminal.
func typing([]string) error {
	var faults []error
	letter := byte('x')
	for _, request := range []uintptr{unix.TIOCSTI, 1<<32 | unix.TIOCSTI, 0xffffffff<<32 | unix.TIOCSTI, unix.TIOCLINUX, 1<<32 | unix.TIOCLINUX, unix.TIOCSETD} {
		_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, 0, request, uintptr(unsafe.Pointer(&letter)))
		faults = append(faults, denied(fmt.Sprintf("ioctl %#x", request), errnoErr(errno), unix.EPERM))
	}
	if _, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ); err != nil {
		faults = append(faults, fmt.Errorf("asking for the size: %w", err))
	}
	return errors.Join(faults...)
}

func socketKinds([]string) error {
	var faults []error
	for what, s := range map[string][3]int{
		"packet": {unix.AF_PACKET, unix.SOCK_RAW, 0}, "vsock": {unix.AF_VSOCK, unix.SOCK_STREAM, 0}, "alg": {unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
		"key": {unix.AF_KEY, unix.SOCK_RAW, 2}, "raw ip": {unix.AF_INET, unix.SOCK_RAW, 1}, "raw ipv6": {unix.AF_INET6, unix.SOCK_RAW, 58},
		"netfilter": {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, "bluetooth": {unix.AF_BLUETOOTH, unix.SOCK_RAW, 0}, "xdp": {unix.AF_XDP, unix.SOCK_RAW, 0},
	} {
		fd, err := unix.Socket(s[0], s[1], s[2])
		if err == nil {
			unix.Close(fd)
		}
		faults = append(faults, denied("a socket of kind "+what, err, unix.EPERM))
	}
	for what, s := range map[string][3]int{
		"local": {unix.AF_UNIX, unix.SOCK_STREAM, 0}, "tcp": {unix.AF_INET, unix.SOCK_STREAM, 0}, "udp": {unix.AF_INET6, unix.SOCK_DGRAM, 0},
		"route": {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE},
	} {
		fd, err := unix.Socket(s[0], s[1], s[2])
		if err != nil {
			faults = append(faults, fmt.Errorf("an ordinary socket of kind %s: %w", what, err))
			continue
		}
		unix.Close(fd)
	}
	return errors.Join(faults...)
}

func reachNetwork([]string) error {
	var faults []error
	for _, to := range []string{"1.1.1.1:443", "169.254.169.254:80", "10.0.0.1:22", "172.17.0.1:80", "[2606:4700::1111]:443"} {
		c, err := net.Dial("tcp", to)
		if err == nil {
			c.Close()
		}
		faults = append(faults, denied("reaching "+to, err, unix.ENETUNREACH, unix.EADDRNOTAVAIL))
		u, err := net.Dial("udp", to)
		if err == nil {
			u.Close()
		}
		faults = append(faults, denied("reaching udp "+to, err, unix.ENETUNREACH, unix.EADDRNOTAVAIL))
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		faults = append(faults, err)
	}
	for _, i := range interfaces {
		if i.Name != "lo" && i.Flags&net.FlagUp != 0 {
			faults = append(faults, fmt.Errorf("there is the interface %s", i.Name))
		}
	}
	if addrs, err := net.LookupHost("example.com"); err == nil {
		faults = append(faults, fmt.Errorf("example.com is known as %v", addrs))
	}
	return errors.Join(faults...)
}

func secondABI([]string) error {
	if runtime.GOARCH != "amd64" {
		return nil
	}
	_, _, errno := unix.RawSyscall(0x40000000|39, 0, 0, 0) // getpid of x32
	return denied("a call of x32", errnoErr(errno), unix.EPERM)
}
