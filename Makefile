PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: help setup test lint format demo bench soak clean

help:  ## what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(STAMP)  ## a virtual environment with the project and what its checks need

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable .
	@touch $(STAMP)

test: lint  ## every check: format, lint, types, tests
	$(BIN)/python -m pytest -q

lint: $(STAMP)  ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP)  ## put the code in its format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

demo: $(STAMP)  ## convert a real log, prove the result, show where to look
	@rm -rf demo-out
	@$(BIN)/python -c 'print("\nA loop of two rounds, as the harness logged it: fixtures/green-in-two-rounds/in\n")'
	$(BIN)/vinaya-bridge convert fixtures/green-in-two-rounds/in -o demo-out
	@echo
	$(BIN)/vinaya-bridge verify demo-out --against fixtures/green-in-two-rounds/in
	@echo
	$(BIN)/ethogram runs demo-out/runs
	@echo
	@echo "Look at demo-out/runs/*/events.jsonl (the events) and demo-out/report.json (the ledger)."
	@echo "Then try it on your own logs: $(BIN)/vinaya-bridge convert ~/.vinaya -o out"

bench: $(STAMP)  ## cost and scale, as ratios within one run: 20 minutes, better on an idle machine
	$(BIN)/python -m benchmarks

soak: $(STAMP)  ## the long form of the tests that kill and restart
	SOAK=1 $(BIN)/python -m pytest -q tests/tail

clean:  ## remove what make made
	rm -rf $(VENV) demo-out .mypy_cache .ruff_cache .pytest_cache .hypothesis
