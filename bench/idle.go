package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"fletch/state"
)

// An idle fleet has idleAgents. It is left alone for settleTime, so that the
// first frames and the measuring of its work are over, and then watched for
// idleTime.
const (
	idleAgents = 20
	settleTime = 8 * time.Second
	idleTime   = 30 * time.Second
)

// idle measures what a fleet costs in which nothing happens, with a dashboard
// open: the CPU time of the hub, the dashboard and everything below them, the
// processes they started, and the bytes that the terminal was sent.
func idle(ctx context.Context, w World) (_ []Row, err error) {
	var made []state.Agent
	defer func() { err = errors.Join(err, w.remove(ctx, made...)) }()
	for range idleAgents {
		a, err := w.shell(ctx, "cat")
		if err != nil {
			return nil, err
		}
		made = append(made, a)
	}
	hub, err := w.Client.Status(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, w.Self)
	cmd.Env = w.Env
	tty, err := onTerminal(cmd)
	if err != nil {
		return nil, err
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	defer func() { _ = tty.Close() }()
	came := make(chan int, 1024)
	go func() {
		defer close(came)
		buf := make([]byte, 64<<10)
		for {
			n, err := tty.Read(buf)
			if err != nil {
				return
			}
			came <- n
		}
	}()
	if _, err := drain(came, settleTime); err != nil {
		return nil, err
	}
	before, err := descendants(hub.PID, cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	sent, err := drain(came, idleTime)
	if err != nil {
		return nil, err
	}
	after, err := descendants(hub.PID, cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	cpu, started := difference(before, after)
	return []Row{
		{Value: 100 * cpu.Seconds() / idleTime.Seconds(), Unit: "% of one core", Budget: "< 1 %"},
		{Name: "idle-spawned", Value: float64(started) / idleTime.Minutes(), Unit: "processes per minute", Budget: "0"},
		{Name: "idle-bytes", Value: float64(sent), Unit: "bytes to the terminal", Budget: "0"},
	}, nil
}

// drain sums what comes within d; a terminal that ends is an error.
func drain(came <-chan int, d time.Duration) (sum int, err error) {
	end := time.After(d)
	for {
		select {
		case n, ok := <-came:
			if !ok {
				return sum, errors.New("the dashboard ended")
			}
			sum += n
		case <-end:
			return sum, nil
		}
	}
}

// difference is the CPU time that processes took between two looks, and how
// many were started. One that began and ended in between shows in its parent,
// which waited for it: every process touches memory, and the parent inherits
// the count. So of those at least one is counted for each parent.
func difference(before, after map[int]procStat) (cpu time.Duration, started int) {
	for pid, now := range after {
		was, known := before[pid]
		if !known {
			started++
		} else if now.childFaults != was.childFaults {
			started++
		}
		cpu += now.cpu - was.cpu
	}
	return cpu, started
}

// descendants reads every process that descends from roots, and them.
func descendants(roots ...int) (map[int]procStat, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	ours := map[int]procStat{}
	for pid := range all {
		for at := pid; at > 1; at = all[at].parent {
			for _, root := range roots {
				if at == root {
					ours[pid] = all[pid]
				}
			}
		}
	}
	for _, root := range roots {
		if _, there := ours[root]; !there {
			return nil, fmt.Errorf("process %d is gone", root)
		}
	}
	return ours, nil
}
