# Reads go test -v and keeps what a person wants to see: the lines of go test
# itself, and all that a failed or skipped test said. go test prints one
# package after the other; within one, "=== NAME test" says whose lines follow.

function forget() { delete said; cur = ""; all = ""; failed = 0; crashed = 0 }

# A crash belongs to no test in particular: everything from it on is shown.
/^(panic:|fatal error:|SIG[A-Z]+:|WARNING: DATA RACE|Error: )/ { crashed = 1 }
crashed && !/^(ok|FAIL|\?)[ \t]/ { print; failed = 1; next }

/^=== (RUN|CONT|NAME|PAUSE) / { cur = $3; next }

/^ *--- FAIL: / { printf "%s", said[$3]; print; failed = 1; next }
/^ *--- SKIP: / { printf "%s", said[$3]; print; print $3 ":" said[$3] >> skips; next }
/^ *--- PASS: / { next }
/^PASS$/ { next }

/^ok[ \t]/ || /^\?[ \t]/ { print; fflush(); forget(); next }
/^FAIL[ \t]/ { if (!failed) printf "%s", all; print; fflush(); forget(); next }
/^FAIL$/ { next }

cur == "" { print; next }
{ said[cur] = said[cur] $0 "\n"; all = substr(all $0 "\n", 1, 20000) }
