//go:build unix

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fletch/home"
	"fletch/hub/wire"
	"fletch/state"
)

// The test binary plays "fletch hub" when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "hub" {
		if err := standIn(os.Getenv("FLETCH_HOME")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// standIn answers as a hub until it is told to stop, unless the file order in
// dir says how its start fails. It adds a line with its pid to the file
// starts.
func standIn(dir string) error {
	ready := os.NewFile(3, "ready")
	starts, err := os.OpenFile(filepath.Join(dir, "starts"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(starts, os.Getpid()); err != nil {
		return err
	}
	var failure wire.Failure
	order, _ := os.ReadFile(filepath.Join(dir, "order"))
	switch string(order) {
	case "refuse":
		failure.Error = *wire.Errorf("store-newer", "update fletch", "the store is newer")
		return json.NewEncoder(ready).Encode(failure)
	case "die":
		return nil
	}
	socket := filepath.Join(dir, "hub.sock")
	_ = os.Remove(socket)
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	over := make(chan struct{})
	mux.HandleFunc("GET /v1/hub", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(wire.Status{PID: os.Getpid(), Version: strings.Join(os.Environ(), "\n")})
	})
	mux.HandleFunc("POST /v1/hub/stop", func(w http.ResponseWriter, _ *http.Request) { close(over) })
	mux.HandleFunc("POST /v1/left", func(http.ResponseWriter, *http.Request) {})
	if err := json.NewEncoder(ready).Encode(failure); err != nil {
		return err
	}
	_ = ready.Close()
	server := &http.Server{Handler: mux}
	go func() { <-over; _ = server.Close() }()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// patience bounds what a stand-in may take on a loaded machine.
const patience = time.Minute

// newHome makes a home; hubs that were started in it end with the test.
func newHome(t *testing.T) home.Home {
	t.Helper()
	dir, err := os.MkdirTemp("", "fc")
	if err != nil {
		t.Fatal(err)
	}
	h, err := home.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c := dial(h.HubSocket(), nil)
		_ = c.StopHub(context.Background()) // none may run
		c.Close()
		_ = os.RemoveAll(dir)
	})
	return h
}

func options(t *testing.T) Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Self: self, Env: []string{"PATH=/usr/bin:/bin", "HOME=/home/ada", "SSH_AUTH_SOCK=/agent", "GITHUB_TOKEN=secret", "LC_ALL=C", "FLETCH_LOG=debug"}}
}

// starts lists the pids of the hubs that were ever started.
func starts(t *testing.T, h home.Home) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.Dir(), "starts"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(raw))
}

func TestTwentyClientsAtOnceStartOneHub(t *testing.T) {
	h, o := newHome(t), options(t)
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			c, err := Connect(t.Context(), h, o)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if _, err := c.Status(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	if n := len(starts(t, h)); n != 1 {
		t.Errorf("%d hubs were started", n)
	}
}

func TestTheHubGetsNothingOfTheClientsEnvironmentButWhatItNeeds(t *testing.T) {
	h := newHome(t)
	c, err := Connect(t.Context(), h, options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Split(s.Version, "\n")
	slices.Sort(env)
	want := []string{"FLETCH_HOME=" + h.Dir(), "FLETCH_LOG=debug", "HOME=/home/ada", "LC_ALL=C", "PATH=/usr/bin:/bin"}
	if !slices.Equal(env, want) {
		t.Errorf("it has %q, want %q", env, want)
	}
}

func TestTheSocketOfADeadHubStartsAnother(t *testing.T) {
	h := newHome(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: h.HubSocket()})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	c, err := Connect(t.Context(), h, options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n := len(starts(t, h)); n != 1 {
		t.Errorf("%d hubs were started", n)
	}
}

func TestAClientThatMustNotStartAHubSaysThatThereIsNone(t *testing.T) {
	h, o := newHome(t), options(t)
	o.NoStart = true
	if _, err := Connect(t.Context(), h, o); !errors.Is(err, ErrNoHub) {
		t.Errorf("%v", err)
	}
	if n := len(starts(t, h)); n != 0 {
		t.Errorf("%d hubs were started", n)
	}
}

func TestAHubThatIsKilledIsStartedAgainByTheNextQuestion(t *testing.T) {
	h := newHome(t)
	c, err := Connect(t.Context(), h, options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func() error{
		"a question": func() error { _, err := c.Status(t.Context()); return err },
		"a command":  func() error { return c.Leave(t.Context()) }, // nobody can have heard it
	} {
		now, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(now.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		untilNobodyListens(t, h)
		c.Close() // a connection that is known to be dead
		if err := ask(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	last, err := c.Status(t.Context())
	if err != nil || last.PID == first.PID {
		t.Errorf("hub %d answers (%v)", last.PID, err)
	}
}

func untilNobodyListens(t *testing.T, h home.Home) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond) // the kernel has no word for this
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		conn, err := net.Dial("unix", h.HubSocket())
		if err != nil {
			return
		}
		_ = conn.Close()
	}
	t.Fatal("the killed hub still listens")
}

func TestAHubThatCannotStartSaysWhy(t *testing.T) {
	for order, want := range map[string]struct{ code, text string }{
		"refuse": {"store-newer", "the store is newer"},
		"die":    {"hub-start", "it ended without a word"},
	} {
		h := newHome(t)
		if err := os.WriteFile(filepath.Join(h.Dir(), "order"), []byte(order), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Connect(t.Context(), h, options(t))
		var said *wire.Error
		if !errors.As(err, &said) || said.Word != want.code || !strings.Contains(said.Message, want.text) || said.Way == "" {
			t.Errorf("%s: %v", order, err)
		}
	}
}

// rude listens as a hub and hangs up on everybody after reading what they
// ask; it counts what was asked.
func rude(t *testing.T, h home.Home) *atomic.Int64 {
	t.Helper()
	l, err := net.Listen("unix", h.HubSocket())
	if err != nil {
		t.Fatal(err)
	}
	asked := &atomic.Int64{}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		panic(http.ErrAbortHandler)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return asked
}

func TestWhatChangesSomethingIsNotSentAgainWhenItMayHaveBeenHeard(t *testing.T) {
	h := newHome(t)
	asked := rude(t, h)
	c := dial(h.HubSocket(), nil)
	defer c.Close()
	revived := 0
	c.revive = func(context.Context) error { revived++; return nil }
	if err := c.Leave(t.Context()); err == nil {
		t.Error("it worked")
	}
	if asked.Load() != 1 || revived != 0 {
		t.Errorf("asked %d times, revived %d times", asked.Load(), revived)
	}
	if _, err := c.Status(t.Context()); err == nil {
		t.Error("it worked")
	}
	if revived != 1 || asked.Load() < 3 {
		t.Errorf("a question: asked %d times in all, revived %d times", asked.Load(), revived)
	}
}

func TestARefusalIsTheHubsOwnError(t *testing.T) {
	h := newHome(t)
	l, err := net.Listen("unix", h.HubSocket())
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		if r.URL.Path == "/v1/left" {
			_, _ = w.Write([]byte("<html>"))
			return
		}
		_ = json.NewEncoder(w).Encode(wire.Failure{Error: *wire.Errorf("peer-refused", "go away", "not you")})
	})}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	c := dial(h.HubSocket(), nil)
	defer c.Close()
	c.revive = func(context.Context) error { t.Error("a hub that refuses is revived"); return nil }
	_, err = c.Status(t.Context())
	var said *wire.Error
	if !errors.As(err, &said) || said.Word != "peer-refused" || said.Way != "go away" {
		t.Errorf("%v", err)
	}
	c.revive = nil
	if err := c.Leave(t.Context()); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("%v", err)
	}
}

func TestUntilBeginsAgainWhenAWatchEnds(t *testing.T) {
	h := newHome(t)
	l, err := net.Listen("unix", h.HubSocket())
	if err != nil {
		t.Fatal(err)
	}
	var watches atomic.Int64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := watches.Add(1)
		lines := json.NewEncoder(w)
		fleet := state.Fleet{Seq: uint64(10 * n)}
		_ = lines.Encode(wire.News{Fleet: &fleet})
		e := state.Event{Seq: fleet.Seq + 1, Body: state.Left{}}
		_ = lines.Encode(wire.News{Event: &e})
	})}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	c := dial(h.HubSocket(), nil)
	defer c.Close()
	var seen []uint64
	err = c.Until(t.Context(), func(f state.Fleet) (bool, error) {
		seen = append(seen, f.Seq)
		return f.Seq == 21, nil
	})
	if err != nil || !slices.Equal(seen, []uint64{10, 11, 20, 21}) {
		t.Errorf("%v %v", seen, err)
	}
	stop := errors.New("stop")
	if err := c.Until(t.Context(), func(state.Fleet) (bool, error) { return false, stop }); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

func TestOnlyWhatAPushNeedsGoesAlongWithAVerdict(t *testing.T) {
	got := pushEnv([]string{"HOME=/h", "HOMEX=1", "PATH=/p", "XDG_CONFIG_HOME=/c", "SSH_AUTH_SOCK=/s", "GITHUB_TOKEN=t", "GIT_SSH=x", "odd"})
	if want := []string{"HOME=/h", "PATH=/p", "XDG_CONFIG_HOME=/c", "SSH_AUTH_SOCK=/s"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
