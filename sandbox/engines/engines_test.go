package engines

import (
	"context"
	"errors"
	"strings"
	"testing"

	"fletch/sandbox"
)

func TestAnUnknownEngineIsRefusedByNamingTheKnown(t *testing.T) {
	for _, name := range []string{"", "direct", "Native", "podman"} {
		engine, err := New(name, "/usr/bin/fletch")
		if err == nil {
			t.Fatalf("%q gave the engine %s", name, engine.Name())
		}
		hint, ok := err.(interface{ Hint() string })
		if !ok || !strings.Contains(hint.Hint(), "native") {
			t.Errorf("the error of %q has no hint that names the engines: %v", name, err)
		}
	}
}

func TestEveryNamedEngineCanBeMade(t *testing.T) {
	for _, name := range Names() {
		engine, err := New(name, "/usr/bin/fletch")
		if err != nil {
			t.Fatal(err)
		}
		if engine.Name() != name {
			t.Errorf("%q is called %q", name, engine.Name())
		}
		if len(engine.Claims()) != len(sandbox.ClaimNames()) {
			t.Errorf("%s says nothing about some claims", name)
		}
	}
}

func TestAnAbsentEngineDoesNothing(t *testing.T) {
	a := absent{&sandbox.Refusal{Engine: "native", Cause: "no", Fix: "yes"}}
	var refusal *sandbox.Refusal
	if err := a.Probe(context.Background()); !errors.As(err, &refusal) {
		t.Errorf("Probe says %v", err)
	}
	if box, err := a.Start(context.Background(), sandbox.Spec{}); box != nil || !errors.As(err, &refusal) {
		t.Errorf("Start says %v, %v", box, err)
	}
	if err := a.Run(context.Background(), sandbox.Spec{}, nil, nil, nil); !errors.As(err, &refusal) {
		t.Errorf("Run says %v", err)
	}
}
