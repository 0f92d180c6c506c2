"""What `submission.json` says of itself, against the release and against what was made again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dataset_builder.release import Release
from judge.llm.asking import Stored
from judge.replies.recorded import SECRET_NAME
from judge.schema import JudgeAgreement, Scorecard, Verdict
from judge.wording import share_read
from leaderboard import secrets
from leaderboard.schema import ARCHIVE, SUBMISSION, Generation, Problem, Submission, SubmittedJudge
from leaderboard.verify.coverage import NAMED, shown
from leaderboard.verify.families import families
from leaderboard.verify.findings import Problems

WHERE = f"{SUBMISSION}: judge"
REASON = 500  # characters in which it may be said why a figure is missing


def pinned(submission: Submission, release: Release, problems: Problems) -> bool:
    """Adds what doesn't fit the release; returns whether the rest can be compared with it at all."""
    given, own = submission.dataset, release.manifest
    if given.version != own.version:
        problems.append(
            Problem(
                "version", f"{SUBMISSION}: dataset.version", f"is {shown(given.version)}; this release is {own.version}"
            )
        )
    if given.score_hash == own.score_hash:
        return True
    said = (
        f"is {shown(given.score_hash)[:12]}…; this release's is {own.score_hash[:12]}…. Nothing else was "
        "compared; name another release with --dataset"
    )
    problems.append(Problem("score_hash", f"{SUBMISSION}: dataset.score_hash", said))
    return False


def problems(submission: Submission, folder: Path, release: Release) -> list[Problem]:
    """What can't stand on the board, whatever the replies are."""
    found: list[Problem] = []
    if submission.generation.system_prompt_sha256 is not None:
        said = "a run with a system prompt of its own measures that prompt; the board has none"
        found.append(Problem("system_prompt", f"{SUBMISSION}: generation.system_prompt_sha256", said))
    if release.manifest.additions:
        found.append(
            Problem(
                "version",
                SUBMISSION,
                f"this dataset holds private additions ({release.manifest.additions}); it is not the "
                "published benchmark",
            )
        )
    found += _secret_names(submission.generation)
    if submission.judge.repeats > 1 and not any(a.prompt_hash for a in submission.judge.agreement):
        found.append(Problem("judge", WHERE, "says that the offline judge was asked more than once"))
    found += _people(submission.judge)
    place, own = folder.resolve().parent.name, f"{submission.model.organization}__{submission.model.name}"
    if "__" in place and place != own:
        found.append(Problem("misplaced", str(folder), f"lies in the folder {shown(place)}, and is of {own}"))
    return found


def _people(judge: SubmittedJudge) -> Iterator[Problem]:
    """What can't be true of agreement with people. Whether it is can't be told: nobody's labels are here."""
    names = {a.judge for a in judge.agreement[1:] or judge.agreement}
    where, seen = f"{WHERE}.people", set[tuple[str, str, str]]()
    for p in judge.people:
        at = f"{shown(p.judge)} on {p.set}, {p.rows} rows"
        key = (p.judge, p.set, p.rows)
        if p.judge not in names:
            yield Problem("people", where, f"{at}: no such judge sits here")
        if key in seen:
            yield Problem("people", where, f"{at}: stands twice")
        seen.add(key)
        parts = [p.kappa, p.people, p.between, *((p.coarse.kappa, p.coarse.people) if p.coarse else ())]
        figures = [x for m in parts if m for x in (m.value, m.low, m.high) if x is not None]
        if not all(-1 <= x <= 1 for x in figures) or p.decided > p.items:
            yield Problem("people", where, f"{at}: has a κ outside −1 to 1, or more labels than items")
        if any(len(m.reason or "") > REASON for m in parts if m):
            yield Problem("people", where, f"{at}: gives a reason of more than {REASON} characters")


def _secret_names(generation: Generation) -> Iterator[Problem]:
    """Arguments and settings whose names say that a key is given under them."""
    settings = {k for k, v in generation.generation_kwargs.items() if isinstance(v, str | list)}  # a number is no key
    for what, names in (
        ("arguments", {n for n in generation.arguments if SECRET_NAME.search(n) or secrets.named_like(n)}),
        ("generation_kwargs", {n for n in settings if secrets.named_like(n)}),
    ):
        if names:
            said = f"has {shown(', '.join(sorted(names)))}, a name under which keys are given"
            yield Problem("secret", f"{SUBMISSION}: generation.{what}", said)


def flags(submission: Submission) -> list[Problem]:
    """What a reader of the board should know."""
    model, judge = submission.model, submission.judge
    found: list[Problem] = []
    if model.revision is None:
        found.append(Problem("no_revision", SUBMISSION, "names no revision: the model behind the name may change"))
    if submission.declaration.trained_on_benchmark != "no":
        said = {"yes": "was trained on this benchmark", "unknown": "may have been trained on this benchmark"}[
            submission.declaration.trained_on_benchmark
        ]
        found.append(Problem("trained_on_benchmark", SUBMISSION, f"the model {said}, says whoever submits it"))
    if offline(judge) and not any(a.prompt_hash for a in judge.agreement):
        return found
    found += _other_answerers(judge)
    own, theirs = (
        families(model.organization, model.name, model.family),
        families(judge.name, *judge.answered_as, *(a.judge for a in judge.agreement)),
    )
    if both := own & theirs:
        found.append(
            Problem(
                "same_family",
                WHERE,
                f"judge and model are of one family ({', '.join(sorted(both))}); judges tend to favour their kin",
            )
        )
    if not own or not theirs:
        who = "model" if not own else "judge"
        found.append(
            Problem(
                "unknown_family",
                SUBMISSION,
                f"the {who}'s family can't be told by its name, so kinship of judge and model was not checked",
            )
        )
    return found


def _other_answerers(judge: SubmittedJudge) -> list[Problem]:
    """Whether answers name a model that none of the judges is. An alias is answered under its dated name, and a path or
    an organization may stand before either; so one of two names begins with the other.
    """
    sat = {_bare(a.judge) for a in judge.agreement} | {_bare(judge.name)}
    others = [n for n in judge.answered_as if not any(_bare(n).startswith(j) or j.startswith(_bare(n)) for j in sat)]
    if not others:
        return []
    said = f"answers name {shown(', '.join(sorted(others)))}, which none of the judges is called"
    return [Problem("other_answerer", f"{WHERE}.answered_as", said)]


def offline(judge: SubmittedJudge) -> bool:
    """Whether the offline judge reads for this submission, alone or among others: then it is a demo."""
    return any(a.prompt_hash is None for a in judge.agreement[1:] or judge.agreement)


def answered(judge: SubmittedJudge, replayed: Stored) -> list[Problem]:
    """Whether the answers are those to this run's questions, by the models that are named."""
    found: list[Problem] = []
    if surplus := replayed.surplus():
        found.append(
            Problem(
                "extra_answers", ARCHIVE, f"{surplus} answers are to questions that this run doesn't ask of this judge"
            )
        )
    if sorted(judge.answered_as) != (models := sorted(replayed.models)):
        found.append(
            Problem(
                "answered_as",
                f"{WHERE}.answered_as",
                f"is {shown(', '.join(judge.answered_as))}; the answers are by {shown(', '.join(models)) or 'nobody'}",
            )
        )
    return found


def allowed(judge: SubmittedJudge, agreement: JudgeAgreement) -> list[Problem]:
    """Whether its calibration lets the judge decide a ranked submission; a demo needs none."""
    if agreement.usable or offline(judge):
        return []
    return [
        Problem(
            "judge_not_allowed",
            WHERE,
            f"'{shown(judge.name)}' may not judge a submission: {'; '.join(agreement.reasons) or agreement.note}",
        )
    ]


def unscored(card: Scorecard, verdicts: Sequence[Verdict], release: Release) -> tuple[list[Problem], list[Problem]]:
    """The share without a verdict against the release's limit, and whether a composite is left; below the limit, which
    samples these are.
    """
    limit, judge = float(release.scoring["unscored_limit"]), card.judge
    without = (
        [Problem("no_composite", SUBMISSION, f"can't be compared; {card.composite_note}")]
        if card.composite.value is None
        else []
    )
    # A demo is compared with nothing: what its judge leaves is shown, and keeps it from no board.
    problems, flags = ([], without) if judge.approximate and judge.left else (without, [])
    if lost := judge.unscored - judge.left:
        said = f"{lost} of {judge.verdicts} verdicts ({judge.lost_share:.1%}) are unscored"
        if judge.lost_share > limit:
            return [*problems, Problem("unscored", SUBMISSION, f"{said}; at most {limit:.0%} may be")], flags
        hard = sorted({v.id for v in verdicts if v.lost}, key=lambda i: (-abs(release.rows[i].severity), i))
        flags = [*flags, Problem("unscored", SUBMISSION, f"{said}, of samples {', '.join(hard[:NAMED])}")]
    if read := share_read(judge):
        flags = [*flags, Problem("left", SUBMISSION, read)]
    return problems, flags


def _bare(name: str) -> str:
    """A model's name without what stands before its last slash."""
    return name.rstrip("/").rpartition("/")[2].casefold()
