"""The text of a system prompt under test, found again in a run's requests: the run itself records its file's name and
hash only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from dataset_builder.composing.condition_text import condition_texts
from dataset_builder.release import Release
from helmbench_common import jsonl
from helmbench_common.formats import json_file
from judge.replies.inspect_log import first_inputs
from judge.replies.opening import SCORED, log_at
from judge.replies.schema import OwnPrompt

LOOKS = 3  # samples of each task that are looked at: the prompt is the same in all
STARTS = 50_000  # characters that a chat template or an instruction may put before it
TEXTS = 16  # that are searched in all
HASHED = 2**27  # characters for each text, over all its beginnings: whoever wrote the log chose its length
# Where a prompt may begin: no space is before its first character, and no template ends in a letter.
BEGINNING = re.compile(r"(?<!\w)\S")
SHOWN = 40  # characters of what follows the prompt by which its end is known


def own_prompt(home: Path, condition: OwnPrompt, release: Release) -> str | None:
    """The prompt that stood in the place of every condition's text, None where no request in the folder holds it.

    It is what was sent, to the byte: its hash is the one that the run recorded.
    """
    texts = islice(_before_what_follows(home, release), TEXTS)
    return next((found for text in texts if (found := _ending(text, condition.sha256))), None)


def _before_what_follows(home: Path, release: Release) -> Iterator[str]:
    """The texts that were sent in a condition's place, with whatever a template put before them."""
    conditions = condition_texts(release.rows.values())
    for identity, texts in _first_requests(home):
        row = release.rows.get(identity)
        own = conditions.get((row.scenario, row.condition)) if row else None
        if row is None or own is None:
            continue
        behind = (row.messages[0].content or "").removeprefix(own)[:SHOWN]
        yield from (text[: text.index(behind)] for text in texts if behind and behind in text)


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
    """The end of a text that has this hash; of a longer text fewer beginnings are tried."""
    starts = islice(BEGINNING.finditer(text, 0, STARTS), HASHED // max(len(text), 1))
    ends = (text[start.start() :] for start in starts)
    return next(
        (end for end in ends if hashlib.sha256(end.encode("utf-8", "surrogatepass")).hexdigest() == sha256), None
    )
