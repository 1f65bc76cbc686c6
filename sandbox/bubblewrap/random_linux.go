package bubblewrap

import (
	"crypto/rand"
	"strings"
)

// randomWord is 8 characters that no other box has.
func randomWord() string { return strings.ToLower(rand.Text()[:8]) }
