package tuitest

import (
	"fmt"
	"strings"
	"time"

	"fletch/state"
)

// Commits of the drawn fleet.
const (
	Head  state.Commit = "9f3c1e74b2d8c6f5e0a9b8c7d6e5f4a3b2c1d0e9"
	Newer state.Commit = "77ab90174b2d8c6f5e0a9b8c7d6e5f4a3b2c1d0e"
	Base  state.Commit = "1a2b3c4d5e6f708192a3b4c5d6e7f80912a3b4c5"
)

// Noon is the moment that the drawn fleet is seen at.
func Noon() time.Time { return time.Date(2026, 12, 1, 14, 6, 30, 0, time.Local) }

// at is a clock time of that day.
func at(clock string) time.Time {
	t, err := time.ParseInLocation("2006-01-02 15:04", Noon().Format("2006-01-02 ")+clock, time.Local)
	if err != nil {
		panic(err)
	}
	return t
}

// Agent ids of the drawn fleet, in creation order.
const (
	AmberRiver state.AgentID = "aaaaaaaa"
	CalmCedar  state.AgentID = "bbbbbbbb"
	ElmStar    state.AgentID = "cccccccc"
	FernLake   state.AgentID = "dddddddd"
	BlueOtter  state.AgentID = "eeeeeeee"
	GoldFinch  state.AgentID = "ffffffff"
	DryLake    state.AgentID = "gggggggg"
	HazelMoor  state.AgentID = "hhhhhhhh"
)

// Drawn is the fleet of the drawings: eight agents, one asks to push, one
// asks the person, one has failed.
func Drawn() state.Fleet {
	base := state.Base{Ref: "main", Commit: Base, At: at("12:01")}
	make1 := func(id state.AgentID, name, provider, engine string, status state.Status, since string, added, removed int) state.Agent {
		return state.Agent{
			ID: id, Name: name, Provider: provider, Engine: engine, Tier: "worktree", Network: "proxy", Status: status,
			Repo: "/home/you/src/shop", Remote: "https://github.com/acme/shop.git", Branch: "fletch/" + name, Base: base,
			Workspace: "/home/you/.fletch/workspaces/" + string(id), Created: at("12:01"), Since: at(since),
			Work: state.Work{Files: 7, Commits: 3, Added: added, Removed: removed},
		}
	}
	agents := []state.Agent{
		make1(AmberRiver, "amber-river", "claude", "native", state.Working, "14:04", 120, 14),
		make1(CalmCedar, "calm-cedar", "codex", "native", state.Waiting, "14:05", 12, 3),
		make1(ElmStar, "elm-star", "shell", "direct", state.Failed, "14:00", 0, 0),
		make1(FernLake, "fern-lake", "claude", "native", state.Done, "13:57", 58, 2),
		make1(BlueOtter, "blue-otter", "codex", "docker", state.Working, "13:54", 311, 90),
		make1(GoldFinch, "gold-finch", "claude", "native", state.Working, "14:03", 7, 7),
		make1(DryLake, "dry-lake", "pi", "native", state.Idle, "13:06", 4, 1),
		make1(HazelMoor, "hazel-moor", "opencode", "docker", state.Starting, "14:06", 0, 0),
	}
	agents[0].Task = "Fix the retry loop in checkout, with a test"
	agents[2].Reason = "its program ended with 56"
	agents[7].Note = "checking out 40 %"
	f := state.Fleet{Seq: 100, Agents: agents, Left: at("12:00")}
	f.Requests = []state.Request{Push("7", AmberRiver, "amber-river", Head, at("14:04"))}
	f.Attested = map[state.AgentID]state.Attestation{AmberRiver: {Engine: "native", At: at("12:02"), Facts: []state.Fact{
		{Name: "seccomp", Value: "filter", Known: "observed"},
		{Name: "capabilities", Value: "none", Known: "observed"},
		{Name: "network namespace", Value: "private, one socket to the proxy", Known: "reported"},
		{Name: "~/.ssh", Value: "not there", Known: "tested"},
	}}}
	return f
}

// Push is a pending request to push.
func Push(id state.RequestID, agent state.AgentID, name string, commit state.Commit, asked time.Time) state.Request {
	p := state.Plan{
		Agent: agent, Remote: "https://github.com/acme/shop.git", Ref: "refs/heads/fletch/" + name,
		Commit: commit, Base: Base, BaseRef: "refs/heads/main", Commits: Patch(commit).Commits, Files: Patch(commit).Files,
		Added: 120, Removed: 14,
		Flags: []state.Flag{{Name: "ci", Text: "1 CI workflow (.github/workflows/ci.yml)"}, {Name: "executable", Text: "1 executable"}},
	}
	return state.Request{ID: id, Agent: agent, Operation: "push", Plan: p, PlanHash: p.Hash(), Asked: asked, State: state.Pending}
}

// Patch is what the drawn request would publish.
func Patch(head state.Commit) state.Patch {
	var b strings.Builder
	b.WriteString("diff --git a/checkout/retry.go b/checkout/retry.go\nindex 1..2 100644\n--- a/checkout/retry.go\n+++ b/checkout/retry.go\n@@ -41,7 +41,9 @@\n" +
		"-\tfor i := 1; i < max; i++ {\n+\tfor attempt := 0; attempt < max; attempt++ {\n \t\terr := call(ctx)\n \t\tif err == nil {\n \t\t\treturn nil\n \t\t}\n" +
		"-\t\ttime.Sleep(i * base)\n+\t\tif !sleep(ctx, backoff(attempt)) {\n+\t\t\treturn ctx.Err()\n+\t\t}\n \t}\n")
	b.WriteString("diff --git a/checkout/retry_test.go b/checkout/retry_test.go\nindex 1..2 100644\n--- a/checkout/retry_test.go\n+++ b/checkout/retry_test.go\n@@ -11,0 +12,5 @@\n" +
		"+func TestThirdFailureIsRetried(t *testing.T) {\n+\tcalls := 0\n+\terr := retry(context.Background(), 3, func() error {\n+\t\tcalls++; return errFlaky\n+\t})\n")
	files := []state.PlanFile{{Path: "checkout/retry.go", Change: "M", Mode: "100644", Added: 4, Removed: 2}, {Path: "checkout/retry_test.go", Change: "M", Mode: "100644", Added: 5}}
	for n := range 5 {
		path := fmt.Sprintf("docs/%d.md", n)
		fmt.Fprintf(&b, "diff --git a/%s b/%s\nindex 1..2 100644\n--- a/%s\n+++ b/%s\n@@ -1,31 +1,31 @@\n", path, path, path, path)
		for i := range 30 {
			fmt.Fprintf(&b, " line %d\n", i)
		}
		b.WriteString("-old\n+new\n")
		files = append(files, state.PlanFile{Path: path, Change: "M", Mode: "100644", Added: 1, Removed: 1})
	}
	commit := func(id state.Commit, subject string) state.PlanCommit {
		return state.PlanCommit{ID: id, Author: "claude", Email: "claude@fletch", Subject: subject, Message: subject + "\n"}
	}
	return state.Patch{Base: Base, Head: head, Files: files, Diff: b.String(), Commits: []state.PlanCommit{
		commit(head, "Retry counts the first attempt once"),
		commit("2222222222222222222222222222222222222222", "Test the third failure"),
		commit("3333333333333333333333333333333333333333", "Write down how often we retry"),
	}}
}

// Machine is what the drawn machine can do.
func Machine() state.Survey {
	return state.Survey{
		Version: "0.1.0", Home: "/home/you/.fletch",
		Engines: []state.EngineSurvey{
			{Name: "native", Tier: "worktree", Usable: true, Detail: "bubblewrap 0.8, Landlock 7, private network", Claims: []state.Claim{
				{Name: "writes only its checkout", Held: "enforced"},
				{Name: "sees toolchains, not ~/.ssh or ~/.aws", Held: "enforced"},
				{Name: "private network", Held: "enforced"},
				{Name: "memory limit", Held: "partial", Reason: "no cgroup can be made here"},
			}},
			{Name: "docker", Tier: "container", Cause: "no daemon answers", Fix: "sudo systemctl start docker"},
		},
		Providers: []state.ProviderSurvey{
			{Name: "claude", Usable: true, Version: "2.1.332"},
			{Name: "codex", Usable: true, Version: "0.171"},
			{Name: "shell", Usable: true},
			{Name: "opencode", Why: "not on PATH"},
			{Name: "pi", Why: "not on PATH"},
			{Name: "cursor", Why: "not on PATH"},
			{Name: "antigravity", Why: "not on PATH"},
		},
		Here: state.Here{Repo: "/home/you/src/shop", Branch: "main", Branches: []string{"main", "next"}, Uncommitted: 12},
	}
}

// BareMachine can start no agent.
func BareMachine() state.Survey {
	s := Machine()
	s.Engines = []state.EngineSurvey{
		{Name: "native", Tier: "worktree", Cause: "bubblewrap is missing", Fix: "apt-get install bubblewrap"},
		{Name: "docker", Tier: "container", Cause: "no daemon answers", Fix: "sudo systemctl start docker"},
	}
	s.Here = state.Here{Why: "not a git repository"}
	return s
}

// DrawnScreens are the terminals of the drawn fleet, of cols by rows cells.
func DrawnScreens(cols, rows int) *Screens {
	s := NewScreens()
	for id, output := range map[state.AgentID]string{
		AmberRiver: amberScreen(), CalmCedar: cedarScreen(), ElmStar: elmScreen(),
		FernLake:  "● Renamed the package and fixed 14 imports.\r\n\r\n✻ Baked for 3m 12s · done 13:51\r\n\r\n> ",
		BlueOtter: "• Ran go vet ./...\r\n  \x1b[90m└ (no output)\x1b[m\r\n\r\n◦ Working (4m 02s • esc to interrupt)\r\n",
		GoldFinch: "● Update(web/cart.tsx)\r\n  \x1b[90m└  Updated with 7 additions and 7 removals\x1b[m\r\n\r\n✶ Simmering… (41s · ↑ 1.2k tokens)\r\n",
		DryLake:   "> ",
	} {
		s.Play(id, cols, rows, output)
	}
	return s
}

func amberScreen() string {
	grey, red, green, off := "\x1b[38;2;128;138;150m", "\x1b[31m", "\x1b[32m", "\x1b[m"
	lines := []string{
		"● I found the cause. `retry()` in checkout/retry.go counts the first",
		"  attempt twice, so the third failure is never retried.",
		"",
		"● Update(checkout/retry.go)",
		grey + "  └  Updated checkout/retry.go with 9 additions and 3 removals" + off,
		red + "       41 -    for i := 1; i < max; i++ {" + off,
		green + "       41 +    for attempt := 0; attempt < max; attempt++ {" + off,
		"       42          err := call(ctx)",
		"       43          if err == nil {",
		"       44              return nil",
		"       45          }",
		"",
		"● Bash(go test ./checkout/...)",
		grey + "  └  ok      acme/shop/checkout      0.412s" + off,
		"",
		"● All tests pass. I commit and push this for review.",
		"",
		"● Bash(git push -u origin HEAD)",
		grey + "  └  fletch: waiting for approval of fletch/amber-river (9f3c1e7)" + off,
		grey + "     fletch: nothing has left this machine yet" + off,
		"",
		grey + "✻ Waiting… (1m 52s · esc to interrupt)" + off,
		"",
		grey + "╭──────────────────────────────────────────────────────────────────────╮" + off,
		grey + "│ >                                                                    │" + off,
		grey + "╰──────────────────────────────────────────────────────────────────────╯" + off,
		grey + "  ? for shortcuts" + off,
	}
	return strings.Join(lines, "\r\n") + "\x1b[25;5H"
}

func cedarScreen() string {
	return strings.Join([]string{
		"", "  Would you like to run the following command?", "", "  $ npm install left-pad@2", "",
		"\x1b[36m› 1. Yes, proceed (y)\x1b[m", "  2. Yes, and don't ask again for this command",
		"  3. No, and tell Codex what to do differently", "", "  Press enter to confirm or esc to cancel",
	}, "\r\n")
}

func elmScreen() string {
	return strings.Join([]string{
		"$ ./deploy.sh staging", "fletch: blocked: staging.acme.dev:443 is not", "        on the allow-list of this agent",
		"curl: (56) CONNECT tunnel failed, 403", "exit status 56",
	}, "\r\n")
}
