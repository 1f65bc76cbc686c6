package bubblewrap

import (
	"os/exec"
	"testing"
)

// BenchmarkStart is a whole life: sealing /bin/true and waiting until all of
// it is gone. BenchmarkBareBubblewrap is what bwrap alone takes for the same
// namespaces.
func BenchmarkStart(b *testing.B) {
	e := benchEngine(b)
	for b.Loop() {
		if err := e.Run(b.Context(), oneTrue(), nil, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBareBubblewrap(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--unshare-all", "--die-with-parent", "/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBareTrue(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
