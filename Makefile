# Two commands are enough on a machine with Python 3.11 or newer and make: `make demo` and `make test`.
# Everything is installed into .venv, at the versions of the lock files, checked by their hashes.
# What setting up says goes to stderr, so that the standard output is the command's own.

SHELL := /bin/sh
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long screenshots check mutants soak bench crash crash-quick crash-mutants lock \
	clean

BIN := .venv/bin
ARGS ?=
WORKERS ?= 2
UV ?= uv
COMPILE := $(UV) pip compile --universal --generate-hashes --no-emit-index-url --python-version 3.11 \
	--custom-compile-command "make lock" --quiet --upgrade
WITH_PROJECT := pyproject.toml --extra embedded --extra stripe

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

setup: .venv/ready ## what demo and test need first (a .venv with locked versions)
	@echo "Set up; now: make demo" >&2

demo: .venv/ready ## database, app and a local Slack to click in; prints one URL (ARGS=--play: the whole story)
	@$(BIN)/vistobueno demo $(ARGS)

test: .venv/ready-dev ## every test (ARGS="-k name" for some)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-long: .venv/ready-dev ## the property test with 5,000 examples instead of 200, others each time
	$(BIN)/python -m pytest -n $(WORKERS) --hypothesis-profile=long $(ARGS) tests/property

screenshots: .venv/ready-browser ## live the story in Debian's chromium, and take the pictures of docs/ anew
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS) tests/browser
	@$(BIN)/python -m tests.browser.pictures >&2

check: .venv/ready-dev ## format, lint, types, layering
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/unit/test_layers.py

mutants: .venv/ready-dev ## break each invariant on purpose: a test must turn red
	$(BIN)/python -m tests.mutants $(ARGS)

soak: .venv/ready-dev ## 2,000 runs in 10 minutes of random kills: nothing lost, nothing twice (ARGS="--minutes 2")
	$(BIN)/python -m tests.soak $(ARGS)

bench: .venv/ready-dev ## what one approval costs, against a hand-written floor; how soon work and demo begin
	$(BIN)/python -m tests.bench $(ARGS)

crash: .venv/ready-dev ## kill a process at every named point and at 100 random moments: every end must be right
	$(BIN)/python -m tests.crash $(ARGS)

crash-quick: .venv/ready-dev ## the same at each point once
	$(BIN)/python -m tests.crash --quick $(ARGS)

crash-mutants: .venv/ready-dev ## break lease, token, key and others on purpose: that must turn red
	$(BIN)/python -m tests.crash.mutants $(ARGS)

lock: ## write the lock files anew (needs uv)
	$(COMPILE) $(WITH_PROJECT) --group build --output-file requirements.lock
	$(COMPILE) $(WITH_PROJECT) --group dev --constraint requirements.lock --output-file requirements-dev.lock
	$(COMPILE) --group browser --constraint requirements-dev.lock --output-file requirements-browser.lock

clean: ## remove .venv and everything that was built or cached
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -type d -name __pycache__ -prune -exec rm -rf {} +

# The stamps: a step runs again only when what it read has changed, or when .venv can no longer be used.
.PHONY: stale
STALE := $(shell sh ./.ci/set-up check)

.venv/ready: requirements.lock pyproject.toml $(STALE)
	@sh ./.ci/set-up demo

.venv/ready-dev: requirements-dev.lock .venv/ready $(STALE)
	@sh ./.ci/set-up tests

.venv/ready-browser: requirements-browser.lock .venv/ready-dev $(STALE)
	@sh ./.ci/set-up browser
