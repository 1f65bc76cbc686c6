// Package mailbox is the host's side of the directory through which an agent
// asks for what it cannot do itself: files in, files out.
//
// The agent writes requests/<id>.json (by rename from .tmp); the host writes
// responses/<id>.json, which the agent can only read. Everything under
// requests is hostile: names, kinds of file, sizes and contents are the
// agent's choice and may change at any moment. Whatever it plants there
// delays and costs at most itself.
package mailbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"regexp"
	"sync"
	"time"

	"fletch/home"
	"fletch/state"
)

const (
	// maxLetter is the largest request that is read.
	maxLetter = 1 << 20
	// maxOpen is how many messages of one agent may wait for a reply.
	maxOpen = 64
	// staleAfter is when a message that waits may lose its place to a new
	// one: whoever sent it stopped listening after 100 s.
	staleAfter = 5 * time.Minute
	// grace is how long a file may stay unreadable before that is answered.
	grace = 5 * time.Second
	// maxKept is how many responses stay on disk.
	maxKept = 1024
	// maxSeen is how many messages one agent may send in one life of the
	// hub.
	maxSeen = 1 << 20
)

var (
	// ErrAnswered is a second reply to one message.
	ErrAnswered = errors.New("already answered")
	// ErrWatched is a second Watch of one box at the same time.
	ErrWatched = errors.New("already watched")
)

var (
	idForm    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	agentForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
)

// Message is one request of an agent. All of it is the agent's words.
type Message struct {
	ID   string          // [A-Za-z0-9_-]{1,64}
	Op   string          // [a-z][a-z0-9-]{0,31}
	Args json.RawMessage // a JSON object; {} when the agent gave none
}

// Decode reads Args into a struct; unknown fields are refused.
func (m Message) Decode(into any) error {
	if err := strict(m.Args, into); err != nil {
		return fmt.Errorf("reading the arguments of %s: %w", m.Op, err)
	}
	return nil
}

// Box is one agent's mailbox. Keep one for as long as the hub serves the
// agent: what was dispatched is remembered in it. Its methods may be called
// from any goroutine.
type Box struct {
	requests, responses folder
	watched             string // path of requests, for the kernel's notices
	seed                maphash.Seed

	mu       sync.Mutex
	watching bool
	seen     map[uint64]struct{} // dispatched or answered in this process
	open     map[string]time.Time
	kept     []string // ids with a response on disk, oldest first
}

// Open makes the directories of agent's mailbox (0700) where they are missing
// and holds them open, so that a later rename of a path changes nothing.
// Close it when the agent is gone.
func Open(h home.Home, agent state.AgentID) (*Box, error) {
	if !agentForm.MatchString(string(agent)) {
		return nil, fmt.Errorf("opening a mailbox: %q is no agent id", string(agent))
	}
	id := string(agent)
	for _, dir := range []string{h.Mailbox(id), h.Requests(id), h.Responses(id)} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("opening the mailbox of %s: %w", id, err)
		}
	}
	requests, err := openFolder(h.Requests(id))
	if err != nil {
		return nil, fmt.Errorf("opening the mailbox of %s: %w", id, err)
	}
	responses, err := openFolder(h.Responses(id))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the mailbox of %s: %w", id, err), requests.Close())
	}
	b := &Box{
		requests: requests, responses: responses, watched: h.Requests(id),
		seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}, open: map[string]time.Time{},
	}
	if err := b.tidy(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the mailbox of %s: %w", id, err), b.Close())
	}
	return b, nil
}

// Close lets go of the directories. End Watch first.
func (b *Box) Close() error {
	return errors.Join(b.requests.Close(), b.responses.Close())
}

// tidy learns which responses are there and drops what a crash left half
// written.
func (b *Box) tidy() error {
	names, more, err := b.responses.list(func(string) bool { return true }, 4*maxKept)
	if err != nil {
		return err
	}
	for _, name := range names {
		if id, ok := letterID(name); ok {
			b.kept = append(b.kept, id)
			continue
		}
		if err := b.responses.remove(name); err != nil {
			return err
		}
	}
	if more {
		return errors.New("its responses directory holds files that fletch did not write")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prune()
	return nil
}

// Answered reports whether id has had its reply, in this process or an
// earlier one; a reply that could not be written counts.
func (b *Box) Answered(id string) bool {
	if !idForm.MatchString(id) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answered(id)
}

func (b *Box) answered(id string) bool {
	if _, seen := b.seen[b.hash(id)]; seen {
		_, open := b.open[id]
		return !open
	}
	return b.responses.has(id + ".json")
}

// remember keeps what was dealt with, within bounds; past them the response
// on disk has to do.
func (b *Box) remember(id string) {
	if len(b.seen) < maxSeen {
		b.seen[b.hash(id)] = struct{}{}
	}
}

func (b *Box) hash(id string) uint64 { return maphash.String(b.seed, id) }

// Reply answers message id, once: a second reply is [ErrAnswered]. The
// response appears under its name as a whole or not at all. The request file
// is removed even when the response could not be written, since a request
// must never be carried out twice.
func (b *Box) Reply(id string, r Reply) error {
	if !idForm.MatchString(id) {
		return fmt.Errorf("replying: %q is no message id", id)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answered(id) {
		return fmt.Errorf("replying to %s: %w", id, ErrAnswered)
	}
	b.remember(id)
	delete(b.open, id)
	err := b.responses.write(id+".json", r.encode(id))
	if err == nil {
		b.kept = append(b.kept, id)
		b.prune()
	}
	gone := b.requests.remove(id + ".json")
	if err := errors.Join(err, gone); err != nil {
		return fmt.Errorf("replying to %s: %w", id, err)
	}
	return nil
}

// prune keeps an agent that asks without end from filling the disk with
// answers.
func (b *Box) prune() {
	for len(b.kept) > maxKept {
		// One that stays is only a file too many.
		_ = b.responses.remove(b.kept[0] + ".json")
		b.kept = b.kept[1:]
	}
}

// Watch calls handle for each message, oldest first, those that are there
// already included, until ctx ends; then it returns nil. handle is called
// from one goroutine, at most once per id in the life of b, and never for an
// id that has a response; it must hand the work on and return. Everything
// that cannot be a message is answered here, if an id is legible.
//
// While nothing happens, nothing runs: the kernel tells of new files. An
// agent that floods its mailbox is read at a bounded pace.
func (b *Box) Watch(ctx context.Context, handle func(Message)) error {
	b.mu.Lock()
	if b.watching {
		b.mu.Unlock()
		return fmt.Errorf("watching a mailbox: %w", ErrWatched)
	}
	b.watching = true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.watching = false
		b.mu.Unlock()
	}()
	news, err := b.notices(ctx)
	if err != nil {
		return fmt.Errorf("watching a mailbox: %w", err)
	}
	defer news.Close()
	w := &watch{box: b, handle: handle, late: map[string]time.Time{}}
	err = w.run(ctx, news)
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("watching a mailbox: %w", err)
}
