package mailbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

var opForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// letterID is the id that a file name stands for; .tmp and everything else
// that is not <id>.json has none.
func letterID(name string) (string, bool) {
	id, ok := strings.CutSuffix(name, ".json")
	return id, ok && idForm.MatchString(id)
}

// parse reads {"id","op","args"}: each key at most once, spelled exactly so,
// nothing else, nothing behind it; id must be the file's own.
func parse(id string, body []byte) (Message, error) {
	if !utf8.Valid(body) {
		return Message{}, errors.New("not valid UTF-8")
	}
	// encoding/json takes "ID" for "id" and the last of two; a request
	// must not mean one thing here and another to whoever reads it later.
	dec := json.NewDecoder(bytes.NewReader(body))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return Message{}, errors.New("not a JSON object")
	}
	m := Message{Args: json.RawMessage("{}")}
	found := map[string]bool{}
	var written string
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return Message{}, errors.New("not a JSON object")
		}
		name, _ := key.(string)
		if found[name] {
			return Message{}, fmt.Errorf("%q is there twice", plain(name, 40))
		}
		found[name] = true
		switch name {
		case "id":
			err = dec.Decode(&written)
		case "op":
			err = dec.Decode(&m.Op)
		case "args":
			err = dec.Decode(&m.Args)
		default:
			return Message{}, fmt.Errorf("unknown field %q", plain(name, 40))
		}
		if err != nil {
			return Message{}, fmt.Errorf("%s is not what it should be", plain(name, 40))
		}
	}
	if _, err := dec.Token(); err != nil {
		return Message{}, errors.New("not a whole JSON object")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Message{}, errors.New("something stands behind the JSON object")
	}
	switch {
	case written != id:
		return Message{}, errors.New("its id is not that of its file")
	case !opForm.MatchString(m.Op):
		return Message{}, errors.New("it names no operation")
	case m.Args[0] != '{':
		return Message{}, errors.New("its args are not an object")
	}
	m.ID = id
	return m, nil
}

// strict decodes one JSON value with known fields only.
func strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something stands behind the value")
	}
	return nil
}
