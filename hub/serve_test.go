//go:build linux

package hub

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"fletch/home"
	"fletch/state"
)

// idling runs whenIdle in a bubble; ended is closed when it ends the hub.
func idling(t *testing.T, h *Hub) (ended <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan struct{})
	h.Idle, h.clients = time.Minute, newClientCount() // of the bubble
	h.end = func(string) { close(told) }
	over := make(chan struct{})
	go func() {
		defer close(over)
		h.whenIdle(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
	return told
}

// after lets d pass and reports whether the hub was ended by then.
func after(d time.Duration, ended <-chan struct{}) bool {
	time.Sleep(d)
	synctest.Wait()
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

func TestAHubWithNobodyAndNothingEndsAfterItsIdleTime(t *testing.T) {
	h := newHub(t)
	synctest.Test(t, func(t *testing.T) {
		ended := idling(t, h)
		if after(59*time.Second, ended) {
			t.Error("it ended early")
		}
		if !after(2*time.Second, ended) {
			t.Error("it does not end")
		}
	})
}

func TestAClientKeepsTheHubAndItsGoingBeginsTheIdleTimeAnew(t *testing.T) {
	h := newHub(t)
	synctest.Test(t, func(t *testing.T) {
		ended := idling(t, h)
		conn, other := net.Pipe()
		defer func() { _, _ = conn.Close(), other.Close() }()
		if after(50*time.Second, ended) {
			t.Fatal("it ended early")
		}
		h.clients.track(conn, http.StateNew)
		if after(10*time.Hour, ended) {
			t.Fatal("it ended under a client")
		}
		h.clients.track(conn, http.StateIdle)
		h.clients.track(conn, http.StateClosed)
		if after(59*time.Second, ended) {
			t.Error("it ended early")
		}
		if !after(2*time.Second, ended) {
			t.Error("it does not end")
		}
	})
}

func TestWorkKeepsTheHubThoughNobodyIsConnected(t *testing.T) {
	for name, work := range map[string]struct{ begin, end state.Body }{
		"a live agent": {
			state.StatusChanged{Status: state.Working}, state.StatusChanged{Status: state.Exited},
		},
		"an allowed push": {
			state.Asked{Request: state.Request{ID: "1", Agent: "aaaaaaaa", State: state.Allowed}}, state.Published{Request: "1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.recordAgent(t, "aaaaaaaa", state.Stopped)
			h.record(t, "aaaaaaaa", work.begin)
			synctest.Test(t, func(t *testing.T) {
				ended := idling(t, h)
				if after(10*time.Hour, ended) {
					t.Fatal("it ended amid work")
				}
				h.record(t, "aaaaaaaa", work.end)
				if !after(2*time.Minute+time.Second, ended) {
					t.Error("it does not end, though the work did")
				}
			})
		})
	}
}

func TestAPushThatWaitsForAPersonKeepsNoHub(t *testing.T) {
	h := newHub(t)
	h.recordAgent(t, "aaaaaaaa", state.Exited)
	h.record(t, "aaaaaaaa", state.Asked{Request: state.Request{ID: "1", Agent: "aaaaaaaa", State: state.Pending}})
	synctest.Test(t, func(t *testing.T) {
		if !after(time.Minute+time.Second, idling(t, h)) {
			t.Error("it does not end; the request is on record and waits without it")
		}
	})
}

func TestConnectionsAreCountedOnce(t *testing.T) {
	c := newClientCount()
	one, two := net.Pipe()
	defer func() { _, _ = one.Close(), two.Close() }()
	for _, to := range []http.ConnState{http.StateNew, http.StateActive, http.StateIdle, http.StateActive} {
		c.track(one, to)
	}
	c.track(two, http.StateNew)
	c.track(one, http.StateClosed)
	if alone, _ := c.alone(); alone {
		t.Error("one is still connected")
	}
	_, changed := c.alone()
	c.track(two, http.StateHijacked)
	select {
	case <-changed:
	default:
		t.Error("nobody was told")
	}
	c.track(two, http.StateClosed)
	if alone, _ := c.alone(); !alone {
		t.Error("nobody is connected any more")
	}
}

// taken is what takeOver came to.
type taken struct {
	unlock func()
	err    error
}

func takingOver(ctx context.Context, h home.Home) <-chan taken {
	out := make(chan taken, 1)
	go func() {
		unlock, err := takeOver(ctx, h)
		out <- taken{unlock, err}
	}()
	return out
}

func TestADyingHubIsWaitedFor(t *testing.T) {
	h := newHome(t)
	dying, err := holdLock(h.HubLock())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		next := takingOver(t.Context(), h)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		select {
		case got := <-next:
			t.Fatalf("it did not wait: %v", got.err)
		default:
		}
		dying()
		got := <-next
		if got.err != nil {
			t.Fatal(got.err)
		}
		got.unlock()
	})
}

func TestAHubThatHangsIsNotWaitedForForever(t *testing.T) {
	h := newHome(t)
	unlock, err := holdLock(h.HubLock())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		got := <-takingOver(t.Context(), h)
		if got.err == nil || errors.Is(got.err, errHeld) {
			t.Errorf("%v", got.err)
		}
		if waited := time.Since(start); waited < takeOverTime || waited > takeOverTime+time.Second {
			t.Errorf("it waited %v", waited)
		}
	})
}

func TestWaitingForADyingHubCanBeGivenUp(t *testing.T) {
	h := newHome(t)
	unlock, err := holdLock(h.HubLock())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		next := takingOver(ctx, h)
		synctest.Wait()
		cancel()
		if got := <-next; !errors.Is(got.err, context.Canceled) {
			t.Errorf("%v", got.err)
		}
	})
}

func TestAHubThatAnswersIsTheHub(t *testing.T) {
	h := newHome(t)
	unlock, err := holdLock(h.HubLock())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	l, err := listen(h.HubSocket())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if _, err := takeOver(t.Context(), h); !errors.Is(err, errHeld) {
		t.Errorf("%v", err)
	}
}
