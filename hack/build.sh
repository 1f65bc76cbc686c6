#!/usr/bin/env bash
# Builds ./bin/fletch: static, stripped, the same bytes for the same source.
set -euo pipefail
cd "$(dirname "$0")/.."
CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X fletch/cli.Version=$(hack/version.sh)" -o bin/fletch .
