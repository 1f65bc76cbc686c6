package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"fletch/agents/attach"
	"fletch/agents/term"
	"fletch/hub/client"
	"fletch/hub/wire"
	"fletch/state"
)

// maxSent bounds what one send types.
const maxSent = 1 << 20

func (a *app) sendCommand() *cobra.Command {
	var quiet bool
	var keys []string
	c := &cobra.Command{Use: "send AGENT TEXT|-", Short: "type to an agent and press enter", RunE: func(c *cobra.Command, args []string) error {
		if len(args) < 1 || len(args) > 2 || len(args) == 1 && len(keys) == 0 {
			return usage("fletch send AGENT TEXT, or fletch send AGENT --key ctrl-c", "nothing to send")
		}
		text := ""
		if len(args) == 2 {
			text = args[1]
		}
		if text == "-" {
			raw, err := io.ReadAll(io.LimitReader(a.in, maxSent+1))
			if err != nil {
				return fmt.Errorf("reading what to send: %w", err)
			}
			text = strings.TrimSuffix(string(raw), "\n")
		}
		if len(text) > maxSent {
			return usage("put it into a file of the repository", "the text has more than %d bytes", maxSent)
		}
		pressed, err := parseKeys(keys)
		if err != nil {
			return err
		}
		return a.withAgent(c.Context(), args[0], func(_ *client.Client, _ state.Fleet, g state.Agent) error {
			return a.send(c.Context(), g, text, pressed, !quiet && text != "")
		})
	}}
	c.Flags().BoolVar(&quiet, "no-enter", false, "do not press enter")
	c.Flags().StringArrayVar(&keys, "key", nil, "press a key: enter, esc, tab, up, ctrl-c …; after the text")
	return c
}

// send types to the keeper: text as one paste, then keys. It waits for a
// frame first, since the modes in it say how keys are written.
func (a *app) send(ctx context.Context, g state.Agent, text string, keys []term.Key, enter bool) error {
	if !g.Status.Live() {
		return wire.Errorf("not-running", "fletch resume "+g.Name, "%s is %s", g.Name, g.Status)
	}
	h, err := openHome()
	if err != nil {
		return err
	}
	conn, err := attach.Dial(ctx, h.KeeperSocket(string(g.ID)), attach.Hello{Protocol: attach.Protocol, Role: attach.RoleViewer})
	if err != nil {
		return fmt.Errorf("reaching %s: %w", g.Name, err)
	}
	defer func() { _ = conn.Close() }()
	var modes term.Modes
	for known := false; !known; {
		message, err := conn.Next(ctx)
		if err != nil {
			return fmt.Errorf("reaching %s: %w", g.Name, err)
		}
		var frame attach.FrameMsg
		if frame, known = message.(attach.FrameMsg); known {
			modes = frame.Frame.Modes
		}
	}
	if text != "" {
		if err := conn.Paste(text); err != nil {
			return fmt.Errorf("typing to %s: %w", g.Name, err)
		}
	}
	if enter {
		keys = append([]term.Key{{Code: term.Enter}}, keys...)
	}
	for _, k := range keys {
		if err := conn.Input(modes.EncodeKey(k)); err != nil {
			return fmt.Errorf("typing to %s: %w", g.Name, err)
		}
	}
	return nil
}

var namedKeys = map[string]rune{
	"enter": term.Enter, "esc": term.Escape, "tab": term.Tab, "space": term.Space, "backspace": term.Backspace, "delete": term.Delete,
	"up": term.Up, "down": term.Down, "left": term.Left, "right": term.Right,
	"home": term.Home, "end": term.End, "pgup": term.PgUp, "pgdn": term.PgDn,
}

// parseKeys reads key names like "ctrl-c", "up" and "alt-x".
func parseKeys(names []string) ([]term.Key, error) {
	var keys []term.Key
	for _, name := range names {
		k, rest := modifiers(strings.ToLower(name))
		code, named := namedKeys[rest]
		if runes := []rune(rest); !named && len(runes) == 1 {
			code, named = runes[0], true
			if !k.Ctrl {
				k.Text = rest
			}
		}
		if !named {
			return nil, usage("enter, esc, tab, space, up, down, left, right, home, end, pgup, pgdn, backspace, delete, ctrl-X, alt-X", "there is no key %q", name)
		}
		k.Code = code
		keys = append(keys, k)
	}
	return keys, nil
}

// modifiers takes ctrl-, alt- and shift- off the front of a key's name.
func modifiers(name string) (k term.Key, rest string) {
	for {
		word, after, ok := strings.Cut(name, "-")
		if !ok || after == "" {
			return k, name
		}
		switch word {
		case "ctrl":
			k.Ctrl = true
		case "alt":
			k.Alt = true
		case "shift":
			k.Shift = true
		default:
			return k, name
		}
		name = after
	}
}
