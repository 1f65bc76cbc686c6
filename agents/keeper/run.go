package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"fletch/agents/attach"
	"fletch/agents/term"
	"fletch/home"
	"fletch/sandbox"
	"fletch/sandbox/egress"
)

const (
	// stopPatience is how long a program may take to end after TERM.
	stopPatience = 5 * time.Second
	// killPatience is how long a killed program may take to be gone before
	// everything in its sandbox is taken down.
	killPatience = 2 * time.Second
	// drainPatience is how long the end of the output may take to arrive once
	// the program is gone.
	drainPatience = 5 * time.Second
)

// keeper is what the goroutines of one Run share.
type keeper struct {
	order    Order
	home     home.Home
	dir      string // run/<agent>
	log      *slog.Logger
	box      sandbox.Box
	near     *near
	terminal *term.Terminal
	server   *attach.Server
	status   *tracker
	record   *transcript
	audit    *audit
	typed    *queue
	ended    chan struct{} // closed when the program is gone

	sizing sync.Mutex
	size   sandbox.Size

	stopping sync.Once
	stop     chan struct{} // closed when somebody wants the agent to end
	killing  sync.Once
	kill     chan struct{} // closed when it shall end at once
}

// Run starts the agent that order describes in engine and keeps it until its
// program ends; ending ctx stops it. ready is called once the agent runs and
// can be attached to. An error says that it never ran.
//
// How the program ended is left in run/<agent>/exit.json and told to every
// viewer.
func Run(ctx context.Context, order Order, engine sandbox.Engine, ready func()) error {
	if err := order.check(); err != nil {
		return fmt.Errorf("checking the order: %w", err)
	}
	h, err := home.Open(order.Home, order.RuntimeDir)
	if err != nil {
		return err
	}
	dir := h.Run(order.Agent)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the agent's run directory: %w", err)
	}
	unlock, err := lock(filepath.Join(dir, "keeper.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	logFile, err := openRotated(filepath.Join(dir, "keeper.log"), logSize, logFiles)
	if err != nil {
		return fmt.Errorf("opening the keeper's log: %w", err)
	}
	defer logFile.close()
	crashOutput(h.RunRoot(), "keeper-"+order.Agent)
	k := &keeper{
		order: order, home: h, dir: dir, log: newLog(logFile), typed: newQueue(),
		ended: make(chan struct{}), stop: make(chan struct{}), kill: make(chan struct{}),
	}
	if err := k.keep(ctx, engine, ready); err != nil {
		k.log.Error("the agent did not start", "err", err)
		return err
	}
	return nil
}

func (k *keeper) keep(ctx context.Context, engine sandbox.Engine, ready func()) error {
	rules, err := egress.Parse(k.order.Rules)
	if err != nil {
		return fmt.Errorf("reading the network rules: %w", err)
	}
	if err := k.clear(); err != nil {
		return err
	}
	if k.record, err = openTranscript(filepath.Join(k.dir, "transcript"), k.order.TranscriptCap); err != nil {
		return fmt.Errorf("opening the transcript: %w", err)
	}
	defer k.record.close()
	if k.audit, err = openAudit(k.home.Audit(k.order.Agent)); err != nil {
		return fmt.Errorf("opening the audit log: %w", err)
	}
	defer k.audit.close()
	if err := writeJSON(filepath.Join(k.dir, "spec.json"), withoutValues(k.order.Spec)); err != nil {
		return err
	}
	listener, err := k.listen()
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	k.size.Cols, k.size.Rows = term.ClampSize(k.order.Spec.Terminal.Cols, k.order.Spec.Terminal.Rows)
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	spec := k.order.Spec
	spec.Terminal = &sandbox.Size{Cols: k.size.Cols, Rows: k.size.Rows}
	k.box, err = engine.Start(starting, spec)
	if err != nil {
		k.writeExit(attach.Exit{Code: codeNeverRan, Reason: oneLine(err.Error()), At: now()})
		return err
	}
	k.near, err = openNear(k.box.Attach())
	if err != nil {
		return errors.Join(err, k.box.Remove())
	}
	k.run(ctx, listener, rules, ready)
	return nil
}

// run keeps a started agent until it has ended.
func (k *keeper) run(ctx context.Context, listener net.Listener, rules egress.Rules, ready func()) {
	k.log.Info("the agent runs", "pid", k.box.PID(), "engine", k.order.Engine)
	k.terminal = term.New(k.size.Cols, k.size.Rows, k.order.History)
	k.server = attach.NewServer(k.terminal, k)
	k.status = newTracker(k.order.Status, func() bool { return k.near.foreground(k.box.PID()) }, func(status, text string) {
		k.publish(attach.News{Kind: attach.NewsStatus, Status: status, Text: text})
	})
	k.tellStart()

	serving, cancel := context.WithCancel(context.Background())
	var services sync.WaitGroup
	services.Go(func() {
		if err := k.server.Serve(serving, listener); err != nil {
			k.log.Error("serving viewers", "err", err)
		}
	})
	if l := k.box.Listener(); l != nil {
		proxy := egress.New(rules, k.noteConnection)
		services.Go(func() {
			if err := proxy.Serve(serving, l); err != nil {
				k.log.Error("serving the network", "err", err)
			}
		})
	}
	services.Go(k.feed)
	services.Go(k.forward)
	services.Go(k.hear)
	services.Go(func() { k.supervise(ctx) })
	drained := make(chan struct{})
	services.Go(func() {
		k.listenToProgram()
		close(drained)
	})
	ready()

	exit := k.box.Wait()
	close(k.ended)
	k.drain(drained)
	if err := k.box.Remove(); err != nil {
		k.log.Error("taking the sandbox down", "err", err)
	}
	k.near.close()
	<-drained
	k.finish(exit)
	cancel()
	k.typed.close()
	services.Wait()
}

// finish leaves behind how it ended, and only then tells anybody.
func (k *keeper) finish(exit sandbox.Exit) {
	end := attach.Exit{Code: exit.Code, Signal: exit.Signal, At: now()}
	select {
	case <-k.stop:
		end.Reason = "stopped"
	default:
		if exit.Err != nil {
			end.Reason = oneLine(exit.Err.Error())
		}
	}
	k.status.close()
	_ = k.terminal.Close() // it has no errors
	if err := k.record.sync(); err != nil {
		k.log.Error("keeping the transcript", "err", err)
	}
	if err := attach.WriteFrame(filepath.Join(k.dir, "last.frame"), k.terminal.Snapshot()); err != nil {
		k.log.Error("keeping the last screen", "err", err)
	}
	k.writeExit(end)
	k.log.Info("the agent ended", "code", end.Code, "signal", end.Signal, "reason", end.Reason, "given up", k.terminal.Stats())
	k.server.Farewell(end)
}

// drain waits until all of the output has been read. What the program left
// open in its terminal cannot hold it up for long.
func (k *keeper) drain(drained <-chan struct{}) {
	timer := time.NewTimer(drainPatience)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
		k.log.Warn("the terminal was still open after the end of the program")
	}
}

// supervise ends the program when somebody wants that.
func (k *keeper) supervise(ctx context.Context) {
	select {
	case <-ctx.Done():
		k.stopping.Do(func() { close(k.stop) })
	case <-k.stop:
	case <-k.ended:
		return
	}
	k.log.Info("stopping the agent")
	k.signal(syscall.SIGTERM)
	if k.order.Status.Shell {
		k.signal(syscall.SIGHUP) // interactive shells ignore TERM
	}
	if k.gone(stopPatience, k.kill) {
		return
	}
	k.log.Info("killing the agent")
	k.signal(os.Kill)
	if k.gone(killPatience, nil) {
		return
	}
	if err := k.box.Remove(); err != nil {
		k.log.Error("taking the sandbox down", "err", err)
	}
}

// gone waits for the end of the program, for patience or until hurry is
// closed, and reports whether it came.
func (k *keeper) gone(patience time.Duration, hurry <-chan struct{}) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-k.ended:
		return true
	case <-timer.C:
	case <-hurry:
	}
	return false
}

func (k *keeper) signal(sig os.Signal) {
	if err := k.box.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		k.log.Warn("signalling the agent", "signal", sig.String(), "err", err)
	}
}

// Input is typed to the program; it is part of attach.Program.
func (k *keeper) Input(p []byte) {
	k.status.input(p)
	if !k.typed.put(p) {
		k.log.Warn("the agent does not read what is typed", "dropped bytes", len(p))
	}
}

// Resize gives the terminal and the program another size.
func (k *keeper) Resize(cols, rows int) {
	cols, rows = term.ClampSize(cols, rows)
	k.sizing.Lock()
	defer k.sizing.Unlock()
	size := sandbox.Size{Cols: cols, Rows: rows}
	if size == k.size {
		return
	}
	k.status.redrawn()
	// The screen first: what the program draws for its new size must find it.
	k.terminal.Resize(cols, rows)
	if err := k.near.resize(func() error { return k.box.Resize(size) }); err != nil {
		k.log.Warn("resizing the agent's terminal", "err", err)
		return
	}
	k.size = size
}

// Signal is what a viewer asks for: TERM and KILL stop the agent, INT is for
// its program.
func (k *keeper) Signal(name string) {
	switch name {
	case "INT":
		k.signal(os.Interrupt)
	case "KILL":
		k.killing.Do(func() { close(k.kill) })
		k.stopping.Do(func() { close(k.stop) })
	case "TERM":
		k.stopping.Do(func() { close(k.stop) })
	}
}

func (k *keeper) publish(n attach.News) {
	n.At = now()
	k.server.Publish(n)
}

// tellStart publishes what is known from the start.
func (k *keeper) tellStart() {
	k.publish(attach.News{Kind: attach.NewsStarted, PID: k.box.PID()})
	attestation := k.box.Attestation()
	n := attach.News{Kind: attach.NewsAttested}
	for _, f := range attestation.Facts {
		n.Facts = append(n.Facts, attach.Fact(f))
	}
	k.publish(n)
	if err := writeJSON(filepath.Join(k.dir, "attestation.json"), attestation); err != nil {
		k.log.Error("keeping the attestation", "err", err)
	}
	k.status.start()
}

func now() time.Time { return time.Now().UTC() }
