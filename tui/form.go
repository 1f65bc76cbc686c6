package tui

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
)

// row of the new-agent form that has the keyboard.
type formField uint8

const (
	fieldTask formField = iota
	fieldRepo
	fieldBase
	fieldProvider
	fieldCopies
	fieldEngine
	fieldName
	formFields = iota
)

// Bounds of what can be typed.
const (
	taskBytes = 64 << 10
	pathBytes = 4096
	nameBytes = 40
)

// form is the new-agent form. It is filled in by what the machine can do as
// soon as that is known.
type form struct {
	focus            formField
	task, repo, name field
	base             string
	provider, engine string
	copies           int

	survey  *state.Survey
	at      string // the directory that the survey is about
	dir     string
	home    string
	trouble string    // why it cannot start
	sure    time.Time // "direct" was asked about; enter counts from here on
}

// openForm opens the form with the last choices, or with those of like.
func (m Model) openForm(like *state.Agent) (Model, tea.Cmd) {
	if !m.canStart() {
		m.toast = warn("fletch starts no agent without a sandbox; D shows what is missing")
		return m, nil
	}
	d := m.draft
	if like != nil {
		d = draft{Task: like.Task, Repo: like.Repo, Base: like.Base.Ref, Provider: like.Provider, Engine: like.Engine}
	}
	f := form{
		task: newField(d.Task, true, taskBytes), name: newField(d.Name, false, nameBytes),
		base: d.Base, provider: d.Provider, engine: d.Engine, copies: max(1, d.Copies),
		dir: m.o.Dir, home: m.o.Home,
	}
	repo := d.Repo
	if m.survey != nil && m.survey.Here.Repo != "" && like == nil {
		repo = m.survey.Here.Repo
	}
	f.repo = newField(tilde(repo, m.o.Home), false, pathBytes)
	if m.survey != nil {
		f = f.surveyedAt(*m.survey, m.o.Dir)
	}
	m.dialogs = append(m.dialogs, f)
	return m, m.surveyFor(f.repository())
}

// surveyFor asks what is in a directory, for the form.
func (m Model) surveyFor(dir string) tea.Cmd {
	if dir == "" {
		return nil
	}
	hub := m.o.Hub
	ctx := m.ctx
	return func() tea.Msg {
		s, err := hub.Survey(ctx, dir)
		return formSurveyMsg{dir, s, err}
	}
}

type formSurveyMsg struct {
	dir    string
	survey state.Survey
	err    error
}

func (msg formSurveyMsg) take(m Model) Model {
	m.dialogs = slices.Clone(m.dialogs)
	for i, d := range m.dialogs {
		f, ok := d.(form)
		switch {
		case !ok || f.repository() != msg.dir:
		case msg.err != nil:
			f.trouble = msg.err.Error()
			m.dialogs[i] = f
		default:
			m.dialogs[i] = f.surveyedAt(msg.survey, msg.dir)
		}
	}
	return m
}

func (form) scope() scope        { return inForm }
func (f form) armsAt() time.Time { return f.sure }
func (form) height() int         { return 0 }
func (f form) paste(t string) dialog {
	if edited := f.text(); edited != nil {
		*edited(&f) = edited(&f).insert(t)
	}
	return f
}

func (f form) surveyed(s state.Survey) dialog {
	if f.survey == nil {
		return f.surveyedAt(s, f.dir)
	}
	return f
}

// surveyedAt takes over what the machine can do, and chooses what works where
// nothing was chosen or what was chosen does not work.
func (f form) surveyedAt(s state.Survey, dir string) form {
	f.survey, f.at = &s, dir
	usable := func(name string) bool {
		return slices.ContainsFunc(s.Providers, func(p state.ProviderSurvey) bool { return p.Name == name && p.Usable })
	}
	if !usable(f.provider) {
		f.provider = ""
		for _, p := range s.Providers {
			if p.Usable {
				f.provider = p.Name
				break
			}
		}
	}
	engine := func(e state.EngineSurvey) bool { return e.Name == f.engine && e.Usable }
	if !slices.ContainsFunc(s.Engines, engine) {
		f.engine = ""
		for _, e := range s.Engines {
			if e.Usable && e.Name != "direct" {
				f.engine = e.Name
				break
			}
		}
	}
	if !slices.Contains(s.Here.Branches, f.base) {
		f.base = s.Here.Branch
	}
	return f
}

// text is the field under the keyboard, if it holds text.
func (f form) text() func(*form) *field {
	switch f.focus {
	case fieldTask:
		return func(f *form) *field { return &f.task }
	case fieldRepo:
		return func(f *form) *field { return &f.repo }
	case fieldName:
		return func(f *form) *field { return &f.name }
	case fieldBase, fieldProvider, fieldCopies, fieldEngine:
	}
	return nil
}

func (f form) key(name, text string, keys keyMap, now time.Time) (dialog, outcome) {
	if name != "enter" {
		f.trouble, f.sure = "", time.Time{}
	}
	switch {
	case name == "esc":
		return f, outcome{closes: true, then: f.keep}
	case name == "enter":
		return f.submit(now)
	case name == "tab" || name == "down" && f.focus != fieldTask:
		return f.to(1)
	case name == "shift+tab" || name == "up" && f.focus != fieldTask:
		return f.to(-1)
	case name == "ctrl+j" && f.focus == fieldTask:
		f.task = f.task.insert("\n")
		return f, outcome{}
	}
	edit := f.text()
	if edit == nil {
		if slowEsc(name) {
			return f, outcome{closes: true, then: f.keep, rest: true}
		}
		return f.choose(name), outcome{}
	}
	if edited, ok := edit(&f).edit(name); ok {
		*edit(&f) = edited
	} else if text != "" && !strings.HasPrefix(name, "ctrl+") && !strings.HasPrefix(name, "alt+") {
		*edit(&f) = edit(&f).insert(text)
	} else if slowEsc(name) {
		return f, outcome{closes: true, then: f.keep, rest: true}
	}
	return f, outcome{}
}

// to moves to another field. A repository that was changed is looked at.
func (f form) to(by int) (dialog, outcome) {
	left := f.focus
	f.focus = formField((int(f.focus) + by + formFields) % formFields)
	if left == fieldRepo && f.repository() != f.at && f.repository() != "" {
		dir := f.repository()
		return f, outcome{then: func(m Model) (Model, tea.Cmd) { return m, m.surveyFor(dir) }}
	}
	return f, outcome{}
}

// choose moves in a field of choices, over those that cannot be chosen.
func (f form) choose(name string) form {
	by := 1
	switch name {
	case "left", "h":
		by = -1
	case "right", "l", "space":
	default:
		if f.focus == fieldCopies && len(name) == 1 && name[0] >= '1' && name[0] <= '9' {
			f.copies = int(name[0] - '0')
		}
		return f
	}
	switch f.focus {
	case fieldCopies:
		f.copies = max(1, min(f.copies+by, 9))
	case fieldBase:
		if f.survey != nil {
			f.base = step(f.survey.Here.Branches, f.base, by)
		}
	case fieldProvider:
		f.provider = step(f.providers(true), f.provider, by)
	case fieldEngine:
		f.engine = step(f.engines(true), f.engine, by)
	case fieldTask, fieldRepo, fieldName:
	}
	return f
}

// step is the neighbour of a choice, around the end.
func step(all []string, at string, by int) string {
	if len(all) == 0 {
		return at
	}
	i := slices.Index(all, at)
	return all[((i+by)%len(all)+len(all))%len(all)]
}

func (f form) providers(usable bool) (names []string) {
	if f.survey == nil {
		return nil
	}
	for _, p := range f.survey.Providers {
		if p.Usable == usable {
			names = append(names, p.Name)
		}
	}
	return names
}

func (f form) engines(usable bool) (names []string) {
	if f.survey == nil {
		return nil
	}
	for _, e := range f.survey.Engines {
		if e.Usable == usable {
			names = append(names, e.Name)
		}
	}
	return names
}

// repository is the directory that was typed, absolute.
func (f form) repository() string {
	path := strings.TrimSpace(f.repo.text)
	if rest, ok := strings.CutPrefix(path, "~"); ok && f.home != "" && (rest == "" || rest[0] == '/') {
		path = f.home + rest
	}
	if path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(f.dir, path)
	}
	return path
}

// submit starts the agents, or says what is missing.
func (f form) submit(now time.Time) (dialog, outcome) {
	switch {
	case f.survey == nil:
		f.trouble = "still looking at this machine"
	case f.repository() == "":
		f.trouble, f.focus = "which repository?", fieldRepo
	case f.at == f.repository() && f.survey.Here.Repo == "":
		f.trouble, f.focus = orWord(f.survey.Here.Why, "not a git repository"), fieldRepo
	case f.provider == "":
		f.trouble = "no agent program works here"
	case f.engine == "":
		f.trouble = "no sandbox works here"
	case f.engine == "direct" && (f.sure.IsZero() || now.Before(f.sure)):
		f.trouble = "direct is no sandbox: it can read and change all that you can. enter again starts it so"
		f.sure = now.Add(confirmArms)
	default:
		return f, outcome{closes: true, then: f.launch}
	}
	return f, outcome{}
}

// keep remembers what was typed.
func (f form) keep(m Model) (Model, tea.Cmd) {
	m.draft = draft{
		Task: f.task.text, Name: strings.TrimSpace(f.name.text), Repo: f.repository(), Base: f.base,
		Provider: f.provider, Engine: f.engine, Copies: f.copies,
	}
	return m, m.saveDraft()
}

type launchedMsg struct{ agents []state.Agent }

func (f form) launch(m Model) (Model, tea.Cmd) {
	m, save := f.keep(m)
	cols, rows := typingSize(m.w, m.h, false)
	l := state.Launch{
		Repo: f.repository(), Base: f.base, Provider: f.provider, Engine: f.engine,
		Name: strings.TrimSpace(f.name.text), Task: strings.TrimSpace(f.task.text), Copies: f.copies,
		Cols: cols, Rows: rows,
	}
	hub := m.o.Hub
	m.toast = inform("starting " + f.provider + " …")
	return m, tea.Batch(save, m.do("starting "+f.provider, func(ctx context.Context) (tea.Msg, error) {
		agents, err := hub.Launch(ctx, l)
		return launchedMsg{agents}, err
	}))
}

func (msg launchedMsg) fold(m Model) (Model, tea.Cmd) {
	m.draft.Task, m.draft.Name, m.draft.Copies = "", "", 1
	if len(msg.agents) == 0 {
		return m, m.saveDraft()
	}
	m.list.want = msg.agents[0].ID
	m.list.stale = true
	names := make([]string, 0, len(msg.agents))
	for _, a := range msg.agents {
		names = append(names, a.Name)
	}
	m.toast = good("started " + strings.Join(names, ", ")).from(m.now)
	return m, m.saveDraft()
}

// tilde writes a path below home as people do.
func tilde(path, home string) string {
	if home == "" || home == "/" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, home); ok && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return path
}
