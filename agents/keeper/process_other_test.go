//go:build !linux

package keeper

func actAs() bool { return false }
