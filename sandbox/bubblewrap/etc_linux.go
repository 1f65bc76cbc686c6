package bubblewrap

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"fletch/sandbox"
)

// etcShown are the parts of the host's /etc that programs need to run and
// that tell nothing about its user. Of ssl and pki only what verifies is
// shown: beside it lie private keys, which root inside could read.
var etcShown = []string{
	"alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "ethertypes",
	"fonts", "fedora-release", "inputrc", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf",
	"localtime", "lsb-release", "magic", "mime.types", "os-release", "perl", "pki/ca-trust", "pki/tls/cert.pem",
	"pki/tls/certs", "pki/tls/openssl.cnf", "protocols", "python3", "redhat-release", "rpc", "services", "shells",
	"ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "vimrc", "xml",
}

// etcPatterns are more of them, whose names hold a version.
var etcPatterns = []string{"java*", "maven*", "python3.*"}

// etc makes /etc: what the host has of the list, and what is made up so that
// names, users and login shells work and nothing asks a network.
func (v *view) etc(s sandbox.Spec) error {
	names := etcShown
	for _, pattern := range etcPatterns {
		found, err := filepath.Glob("/etc/" + pattern)
		if err != nil {
			return err
		}
		for _, path := range found {
			names = append(names[:len(names):len(names)], strings.TrimPrefix(path, "/etc/"))
		}
	}
	for _, name := range names {
		v.showEtc("/etc/" + name)
	}
	passwd, group := accounts(s.Env)
	for _, file := range []struct{ name, content string }{
		{"passwd", passwd},
		{"group", group},
		{"hostname", hostName + "\n"},
		{"hosts", "127.0.0.1\tlocalhost " + hostName + "\n::1\tlocalhost ip6-localhost ip6-loopback\n"},
		{"nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files\nnetworks: files\nservices: files\nprotocols: files\nrpc: files\nethers: files\n"},
		{"resolv.conf", ""},
		{"profile", profile},
		{"bash.bashrc", bashrc},
	} {
		fd, err := v.hand.data(file.name, []byte(file.content))
		if err != nil {
			return err
		}
		v.add("--perms", "0444", "--file", strconv.Itoa(fd), "/etc/"+file.name)
	}
	return nil
}

const hostName = "fletch"

// profile is read by login shells, which several agents use for every
// command. The host's would set PATH anew, without fletch's programs.
const profile = `# Made up for this sandbox.
PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}
if [ -d ` + insideBin + ` ]; then
	case $PATH in
	` + insideBin + `:*) ;;
	*) PATH=` + insideBin + `:$PATH ;;
	esac
fi
export PATH
if [ -n "${BASH_VERSION-}" ] && [ -n "${PS1-}" ] && [ -r /etc/bash.bashrc ]; then
	. /etc/bash.bashrc
fi
`

const bashrc = `# Made up for this sandbox.
[ -z "${PS1-}" ] && return
shopt -s checkwinsize
PS1='\u@\h:\w\$ '
`

// showEtc shows one file or folder of the host's /etc where it exists. The
// host's /etc is root's, so links in it may be believed.
func (v *view) showEtc(path string) {
	info, err := os.Lstat(path)
	if err != nil {
		return
	}
	if info.Mode()&os.ModeSymlink == 0 {
		v.add("--ro-bind-try", path, path)
		return
	}
	real, err := filepath.EvalSymlinks(path)
	switch {
	case err != nil: // it leads nowhere
	case sandbox.Under(real, "/usr"):
		v.add("--symlink", real, path)
	case sandbox.Under(real, "/etc"):
		v.add("--ro-bind-try", real, path)
	}
}

// accounts makes passwd and group: root, the user, and those nobody is.
func accounts(env []string) (passwd, group string) {
	uid, gid := os.Getuid(), os.Getgid()
	name, groupName := "user", "user"
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil && isAccount(u.Username) {
		name = u.Username
	}
	if g, err := user.LookupGroupId(strconv.Itoa(gid)); err == nil && isAccount(g.Name) {
		groupName = g.Name
	}
	home := "/"
	for _, e := range env {
		if dir, ok := strings.CutPrefix(e, "HOME="); ok && filepath.IsAbs(dir) && !strings.ContainsAny(dir, ":\n") {
			home = dir
		}
	}
	shell := "/bin/sh"
	if _, err := os.Stat("/bin/bash"); err == nil {
		shell = "/bin/bash"
	}
	var p, g strings.Builder
	if uid != 0 {
		p.WriteString("root:x:0:0:root:/root:/bin/sh\n")
	}
	fmt.Fprintf(&p, "%s:x:%d:%d::%s:%s\n", name, uid, gid, home, shell)
	if gid != 0 {
		g.WriteString("root:x:0:\n")
	}
	fmt.Fprintf(&g, "%s:x:%d:\n", groupName, gid)
	if uid != nobody {
		fmt.Fprintf(&p, "nobody:x:%d:%d:nobody:/nonexistent:/usr/sbin/nologin\n", nobody, nobody)
	}
	if gid != nobody {
		fmt.Fprintf(&g, "nogroup:x:%d:\n", nobody)
	}
	return p.String(), g.String()
}

// nobody owns, inside, whatever belongs to another user outside.
const nobody = 65534

func isAccount(name string) bool {
	return name != "" && len(name) <= 32 && !strings.ContainsAny(name, ":,/ \t\n\x00")
}
