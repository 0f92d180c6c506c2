"""A judge in this process: `vllm:ORG/MODEL` or `hf:ORG/MODEL` answers the same questions into the same files as a judge
behind a server. A killed run continues where it stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import closing, redirect_stdout
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from helmbench_common import jsonl
from judge.llm import batch
from judge.llm.asking import REQUESTS, Questions, write_missing
from judge.llm.errors import EngineError
from judge.llm.questions import JudgeRequest

KINDS = ("vllm", "hf")
SIZES = {"vllm": 512, "hf": 8}  # questions answered together; a kill loses at most these


class Said(NamedTuple):
    """An answer, why it ended, and its numbers of tokens; `text` is None if the question doesn't fit the window."""

    text: str | None
    finish: str | None
    prompt: int
    completion: int


Generate = Callable[[Sequence[JudgeRequest]], list[Said]]


def is_local(name: str) -> bool:
    return name.partition(":")[0] in KINDS and ":" in name


def model_of(name: str) -> str:
    """The judge's name in files and scores: `ORG/MODEL` for `vllm:ORG/MODEL,dtype=bfloat16`, else the name itself."""
    return name.partition(":")[2].partition(",")[0] if is_local(name) else name


def answer(questions: Questions, where: Path, name: str) -> None:
    """Answers what is missing from `questions` into `where`/replies.jsonl.

    Raises:
        EngineError: the extra isn't installed, the model has no chat template, or another process is answering.
    """
    with closing(batch.Log(where)) as log:
        replies = batch.Replies(where)
        estimate = write_missing(questions, where)
        if not estimate.requests:
            (where / REQUESTS).unlink()
            return
        sys.stderr.write(f"{where}: {estimate.text(None)}\n")
        kind, _, rest = name.partition(":")
        asked = batch.missing(questions(), replies)
        with (
            redirect_stdout(sys.stderr),  # vLLM logs to stdout, which is for the scorecard
            tqdm(total=estimate.requests, desc="judging", unit="reply", mininterval=1.0) as progress,
        ):
            generate = (_vllm if kind == "vllm" else _transformers)(*rest.partition(",")[::2])  # loaded once
            while chunk := [*islice(asked, SIZES[kind])]:
                said = generate([request for request, _ in chunk])
                log.write(line for both, one in zip(chunk, said, strict=True) for line in _lines(*both, one))
                progress.update(len(chunk))


def _lines(request: JudgeRequest, asks: int, said: Said) -> list[str]:
    """The lines for an answer. An unreadable one is written as often as a server would be asked: it would stay the
    same.
    """
    if said.text is None:
        return [jsonl.line(batch.failure(request.custom_id, f"{said.prompt} tokens exceed the model's window"))]
    choice = {"message": {"role": "assistant", "content": said.text}, "finish_reason": said.finish}
    usage = {"prompt_tokens": said.prompt, "completion_tokens": said.completion}
    body = batch.trim({"model": request.body["model"], "choices": [choice], "usage": usage}) or {}
    lines = [batch.result(request.custom_id, None, body)]
    while batch.read(lines, request).missing and len(lines) + asks < batch.ASKS:
        lines.append(batch.result(request.custom_id, None, body))
    return [jsonl.line(line) for line in lines]


def _missing_extra(kind: str, problem: ImportError) -> EngineError:
    return EngineError(f"--judge {kind}:… needs an extra that isn't installed ({problem}): pip install '.[{kind}]'")


@lru_cache(maxsize=1)
def _transformers(model: str, arguments: str) -> Generate:
    try:
        import torch
        from lm_eval.utils import simple_parse_args_string
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as problem:
        raise _missing_extra("hf", problem) from None
    tokenizer: Any = AutoTokenizer.from_pretrained(model, padding_side="left")
    settings = {"dtype": "auto", "device_map": "auto", **simple_parse_args_string(arguments)}
    lm: Any = AutoModelForCausalLM.from_pretrained(model, **settings)
    _check_template(tokenizer, model)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token

    def generate(requests: Sequence[JudgeRequest]) -> list[Said]:
        prompts = [_prompt(tokenizer, r) for r in requests]
        sizes = [len(tokenizer(p, add_special_tokens=False).input_ids) for p in prompts]
        most = max(r.body["max_tokens"] for r in requests)
        warmth = requests[0].body["temperature"]  # the same in all
        sampling = {"do_sample": True, "temperature": warmth} if warmth else {"do_sample": False}
        found = [Said(None, None, size, 0) for size in sizes]
        fit = [n for n, size in enumerate(sizes) if size + most <= lm.config.max_position_embeddings]
        if not fit:
            return found
        inputs = tokenizer([prompts[n] for n in fit], return_tensors="pt", padding=True, add_special_tokens=False)
        with torch.inference_mode():
            made = lm.generate(**inputs.to(lm.device), max_new_tokens=most, **sampling)
        for n, tokens in zip(fit, made[:, inputs.input_ids.shape[1] :], strict=True):
            kept = [t for t in tokens.tolist() if t != tokenizer.pad_token_id]
            ended = "length" if len(kept) == most and kept[-1] != tokenizer.eos_token_id else "stop"
            found[n] = Said(tokenizer.decode(kept, skip_special_tokens=True), ended, sizes[n], len(kept))
        return found

    return generate


@lru_cache(maxsize=1)
def _vllm(model: str, arguments: str) -> Generate:
    try:
        from lm_eval.utils import simple_parse_args_string
        from vllm import LLM, SamplingParams
        from vllm.sampling_params import StructuredOutputsParams
    except ImportError as problem:
        raise _missing_extra("vllm", problem) from None
    # As `vllm serve` in docs/running.md: this backend keeps to the schema most often.
    keeping = {"backend": "guidance", "disable_any_whitespace": True}
    lm: Any = LLM(model, **{"structured_outputs_config": keeping, **simple_parse_args_string(arguments)})
    tokenizer: Any = lm.get_tokenizer()
    window = lm.llm_engine.model_config.max_model_len
    _check_template(tokenizer, model)

    def generate(requests: Sequence[JudgeRequest]) -> list[Said]:
        sizes = [len(tokenizer(_prompt(tokenizer, r), add_special_tokens=False).input_ids) for r in requests]
        found = [Said(None, None, size, 0) for size in sizes]
        fit = [n for n, r in enumerate(requests) if sizes[n] + r.body["max_tokens"] <= window]
        # The schema that a server gets as `response_format`.
        shapes = [requests[n].body.get("response_format") for n in fit]
        settings = [
            SamplingParams(
                temperature=requests[n].body["temperature"],
                max_tokens=requests[n].body["max_tokens"],
                structured_outputs=StructuredOutputsParams(json=shape["json_schema"]["schema"]) if shape else None,
            )
            for n, shape in zip(fit, shapes, strict=True)
        ]
        made = lm.chat([requests[n].body["messages"] for n in fit], settings, use_tqdm=False) if fit else []
        for n, output in zip(fit, made, strict=True):
            (one,) = output.outputs
            found[n] = Said(one.text, one.finish_reason, sizes[n], len(one.token_ids))
        return found

    return generate


def _check_template(tokenizer: Any, model: str) -> None:
    if not tokenizer.chat_template:
        raise EngineError(f"{model} has no chat template, so it can't be asked; a judge is a chat model")


def _prompt(tokenizer: Any, request: JudgeRequest) -> str:
    return str(tokenizer.apply_chat_template(request.body["messages"], add_generation_prompt=True, tokenize=False))
