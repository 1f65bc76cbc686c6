package attach

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fletch/agents/term"
)

// maxKept bounds a file that ReadFrame reads: the largest frame there can be.
const maxKept = 32 << 20

// WriteFrame keeps f in a file, mode 0600, that is whole or not there: the
// last screen of a program that ended.
func WriteFrame(path string, f term.Frame) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".frame-*")
	if err != nil {
		return fmt.Errorf("keeping a frame: %w", err)
	}
	_, err = file.Write(encodeWhole(f))
	if err2 := file.Close(); err == nil {
		err = err2
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("keeping a frame: %w", err)
	}
	return nil
}

// ReadFrame reads what WriteFrame kept. A file with anything else in it gives
// an error; one that is not there gives [io/fs.ErrNotExist].
func ReadFrame(path string) (term.Frame, error) {
	file, err := os.Open(path)
	if err != nil {
		return term.Frame{}, fmt.Errorf("reading a kept frame: %w", err)
	}
	defer func() { _ = file.Close() }()
	f, err := decodeFrame(io.LimitReader(file, maxKept))
	if err != nil {
		return term.Frame{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return f, nil
}

// decodeFrame reads one frame as it is on the wire.
func decodeFrame(r io.Reader) (term.Frame, error) {
	var a assembler
	in := reader{from: r}
	// No frame has more messages than rows, and the two in front.
	for range maxRows + 2 {
		k, payload, err := in.next()
		if err != nil {
			return term.Frame{}, err
		}
		if k < kindSnapshot || k > kindTitle {
			return term.Frame{}, malformed("a message of another kind")
		}
		f, complete, err := a.take(k, payload)
		if complete || err != nil {
			return f, err
		}
	}
	return term.Frame{}, malformed("a frame without an end")
}

// encodeWhole gives a frame as it is on the wire.
func encodeWhole(f term.Frame) []byte {
	f.Whole = true
	var e frameEncoder
	return e.encode(f)
}
