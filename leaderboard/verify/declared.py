"""What `submission.json` declares, checked against the release and against the recomputed results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path

from dataset_builder.release import Release
from helmbench_common.formats.refused import shown
from judge.replies.recorded import SECRET_NAME
from judge.schema import Scorecard, Verdict
from judge.wording import share_read
from leaderboard import secrets
from leaderboard.schema import SUBMISSION, Generation, Problem, Submission, SubmittedJudge
from leaderboard.verify.coverage import NAMED
from leaderboard.verify.findings import Problems

WHERE = f"{SUBMISSION}: judge"
FIRST = date(2026, 1, 1)  # no release is older
REASON = 500  # characters of the reason why a figure is missing
# Family → what the names of its models contain, as whole parts between separators.
FAMILIES: dict[str, str] = {
    "openai": r"gpt\d*|chatgpt|davinci|openai|o[1-9](?:mini|pro)?|4o",
    "claude": r"claude|anthropic",
    "gemini": r"gemini|gemma\d*|palm|medgemma|shieldgemma",
    "llama": r"llama\d*|vicuna|alpaca|tulu\d*|hermes\d*|nemotron|codellama",
    "qwen": r"qwen\d*|qwq|qvq|tongyi",
    "mistral": r"mistral|mixtral|ministral|magistral|codestral|devstral|pixtral|zephyr|nemo",
    "deepseek": r"deepseek",
    "grok": r"grok\d*|xai",
    "phi": r"phi\d*",
    "command": r"command|cohere|aya|commandr",
    "olmo": r"olmo\d*|olmoe",
    "yi": r"yi",
    "falcon": r"falcon\d*",
    "granite": r"granite",
    "glm": r"glm\d*|chatglm\d*|zai",
    "kimi": r"kimi|moonshot|moonlight",
    "minimax": r"minimax|abab",
    "nova": r"nova|titan",
    "internlm": r"internlm\d*",
    "smollm": r"smollm\d*",
    "ernie": r"ernie",
    "jamba": r"jamba",
    "exaone": r"exaone",
    "solar": r"solar",
}
PATTERNS = {family: re.compile(pattern) for family, pattern in FAMILIES.items()}
PART = re.compile(r"[a-z]+\d*|\d+[a-z]*")


def pinned(submission: Submission, release: Release, problems: Problems) -> bool:
    """Adds what doesn't fit the release; returns whether the rest can be compared with it."""
    given, own = submission.dataset, release.manifest
    if given.version != own.version:
        said = f"is {shown(given.version)[:80]}; this release is {own.version}"
        problems.append(Problem("version", f"{SUBMISSION}: dataset.version", said))
    if given.score_hash == own.score_hash:
        return True
    said = (
        f"is {shown(given.score_hash)[:12]}…; this release's is {own.score_hash[:12]}…. Nothing else was compared; "
        "pass the other release with --dataset"
    )
    problems.append(Problem("score_hash", f"{SUBMISSION}: dataset.score_hash", said))
    return False


def problems(submission: Submission, folder: Path, release: Release) -> Iterator[Problem]:
    """What the board doesn't accept, whatever the replies are."""
    if submission.generation.system_prompt_sha256 is not None:
        said = "the run had its own system prompt; the board compares models under the benchmark's prompts"
        yield Problem("system_prompt", f"{SUBMISSION}: generation.system_prompt_sha256", said)
    if release.manifest.additions:
        said = f"this dataset has private additions ({release.manifest.additions}); it isn't the published benchmark"
        yield Problem("version", SUBMISSION, said)
    day, today = date.fromisoformat(submission.submitted), date.today()
    if not FIRST <= day <= today + timedelta(days=1):  # it may be tomorrow elsewhere
        said = f"is {day}; expected a day from {FIRST} to today, {today}"
        yield Problem("date", f"{SUBMISSION}: submitted", said)
    yield from _secret_names(submission.generation)
    if submission.judge.repeats > 1 and not any(a.prompt_hash for a in submission.judge.agreement):
        yield Problem("judge", WHERE, "has repeats, but only the offline judge, which is asked once")
    yield from _people(submission.judge)
    place, own = folder.resolve().parent.name, f"{submission.model.organization}__{submission.model.name}"
    if "__" in place and place != own:
        yield Problem("misplaced", str(folder), f"is in the folder {shown(place)[:80]}; expected {own}")


def _people(judge: SubmittedJudge) -> Iterator[Problem]:
    """Impossible agreement with people. Possible figures can't be verified: the labels aren't in the submission."""
    names = {a.judge for a in judge.agreement[1:] or judge.agreement}
    where, seen = f"{WHERE}.people", set[tuple[str, str, str]]()
    for p in judge.people:
        at = f"{shown(p.judge)[:80]} on {p.set}, {p.rows} rows"
        key = (p.judge, p.set, p.rows)
        if p.judge not in names:
            yield Problem("people", where, f"{at}: isn't a judge of this submission")
        if key in seen:
            yield Problem("people", where, f"{at}: duplicate entry")
        seen.add(key)
        measures = [p.kappa, p.people, p.between, *((p.coarse.kappa, p.coarse.people) if p.coarse else ())]
        figures = [x for m in measures if m for x in (m.value, m.low, m.high) if x is not None]
        if not all(-1 <= x <= 1 for x in figures) or p.decided > p.items:
            yield Problem("people", where, f"{at}: κ outside −1 to 1, or more labels than items")
        if any(len(m.reason or "") > REASON for m in measures if m):
            yield Problem("people", where, f"{at}: a reason of more than {REASON} characters")


def _secret_names(generation: Generation) -> Iterator[Problem]:
    """Arguments and settings with names under which keys are passed."""
    settings = {k for k, v in generation.generation_kwargs.items() if isinstance(v, str | list)}
    for what, names in (
        ("arguments", {n for n in generation.arguments if SECRET_NAME.search(n) or secrets.named_like(n)}),
        ("generation_kwargs", {n for n in settings if secrets.named_like(n)}),
    ):
        if names:
            said = f"has {shown(', '.join(sorted(names)))[:80]}, a name under which keys are passed"
            yield Problem("secret", f"{SUBMISSION}: generation.{what}", said)


def flags(submission: Submission) -> Iterator[Problem]:
    """What a reader of the board should know."""
    model, judge = submission.model, submission.judge
    if model.revision is None:
        yield Problem("no_revision", SUBMISSION, "no revision: the model behind the name may change")
    if submission.declaration.trained_on_benchmark != "no":
        said = {"yes": "was", "unknown": "may have been"}[submission.declaration.trained_on_benchmark]
        said = f"the submitter declares that the model {said} trained on this benchmark"
        yield Problem("trained_on_benchmark", SUBMISSION, said)
    if not any(a.prompt_hash for a in judge.agreement):
        return
    # A model may answer under its dated name, or with a path in front: then one of the two names begins with the other.
    asked = {_bare(a.judge) for a in judge.agreement} | {_bare(judge.name)}
    others = [n for n in judge.answered_as if not any(_alias(_bare(n), j) or _alias(j, _bare(n)) for j in asked)]
    if others:
        said = f"the answers name {shown(', '.join(map(repr, sorted(others))))[:80]}, which isn't the name of a judge"
        yield Problem("other_answerer", f"{WHERE}.answered_as", said)
    own = families(model.organization, model.name, model.family)
    theirs = families(judge.name, *judge.answered_as, *(a.judge for a in judge.agreement))
    if both := own & theirs:
        said = f"judge and model are of the same family ({', '.join(sorted(both))}); judges tend to favor their own"
        yield Problem("same_family", WHERE, said)
    if not own or not theirs:
        said = f"unknown family of the {'judge' if own else 'model'}, so the check for the same family was skipped"
        yield Problem("unknown_family", SUBMISSION, said)


def offline(judge: SubmittedJudge) -> bool:
    """Whether the offline judge is one of the judges; then the submission is a demo."""
    return any(a.prompt_hash is None for a in judge.agreement[1:] or judge.agreement)


def unscored(card: Scorecard, verdicts: Sequence[Verdict], release: Release) -> tuple[list[Problem], list[Problem]]:
    """Problems and flags: too many unscored verdicts, no composite, and which samples are unscored."""
    limit, judge = float(release.scoring["unscored_limit"]), card.judge
    problems: list[Problem] = []
    flags: list[Problem] = []
    if card.composite.value is None:
        # What the offline judge leaves open doesn't keep a demo off the board.
        where = flags if judge.approximate and judge.left else problems
        where.append(Problem("no_composite", SUBMISSION, f"no composite; {card.composite_note}"))
    if lost := judge.unscored - judge.left:
        said = f"{lost} of {judge.verdicts} verdicts ({judge.lost_share:.1%}) are unscored"
        if judge.lost_share > limit:
            return [*problems, Problem("unscored", SUBMISSION, f"{said}; expected at most {limit:.0%}")], flags
        hard = sorted({v.id for v in verdicts if v.lost}, key=lambda i: (-abs(release.rows[i].severity), i))
        flags.append(Problem("unscored", SUBMISSION, f"{said}, of samples {', '.join(hard[:NAMED])}"))
    if read := share_read(judge):
        flags.append(Problem("left", SUBMISSION, read))
    return problems, flags


def _bare(name: str) -> str:
    """A model's name without what comes before its last slash."""
    return name.rstrip("/").rpartition("/")[2].casefold()


def _alias(short: str, long: str) -> bool:
    """Whether a name is another's with something behind it: `gpt-4o` and `gpt-4o-2024-08-06`, but not `g`."""
    return bool(short) and long.startswith(short) and (short == long or not long[len(short)].isalnum())


def families(*names: str | None) -> frozenset[str]:
    """The families that the names contain, often none; a distilled model has two: `deepseek-r1-distill-llama-8b`."""
    parts = {part for name in names if name for part in PART.findall(name.lower())}
    return frozenset(family for family, pattern in PATTERNS.items() if any(pattern.fullmatch(part) for part in parts))
