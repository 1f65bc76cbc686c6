package bubblewrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fletch/sandbox"
	"fletch/sandbox/box"
)

// Sizes of the private places in memory, in bytes. /tmp has the Spec's.
const (
	shmSize = 256 << 20
	runSize = 64 << 20
)

// Where fletch's own things are inside.
const (
	insideBin = "/run/fletch/bin"
	insideBox = "/run/fletch/box"
)

// view is bwrap's order for one start: a world built from nothing.
type view struct {
	args   []string
	hand   *handoff
	mounts []mount  // in order
	write  []string // what may change
}

// mount is a mount that is in the view, the system's own included.
type mount struct {
	target string
	write  bool
	system bool
	from   source
}

// build makes the view of s. The order of bwrap's arguments is the order of
// its mounts.
func (e *Engine) build(s sandbox.Spec, hand *handoff) (*view, error) {
	v := &view{hand: hand}
	limits := s.Limits.Or()
	if err := v.system(); err != nil {
		return nil, err
	}
	v.kernel()
	v.memory("/dev/shm", 0o1777, shmSize)
	v.memory("/tmp", 0o1777, limits.TmpBytes)
	v.memory("/var/tmp", 0o1777, limits.TmpBytes)
	v.memory("/run", 0o755, runSize)
	v.add("--symlink", "../run", "/var/run")
	v.add("--perms", "0700", "--dir", fmt.Sprintf("/run/user/%d", os.Getuid()))
	// A mount of its own, so that nothing can rename it away.
	v.add("--size", strconv.Itoa(1<<20), "--tmpfs", "/run/fletch")
	if err := v.etc(s); err != nil {
		return nil, err
	}
	for _, m := range s.Mounts {
		if err := v.show(m); err != nil {
			return nil, err
		}
	}
	for _, m := range v.mounts {
		v.bind(m)
	}
	for _, f := range s.Files {
		if err := v.file(f); err != nil {
			return nil, err
		}
	}
	if err := v.own(e.self, insideBox); err != nil {
		return nil, err
	}
	if s.Bin != "" {
		if err := v.own(s.Bin, insideBin); err != nil {
			return nil, err
		}
	}
	// What is left writable is only what has a size or a mount of its own.
	v.add("--remount-ro", "/run/fletch", "--remount-ro", "/dev", "--remount-ro", "/")
	return v, nil
}

// open opens a source and closes it when bwrap has it.
func (v *view) open(path string) (source, error) {
	from, err := openSource(path)
	if err == nil {
		v.hand.hold(from.file)
	}
	return from, err
}

func (v *view) add(args ...string) { v.args = append(v.args, args...) }

// memory adds a private place in memory with a bound.
func (v *view) memory(path string, perms os.FileMode, size int64) {
	v.add("--perms", fmt.Sprintf("%04o", perms), "--size", strconv.FormatInt(size, 10), "--tmpfs", path)
	v.write = append(v.write, path)
}

// system adds the programs of the host, as the host has them: on most
// systems /bin and its like are links into /usr.
func (v *view) system() error {
	for _, path := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"} {
		info, err := os.Lstat(path)
		if errors.Is(err, os.ErrNotExist) && path != "/usr" {
			continue
		}
		if err != nil {
			return fmt.Errorf("showing %s: %w", path, err)
		}
		if info.Mode()&os.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			if err != nil {
				return fmt.Errorf("showing %s: %w", path, err)
			}
			v.add("--symlink", to, path)
			continue
		}
		from, err := v.open(path)
		if err != nil {
			return err
		}
		v.mounts = append(v.mounts, mount{target: path, system: true, from: from})
	}
	return nil
}

// kernel adds /proc and /dev. Root inside is root outside to the checks of
// these files, so what is writable there is made read-only and what tells or
// does too much is covered.
func (v *view) kernel() {
	v.add("--proc", "/proc")
	for _, dir := range []string{"sys", "fs", "pressure", "irq", "acpi", "asound", "scsi"} {
		if info, err := os.Stat("/proc/" + dir); err == nil && info.IsDir() {
			v.add("--ro-bind-try", "/proc/"+dir, "/proc/"+dir)
		}
	}
	for _, file := range []string{
		"kcore", "keys", "kmsg", "kallsyms", "kpagecgroup", "kpagecount", "kpageflags", "latency_stats", "mtrr",
		"sched_debug", "slabinfo", "sysrq-trigger", "timer_list", "timer_stats", "vmallocinfo",
	} {
		if info, err := os.Lstat("/proc/" + file); err == nil && info.Mode().IsRegular() {
			v.add("--ro-bind", "/dev/null", "/proc/"+file)
		}
	}
	v.add("--dev", "/dev")
}

// own shows a file or directory of fletch itself.
func (v *view) own(path, target string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("showing %s: %w", path, err)
	}
	from, err := v.open(real)
	if err != nil {
		return err
	}
	m := mount{target: target, from: from}
	v.mounts = append(v.mounts, m)
	v.bind(m)
	return nil
}

func (v *view) bind(m mount) {
	option := "--ro-bind-fd"
	if m.write {
		option = "--bind-fd"
		v.write = append(v.write, m.target)
	}
	v.add(option, strconv.Itoa(v.hand.lend(m.from.file)), m.target)
}

// places is what box must find.
func (v *view) places() []box.Place {
	out := make([]box.Place, len(v.mounts))
	for i, m := range v.mounts {
		out[i] = box.Place{Path: m.target, Dev: m.from.dev, Ino: m.from.ino, Write: m.write}
	}
	return out
}

// show takes a mount of the Spec into the view, or leaves it out where the
// same is in view already.
func (v *view) show(m sandbox.Mount) error {
	target := m.Target
	if target == "" {
		target = m.Source
	}
	if err := allowed(m, target); err != nil {
		return err
	}
	from, err := v.open(m.Source)
	if err != nil {
		// A link on the way is as good as nothing there, where nothing is
		// fine; less is shown, never more.
		if m.Optional && (errors.Is(err, errNoSource) || !m.Write && (errors.Is(err, errLink) || errors.Is(err, os.ErrPermission))) {
			return nil
		}
		return err
	}
	needed, err := v.place(target, m.Write, from)
	if err != nil || !needed {
		return err
	}
	// It lies on top of whatever was there.
	v.mounts = slices.DeleteFunc(v.mounts, func(o mount) bool { return sandbox.Under(o.target, target) })
	v.mounts = append(v.mounts, mount{target: target, write: m.Write, from: from})
	return nil
}

// allowed keeps mounts away from what the view is made of.
func allowed(m sandbox.Mount, target string) error {
	for _, dir := range []string{"/proc", "/dev", "/sys"} {
		if sandbox.Under(m.Source, dir) || sandbox.Under(target, dir) {
			return fmt.Errorf("showing %s at %s: nothing of %s is shown", m.Source, target, dir)
		}
	}
	if m.Source == "/" || target == "/" {
		return fmt.Errorf("showing %s at %s: the whole system is never shown", m.Source, target)
	}
	if sandbox.Under(target, "/run/fletch") || sandbox.Under("/run/fletch", target) {
		return fmt.Errorf("showing %s at %s: fletch's own place is there", m.Source, target)
	}
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/nix/store", "/var/run"} {
		if sandbox.Under(dir, target) || sandbox.Under(target, dir) && (m.Write || target != m.Source) {
			return fmt.Errorf("showing %s at %s: the system's files are read-only and in their own place", m.Source, target)
		}
	}
	return nil
}

// place decides whether a mount at target is needed and safe. One that lies
// inside a mount would have to be found, or made, in a folder that someone
// else may write: a link planted there leads bubblewrap out of the new world
// (GHSA-pxhw-h44j-8pfx). So it must exist, and its mount must be read-only.
func (v *view) place(target string, write bool, from source) (needed bool, err error) {
	below, ok := v.below(target)
	if !ok {
		return true, nil // on a place of our own, which starts empty
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(target, below.target), "/")
	there := below.from
	if rel != "" {
		there, err = below.from.openBeneath(rel)
		if err == nil {
			defer there.file.Close() // only compared
		}
	}
	switch {
	case err == nil && there.same(from) && below.write == write:
		return false, nil
	case rel == "":
		return true, nil
	case below.write:
		return false, fmt.Errorf("showing %s: it lies inside %s, which may be written", target, below.target)
	case err != nil:
		return false, fmt.Errorf("showing %s inside %s: %w", target, below.target, err)
	case there.isDir != from.isDir:
		return false, fmt.Errorf("showing %s inside %s: one is a file, the other a directory", target, below.target)
	}
	return true, nil
}

// below is the topmost mount that target is or lies in.
func (v *view) below(target string) (mount, bool) {
	for _, m := range slices.Backward(v.mounts) {
		if sandbox.Under(target, m.target) {
			return m, true
		}
	}
	return mount{}, false
}

// file puts a made-up file into the view, as a read-only mount, so that it
// cannot be moved out of the way even where its folder can be written.
func (v *view) file(f sandbox.File) error {
	if err := allowed(sandbox.Mount{Source: f.Target}, f.Target); err != nil {
		return err
	}
	if below, ok := v.below(f.Target); ok {
		if below.write || below.target == f.Target {
			return fmt.Errorf("making %s: it lies inside %s", f.Target, below.target)
		}
		there, err := below.from.openBeneath(strings.TrimPrefix(f.Target, below.target+"/"))
		if err != nil {
			return fmt.Errorf("making %s inside %s: %w", f.Target, below.target, err)
		}
		there.file.Close() // only looked at
	}
	perms := "0444"
	if f.Exec {
		perms = "0555"
	}
	fd, err := v.hand.data(filepath.Base(f.Target), f.Content)
	if err != nil {
		return err
	}
	v.add("--perms", perms, "--ro-bind-data", strconv.Itoa(fd), f.Target)
	return nil
}
