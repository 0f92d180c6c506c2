"""The text of a system prompt under test, found again in a run's requests: the run itself records its file's name and
hash only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from dataset_builder import jsonl
from dataset_builder.composing.condition_text import condition_texts
from dataset_builder.formats import json_file
from dataset_builder.release import Release
from replies.inspect_log import first_inputs
from replies.opening import SCORED, log_at
from replies.schema import OwnPrompt

LOOKS = 3  # samples of each task that are looked at: the prompt is the same in all
STARTS = 50_000  # characters that a chat template or an instruction may put before it
SHOWN = 40  # characters of what follows the prompt by which its end is known


def own_prompt(home: Path, condition: OwnPrompt, release: Release) -> str | None:
    """The prompt that stood in the place of every condition's text, None where no request in the folder holds it.

    It is what was sent, to the byte: its hash is the one that the run recorded.
    """
    conditions = condition_texts(release.rows.values())
    for identity, texts in _first_requests(home):
        row = release.rows.get(identity)
        own = conditions.get((row.scenario, row.condition)) if row else None
        if row is None or own is None:
            continue
        behind = (row.messages[0].content or "").removeprefix(own)[:SHOWN]
        for text in texts:
            if behind in text and (found := _ending(text[: text.index(behind)], condition.sha256)):
                return found
    return None


def _first_requests(home: Path) -> Iterator[tuple[str, Iterable[str]]]:
    """The texts of a few samples' first requests, by the sample's id, whichever runner logged them."""
    if home.suffix == SCORED and (log := log_at(home)):
        yield from first_inputs(log, LOOKS)
    for path in sorted(home.glob("samples_*.jsonl")):
        with suppress(OSError):  # whoever reads the replies says what stands there
            for _, sample in islice(jsonl.objects(path, lambda *_: None), LOOKS):
                doc = sample.get("doc")
                yield str(doc.get("id") if isinstance(doc, dict) else None), _requested(sample)


def _requested(sample: dict[str, Any]) -> Iterator[str]:
    """The texts of a sample's first request: of an API's messages each, or a template's one text."""
    arguments = sample.get("arguments")
    first = arguments.get("gen_args_0") if isinstance(arguments, dict) else None
    sent = first.get("arg_0") if isinstance(first, dict) else None
    for text in sent if isinstance(sent, list) else [sent]:
        try:
            messages = json_file.lenient(str(text))
            yield from (str(m["content"]) for m in messages)
        except (ValueError, TypeError, KeyError):  # no JSON of messages: a template's text
            yield str(text)


def _ending(text: str, sha256: str) -> str | None:
    """The end of a text that has this hash."""
    ends = (text[start:] for start in range(min(len(text), STARTS)))
    return next(
        (end for end in ends if hashlib.sha256(end.encode("utf-8", "surrogatepass")).hexdigest() == sha256), None
    )
