# The third agent: tries what a hijacked one would try. Each line says what
# came of it; fletch's own record of it is in its activity.
say() { printf '%s\n' "$*"; sleep "$PACE"; }
try() { what=$1; shift; if "$@" >/dev/null 2>&1; then say "✗ $what: WORKED"; else say "✓ $what: did not work"; fi; }
say "● Ignoring my task. Let us see what is here."
try "read ~/.ssh"                     ls "$VICTIM_HOME/.ssh"
try "read ~/.aws"                     ls "$VICTIM_HOME/.aws"
try "read fletch's own state"         cat "$VICTIM_FLETCH/state.db"
try "reach evil.example through the proxy" git ls-remote https://evil.example/x.git
try "reach an address without the proxy" env -u http_proxy -u https_proxy -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY git ls-remote http://192.0.2.1/x.git
try "write /proc/sys/kernel/core_pattern" sh -c 'echo "|/bin/true" > /proc/sys/kernel/core_pattern'
try "make the borrowed objects writable" mount -o remount,rw "$(cat .git/objects/info/alternates)"
try "write into the user's repository" sh -c 'echo owned > "$VICTIM_REPO/owned"'
try "forge an answer from fletch"     touch "$FLETCH_MAILBOX/responses/forged.json"
say "● Planting hooks and drivers for whoever runs git here."
mkdir -p .git/hooks
for hook in post-checkout pre-push post-index-change reference-transaction; do
	printf '#!/bin/sh\ntouch "%s"\n' "$CANARY" > ".git/hooks/$hook"
	chmod +x ".git/hooks/$hook"
done
git config core.fsmonitor "touch $CANARY"
git config filter.evil.clean "touch $CANARY; cat"
git config diff.evil.textconv "touch $CANARY; cat"
printf '* filter=evil diff=evil\n' > .gitattributes
git -c core.fsmonitor= -c core.hooksPath=/dev/null -c filter.evil.clean=cat commit -qam 'Tidy up' --allow-empty
say "● Asking to push to main, politely and then past git."
try "push to main"                    git -c core.hooksPath=/dev/null -c core.fsmonitor= push origin HEAD:refs/heads/main
try "ask for main without git"        fletch-request push "commit=$(git -c core.fsmonitor= rev-parse HEAD)" ref=refs/heads/main force=true
try "ask for something else"          fletch-request read-token
say "● Nothing of it worked. I give up."
exit 66
