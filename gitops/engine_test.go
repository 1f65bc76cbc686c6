package gitops

import (
	"bytes"
	"os"
	"testing"

	"fletch/sandbox"
	"fletch/sandbox/box"
	"fletch/sandbox/engines"
)

// sealer is the native engine. Where it does not work, the tests are skipped
// by name: nothing else is an engine.
func sealer(t testing.TB) sandbox.Engine {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := engines.New("native", self)
	if err != nil {
		t.Skip("SKIPPED: " + err.Error())
	}
	if err := engine.Probe(t.Context()); err != nil {
		t.Skip("SKIPPED: " + err.Error())
	}
	return engine
}

// TestMain is fletch for the git that is under test: it is called back as
// upload-pack and as credential helper; and for the engine, as the first
// process of a sandbox.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "box" {
		os.Exit(box.Main(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "internal" {
		switch os.Args[2] {
		case "upload-pack":
			os.Exit(UploadPack(os.Args[3:]))
		case "credential":
			os.Exit(Credential(os.Args[3:]))
		}
	}
	os.Exit(m.Run())
}

// inSandbox runs a script the way an agent would: in its workspace, sealed.
func (f *fixture) inSandbox(script string, extra ...sandbox.Mount) string {
	f.t.Helper()
	var out, errs bytes.Buffer
	err := f.git.Engine.Run(f.t.Context(), sandbox.Spec{
		Argv: []string{"/bin/sh", "-ec", script}, Dir: f.agent.Workspace,
		Env: append(f.git.sealedEnv(),
			"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z"),
		Mounts: append(append(f.git.system(), sandbox.Mount{Source: f.agent.Workspace, Write: true}), append(f.git.Borrowed(f.agent), extra...)...),
	}, nil, &out, &errs)
	if err != nil {
		f.t.Fatalf("in the workspace: %v: %s", err, errs.String())
	}
	return string(bytes.TrimSpace(out.Bytes()))
}
