package gitops

import (
	"net"
	"net/url"
	"regexp"
	"strings"
)

const remoteHint = "use an https or ssh URL: git remote set-url origin https://HOST/OWNER/REPO.git"

var (
	hostForm  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)
	userForm  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)
	bracketed = regexp.MustCompile(`\[[0-9a-fA-F:.]+\]`) // an IPv6 address as a host
	scpForm   = regexp.MustCompile(`^(?:([^@:/]+)@)?([^@:/\[\]]+):(.*)$`)
)

// CheckRemote returns the form of a remote's URL in which it is stored, shown
// and used, or refuses it: https, ssh and the scp-like host:path; http only
// to a loopback address. A password, and for http and https a user name, is
// stripped. Refused are every other transport ("ext::", "file:", a path),
// hosts, users and paths that begin with "-", "..", "::", queries, fragments,
// white space, control and non-ASCII characters, also in their % form.
// Errors are [ErrRemote].
func CheckRemote(raw string) (string, error) {
	refuse := func(why string) (string, error) {
		return "", fault("bad-remote", remoteHint, "remote %s: %s", quote(withoutUser(raw)), why)
	}
	switch {
	case raw == "" || len(raw) > 2000:
		return refuse("no URL, or one that is too long")
	case strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`\"'<>^{|}`+"`", r) }):
		return refuse("characters that have no place in a URL")
	case strings.HasPrefix(raw, "-"):
		return refuse("it begins with -")
	case strings.Contains(raw, "%"):
		return refuse("it has % in it")
	case strings.Contains(bracketed.ReplaceAllString(raw, ""), "::"):
		return refuse("it names a remote helper")
	}
	if !strings.Contains(raw, "://") {
		return checkScp(raw, refuse)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return refuse("it is no URL")
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	switch {
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(raw, "#"):
		return refuse("it has a query or a fragment")
	case ip == nil && !hostForm.MatchString(host):
		return refuse("its host is not a plain name")
	case !plainPath(u.Path) || u.Path == "/" || u.Path == "":
		return refuse("its path is not a plain path to a repository")
	}
	switch strings.ToLower(u.Scheme) {
	case "https":
		u.User = nil
	case "http":
		if !(ip != nil && ip.IsLoopback()) && host != "localhost" {
			return refuse("http is for this machine only")
		}
		u.User = nil
	case "ssh":
		if u.User != nil {
			if !userForm.MatchString(u.User.Username()) {
				return refuse("its user is not a plain name")
			}
			u.User = url.User(u.User.Username())
		}
	default:
		return refuse("only https and ssh are used")
	}
	u.Scheme = strings.ToLower(u.Scheme)
	return u.String(), nil
}

func checkScp(raw string, refuse func(string) (string, error)) (string, error) {
	m := scpForm.FindStringSubmatch(raw)
	if m == nil || strings.HasPrefix(raw, "/") || strings.HasPrefix(raw, ".") {
		return refuse("it is no URL")
	}
	user, host, path := m[1], m[2], m[3]
	switch {
	case len(host) == 1:
		return refuse("it is a path on a drive")
	case !hostForm.MatchString(host):
		return refuse("its host is not a plain name")
	case user != "" && !userForm.MatchString(user):
		return refuse("its user is not a plain name")
	case !plainPath(path) || path == "":
		return refuse("its path is not a plain path to a repository")
	}
	return raw, nil
}

// plainPath refuses paths that leave their root, read as options, or carry
// control characters that were written as %.
func plainPath(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." || strings.HasPrefix(part, "-") {
			return false
		}
	}
	return !strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("%?#", r) })
}

// withoutUser takes user information out of a URL that may be malformed, so
// that a refusal does not print a token.
func withoutUser(raw string) string {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return raw
	}
	authority, path, slash := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
	}
	if slash {
		authority += "/" + path
	}
	// A password may hold a slash: what precedes a later @ goes as well.
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
	}
	return scheme + "://" + authority
}

// transport is the one protocol git may use for a checked URL.
func transport(remote string) string {
	if scheme, _, ok := strings.Cut(remote, "://"); ok {
		return scheme
	}
	return "ssh"
}
