// Package keeper is the process that owns one agent: its sandbox, its
// terminal, its transcript, its way out to the network, and the socket at
// which whoever looks at it connects. It outlives every dashboard and the
// hub, and a fault in it costs one agent.
package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"fletch/sandbox"
	"fletch/sandbox/engines"
)

// Descriptors that "fletch keeper" is started with.
const (
	orderFD = 3 // the Order, JSON until the end
	readyFD = 4 // where the keeper says whether the agent runs: one line of JSON
)

// maxOrder bounds an order in bytes. The files made up for a sandbox are in
// it.
const maxOrder = 16 << 20

// startTimeout bounds how long the engine may take to start the agent.
const startTimeout = 55 * time.Second

// Order is all a keeper needs to know. It comes over a descriptor and is
// never written anywhere, since the agent's environment is in it.
type Order struct {
	Agent      string       `json:"agent"`       // the agent's id
	Home       string       `json:"home"`        // FLETCH_HOME
	RuntimeDir string       `json:"runtime_dir"` // XDG_RUNTIME_DIR, or empty
	Engine     string       `json:"engine"`      // by name
	Self       string       `json:"self"`        // the fletch executable
	Spec       sandbox.Spec `json:"spec"`        // Spec.Terminal must be set
	Rules      []string     `json:"rules"`       // what it may reach, as egress.Parse takes it
	Status     StatusRules  `json:"status"`
	// History is how many rows of scrollback are kept; 1000 when zero.
	History int `json:"history"`
	// TranscriptCap bounds the transcript in bytes; 64 MiB when zero.
	TranscriptCap int64 `json:"transcript_cap"`
}

var agentForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

func (o Order) check() error {
	switch {
	case !agentForm.MatchString(o.Agent):
		return fmt.Errorf("%q is no agent id", o.Agent)
	case o.Spec.Terminal == nil:
		return errors.New("the agent has no terminal")
	case len(o.Spec.Argv) == 0:
		return errors.New("there is nothing to run")
	case o.TranscriptCap < 0 || o.History < 0:
		return errors.New("a size below zero")
	}
	return o.Status.check()
}

// Main is the hidden command "fletch keeper". It reads an [Order], answers
// once the agent runs or cannot, and returns the exit code when the agent has
// ended: 0, or 1 when it never ran.
func Main() int {
	return serve(engines.New)
}

// serve is Main with the engines to choose from.
func serve(choose func(name, self string) (sandbox.Engine, error)) int {
	order, ready, err := begin()
	if err != nil {
		answer(ready, err)
		return 1
	}
	// A closed terminal ends nothing. Taking the signal instead of ignoring it
	// keeps the agent's program from inheriting that.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	engine, err := choose(order.Engine, order.Self)
	if err != nil {
		answer(ready, err)
		return 1
	}
	if err := Run(ctx, order, engine, func() { answer(ready, nil) }); err != nil {
		answer(ready, err)
		return 1
	}
	return 0
}

// begin takes over the descriptors and makes the process as private as it
// can be before it holds anything.
func begin() (Order, *os.File, error) {
	private(orderFD)
	private(readyFD)
	ready := os.NewFile(readyFD, "ready")
	in := os.NewFile(orderFD, "order")
	if in == nil || ready == nil {
		return Order{}, ready, errors.New("fletch keeper is started by fletch itself")
	}
	if err := harden(); err != nil {
		return Order{}, ready, fmt.Errorf("keeping its memory from other processes: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxOrder+1))
	_ = in.Close()
	switch {
	case err != nil:
		return Order{}, ready, fmt.Errorf("reading the order: %w", err)
	case len(raw) > maxOrder:
		return Order{}, ready, fmt.Errorf("an order of more than %d bytes", maxOrder)
	}
	var order Order
	if err := json.Unmarshal(raw, &order); err != nil {
		return Order{}, ready, fmt.Errorf("reading the order: %w", err)
	}
	return order, ready, nil
}

// answer tells whoever started the keeper how the start went. Only the first
// answer is heard.
func answer(ready *os.File, err error) {
	if ready == nil {
		return
	}
	reply := struct {
		OK    bool   `json:"ok"`
		Error string `json:"error,omitempty"`
		Hint  string `json:"hint,omitempty"`
		Code  string `json:"code,omitempty"`
	}{OK: err == nil}
	if err != nil {
		reply.Error = err.Error()
		var hint interface{ Hint() string }
		if errors.As(err, &hint) {
			reply.Hint = hint.Hint()
		}
		var code interface{ Code() string }
		if errors.As(err, &code) {
			reply.Code = code.Code()
		}
	}
	line, err := json.Marshal(reply)
	if err == nil {
		_, _ = ready.Write(append(line, '\n')) // nobody may be listening any more
	}
	_ = ready.Close()
}

// refusal is an error with a way out, for a person.
type refusal struct{ what, way, word string }

func (r *refusal) Error() string { return r.what }

// Hint is the way out.
func (r *refusal) Hint() string { return r.way }

// Code is the stable word for scripts.
func (r *refusal) Code() string { return r.word }
