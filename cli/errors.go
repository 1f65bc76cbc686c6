package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// errorCodes is every stable word that an error can carry, with its meaning.
// Scripts rely on them: a word is never reused for something else.
var errorCodes = []struct{ Code, Meaning string }{
	{"auth-failed", "the remote did not accept the credentials it was given"},
	{"bad-copies", "a launch asks for fewer than 1 or more than 9 copies"},
	{"bad-hello", "a peer of a keeper does not speak its protocol"},
	{"bad-name", "an agent cannot have this name"},
	{"bad-remote", "a remote's address is of a kind that fletch does not use"},
	{"bad-repository", "the repository is not named by an absolute path"},
	{"bad-request", "the hub cannot read what it was asked"},
	{"bad-settings", "a settings file has a mistake; file, line and field are named"},
	{"bad-task", "a task has a byte that no program can be given"},
	{"bad-workspace", "an agent's workspace gave no sound answer"},
	{"demo-failed", "the demo did not go as it should"},
	{"denied", "a person said no"},
	{"dumb-terminal", "TERM names a terminal that cannot show a dashboard"},
	{"engine-unavailable", "the sandbox does not work here; cause and fix are given"},
	{"failed", "something went wrong that has no word of its own"},
	{"flags-not-accepted", "an allow does not accept every red flag by name"},
	{"fletchs-own", "the repository lies in FLETCH_HOME"},
	{"git-missing", "git is not on PATH"},
	{"git-too-old", "git is older than 2.39.4"},
	{"git-unknown", "git does not say its version in a known form"},
	{"hub-start", "the hub ended while it started"},
	{"keeper-running", "another keeper runs this agent"},
	{"keeper-silent", "an agent's keeper lives and does not answer"},
	{"name-taken", "another agent has this name"},
	{"never", "the agent can no longer reach the status that is waited for"},
	{"no-commits", "the repository has no commit yet"},
	{"no-head", "the workspace has no commit checked out"},
	{"no-home", "there is no home directory to keep FLETCH_HOME in"},
	{"no-remote", "the repository has no remote to push to"},
	{"no-room", "the agent has ended, or too many look at it"},
	{"no-such-agent", "no agent has this id or name"},
	{"no-such-base", "no branch, tag or commit has this name"},
	{"no-such-engine", "no sandbox has this name"},
	{"no-such-profile", "no profile has this name"},
	{"no-such-provider", "no provider has this name"},
	{"no-such-request", "no request has this id"},
	{"no-terminal", "the command needs a terminal"},
	{"non-fast-forward", "the push would drop commits at the remote and was not forced"},
	{"not-a-repository", "the directory is not in a git repository"},
	{"not-a-terminal", "raw output of an agent is not written to a terminal"},
	{"not-ready", "doctor found something without which no agent can start"},
	{"not-running", "the agent is not running"},
	{"nothing-to-undo", "nothing was removed that could be brought back"},
	{"odd-alternates", "the repository borrows objects in a way that cannot be followed"},
	{"over-quota", "a workspace sent more than it may"},
	{"partial-clone", "the repository lacks objects that an agent could not fetch"},
	{"paste-too-long", "a paste has more than a megabyte"},
	{"peer-refused", "the process that asks may not: another user, a sandbox, an agent's own"},
	{"protocol", "client and hub are of versions that do not fit"},
	{"protocol-too-new", "a viewer is newer than the keeper"},
	{"protocol-too-old", "a viewer is older than the keeper understands"},
	{"provider-missing", "the agent's program is not on PATH"},
	{"push-failed", "it was allowed and the push did not happen; the reason is given"},
	{"quarantine-changed", "fletch's own repository is not as fletch left it"},
	{"ref-refused", "no agent may push to this ref"},
	{"refused", "the gate refused for a reason that has no word of its own"},
	{"remote-moved", "the remote's branch is not what it was when the person looked"},
	{"remote-refused", "the remote said no; its words are given"},
	{"request-moved", "the request is not for this commit or plan"},
	{"request-settled", "the request was answered or replaced"},
	{"sandbox-start", "the agent's sandbox did not come up; its program never ran"},
	{"start-failed", "an agent never ran; the reason is given"},
	{"still-running", "the agent runs"},
	{"store-damaged", "the log is damaged; nothing was changed"},
	{"store-locked", "another process has the log open"},
	{"store-newer", "the log was written by a newer fletch"},
	{"superseded", "a newer push took the request's place"},
	{"task-too-long", "the task has more than 100 KiB"},
	{"timed-out", "what was waited for did not happen in time"},
	{"too-large", "more than a person can be shown"},
	{"too-many-agents", "the hub may not open enough files for another live agent"},
	{"too-many-waiting", "too many messages wait for one request"},
	{"unreachable", "the remote does not answer"},
	{"usage", "the command was called in a way it does not know"},
	{"workspace-hangs", "reading an agent's workspace took too long"},
	{"wrong-branch", "an agent asked for another branch than its own"},
	{"wrong-engine", "the provider does not run in this sandbox"},
}

// errorsCommand is the help topic "fletch help errors".
func (a *app) errorsCommand() *cobra.Command {
	return &cobra.Command{Use: "errors", Short: "the words that errors carry", Args: exactly(0, ""), RunE: func(*cobra.Command, []string) error {
		if a.json {
			return a.print(errorCodes)
		}
		table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
		for _, e := range errorCodes {
			fmt.Fprintf(table, "%s\t%s\n", e.Code, e.Meaning)
		}
		return table.Flush()
	}}
}
