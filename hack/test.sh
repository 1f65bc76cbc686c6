#!/usr/bin/env bash
# Runs every test with the race detector, and those that a library's own race
# keeps from it without, and prints one line for each package, the whole
# output of each test that failed, and the name and reason of each that was
# skipped. With FLETCH_NO_SKIPS=1 a skipped test is a failure. Arguments go to
# go test; without any, all packages.
set -uo pipefail
cd "$(dirname "$0")/.."

skips=$(mktemp)
trap 'rm -f "$skips"' EXIT

# tests ARGS…: one run of go test.
tests() {
  go test -v -timeout 30m "$@" 2>&1 | awk -v skips="$skips" -f hack/test.awk
  return "${PIPESTATUS[0]}"
}

if [ $# -gt 0 ]; then
  CGO_ENABLED=1 tests -race "$@"
else
  CGO_ENABLED=0 tests -run 'Terminal|Ticker|Leaving' ./tui && CGO_ENABLED=1 tests -race ./...
fi
code=$?

if [ "$code" -eq 0 ] && [ "${FLETCH_NO_SKIPS:-}" = 1 ] && [ -s "$skips" ]; then
  echo "error: $(grep -c . "$skips") skipped, and here every test must run:" >&2
  cat "$skips" >&2
  exit 1
fi
exit "$code"
