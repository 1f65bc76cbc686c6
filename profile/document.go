package profile

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Fault is one thing wrong with a settings file, and where.
type Fault struct {
	File         string
	Line, Column int    // from 1; 0 when the fault is the file as a whole
	Field        string // "network.allow[2]"; empty when it has no field
	Problem      string // what is wrong, one line
	Fix          string // the way out, one line; may be empty
}

func (f *Fault) Error() string {
	at := f.File
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	}
	if f.Field != "" {
		return fmt.Sprintf("reading %s: %s: %s", at, f.Field, f.Problem)
	}
	return fmt.Sprintf("reading %s: %s", at, f.Problem)
}

// Hint is the way out, for the line after the error.
func (f *Fault) Hint() string { return f.Fix }

// Code is the stable word for scripts.
func (f *Fault) Code() string { return "bad-settings" }

// Document knows where each value of a decoded file stood, so that a fault
// found later can still name its place.
type Document struct {
	file string
	at   map[string]unstable.Position
}

// Decode reads TOML into a struct, strictly: every key must be a field, in
// exactly the spelling of its toml tag. The error is a [*Fault] that names
// file, line, column and field. data is not written to and not kept.
func Decode(file string, data []byte, into any) (*Document, error) {
	d := &Document{file: file, at: map[string]unstable.Position{}}
	if err := d.index(data, describe(reflect.TypeOf(into))); err != nil {
		return nil, err
	}
	decoder := toml.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return nil, d.translate(err, describe(reflect.TypeOf(into)))
	}
	return d, nil
}

// Fault makes a fault of the value at field, spelled like
// "network.allow[2]".
func (d *Document) Fault(field, problem, fix string) *Fault {
	at := d.at[field]
	return &Fault{File: d.file, Line: at.Line, Column: at.Column, Field: field, Problem: problem, Fix: fix}
}

// index records where every key stands and refuses unknown ones. A syntax
// error is left to the decoder, which says it better.
func (d *Document) index(data []byte, known schema) error {
	var p unstable.Parser
	p.Reset(data)
	in := "" // the table the next keys belong to, with a closing dot
	tables := map[string]int{}
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind == unstable.KeyValue {
			if err := d.indexValue(&p, e, in, known); err != nil {
				return err
			}
		}
		if e.Kind == unstable.Table || e.Kind == unstable.ArrayTable {
			field, at := spell(&p, e.Key(), "")
			if err := d.check(field, at, known); err != nil {
				return err
			}
			if e.Kind == unstable.ArrayTable {
				n := tables[field]
				tables[field]++
				field = fmt.Sprintf("%s[%d]", field, n)
			}
			d.at[field] = at
			in = field + "."
		}
	}
	return nil
}

func (d *Document) indexValue(p *unstable.Parser, e *unstable.Node, in string, known schema) error {
	field, at := spell(p, e.Key(), in)
	if err := d.check(field, at, known); err != nil {
		return err
	}
	d.at[field] = at
	value := e.Value()
	if value.Raw.Length > 0 {
		d.at[field] = p.Shape(value.Raw).Start
	}
	children := value.Children()
	for i := 0; children.Next(); i++ {
		child := children.Node()
		at := fmt.Sprintf("%s[%d]", field, i)
		var err error
		switch {
		case value.Kind == unstable.InlineTable:
			err = d.indexValue(p, child, field+".", known)
		case value.Kind == unstable.Array && child.Kind == unstable.InlineTable:
			for inner := child.Children(); err == nil && inner.Next(); {
				err = d.indexValue(p, inner.Node(), at+".", known)
			}
		case value.Kind == unstable.Array:
			d.at[at] = d.at[field]
			if child.Raw.Length > 0 {
				d.at[at] = p.Shape(child.Raw).Start
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// spell gives a key as one field name, and where it begins.
func spell(p *unstable.Parser, key unstable.Iterator, in string) (string, unstable.Position) {
	var parts []string
	var at unstable.Position
	for key.Next() {
		if len(parts) == 0 {
			at = p.Shape(key.Node().Raw).Start
		}
		parts = append(parts, string(key.Node().Data))
	}
	return in + strings.Join(parts, "."), at
}

var element = regexp.MustCompile(`\[\d+\]`)

func (d *Document) check(field string, at unstable.Position, known schema) error {
	name := element.ReplaceAllString(field, "[]")
	if _, ok := known[name]; ok {
		return nil
	}
	fault := &Fault{File: d.file, Line: at.Line, Column: at.Column, Field: printable(field), Problem: "no such setting"}
	parent := ""
	if i := strings.LastIndex(name, "."); i >= 0 {
		parent = name[:i+1]
	}
	if siblings := known.under(parent); len(siblings) > 0 {
		fault.Fix = "known here: " + strings.Join(siblings, ", ")
	}
	return fault
}

// schema maps every field a file may have to what it holds, in words.
type schema map[string]string

// under lists the fields directly below prefix.
func (s schema) under(prefix string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" && !strings.ContainsAny(rest, ".[") {
			out = append(out, rest)
		}
	}
	return out
}

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// describe lists the fields of a struct type by their toml tags.
func describe(t reflect.Type) schema {
	s := schema{}
	s.add(t, "")
	return s
}

func (s schema) add(t reflect.Type, name string) {
	for t.Kind() == reflect.Pointer && !t.Implements(textUnmarshaler) {
		t = t.Elem()
	}
	prefix := name
	if name != "" {
		s[name] = words(t)
		prefix += "."
	}
	switch {
	case t.Implements(textUnmarshaler):
	case t.Kind() == reflect.Slice:
		s[name+"[]"] = words(t.Elem())
		s.add(t.Elem(), name+"[]")
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			tag, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
			switch {
			case field.Anonymous && tag == "":
				s.add(field.Type, name)
			case tag != "" && tag != "-":
				s.add(field.Type, prefix+tag)
			}
		}
	}
}

// words says what a field of type t holds.
func words(t reflect.Type) string {
	for t.Kind() == reflect.Pointer && !t.Implements(textUnmarshaler) {
		t = t.Elem()
	}
	switch {
	case t.Implements(textUnmarshaler) || t.Kind() == reflect.String:
		return "text in quotes"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return "tables in double brackets"
	case t.Kind() == reflect.Slice:
		return "a list of texts"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Struct:
		return "a table"
	}
	return "a number"
}

// translate turns an error of the decoder into a fault. The decoder speaks of
// Go types where a person wants to know what to write.
func (d *Document) translate(err error, known schema) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		first := unknown.Errors[0]
		line, column := first.Position()
		return &Fault{File: d.file, Line: line, Column: column, Field: printable(strings.Join(first.Key(), ".")), Problem: "no such setting"}
	}
	var decode *toml.DecodeError
	if !errors.As(err, &decode) {
		return &Fault{File: d.file, Problem: printable(strings.TrimPrefix(err.Error(), "toml: "))}
	}
	line, column := decode.Position()
	f := &Fault{File: d.file, Line: line, Column: column, Field: printable(strings.Join(decode.Key(), ".")), Problem: printable(strings.TrimPrefix(decode.Error(), "toml: "))}
	if strings.HasPrefix(f.Problem, "cannot decode TOML") || strings.HasPrefix(f.Problem, "cannot store") {
		f.Problem = "has the wrong kind of value"
		if want, ok := known[f.Field]; ok {
			f.Problem = "must be " + want
		}
	}
	return f
}

// printable keeps what a file says from reaching a terminal as more than
// text: 200 bytes of it, without control bytes.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "..."
	}
	return text
}
