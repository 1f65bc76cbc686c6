package gitops

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// remembered is fletch's own file of credentials, in the form that git's
// store helper reads. It is asked after the user's own helpers.
func remembered(home string) string { return filepath.Join(home, "credentials") }

// Remember keeps a user name and a token for the host of remote in
// FLETCH_HOME, mode 0600; an earlier entry for that host is replaced.
func Remember(home, remote, user, token string) error {
	u, err := url.Parse(remote)
	if err != nil {
		return fmt.Errorf("remembering credentials: %w", err)
	}
	entry := (&url.URL{Scheme: u.Scheme, Host: u.Host, User: url.UserPassword(user, token)}).String()
	return rewrite(home, u.Host, entry+"\n")
}

// Forget drops what Remember keeps for the host of remote.
func Forget(home, remote string) error {
	u, err := url.Parse(remote)
	if err != nil {
		return fmt.Errorf("forgetting credentials: %w", err)
	}
	return rewrite(home, u.Host, "")
}

func rewrite(home, host, entry string) error {
	old, err := os.ReadFile(remembered(home))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading credentials: %w", err)
	}
	var kept bytes.Buffer
	for line := range strings.Lines(string(old)) {
		if u, err := url.Parse(strings.TrimSpace(line)); err == nil && u.Host != host {
			kept.WriteString(line)
		}
	}
	kept.WriteString(entry)
	next := remembered(home) + ".new"
	if err := os.WriteFile(next, kept.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing credentials: %w", err)
	}
	if err := os.Rename(next, remembered(home)); err != nil {
		return fmt.Errorf("writing credentials: %w", err)
	}
	return nil
}

// lastHelper is the setting that has git ask fletch's own file last.
func (g Git) lastHelper() [][2]string {
	file := remembered(g.Home.Dir())
	if _, err := os.Lstat(file); err != nil {
		return nil
	}
	return [][2]string{{"credential.helper", "store --file=" + "'" + strings.ReplaceAll(file, "'", `'\''`) + "'"}}
}
