package agents

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"fletch/state"
)

// nameForm is what an agent may be called: the name is part of a branch, a
// path and a shell word.
var nameForm = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// maxName keeps a row readable and a branch name short.
const maxName = 32

var (
	firstWords  = strings.Fields("amber ash birch blue brisk calm cedar clear copper coral dawn deep dry dusk elm fern fir flint gold green grey hazel ivory jade keen larch lime linen maple mild misty moss north oak ochre olive pale pearl pine plain plum quiet red reed river rowan ruby rust sage sand silver slate snow soft south spruce steel still stone swift tall teal umber warm west white wild willow")
	secondWords = strings.Fields("bay beach bear birch bird brook cave cedar cliff cloud cove crane creek crow dale deer delta dove dune eagle elk fall falcon field finch fjord forest fox gate glade glen grove gull hare harbor hawk heath heron hill isle jay lake lark leaf ledge marsh mesa mill moor moth oak orchard otter owl path peak pier pond quail raven reef ridge river robin rock seal shore sky spring star stork swan tern tide trail vale wave well wind wolf wood wren")
)

// newID mints an agent's id: 8 characters of a-z and 2-7, 40 random bits.
func newID() state.AgentID {
	var raw [5]byte
	_, _ = rand.Read(raw[:]) // crypto/rand.Read never fails; it ends the program instead
	return state.AgentID(strings.ToLower(base32.StdEncoding.EncodeToString(raw[:])))
}

// pickNames returns n names that taken does not hold: the wanted one, a fresh
// pair of words, or for copies one stem with -1, -2, … A wanted name that is
// odd or taken is refused.
func pickNames(wanted string, n int, taken func(string) bool) ([]string, error) {
	if wanted != "" {
		if err := checkName(wanted); err != nil {
			return nil, err
		}
		return numbered(wanted, n, taken)
	}
	for range 200 {
		if names, err := numbered(pick(firstWords)+"-"+pick(secondWords), n, taken); err == nil {
			return names, nil
		}
	}
	return nil, refuse("name-taken", "remove an agent, or give a name with --name", "every name that was tried is taken")
}

func numbered(stem string, n int, taken func(string) bool) ([]string, error) {
	names := []string{stem}
	if n > 1 {
		names = names[:0]
		for i := 1; i <= n; i++ {
			names = append(names, stem+"-"+strconv.Itoa(i))
		}
	}
	for _, name := range names {
		if taken(name) {
			return nil, refuse("name-taken", "give another one with --name, or none", "an agent called %s is there already", name)
		}
	}
	return names, nil
}

func checkName(name string) error {
	if len(name) > maxName || !nameForm.MatchString(name) {
		return refuse("bad-name", fmt.Sprintf("use a-z, 0-9 and single dashes, at most %d characters, a letter first", maxName),
			"%q cannot be an agent's name", name)
	}
	return nil
}

func pick(words []string) string {
	i, err := rand.Int(rand.Reader, big.NewInt(int64(len(words))))
	if err != nil {
		return words[0]
	}
	return words[i.Int64()]
}

// Refusal is something a person asked for that cannot be done as asked.
type Refusal struct {
	Word string // stable, for scripts
	What string
	Way  string // the way out
}

func (r *Refusal) Error() string { return r.What }

// Code is the stable word for scripts.
func (r *Refusal) Code() string { return r.Word }

// Hint is the way out.
func (r *Refusal) Hint() string { return r.Way }

func refuse(code, hint, format string, args ...any) error {
	return &Refusal{Word: code, What: fmt.Sprintf(format, args...), Way: hint}
}
