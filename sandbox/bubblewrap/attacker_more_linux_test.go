package bubblewrap

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func abstractSocket(args []string) error {
	c, err := net.Dial("unix", "@"+args[0])
	if err == nil {
		c.Close()
	}
	return denied("reaching a socket of the host", err, unix.ECONNREFUSED, unix.EPERM)
}

func signalHost(args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	// Process ids are its own: the host's are not there, or are others.
	if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(raw), "test.") {
		return fmt.Errorf("process %d of the host is seen", pid)
	}
	return denied("signalling the host", unix.Kill(pid, 0), unix.ESRCH, unix.EPERM)
}

// linksOut makes links in the workspace to what is not shown, and hard links
// to what is.
func linksOut(args []string) error {
	var faults []error
	for i, to := range args {
		link := fmt.Sprintf("link%d", i)
		if err := os.Symlink(to, link); err != nil {
			return err
		}
		_, err := os.ReadFile(link)
		faults = append(faults, denied("reading "+to+" through a link", err, unix.ENOENT, unix.EACCES))
	}
	for _, to := range []string{"/usr/bin/env", "/etc/passwd", "/run/fletch/box"} {
		faults = append(faults, denied("a hard link to "+to, os.Link(to, "hard"), unix.EXDEV, unix.EPERM, unix.EACCES, unix.EROFS))
	}
	return errors.Join(faults...)
}

func moveMounts([]string) error {
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	return errors.Join(
		denied("moving fletch's place", os.Rename("/run/fletch", "/run/elsewhere"), unix.EBUSY, unix.EACCES, unix.EXDEV),
		denied("moving the workspace", os.Rename(cwd, cwd+"-moved"), unix.EBUSY, unix.EROFS, unix.EACCES),
		denied("removing a program", os.Remove("/run/fletch/bin/greet"), unix.EROFS, unix.EACCES, unix.ENOENT),
		denied("remounting", unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, ""), unix.EPERM),
		denied("covering /proc/sys", unix.Mount("none", "/proc/sys", "tmpfs", 0, ""), unix.EPERM),
		denied("uncovering /proc/sys", unix.Unmount("/proc/sys", unix.MNT_DETACH), unix.EPERM),
	)
}

// landlockHolds writes where the mounts would allow it: only Landlock says no.
func landlockHolds([]string) error {
	return denied("naming itself through /proc", os.WriteFile("/proc/self/comm", []byte("x"), 0), unix.EACCES)
}

// setUser tries to become another user.
func setUser([]string) error {
	uid := os.Getuid()
	other := 0
	if uid == 0 {
		other = 1000
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SETUID, uintptr(other), 0, 0)
	faults := []error{denied("becoming another user", errnoErr(errno), unix.EPERM, unix.EINVAL)}
	// A program that is set-user-id runs as whoever starts it.
	if out, err := exec.Command("/usr/bin/su", "-c", "id -u", "root").CombinedOutput(); err == nil && uid != 0 {
		faults = append(faults, fmt.Errorf("su says %s", out))
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil {
		faults = append(faults, errors.New("no_new_privs was taken back"))
	}
	return errors.Join(faults...)
}

func nestedSandbox([]string) error {
	err := exec.Command("/usr/bin/bwrap", "--ro-bind", "/", "/", "--unshare-user", "/bin/true").Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("a sandbox inside: %w", err)
	}
	return nil
}

func hostname([]string) error {
	name, err := os.Hostname()
	if err != nil || name != hostName {
		return fmt.Errorf("the host is called %q, %w", name, err)
	}
	return denied("naming the host", unix.Sethostname([]byte("evil")), unix.EPERM)
}

// mountFlags wants every mount without set-user-id programs and devices, and
// only sized ones writable.
func mountFlags(writable []string) error {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var faults []error
	// Landlock denies writing there too: this is the other of the two walls.
	for _, at := range []string{"/proc/sys", "/proc/pressure", "/proc/mtrr", "/proc/sysrq-trigger", "/proc/irq"} {
		if _, err := os.Lstat(at); err != nil {
			continue
		}
		var fs unix.Statfs_t
		if err := unix.Statfs(at, &fs); err == nil && fs.Type == unix.PROC_SUPER_MAGIC && fs.Flags&unix.ST_RDONLY == 0 {
			faults = append(faults, fmt.Errorf("the mount of %s can be written", at))
		}
	}
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		at, flags := f[4], ","+f[5]+","
		if !strings.Contains(flags, ",nosuid,") {
			faults = append(faults, fmt.Errorf("%s honours set-user-id", at))
		}
		if !strings.Contains(flags, ",nodev,") && !strings.HasPrefix(at, "/dev/") {
			faults = append(faults, fmt.Errorf("%s has devices", at))
		}
		if strings.Contains(flags, ",rw,") || strings.HasPrefix(f[5], "rw,") {
			ok := strings.HasPrefix(at, "/dev/") || at == "/proc"
			for _, w := range append(writable, "/tmp", "/var/tmp", "/run") {
				ok = ok || at == w
			}
			if !ok {
				faults = append(faults, fmt.Errorf("%s is writable", at))
			}
		}
		var fs unix.Statfs_t
		if err := unix.Statfs(at, &fs); err == nil && fs.Type == unix.TMPFS_MAGIC && fs.Flags&unix.ST_RDONLY == 0 &&
			!strings.HasPrefix(at, "/dev/") && int64(fs.Blocks)*fs.Bsize > 4<<30 {
			faults = append(faults, fmt.Errorf("%s has no bound", at))
		}
	}
	return errors.Join(faults...)
}

// takePort tries to stand in the proxy's place.
func takePort([]string) error {
	l, err := net.Listen("tcp", "127.0.0.1:3128")
	if err == nil {
		l.Close()
	}
	return denied("taking the proxy's port", err, unix.EADDRINUSE)
}

// overwriteBox tries to change fletch itself through a process that runs it.
func overwriteBox([]string) error {
	var faults []error
	for _, path := range []string{"/run/fletch/box", "/proc/self/exe", "/proc/1/exe"} {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		faults = append(faults, denied("writing "+path, err, unix.EROFS, unix.EACCES, unix.EPERM, unix.ETXTBSY, unix.ENOENT))
	}
	copied := filepath.Join(os.TempDir(), "copy")
	_ = os.Remove(copied) // of an earlier attack
	return errors.Join(faults...)
}
