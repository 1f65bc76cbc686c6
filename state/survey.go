package state

// Survey is what a newcomer, the new-agent form and doctor want to know about
// this machine.
type Survey struct {
	Version   string           `json:"version"`
	Home      string           `json:"home"`
	Engines   []EngineSurvey   `json:"engines"`
	Providers []ProviderSurvey `json:"providers"`
	Here      Here             `json:"here"`
}

// EngineSurvey is one engine: usable, or not with cause and fix.
type EngineSurvey struct {
	Name   string  `json:"name"`
	Tier   string  `json:"tier"`
	Usable bool    `json:"usable"`
	Detail string  `json:"detail,omitempty"` // "bubblewrap 0.8.0, Landlock 7, private network"
	Cause  string  `json:"cause,omitempty"`
	Fix    string  `json:"fix,omitempty"`
	Claims []Claim `json:"claims"`
}

// ProviderSurvey is one agent CLI; Why says why it cannot be chosen.
type ProviderSurvey struct {
	Name    string `json:"name"`
	Usable  bool   `json:"usable"`
	Version string `json:"version,omitempty"`
	Why     string `json:"why,omitempty"` // "not on PATH"
	Fix     string `json:"fix,omitempty"`
}

// Here is the directory the client was started in.
type Here struct {
	Repo        string   `json:"repo,omitempty"` // empty: not in a repository
	Branch      string   `json:"branch,omitempty"`
	Branches    []string `json:"branches,omitempty"`
	Uncommitted int      `json:"uncommitted"`
	Why         string   `json:"why,omitempty"` // why no agent can start here
}
