"""Implements `helmbench calibrate`: measures a judge against the calibration sets, or, with --labels, measures several
judges against human labels of any replies and chooses one.

The judge with the highest mean κ with the raters is chosen; the output says whether its lead exceeds chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dataset_builder.release import Release
from helmbench_common.files import write_whole
from judge.agreement.answers import JudgedCases, Passes, Task, examine, row_of
from judge.agreement.calibration import NO_REPEAT, calibrate
from judge.agreement.cases import Case, read_cases
from judge.agreement.known import FILE, RATING_FILE
from judge.agreement.labels import Item, LabelTable, read_labels
from judge.agreement.tables import blocks, calibration_text, table
from judge.llm.asking import Asker
from judge.panel import base
from judge.replies.schema import RunError
from judge.statistics.coefficients import Coefficient, estimate
from judge.statistics.estimate import Estimate
from judge.wording import coefficient


def calibrate_judge(
    release: Release, name: str, asker: Asker, passes: Passes, out: Path | None = None
) -> tuple[str, dict[str, Any]]:
    """Measures one judge against the calibration sets and writes the figures to `out` (default: in the asker's home)
    and, for ratings, beside it; returns the tables, and every figure ready for JSON.
    """
    if not release.calibration:
        raise RunError(f"{release.path}: no calibration set in this dataset; measure against people with --labels")
    tasks = [Task("criterion", release.calibration), Task("rating", release.rating_calibration)]
    labels, rated = examine(release, name, tasks, asker, passes)
    path, blocks_, values = out or asker.folder(labels.identity.name) / FILE, list[str](), dict[str, Any](ratings=None)
    measured = {"labels": calibrate(release, labels.identity, labels.repeats, labels.others)}
    if release.rating_calibration:
        measured["ratings"] = calibrate(release, rated.identity, rated.repeats, kind="rating")
    for name, found in measured.items():
        file = path if name == "labels" else path.with_name(RATING_FILE)
        write_whole(file, found.model_dump_json(indent=1) + "\n")
        blocks_ += [calibration_text(found, release), str(file)]
        values[name] = found.model_dump(mode="json")
    return blocks(*blocks_), values


# --- several judges against people's labels ---------------------------------------------------------------------------


class Candidate(NamedTuple):
    """One judge against the raters. `table`: its labels and theirs; `again`: its raw self-agreement and Fleiss' kappa,
    None with one repeat.
    """

    name: str
    table: LabelTable
    again: tuple[Estimate | None, Estimate | None]

    @property
    def unscored(self) -> int:
        return len(self.table.items) - len(self.table.labels[self.name])

    @property
    def mean(self) -> Coefficient:
        """The mean of its kappas with the raters."""
        return self.table.readings().cohen(rater=self.name)


def against_people(
    release: Release, names: Sequence[str], labels: Sequence[Path], source: Path, asker: Asker, passes: Passes
) -> str:
    """Measures every judge on the replies in `source` that `labels` covers; returns the tables and the choice."""
    everything = read_labels(list(labels), least=1)
    if clash := sorted({*names} & {*everything.raters}):
        raise RunError(f"{clash[0]}: both a judge and a rater have this name; rename the label file, or its `rater`")
    cases = read_cases(source, release).cases
    # Label files may or may not name criteria.
    items = [Item(case.id, case.criterion if everything.criteria else "") for case in cases]
    labeled = {item for own in everything.labels.values() for item in own}
    wanted = [(item, case) for item, case in zip(items, cases, strict=True) if item in labeled]
    if not wanted:
        files = ", ".join(map(str, labels))
        raise RunError(f"{source}: {files} label none of its {len(cases)} replies; name the labeled ones with --cases")
    kept = tuple(item for item, _ in wanted)
    by_rater = {r: {i: own[i] for i in dict.fromkeys(kept) if i in own} for r, own in everything.labels.items()}
    people = LabelTable(by_rater, kept)
    _check(people, [case for _, case in wanted], release)
    # One reply may be judged by two criteria, so a case is identified by its position.
    rows = [row_of(case._replace(id=str(n))) for n, (_, case) in enumerate(wanted)]
    first = Passes(passes.repeats, passes.wordings[:1])
    candidates = [
        _candidate(judged, people)
        for name in names
        for judged in examine(release, name, [Task("criterion", rows)], asker, first)
    ]
    return choice_text(candidates, people, len(labeled) - len(wanted))


def _check(people: LabelTable, cases: Sequence[Case], release: Release) -> None:
    """Raises: RunError: labels without a criterion for a reply with several, or a label that its criterion doesn't
    define.
    """
    if repeated := [i for i, n in Counter(people.items).items() if n > 1]:
        raise RunError(
            f"{repeated[0].id}: has several criteria, and the labels don't say which; expected a `criterion` with "
            "each label"
        )
    for item, case in zip(people.items, cases, strict=True):
        known = {base(x) for x in release.criteria[case.criterion].labels}
        for rater, own in people.labels.items():
            if item in own and own[item] not in known:
                expected = ", ".join(sorted(known))
                raise RunError(f"{rater}: {item.id} ({case.criterion}) is labeled {own[item]}; expected {expected}")


def _candidate(judge: JudgedCases, people: LabelTable) -> Candidate:
    name, items = judge.identity.name, people.items
    repeats = [
        {item: base(x) for n, item in enumerate(items) if (x := labels[str(n)].label)} for labels in judge.repeats
    ]
    asked = tuple(item for n, item in enumerate(items) if not judge.repeats[0][str(n)].by_rule)
    own = LabelTable({str(n): labels for n, labels in enumerate(repeats)}, asked)
    again = own.readings().repeated(NO_REPEAT) if len(repeats) > 1 else (None, None)
    return Candidate(name, LabelTable({name: repeats[0], **people.labels}, items), again)


def choice_text(candidates: Sequence[Candidate], people: LabelTable, left: int = 0) -> str:
    """The tables, the raters' agreement with each other, and the choice. `left`: the number of labels that match no
    reply.
    """
    raters, replies = people.raters, len(people.items)
    head = ["judge", *(f"κ with {r}" for r in raters), "mean κ", "self-agreement", "Fleiss' κ of its repeats"]
    rows = []
    for k in candidates:
        kappas = [k.table.readings().between(k.name, rater).kappa() for rater in raters]
        rows.append([k.name, *kappas, estimate(k.mean), *k.again, f"{k.unscored} of {replies}"])
    by = [[name, *(k.table.readings(name).kappa(rater=k.name) for k in candidates)] for name in people.criteria]
    own = people.readings()
    alone = "unknown with one rater."
    between = [f"{r} {coefficient(own.kappa(rater=r))}" for r in raters] if len(raters) > 1 else []
    return blocks(
        f"{replies} replies labeled by {len(raters)} rater{'s' if len(raters) > 1 else ''}: {', '.join(raters)}"
        + (f"; {left} labels are of other replies" if left else ""),
        table([*head, "unscored"], rows),
        table(["mean κ by criterion", *(k.name for k in candidates)], by),
        "Agreement of the raters: "
        + (
            f"Fleiss' κ {coefficient(own.fleiss())}; mean κ of each with the others: {', '.join(between)}"
            if between
            else alone
        ),
        _choice(candidates),
        "κ is Cohen's, unweighted, FAIL whatever its way, with 95 % intervals; replies count as independent. "
        "It describes replies like these: labels of another corpus say little about this benchmark's.",
    )


def _choice(candidates: Sequence[Candidate]) -> str:
    """The candidate with the highest mean kappa; ties go to fewer unscored cases, then to the order given."""
    known = [k for k in candidates if k.mean.value is not None]
    if not known:
        return f"No judge is chosen: {candidates[0].mean.reason}."
    first, *others = sorted(known, key=lambda k: (-round(k.mean.value or 0.0, 9), k.unscored))
    said = f"Chosen: {first.name}; its mean κ with the raters is {coefficient(estimate(first.mean))}"
    if not others:
        return said + ("." if len(candidates) == 1 else ", and the others have none.")
    for other in others:
        gain = estimate(first.mean.less(other.mean), -2.0, 2.0)
        said += f". It is ahead of {other.name} by {gain.value:.2f}"
        if gain.low is None or gain.high is None:
            said += ", without an interval"
        else:
            chance = "more than chance" if gain.low > 0 else "which may be chance"
            said += f" ({gain.low:.2f} to {gain.high:.2f}), {chance}"
    return f"{said}."
