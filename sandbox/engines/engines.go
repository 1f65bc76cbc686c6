// Package engines finds an engine by its name. It is the one place that knows
// all of them.
package engines

import (
	"fmt"
	"strings"

	"fletch/sandbox"
)

// Names lists the engines there are, the default first.
func Names() []string { return []string{"native"} }

// New makes the engine called name; self is the absolute path of the fletch
// executable, which an engine may start inside a sandbox as "fletch box". It
// does not find out whether the engine works here: that is Probe. An unknown
// name is refused; it never stands for another engine.
func New(name, self string) (sandbox.Engine, error) {
	if name == "native" {
		return native(self)
	}
	return nil, unknown{name}
}

type unknown struct{ name string }

func (u unknown) Error() string {
	return fmt.Sprintf("there is no engine %.40q", u.name)
}

// Hint names the engines there are.
func (u unknown) Hint() string { return "choose one of " + strings.Join(Names(), ", ") }

// Code is the stable word for scripts.
func (u unknown) Code() string { return "no-such-engine" }
