# BLADE's chores. `make` alone lists them. Nothing is needed but Python 3.11 or newer and make.

PYTHON ?=
# One more than a small machine has cores: many tests wait for processes that they started.
WORKERS ?= 3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-fast check golden map bench accuracy calibration canaries fuzz clean
.NOTPARALLEL:

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

demo: .venv/.base ## Run, diagnose and compare two scripted models: the first thing to try
	@$(BIN)/blade demo

test: check ## What must hold before a change lands: check, then all tests but the slow ones
	@PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow"

test-all: check ## Everything: the slow tests too, which repeat a claim of a quick one on more data
	@PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n $(WORKERS) --dist worksteal

test-fast: .venv/.dev ## The inner loop: stop at the first failure, leave slow tests and the corpus out
	@$(BIN)/pytest -n $(WORKERS) -x -m "not slow and not corpus"

fuzz: .venv/.dev ## Put the properties to examples that were never tried
	@BLADE_FUZZ=1 $(BIN)/pytest -n $(WORKERS) $$(grep -rl hypothesis tests --include='test_*.py')

check: .venv/.dev ## ruff, mypy, and whether the map in the docs is up to date
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python scripts/map.py --check

golden: .venv/.dev ## Rewrite the golden files and the schema of report.json; review their diff like code
	@$(BIN)/python scripts/report_schema.py
	@BLADE_GOLDEN=write $(BIN)/pytest tests/test_golden.py tests/package/test_example.py

map: .venv/.dev ## Rewrite the map in docs/map.md from the first docstring lines
	@$(BIN)/python scripts/map.py

bench: .venv/.dev ## Measure speed and memory against the budgets
	@$(BIN)/python -m tools.bench

accuracy: .venv/.dev ## Measure causes and steps where the truth is known
	@$(BIN)/python -m tools.accuracy

calibration: .venv/.dev ## Measure whether verdicts, intervals and causes of comparisons are right
	@$(BIN)/python -m tools.calibration

canaries: .venv/.dev ## Measure what the sanitiser catches and what it changes
	@$(BIN)/python -m tools.canaries

clean: ## Remove caches, build output and .venv
	@rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps: `.base` is what the demo needs, `.dev` adds the tools of the tests and covers `.base` too.
.venv/.base: pyproject.toml | $(BIN)/python
	@$(call install,.)
	@touch $@

.venv/.dev: pyproject.toml | $(BIN)/python
	@$(call install,.[dev])
	@touch .venv/.base $@

# The interpreter: PYTHON=... if given, else the first of these that is new enough.
$(BIN)/python:
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    "$$python" -m venv .venv || { rm -rf .venv; exit 1; }; \
	    exit 0; \
	  fi; \
	done; \
	echo "BLADE needs Python 3.11 or newer; found $$(python3 --version 2>&1 || echo none)." >&2; \
	echo "Name another interpreter with: make PYTHON=/path/to/python3.11" >&2; \
	exit 1

# uv is quicker where it is present; pip is always enough.
define install
echo "Installing into .venv ..." >&2; \
{ command -v uv >/dev/null 2>&1 && uv pip install --quiet --python $(BIN)/python -e '$(1)' 2>/dev/null; } || \
$(BIN)/python -m pip install -qq --disable-pip-version-check -e '$(1)'
endef
