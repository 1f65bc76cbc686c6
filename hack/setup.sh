#!/usr/bin/env bash
# Installs what the tests need and this machine lacks. On Debian and its
# relatives it does so by itself; elsewhere it names what is missing.
set -euo pipefail

# command:package. The race detector needs a C compiler and its headers; the
# last ones are what agents use, and must work in a sandbox.
needs=(bwrap:bubblewrap tmux:tmux git:git gcc:gcc ps:procps /usr/bin/python3:python3 node:nodejs npm:npm)
missing=()
for need in "${needs[@]}"; do
  command -v "${need%%:*}" >/dev/null || missing+=("${need#*:}")
done
[ -e /usr/include/stdlib.h ] || missing+=(libc6-dev)
[ -e /etc/services ] || missing+=(netbase)
[ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)

if ! command -v go >/dev/null; then
  echo "error: go is not on PATH" >&2
  echo "hint: install Go 1.26 or later (https://go.dev/dl) and put its bin directory on PATH" >&2
  exit 1
fi
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "error: missing: ${missing[*]}" >&2
  echo "hint: install them with your package manager (the names are Debian's)" >&2
  exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "error: missing: ${missing[*]}" >&2
    echo "hint: as root: apt-get install -y ${missing[*]}" >&2
    exit 1
  fi
  sudo=(sudo)
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The list of packages may be empty (a bare system) or old.
if ! { "${sudo[@]}" apt-get update && "${sudo[@]}" apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
  cat "$log" >&2
  exit 1
fi
