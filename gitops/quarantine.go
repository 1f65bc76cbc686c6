package gitops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fletch/sandbox"
	"fletch/state"
)

// record is what fletch wrote down when it made a workspace. It lies in the
// quarantine, where no agent can write.
type record struct {
	Pool      string     `json:"pool"`   // absolute, in Home.Pools
	Source    string     `json:"source"` // the git directory whose objects the user has, absolute
	Format    string     `json:"format"` // "sha1" or "sha256"
	Remote    string     `json:"remote,omitempty"`
	Base      state.Base `json:"base"`
	Protected []string   `json:"protected"` // branches besides main and master that are never pushed to
	Name      string     `json:"name,omitempty"`
	Email     string     `json:"email,omitempty"` // of the user, who is the author unless said otherwise
}

const recordFile = "fletch.json"

// quarantine is an agent's quarantine repository, opened for reading.
type quarantine struct {
	record
	agent state.AgentID
	dir   string
}

// config of a repository that fletch makes. The same bytes are expected when
// it is opened again: git on the host obeys this file.
func bareConfig(format string) string {
	if format == "sha256" {
		return "[core]\n\trepositoryformatversion = 1\n\tbare = true\n\tfilemode = true\n[extensions]\n\tobjectformat = sha256\n"
	}
	return "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfilemode = true\n"
}

// quarantine opens an agent's quarantine and makes sure that what git would
// obey there is what fletch wrote.
func (g Git) quarantine(id state.AgentID) (quarantine, error) {
	var q quarantine
	if err := checkID(id); err != nil {
		return q, err
	}
	q.agent, q.dir = id, g.Home.Quarantine(string(id))
	data, err := readSmall(filepath.Join(q.dir, recordFile), 1<<20)
	if err != nil {
		return q, fmt.Errorf("opening the quarantine of %s: %w", id, err)
	}
	if err := json.Unmarshal(data, &q.record); err != nil {
		return q, fmt.Errorf("opening the quarantine of %s: %w", id, err)
	}
	if !inside(g.Home.Pools(), q.Pool) || q.Pool == g.Home.Pools() {
		return q, fault("quarantine-changed", "", "the quarantine of %s borrows from %s, which is no pool", id, quote(q.Pool))
	}
	return q, q.sound()
}

// sound compares the files that git obeys with what they were made as.
func (q quarantine) sound() error {
	for name, want := range map[string]string{
		"config":                  bareConfig(q.Format),
		"objects/info/alternates": filepath.Join(q.Pool, "objects") + "\n",
		"HEAD":                    unbornHead,
	} {
		have, err := readSmall(filepath.Join(q.dir, name), 64<<10)
		if err != nil || string(have) != want {
			return fault("quarantine-changed", "remove this agent; its work can be brought back by undo",
				"the quarantine of %s is not as fletch left it: %s", q.agent, name)
		}
	}
	for _, name := range []string{"hooks", "worktrees", "modules", "commondir", "info/attributes", "info/grafts", "config.worktree"} {
		if _, err := os.Lstat(filepath.Join(q.dir, name)); !errors.Is(err, os.ErrNotExist) {
			return fault("quarantine-changed", "remove this agent; its work can be brought back by undo",
				"the quarantine of %s is not as fletch left it: %s is there", q.agent, name)
		}
	}
	return nil
}

// unbornHead names a branch that no quarantine and no pool ever has.
const unbornHead = "ref: refs/heads/unborn\n"

// makeBare writes an empty bare repository without asking git: there is no
// template, no hook and no description in it. alternates may be empty.
func makeBare(dir, format, alternates string) error {
	for _, sub := range []string{"objects/info", "objects/pack", "refs/fletch", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	files := map[string]string{"HEAD": unbornHead, "config": bareConfig(format)}
	if alternates != "" {
		files["objects/info/alternates"] = alternates + "\n"
	}
	for name, body := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// makeQuarantine makes the repository that receives what an agent did.
// known are commits that the remote has as far as is known.
func (g Git) makeQuarantine(id state.AgentID, r record, known []state.Commit, shallow []byte) error {
	dir := g.Home.Quarantine(string(id))
	if err := makeBare(dir, r.Format, filepath.Join(r.Pool, "objects")); err != nil {
		return err
	}
	var refs strings.Builder
	fmt.Fprintf(&refs, "%s refs/fletch/base\n", r.Base.Commit)
	for i, c := range known {
		fmt.Fprintf(&refs, "%s refs/fletch/remote/%d\n", c, i)
	}
	if err := os.WriteFile(filepath.Join(dir, "packed-refs"), []byte(refs.String()), 0o600); err != nil {
		return err
	}
	if len(shallow) > 0 {
		if err := os.WriteFile(filepath.Join(dir, "shallow"), shallow, 0o600); err != nil {
			return err
		}
	}
	body, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, recordFile), append(body, '\n'), 0o600)
}

// known are the commits that the remote had when the workspace was made.
func (q quarantine) known() ([]state.Commit, error) {
	data, err := readSmall(filepath.Join(q.dir, "packed-refs"), 4<<20)
	if err != nil {
		return nil, err
	}
	var all []state.Commit
	for line := range strings.SplitSeq(string(data), "\n") {
		id, name, ok := strings.Cut(line, " ")
		if ok && strings.HasPrefix(name, "refs/fletch/remote/") && state.Commit(id).Valid() {
			all = append(all, state.Commit(id))
		}
	}
	return all, nil
}

// ref reads one of the quarantine's own refs; empty when there is none.
func (q quarantine) ref(name string) state.Commit {
	data, err := readSmall(filepath.Join(q.dir, "refs", "fletch", name), 128)
	if err != nil {
		return ""
	}
	c := state.Commit(strings.TrimSuffix(string(data), "\n"))
	if !c.Valid() {
		return ""
	}
	return c
}

// mounts shows the quarantine and its pool, read-only.
func (q quarantine) mounts() []sandbox.Mount {
	return []sandbox.Mount{
		{Source: q.dir},
		{Source: filepath.Join(q.Pool, "objects")},
	}
}

// writable shows the quarantine so that packs and refs can be added, and
// nothing that git obeys can be changed: not even an index-pack that was
// taken over by the bytes it reads can leave a command here.
func (q quarantine) writable() []sandbox.Mount {
	return append(q.mounts(),
		sandbox.Mount{Source: filepath.Join(q.dir, "objects", "pack"), Write: true},
		sandbox.Mount{Source: filepath.Join(q.dir, "refs"), Write: true},
	)
}

// onQuarantine runs git on the quarantine in a sandbox, read-only, and returns what it
// printed.
func (g Git) onQuarantine(ctx context.Context, q quarantine, what string, stdin io.Reader, max int64, args ...string) ([]byte, error) {
	return g.output(ctx, sealed{
		agent: q.agent, argv: g.gitOn(q.dir, args...), mounts: q.mounts(), stdin: stdin, what: what,
	}, max)
}

// Borrowed lists what must be in an agent's view for its repository to be
// whole: the objects of its pool, read-only. It is empty for an agent whose
// quarantine cannot be read.
func (g Git) Borrowed(a state.Agent) []sandbox.Mount {
	q, err := g.quarantine(a.ID)
	if err != nil {
		return nil
	}
	return []sandbox.Mount{{Source: filepath.Join(q.Pool, "objects")}}
}

// readSmall reads a regular file of fletch's own, without following a link at
// its end, and refuses one larger than max.
func readSmall(path string, max int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > max {
		return nil, fmt.Errorf("%s: not a regular file of at most %d bytes", path, max)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, max+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if int64(len(data)) > max {
		return nil, fmt.Errorf("%s: more than %d bytes", path, max)
	}
	return data, nil
}

// unique sorts commits and drops what stands there twice.
func unique(all []state.Commit) []state.Commit {
	slices.Sort(all)
	return slices.Compact(all)
}
