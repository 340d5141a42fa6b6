# Every target makes its own .venv; only make and a Python with venv and pip are needed.
PYTHON ?= python3
ARGS ?=

# Compiled modules are kept whatever the user's shell says: without them every worker of a test run compiles all again.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
CODE := $(patsubst %/,%,$(sort $(dir $(wildcard src/clew/*.py tests/*.py examples/*.py tools/*.py bench/*.py))))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help up test test-fast proof contract check bench bench-store bench-providers bench-run bench-web kills soak agents browser screenshots examples reference enumerate mutants mutants-sample lock format clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# Most of the time a test waits for an agent or a disk, so there are three times as many at once as there are cores. Tests
# that share a warm program stay in one worker.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(12, 3 * (os.cpu_count() or 1)))')
# The quick tests wait for nothing, and each worker collects all of them again.
FAST_WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(12, os.cpu_count() or 1))')
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

up: $(VENV)/ready ## Start Clew on this machine; Ctrl-C stops it (ARGS="--data DIR --port N")
	@$(BIN)/clew up $(ARGS)

test: $(VENV)/tools ## Run the tests and show the slowest (ARGS="-k name" narrows it; installs agents and a browser if it can)
	@$(BIN)/python -m tools.agents --if-possible
	@$(BIN)/python -m tools.browser --if-possible
	@$(PYTEST) --durations=5 $(ARGS)

test-fast: $(VENV)/tools ## Run the tests that start no agent, no server and no PostgreSQL: for between two edits
	@$(PYTEST) -n $(FAST_WORKERS) -m "not slow" $(ARGS)

contract: $(VENV)/tools ## Run the contract of providers in full and write its table into docs (ARGS="-k codex" narrows it)
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	CLEW_NEED_AGENTS=1 CLEW_THOROUGH=1 CLEW_CONTRACT_TABLE="$$dir/contract.json" \
		$(PYTEST) --durations=10 tests/providers/contract $(ARGS); \
	$(BIN)/python -m tools.contract_table --write "$$dir"/contract.*.json

# All of them run, so that one report hides no other.
check: $(VENV)/tools ## Layers, lint, formatting, types, dead code, docs
	@failed=0; \
	$(BIN)/lint-imports --no-logo || failed=1; \
	$(BIN)/python -m ruff check . || failed=1; \
	$(BIN)/python -m ruff format --check . || failed=1; \
	$(BIN)/python -m mypy --strict $(CODE) || failed=1; \
	$(BIN)/python -m tools.dead || failed=1; \
	$(BIN)/python -m pytest tests/docs tests/house/test_actors.py tests/house/test_edges.py tests/house/test_markers.py || failed=1; \
	exit $$failed

bench: $(VENV)/tools ## Measure how fast the kernel decides
	@$(BIN)/python bench/decide.py $(ARGS)

bench-store: $(VENV)/tools ## Measure say and wake through the API, beside Procrastinate and DBOS (ARGS=--small is quicker)
	@$(BIN)/python -m bench.store $(ARGS)

bench-providers: $(VENV)/tools ## Measure agents through their providers beside their own command lines
	@$(BIN)/python -m bench.providers $(ARGS)

bench-run: $(VENV)/tools ## Measure a wake from the door to its end in `clew up` (ARGS=claude adds a real agent)
	@$(BIN)/python -m bench.running $(ARGS)

bench-web: $(VENV)/tools ## Measure pages in Chromium, what open ones cost, and the search (ARGS=--small is quicker)
	@$(BIN)/python -m bench.web $(ARGS)

# All of them run, so that one report hides no other.
proof: $(VENV)/tools ## Everything in depth: all tests, the whole decision space, the contracts, the kills and the soak (hours)
	@$(BIN)/python -m tools.agents
	@$(BIN)/python -m tools.browser
	@failed=0; \
	CLEW_NEED_AGENTS=1 CLEW_NEED_BROWSER=1 CLEW_NEED_INDEX=1 CLEW_THOROUGH=1 $(PYTEST) --durations=10 $(ARGS) || failed=1; \
	$(BIN)/python -m tests.story.boundary || failed=1; \
	$(BIN)/python -m tests.story.boundary.storm || failed=1; \
	$(BIN)/python -m tools.soak || failed=1; \
	exit $$failed

# All of them run, so that one report hides no other.
kills: $(VENV)/tools ## Kill agents, their servers and Clew at every moment; every word arrives once (ARGS="--tries 300")
	@$(BIN)/python -m tools.agents
	@failed=0; \
	CLEW_THOROUGH=1 $(PYTEST) tests/story --ignore tests/story/boundary || failed=1; \
	$(BIN)/python -m tests.story.boundary $(ARGS) || failed=1; \
	$(BIN)/python -m tests.story.boundary.storm || failed=1; \
	exit $$failed

soak: $(VENV)/tools ## Kill servers hundreds of times while they work, then count (ARGS="--kills 50")
	@$(BIN)/python -m tools.soak $(ARGS)

agents: $(VENV)/tools ## Install the real agents for the tests, pinned, into the user's cache
	@$(BIN)/python -m tools.agents $(ARGS)

browser: $(VENV)/tools ## Find a Chromium for the tests of pages, or install Debian's (as root)
	@$(BIN)/python -m tools.browser $(ARGS)

screenshots: $(VENV)/tools ## Take pictures of every page into docs/screenshots, light and dark, wide and narrow
	@$(BIN)/python -m tests.web.screenshots $(ARGS)

examples: $(VENV)/tools ## Run every example
	@$(BIN)/python -m examples.run_all $(ARGS)

reference: $(VENV)/tools ## Write docs/api-reference.md from the code of the API
	@$(BIN)/python -m tools.api_reference --write

enumerate: $(VENV)/tools ## Walk the whole decision space; print how many combinations it has and the time
	@CLEW_THOROUGH=1 $(BIN)/python -m pytest tests/kernel/test_enumeration.py -q -s

# CI=1 takes the randomness out of the property tests, so a mutant dies or lives the same way twice.
mutants: $(VENV)/tools ## Mutate the kernel, run its tests against each mutant, print the score
	@CI=1 $(BIN)/python -m mutmut run $(ARGS)
	@$(BIN)/python -m mutmut export-cicd-stats >/dev/null
	@$(BIN)/python tools/mutation_score.py

mutants-sample: $(VENV)/tools ## Mutate the daemon and the store in 200 places; print the mutants that no test catches (hours)
	@$(BIN)/python -m tools.mutant_sample $(ARGS)

format: $(VENV)/tools ## Fix what the linter can fix, then format
	@$(BIN)/python -m ruff check --fix --exit-zero --quiet .
	@$(BIN)/python -m ruff format .

# What runs has the pins of what is developed with, so that the tests are of what people run.
lock: supported ## Write the locks, keeping pins that still fit (delete them first to renew all)
	@echo "Resolving pyproject.toml, requirements/run.in, requirements/dev.in and bench/requirements-peers.in"
	@set -e; tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	$(PYTHON) -m venv "$$tmp"; \
	"$$tmp/bin/python" -m pip --disable-pip-version-check --quiet install uv; \
	compile() { "$$tmp/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' --output-file "$$@"; }; \
	compile requirements/dev.lock --extra push pyproject.toml requirements/run.in requirements/dev.in; \
	compile requirements/run.lock --constraint requirements/dev.lock pyproject.toml requirements/run.in; \
	compile bench/requirements-peers.lock bench/requirements-peers.in

clean: ## Remove everything that can be made again
	@rm -rf $(VENV) mutants dist build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---------------------------------------------------------------- set-up

.PHONY: supported
supported:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Clew needs Python 3.11 or newer, and '$(PYTHON)' is not: name one, as in 'make PYTHON=python3.12'." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "'$(PYTHON)' cannot make a virtual environment: install its venv package (often python3-venv)." >&2; exit 1; }

# A .venv whose Python is gone, or that was copied from another checkout, is made again.
ifneq ($(shell $(BIN)/python -c '' 2>/dev/null && cat $(VENV)/ready 2>/dev/null),$(CURDIR))
.PHONY: $(VENV)/locked
endif

# Each stamp is written last, so a set-up that was cut short starts over.
$(VENV)/locked: requirements/run.lock requirements/dev.lock | supported
	@echo "Making $(VENV) from requirements/run.lock"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes --requirement requirements/run.lock
	@touch $@

$(VENV)/ready: $(VENV)/locked pyproject.toml
	@echo "Installing Clew into $(VENV)"
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src
	@echo '$(CURDIR)' > $@

# What runs Clew needs none of these, and they take longer than all else.
$(VENV)/tools: $(VENV)/locked | $(VENV)/ready
	@echo "Installing the tools of development from requirements/dev.lock"
	@$(PIP) install --require-hashes --requirement requirements/dev.lock
	@touch $@
