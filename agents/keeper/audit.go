package keeper

import (
	"encoding/json"

	"fletch/sandbox/egress"
)

// audit is the record of every connection the agent asked for: JSON lines.
// It is used by one goroutine at a time, as egress promises.
type audit struct {
	file    *rotated
	blocked map[string]bool // hosts that were refused before
}

func openAudit(path string) (*audit, error) {
	file, err := openRotated(path, auditSize, auditFiles)
	return &audit{file: file, blocked: map[string]bool{}}, err
}

// note records l. It reports whether this is the first time that its host was
// refused; beyond a thousand hosts nobody reads on.
func (a *audit) note(l egress.Line) (firstBlock bool, err error) {
	line, err := json.Marshal(l)
	if err != nil {
		return false, err
	}
	_, err = a.file.Write(append(line, '\n'))
	if l.Allowed || l.Host == "" || a.blocked[l.Host] || len(a.blocked) >= maxBlocked {
		return false, err
	}
	a.blocked[l.Host] = true
	return true, err
}

func (a *audit) close() { a.file.close() }
