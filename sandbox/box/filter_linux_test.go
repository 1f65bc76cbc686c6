package box

import (
	"encoding/binary"
	"fmt"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	allowed = uint32(unix.SECCOMP_RET_ALLOW)
	refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	missing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	killed  = uint32(unix.SECCOMP_RET_KILL_PROCESS)
)

// judge runs the filter on one call, as the kernel would.
func judge(t *testing.T, m machine, arch uint32, number uint32, args ...uint64) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(program(m, rules))
	if err != nil {
		t.Fatal(err)
	}
	// The interpreter reads words as they come from a network, the kernel as
	// the machine keeps them: each word is turned round here.
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offNumber:], number)
	binary.BigEndian.PutUint32(data[offArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[offArgs+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[offArgs+8*i+4:], uint32(a>>32))
	}
	n, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

func TestTheFilterDecidesTheSameOnEveryMachine(t *testing.T) {
	const high = uint64(1) << 32
	for _, c := range []struct {
		call string
		args []uint64
		want uint32
	}{
		{"read", nil, allowed},
		{"openat", nil, allowed},
		{"execve", nil, allowed},
		{"landlock_restrict_self", nil, allowed},
		{"seccomp", nil, allowed},
		{"io_uring_setup", nil, refused},
		{"io_uring_enter", nil, refused},
		{"io_uring_register", nil, refused},
		{"keyctl", nil, refused},
		{"add_key", nil, refused},
		{"request_key", nil, refused},
		{"bpf", nil, refused},
		{"mount", nil, refused},
		{"umount2", nil, refused},
		{"open_tree_attr", nil, refused},
		{"mount_setattr", nil, refused},
		{"setns", nil, refused},
		{"unshare", nil, refused},
		{"ptrace", nil, refused},
		{"process_vm_readv", nil, refused},
		{"process_vm_writev", nil, refused},
		{"pidfd_getfd", nil, refused},
		{"open_by_handle_at", nil, refused},
		{"clone3", nil, missing},
		{"clone", []uint64{unix.CLONE_VM | unix.CLONE_THREAD}, allowed},
		{"clone", []uint64{uint64(unix.SIGCHLD)}, allowed},
		{"clone", []uint64{unix.CLONE_NEWUSER}, refused},
		{"clone", []uint64{unix.CLONE_NEWNET | uint64(unix.SIGCHLD)}, refused},
		{"clone", []uint64{high | unix.CLONE_NEWUSER}, refused},
		{"ioctl", []uint64{0, unix.TCGETS}, allowed},
		{"ioctl", []uint64{0, unix.TIOCSTI}, refused},
		{"ioctl", []uint64{0, high | unix.TIOCSTI}, refused},
		{"ioctl", []uint64{0, 0xffffffff00000000 | unix.TIOCLINUX}, refused},
		{"ioctl", []uint64{unix.TIOCSTI, unix.TIOCGWINSZ}, allowed},
		{"ioctl", []uint64{0, unix.TIOCSETD}, refused},
		{"personality", []uint64{0}, allowed},
		{"personality", []uint64{0xffffffff}, allowed},
		{"personality", []uint64{0x0040000}, refused},
		{"mknodat", []uint64{0, 0, unix.S_IFIFO | 0o600}, allowed},
		{"mknodat", []uint64{0, 0, unix.S_IFCHR | 0o600}, refused},
		{"mknodat", []uint64{0, 0, high | unix.S_IFBLK}, refused},
		{"socket", []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, allowed},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, allowed},
		{"socket", []uint64{unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK}, allowed},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_RAW}, refused},
		{"socket", []uint64{unix.AF_INET6, unix.SOCK_RAW | unix.SOCK_CLOEXEC}, refused},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_PACKET}, refused},
		{"socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE}, allowed},
		{"socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, refused},
		{"socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC}, refused},
		{"socket", []uint64{unix.AF_PACKET, unix.SOCK_DGRAM}, refused},
		{"socket", []uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, refused},
		{"socket", []uint64{unix.AF_ALG, unix.SOCK_SEQPACKET}, refused},
		{"socket", []uint64{unix.AF_KEY, unix.SOCK_RAW}, refused},
		{"socket", []uint64{unix.AF_XDP, unix.SOCK_RAW}, refused},
		{"socket", []uint64{high | unix.AF_VSOCK, unix.SOCK_STREAM}, refused},
		{"socket", []uint64{high | unix.AF_INET, unix.SOCK_STREAM}, allowed},
		{"socketpair", []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, allowed},
		{"socketpair", []uint64{unix.AF_TIPC, unix.SOCK_STREAM}, refused},
	} {
		for _, m := range machines {
			t.Run(fmt.Sprint(m.name, " ", c.call, " ", c.args), func(t *testing.T) {
				if got := judge(t, m, m.audit, number(t, m, c.call), c.args...); got != c.want {
					t.Errorf("the filter says %#x, want %#x", got, c.want)
				}
			})
		}
	}
}

// plain are numbers of calls that have no rule.
var plain = map[string]map[string]uint32{
	"amd64": {"read": 0, "openat": 257, "execve": 59, "landlock_restrict_self": 446, "seccomp": 317},
	"arm64": {"read": 63, "openat": 56, "execve": 221, "landlock_restrict_self": 446, "seccomp": 277},
}

func number(t *testing.T, m machine, call string) uint32 {
	t.Helper()
	if n, ok := plain[m.name][call]; ok {
		return n
	}
	for _, r := range rules {
		if r.name == call && m.number(r) >= 0 {
			return uint32(m.number(r))
		}
	}
	t.Fatalf("%s has no number on %s", call, m.name)
	return 0
}

func TestACallOfAnotherMachineKills(t *testing.T) {
	for _, m := range machines {
		for _, other := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0} {
			if got := judge(t, m, other, 1); got != killed {
				t.Errorf("on %s a call of machine %#x gives %#x", m.name, other, got)
			}
		}
	}
}

func TestASecondSetOfCallsIsRefused(t *testing.T) {
	m := machines[0]
	for _, n := range []uint32{0x40000000, 0x40000000 + 165, 0xffffffff} {
		if got := judge(t, m, m.audit, n); got != refused {
			t.Errorf("call %#x gives %#x", n, got)
		}
	}
}

func TestEveryCallHasOneRule(t *testing.T) {
	for _, m := range machines {
		seen := map[int]string{}
		for _, r := range rules {
			n := m.number(r)
			if other, ok := seen[n]; ok && n >= 0 {
				t.Errorf("on %s, %s and %s are both call %d", m.name, r.name, other, n)
			}
			seen[n] = r.name
		}
	}
}

func TestTheFilterFitsTheKernel(t *testing.T) {
	for _, m := range machines {
		raw, err := bpf.Assemble(program(m, rules))
		if err != nil {
			t.Fatal(err)
		}
		if len(raw) > 4096 {
			t.Errorf("%d instructions on %s, the kernel takes 4096", len(raw), m.name)
		}
	}
}

func TestTheNumbersAreThoseOfTheSystem(t *testing.T) {
	m, err := thisMachine()
	if err != nil {
		t.Skip("no rules for this machine")
	}
	for _, r := range rules {
		if n := m.number(r); n >= 0 && n != kernelNumbers[r.name] {
			t.Errorf("%s is %d in the rules and %d in the system", r.name, n, kernelNumbers[r.name])
		}
	}
}
