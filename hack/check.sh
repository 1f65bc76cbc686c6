#!/usr/bin/env bash
# Everything that must hold before a commit lands, quickest first.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf '\n== %s\n' "$1"; }

tools=$PWD/.tools
tool() { # name, module@version
  [ -x "$tools/$1" ] || { echo "installing $1"; GOBIN=$tools go install "$2"; }
}
tool gofumpt mvdan.cc/gofumpt@v0.12.0
tool golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

say "gofumpt"
unformatted=$(git ls-files -co --exclude-standard '*.go' | xargs "$tools/gofumpt" -l)
[ -z "$unformatted" ] || { echo "$unformatted"; exit 1; }

say "go mod tidy"
go mod tidy -diff

say "import rules"
go test -count=1 .

for os in linux darwin windows; do
  say "go vet, $os"
  CGO_ENABLED=0 GOOS=$os go vet ./...
done

say "golangci-lint"
"$tools/golangci-lint" run ./...

say "go test -race"
hack/test.sh
