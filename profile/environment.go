package profile

import (
	"regexp"
	"slices"
	"strings"
)

// maxVariable is what Linux takes for one NAME=value, its closing zero
// included (MAX_ARG_STRLEN): a longer one would make the start fail.
const maxVariable = 128 << 10

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,255}$`)

// passed are the variables that every agent gets from the client: who and
// where the person is, the language, the terminal, and where tool chains are.
var passed = []string{
	"HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ",
	"TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "NO_COLOR", "CLICOLOR", "COLORFGBG",
	// Go
	"GOPATH", "GOROOT", "GOBIN", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOFLAGS", "GOTOOLCHAIN", "GOEXPERIMENT", "CGO_ENABLED",
	// Rust
	"CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUSTFLAGS",
	// Node; not NODE_OPTIONS, which loads code
	"NVM_DIR", "NVM_BIN", "NVM_INC", "NVM_CD_FLAGS", "VOLTA_HOME", "FNM_DIR", "FNM_MULTISHELL_PATH", "PNPM_HOME", "BUN_INSTALL", "DENO_INSTALL", "npm_config_registry", "NPM_CONFIG_REGISTRY",
	// Python
	"PYENV_ROOT", "PYENV_VERSION", "VIRTUAL_ENV", "CONDA_PREFIX", "POETRY_HOME", "PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX",
	// Java and Android
	"JAVA_HOME", "JDK_HOME", "GRADLE_HOME", "MAVEN_HOME", "M2_HOME", "SDKMAN_DIR", "ANDROID_HOME", "ANDROID_SDK_ROOT",
	// Ruby, .NET, version managers
	"RBENV_ROOT", "RBENV_VERSION", "GEM_HOME", "GEM_PATH", "DOTNET_ROOT", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR",
}

// passedPrefixes are the same for whole families.
var passedPrefixes = []string{"LC_"} // LC_TERMINAL among them

// never are variables that no list can pass: identities and tokens for
// publishing, sockets of the host, and what loads code or changes the way out
// before an agent's program begins.
var never = []string{
	"TMUX", "STY", "XAUTHORITY", "BASH_ENV", "ENV", "LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET", "WSL_INTEROP",
}

// neverPrefixes are the same for whole families.
var neverPrefixes = []string{
	"GIT_", "GH_", "GITHUB_", "GITLAB_", "GITEA_", "SSH_", "DBUS_", "LD_", "DYLD_", "VSCODE_", "TMUX_", "BASH_FUNC_", "FLETCH_",
}

// Never reports whether a variable of this name is kept from every agent,
// whatever lists it: git and forge identities, agent sockets, proxies,
// what the dynamic linker and shells load.
func Never(name string) bool {
	upper := strings.ToUpper(name)
	if slices.Contains(never, upper) {
		return true
	}
	if slices.ContainsFunc(neverPrefixes, func(p string) bool { return strings.HasPrefix(upper, p) }) {
		return true
	}
	// http_proxy, ALL_PROXY, npm_config_https_proxy, npm_config_noproxy; not
	// GOPROXY and GONOPROXY, which name a registry and a list of modules.
	return strings.HasSuffix(upper, "_PROXY") || strings.HasPrefix(upper, "NPM_CONFIG_") && strings.HasSuffix(upper, "PROXY")
}

// Environment is what an agent gets of its client's environment (NAME=value):
// the variables every agent gets, and those that its provider or [env] pass
// names. What [Never] names is left out whoever asks for it. Of the
// variables nobody named, one whose value holds a URL with a password is left
// out too. The result is sorted and names nothing twice; of two in client
// the later one counts.
func Environment(client []string, s Settings, provider []string) []string {
	named := slices.Concat(provider, s.Env.Pass)
	values := map[string]string{}
	for _, text := range client {
		name, value, ok := strings.Cut(text, "=")
		if !ok || !variable.MatchString(name) || Never(name) {
			continue
		}
		wanted := slices.Contains(named, name)
		if !wanted && !always(name) {
			continue
		}
		if len(text) >= maxVariable || strings.ContainsRune(value, 0) || !wanted && credential.MatchString(value) {
			delete(values, name) // an earlier one does not come back in its place
			continue
		}
		values[name] = value
	}
	env := make([]string, 0, len(values))
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// credential is user information in a URL: GOPROXY=https://me:token@host.
var credential = regexp.MustCompile(`://[^/@\s,|]+@`)

func always(name string) bool {
	return slices.Contains(passed, name) || slices.ContainsFunc(passedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
