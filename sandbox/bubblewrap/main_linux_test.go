package bubblewrap

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"fletch/sandbox"
	"fletch/sandbox/box"
	"fletch/sandbox/enginetest"

	"golang.org/x/sys/unix"
)

// TestMain lets the test binary play its other parts: fletch's box, with a
// step that fails when a test asks for it, and the attacker inside.
func TestMain(m *testing.M) {
	if os.Args[0] == "bwrap" {
		unix.Pause() // the child of a bwrap that was killed early
	}
	if len(os.Args) > 1 && os.Args[1] == "box" {
		stage := box.Stage{}
		for _, arg := range os.Args[2:] {
			if name, ok := strings.CutPrefix(arg, "lie="); ok {
				os.Exit(lie(name, os.Args[2:]))
			}
			if step, ok := strings.CutPrefix(arg, "fail="); ok {
				stage.Before = func(name string) error {
					if name == step {
						return errors.New("failed on purpose")
					}
					return nil
				}
			}
		}
		os.Exit(stage.Main(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "attack" {
		os.Exit(attacker(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "keeper" {
		os.Exit(keeper(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "run" {
		os.Exit(runOne(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func itoa(n int) string { return strconv.Itoa(n) }

// listenUnix opens a socket that ends with the test.
func listenUnix(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
}

func engine(t *testing.T) *Engine {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(self)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestTheNativeEngineKeepsTheContract(t *testing.T) {
	enginetest.Suite(t, func(t *testing.T) sandbox.Engine { return engine(t) })
}

func benchEngine(b *testing.B) *Engine {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	e, err := New(self)
	if err != nil {
		b.Fatal(err)
	}
	return e
}

func oneTrue() sandbox.Spec {
	return sandbox.Spec{Argv: []string{"true"}, Dir: "/", Env: []string{"PATH=/usr/bin"}}
}
