PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
CODE := $(wildcard app domain projections ops tests tracon.py)

.DEFAULT_GOAL := help
.PHONY: help run test check format schema readme bench chaos fuzz interop

help:
	@echo "make run      start the service with the demo agents"
	@echo "make test     install, check and test everything"
	@echo "make check    linters, formatting, types, import rules"
	@echo "make format   rewrite the code the way check wants it"
	@echo "make schema   rewrite ops/schema.sql from the migrations"
	@echo "make readme   rewrite what README.md shows of a run"
	$(if $(wildcard ops/bench/__main__.py),@echo "make bench    measure it on this machine")
	$(if $(wildcard ops/chaos/__main__.py),@echo "make chaos    break things under load and audit the log; SEED=7 does it as that seed says")
	@echo "make fuzz     ask a service 2,000 requests of every shape, and hold it to /openapi.json"
	@echo "make interop  try the npm package openai against a service (needs node and npm)"

run: .venv/installed
	$(BIN)/tracon serve --app ops/demo/app.py --config ops/demo/tracon.toml

test: check
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: .venv/installed-dev
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports --no-logo

format: .venv/installed-dev
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

schema: .venv/installed-dev
	$(BIN)/python -m ops.schema

readme: .venv/installed-dev
	$(BIN)/python -m ops.readme

bench: .venv/installed-dev
	$(BIN)/python -m ops.bench

chaos: .venv/installed-dev
	$(BIN)/python -m ops.chaos $(if $(SEED),--seed $(SEED))

fuzz: .venv/installed-dev
	$(BIN)/python -m ops.fuzz

interop: .venv/installed
	$(BIN)/python -m ops.interop

# The stamps are newer than pyproject.toml exactly when what it asks for is installed.
$(BIN)/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | $(BIN)/python
	$(PIP) install --editable .
	@touch $@

.venv/installed-dev: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[dev]'
	@touch .venv/installed $@
