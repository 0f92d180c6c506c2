"""The dataset that a run uses, and its samples in Inspect's form."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import Sample

from dataset_builder import schema
from dataset_builder.corpora.labelled import on_corpus
from dataset_builder.prompts import CONTENT
from dataset_builder.release import DATASET, Release, ReleaseError, open_release
from dataset_builder.writing.write import build
from helmbench.inspect.solver import chat
from helmbench_common.errors import RefusedError
from judge.replies.inspect_log import SCRIPT
from judge.replies.script import ChatMessages, segments

# Fields by which a reader of the log finds samples; the samples themselves are in the release.
SHOWN = (
    *("polarity", "crisis_category", "country", "behavior", "scenario", "family", "condition", "persona", "severity"),
    *("difficulty", "arm", "population"),
)


@lru_cache(maxsize=4)
def release(dataset: str | None = None, messages: str | None = None) -> Release:
    """The built dataset. `messages`: a labeled corpus that replaces its stand-alone messages. If no dataset is named or
    built, builds one into ./helmbench, because the installed package contains none.

    Raises:
        PrerequisiteError: the dataset can't be read or built.
    """
    try:
        found = _opened(dataset)
        return on_corpus(found, Path(messages)) if messages else found
    except ReleaseError as error:
        raise PrerequisiteError(f"helmbench: {error}") from None


def _opened(dataset: str | None) -> Release:
    try:
        return open_release(dataset)
    except ReleaseError:
        here = Path("helmbench")
        if dataset or os.environ.get(DATASET) or here.exists():
            raise
    sys.stderr.write("helmbench: no built dataset here; building it into ./helmbench, once\n")
    try:
        build(CONTENT, here)
    except (RefusedError, OSError) as error:
        raise ReleaseError(f"{here}: can't be built ({error}); name a built dataset with -T dataset=FOLDER") from None
    return open_release(here)


def sample(row: schema.Sample, first: ChatMessages) -> Sample:
    """A sample for Inspect: its first request, the script of its live turns, and the fields for readers of the log."""
    script = segments(m.model_dump() for m in row.messages)[1:]
    fields: Mapping[str, Any] = row.model_dump(mode="json", by_alias=True)
    about = {name: fields[name] for name in SHOWN if fields.get(name) is not None}
    return Sample(
        id=row.id, input=chat(first), target=row.polarity, metadata=about | ({SCRIPT: script} if script else {})
    )
