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
    printf '(exit status %s)\n' "$status"
    # 4 means that something is unknown, which a host may well leave so.
    case $status in 0 | 4) ;; *) failed="$failed llamaops $1 ($status);" ;; esac
}

failed=
"$llamaops" fetch --yes
# Whatever else is installed or set here, the demonstration is about these two.
export LLAMAOPS_BIN_DIR=embedded LLAMAOPS_MODEL=embedded

step preflight
step smoke --max-tokens 64
step serve --verify --once

printf '\nThe records of these runs, newest first:\n'
"$llamaops" record list || failed="$failed llamaops record list;"
printf '\nRead one with `%s record show ID`: what was reached first, then what was found, and how it is known.\n' "$llamaops"
printf 'Each is a folder with record.json (for programs) and record.md (for a ticket).\n'
if [ -n "$failed" ]; then
    printf 'demo: failed:%s\n' "$failed" >&2
    exit 1
fi
