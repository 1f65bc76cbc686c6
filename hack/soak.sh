#!/usr/bin/env bash
# First SOAK_ROUNDS rounds (default 20) of killing hub, keeper and viewer at
# random while agents print; then all tests again and again for SOAK minutes
# (default 0), in another order each time. Stops at the first failure.
set -euo pipefail
cd "$(dirname "$0")/.."
FLETCH_SOAK_ROUNDS=${SOAK_ROUNDS:-20} hack/test.sh -count=1 -run TestSoak ./cli
end=$((SECONDS + ${SOAK:-0} * 60))
round=0
while [ $SECONDS -lt $end ]; do
  round=$((round + 1))
  echo "round $round"
  hack/test.sh -count=1 -shuffle=on "${@:-./...}"
done
