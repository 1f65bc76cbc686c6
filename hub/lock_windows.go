package hub

import "errors"

// errHeld says that another hub lives.
var errHeld = errors.New("another hub holds the lock")

// holdLock refuses: fletch has no hub on Windows yet.
func holdLock(string) (unlock func(), err error) {
	return nil, errors.New("fletch does not run on Windows yet")
}
