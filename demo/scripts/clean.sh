# The first agent: finds the fault, mends it, tests it, commits, asks.
say() { printf '%s\n' "$*"; sleep "$PACE"; }
say "● I read checkout/retry.sh. The loop counts the first attempt twice,"
say "  so the third failure is never retried."
sed -i 's/attempt=1/attempt=0/' checkout/retry.sh
say "● Update(checkout/retry.sh)"
git --no-pager diff --stat
say "● Bash(sh test.sh)"
sh test.sh
git commit -qam 'Retry counts the first attempt once

The loop started at one and so gave up after two attempts.'
say "● All tests pass. I commit and push this for review."
say "● Bash(git push)"
if git push; then say "● It is out. Done."; else say "● It was not let out."; fi
