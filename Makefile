# Two commands on a fresh machine: `make demo` and `make test`. They need Python 3.11 or newer, pip and make.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# More workers than cores: many tests wait for a program to start, to time out or to stop.
JOBS ?= 4
TESTS ?= tests
export PYTHON

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo test test-again engine engine-server old-engines fetch lint types layers check generate docs bench lock clean

help:  ## Show what there is
	@sed -n 's/^\([a-z-]*\):.*##/\1 -/p' Makefile

# A stamp is newer than what it was made from, so nothing is installed twice.
$(VENV)/.runtime: requirements.lock pyproject.toml tools/setup.sh
	@sh tools/setup.sh requirements.lock $(VENV)
	@touch $@

$(VENV)/.dev: requirements-dev.lock pyproject.toml tools/setup.sh
	@sh tools/setup.sh requirements-dev.lock $(VENV)
	@touch $@ $(VENV)/.runtime

setup: $(VENV)/.runtime  ## Make .venv and install llamaops from the lock

setup-dev: $(VENV)/.dev  ## The same, with what tests and checks need

demo: setup  ## Fetch the embedded engine and model and run the ladder on them
	@sh tools/demo.sh $(BIN)

fetch: setup
	@$(BIN)/llamaops fetch --yes

engine: setup-dev  ## Build the full engine for the tests (once, minutes)
	@$(BIN)/llamaops fetch full-engine --yes

engine-server: setup-dev  ## The same with llama-server and llama-cli (10 minutes)
	@$(BIN)/llamaops fetch full-engine-server --yes

old-engines: setup-dev  ## Build servers of August 2025 and March 2024, for tests/llamacpp/test_old_builds.py (10 minutes)
	@$(BIN)/llamaops fetch old-engine-2024 old-engine-2025 --yes

# Without a compiler or a network the tests that need an engine are skipped by name; pytest says so at its end.
test: setup-dev  ## Run the whole suite on real engines
	-@$(BIN)/llamaops fetch --yes
	-@$(BIN)/llamaops fetch engine-b10434 --yes
	-@$(BIN)/llamaops fetch full-engine --yes
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(TESTS) || $(MAKE) --no-print-directory test-again

# Real programs on a busy machine can miss a time that a test allows. What failed is run once more, alone, and has
# to pass then; both runs are printed.
test-again:
	@echo "test: what failed is run again, one at a time"
	$(BIN)/python -m pytest -n 0 --last-failed --last-failed-no-failures none $(TESTS)

lint: setup-dev  ## Style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup-dev  ## Types
	$(BIN)/mypy

layers: setup-dev  ## Who may import whom
	$(BIN)/lint-imports

check: lint types layers test  ## Everything a change must pass

generate: setup-dev  ## Write what is generated from the code: docs/schema, docs/reference
	$(BIN)/python -m llamaops.record.export docs/schema
	$(BIN)/python -m llamaops.runbook.site docs
	$(BIN)/python -m llamaops.operations.sources docs/sources.md
	$(BIN)/python -m tools.reference

$(VENV)/.docs: requirements-docs.lock $(VENV)/.dev
	@sh tools/setup.sh requirements-docs.lock $(VENV)
	@touch $@

docs: $(VENV)/.docs  ## Build the documentation's site into build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: setup-dev fetch  ## Measure, as in docs/performance.md
	$(BIN)/python -m benchmarks

lock: setup-dev  ## Write the locks anew (needs pip-tools)
	PATH="$(CURDIR)/$(BIN):$$PATH" tools/lock.sh

clean:  ## Remove what set-up and tests made here; the cache stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache .coverage .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
