#!/usr/bin/env bash
# Prints the version that a build carries: git describe, or "dev" without git.
cd "$(dirname "$0")/.." && git describe --tags --always --dirty 2>/dev/null || echo dev
