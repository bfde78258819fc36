#!/bin/sh
# Write the locks: every version with the digests of all its files, and no index, host or path.
# Needs pip-tools. Run it on the oldest Python that is supported, so that every version fits it.
set -eu
cd "$(dirname "$0")/.."
export CUSTOM_COMPILE_COMMAND="tools/lock.sh"
lock() {
    pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-emit-options \
        --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --build-deps-for editable "$@" pyproject.toml
}
lock --output-file requirements.lock
lock --extra dev --constraint requirements.lock --output-file requirements-dev.lock
# The site's packages stay out of what tests need; both fit into one environment.
lock --extra dev --extra docs --constraint requirements-dev.lock --output-file requirements-docs.lock
