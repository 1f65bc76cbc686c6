package hub

import (
	"fmt"
	"io"
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

// openLog opens a log file that turns itself over.
func openLog(path string) (io.Writer, error) {
	l := &rotated{path: path}
	return l, l.open()
}

type rotated struct {
	mu   sync.Mutex
	path string
	file *os.File
	size int64
}

func (l *rotated) open() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	l.file, l.size = file, info.Size()
	return nil
}

// Write appends p; a log that cannot be turned over goes on in the same file.
func (l *rotated) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+int64(len(p)) > logSize {
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

// crashOutput has a panic written to crash-<who>.txt in dir. What an earlier
// crash left there is kept under the time it happened.
func crashOutput(dir, who string) {
	name := filepath.Join(dir, "crash-"+who+".txt")
	if info, err := os.Stat(name); err == nil && info.Size() > 0 {
		_ = os.Rename(name, filepath.Join(dir, fmt.Sprintf("crash-%s-%s.txt", who, info.ModTime().UTC().Format("20060102T150405"))))
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_ = debug.SetCrashOutput(file, debug.CrashOptions{})
	_ = file.Close()
}
