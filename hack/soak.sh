#!/usr/bin/env bash
# Runs the tests again and again for SOAK minutes (default 30), in another
# order each time, and stops at the first failure.
set -euo pipefail
cd "$(dirname "$0")/.."
end=$((SECONDS + ${SOAK:-30} * 60))
round=0
while [ $SECONDS -lt $end ]; do
  round=$((round + 1))
  echo "round $round"
  hack/test.sh -count=1 -shuffle=on "${@:-./...}"
done
