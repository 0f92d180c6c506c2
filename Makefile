# One virtual environment, one lock file; a second run reinstalls nothing.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CONTENT := $(shell find dataset_builder -type f -not -path '*/__pycache__/*')

.PHONY: setup demo measure test test-backends check lint generated lock clean

setup: helmbench/MANIFEST.json  ## environment, registered task, built dataset

demo: setup  ## the main job, end to end
	@$(BIN)/python scripts/demo.py

measure: setup  ## the paper's measurement, end to end: 2 models × 3 runs × 3 judge runs
	@$(BIN)/python scripts/measure.py

test: setup  ## every test
	$(BIN)/python -m pytest

test-backends: setup  ## transformers, vLLM and its server, really run on the CPU, each in an environment of its own
	@for kind in hf vllm; do \
	    ready=.venv-$$kind/.ready; \
	    if ! [ $$ready -nt pyproject.toml ] || ! [ $$ready -nt scripts/make_backend_env.sh ]; then \
	        echo "making .venv-$$kind: gigabytes, a few minutes"; \
	        PYTHON=$(PYTHON) timeout 900 scripts/make_backend_env.sh $$kind || echo "no environment for $$kind on this machine: its tests are skipped"; \
	    fi; \
	done
	HELMBENCH_BACKENDS=$(CURDIR) $(BIN)/python -m pytest tests/backends --numprocesses=0 -r s

check: lint test  ## all that a commit must pass

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy -m demo -m measure -m scripted_judge -m reference_server -m reference_policies -m register_task -m make_card -m make_submission -m build_leaderboard -m export_results
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
	$(BIN)/python scripts/make_card.py --dataset helmbench

lock:  ## after a change to the dependencies (needs uv)
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --quiet --custom-compile-command 'make lock' --output-file requirements.lock

clean:
	rm -rf $(VENV) .venv-hf .venv-vllm helmbench demo measurement board
