package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"fletch/agents/attach"
	"fletch/agents/term"
	"fletch/home"
	"fletch/hub/client"
	"fletch/hub/wire"
	"fletch/state"
)

// longestLine bounds one line of an agent's output while it is made plain; a
// longer one is printed in pieces.
const longestLine = 64 << 10

func (a *app) logsCommand() *cobra.Command {
	var raw, text, screen, further bool
	c := &cobra.Command{Use: "logs AGENT", Short: "what an agent printed", Args: exactly(1, "AGENT"), RunE: func(c *cobra.Command, args []string) error {
		if raw && text || raw && screen || text && screen || screen && further {
			return usage("fletch logs AGENT [-f] --raw|--text, or --screen", "--raw, --text and --screen exclude each other")
		}
		return a.withAgent(c.Context(), args[0], func(hub *client.Client, _ state.Fleet, g state.Agent) error {
			h, err := openHome()
			if err != nil {
				return err
			}
			if screen {
				return a.screen(c.Context(), h, g)
			}
			return a.transcript(c.Context(), h, hub, g, raw, further)
		})
	}}
	c.Flags().BoolVar(&raw, "raw", false, "the bytes as they came; not to a terminal")
	c.Flags().BoolVar(&text, "text", false, "plain text (the default)")
	c.Flags().BoolVar(&screen, "screen", false, "its screen as it is now")
	c.Flags().BoolVarP(&further, "follow", "f", false, "go on until the agent ends")
	return c
}

// transcript prints what is kept of an agent's output.
func (a *app) transcript(ctx context.Context, h home.Home, hub *client.Client, g state.Agent, raw, further bool) (err error) {
	if raw && isTerminal(a.out) {
		return wire.Errorf("not-a-terminal", "fletch logs --raw "+g.Name+" > FILE", "an agent's raw output could take over your terminal")
	}
	out := a.out
	if !raw {
		lines := &plainLines{out: a.out}
		defer func() { err = errors.Join(err, lines.flush()) }()
		out = lines
	}
	dir := h.Run(string(g.ID))
	if err := copyFile(out, filepath.Join(dir, "transcript.1")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	newest := &growing{path: filepath.Join(dir, "transcript")}
	defer newest.close()
	if err := newest.copy(out); err != nil || !further || !g.Status.Live() {
		return err
	}
	return tail(ctx, hub, g.ID, out, newest)
}

// tail goes on printing a transcript until its agent has ended.
func tail(ctx context.Context, hub *client.Client, id state.AgentID, out io.Writer, newest *growing) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := follow(ctx, hub, id, func(now state.Agent) bool { return !now.Status.Live() })
		ended <- err
	}()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return errors.Join(err, newest.copy(out))
		case <-look.C:
			if err := newest.copy(out); err != nil {
				return errors.Join(err, await(cancel, ended))
			}
		}
	}
}

// await ends a watch and waits until it is over; that it was ended is no
// fault.
func await(cancel context.CancelFunc, ended <-chan error) error {
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// growing reads a file that a keeper appends to, moves away when it is full
// and begins anew.
type growing struct {
	path string
	file *os.File
}

// copy prints what has come since the last time; a file that is not there yet
// has nothing.
func (g *growing) copy(out io.Writer) error {
	if g.file == nil {
		file, err := os.Open(g.path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the transcript: %w", err)
		}
		g.file = file
	}
	moved := g.moved() // asked first: what is read then is all of the old file
	if _, err := io.Copy(out, g.file); err != nil {
		return fmt.Errorf("printing the transcript: %w", err)
	}
	if !moved {
		return nil
	}
	g.close()
	return g.copy(out)
}

// moved reports whether another file has taken this one's place.
func (g *growing) moved() bool {
	there, err1 := os.Stat(g.path)
	here, err2 := g.file.Stat()
	return err1 == nil && err2 == nil && !os.SameFile(there, here)
}

func (g *growing) close() {
	if g.file != nil {
		_ = g.file.Close()
		g.file = nil
	}
}

func copyFile(out io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = io.Copy(out, file)
	return err
}

// plainLines turns terminal output into lines without control sequences.
type plainLines struct {
	out  io.Writer
	part []byte
}

func (l *plainLines) Write(p []byte) (int, error) {
	l.part = append(l.part, p...)
	rest := l.part
	for {
		end := bytes.IndexByte(rest, '\n')
		next := end + 1
		if end < 0 {
			if len(rest) < longestLine {
				break
			}
			end, next = longestLine, longestLine
		}
		if err := l.print(rest[:end]); err != nil {
			return 0, err
		}
		rest = rest[next:]
	}
	l.part = append(l.part[:0], rest...)
	return len(p), nil
}

func (l *plainLines) print(line []byte) error {
	_, err := fmt.Fprintln(l.out, plain(strings.TrimRight(ansi.Strip(string(line)), "\r")))
	return err
}

// flush prints a last line that has no end.
func (l *plainLines) flush() error {
	if len(l.part) == 0 {
		return nil
	}
	return l.print(l.part)
}

// screen prints an agent's screen as it is, or as it was when it ended.
func (a *app) screen(ctx context.Context, h home.Home, g state.Agent) error {
	frame, err := attach.ReadFrame(filepath.Join(h.Run(string(g.ID)), "last.frame"))
	if g.Status.Live() {
		frame, err = a.liveFrame(ctx, h, g)
	}
	if err != nil {
		return fmt.Errorf("reading the screen of %s: %w", g.Name, err)
	}
	out := bufio.NewWriter(a.out)
	for _, line := range frame.Changed {
		var text strings.Builder
		for _, cell := range line.Cells {
			switch {
			case cell.Width == 0:
			case cell.Text == "":
				text.WriteByte(' ')
			default:
				text.WriteString(cell.Text)
			}
		}
		fmt.Fprintln(out, plain(strings.TrimRight(text.String(), " ")))
	}
	return out.Flush()
}

func (a *app) liveFrame(ctx context.Context, h home.Home, g state.Agent) (term.Frame, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := attach.Dial(ctx, h.KeeperSocket(string(g.ID)), attach.Hello{Protocol: attach.Protocol, Role: attach.RoleViewer})
	if err != nil {
		return term.Frame{}, err
	}
	defer func() { _ = conn.Close() }()
	for {
		message, err := conn.Next(ctx)
		if err != nil {
			return term.Frame{}, err
		}
		if frame, ok := message.(attach.FrameMsg); ok && frame.Frame.Whole {
			return frame.Frame, nil
		}
	}
}

func isTerminal(w any) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
