package cli

import (
	"os"
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
			out.WriteString("<U+" + strings.ToUpper(pad4(r)) + ">")
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func pad4(r rune) string {
	const digits = "0123456789abcdef"
	var out []byte
	for shift := 20; shift >= 0; shift -= 4 {
		if d := (r >> shift) & 0xf; d != 0 || len(out) > 0 || shift < 16 {
			out = append(out, digits[d])
		}
	}
	return string(out)
}

// idleTime lets tests and cautious people choose when an idle hub ends.
func idleTime() time.Duration {
	d, err := time.ParseDuration(os.Getenv("FLETCH_HUB_IDLE"))
	if err != nil || d <= 0 {
		return 0
	}
	return d
}
