package store

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Head names the newest event: its number and the sha256 (hex) of its record,
// which covers every record before it. An empty store has Seq 0 and a hash of
// its own.
type Head struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

func formatHead(h Head, uuid string) string {
	return fmt.Sprintf("%d %s %s", h.Seq, h.Hash, uuid)
}

func parseHead(text string) (Head, string, error) {
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return Head{}, "", errors.New("it does not hold three words")
	}
	seq, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil {
		return Head{}, "", errors.New("its first word is not a number")
	}
	if sum, err := hex.DecodeString(fields[1]); err != nil || len(sum) != hashSize {
		return Head{}, "", errors.New("its second word is not a sha256")
	}
	return Head{seq, fields[1]}, fields[2], nil
}

// readHead returns fs.ErrNotExist when there is no head file, and ErrDamaged
// when it is not one.
func readHead(path string) (Head, string, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return Head{}, "", fmt.Errorf("reading the store's head: %w", err)
	}
	head, uuid, err := parseHead(string(body))
	if err != nil {
		return Head{}, "", damaged(path, "%v", err)
	}
	return head, uuid, nil
}

// writeHead replaces the head file in one step that is on disk when it
// returns: a reader sees the old line or the new one, also after a power cut.
func writeHead(path string, h Head, uuid string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing the store's head: %w", err)
		}
	}()
	next := path + ".next"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(formatHead(h, uuid) + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes names in dir durable. Windows has no such call; its renames
// are journalled.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func exists(path string) (bool, error) {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, err
	}
}
