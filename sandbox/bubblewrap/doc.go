// Package bubblewrap is the engine "native" on Linux. It builds a view from
// nothing with bubblewrap (the program bwrap), lets fletch's own first process
// finish the seal inside it, checks both from outside, and only then lets the
// program start. It decides nothing about what an agent may see: that is the
// Spec.
//
// How a start goes, each step ending it when it fails:
//
//  1. Every source is opened without following a link, and handed to bwrap
//     as a descriptor. Nothing that matters is in bwrap's argv or environment.
//  2. bwrap makes private user, pid, mount, network, ipc, uts and cgroup
//     namespaces and the view, says which process is the first inside, and
//     waits.
//  3. Where RLIMIT_NPROC does nothing (root), that process goes into a control
//     group with a limit of its own. bwrap is told to go on.
//  4. "fletch box" checks the view, opens the proxy's listening socket, takes
//     away what is left (package box), and reports. It waits.
//  5. The report and what /proc says from outside are compared with what was
//     asked for. Then box gets the word and becomes the program.
//
// bwrap stays outside as the parent of the sandbox's first process, which
// reaps what is orphaned in it; the program is that process's child. When
// bwrap or the process that started it dies, the kernel kills everything
// inside.
package bubblewrap
