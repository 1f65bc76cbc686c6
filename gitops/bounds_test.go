package gitops

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fletch/state"
)

func TestATreeBombIsRefusedQuickly(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	head := state.Commit(f.inSandbox(rawCommit + `
blob=$(echo x | git hash-object -w --stdin); kind="100644 blob"
for level in 1 2 3 4 5 6 7 8 9; do
	blob=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '%s %s\t%s\n' "$kind" $blob $i; done | git mktree); kind="040000 tree"
done
raw $blob`))
	began := time.Now()
	if _, err := f.plan(head, false); !errors.Is(err, ErrTooLarge) {
		t.Errorf("planned a billion files: %v", err)
	}
	if took := time.Since(began); took > 45*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestTooManyBytesAreCutOff(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	f.git.Quota = 1 << 20
	head := f.commit("head -c 5000000 /dev/urandom > a")
	if err := f.git.Ingest(t.Context(), f.agent, head); !errors.Is(err, ErrQuota) {
		t.Errorf("ingested 5 MB with a quota of 1: %v", err)
	}
}

func TestALongDiffIsCutBetweenFilesAndSaid(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	head := f.commit("for i in 1 2 3 4; do yes some text of line $i | head -c 3000000 > f$i; done")
	patch, err := f.git.Patch(t.Context(), f.agent, f.mustPlan(head, false))
	if err != nil || len(patch.Omitted) != 1 || !strings.Contains(patch.Omitted[0], "longer than 8 MiB") || len(patch.Diff) > maxDiff {
		t.Fatalf("omitted %q, %d bytes, %v", patch.Omitted, len(patch.Diff), err)
	}
	shown := strings.Count(patch.Diff, "diff --git ")
	if want := fmt.Sprintf("%d more files", 4-shown); !strings.HasPrefix(patch.Omitted[0], want) {
		t.Errorf("omitted %q, %d are shown", patch.Omitted, shown)
	}
}

func TestWarningsAreSaidInFletchsWords(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	sub := strings.Repeat("1", 40)
	head := f.commit("mkdir -p .github/workflows .fletch/agents; echo on: push > .github/workflows/ci.yml; echo x > .fletch/agents/a.toml; echo '#!/bin/sh' > run; chmod +x run; ln -s /etc/passwd link; " +
		"printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%064d\\nsize 5\\n' 1 > big.psd; git config user.name Eve; git update-index --add --cacheinfo 160000," + sub + ",mod; head -c 11000000 /dev/urandom > large")
	p := f.mustPlan(head, false)
	for name, text := range map[string]string{
		"unchecked": "11000000 bytes could not be checked (too large)", "ci": "1 CI workflow", "executable": "1 executable", "symlink": "1 symlink",
		"profile": "1 fletch profile", "large": "1 file over 10 MB", "lfs": "LFS pointer without its file", "author": "commit author is not you",
	} {
		wantFlag(t, p, name, text)
	}
	patch, err := f.git.Patch(t.Context(), f.agent, p)
	if err != nil || len(patch.Omitted) != 1 || patch.Omitted[0] != "large: 11.0 MB, too large to show" {
		t.Errorf("omitted %q, %v", patch.Omitted, err)
	}
	orphan := state.Commit(f.inSandbox("git commit-tree -m orphan HEAD^{tree}"))
	wantFlag(t, f.mustPlan(orphan, false), "history", "rewrites history it did not make")
}

func TestOddNamesAreFlaggedAndNeverRaw(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	head := f.commit("printf x > \"$(printf 'a\\033]52;c;x\\007b')\"; printf x > \"$(printf 'r\\342\\200\\256txt')\"; printf x > \"$(printf 'bad\\377')\"; printf x > \"$(printf 'new\\nline')\"; echo ok > 'ü ok'")
	p := f.mustPlan(head, false)
	wantFlag(t, p, "control", "control or bidi characters in 4 names")
	if len(p.Files) != 5 {
		t.Errorf("files %+v", p.Files)
	}
	patch, err := f.git.Patch(t.Context(), f.agent, p)
	if err != nil || strings.ContainsAny(patch.Diff, "\x1b\x07") {
		t.Errorf("diff %q, %v", patch.Diff, err)
	}
	for _, flag := range p.Flags {
		if hasUnsafe(flag.Text) {
			t.Errorf("flag %q", flag.Text)
		}
	}
}
