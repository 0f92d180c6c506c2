"""A run's metadata about itself, from any runner: what it measures and on which release; compared with the release that
it is to be judged on.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from dataset_builder.release import Release
from dataset_builder.schema import Tier
from helmbench_common import jsonl
from helmbench_common.formats.refused import shown
from judge.replies.schema import TRIAGE_PROMPTS, OwnPrompt, RunError

# Names of arguments that are never published.
SECRET_NAME = re.compile(r"key|token|secret|password|auth|header", re.IGNORECASE)
# The values of "measures" in a task's metadata; triage includes its prompt.
BENCHMARK, APPROPRIATENESS, TRIAGE, TALKS = "benchmark", "appropriateness", "triage-", "talks"
KINDS = (BENCHMARK, APPROPRIATENESS, TALKS, *(f"{TRIAGE}{prompt}" for prompt in TRIAGE_PROMPTS))


Hash = Literal["score_hash", "messages_hash", "talks_hash"]  # what figures depend on
HASH: dict[str, Hash] = {BENCHMARK: "score_hash", TALKS: "talks_hash"}


def identity(release: Release, measures: str) -> dict[str, Any]:
    """The metadata that a task must have for a release: the hash that its figures depend on, and the source of the
    messages if they aren't the benchmark's.
    """
    found: dict[str, Any] = {"dataset_version": release.manifest.version, "dataset_path": str(release.path)}
    if measures == BENCHMARK:
        return found | {"score_hash": release.manifest.score_hash}
    if measures == TALKS:
        return found | {"measures": measures, "talks_hash": release.manifest.talks_hash}
    own = {"messages_source": release.messages_source} if release.own else {}
    return found | {"measures": measures, "messages_hash": release.messages_hash} | own


class Recorded(BaseModel):
    """The fields read from a task's record of itself."""

    measures: str = BENCHMARK
    tier: Tier | None = None
    dataset_version: str | None = None
    score_hash: str | None = None
    messages_hash: str | None = None
    talks_hash: str | None = None
    messages_source: str | None = None
    condition: OwnPrompt | None = None
    system_instruction: str | None = None


def recorded(path: Path, task: str, metadata: object) -> Recorded:
    """A task's metadata, whose values are untrusted.

    Raises:
        RunError: a value of a type that the task doesn't write.
    """
    try:
        return Recorded.model_validate(metadata or {})
    except ValidationError as error:
        field, why = jsonl.first_problem(error)
        raise RunError(f"{shown(path)}: task {shown(task)} records a {field} that it can't have: {why}") from None


def measured_on(path: Path, task: str, found: Recorded, release: Release) -> Tier:
    """The tier of a task, after checking that it ran on this release.

    Raises:
        RunError: it measures something unknown, or ran on another release.
    """
    if found.measures not in KINDS:
        raise RunError(
            f"{shown(path)}: task {shown(task)} measures '{shown(found.measures)}'; expected one of {', '.join(KINDS)}"
        )
    _same_release(path, task, found, release, HASH.get(found.measures, "messages_hash"))
    if found.tier is None:
        raise RunError(f"{shown(path)}: task {shown(task)} records no tier; expected a run of this project's task")
    return found.tier


def _same_release(path: Path, task: str, recorded: Recorded, release: Release, name: Hash) -> None:
    known: str = release.messages_hash if name == "messages_hash" else getattr(release.manifest, name)
    found, expected = getattr(recorded, name), known
    where = f"{shown(path)}: task {shown(task)}"
    if not found:
        raise RunError(f"{where} records no dataset {name}; expected a run of this project's task")
    if name == "messages_hash":
        _same_messages(where, recorded, release)
    if found != expected:
        raise RunError(
            f"{where} used dataset {recorded.dataset_version} ({name} {found[:12]}…), but {release.path} is "
            f"{release.manifest.version} ({expected[:12]}…); pass the run's dataset with --dataset"
        )


def _same_messages(where: str, recorded: Recorded, release: Release) -> None:
    """A run on a corpus must be judged on that corpus, and no other run may be."""
    asked, given, hashed = recorded.messages_source, release.own, recorded.messages_hash or ""
    if asked and not given:
        raise RunError(f"{where} ran on {asked}; name its folder with --messages FOLDER")
    if given and not asked:
        raise RunError(f"{where} ran on the dataset's own messages, not on {given.source}; leave out --messages")
    if given and hashed != given.messages_hash:
        raise RunError(
            f"{where} ran on {asked} (messages_hash {hashed[:12]}…), "
            f"--messages names {given.source} "
            f"({given.messages_hash[:12]}…); name that run's corpus, with the labels that it had then, and "
            "its dataset with --dataset"
        )


def publishable(value: Any) -> dict[str, Any]:
    """The model arguments that may be published: plain values, nothing that names or contains a secret."""
    given = value if isinstance(value, dict) else dict(p.split("=", 1) for p in str(value or "").split(",") if "=" in p)
    plain = {str(k): v for k, v in given.items() if isinstance(v, str | int | float | bool | None)}
    kept = {k: v for k, v in plain.items() if not SECRET_NAME.search(k)}
    return {k: re.sub(r"//[^/@\s]*@", "//", v) if isinstance(v, str) else v for k, v in kept.items()}
