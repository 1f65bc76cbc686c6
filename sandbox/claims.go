package sandbox

// The names of the claims, the same for every engine, so that one table can
// hold all of them.
const (
	ClaimWrites      = "writes-confined"     // it writes only where a mount says so
	ClaimReads       = "reads-confined"      // it reads only what is in view
	ClaimUserGit     = "user-git-untouched"  // the user's repositories cannot be written
	ClaimState       = "fletch-state-hidden" // fletch's records and other agents are not in view
	ClaimNetwork     = "network-confined"    // the proxy is the only way out
	ClaimCredentials = "credentials-held-outside"
	ClaimProcesses   = "processes-apart" // it sees and signals only its own processes
	ClaimLimits      = "limits-held"     // processes, memory and temporary files are bounded
	ClaimKernel      = "kernel-apart"    // a fault in the host's kernel is not in reach
)

// ClaimNames lists every claim in the order of a table.
func ClaimNames() []string {
	return []string{
		ClaimWrites, ClaimReads, ClaimUserGit, ClaimState, ClaimNetwork,
		ClaimCredentials, ClaimProcesses, ClaimLimits, ClaimKernel,
	}
}
