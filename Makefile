# Two commands for people: `make demo` and `make test`. Each sets up all it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Modules are compiled to bytecode when they are first imported, which most never are.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Bytecode is written at the first import, also where the environment forbids it: tests start many
# processes, and each would compile numba's sources again.
export PYTHONDONTWRITEBYTECODE :=
# Kernels compile into the checkout, so a fresh clone is always a cold start.
export RANKINITE_CACHE_DIR := $(CURDIR)/.cache

.PHONY: demo test suite test-long attacks lint kernels coverage docs lock clean

demo: $(VENV)/installed
	$(BIN)/rankinite demo --out demo

# On all cores, and one process more, because many tests wait for others; a file of tests is one
# process's, so that what its tests share is made once.
PROCESSES := $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
PYTEST := $(BIN)/python -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder

# mypy beside the first tests, which wait for compilers.
test: $(VENV)/installed
	$(MAKE) --no-print-directory -j2 lint suite
	$(MAKE) --no-print-directory kernels

suite: $(VENV)/installed
	$(PYTEST)

# What takes long by nature: the campaign of attacks, and new examples where `make test` has the
# same ones every time.
test-long: $(VENV)/installed
	$(PYTEST) --long
	$(MAKE) --no-print-directory attacks

# Forged files, damage, kills and full disks: how many were tried, and what came of them.
attacks: $(VENV)/installed
	$(BIN)/python -m tests.attacks

lint: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The kernels' tests once more without the JIT: it catches the index errors that compiled code hides.
kernels: $(VENV)/installed
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m kernel tests

# Kernels count as covered when they run without the JIT.
coverage: $(VENV)/installed
	$(PYTEST) --cov=rankinite --cov-report=
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m kernel --cov=rankinite --cov-append --cov-report=term \
		--cov-report=html tests

docs: $(VENV)/docs
	$(BIN)/python docs/make_command_reference.py
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "wrote docs/_build/html/index.html"

$(VENV)/installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else "Rankinite needs Python 3.11 to 3.13, and $(PYTHON) is %d.%d; try make PYTHON=python3.12" % v)'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --require-hashes -r requirements.txt
	$(INSTALL) --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/docs: $(VENV)/installed requirements-docs.txt
	$(INSTALL) --require-hashes -r requirements-docs.txt
	touch $@

# Pins the newest versions anew: names, versions and hashes, for every supported Python.
lock:
	$(PYTHON) -m venv .cache/lock
	.cache/lock/bin/python -m pip install --quiet uv
	.cache/lock/bin/uv pip compile --quiet --universal --upgrade --generate-hashes --no-header \
		--python-version 3.11 --extra test pyproject.toml --output-file requirements.txt
	.cache/lock/bin/uv pip compile --quiet --universal --upgrade --generate-hashes --no-header \
		--python-version 3.11 --extra docs --constraint requirements.txt pyproject.toml \
		--output-file requirements-docs.txt

clean:
	rm -rf $(VENV) .cache demo docs/_build docs/reference/generated htmlcov .coverage
