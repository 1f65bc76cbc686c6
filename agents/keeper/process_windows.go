package keeper

// private has no counterpart: nothing is handed on unless it is named.
func private(int) {}

// lock leaves it to the socket to tell whether there is another keeper.
func lock(string) (unlock func(), err error) { return func() {}, nil }
