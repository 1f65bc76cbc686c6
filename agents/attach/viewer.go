package attach

import (
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// maxQueued bounds the news and answers that wait for one viewer.
	maxQueued = 256
	// maxHistoryRows bounds one answer to AskHistory.
	maxHistoryRows = 500
)

// viewer is one connection. Its reader and whoever has news note in it what
// is to be sent; its writer sends. Frames are not queued: the writer takes
// the newest one when it may send.
type viewer struct {
	server *Server
	conn   net.Conn
	role   string
	wake   chan struct{} // one wake-up of the writer
	done   chan struct{} // closed when the writer has ended

	mu      sync.Mutex
	dirty   bool       // the screen may have changed
	unseen  bool       // the last frame was not acknowledged yet
	news    []News     // to be sent
	history []askedFor // to be answered
	exit    *Exit      // the program ended
	gone    bool       // the reader has ended
	typed   time.Time  // when the viewer last typed
}

type askedFor struct{ from, n int }

// tell changes what the writer has to do.
func (v *viewer) tell(change func(*viewer)) {
	v.mu.Lock()
	change(v)
	v.mu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// publish queues news. Of a status or title only the newest matters; of the
// rest the oldest give way when the viewer does not read.
func (v *viewer) publish(n News) {
	v.tell(func(v *viewer) {
		if n.Kind == NewsStatus || n.Kind == NewsTitle || n.Kind == NewsBell {
			v.news = slices.DeleteFunc(v.news, func(old News) bool { return old.Kind == n.Kind })
		}
		if len(v.news) >= maxQueued {
			v.news = slices.Delete(v.news, 0, 1)
		}
		v.news = append(v.news, n)
	})
}

// work is what the writer takes to do at once.
type work struct {
	news    []News
	history []askedFor
	frame   bool
	exit    *Exit
	gone    bool
}

// take takes what there is to do. When the last frame, sent at sent, is too
// young for another one it says how long to wait.
func (v *viewer) take(sent time.Time) (w work, wait time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	interval := frameInterval
	if time.Since(v.typed) < echoTime {
		interval = echoInterval
	}
	left := interval - time.Since(sent)
	w = work{news: v.news, history: v.history, exit: v.exit, gone: v.gone}
	v.news, v.history = nil, nil
	switch {
	case v.role != RoleViewer:
	case v.exit != nil: // the last frame, whatever else
		w.frame = true
	case v.dirty && !v.unseen && left <= 0:
		w.frame, v.dirty = true, false
	case v.dirty && !v.unseen:
		wait = left
	}
	return w, wait
}

// write sends until the connection or the program ends.
func (v *viewer) write() {
	var (
		encoder frameEncoder
		seq     uint64
		sent    time.Time // when the last frame went out
	)
	later := time.NewTimer(frameInterval)
	later.Stop()
	defer later.Stop()
	for {
		todo, wait := v.take(sent)
		if todo.gone {
			return
		}
		if wait > 0 {
			later.Reset(wait)
		}
		if todo.frame {
			f := v.server.terminal.Since(seq)
			if f.Whole || f.Seq != seq {
				v.tell(func(v *viewer) { v.unseen = true })
				if _, err := v.conn.Write(encoder.encode(f)); err != nil {
					return
				}
				seq, sent = f.Seq, time.Now()
			}
		}
		if !v.send(todo) {
			return
		}
		select {
		case <-v.wake:
		case <-later.C:
		}
	}
}

// send sends everything but frames. It reports whether to go on.
func (v *viewer) send(todo work) bool {
	for _, n := range todo.news {
		b, err := jsonMessage(kindNews, n)
		if err != nil {
			continue // it is too large to be news
		}
		if _, err := v.conn.Write(b); err != nil {
			return false
		}
	}
	for _, asked := range todo.history {
		h := History{From: asked.from, Total: v.server.terminal.History()}
		h.Lines = v.server.terminal.Scrollback(asked.from, asked.n)
		if _, err := v.conn.Write(encodeHistory(h)); err != nil {
			return false
		}
	}
	if todo.exit == nil {
		return true
	}
	if b, err := jsonMessage(kindExit, todo.exit); err == nil {
		_, _ = v.conn.Write(b) // nothing is left to do about a viewer that is gone
	}
	return false
}

// read serves what the viewer sends until the connection ends or it sends
// what no viewer would.
func (v *viewer) read(in *reader) {
	for {
		k, payload, err := in.next()
		if err != nil || v.serve(k, payload) != nil {
			return
		}
	}
}

func (v *viewer) serve(k kind, payload []byte) error {
	program := v.server.program
	p := &parser{b: payload}
	switch k {
	case kindInput:
		v.tell(func(v *viewer) { v.typed = time.Now() })
		program.Input(slices.Clone(payload))
	case kindPaste:
		v.tell(func(v *viewer) { v.typed = time.Now() })
		if typed := v.server.terminal.Modes().EncodePaste(string(payload)); len(typed) > 0 {
			program.Input(typed)
		}
	case kindResize:
		cols, rows := p.int(maxMessage), p.int(maxMessage)
		if err := p.done(); err != nil {
			return err
		}
		if cols > 0 && rows > 0 {
			program.Resize(cols, rows)
		}
	case kindHistory:
		asked := askedFor{from: p.int(maxHistory), n: p.int(maxHistory)}
		if err := p.done(); err != nil {
			return err
		}
		asked.n = min(asked.n, maxHistoryRows)
		v.tell(func(v *viewer) {
			if len(v.history) >= maxQueued {
				v.history = slices.Delete(v.history, 0, 1)
			}
			v.history = append(v.history, asked)
		})
	case kindSignal:
		name := string(payload)
		if !isSignal(name) {
			return malformed("an unknown signal")
		}
		program.Signal(name)
	case kindSeen:
		v.tell(func(v *viewer) { v.unseen = false })
	case kindHello, kindSnapshot, kindRows, kindCursor, kindMode, kindTitle, kindExit, kindNews, kindRefusal:
		return malformed("a kind that no viewer sends")
	default:
		return malformed("an unknown kind")
	}
	return nil
}
