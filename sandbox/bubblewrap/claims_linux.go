package bubblewrap

import "fletch/sandbox"

// Claims is what the engine guarantees. It is about what a program inside can
// do, whatever it runs; a fault in the kernel breaks all of it.
func (e *Engine) Claims() []sandbox.Claim {
	return []sandbox.Claim{
		{Name: sandbox.ClaimWrites, Held: "enforced"},
		{Name: sandbox.ClaimReads, Held: "enforced"},
		{Name: sandbox.ClaimUserGit, Held: "enforced"},
		{Name: sandbox.ClaimState, Held: "enforced"},
		{
			Name: sandbox.ClaimNetwork, Held: "partial",
			Reason: "the proxy is the only way out, but every host it allows can carry away what is in view",
		},
		{
			Name: sandbox.ClaimCredentials, Held: "partial",
			Reason: "no key, agent or keyring of yours is in view, but a login you copy in or a variable you pass can be read",
		},
		{Name: sandbox.ClaimProcesses, Held: "enforced"},
		{
			Name: sandbox.ClaimLimits, Held: "partial",
			Reason: "processes, open files and temporary files are bounded; CPU is not, the workspace can fill the disk, and memory is bounded for all processes together only where a control group can be used",
		},
		{
			Name: sandbox.ClaimKernel, Held: "unenforced",
			Reason: "the program runs on your kernel; a virtual machine would be needed",
		},
	}
}
