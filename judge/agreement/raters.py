"""The report of `helmbench agreement`: how well raters agree, overall, by criterion, label and pair, and its tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from dataset_builder.schema import Strict
from helmbench_common.tables import columns
from judge.agreement.labels import LabelTable
from judge.statistics.agreement import Agreement, PairAgreement, agreement
from judge.statistics.estimate import Estimate
from judge.wording import coefficient, hundredths

PARTS = ("criterion", "class", "pair")
NAMES = {
    "raw": "raw agreement",
    "cohen": "Cohen's κ",
    "cohen_linear": "Cohen's κ, linear",
    "cohen_quadratic": "Cohen's κ, quadratic",
    "fleiss": "Fleiss' κ",
    "alpha_nominal": "Krippendorff's α, nominal",
    "alpha_ordinal": "Krippendorff's α, ordinal",
    "ac1": "Gwet's AC1",
    "within_one": "within one step",
    "mae": "mean absolute error",
    "bias": "signed bias",
}
SHORT = {
    "raw": "raw",
    "cohen": "Cohen's κ",
    "alpha_nominal": "α nominal",
    "alpha_ordinal": "α ordinal",
    "ac1": "AC1",
    "bias": "bias",
}
OF_CLASS = {"specific": "specific", "cohen": "Cohen's κ", "fleiss": "Fleiss' κ", "alpha_nominal": "α", "ac1": "AC1"}


class AgreementReport(Strict):
    """What `--json` prints: agreement over all items, and over each criterion's."""

    format: Literal["helmbench-agreement-1"] = "helmbench-agreement-1"
    overall: Agreement
    criteria: dict[str, Agreement]


def agreement_report(table: LabelTable, order: tuple[str, ...] | None = None, ordinal: bool = False) -> AgreementReport:
    """Agreement over all items and per criterion.

    Raises:
        RunError: a label that isn't in `order`, or `ordinal` where the labels have no order.
    """
    criteria = {name: agreement(table.ratings(name, order, ordinal)) for name in table.criteria}
    # Labels of several scales have no common order; each criterion's own may still have one.
    overall = agreement(table.ratings(None, order, ordinal and len(criteria) < 2))
    return AgreementReport(overall=overall, criteria=criteria)


def text(report: AgreementReport, parts: tuple[str, ...] = PARTS) -> str:
    """The tables as text, 95 % intervals in brackets, and the reason for every missing figure."""
    whole = report.overall
    blocks = [_head(whole), _overall(whole)]
    if "criterion" in parts and report.criteria:
        rows = [[name, str(a.shared), *_cells(a.overall, SHORT)] for name, a in report.criteria.items()]
        blocks.append(columns(["criterion", "items", *SHORT.values()], rows))
    if "class" in parts:
        rows = [[k.label, "/".join(map(str, k.given.values())), *_cells(k, OF_CLASS)] for k in whole.classes]
        blocks.append(columns(["class", "given", *OF_CLASS.values()], rows))
    if "pair" in parts and len(whole.pairs) > 1:
        rows = [
            [f"{p.first}, {p.second}", str(sum(map(sum, p.confusion))), *_cells(p.coefficients, SHORT)]
            for p in whole.pairs
        ]
        blocks.append(columns(["pair", "items", *SHORT.values()], rows))
    if "pair" in parts or len(whole.pairs) == 1:
        blocks += [_confusion(p, whole.labels) for p in whole.pairs]
    # Each reason once, with the figures it holds for.
    where: dict[str, list[str]] = {}
    for name, a in {"": whole, **(report.criteria if "criterion" in parts else {})}.items():
        for key, title in NAMES.items():
            reason = getattr(a.overall, key).reason
            if reason and (not name or key in SHORT):
                where.setdefault(reason, []).append(f"{name}: {title}" if name else title)
    reasons = [
        f"{'; '.join(places[:4])}{f' and {len(places) - 4} more' if len(places) > 4 else ''}: {reason}."
        for reason, places in where.items()
    ]
    return "\n\n".join([*blocks, *(["\n".join(reasons)] if reasons else [])])


def _cells(figures: object, keys: Iterable[str]) -> list[str]:
    return [coefficient(getattr(figures, key)) for key in keys]


def _head(a: Agreement) -> str:
    labels = (" < " if a.ordered else ", ").join(a.labels)
    plain = ""
    if len(a.pairs) == 1 and (both := sum(map(sum, a.pairs[0].confusion))):
        same = sum(row[n] for n, row in enumerate(a.pairs[0].confusion))
        plain = f"{a.raters[0]} and {a.raters[1]} gave {same} of {both} replies the same label.\n"
    return (
        f"{plain}{len(a.raters)} raters: {', '.join(a.raters)}\n{a.items} items, {a.shared} with labels of two "
        f"raters or more\nlabels: {labels or 'none'}"
    )


def _overall(a: Agreement) -> str:
    rows = []
    for key, name in NAMES.items():
        figure: Estimate = getattr(a.overall, key)
        of = f" ({a.raters[1]} less {a.raters[0]})" if key == "bias" and len(a.raters) == 2 else ""
        limits = "" if figure.low is None else f"[{hundredths(figure.low)}, {hundredths(figure.high)}]"
        rows.append([name + of, hundredths(figure.value), limits, str(figure.n), figure.interval or ""])
    return columns(["all items", "value", "95 % interval", "items", "interval"], rows)


def _confusion(p: PairAgreement, labels: list[str]) -> str:
    rows = [
        [label, *map(str, row), coefficient(p.recall[label])] for label, row in zip(labels, p.confusion, strict=True)
    ]
    precision = ["share the same", *(hundredths(p.precision[label].value) for label in labels), ""]
    return f"rows: {p.first}, columns: {p.second}\n" + columns(["", *labels, "share the same"], [*rows, precision])
