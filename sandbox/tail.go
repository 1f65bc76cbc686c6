package sandbox

import "sync"

// Tail keeps the end of what is written to it: the last words of a program
// that failed.
type Tail struct {
	mu   sync.Mutex
	last []byte
}

const tailSize = 2 << 10 // bytes

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	if extra := len(t.last) - tailSize; extra > 0 {
		t.last = t.last[extra:]
	}
	return len(p), nil
}

// String is what was kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.last)
}
