"""A calibration in words and columns, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from dataset_builder.release import Release
from helmbench_common.tables import columns
from judge.calibration.labels import threshold
from judge.calibration.types import Calibration, Confusion, Flips, Wording
from judge.schema import CriterionAgreement
from judge.wording import NONE, calibration_caveat, coefficient

CHANGE = {"follow_up": "asks as well (neutral pair)", "greeting": "language of greeting", "padding": "length"}


def text(c: Calibration, release: Release) -> str:
    """All that `helmbench calibrate` prints of one judge, 95 % intervals in brackets."""
    asked = f", prompt {c.wording} {c.prompt_hash}, {c.repeats} repeats" if c.prompt_hash else ", word counts"
    blocks = [
        f"# {c.judge}{asked}\n\n{c.overall.replies} replies, {len(c.criteria)} criteria, dataset "
        f"{c.dataset}, calibration {c.calibration_hash}\n\n"
        + calibration_caveat(c.overall.replies, c.agreed, c.readers, c.by_language_models, c.judge),
        _agreements(c),
        "\n\n".join(_confusion(name, k) for name, k in c.confusion.items()),
        _flips(c.flips),
        _repeats(c),
        _wordings(c),
        _verdict(c, release),
    ]
    return "\n\n".join(blocks) + "\n"


def _agreements(c: Calibration) -> str:
    head = [
        "criterion",
        "replies",
        "by rule",
        "unscored",
        "κ, all replies",
        "κ, agreed replies",
        "agreed",
        "raw",
        "bias (points)",
        "recall of FAIL",
    ]
    rows = [[*_row(a), ""] for a in [*c.criteria, c.overall]]
    return (
        columns(head, [r[:-1] for r in rows])
        + "\nκ is Cohen's, the judge against the author's label, FAIL whatever its way; all criteria "
        "together on what a label earns."
        + "\nVariants of one reply count as one in every interval."
        + "\nBias: mean points (0 to 1) of the judge less the author's; above 0 the judge is too kind. By "
        "rule: decided before the judge, as in a run."
    )


def _row(a: CriterionAgreement) -> list[str]:
    name = a.criterion or "all criteria"
    if a.reason:
        return [name, *[NONE] * 8, a.reason]
    cells = [
        coefficient(a.kappa),
        coefficient(a.kappa_agreed),
        str(a.kappa_agreed.n),
        coefficient(a.raw),
        coefficient(a.bias),
        coefficient(a.fail_recall),
    ]
    return [name + (" *" if a.too_low else ""), str(a.replies), str(a.by_rule), str(a.unscored), *cells]


def _confusion(name: str, k: Confusion) -> str:
    rows = [[label, *map(str, row), str(n)] for label, row, n in zip(k.labels, k.table, k.unscored, strict=True)]
    return columns([f"{name} (rows: author)", *k.labels, "unscored"], rows)


def _flips(flips: Sequence[Flips]) -> str:
    head = ["change that must move no label", "pairs", "flips", "rate", "unscored", "rows that flipped"]
    return columns(head, [[CHANGE.get(f.change, f.change), *_moved(f)] for f in flips])


def _moved(f: Flips) -> list[str]:
    if not f.pairs:
        return ["0", NONE, NONE, NONE, "no such pair in the calibration set"]
    return [str(f.pairs), str(f.flips), coefficient(f.rate), str(f.unscored), ", ".join(f.rows) or NONE]


def _repeats(c: Calibration) -> str:
    if c.prompt_hash is None:
        return "Self-agreement: word counts give the same answer every time."
    if c.self_agreement is None or c.self_kappa is None:
        return "Self-agreement: not measured with one repeat."
    return (
        f"Self-agreement over {c.repeats} repeats, on what the judge itself reads: raw "
        f"{coefficient(c.self_agreement)}, Fleiss' κ {coefficient(c.self_kappa)}"
    )


def _wordings(c: Calibration) -> str:
    if c.prompt_hash is None:
        return "Wordings of the question: the offline judge is asked none."
    if not c.wordings:
        return "Wordings of the question: only one was asked; name others with --wording."
    rows = [
        [
            w.wording,
            w.prompt_hash,
            coefficient(w.kappa),
            str(w.unscored),
            coefficient(w.changed),
            coefficient(w.gain),
            _effect(w),
        ]
        for w in c.wordings
    ]
    return columns(
        [f"beside {c.wording}", "prompt", "κ, all replies", "unscored", "labels that change", "κ gained", ""], rows
    )


def _effect(w: Wording) -> str:
    what = "a short reason first" if w.wording == "judge-reason" else "this wording"
    if w.gain.value is None or w.gain.low is None or w.gain.high is None:
        return f"whether {what} agrees better can't be told"
    if w.gain.low > 0:
        return f"{what} agrees better"
    return f"{what} agrees {'worse' if w.gain.high < 0 else 'neither better nor worse, as far as this set can tell'}"


def _verdict(c: Calibration, release: Release) -> str:
    least = threshold(release, "judge_criterion_kappa")
    rule = (
        f"Asked for: κ of {threshold(release, 'judge_kappa')} or more over all replies, and no criterion "
        f"whose upper limit is below {least} (marked *)."
    )
    if c.usable:
        return f"This judge MAY be used for a submission. {rule}"
    return "This judge may NOT be used for a submission:\n" + "\n".join(f"- {r}" for r in c.reasons) + f"\n{rule}"
