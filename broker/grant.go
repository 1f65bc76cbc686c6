// Package broker is the gate between agents and the outside: a request goes in,
// a person decides, a Grant comes out. It pushes nothing itself.
package broker

import "fletch/state"

// Grant is the proof that a person allowed exactly this request. Only the
// gate makes one; the zero value grants nothing.
type Grant struct {
	request state.Request
	made    bool
}

// Request returns what was allowed, and false for a Grant that the gate did
// not make.
func (g Grant) Request() (state.Request, bool) { return g.request, g.made }
