package keeper

import (
	"errors"
	"io/fs"
	"os"
)

// defaultTranscript bounds a transcript when the order does not.
const defaultTranscript = 64 << 20

// transcript is every byte the program wrote, in two files that take turns:
// path has the newest, path.1 what came before. Together they stay below the
// cap, and the newest half of it is always there.
type transcript struct {
	path string
	half int64
	file *os.File
	size int64
}

func openTranscript(path string, limit int64) (*transcript, error) {
	if limit == 0 {
		limit = defaultTranscript
	}
	t := &transcript{path: path, half: max(limit/2, 1)}
	return t, t.open()
}

func (t *transcript) open() error {
	// An agent cannot reach its run directory, but a link here would be
	// followed on behalf of whoever made it.
	if info, err := os.Lstat(t.path); err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "open", Path: t.path, Err: errors.New("not a regular file")}
	}
	file, err := os.OpenFile(t.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return err
	}
	t.file, t.size = file, info.Size()
	return nil
}

// write appends p. Where it must turn the files over it splits p, so that no
// byte is lost and no file grows beyond its half.
func (t *transcript) write(p []byte) error {
	for len(p) > 0 {
		if t.size >= t.half {
			if err := t.turnOver(); err != nil {
				return err
			}
		}
		n, err := t.file.Write(p[:min(int64(len(p)), t.half-t.size)])
		t.size += int64(n)
		p = p[n:]
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *transcript) turnOver() error {
	if err := os.Rename(t.path, t.path+".1"); err != nil {
		return err
	}
	old := t.file
	if err := t.open(); err != nil {
		// Go on in the old file rather than lose what comes.
		return errors.Join(err, os.Rename(t.path+".1", t.path))
	}
	return old.Close()
}

// sync makes what was written durable.
func (t *transcript) sync() error { return t.file.Sync() }

func (t *transcript) close() { _ = t.file.Close() }
