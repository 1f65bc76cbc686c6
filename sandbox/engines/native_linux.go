package engines

import (
	"fletch/sandbox"
	"fletch/sandbox/bubblewrap"
)

func native(self string) (sandbox.Engine, error) { return bubblewrap.New(self) }
