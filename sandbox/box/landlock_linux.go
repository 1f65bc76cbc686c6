package box

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// oldestABI is the first Landlock that can allow renaming between
// directories; with the one before it, no build tool works.
const oldestABI = 2

const (
	landRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// Device files are missing on purpose: nothing in a sandbox makes one.
	landMake = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	landDevice = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// LandlockABI is the version this kernel enforces, or why there is none that
// will do.
func LandlockABI() (int, error) {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errno == unix.ENOSYS:
		return 0, errors.New("this kernel has no Landlock")
	case errno == unix.EOPNOTSUPP:
		return 0, errors.New("this kernel has Landlock switched off")
	case errno != 0:
		return 0, errno
	case abi < oldestABI:
		return 0, fmt.Errorf("this kernel's Landlock has version %d, %d is needed", abi, oldestABI)
	}
	return int(abi), nil
}

// handled is everything that version abi can deny. Network rights are left
// out: the private network holds there, and a program's own servers on its
// own loopback are its own business.
func handled(abi int) (files, scopes uint64) {
	files = 1<<13 - 1 // version 1
	for since, right := range map[int]uint64{
		2: unix.LANDLOCK_ACCESS_FS_REFER,
		3: unix.LANDLOCK_ACCESS_FS_TRUNCATE,
		5: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV,
		9: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX,
	} {
		if abi >= since {
			files |= right
		}
	}
	if abi >= 6 {
		scopes = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return files, scopes
}

// landlock denies this thread, for good, every change outside of the places
// that may change. It repeats what the mounts say, so that one of the two may
// be wrong.
func (b *box) landlock() error {
	abi, err := LandlockABI()
	if err != nil {
		return err
	}
	var attr unix.LandlockRulesetAttr
	attr.Handled_access_fs, attr.Scoped = handled(abi)
	// An older kernel takes a longer structure as long as the rest is zero.
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) //nolint:gosec // the kernel takes it by address
	if errno != 0 {
		return fmt.Errorf("making the rules: %w", errno)
	}
	rules := ruleset{fd: int(fd), handled: attr.Handled_access_fs}
	defer func() { _ = unix.Close(rules.fd) }()
	if err := b.grant(rules); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("enforcing the rules: %w", errno)
	}
	b.report.Landlock = abi
	return nil
}

func (b *box) grant(rules ruleset) error {
	if err := rules.path("/", landRead); err != nil {
		return err
	}
	if err := rules.path("/dev", landRead|landWrite|landDevice); err != nil {
		return err
	}
	for _, path := range b.config.Write {
		if err := rules.path(path, landRead|landWrite|landMake); err != nil {
			return err
		}
	}
	// A terminal that came from outside is not beneath /dev in here, yet
	// programs open it again as /dev/stdout.
	for fd := range 3 {
		var at unix.Stat_t
		if unix.Fstat(fd, &at) != nil || at.Mode&unix.S_IFMT != unix.S_IFCHR {
			continue
		}
		if err := rules.add(fd, landRead|landWrite|landDevice, true); err != nil {
			return fmt.Errorf("allowing descriptor %d: %w", fd, err)
		}
	}
	return nil
}

type ruleset struct {
	fd      int
	handled uint64
}

func (r ruleset) path(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("allowing %s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	var at unix.Stat_t
	if err := unix.Fstat(fd, &at); err != nil {
		return fmt.Errorf("allowing %s: %w", path, err)
	}
	if err := r.add(fd, rights, at.Mode&unix.S_IFMT != unix.S_IFDIR); err != nil {
		return fmt.Errorf("allowing %s: %w", path, err)
	}
	return nil
}

func (r ruleset) add(fd int, rights uint64, isFile bool) error {
	if isFile {
		rights &= unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
			unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.handled, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0) //nolint:gosec // the kernel takes it by address
	if errno != 0 {
		return errno
	}
	return nil
}
