#!/bin/sh
# The ladder on the embedded engine and model: what is on this host, does it generate, does it serve.
# Usage: tools/demo.sh BIN (the folder with llamaops)
set -eu
cd "$(dirname "$0")/.."
llamaops=$1/llamaops

step() {
    printf '\n$ llamaops %s\n' "$*"
    status=0
    "$llamaops" "$@" || status=$?
    if [ "$status" != 0 ]; then
        printf '(exit status %s)\n' "$status"
        failed="$failed llamaops $* ($status);"
    fi
}

failed=
"$llamaops" fetch --yes
# Whatever else is installed or set here, the demonstration is about these two.
export LLAMAOPS_BIN_DIR=embedded LLAMAOPS_MODEL=embedded

step preflight
step smoke --max-tokens 64
step serve --verify --once

records=$("$1/python" -c 'import os; from llamaops.record.store import records_folder as f; print(f(os.environ))')
printf '\nThe records of these runs, each a folder with record.json (for programs) and record.md (for a ticket):\n'
list=$("$llamaops" record list) || failed="$failed llamaops record list;"
printf '%s\n' "$list" | tail -n 3 | while read -r id rest; do
    printf '  %s/%s  %s\n' "$records" "$id" "$rest"
done
printf 'To read them:\n'
printf '  %s record list\n' "$llamaops"
printf '  %s record show latest    # or an id: what was reached, what was found, how it is known\n' "$llamaops"
if [ -n "$failed" ]; then
    printf 'demo: failed:%s\n' "$failed" >&2
    exit 1
fi
