#!/usr/bin/env bash
# Puts ./bin/fletch into PREFIX/bin. A running hub and running agents keep the
# program they were started with.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${PREFIX:-$HOME/.local}/bin
install -D -m 755 bin/fletch "$bin/fletch"
echo "installed $bin/fletch"
case ":$PATH:" in
  *":$bin:"*) ;;
  *) echo "hint: put $bin on PATH" ;;
esac
