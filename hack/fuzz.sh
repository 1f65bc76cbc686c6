#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME (default 30s) and stops at the first
# input that breaks one; go test keeps that input under testdata/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
git grep -l --untracked '^func Fuzz' -- '*_test.go' | while read -r file; do
  dir=./$(dirname "$file")
  sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file" | while read -r target; do
    echo "== $dir $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" "$dir" </dev/null
  done
done
