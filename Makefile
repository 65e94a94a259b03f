# Two commands for people: `make demo` and `make test`. Each sets up all it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Kernels compile into the checkout, so a fresh clone is always a cold start.
export RANKINITE_CACHE_DIR := $(CURDIR)/.cache

.PHONY: demo test lint kernels docs lock clean

demo: $(VENV)/installed
	$(BIN)/rankinite demo --out demo

test: $(VENV)/installed lint
	$(BIN)/python -m pytest
	$(MAKE) --no-print-directory kernels

lint: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The kernels' tests once more without the JIT: it catches the index errors that compiled code hides.
kernels: $(VENV)/installed
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m kernel tests

docs: $(VENV)/installed
	$(BIN)/python docs/make_command_reference.py

$(VENV)/installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else "Rankinite needs Python 3.11 to 3.13, and $(PYTHON) is %d.%d; try make PYTHON=python3.12" % v)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# Pins the newest versions anew: names, versions and hashes, for every supported Python.
lock:
	$(PYTHON) -m venv .cache/lock
	.cache/lock/bin/python -m pip install --quiet uv
	.cache/lock/bin/uv pip compile --quiet --universal --upgrade --generate-hashes --no-header \
		--python-version 3.11 --extra test pyproject.toml --output-file requirements.txt

clean:
	rm -rf $(VENV) .cache demo
