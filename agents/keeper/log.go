package keeper

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
)

// A keeper's log is kept in logFiles files of logSize bytes at most, and the
// record of its connections in auditFiles of auditSize.
const (
	logSize    = 5 << 20
	logFiles   = 3
	auditSize  = 16 << 20
	auditFiles = 3
)

// rotated is a log file that turns itself over: name, name.1, name.2, …
type rotated struct {
	mu    sync.Mutex
	path  string
	limit int64
	files int
	file  *os.File
	size  int64
}

func openRotated(path string, limit int64, files int) (*rotated, error) {
	r := &rotated{path: path, limit: limit, files: files}
	return r, r.open()
}

func (r *rotated) open() error {
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return err
	}
	r.file, r.size = file, info.Size()
	return nil
}

// Write appends p; a log that cannot be turned over goes on in the same file.
func (r *rotated) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size+int64(len(p)) > r.limit {
		r.turnOver()
	}
	n, err := r.file.Write(p)
	r.size += int64(n)
	return n, err
}

func (r *rotated) turnOver() {
	for i := r.files - 1; i > 0; i-- {
		from := r.path
		if i > 1 {
			from += "." + strconv.Itoa(i-1)
		}
		_ = os.Rename(from, r.path+"."+strconv.Itoa(i))
	}
	old := r.file
	if r.open() == nil {
		_ = old.Close()
	}
}

func (r *rotated) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.file.Close()
}

// newLog makes a log of JSON lines; FLETCH_LOG=debug makes it say more.
func newLog(to io.Writer) *slog.Logger {
	level := slog.LevelInfo
	if err := level.UnmarshalText([]byte(os.Getenv("FLETCH_LOG"))); err != nil {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: level}))
}

// crashOutput has a panic written to crash-<who>.txt in dir. What an earlier
// crash left there is kept under the time it happened.
func crashOutput(dir, who string) {
	name := filepath.Join(dir, "crash-"+who+".txt")
	if info, err := os.Stat(name); err == nil && info.Size() > 0 {
		_ = os.Rename(name, filepath.Join(dir, fmt.Sprintf("crash-%s-%s.txt", who, info.ModTime().UTC().Format("20060102T150405"))))
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return // the crash goes to standard error, as it would anyway
	}
	_ = debug.SetCrashOutput(file, debug.CrashOptions{})
	_ = file.Close()
}
