package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// plain makes text of unknown origin fit for a terminal: control and
// invisible characters are shown, not sent.
func plain(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			fmt.Fprintf(&out, "<U+%04X>", r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// cell is plain for one cell of a table: no text makes a row or a column of
// its own.
func cell(text string) string {
	return plain(strings.NewReplacer("\n", " ", "\t", " ").Replace(text))
}

// notIncluded says in words what an agent started without; empty for nothing.
func notIncluded(files int) string {
	switch {
	case files == 1:
		return "1 uncommitted file is"
	case files > 1:
		return fmt.Sprintf("%d uncommitted files are", files)
	}
	return ""
}

// ago says how long ago something was, roughly.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}
