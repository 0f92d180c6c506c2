"""Real vLLM on the CPU through lm-eval's `vllm`, by the recipes for one GPU."""

from __future__ import annotations

from local_backends import Backend, LocalBackendTests

# A tiny model's context is 16,384 tokens; vLLM on a CPU needs no graphs, and a share of the memory that leaves room for
# others.
VLLM = Backend(
    "vllm",
    chat="vllm",
    reasoning="reasoning",
    base="base",
    values={"max_model_len=32768": "max_model_len=16384", "max_gen_toks=16384": "max_gen_toks=24"},
    settings=",dtype=float32,gpu_memory_utilization=0.2,enforce_eager=True",
)


class TestVllm(LocalBackendTests):
    backend = VLLM
