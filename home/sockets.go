package home

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// longestAgent stands for an agent id when socket paths are measured.
const longestAgent = "aaaaaaaaaaaa"

// placeSockets keeps sockets in the home unless their paths would be too
// long for the kernel; then they go to a directory of their own in
// runtimeDir, named after the home so that two homes never share one.
func (h *Home) placeSockets(runtimeDir string) error {
	if len(h.KeeperSocket(longestAgent)) <= maxSocketPath {
		return nil
	}
	if runtimeDir == "" {
		return fmt.Errorf("the path is too long for a socket (%d bytes, %d at most) and XDG_RUNTIME_DIR is not set",
			len(h.KeeperSocket(longestAgent)), maxSocketPath)
	}
	sum := sha256.Sum256([]byte(h.dir))
	dir := filepath.Join(runtimeDir, "fletch-"+hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if err := private(info); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	h.sockets = dir
	if len(h.KeeperSocket(longestAgent)) > maxSocketPath {
		return errors.New("XDG_RUNTIME_DIR is too long for a socket as well")
	}
	return nil
}
