// Package inside carries the small programs that are put, read-only, into an
// agent's sandbox: they make an ordinary git push a request to fletch. They
// are POSIX sh and need git and coreutils (or busybox) only.
//
// Inside they find FLETCH_MAILBOX (the directory with requests and responses)
// and FLETCH_BRANCH (the branch this agent may push to, without refs/heads/).
// The workspace's remote is fletch::URL, its remote.origin.push is
// HEAD:refs/heads/<that branch>.
package inside

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed helpers/fletch-request helpers/git-remote-fletch
var helpers embed.FS

// names lists every helper.
func names() []string { return []string{"fletch-request", "git-remote-fletch"} }

// Files returns each helper's text by name. All of them belong into one
// directory on the agent's PATH, executable.
func Files() map[string][]byte {
	files := map[string][]byte{}
	for _, name := range names() {
		body, err := helpers.ReadFile("helpers/" + name)
		if err != nil {
			panic("inside: an embedded file is always there: " + err.Error())
		}
		files[name] = body
	}
	return files
}

// Install writes every helper into dir, which no agent can write, and makes
// dir when it is missing; both are 0755, since an agent may run as another
// user. A helper is replaced as a whole, so one that just starts sees the old
// or the new text, never a piece.
func Install(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("installing the sandbox helpers: %w", err)
	}
	for _, name := range names() {
		if err := install(dir, name, Files()[name]); err != nil {
			return fmt.Errorf("installing the sandbox helper %s: %w", name, err)
		}
	}
	return nil
}

func install(dir, name string, body []byte) error {
	file, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // nothing is left of it after the rename
	_, err = file.Write(body)
	if err == nil {
		err = file.Chmod(0o755)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), filepath.Join(dir, name))
}
