#!/bin/sh
# Make the virtual environment and install a lock and llamaops into it.
# Usage: tools/setup.sh LOCK VENV
set -eu
cd "$(dirname "$0")/.."
lock=$1 venv=$2

fail() { printf 'set-up: %s\n' "$1" >&2; exit 1; }

# Settings that would send packages elsewhere than into the environment; the index is left as it is.
unset PIP_TARGET PIP_PREFIX PIP_ROOT PIP_USER PIP_REQUIRE_HASHES PIP_REQUIRE_VIRTUALENV PYTHONHOME PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

python=
for candidate in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || fail "no Python 3.11 or newer on PATH; install one, or name it: make PYTHON=/path/to/python3 ..."

if ! "$venv/bin/python" -c '' >/dev/null 2>&1; then
    printf 'set-up: %s with %s\n' "$venv" "$("$python" --version)"
    # Debian's Python lacks ensurepip until python3-venv is installed; the pip it has then serves too.
    "$python" -m venv --clear "$venv" >/dev/null 2>&1 \
        || "$python" -m venv --clear --without-pip "$venv" \
        || fail "this Python cannot make a virtual environment; install its venv module (Debian, Ubuntu: python3-venv)"
fi

pip() {
    if "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        "$venv/bin/python" -m pip "$@"
    elif "$python" -m pip --version >/dev/null 2>&1; then
        "$python" -m pip --python "$venv/bin/python" "$@"
    else
        fail "this Python has no pip; install it (Debian, Ubuntu: python3-pip)"
    fi
}

printf 'set-up: %s\n' "$lock"
pip install --quiet --require-hashes --requirement "$lock"
pip install --quiet --no-deps --no-build-isolation --editable .
