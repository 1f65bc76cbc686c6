package box

import "golang.org/x/sys/unix"

// rule says what happens to one system call. A call without a rule is
// allowed: the view, the private namespaces and the missing capabilities
// confine the ordinary ones, and the list below takes away what reaches
// around them or has a long record of faults in the kernel.
type rule struct {
	name         string
	amd64, arm64 int // the call's number, -1 where it does not exist
	errno        unix.Errno
	// when holds the cases in which the call is denied; without any it
	// always is.
	when []allOf
}

// allOf is one case: every part must hold.
type allOf []part

// part compares the low 32 bits of one argument, under a mask. The kernel
// itself looks at no more of these arguments: comparing all 64 bits would let
// a call pass that differs only in the half that is thrown away
// (CVE-2019-10063).
type part struct {
	arg    int
	mask   uint32
	in     bool // denied when the value is among values, else when it is not
	values []uint32
}

const (
	all32 = 0xffffffff

	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

	// From <asm/ioctls.h>; the same on both machines.
	ioctlSTI   = 0x5412 // types into a terminal
	ioctlLinux = 0x541c // pastes into a console
	ioctlSETD  = 0x5423 // loads a line discipline
)

// rules is the filter as data. The order is of no matter to the result.
var rules = []rule{
	// Asynchronous calls pass by any filter; key rings reach the user's own.
	deny("io_uring_setup", 425, 425), deny("io_uring_enter", 426, 426), deny("io_uring_register", 427, 427),
	deny("add_key", 248, 217), deny("request_key", 249, 218), deny("keyctl", 250, 219),
	deny("bpf", 321, 280), deny("perf_event_open", 298, 241), deny("userfaultfd", 323, 282),
	deny("fanotify_init", 300, 262),

	// Mounts and namespaces.
	deny("mount", 165, 40), deny("umount2", 166, 39), deny("pivot_root", 155, 41), deny("chroot", 161, 51),
	deny("move_mount", 429, 429), deny("open_tree", 428, 428), deny("open_tree_attr", 467, 467),
	deny("fsopen", 430, 430), deny("fsconfig", 431, 431), deny("fsmount", 432, 432), deny("fspick", 433, 433),
	deny("mount_setattr", 442, 442), deny("setns", 308, 268), deny("unshare", 272, 97),
	deny("open_by_handle_at", 304, 265),
	// The C library asks for threads with clone3 first, whose flags a filter
	// cannot see, and takes clone when there is none.
	{name: "clone3", amd64: 435, arm64: 435, errno: unix.ENOSYS},
	{name: "clone", amd64: 56, arm64: 220, errno: unix.EPERM, when: []allOf{
		{{arg: 0, mask: newNamespaces, values: []uint32{0}}},
	}},

	// Other processes.
	deny("ptrace", 101, 117), deny("process_vm_readv", 310, 270), deny("process_vm_writev", 311, 271),
	deny("pidfd_getfd", 438, 438), deny("kcmp", 312, 272),

	// The machine.
	deny("kexec_load", 246, 104), deny("kexec_file_load", 320, 294),
	deny("create_module", 174, -1), deny("init_module", 175, 105), deny("finit_module", 313, 273),
	deny("delete_module", 176, 106), deny("get_kernel_syms", 177, -1), deny("query_module", 178, -1),
	deny("swapon", 167, 224), deny("swapoff", 168, 225), deny("reboot", 169, 142), deny("syslog", 103, 116),
	deny("acct", 163, 89), deny("quotactl", 179, 60), deny("quotactl_fd", 443, 443), deny("vhangup", 153, 58),
	deny("iopl", 172, -1), deny("ioperm", 173, -1), deny("modify_ldt", 154, -1),
	deny("nfsservctl", 180, 42), deny("lookup_dcookie", 212, 18), deny("_sysctl", 156, -1),
	deny("uselib", 134, -1), deny("ustat", 136, -1), deny("sysfs", 139, -1),
	{name: "personality", amd64: 135, arm64: 92, errno: unix.EPERM, when: []allOf{
		{{arg: 0, mask: all32, values: []uint32{0, 0xffffffff}}}, // the default, and asking
	}},

	// Terminals and devices.
	{name: "ioctl", amd64: 16, arm64: 29, errno: unix.EPERM, when: []allOf{
		{{arg: 1, mask: all32, in: true, values: []uint32{ioctlSTI, ioctlLinux, ioctlSETD}}},
	}},
	{name: "mknod", amd64: 133, arm64: -1, errno: unix.EPERM, when: []allOf{
		{{arg: 1, mask: unix.S_IFMT, in: true, values: []uint32{unix.S_IFCHR, unix.S_IFBLK}}},
	}},
	{name: "mknodat", amd64: 259, arm64: 33, errno: unix.EPERM, when: []allOf{
		{{arg: 2, mask: unix.S_IFMT, in: true, values: []uint32{unix.S_IFCHR, unix.S_IFBLK}}},
	}},

	// Sockets: local ones, IP, and what getifaddrs, ss and udev need of
	// netlink. Everything else is a part of the kernel that no build needs.
	{name: "socket", amd64: 41, arm64: 198, errno: unix.EPERM, when: sockets},
	{name: "socketpair", amd64: 53, arm64: 199, errno: unix.EPERM, when: sockets},
}

var sockets = []allOf{
	{{arg: 0, mask: all32, values: []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}}},
	{
		{arg: 0, mask: all32, in: true, values: []uint32{unix.AF_INET, unix.AF_INET6}},
		{arg: 1, mask: 0xf, in: true, values: []uint32{unix.SOCK_RAW, unix.SOCK_PACKET}},
	},
	{
		{arg: 0, mask: all32, in: true, values: []uint32{unix.AF_NETLINK}},
		{arg: 2, mask: all32, values: []uint32{unix.NETLINK_ROUTE, unix.NETLINK_SOCK_DIAG, unix.NETLINK_KOBJECT_UEVENT}},
	},
}

func deny(name string, amd64, arm64 int) rule {
	return rule{name: name, amd64: amd64, arm64: arm64, errno: unix.EPERM}
}
