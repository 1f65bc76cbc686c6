#!/usr/bin/env bash
# The Go benchmarks, then fletch bench: numbers beside a yardstick that was
# measured in the same run. Nothing here passes or fails.
set -euo pipefail
cd "$(dirname "$0")/.."
go test -run '^$' -bench . -benchmem "${@:-./...}" | grep -vE '^(\?|PASS|ok) ?'
hack/build.sh
bin/fletch bench
