package bubblewrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fletch/sandbox"
	"fletch/sandbox/box"

	"golang.org/x/sys/unix"
)

// errNoWord is a sandbox that ended before it said anything.
var errNoWord = errors.New("it ended before it was ready")

// stepError is a step of box that failed.
type stepError struct{ report box.Report }

func (e *stepError) Error() string { return e.report.Err().Error() }

// shake brings a start to its end together with bwrap and box. The program
// does not run before box gets its word, and from there on the context cannot
// end the start any more: an error always means that nothing ran.
func (st *start) shake(ctx context.Context, r *running, unbind func() bool) error {
	said, err := readInfo(st.info)
	if err != nil {
		return fmt.Errorf("making the sandbox: %w", err)
	}
	if err := r.knowInit(said.Child); err != nil {
		return err
	}
	if st.group != nil {
		if err := st.group.enter(said.Child); err != nil {
			return err
		}
	}
	if _, err := st.block.Write([]byte{box.Go}); err != nil {
		return fmt.Errorf("making the sandbox: %w", errNoWord)
	}
	report, err := st.receive(r)
	if err != nil {
		return err
	}
	if st.spec.Network != sandbox.NetworkNone && r.listener == nil {
		return errors.New("sealing: the listening socket did not come")
	}
	facts, err := st.observe(r, said, report)
	if err != nil {
		return fmt.Errorf("checking the seal from outside: %w", err)
	}
	r.facts = facts
	if !unbind() {
		return ctx.Err()
	}
	if _, err := st.socket.Write([]byte{box.Go}); err != nil {
		return fmt.Errorf("sealing: %w", errNoWord)
	}
	return st.settled()
}

// settled waits until box has become the program, or says why it could not.
func (st *start) settled() error {
	// exec closes the other end; a last report is its failure.
	last := make([]byte, box.MaxReport)
	n, err := st.socket.Read(last)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// bwrap ended a good while ago. Whatever was said is there by now.
		_ = st.socket.SetReadDeadline(time.Now().Add(time.Second))
		n, err = st.socket.Read(last)
	}
	if errors.Is(err, io.EOF) || err == nil && n == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sealing: %w", err)
	}
	return failure(last[:n])
}

// info is what bwrap says of the sandbox: its first process as counted
// outside, and its namespaces.
type info struct {
	Child  int    `json:"child-pid"`
	IPC    uint64 `json:"ipc-namespace"`
	Mount  uint64 `json:"mnt-namespace"`
	Net    uint64 `json:"net-namespace"`
	PID    uint64 `json:"pid-namespace"`
	UTS    uint64 `json:"uts-namespace"`
	Cgroup uint64 `json:"cgroup-namespace"`
}

func readInfo(f *os.File) (info, error) {
	var said info
	err := json.NewDecoder(io.LimitReader(f, box.MaxReport)).Decode(&said)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded) {
		err = errNoWord
	}
	if err == nil && said.Child <= 1 {
		err = fmt.Errorf("bubblewrap says its child is %d", said.Child)
	}
	return said, err
}

// receive takes box's report and the listening socket that comes with it. The
// kernel says which process sent it: that is the program to be.
func (st *start) receive(r *running) (box.Report, error) {
	var report box.Report
	raw, rights := make([]byte, box.MaxReport), make([]byte, 512)
	n, rn, flags, _, err := st.socket.ReadMsgUnix(raw, rights)
	if err != nil || n == 0 {
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, os.ErrDeadlineExceeded) {
			err = errNoWord
		}
		return report, fmt.Errorf("sealing: %w", err)
	}
	// A box that reports a failure ends at once, so it may be gone before it
	// can be looked up: what it said counts first.
	unsigned := st.takeRights(r, rights[:rn])
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		return report, errors.New("sealing: the report is cut short")
	}
	if err := json.Unmarshal(raw[:n], &report); err != nil {
		return report, fmt.Errorf("sealing: %w", err)
	}
	if report.Step != "" {
		return report, &stepError{report}
	}
	if unsigned != nil {
		return report, fmt.Errorf("sealing: %w", unsigned)
	}
	if report.Listen != (r.listener != nil) {
		return report, errors.New("sealing: the report and what came with it differ")
	}
	return report, nil
}

func failure(raw []byte) error {
	var report box.Report
	if err := json.Unmarshal(raw, &report); err != nil {
		return fmt.Errorf("sealing: %w", err)
	}
	if report.Step == "" {
		return errors.New("sealing: an unexpected report")
	}
	return &stepError{report}
}

func (st *start) takeRights(r *running, raw []byte) error {
	messages, err := unix.ParseSocketControlMessage(raw)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if cred, err := unix.ParseUnixCredentials(&m); err == nil {
			if err := r.knowProgram(int(cred.Pid)); err != nil {
				return err
			}
			continue
		}
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			file := os.NewFile(uintptr(fd), "listener")
			if r.listener == nil {
				r.listener, err = net.FileListener(file)
			}
			file.Close() // the listener has its own copy
			if err != nil {
				return err
			}
		}
	}
	if r.pid <= 1 {
		return errors.New("nobody signed the report")
	}
	return nil
}

// observe compares what /proc says of the sealed process, from outside, with
// what was asked for, while it waits for its word.
func (st *start) observe(r *running, said info, report box.Report) ([]sandbox.Fact, error) {
	status, err := threadStatus(r.pid, report.TID)
	if err != nil {
		return nil, err
	}
	for name, want := range map[string]string{
		"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000",
		"CapBnd": "0000000000000000", "CapAmb": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2",
	} {
		if status[name] != want {
			return nil, fmt.Errorf("%s is %q, not %q", name, status[name], want)
		}
	}
	if got := len(strings.Fields(status["NSpid"])); got < 2 {
		return nil, errors.New("it has no process ids of its own")
	}
	if err := said.apart(); err != nil {
		return nil, err
	}
	limits := st.spec.Limits.Or()
	held := fmt.Sprintf("%d by RLIMIT_NPROC", limits.PIDs)
	if st.group != nil {
		if err := st.group.holds(r.pid); err != nil {
			return nil, err
		}
		held = fmt.Sprintf("%d by a control group", limits.PIDs)
	}
	facts := []sandbox.Fact{
		{Name: "capabilities", Value: "none", Known: "observed"},
		{Name: "no-new-privileges", Value: "yes", Known: "observed"},
		{Name: "system-call-filter", Value: report.Filter[:min(12, len(report.Filter))], Known: "observed"},
		{Name: "landlock", Value: fmt.Sprintf("version %d", report.Landlock), Known: "reported"},
		{Name: "namespaces", Value: "user, mount, pid, network, ipc, uts", Known: "observed"},
		{Name: "processes", Value: held, Known: "observed"},
		{Name: "open-files", Value: strconv.Itoa(limits.Files), Known: "reported"},
		{Name: "temporary-files", Value: fmt.Sprintf("%d bytes", limits.TmpBytes), Known: "reported"},
		{Name: "network", Value: networkFact(st.spec.Network), Known: "reported"},
	}
	if limits.Memory > 0 {
		how := "for each process, by RLIMIT_DATA"
		if st.group != nil && st.group.memory {
			how = "for all together, by a control group"
		}
		facts = append(facts, sandbox.Fact{Name: "memory", Value: fmt.Sprintf("%d bytes %s", limits.Memory, how), Known: "reported"})
	}
	return facts, nil
}

func networkFact(n sandbox.Network) string {
	if n == sandbox.NetworkNone {
		return "private, with nothing in it"
	}
	return "private, with one listening socket for the proxy"
}

// apart makes sure that no namespace is this process's own.
func (said info) apart() error {
	for name, inside := range map[string]uint64{"ipc": said.IPC, "mnt": said.Mount, "net": said.Net, "pid": said.PID, "uts": said.UTS} {
		var own unix.Stat_t
		if err := unix.Stat("/proc/self/ns/"+name, &own); err != nil {
			return err
		}
		if inside == 0 || inside == own.Ino {
			return fmt.Errorf("its %s namespace is not private", name)
		}
	}
	return nil
}

// threadStatus reads the status of the thread of pid that counts as tid
// inside: it is the one that becomes the program.
func threadStatus(pid, tid int) (map[string]string, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that ended
		}
		status := map[string]string{}
		for line := range strings.Lines(string(raw)) {
			name, value, _ := strings.Cut(line, ":")
			status[name] = strings.TrimSpace(value)
		}
		ids := strings.Fields(status["NSpid"])
		if len(ids) > 0 && ids[len(ids)-1] == strconv.Itoa(tid) {
			return status, nil
		}
	}
	return nil, errors.New("the sealed thread is not there")
}
