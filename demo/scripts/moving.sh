# The second agent: asks, then changes its mind while the person reads.
say() { printf '%s\n' "$*"; sleep "$PACE"; }
say "● I add a line to the docs."
printf '\nRetries stop after three attempts.\n' >> docs/retry.md
git commit -qam 'Say when retries stop'
say "● Bash(git push)"
git push & first=$!
sleep "$LATER"
say "● One more thing: the example is wrong too."
printf 'Example: retry 3 curl -f https://example.com\n' >> docs/retry.md
git commit -qam 'Mend the example'
say "● Bash(git push)"
if git push; then say "● It is out. Done."; else say "● It was not let out. I keep it for later."; fi
wait "$first"
exit 0
