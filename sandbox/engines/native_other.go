//go:build !linux

package engines

import (
	"runtime"

	"fletch/sandbox"
)

func native(string) (sandbox.Engine, error) {
	if runtime.GOOS == "darwin" {
		return absent{&sandbox.Refusal{
			Engine: "native", Cause: "the native engine of macOS (Seatbelt) is not built yet", Fix: "run fletch on Linux",
		}}, nil
	}
	return absent{&sandbox.Refusal{
		Engine: "native", Cause: "there is no native engine on " + runtime.GOOS, Fix: "use the engine docker, or run fletch on Linux",
	}}, nil
}
