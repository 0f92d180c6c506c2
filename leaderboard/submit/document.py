"""`submission.json` of a run: what it was, how it was made, and its arguments as they may be published."""

from __future__ import annotations

import json
import re
from pathlib import PureWindowsPath
from typing import Any, NamedTuple

from pydantic import ValidationError

from dataset_builder.release import Release
from leaderboard.public import ABSOLUTE
from leaderboard.schema import Generation, Pinned, Submission, SubmittedJudge
from leaderboard.submit.about import About
from leaderboard.submit.ready import Ready
from leaderboard.verify.recompute import headline
from replies.errors import RunError

Plain = str | int | float | bool | None


class Published(NamedTuple):
    """The run's arguments as they may be published, and what was left out or shortened."""

    arguments: dict[str, Plain]
    notes: list[str]


def document(
    ready: Ready, judge: SubmittedJudge, about: About, release: Release, arguments: dict[str, Plain]
) -> Submission:
    """What a reader of the board can know of a run.

    Raises:
        RunError: a value that has no place there; all are named.
    """
    run, logged = ready.run, ready.logged
    assert run.tier is not None  # read_run gives one to every run of lm-eval's
    try:
        return Submission(
            submitted=about.submitted,
            contact=about.contact,
            model=about.model,
            dataset=Pinned(
                version=release.manifest.version,
                score_hash=release.manifest.score_hash,
                tier=run.tier,
                samples=len(run.ids),
                commit=about.commit,
            ),
            generation=Generation(
                backend=run.model.backend,
                arguments=arguments,
                generation_kwargs={k: _setting(v) for k, v in logged.settings.items()},
                system_prompt_sha256=None,
                lm_eval=logged.lm_eval,
                task_version=logged.task_version,
                repeats=max(r.repeat for r in run.replies) + 1,
            ),
            judge=judge,
            declaration=about.declaration,
            scores=headline(ready.card),
        )
    except ValidationError as error:
        raise RunError("\n".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())) from None


def _setting(value: Any) -> Any:
    """A generation setting as it is kept: a plain value or list of texts as it is, else its JSON."""
    texts = isinstance(value, list) and all(isinstance(v, str) for v in value)
    return value if isinstance(value, str | int | float | bool | None) or texts else json.dumps(value)


def published(arguments: dict[str, Plain]) -> Published:
    """Of a path its last part, of an address nothing behind its `?`."""
    found = Published({}, [])
    for name, value in arguments.items():
        found.arguments[name] = short = _short(value) if isinstance(value, str) else value
        if short != value:
            found.notes.append(f"generation.arguments.{name}: shortened to {short}")
    return found


def _short(value: str) -> str:
    if re.match(r"https?://", value):
        return value.partition("?")[0]
    return PureWindowsPath(value).name if ABSOLUTE.search(value) else value
