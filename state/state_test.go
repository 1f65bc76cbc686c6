package state

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// story applies bodies one after another, a minute apart, about agent "aaaaaaaa".
func story(bodies ...Body) Fleet {
	var fleet Fleet
	for _, body := range bodies {
		fleet = then(fleet, body)
	}
	return fleet
}

func then(fleet Fleet, body Body) Fleet {
	seq := fleet.Seq + 1
	return fleet.Apply(Event{Seq: seq, At: noon.Add(time.Duration(seq) * time.Minute), Agent: "aaaaaaaa", Body: body})
}

func created(id AgentID) Created {
	return Created{Agent: Agent{ID: id, Name: "name-" + string(id), Status: Starting}}
}

func asked(id RequestID, agent AgentID) Asked {
	return Asked{Request: Request{ID: id, Agent: agent, State: Pending, Mail: []string{"first"}}}
}

// everyBody has one body of each kind with every field set, made by
// reflection so that a new kind or field is covered without a line here.
func everyBody(t *testing.T) []Body {
	t.Helper()
	bodies := []Body{
		Created{},
		StatusChanged{},
		Prepared{},
		Sealed{},
		Measured{},
		Removed{},
		Restored{},
		Asked{},
		Joined{},
		Decided{},
		Withdrawn{},
		Published{},
		PublishFailed{},
		Noticed{},
		Seen{},
		Left{},
	}
	var kinds []string
	for i, body := range bodies {
		kinds = append(kinds, body.kind())
		v := reflect.New(reflect.TypeOf(body)).Elem()
		n := 0
		fill(v, &n)
		bodies[i] = v.Interface().(Body)
	}
	for kind := range decoders {
		if !slices.Contains(kinds, kind) {
			t.Fatalf("kind %q is not among the bodies here", kind)
		}
	}
	return bodies
}

// fill gives every field of v a value that is not zero and not one that was
// given before.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(noon.Add(time.Duration(*n) * time.Second)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic("fill does not know " + v.Type().String())
	}
}

func TestEveryEventKindSurvivesJSON(t *testing.T) {
	for i, body := range everyBody(t) {
		want := Event{Seq: uint64(i + 1), At: noon, Agent: "aaaaaaaa", Body: body}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Event
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", want.Kind(), got, want)
		}
		if !strings.Contains(string(data), `"kind":"`+want.Kind()+`"`) {
			t.Errorf("%s is not named in %s", want.Kind(), data)
		}
	}
}

func TestUnknownKindIsRefused(t *testing.T) {
	for _, text := range []string{
		`{"seq":7,"kind":"promoted","body":{}}`,
		`{"seq":7,"body":{}}`,
		`{"seq":7,"kind":"created","body":[]}`,
		`{"seq":7,"kind":"created"}`,
		`[]`,
	} {
		e := Event{Seq: 1, Body: Seen{}}
		if err := json.Unmarshal([]byte(text), &e); err == nil {
			t.Errorf("%s was taken for %+v", text, e)
		}
	}
	if _, err := json.Marshal(Event{Seq: 7}); err == nil {
		t.Error("an event without a body was encoded")
	}
}

func TestEarlierFleetNeverChanges(t *testing.T) {
	// Every event of a full life, each applied to what all before it gave.
	bodies := []Body{
		created("aaaaaaaa"), created("bbbbbbbb"),
		Prepared{Base: Base{Ref: "main"}},
		Sealed{Attestation: Attestation{Engine: "native"}},
		Sealed{Attestation: Attestation{Engine: "docker"}},
		StatusChanged{Status: Working},
		Measured{Work: Work{Commits: 2}},
		asked("1", "aaaaaaaa"), asked("2", "bbbbbbbb"),
		Joined{Request: "1", Mail: "second"},
		Joined{Request: "1", Mail: "third"},
		Decided{Verdict: Verdict{Request: "1", Allow: true}},
		Published{Request: "1"},
		Left{},
		StatusChanged{Status: Failed, Exit: &Exit{Code: 1}},
		StatusChanged{Status: Done},
		Seen{},
		Noticed{},
		asked("3", "aaaaaaaa"),
		Withdrawn{Request: "2"},
		Removed{Trash: "t", Agent: Agent{ID: "aaaaaaaa"}},
		Restored{Agent: Agent{ID: "aaaaaaaa"}},
		PublishFailed{Request: "3"},
		Left{},
	}
	// Some more in a row, so that slices grow and have room to spare.
	for i := range 12 {
		n := fmt.Sprint(i)
		bodies = append(bodies, asked(RequestID("r"+n), "bbbbbbbb"), asked(RequestID("s"+n), "bbbbbbbb"), asked(RequestID("t"+n), "bbbbbbbb"),
			Joined{Request: "3", Mail: n}, Joined{Request: "3", Mail: n + " again"}, created(AgentID("agent"+n)), created(AgentID("other"+n)),
			StatusChanged{Status: Failed, Reason: n}, Removed{Trash: n, Agent: Agent{ID: AgentID("gone" + n)}}, Restored{Agent: Agent{ID: "aaaaaaaa"}})
	}
	bodies = append(bodies, everyBody(t)...)
	var fleets []Fleet
	var texts []string
	var fleet Fleet
	for _, body := range bodies {
		fleet = then(fleet, body)
		fleets, texts = append(fleets, fleet), append(texts, text(t, fleet))
	}
	// From each of them another story goes on: it must not write into memory
	// that a later fleet shows.
	for _, fleet := range fleets {
		for _, body := range []Body{
			StatusChanged{Status: Waiting},
			StatusChanged{Status: Failed, Reason: "other"},
			asked("99", "bbbbbbbb"), created("cccccccc"),
			Joined{Request: "3", Mail: "other"},
			Removed{Trash: "other"},
			Restored{Agent: Agent{ID: "dddddddd"}},
			Measured{Work: Work{Commits: 77}},
		} {
			_ = then(fleet, body)
		}
	}
	for i := range fleets {
		if got := text(t, fleets[i]); got != texts[i] {
			t.Errorf("the fleet after %s (%d) became\n%s\nwas\n%s", bodies[i].kind(), i, got, texts[i])
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestFleetSurvivesJSON(t *testing.T) {
	fleet := story(
		created("aaaaaaaa"), Left{}, StatusChanged{Status: Failed, Exit: &Exit{Code: 3, At: noon}},
		asked("1", "aaaaaaaa"), Sealed{Attestation: Attestation{Engine: "native"}},
		Decided{Verdict: Verdict{Request: "1", Allow: true}}, Removed{Agent: Agent{ID: "aaaaaaaa"}, Trash: "x"},
	)
	var again Fleet
	if err := json.Unmarshal([]byte(text(t, fleet)), &again); err != nil {
		t.Fatal(err)
	}
	if text(t, again) != text(t, fleet) {
		t.Fatalf("became\n%s\nwas\n%s", text(t, again), text(t, fleet))
	}
}

func TestEventAboutNobodyChangesOnlySeq(t *testing.T) {
	before := story(created("bbbbbbbb"), asked("1", "bbbbbbbb"))
	for _, body := range []Body{
		StatusChanged{Status: Failed},
		Prepared{NotIncluded: 3},
		Measured{Work: Work{Commits: 1}},
		Seen{},
		Joined{Request: "9"},
		Decided{Verdict: Verdict{Request: "9", Allow: true}},
		Withdrawn{Request: "9"},
		Published{Request: "9"},
		PublishFailed{Request: "9"},
		Noticed{Text: "x"},
	} {
		after := then(before, body)
		if after.Seq != before.Seq+1 {
			t.Errorf("%s: seq %d", body.kind(), after.Seq)
		}
		after.Seq = before.Seq
		if text(t, after) != text(t, before) {
			t.Errorf("%s changed the fleet to %s", body.kind(), text(t, after))
		}
	}
}

func TestSinceMovesOnlyWithTheStatus(t *testing.T) {
	fleet := story(created("aaaaaaaa"), StatusChanged{Status: Working})
	a, _ := fleet.Agent("aaaaaaaa")
	since := a.Since
	fleet = then(fleet, StatusChanged{Status: Working, Note: "still"})
	if a, _ = fleet.Agent("aaaaaaaa"); a.Since != since || a.Note != "still" {
		t.Errorf("the same status again moved Since from %v to %v", since, a.Since)
	}
	fleet = then(fleet, StatusChanged{Status: Done})
	if a, _ = fleet.Agent("aaaaaaaa"); !a.Since.After(since) {
		t.Errorf("another status left Since at %v", a.Since)
	}
}

func TestNewStatusForgetsTheOldOnesReasonAndExit(t *testing.T) {
	fleet := story(created("aaaaaaaa"), StatusChanged{Status: Failed, Reason: "it broke", Exit: &Exit{Code: 1}}, StatusChanged{Status: Starting})
	if a, _ := fleet.Agent("aaaaaaaa"); a.Reason != "" || a.Exit != nil {
		t.Errorf("starting, with reason %q and exit %v", a.Reason, a.Exit)
	}
}

func TestSeenTurnsDoneIntoIdleAndNothingElse(t *testing.T) {
	for _, status := range Statuses {
		fleet := story(created("aaaaaaaa"), StatusChanged{Status: status}, Seen{})
		want := status
		if status == Done {
			want = Idle
		}
		if a, _ := fleet.Agent("aaaaaaaa"); a.Status != want {
			t.Errorf("%s, seen, became %s", status, a.Status)
		}
	}
}

func TestAllowedRequestIsUnsettledUntilItHasAnOutcome(t *testing.T) {
	fleet := story(created("aaaaaaaa"), asked("1", "aaaaaaaa"), Decided{Verdict: Verdict{Request: "1", Allow: true}})
	r, _ := fleet.Request("1")
	if r.State != Allowed || !r.Settled.IsZero() || len(fleet.Pending()) != 0 {
		t.Fatalf("allowed: %+v", r)
	}
	fleet = then(fleet, Published{Request: "1", Outcome: "ok"})
	if r, _ = fleet.Request("1"); r.State != Pushed || r.Settled.IsZero() || r.Outcome != "ok" {
		t.Fatalf("pushed: %+v", r)
	}
}

func TestVerdictThatDoesNotAllowDenies(t *testing.T) {
	fleet := story(created("aaaaaaaa"), asked("1", "aaaaaaaa"), Decided{Verdict: Verdict{Request: "1"}})
	if r, _ := fleet.Request("1"); r.State != Denied || r.Settled.IsZero() {
		t.Fatalf("%+v", r)
	}
}

func TestRemovedAgentTakesItsOpenRequestsAlong(t *testing.T) {
	fleet := story(created("aaaaaaaa"), created("bbbbbbbb"), asked("1", "aaaaaaaa"), asked("2", "bbbbbbbb"),
		Sealed{}, Removed{Trash: "entry", Agent: Agent{ID: "aaaaaaaa", Name: "as it was"}})
	if _, there := fleet.Agent("aaaaaaaa"); there {
		t.Error("the agent is still there")
	}
	if pending := fleet.Pending(); len(pending) != 1 || pending[0].ID != "2" {
		t.Errorf("pending: %+v", pending)
	}
	if len(fleet.Attested) != 0 {
		t.Errorf("attested: %v", fleet.Attested)
	}
	if len(fleet.Trash) != 1 || fleet.Trash[0].Agent.Name != "as it was" || fleet.Trash[0].Entry != "entry" {
		t.Errorf("trash: %+v", fleet.Trash)
	}
	fleet = then(fleet, Restored{Agent: fleet.Trash[0].Agent})
	if a, there := fleet.Agent("aaaaaaaa"); !there || a.Name != "as it was" || len(fleet.Trash) != 0 {
		t.Errorf("restored: %+v, trash %+v", a, fleet.Trash)
	}
	if r, _ := fleet.Request("1"); r.State != Superseded {
		t.Errorf("its request came back: %+v", r)
	}
}

func TestNewsIsWhatHappenedSinceThePersonLeft(t *testing.T) {
	fleet := story(created("aaaaaaaa"), StatusChanged{Status: Failed})
	if len(fleet.News) != 0 {
		t.Error("news before anyone left")
	}
	fleet = then(fleet, Left{})
	for _, body := range []Body{StatusChanged{Status: Working}, Measured{}, Noticed{}} {
		if fleet = then(fleet, body); len(fleet.News) != 0 {
			t.Errorf("%s is no headline", body.kind())
		}
	}
	for range keptNews + 5 {
		fleet = then(fleet, StatusChanged{Status: Failed})
	}
	if len(fleet.News) != keptNews || fleet.News[keptNews-1].Seq != fleet.Seq {
		t.Errorf("%d kept, the newest %d of %d", len(fleet.News), fleet.News[len(fleet.News)-1].Seq, fleet.Seq)
	}
	if fleet = then(fleet, Left{}); len(fleet.News) != 0 {
		t.Error("old news after leaving again")
	}
}

func TestOldSettledRequestsGoAndOpenOnesStay(t *testing.T) {
	fleet := story(created("aaaaaaaa"), asked("open", "aaaaaaaa"), asked("allowed", "aaaaaaaa"),
		Decided{Verdict: Verdict{Request: "allowed", Allow: true}})
	for i := range keptSettled + 50 {
		id := RequestID(fmt.Sprint(i))
		fleet = then(then(fleet, asked(id, "aaaaaaaa")), Decided{Verdict: Verdict{Request: id}})
	}
	for _, id := range []RequestID{"open", "allowed", RequestID(fmt.Sprint(keptSettled + 49))} {
		if _, there := fleet.Request(id); !there {
			t.Errorf("request %s is gone", id)
		}
	}
	if _, there := fleet.Request("0"); there {
		t.Error("the oldest settled request is still there")
	}
	if n := len(fleet.Requests); n > keptSettled+3 {
		t.Errorf("%d requests are kept", n)
	}
}

func TestAgentNeedsAPersonWhenItAsksWaitsOrFailed(t *testing.T) {
	for _, status := range Statuses {
		fleet := story(created("aaaaaaaa"), StatusChanged{Status: status})
		a, _ := fleet.Named("name-aaaaaaaa")
		if got, want := fleet.NeedsPerson(a), status == Waiting || status == Failed; got != want {
			t.Errorf("%s: %v", status, got)
		}
		if fleet = then(fleet, asked("1", "aaaaaaaa")); !fleet.NeedsPerson(a) {
			t.Errorf("%s, with a request: no", status)
		}
		if fleet = then(fleet, Decided{Verdict: Verdict{Request: "1"}}); fleet.NeedsPerson(a) != (status == Waiting || status == Failed) {
			t.Errorf("%s, with its request denied: still", status)
		}
	}
}

func TestPlanHashChangesWithEveryField(t *testing.T) {
	n := 0
	var plan Plan
	fill(reflect.ValueOf(&plan).Elem(), &n)
	seen := map[string]string{plan.Hash(): "the plan itself"}
	if copied := plan; copied.Hash() != plan.Hash() {
		t.Fatal("one plan has two hashes")
	}
	leaves(reflect.ValueOf(&plan).Elem(), "Plan", func(path string, leaf reflect.Value) {
		before := reflect.ValueOf(leaf.Interface())
		fill(leaf, &n)
		if leaf.Kind() == reflect.Bool {
			leaf.SetBool(false)
		}
		if was, same := seen[plan.Hash()]; same {
			t.Errorf("with another %s the hash is that of %s", path, was)
		}
		seen[plan.Hash()] = path
		leaf.Set(before)
	})
	if len(seen) < reflect.TypeFor[Plan]().NumField() {
		t.Fatalf("only %d places were changed", len(seen))
	}
}

// leaves visits every place in v that can hold another value: fields,
// elements, and slices as a whole (by one element less).
func leaves(v reflect.Value, path string, visit func(string, reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			leaves(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			leaves(v.Index(i), fmt.Sprintf("%s[%d]", path, i), visit)
		}
		whole := reflect.ValueOf(v.Interface())
		v.Set(v.Slice(0, v.Len()-1))
		visit(path+" (shorter)", reflect.New(reflect.TypeFor[int]()).Elem())
		v.Set(whole)
	default:
		visit(path, v)
	}
}

func TestRedFlagsAreTheOnesThatNeedASecondChord(t *testing.T) {
	plan := Plan{Flags: []Flag{{Name: "merge"}, {Name: "force", Red: true}, {Name: "also"}, {Name: "unpushed", Red: true}}}
	red := plan.Red()
	if len(red) != 2 || red[0].Name != "force" || red[1].Name != "unpushed" {
		t.Fatalf("%+v", red)
	}
}

func TestCommitIsAFullObjectName(t *testing.T) {
	for text, want := range map[string]bool{
		strings.Repeat("a", 40): true, strings.Repeat("0", 64): true,
		"": false, "abc": false, strings.Repeat("a", 41): false, strings.Repeat("A", 40): false,
		strings.Repeat("a", 39) + "\n": false, strings.Repeat("a", 40) + "\n": false, "-" + strings.Repeat("a", 39): false,
	} {
		if got := Commit(text).Valid(); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// FuzzEvent: whatever is on disk or on the wire is refused or is an event
// that encodes to something which decodes to the same.
func FuzzEvent(f *testing.F) {
	f.Add([]byte(`{"seq":1,"at":"2026-03-04T12:00:00Z","agent":"aaaaaaaa","kind":"noticed","body":{"kind":"info","text":"x"}}`))
	f.Add([]byte(`{"seq":2,"kind":"decided","body":{"verdict":{"request":"1","allow":true,"by":{}}}}`))
	f.Add([]byte(`{"kind":"left","body":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var e Event
		if json.Unmarshal(data, &e) != nil {
			return
		}
		once, err := json.Marshal(e)
		if err != nil {
			return // a year past 9999 decodes and does not encode
		}
		var again Event
		if err := json.Unmarshal(once, &again); err != nil {
			t.Fatal(err)
		}
		if got := text(t, again); got != string(once) {
			t.Fatalf("became %s, was %s", got, once)
		}
		_ = Fleet{}.Apply(e)
	})
}
