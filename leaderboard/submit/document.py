"""`submission.json` of a run: what it was, how it was made, and its arguments as they may be published."""

from __future__ import annotations

import json
import re
from itertools import takewhile
from pathlib import PureWindowsPath
from typing import Any, NamedTuple
from urllib.parse import unquote

from pydantic import ValidationError

from dataset_builder.release import Release
from judge.replies.schema import RunError
from leaderboard import secrets
from leaderboard.public import ABSOLUTE
from leaderboard.schema import Generation, Pinned, Submission, SubmittedJudge
from leaderboard.submit.about import About
from leaderboard.submit.ready import Ready
from leaderboard.verify.recompute import headline

ADDRESS = re.compile(r"https?://", re.IGNORECASE)
USER = re.compile(r"^[^\s/:@]+:[^\s/@]+@")  # a name and password before an address without `https://`
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
    assert run.tier is not None  # every log of a benchmark's task names one
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
                inspect=logged.inspect,
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
    """Of a path its last part; of an address no name, no password, nothing behind its `?` or `#`, and nothing from a
    part on that looks like a key. What is named like a key is left out.
    """
    found = Published({}, [])
    for name, value in arguments.items():
        if secrets.named_like(name):
            found.notes.append(f"generation.arguments.{name}: left out, a name under which keys are given")
            continue
        found.arguments[name] = short = _short(value) if isinstance(value, str) else value
        if short != value:
            found.notes.append(f"generation.arguments.{name}: shortened to {short}")
    return found


def _short(value: str) -> str:
    if ADDRESS.match(value):
        scheme, _, rest = re.split(r"[?#]", value, maxsplit=1)[0].partition("//")
        host, *path = rest.split("/")
        plain = takewhile(lambda part: not secrets.random_looking(unquote(part)), path)
        return f"{scheme}//{'/'.join([host.rpartition('@')[2], *plain])}"
    value = USER.sub("", value)
    return PureWindowsPath(value).name if ABSOLUTE.search(value) else value
