package box

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// machine is one instruction set the filter is made for.
type machine struct {
	name   string // as Go says it
	audit  uint32 // as the kernel says it
	number func(rule) int
	// foreign is the first number of a second set of calls that the same
	// machine has (x32); 0 when there is none.
	foreign uint32
}

var machines = []machine{
	{name: "amd64", audit: unix.AUDIT_ARCH_X86_64, number: func(r rule) int { return r.amd64 }, foreign: 0x40000000},
	{name: "arm64", audit: unix.AUDIT_ARCH_AARCH64, number: func(r rule) int { return r.arm64 }},
}

// Where struct seccomp_data keeps what the filter reads, on a little-endian
// machine.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16 // 8 bytes each, the low half first
)

// program turns the rules into instructions for m.
func program(m machine, rules []rule) []bpf.Instruction {
	out := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: m.audit, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
	if m.foreign != 0 {
		out = append(out,
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: m.foreign, SkipTrue: 1},
			refuse(unix.EPERM))
	}
	for _, r := range rules {
		number := m.number(r)
		if number < 0 {
			continue
		}
		body := r.body()
		out = append(out, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(number), SkipFalse: uint8(len(body))})
		out = append(out, body...)
	}
	return append(out, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
}

// body decides a call that is known to be r's, and always returns.
func (r rule) body() []bpf.Instruction {
	if len(r.when) == 0 {
		return []bpf.Instruction{refuse(r.errno)}
	}
	var out []bpf.Instruction
	for _, c := range r.when {
		out = append(out, c.body(r.errno)...)
	}
	return append(out, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
}

// body refuses the call when all parts hold and runs off its end otherwise.
func (c allOf) body(errno unix.Errno) []bpf.Instruction {
	out := []bpf.Instruction{refuse(errno)}
	for i := len(c) - 1; i >= 0; i-- {
		out = append(c[i].body(len(out)), out...)
	}
	return out
}

// body runs off its end when the part holds and skips the next rest
// instructions otherwise.
func (p part) body(rest int) []bpf.Instruction {
	out := []bpf.Instruction{bpf.LoadAbsolute{Off: offArgs + 8*uint32(p.arg), Size: 4}}
	if p.mask != all32 {
		out = append(out, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: p.mask})
	}
	for i, v := range p.values {
		after := len(p.values) - 1 - i // comparisons still to come
		if p.in {
			out = append(out, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(after + 1)})
		} else {
			out = append(out, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(after + rest)})
		}
	}
	if p.in {
		out = append(out, bpf.Jump{Skip: uint32(rest)}) // it was none of them
	}
	return out
}

func refuse(errno unix.Errno) bpf.RetConstant {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

// thisMachine is the one this binary runs on.
func thisMachine() (machine, error) {
	for _, m := range machines {
		if m.name == runtime.GOARCH {
			return m, nil
		}
	}
	return machine{}, fmt.Errorf("there is no system-call filter for %s", runtime.GOARCH)
}

// filter puts the system-call filter on this thread, for good.
func (b *box) filter() error {
	m, err := thisMachine()
	if err != nil {
		return err
	}
	raw, err := bpf.Assemble(program(m, rules))
	if err != nil {
		return fmt.Errorf("assembling the filter: %w", err)
	}
	code := make([]unix.SockFilter, len(raw))
	hash := sha256.New()
	for i, in := range raw {
		code[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
		if err := binary.Write(hash, binary.LittleEndian, in); err != nil {
			return err
		}
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 { //nolint:gosec // the kernel takes the filter by address
		return fmt.Errorf("enforcing the filter: %w", errno)
	}
	runtime.KeepAlive(code)
	b.report.Filter = hex.EncodeToString(hash.Sum(nil))
	return nil
}
