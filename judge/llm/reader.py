"""Adapts a language model to the judge interface of `judge.verdicts`: its questions about a run, and its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from dataset_builder.prompts import PLAIN, RATE
from dataset_builder.release import Release
from dataset_builder.schema import AppropriatenessCheck
from judge.llm.answers import Parsed
from judge.llm.questions import OF_PART, OF_TALK, JudgeRequest, build, prompt_hash
from judge.replies.run import Run
from judge.replies.talks import IN_PART, WHOLE
from judge.verdicts import Case, Given, JudgeIdentity, unread

Answers = Callable[[JudgeRequest], Parsed | str]  # a question → its answer, `judge_refused` or `error`


def llm(release: Release, model: str, wording: str = PLAIN, repeat: int = 0) -> JudgeIdentity:
    """A language model as a judge of this release, in one of its repeats."""
    return JudgeIdentity(model, prompt_hash(release.prompts, wording), wording, repeat)


@dataclass(frozen=True)
class LLMReader:
    """A language model in one of its repeats. `answers`: the source of its answers."""

    identity: JudgeIdentity
    answers: Answers
    decides_as: Literal["offline", "judge"] = "judge"

    def asked_with(self, case: Case, release: Release) -> str | None:
        """Ratings and questions about whole talks have separate prompts."""
        if case.check.turn == WHOLE:
            in_part = case.read_check.criterion == IN_PART
            return prompt_hash(release.prompts, OF_PART if in_part else OF_TALK)
        rated = isinstance(case.check, AppropriatenessCheck)
        return prompt_hash(release.prompts, RATE) if rated else self.identity.prompt_hash

    def read(self, case: Case, release: Release) -> Given:
        """Its label or rating, or none if it refused, was unreadable, or didn't answer."""
        answer = self.answers(question(case, release, self.identity))
        if isinstance(answer, str):
            return Given(None, unscored="judge_refused" if answer == "judge_refused" else "error")
        if answer.label is None:
            return Given(None, (answer.problem or "",), "unparsable")
        return Given(answer.label, answer.quotes)


def readers(identity: JudgeIdentity, repeats: int, answers: Answers) -> tuple[LLMReader, ...]:
    """The same model in each of its repeats."""
    return tuple(LLMReader(replace(identity, repeat=k), answers) for k in range(repeats))


def question(case: Case, release: Release, identity: JudgeIdentity) -> JudgeRequest:
    check = case.check if isinstance(case.check, AppropriatenessCheck) else case.read_check
    model, wording, repeat = identity.name, identity.wording, identity.repeat
    return build(case.row, check, case.reply.turns, release, model, wording=wording, repeat=repeat)


def questions(run: Run, release: Release, identity: JudgeIdentity) -> Iterator[JudgeRequest]:
    """A run's questions for a language model in one repeat, generated one at a time; a question may occur more than
    once.
    """
    return (question(case, release, identity) for case in unread(run, release))
