# One virtual environment, one lock file; a second run reinstalls nothing.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CONTENT := $(shell find dataset_builder judge/prompts -type f -not -path '*/__pycache__/*')

.PHONY: setup demo test check lint generated lock clean

setup: helmbench/MANIFEST.json  ## environment, registered task, built dataset

demo: setup  ## the main job, end to end
	@$(BIN)/python scripts/demo.py

test: setup  ## every test
	$(BIN)/python -m pytest

check: lint test  ## all that a commit must pass

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy -m task -m metrics -m demo -m reference_server -m reference_policies -m register_task
	$(BIN)/python -m dataset_builder check

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "HELMbench needs Python 3.11 or newer; name one with make PYTHON=python3.11")'
	@echo "setting up $(VENV): about 100 packages, a minute or two"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python scripts/register_task.py
	@touch $@

helmbench/MANIFEST.json: $(READY) $(CONTENT)
	@$(BIN)/python -m dataset_builder build
	@touch $@

generated: setup  ## after a change to the content or the scorecard: what is committed beside them
	$(BIN)/python scripts/make_references.py --dataset helmbench
	$(BIN)/python -m judge schema > docs/scorecard.schema.json

lock:  ## after a change to the dependencies (needs uv)
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --quiet --custom-compile-command 'make lock' --output-file requirements.lock

clean:
	rm -rf $(VENV) helmbench demo
