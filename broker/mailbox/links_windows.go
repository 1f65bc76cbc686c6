package mailbox

import "os"

// links is not asked for on Windows, where no agent shares a disk with the
// host.
func links(os.FileInfo) uint64 { return 1 }
