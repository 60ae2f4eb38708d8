# Every target sets up what it needs in its own virtual environment.
PYTHON ?= python3
VENV ?= .venv
BENCH_VENV ?= .venv-bench
RUN ?= runs/listops
BIN := $(VENV)/bin
BENCH_BIN := $(BENCH_VENV)/bin
CONSTRAINTS := -c ci/constraints.txt
PIP_QUIET := --quiet --disable-pip-version-check
NATIVE := $(wildcard native/*)
SETTING_UP := Setting up $(VENV): torch, then treelax with its C++ kernel. This takes minutes, and pip is quiet.

.PHONY: help listops setup test lint types pages browser pytest format docs bench bench-quick clean

help:
	@echo "make listops      set up, then learn the trees of ListOps from its tags (minutes on two cores)"
	@echo "make setup        create $(VENV) and install treelax in it, editable, with everything for tests"
	@echo "make test         set up, then ruff, mypy, the documentation and pytest"
	@echo "make docs         set up, then build the documentation: site/index.html"
	@echo "make bench        set up, then time treelax against its peers (about 20 minutes)"
	@echo "make bench-quick  the same in a minute, for a look"
	@echo "make format       let ruff format the code"
	@echo "make clean        remove environments and build products"

# torch comes first and alone: with the constraint it is the build the checks run with
$(BIN)/.installed: pyproject.toml ci/constraints.txt $(NATIVE)
	@echo "$(SETTING_UP)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(PIP_QUIET) $(CONSTRAINTS) torch
	$(BIN)/pip install $(PIP_QUIET) $(CONSTRAINTS) --editable ".[dev]"
	touch $@

# what training, raw text and the demo page need, without the tools for tests
$(BIN)/.ready: pyproject.toml ci/constraints.txt $(NATIVE)
	@echo "$(SETTING_UP)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(PIP_QUIET) $(CONSTRAINTS) torch
	$(BIN)/pip install $(PIP_QUIET) $(CONSTRAINTS) --editable ".[data,demo,train]"
	touch $@

# what the documentation needs, without the tools for tests
$(BIN)/.docs: pyproject.toml ci/constraints.txt $(NATIVE)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(PIP_QUIET) $(CONSTRAINTS) torch
	$(BIN)/pip install $(PIP_QUIET) $(CONSTRAINTS) --editable ".[docs]"
	touch $@

$(BENCH_BIN)/.installed: pyproject.toml ci/constraints.txt benchmarks/requirements.txt benchmarks/requirements-nodeps.txt $(NATIVE)
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_BIN)/pip install $(PIP_QUIET) $(CONSTRAINTS) torch
	$(BENCH_BIN)/pip install $(PIP_QUIET) $(CONSTRAINTS) --editable .
	$(BENCH_BIN)/pip install $(PIP_QUIET) $(CONSTRAINTS) -r benchmarks/requirements.txt
	$(BENCH_BIN)/pip install $(PIP_QUIET) $(CONSTRAINTS) --no-deps -r benchmarks/requirements-nodeps.txt
	touch $@

setup: $(BIN)/.installed

# a run that was interrupted goes on; one that has ended shows its figures again
listops: $(BIN)/.ready
	$(BIN)/treelax train listops --preset small --out $(RUN) --resume

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

docs: $(BIN)/.docs
	$(BIN)/python -m docs.tools.build

# the same where everything for tests is there already
pages: setup
	$(BIN)/python -m docs.tools.build

# the one thing that no virtual environment can hold
browser:
	sh ci/browser.sh

pytest: setup browser
	$(BIN)/python -m pytest -n 2 --dist loadfile

test: lint types pages pytest

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# the same results first, operation by operation; conftest.py needs the tools for tests
bench: $(BENCH_BIN)/.installed
	$(BENCH_BIN)/python -m pytest --noconftest --quiet -o filterwarnings= tests/test_coming_from.py
	$(BENCH_BIN)/python benchmarks/run.py
	$(BENCH_BIN)/python benchmarks/run.py paths

bench-quick: $(BENCH_BIN)/.installed
	$(BENCH_BIN)/python benchmarks/run.py --quick

clean:
	rm -rf $(VENV) $(BENCH_VENV) build site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
