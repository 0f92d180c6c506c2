"""Agreement figures as text tables for the terminal, with 95 % intervals in parentheses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dataset_builder.release import Release
from helmbench_common.tables import Table, TableRow
from judge.agreement.calibration import Calibration, Confusion, Flips, Wording
from judge.agreement.labels import AgreementReport
from judge.agreement.validation import Figures, Validation
from judge.schema import CriterionAgreement
from judge.statistics.agreement import Agreement, PairAgreement
from judge.statistics.estimate import Estimate
from judge.wording import NONE, calibration_caveat, coefficient, coefficient_cell, hundredths, percent, plain

CHANGE = {"follow_up": "asks as well (neutral pair)", "greeting": "language of greeting", "padding": "length"}
NAMES = {
    "raw": "raw agreement",
    "cohen": "Cohen's κ",
    "cohen_linear": "Cohen's κ, linear",
    "cohen_quadratic": "Cohen's κ, quadratic",
    "fleiss": "Fleiss' κ",
    "alpha_nominal": "Krippendorff's α",
    "alpha_ordinal": "Krippendorff's α, ordinal",
    "ac1": "Gwet's AC1",
    "within_one": "within one step",
    "mae": "mean absolute error",
    "bias": "signed bias",
    "specific": "specific agreement",
}
SHORT = ("raw", "cohen", "alpha_nominal", "alpha_ordinal", "ac1", "bias")
OF_CLASS = ("specific", "cohen", "fleiss", "alpha_nominal", "ac1")
REFERENCES = {
    "mean": "the mean of the people's ratings, rounded half up",
    "settled": "the label that the raters settled on together",
    "majority": "the label that more than half of an item's raters gave",
}


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Aligned text: figures with their intervals, a dash for a missing one; "" if there are no rows."""
    found: list[TableRow] = []
    for head, *row in rows:
        cells = [coefficient_cell(x) if x is None or isinstance(x, Estimate) else str(x) for x in row]
        found.append(TableRow(str(head), cells))
    return Table(header, found).text()


def blocks(*given: str) -> str:
    return "\n\n".join(filter(None, given))


def _confusion(title: str, k: Confusion) -> str:
    rows = [[label, *row, end] for label, row, end in zip(k.labels, k.table, k.unscored, strict=True)]
    return table([title, *k.labels, "unscored"], rows)


def calibration_text(c: Calibration, release: Release) -> str:
    """Output of `helmbench calibrate` for one judge and one calibration set."""
    asked = f", prompt {c.wording} {c.prompt_hash}, {c.repeats} repeats" if c.prompt_hash else ", word counts"
    if c.kind == "rating":
        of, what, unit, lowest, on = "categories of ratings", "rating", "steps", "1", "with quadratic weights"
    else:
        of, what, unit, lowest = "criteria", "label", "points", "FAIL"
        on = "FAIL whatever its way; over all criteria, on what the labels earn"
    head = ("replies", "by rule", "unscored", "κ, all replies", "κ, agreed replies", "agreed", "raw", "within one")
    return blocks(
        f"# {c.judge}{asked}",
        f"{c.overall.replies} replies, {len(c.criteria)} {of}, dataset {c.dataset}, calibration {c.calibration_hash}",
        calibration_caveat(c.overall.replies, c.agreed, c.readers, c.by_language_models, c.judge),
        table(
            ["criterion", *head, f"bias ({unit})", f"recall of {lowest}"],
            [_criterion(a) for a in [*c.criteria, c.overall]],
        )
        + f"\nκ is Cohen's, the judge against the author's label, {on}.\nVariants of one reply count as one in every "
        f"interval.\nBias: mean {unit} of the judge less the author's; above 0 the judge is too kind. By rule: decided "
        "before the judge, as in a run.",
        *(_confusion(f"{name} (rows: author)", k) for name, k in c.confusion.items()),
        _flips(what, c.flips),
        _repeats(c),
        _wordings(c) if c.kind == "criterion" else "",
        _verdict(c, release) if c.kind == "criterion" else "",
    )


def _verdict(c: Calibration, release: Release) -> str:
    least = release.scoring["judge_criterion_kappa"]
    rule = (
        f"Required: κ of {release.scoring['judge_kappa']} or more over all replies, and no criterion whose upper limit "
        f"is below {least} (marked *)."
    )
    if c.usable:
        return f"This judge MAY be used for a submission. {rule}"
    return "\n- ".join(["This judge may NOT be used for a submission:", *c.reasons]) + f"\n{rule}"


def _flips(what: str, found: Sequence[Flips]) -> str:
    rows = [
        [CHANGE.get(f.change, f.change), f.pairs, f.flips, f.rate, f.unscored, ", ".join(f.rows) or NONE] for f in found
    ]
    return table([f"change that must move no {what}", "pairs", "flips", "rate", "unscored", "rows that flipped"], rows)


def _criterion(a: CriterionAgreement) -> list[object]:
    name = plain(a.criterion or "all")
    if a.reason:
        return [name, *[NONE] * 9, a.reason]
    name += " *" if a.too_low else ""
    kappas = (a.kappa, a.kappa_agreed, a.kappa_agreed.n)
    return [name, a.replies, a.by_rule, a.unscored, *kappas, a.raw, a.within_one, a.bias, a.fail_recall]


def _repeats(c: Calibration) -> str:
    if c.prompt_hash is None:
        return "Self-agreement: word counts give the same answer every time."
    if c.self_agreement is None or c.self_kappa is None:
        return "Self-agreement: not measured with one repeat."
    return (
        f"Self-agreement over {c.repeats} repeats, on what the judge itself reads: raw "
        f"{coefficient(c.self_agreement)}, Fleiss' κ {coefficient(c.self_kappa)}"
        + (f", mean SD {hundredths(c.rating_sd)}" if c.kind == "rating" else "")
    )


def _wordings(c: Calibration) -> str:
    if c.prompt_hash is None:
        return "Wordings of the question: none, the offline judge is not asked."
    if not c.wordings:
        return "Wordings of the question: one; compare others with --wording."
    rows = [[w.wording, w.prompt_hash, w.kappa, w.unscored, w.changed, w.gain, _effect(w)] for w in c.wordings]
    head = [f"compared with {c.wording}", "prompt", "κ, all replies", "unscored", "labels that change", "κ gained", ""]
    return table(head, rows)


def _effect(w: Wording) -> str:
    what = "a short reason first" if w.wording == "judge-reason" else "this wording"
    if w.gain.low is None or w.gain.high is None:
        return f"whether {what} agrees better is unknown"
    if w.gain.low > 0:
        return f"{what} agrees better"
    return f"{what} agrees worse" if w.gain.high < 0 else f"no difference that this set can show for {what}"


def validation_text(v: Validation) -> str:
    """Output of `helmbench validate`."""
    asked = f"prompt {v.prompt_hash}" if v.prompt_hash else "no model asked"
    given = ", ".join(f"{label}: {count}" for label, count in v.answers.items())
    rows: dict[str, Estimate] = {"judge with people": v.kappa}
    rows |= {f"judge with {name}": k for name, k in v.raters.items()}
    rows |= {"people among themselves": v.people}
    rows |= {f"published judge {name}": k for name, k in v.published.items()}
    if v.coarse:
        rows |= {"on fewer labels: judge with people": v.coarse.kappa, "on fewer labels: people": v.coarse.people}
    if v.between:
        rows |= {f"pass {n} with people": p.kappa for n, p in enumerate(v.passes, 1)}
        rows |= {f"the {len(v.passes)} passes among themselves": v.between}
    judges = list(v.published)
    groups = [
        [name, f.items, f.decided, percent(f.unscored), f.kappa, f.people, *map(f.published.get, judges)]
        for name, f in v.groups.items()
    ]
    classes = [[label, k.people, k.judge, k.recall, k.precision] for label, k in v.per_class.items()]
    named: Mapping[str, Figures] = {"all": v, **v.groups}
    return blocks(
        f"# {v.judge} against people: {v.set}, rows {v.rows} ({asked}, dataset {v.dataset})",
        f"Set: {v.source}.\n"
        f"{v.items} items, {v.decided} decided by the judge, {percent(v.unscored)} left unscored. "
        f"Its labels: {given or 'none'}.\n"
        f"κ is {v.statistic}, with {REFERENCES[v.reference]}; people among themselves: {v.among}.",
        table(["agreement", "items", "κ"], [[name, k.n, k] for name, k in rows.items()]),
        table(["of these", "items", "decided", "left unscored", "κ", "people", *judges], groups),
        table(["class", "people", "judge", "recall", "precision"], classes),
        _confusion("rows: people", v.confusion),
        f"Widest disagreements, by id: {', '.join(v.widest) or 'none'}",
        "\n".join(f"- {note}" for note in v.notes),
        _reasons({f"κ of {name}": own.kappa for name, own in named.items()}),
    )


def agreement_text(report: AgreementReport) -> str:
    """Output of `helmbench agreement`, with the reason for every missing figure."""
    whole = report.overall
    title, of = f"{len(whole.raters)} raters: {', '.join(whole.raters)}", ""
    if len(whole.pairs) == 1:
        first, second = whole.raters
        of = f" ({second} less {first})"
        if both := sum(map(sum, whole.pairs[0].confusion)):
            same = sum(row[n] for n, row in enumerate(whole.pairs[0].confusion))
            title = f"{first} and {second} gave {same} of {both} replies the same label.\n{title}"
    named = {name + (of if key == "bias" else ""): getattr(whole.overall, key, None) for key, name in NAMES.items()}
    figures: dict[str, Estimate] = {name: figure for name, figure in named.items() if figure}
    rows = [[name, figure, figure.n, figure.interval or ""] for name, figure in figures.items()]
    for name, a in report.criteria.items():
        figures |= {f"{name}: {NAMES[key]}": getattr(a.overall, key) for key in SHORT}
    criteria = [[name, a.shared, *_cells(a.overall, SHORT)] for name, a in report.criteria.items()]
    classes = [[k.label, "/".join(map(str, k.given.values())), *_cells(k, OF_CLASS)] for k in whole.classes]
    pairs = [
        [f"{p.first}, {p.second}", sum(map(sum, p.confusion)), *_cells(p.coefficients, SHORT)] for p in whole.pairs
    ]
    return blocks(
        f"{title}\n{whole.items} items, {whole.shared} with labels of two raters or more\n"
        f"labels: {(' < ' if whole.ordered else ', ').join(whole.labels) or 'none'}",
        table(["all items", "value", "items", "interval"], rows),
        table(["criterion", "items", *(NAMES[key] for key in SHORT)], criteria),
        table(["class", "given", *(NAMES[key] for key in OF_CLASS)], classes),
        table(["pair", "items", *(NAMES[key] for key in SHORT)], pairs) if len(pairs) > 1 else "",
        *(_pair(p, whole) for p in whole.pairs),
        _reasons(figures),
    )


def _cells(figures: object, keys: Iterable[str]) -> list[Estimate]:
    return [getattr(figures, key) for key in keys]


def _pair(p: PairAgreement, whole: Agreement) -> str:
    rows = [[label, *row, p.recall[label]] for label, row in zip(whole.labels, p.confusion, strict=True)]
    last = ["share the same", *(hundredths(p.precision[label].value) for label in whole.labels), ""]
    title = f"rows: {p.first}, columns: {p.second}"
    return f"{title}\n{table(['', *whole.labels, 'share the same'], [*rows, last])}" if rows else title


def _reasons(figures: Mapping[str, Estimate]) -> str:
    """Why figures have no value or no interval: each reason once, with the figures that it applies to."""
    where: dict[str, list[str]] = {}
    for name, figure in figures.items():
        if figure.reason:
            where.setdefault(figure.reason, []).append(name)
    return "\n".join(
        f"{'; '.join(names[:4])}{f' and {len(names) - 4} more' if len(names) > 4 else ''}: {reason}."
        for reason, names in where.items()
    )
