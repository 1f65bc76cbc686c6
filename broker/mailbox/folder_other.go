//go:build !linux

package mailbox

import "context"

func openFolder(path string) (folder, error) { return openRootFolder(path) }

func (b *Box) notices(context.Context) (notices, error) { return &poll{folder: b.requests}, nil }
