package bubblewrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"fletch/sandbox"
	"fletch/sandbox/box"

	"golang.org/x/sys/unix"
)

// startPatience bounds a start whose context has no end of its own. It is
// long: a loaded machine is no reason to refuse.
const startPatience = 60 * time.Second

// wordPatience bounds how long words are waited for that bwrap or box can have
// said before bwrap ended. Normally the end of their pipes is seen at once.
const wordPatience = 3 * time.Second

// endPatience bounds how long pipes may stay open after the last process.
const endPatience = 10 * time.Second

// streams are the program's, where it has no terminal. A nil one is empty, or
// thrown away.
type streams struct {
	stdin          io.Reader
	stdout, stderr io.Writer
}

// start is one start on its way: what this process holds while the sandbox
// is made.
type start struct {
	engine *Engine
	spec   sandbox.Spec
	hand   *handoff

	cmd    *exec.Cmd
	info   *os.File      // bwrap says here which process is the first inside
	block  *os.File      // and waits here for a byte
	socket *net.UnixConn // to box
	near   *os.File      // the terminal's near end; nil without one
	words  *os.File      // the program's stderr comes out here; nil when nobody copies it
	group  *group        // nil where RLIMIT_NPROC holds
	mark   string        // names this box on the machine
}

// launch starts s and returns once its program runs. On an error nothing of
// it is left, and the program's first instruction never ran.
func (e *Engine) launch(ctx context.Context, s sandbox.Spec, io streams) (*running, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	st := &start{engine: e, spec: s, hand: &handoff{}}
	defer st.hand.close()
	if err := st.prepare(io); err != nil {
		st.abandon()
		return nil, err
	}
	r := &running{cmd: st.cmd, near: st.near, group: st.group, gone: make(chan struct{})}
	if st.words != nil {
		r.copied = copyWords(st.words, io.stderr)
	}
	// A child that bwrap leaves behind holds the other ends, and would be
	// waited for. What was said before is still read.
	r.onEnd = func() {
		_ = st.info.SetReadDeadline(time.Now().Add(wordPatience)) // closed already: fine
		_ = st.socket.SetReadDeadline(time.Now().Add(wordPatience))
	}
	if err := r.run(); err != nil {
		st.hand.close() // the copier's other end is among them
		st.near, st.group, st.words = nil, nil, nil
		st.abandon()
		return nil, errors.Join(e.explain(ctx, st, err), r.Remove())
	}
	st.hand.close()
	stop := context.AfterFunc(ctx, func() {
		r.kill()
		_ = st.info.SetDeadline(time.Unix(1, 0)) // ends the reads
		_ = st.socket.SetDeadline(time.Unix(1, 0))
	})
	err := st.shake(ctx, r, stop)
	stop()
	st.info.Close()       // only read
	st.block.Close()      // bwrap went on, or is killed
	_ = st.socket.Close() // box has become the program, or is killed
	if err != nil {
		removed := r.Remove() // and with it bwrap's last words are complete
		return nil, errors.Join(e.explain(ctx, st, err), removed)
	}
	return r, nil
}

// abandon lets go of what a start that never ran holds.
func (st *start) abandon() {
	for _, f := range []*os.File{st.info, st.block, st.near, st.words} {
		if f != nil {
			f.Close() // nothing was written
		}
	}
	if st.socket != nil {
		_ = st.socket.Close() // nothing was written
	}
	if st.group != nil {
		_ = st.group.remove(context.Background()) // nothing ran in it
	}
}

// prepare makes all that bwrap and box are to know. Both get it over
// descriptors; argv holds only their numbers.
func (st *start) prepare(io streams) error {
	for _, f := range st.spec.Keep { // these become 3, 4, …
		st.hand.lend(f)
	}
	bwrap, err := st.engine.find()
	if err != nil {
		return err
	}
	st.cmd = &exec.Cmd{
		Path: bwrap, Dir: "/", WaitDelay: endPatience,
		// bwrap runs outside. What an agent's environment says, LD_PRELOAD
		// above all, is for the inside only: box gets it another way.
		Env: []string{},
		// A session of its own: no key in a terminal of fletch's reaches it.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		Stderr:      &sandbox.Tail{},
	}
	config := box.Config{
		Argv: st.spec.Argv, Env: st.spec.Env, Dir: st.spec.Dir, Keep: len(st.spec.Keep),
		Listen: st.spec.Network != sandbox.NetworkNone, Terminal: st.spec.Terminal != nil, Limits: st.spec.Limits.Or(),
	}
	if config.Stderr, err = st.streams(io); err != nil {
		return err
	}
	if st.mark, err = newMark(st.spec); err != nil {
		return err
	}
	if err := st.bound(&config); err != nil {
		return err
	}
	args, err := st.connect()
	if err != nil {
		return err
	}
	v, err := st.engine.build(st.spec, st.hand)
	if err != nil {
		return err
	}
	config.Places, config.Write = v.places(), v.write
	order, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("making the box's order: %w", err)
	}
	orderFD, err := st.hand.data("fletch-box", order)
	if err != nil {
		return err
	}
	argsFD, err := st.hand.data("bwrap-args", nulSeparated(append(args.bwrap, v.args...)))
	if err != nil {
		return err
	}
	st.cmd.Args = append([]string{"bwrap", "--args", strconv.Itoa(argsFD), "--", insideBox, "box", strconv.Itoa(args.socket), strconv.Itoa(orderFD), st.mark}, st.engine.testOnlyBoxArgs...)
	st.cmd.ExtraFiles = st.hand.files
	return nil
}

// streams gives the program its input and output, and tells which descriptor
// becomes its stderr: the first one it has is bwrap's, for bwrap's own words.
func (st *start) streams(io streams) (int, error) {
	if t := st.spec.Terminal; t != nil {
		near, far, err := openTerminal(*t)
		if err != nil {
			return 0, err
		}
		st.near = near
		st.hand.hold(far)
		st.cmd.Stdin, st.cmd.Stdout = far, far
		return 1, nil
	}
	st.cmd.Stdin, st.cmd.Stdout = io.stdin, io.stdout
	switch to := io.stderr.(type) {
	case nil:
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return 0, err
		}
		return st.hand.give(null), nil
	case *os.File:
		return st.hand.lend(to), nil
	default:
		read, write, err := os.Pipe()
		if err != nil {
			return 0, err
		}
		st.words = read
		return st.hand.give(write), nil
	}
}

// bound decides what holds the number of processes and the memory. To root,
// RLIMIT_NPROC means nothing: there a control group must do it.
func (st *start) bound(config *box.Config) error {
	config.CountProcesses, config.BoundMemory = true, st.spec.Limits.Memory > 0
	if !needsGroup() {
		return nil
	}
	group, err := newGroup(st.spec, st.mark)
	if err != nil {
		return err
	}
	st.group = group
	config.CountProcesses = false
	config.BoundMemory = config.BoundMemory && !group.memory
	return nil
}

// channels are bwrap's options and box's argument that need descriptors.
type channels struct {
	bwrap  []string
	socket int
}

func (st *start) connect() (channels, error) {
	var c channels
	infoRead, infoWrite, err := os.Pipe()
	if err != nil {
		return c, err
	}
	st.info = infoRead
	info := st.hand.give(infoWrite)
	blockRead, blockWrite, err := os.Pipe()
	if err != nil {
		return c, err
	}
	st.block = blockWrite
	block := st.hand.give(blockRead)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return c, err
	}
	c.socket = st.hand.give(os.NewFile(uintptr(pair[1]), "box"))
	ours := os.NewFile(uintptr(pair[0]), "engine")
	defer ours.Close() // FileConn has its own copy
	// The kernel then says with each message who sent it.
	if err := unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		return c, err
	}
	conn, err := net.FileConn(ours)
	if err != nil {
		return c, err
	}
	st.socket = conn.(*net.UnixConn) // a socket of AF_UNIX gives nothing else
	c.bwrap = []string{
		"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--cap-drop", "ALL", "--hostname", hostName,
		"--uid", strconv.Itoa(os.Getuid()), "--gid", strconv.Itoa(os.Getgid()),
		"--info-fd", strconv.Itoa(info), "--block-fd", strconv.Itoa(block),
	}
	return c, nil
}

func nulSeparated(args []string) []byte {
	var out []byte
	for _, a := range args {
		out = append(append(out, a...), 0)
	}
	return out
}

// copyWords carries what the program writes to stderr until its last process
// is gone. The channel closes then.
func copyWords(from *os.File, to io.Writer) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer from.Close() // only read
		if _, err := io.Copy(to, from); err != nil {
			_, _ = io.Copy(io.Discard, from) // the reader is at fault, not the program
		}
	}()
	return done
}
