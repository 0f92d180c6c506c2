"""A run: one model's replies on one release, from any runner."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from dataset_builder.schema import Tier
from helmbench_common.hashing import canonical
from judge.replies.schema import Model, Reply
from judge.replies.talks import Talk


@dataclass(frozen=True)
class Run:
    """Replies of one model on one release. `tier`: None for replies collected elsewhere, and without benchmark tasks.

    `messages`: replies to standalone messages (appropriateness); `triage`: the labels that the model gave them, by
    prompt; `messages_tier`: the tier of both; `talks`: with a simulated user.

    `results`: the file below `path`, if that is a folder, that identifies this run; `others`: results files of other
    runs of the same model in that folder.
    """

    path: Path
    model: Model
    tier: Tier | None
    replies: list[Reply]
    limited: bool
    messages: list[Reply] = field(default_factory=list[Reply])
    triage: dict[str, list[Reply]] = field(default_factory=dict[str, list[Reply]])
    messages_tier: Tier | None = None
    talks: list[Talk] = field(default_factory=list[Talk])
    results: Path | None = None
    others: tuple[Path, ...] = ()

    @property
    def file(self) -> Path:
        """The file that was read: the results of a run, or the replies collected elsewhere."""
        return self.results or self.path

    @property
    def taken(self) -> str:
        """Which of several results files was read, for the user; empty if there is only one."""
        newest = self.results and all(self.results.stem > p.stem for p in self.others)
        which = f"the newest of {1 + len(self.others)}" if newest else f"one of {1 + len(self.others)}"
        found = f"{self.path}: took {self.file.name} ({self.samples} samples), {which} results files"
        return found if self.others else ""

    @cached_property
    def sha256(self) -> str:
        """A hash of all replies, in any order, to tell whether two runs are the same."""
        parts = {"samples": self.replies, "messages": self.messages, **self.triage}
        lines = [canonical([part, *r.model_dump().values()]) for part, replies in parts.items() for r in replies]
        lines += [canonical(["talks", *talk.model_dump().values()]) for talk in self.talks]
        return hashlib.sha256("\n".join(sorted(lines)).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def samples(self) -> int:
        """The number of samples and messages asked, ignoring repeats."""
        asked = (self.replies, self.messages, *self.triage.values())
        return len({r.id for replies in asked for r in replies} | {talk.id for talk in self.talks})

    @property
    def ids(self) -> set[str]:
        return {r.id for r in self.replies}
