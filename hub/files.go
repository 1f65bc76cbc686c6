package hub

// What the hub needs of its open files: for itself, its clients, the git
// processes it starts and starts under way, and for each live agent the
// keeper's connection and the mailbox's three.
const (
	ownFiles   = 40
	agentFiles = 4
)

// places is how many agents a hub that may open files files can watch; 0 for
// any number where the limit is not known. An agent too many would be one
// that cannot be heard, so it is refused instead. The limit is the hard one:
// the Go runtime raises the soft one to it when a program starts, which is
// how far the hub and every keeper may go.
func places(files uint64) int {
	if files == 0 {
		return 0
	}
	const most = 100_000 // more than any machine runs
	return int(min(max(files, ownFiles+agentFiles)-ownFiles, most) / agentFiles)
}
