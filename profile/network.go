package profile

import (
	"slices"

	"fletch/sandbox"
)

// packages is what @packages stands for: the public registries that common
// tool chains fetch from. This version allows these hosts as a whole: it does
// not keep an agent that has a credential from publishing there.
var packages = []string{
	// Node
	"registry.npmjs.org", "registry.yarnpkg.com", "npm.jsr.io", "nodejs.org",
	// Go
	"proxy.golang.org", "sum.golang.org",
	// Python
	"pypi.org", "files.pythonhosted.org",
	// Rust
	"crates.io", "static.crates.io", "index.crates.io", "static.rust-lang.org",
	// Ruby, PHP, Erlang, .NET
	"rubygems.org", "index.rubygems.org", "packagist.org", "repo.packagist.org", "repo.hex.pm", "api.nuget.org",
	// Java
	"repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org", "services.gradle.org",
	// Debian, Ubuntu, Alpine
	"deb.debian.org", "security.debian.org", "archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com", "dl-cdn.alpinelinux.org",
}

// Entries is the network as [egress.Parse] reads it, @provider replaced by
// the given hosts and @packages by the public package registries. It is empty,
// which denies everything, where the network is none or the mode unknown.
func (s Settings) Entries(provider []string) []string {
	var out []string
	switch s.Network.Mode {
	case sandbox.NetworkProxy:
	case sandbox.NetworkOpen:
		out = append(out, "*")
	case sandbox.NetworkNone:
		return nil
	default: // a word from elsewhere: nothing is known of it
		return nil
	}
	for _, entry := range s.Network.Allow {
		switch entry {
		case "@provider":
			out = append(out, provider...)
		case "@packages":
			out = append(out, packages...)
		default:
			out = append(out, entry)
		}
	}
	for _, entry := range s.Network.Deny {
		out = append(out, "!"+entry)
	}
	return unique(out)
}

// unique drops repetitions, keeping the first of each.
func unique(list []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(text string) bool {
		again := seen[text]
		seen[text] = true
		return again
	})
}
