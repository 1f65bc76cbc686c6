package hub

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
)

// The hub's log is kept in logFiles files of logSize bytes at most.
const (
	logSize  = 5 << 20
	logFiles = 3
)

// openLog opens the hub's log. level is what FLETCH_LOG says: debug, info,
// warn or error; anything else is info.
func openLog(path, level string) (*slog.Logger, *rotated, error) {
	file := &rotated{path: path, limit: logSize}
	if err := file.open(); err != nil {
		return nil, nil, fmt.Errorf("opening the hub's log: %w", err)
	}
	least := slog.LevelInfo
	if err := least.UnmarshalText([]byte(level)); err != nil {
		least = slog.LevelInfo
	}
	return slog.New(slog.NewJSONHandler(file, &slog.HandlerOptions{Level: least})), file, nil
}

// rotated is a log file that turns itself over: name, name.1, name.2.
type rotated struct {
	mu    sync.Mutex
	path  string
	limit int64
	file  *os.File
	size  int64
}

func (l *rotated) open() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return err
	}
	l.file, l.size = file, info.Size()
	return nil
}

// Write appends p; a log that cannot be turned over goes on in the same file.
func (l *rotated) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+int64(len(p)) > l.limit {
		l.turnOver()
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

func (l *rotated) turnOver() {
	for i := logFiles - 1; i > 0; i-- {
		from := l.path
		if i > 1 {
			from += "." + strconv.Itoa(i-1)
		}
		_ = os.Rename(from, l.path+"."+strconv.Itoa(i))
	}
	old := l.file
	if l.open() == nil {
		_ = old.Close()
	}
}

// Close ends the log.
func (l *rotated) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}

// crashOutput has a panic written to crash-hub.txt in dir. What an earlier
// crash left there is kept under the time it happened.
func crashOutput(dir string) {
	name := filepath.Join(dir, "crash-hub.txt")
	if info, err := os.Stat(name); err == nil && info.Size() > 0 {
		_ = os.Rename(name, filepath.Join(dir, "crash-hub-"+info.ModTime().UTC().Format("20060102T150405")+".txt"))
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return // the crash goes to standard error, as it would anyway
	}
	_ = debug.SetCrashOutput(file, debug.CrashOptions{})
	_ = file.Close()
}
