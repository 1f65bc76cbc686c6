// Package gitops is the only part of fletch that runs git. It keeps three
// kinds of repository apart: the user's, which is read and never written; the
// pool and the quarantine, which are fletch's own; and the workspace, which
// an agent can write. The host never points git at a workspace: whatever reads
// one is started in a sandbox, and what it says is taken as untrusted bytes.
//
// A commit reaches the quarantine through an upload-pack in a sandbox and an
// index-pack that hashes every object again, so a name in the quarantine
// means what it says. Everything a person is shown, and everything that is
// pushed, is read from there.
//
// The package knows no screen and no store. It decides nothing: publishing
// needs a [broker.Grant].
package gitops

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"fletch/home"
	"fletch/sandbox"
	"fletch/state"
)

// Bounds on what is read from a repository an agent made.
const (
	defaultQuota    = 2 << 30 // bytes that one ingest may carry
	defaultPatience = 2 * time.Minute

	maxFiles     = 20_000     // changed paths in one plan or patch
	maxCommits   = 500        // commits a plan lists one by one
	maxMessage   = 16 << 10   // bytes of one commit message
	maxDiff      = 8 << 20    // bytes of diff text a person is shown
	maxShown     = 5_000_000  // a larger blob is not shown and not searched
	maxPlain     = 10_000_000 // a larger file is pointed out ("10 MB")
	maxNeed      = 128 << 20  // bytes of object names one publish may list
	maxRefs      = 20_000     // refs taken over from the user's repository
	maxListing   = 16 << 20   // bytes of what a remote lists
	sealedCPU    = 60         // CPU seconds of one sealed git
	sealedMemory = 3 << 30    // bytes of memory of one sealed git
)

// Git runs git. It is a value without state of its own: copies are cheap, and
// every method may be called from several goroutines at once.
type Git struct {
	Home   home.Home
	Engine sandbox.Engine // starts whatever reads a workspace or a quarantine
	Self   string         // the fletch executable, absolute: git calls it back
	Path   string         // git, absolute; see [Find]
	Store  string         // the store's uuid, for the sandbox's labels

	// Creds are used by Inspect and Open, which read the user's own
	// configuration and ask the remote for the newest base. The zero value
	// takes what this process has.
	Creds Credentials
	// Quota bounds the bytes one ingest may carry; 2 GiB when zero.
	Quota int64
	// Patience bounds one step that waits for a workspace; 2 minutes when zero.
	Patience time.Duration
}

// Credentials is the environment of the client on whose behalf a remote is
// reached. Only HOME, XDG_CONFIG_HOME, XDG_RUNTIME_DIR, PATH, SSH_AUTH_SOCK,
// DBUS_SESSION_BUS_ADDRESS, the proxy variables and SSL_CERT_* are used.
type Credentials struct {
	Env []string
}

func (g Git) quota() int64 {
	if g.Quota > 0 {
		return g.Quota
	}
	return defaultQuota
}

func (g Git) patience() time.Duration {
	if g.Patience > 0 {
		return g.Patience
	}
	return defaultPatience
}

// oldest is the first release with the fixes that the design leans on:
// upload-pack refuses other owners' repositories and never fetches lazily.
var oldest = [3]int{2, 39, 4}

var versionForm = regexp.MustCompile(`^git version (\d+)\.(\d+)(?:\.(\d+))?`)

// Find resolves git on this process's PATH to an absolute path and refuses
// one older than 2.39.4.
func Find() (string, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return "", fault("git-missing", "install git 2.39.4 or newer", "git is not on PATH")
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding git: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := Git{Path: path}.read(ctx, host{args: []string{"version"}})
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", path, err)
	}
	if err := checkVersion(string(out)); err != nil {
		return "", err
	}
	return path, nil
}

func checkVersion(said string) error {
	m := versionForm.FindStringSubmatch(said)
	if m == nil {
		return fault("git-unknown", "install git 2.39.4 or newer", "git says its version is %s", quote(said))
	}
	var have [3]int
	for i := range have {
		have[i], _ = strconv.Atoi(m[i+1]) // digits by the expression; a missing third part is 0
	}
	for i := range have {
		if have[i] != oldest[i] {
			if have[i] < oldest[i] {
				return fault("git-too-old", "install git 2.39.4 or newer",
					"git %d.%d.%d has known ways to run code from a repository", have[0], have[1], have[2])
			}
			return nil
		}
	}
	return nil
}

var idForm = regexp.MustCompile(`^[a-z2-7]{8}$`)

// checkID keeps anything but an agent's id out of paths.
func checkID(id state.AgentID) error {
	if !idForm.MatchString(string(id)) {
		return fmt.Errorf("agent id %q: not 8 characters of a-z and 2-7", string(id))
	}
	return nil
}

var errNoSandbox = errors.New("no engine is set to read workspaces with")
