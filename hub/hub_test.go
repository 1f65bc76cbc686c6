//go:build linux

package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fletch/agents"
	"fletch/home"
	"fletch/hub/wire"
	"fletch/state"
	"fletch/state/store"
)

// patience bounds a wait for something that happens at once on a machine with
// nothing else to do.
const patience = time.Minute

// The test binary plays other processes when these are set.
const (
	dialVariable  = "FLETCH_TEST_DIAL"  // look and act at this socket and tell how that went
	crashVariable = "FLETCH_TEST_CRASH" // crash with the crash file in the current directory
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "keeper":
		// What an agent starts descends from a process that looks like this.
		cmd := exec.Command("/proc/self/exe")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case os.Getenv(dialVariable) != "":
		tellAnswers(os.Getenv(dialVariable))
	case os.Getenv(crashVariable) != "":
		crashOutput(".")
		go func() { panic("on purpose") }()
		select {}
	default:
		os.Exit(m.Run())
	}
}

// answers is what a peer got: for looking, and for acting.
type answers struct{ Look, Act answer }

type answer struct {
	Status        int
	Code, Message string
}

// tellAnswers asks a hub as a process of its own and prints what it got.
func tellAnswers(socket string) {
	var got answers
	got.Look = ask(socket, http.MethodGet, "/v1/hub", "", wire.Protocol)
	got.Act = ask(socket, http.MethodPost, "/v1/left", "", wire.Protocol)
	if err := json.NewEncoder(os.Stdout).Encode(got); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// ask sends one request on a connection of its own; protocol 0 leaves the
// header out.
func ask(socket, method, path, body string, protocol int) answer {
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("unix", socket)
		},
	}}
	request, err := http.NewRequest(method, "http://hub"+path, strings.NewReader(body))
	if err != nil {
		return answer{Message: err.Error()}
	}
	if protocol != 0 {
		request.Header.Set(wire.Header, fmt.Sprint(protocol))
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{Message: err.Error()}
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{Message: err.Error()}
	}
	var failure wire.Failure
	got := answer{Status: response.StatusCode, Message: string(raw)}
	if response.StatusCode/100 != 2 && json.Unmarshal(raw, &failure) == nil {
		got.Code, got.Message = failure.Error.Word, failure.Error.Message
	}
	return got
}

// newHome makes a FLETCH_HOME with room for sockets.
func newHome(t *testing.T) home.Home {
	t.Helper()
	dir, err := os.MkdirTemp("", "fh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h, err := home.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// newHub makes a hub without git and engines: enough for everything that
// happens before a repository is touched.
func newHub(t *testing.T) *Hub {
	t.Helper()
	h := &Hub{
		Config: Config{Home: newHome(t), Version: "test", Idle: time.Hour},
		log:    slog.New(slog.DiscardHandler), clients: newClientCount(), started: time.Now(),
		end: func(string) {},
	}
	var err error
	h.store, err = store.Open(h.Home.State(), h.Home.Head(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.store.Close() })
	h.publisher = newPublisher(h)
	h.supervisor = agents.New(agents.Config{
		Home: h.Home, Log: h.store, Slog: h.log, Clock: time.Now,
		Started: h.publisher.open, Ended: h.publisher.close,
	})
	return h
}

// serving runs a hub until the test ends and returns its socket.
func serving(t *testing.T, h *Hub) (socket string) {
	t.Helper()
	listener, err := listen(h.Home.HubSocket())
	if err != nil {
		t.Fatal(err)
	}
	ready, theirs := io.Pipe()
	h.Ready = theirs
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.serve(ctx, listener) }()
	var failure wire.Failure
	if err := json.NewDecoder(ready).Decode(&failure); err != nil || failure.Error.Message != "" {
		t.Fatalf("the hub does not start: %v %+v", err, failure)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the hub ended with %v", err)
		}
	})
	return h.Home.HubSocket()
}

// record puts an event into the log.
func (h *Hub) record(t *testing.T, id state.AgentID, body state.Body) {
	t.Helper()
	if _, err := h.store.Append(t.Context(), state.Event{Agent: id, Body: body}); err != nil {
		t.Fatal(err)
	}
}

func (h *Hub) recordAgent(t *testing.T, id state.AgentID, status state.Status) {
	t.Helper()
	h.record(t, id, state.Created{Agent: state.Agent{ID: id, Name: "fern-" + string(id), Branch: "fletch/fern", Status: status}})
}

func TestThePeerMustSpeakTheProtocol(t *testing.T) {
	socket := serving(t, newHub(t))
	for _, protocol := range []int{0, -1, wire.Protocol + 1, 999} {
		got := ask(socket, http.MethodGet, "/v1/hub", "", protocol)
		if got.Status != http.StatusForbidden || got.Code != "protocol" {
			t.Errorf("protocol %d: %+v", protocol, got)
		}
	}
	if got := ask(socket, http.MethodGet, "/v1/hub", "", wire.Protocol); got.Status != http.StatusOK {
		t.Errorf("%+v", got)
	}
}

func TestABodyThatIsTooLargeOrOddIsRefused(t *testing.T) {
	socket := serving(t, newHub(t))
	for name, body := range map[string]string{
		"an unknown field":  `{"provider":"shell","sudo":true}`,
		"no JSON":           `provider=shell`,
		"nothing":           ``,
		"two values":        `{"provider":"shell"} {}`,
		"another type":      `{"copies":"all"}`,
		"more than 4 MiB":   `{"prompt":"` + strings.Repeat("x", maxBody) + `"}`,
		"a list for a task": `[]`,
	} {
		if got := ask(socket, http.MethodPost, "/v1/agents", body, wire.Protocol); got.Code != "bad-request" {
			t.Errorf("%s: %d %q %.120q", name, got.Status, got.Code, got.Message)
		}
	}
}

func TestAVerdictMustBeForTheRequestInItsAddress(t *testing.T) {
	socket := serving(t, newHub(t))
	got := ask(socket, http.MethodPost, "/v1/requests/7/verdict", `{"request":"8","allow":true}`, wire.Protocol)
	if got.Code != "bad-request" || !strings.Contains(got.Message, `"8"`) {
		t.Errorf("%+v", got)
	}
}

func TestWhatIsNotThereIsSaidByItsWord(t *testing.T) {
	socket := serving(t, newHub(t))
	for path, want := range map[string]string{
		"/v1/agents/nobody/changes":  "no-such-agent",
		"/v1/agents/nobody/activity": "no-such-agent",
		"/v1/requests/99/patch":      "no-such-request",
		"/v1/events?after=x":         "bad-request",
	} {
		if got := ask(socket, http.MethodGet, path, "", wire.Protocol); got.Code != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

func TestAnEmptyListIsNotNull(t *testing.T) {
	socket := serving(t, newHub(t))
	for _, path := range []string{"/v1/agents", "/v1/requests", "/v1/events"} {
		if got := ask(socket, http.MethodGet, path, "", wire.Protocol); got.Message != "[]\n" {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

func TestARunningAgentIsRemovedOnlyByForce(t *testing.T) {
	h := newHub(t)
	socket := serving(t, h)
	h.recordAgent(t, "aaaaaaaa", state.Working)
	got := ask(socket, http.MethodDelete, "/v1/agents/aaaaaaaa", "", wire.Protocol)
	if got.Code != "still-running" {
		t.Errorf("%+v", got)
	}
	if _, ok := h.store.Fleet().Agent("aaaaaaaa"); !ok {
		t.Error("it was removed")
	}
}

func TestTheHubSaysWhyItEnds(t *testing.T) {
	h := newHub(t)
	path := filepath.Join(t.TempDir(), "log")
	log, file, err := openLog(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	h.log = log
	listener, err := listen(h.Home.HubSocket())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.serve(t.Context(), listener) }()
	if got := ask(h.Home.HubSocket(), http.MethodPost, "/v1/hub/stop", "", wire.Protocol); got.Status != http.StatusOK {
		t.Errorf("%+v", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	raw, err := os.ReadFile(path)
	if want := fmt.Sprintf(`"why":"process %d told it to"`, os.Getpid()); err != nil || !strings.Contains(string(raw), want) {
		t.Errorf("no %s in\n%s(%v)", want, raw, err)
	}
}

func TestTheSocketOfADeadHubIsReplacedAndClosedToOthers(t *testing.T) {
	path := newHome(t).HubSocket()
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	if answering(path) {
		t.Fatal("a dead hub answers")
	}
	l, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if !answering(path) {
		t.Error("nobody answers")
	}
}

func TestAPlaceForEachAgentThatOpenFilesAllow(t *testing.T) {
	for files, want := range map[uint64]int{0: 0, 1: 1, 44: 1, 64: 6, 256: 54, 1024: 246, 1 << 63: 25_000} {
		if got := places(files); got != want {
			t.Errorf("%d files are %d places, want %d", files, got, want)
		}
	}
	if openFiles() == 0 {
		t.Error("this system does not tell")
	}
}
