"""A language model in the role `grader` as our judge: the same questions, in the same words, asked through Inspect.

Its answers are kept as lines of the batch format, so that `helmbench score LOG.eval` reads what was said and asks
nothing again.
"""

from __future__ import annotations

from typing import Any

from inspect_ai.model import GenerateConfig, Model, ResponseSchema, model_roles
from inspect_ai.util import JSONSchema

from helmbench.inspect.play import ended
from judge.llm import batch
from judge.llm.questions import JudgeRequest
from judge.replies.inspect_log import GRADER


def grader() -> Model | None:
    """The model in the role `grader`, None where the run has none.

    Raises:
        ValueError: several models in that role; a panel is made afterwards, by `helmbench score --judge A --judge B`.
    """
    found = model_roles().get(GRADER)
    if isinstance(found, list):
        raise ValueError("helmbench: the role grader names several models; expected one (docs/running.md)")
    return found


def name_of(model: Model) -> str:
    """What a provider's server calls the model, by which calibrations know it too."""
    return model.api.service_model_name()


async def answers(model: Model, requests: list[JudgeRequest]) -> dict[str, list[dict[str, Any]]]:
    """Lines of the batch format, by the question's id: every answer to it, asked again while it can't be read."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for request in requests:
        own = lines.setdefault(request.custom_id, [])
        while batch.read(own, request).missing and len(own) < batch.ASKS:
            own.append(await _asked(model, request))
    return lines


async def _asked(model: Model, request: JudgeRequest) -> dict[str, Any]:
    body = request.body
    shape = body["response_format"]["json_schema"]
    config = GenerateConfig(
        temperature=body["temperature"],
        max_tokens=body["max_tokens"],
        response_schema=ResponseSchema(
            name=shape["name"], json_schema=JSONSchema.model_validate(shape["schema"]), strict=True
        ),
    )
    try:
        output = await model.generate(body["messages"][0]["content"], config=config)
    except Exception as error:  # whatever a provider raises: the verdict stands as unscored, and can be asked for later
        return batch.failure(request.custom_id, f"{type(error).__name__}: no answer")
    usage = output.usage
    counted = usage and {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }
    message = {"content": output.completion if output.choices else None, "refusal": None}
    choice = {"message": message, "finish_reason": ended(output.stop_reason)}
    trimmed = batch.trim({"model": output.model, "choices": [choice], "usage": counted})
    return batch.result(request.custom_id, None, trimmed or {})
