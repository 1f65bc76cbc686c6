package wire

import (
	"errors"
	"fmt"
	"testing"
)

type hinted struct{ error }

func (hinted) Hint() string { return "do this" }

func TestDescribeFindsTheHintAnywhereInTheChain(t *testing.T) {
	inner := hinted{errors.New("gone")}
	for name, err := range map[string]error{
		"alone":   inner,
		"wrapped": fmt.Errorf("opening: %w", inner),
		"joined":  errors.Join(errors.New("first"), fmt.Errorf("second: %w", inner)),
	} {
		if got := Describe(err); got.Way != "do this" || got.Message != err.Error() || got.Word != "failed" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestDescribeKeepsTheCodeOfAWireError(t *testing.T) {
	err := fmt.Errorf("allowing: %w", Errorf("request-moved", "read it again", "request %d moved", 7))
	got := Describe(err)
	if got.Word != "request-moved" || got.Way != "read it again" {
		t.Errorf("%+v", got)
	}
}

func TestOnlyThisProtocolAndTheOneBeforeAreSpoken(t *testing.T) {
	for n, want := range map[int]bool{Protocol: true, Protocol + 1: false, 0: false, -1: false, Protocol + 7: false} {
		if Spoken(n) != want {
			t.Errorf("Spoken(%d) = %v", n, !want)
		}
	}
}
