package engines

import (
	"context"
	"io"

	"fletch/sandbox"
)

// absent is an engine that cannot work on this system. It refuses; it never
// does the work of another.
type absent struct{ refusal *sandbox.Refusal }

func (a absent) Name() string { return a.refusal.Engine }

func (a absent) Tier() sandbox.Tier { return sandbox.TierWorktree }

func (a absent) Claims() []sandbox.Claim {
	var out []sandbox.Claim
	for _, name := range sandbox.ClaimNames() {
		out = append(out, sandbox.Claim{Name: name, Held: "unenforced", Reason: a.refusal.Cause})
	}
	return out
}

func (a absent) Probe(context.Context) error { return a.refusal }

func (a absent) Start(context.Context, sandbox.Spec) (sandbox.Box, error) { return nil, a.refusal }

func (a absent) Run(context.Context, sandbox.Spec, io.Reader, io.Writer, io.Writer) error {
	return a.refusal
}

func (a absent) List(context.Context, string) ([]sandbox.Leftover, error) { return nil, nil }

func (a absent) Remove(context.Context, sandbox.Leftover) error { return nil }
