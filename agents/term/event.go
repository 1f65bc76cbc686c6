package term

// Event is what a program tells its terminal besides what it shows. All of
// it is the program's word: good for showing, never for deciding.
//
//sumtype:decl
type Event interface{ event() }

type (
	// Bell is BEL.
	Bell struct{}
	// Title is a new window title, sanitised, 256 bytes at most.
	Title struct{ Text string }
	// Notification is a desktop notification (OSC 9, 99, 777), sanitised, 256
	// bytes at most.
	Notification struct{ Text string }
	// Status is what the program says it is doing (OSC 7501): State is one of
	// idle, working, blocked, done, error and clear; Kind, for blocked, one of
	// permission, question, auth or empty; Text is sanitised, 256 bytes at
	// most.
	Status struct{ State, Kind, Text string }
)

func (Bell) event()         {}
func (Title) event()        {}
func (Notification) event() {}
func (Status) event()       {}
