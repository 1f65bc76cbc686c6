package home

import "io/fs"

// owned leaves ownership to the access list that MkdirAll inherits on
// Windows; not run end to end there.
func owned(fs.FileInfo) error { return nil }
