package sandbox

import (
	"fmt"
	"path"
	"strings"
)

// Bounds of a Spec. They are far above what a start needs; whoever passes
// them is in error or hostile.
const (
	maxMounts  = 512
	maxFiles   = 64
	maxContent = 4 << 20 // bytes of all files together
	maxArgv    = 1 << 20 // bytes of argv and environment together
	maxKeep    = 16
)

// Check refuses a Spec that no engine may start: a relative or unclean path,
// a label that could leave its folder, a size that makes no sense. Every
// engine calls it first; oneShot tells Run from Start.
func (s Spec) Check(oneShot bool) error {
	for _, check := range []func() error{
		func() error { return s.checkLabels(oneShot) },
		s.checkProgram,
		s.checkView,
		s.Limits.check,
	} {
		if err := check(); err != nil {
			return fmt.Errorf("checking the sandbox: %w", err)
		}
	}
	switch s.Network {
	case NetworkNone, NetworkProxy, NetworkOpen:
	default:
		return fmt.Errorf("checking the sandbox: no network is called %q", s.Network)
	}
	if oneShot && (s.Terminal != nil || s.Network != NetworkNone) {
		return fmt.Errorf("checking the sandbox: a one-shot has neither a terminal nor a network")
	}
	if !oneShot && len(s.Keep) > 0 {
		return fmt.Errorf("checking the sandbox: only a one-shot may keep open files")
	}
	if len(s.Keep) > maxKeep {
		return fmt.Errorf("checking the sandbox: %d kept files, %d at most", len(s.Keep), maxKeep)
	}
	if t := s.Terminal; t != nil && (t.Cols < 1 || t.Rows < 1 || t.Cols > 10_000 || t.Rows > 10_000) {
		return fmt.Errorf("checking the sandbox: a terminal of %d by %d cells", t.Cols, t.Rows)
	}
	return nil
}

// checkLabels keeps agent and store usable as one path element. A one-shot
// may go without.
func (s Spec) checkLabels(oneShot bool) error {
	for _, label := range []struct{ what, word string }{{"agent", s.Agent}, {"store", s.Store}} {
		if label.word == "" && oneShot {
			continue
		}
		if !isLabel(label.word) {
			return fmt.Errorf("%q is no name for the %s", label.word, label.what)
		}
	}
	return nil
}

func isLabel(word string) bool {
	if word == "" || len(word) > 64 || word[0] == '-' {
		return false
	}
	for _, r := range word {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			continue
		}
		return false
	}
	return true
}

func (s Spec) checkProgram() error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return fmt.Errorf("no program is given")
	}
	size := 0
	for _, word := range s.Argv {
		if strings.ContainsRune(word, 0) {
			return fmt.Errorf("an argument has a zero byte in it")
		}
		size += len(word) + 1
	}
	for _, word := range s.Env {
		// The value may be a secret: only the name is said.
		name, _, ok := strings.Cut(word, "=")
		if !ok || name == "" || strings.ContainsRune(word, 0) {
			return fmt.Errorf("%q is not NAME=value", name)
		}
		size += len(word) + 1
	}
	if size > maxArgv {
		return fmt.Errorf("arguments and environment have %d bytes, %d at most", size, maxArgv)
	}
	return checkPath("working directory", s.Dir)
}

func (s Spec) checkView() error {
	if len(s.Mounts) > maxMounts {
		return fmt.Errorf("%d mounts, %d at most", len(s.Mounts), maxMounts)
	}
	for _, m := range s.Mounts {
		if err := checkPath("mount", m.Source); err != nil {
			return err
		}
		if m.Target == "" {
			continue
		}
		if err := checkPath("mount target", m.Target); err != nil {
			return err
		}
	}
	if len(s.Files) > maxFiles {
		return fmt.Errorf("%d files, %d at most", len(s.Files), maxFiles)
	}
	size := 0
	for _, f := range s.Files {
		if err := checkPath("file", f.Target); err != nil {
			return err
		}
		size += len(f.Content)
	}
	if size > maxContent {
		return fmt.Errorf("the files have %d bytes, %d at most", size, maxContent)
	}
	if s.Bin == "" {
		return nil
	}
	return checkPath("directory of programs", s.Bin)
}

// checkPath wants an absolute path in its shortest form, so that comparing
// two of them by prefix means what it says.
func checkPath(what, p string) error {
	if !strings.HasPrefix(p, "/") || path.Clean(p) != p || strings.ContainsRune(p, 0) {
		return fmt.Errorf("the %s %q is not an absolute, clean path", what, p)
	}
	return nil
}

func (l Limits) check() error {
	for _, n := range []int64{int64(l.PIDs), int64(l.Files), l.TmpBytes, l.Memory, l.FileBytes, int64(l.CPUSecs)} {
		if n < 0 {
			return fmt.Errorf("a limit is below zero")
		}
	}
	return nil
}

// Under reports whether the clean absolute path p is dir or lies beneath it.
func Under(p, dir string) bool {
	if dir == "/" {
		return strings.HasPrefix(p, "/")
	}
	return p == dir || strings.HasPrefix(p, dir+"/")
}
