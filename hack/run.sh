#!/usr/bin/env bash
# Builds fletch and starts it with the arguments given. When something is
# missing that it needs, it asks once before installing; with anything but
# "y" fletch starts all the same and says what it cannot do.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v go >/dev/null; then
  echo "error: go is not on PATH" >&2
  echo "hint: install Go 1.26 or later (https://go.dev/dl) and put its bin directory on PATH" >&2
  exit 1
fi

missing=()
words=""
need() { # command, package, what for
  command -v "$1" >/dev/null && return
  missing+=("$2")
  words="${words:+$words and }$2${3:+ ($3)}"
}
[ "$(uname)" != Linux ] || need bwrap bubblewrap "its sandbox"
need git git ""

if [ ${#missing[@]} -gt 0 ] && command -v apt-get >/dev/null; then
  sudo=(); [ "$(id -u)" -eq 0 ] || sudo=(sudo)
  echo "fletch needs $words. Install it now?"
  printf '  %s   [y/N] ' "${sudo[*]:+sudo }apt-get install -y ${missing[*]}"
  read -r answer || { answer=n; echo; }
  case $answer in
    y | Y | yes)
      "${sudo[@]}" apt-get update -qq
      "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
      ;;
  esac
elif [ ${#missing[@]} -gt 0 ]; then
  echo "fletch needs $words; install it with your package manager"
fi

echo "building …"
hack/build.sh
echo "starting fletch"
exec bin/fletch "$@"
