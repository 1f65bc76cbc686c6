package enginetest

import (
	"testing"

	"fletch/sandbox"
)

func TestTheFakeKeepsTheContract(t *testing.T) {
	Suite(t, func(*testing.T) sandbox.Engine { return New() })
}
