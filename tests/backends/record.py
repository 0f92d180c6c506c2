"""Runs `lm_eval` in a backend's environment and writes down every prompt that the model itself is given.

Usage: `PYTHON tests/backends/record.py FILE --model hf|vllm …`, everything after FILE as `lm_eval` takes it. FILE gets
one JSON string per prompt: its token ids, decoded with all special tokens. What lm-eval logs is what it meant to send;
this is what came out of tokenizing, truncating and batching.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def note(file: Path, tokenizer: Any, prompts: list[list[int]]) -> None:
    with file.open("a", encoding="utf-8") as log:
        log.writelines(json.dumps(tokenizer.decode(prompt, skip_special_tokens=False)) + "\n" for prompt in prompts)


def watch_transformers(file: Path) -> None:
    from transformers import AutoTokenizer, GenerationMixin

    generate = GenerationMixin.generate

    @functools.wraps(generate)
    def noted(self: Any, *arguments: Any, **settings: Any) -> Any:
        padded, mask = settings["input_ids"].tolist(), settings["attention_mask"].tolist()
        tokenizer = AutoTokenizer.from_pretrained(self.config.name_or_path)
        note(
            file,
            tokenizer,
            [[t for t, real in zip(ids, kept, strict=True) if real] for ids, kept in zip(padded, mask, strict=True)],
        )
        return generate(self, *arguments, **settings)

    GenerationMixin.generate = noted


def watch_vllm(file: Path) -> None:
    import vllm

    generate: Callable[..., Any] = vllm.LLM.generate

    @functools.wraps(generate)
    def noted(self: Any, prompts: Any, *arguments: Any, **settings: Any) -> Any:
        note(file, self.get_tokenizer(), [p["prompt_token_ids"] for p in prompts])
        return generate(self, prompts, *arguments, **settings)

    vllm.LLM.generate = noted


if __name__ == "__main__":  # vLLM's worker processes import this file again
    target, sys.argv = Path(sys.argv[1]), ["lm_eval", *sys.argv[2:]]
    (watch_vllm if "vllm" in sys.argv else watch_transformers)(target)
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()
