"""The report of `helmbench agreement`: how far raters agree, overall, by criterion, class and pair, and its tables."""

from __future__ import annotations

from typing import Literal

from dataset_builder.schema import Strict
from helmbench_common.tables import columns
from judge.people.labels import LabelTable
from judge.statistics.agreement import Agreement, PairAgreement, agreement
from judge.statistics.estimate import Estimate

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
        RunError: `order` lacks a label, or `ordinal` where the labels have none.
    """
    criteria = {name: agreement(table.ratings(name, order, ordinal)) for name in table.criteria}
    # Labels of several scales have no common order; each criterion's own may still have one.
    return AgreementReport(
        overall=agreement(table.ratings(None, order, ordinal and len(criteria) < 2)), criteria=criteria
    )


def text(report: AgreementReport, parts: tuple[str, ...] = PARTS) -> str:
    """The tables as text, 95 % intervals in brackets, and every reason for a figure that is missing."""
    whole = report.overall
    pairs = whole.pairs if len(whole.raters) > 2 else []
    blocks = [_head(whole), _overall(whole)]
    if "criterion" in parts and report.criteria:
        rows = [
            [name, str(a.shared), *(_cell(getattr(a.overall, key)) for key in SHORT)]
            for name, a in report.criteria.items()
        ]
        blocks.append(columns(["criterion", "items", *SHORT.values()], rows))
    if "class" in parts:
        rows = [
            [k.label, "/".join(map(str, k.given.values())), *(_cell(getattr(k, key)) for key in OF_CLASS)]
            for k in whole.classes
        ]
        blocks.append(columns(["class", "given", *OF_CLASS.values()], rows))
    if "pair" in parts and pairs:
        rows = [_pair(p) for p in pairs]
        blocks.append(columns(["pair", "items", *SHORT.values()], rows))
    if "pair" in parts or len(whole.raters) == 2:
        blocks += [_confusion(p, whole.labels) for p in whole.pairs]
    reasons = _reasons(report, parts)
    return "\n\n".join([*blocks, *(["\n".join(reasons)] if reasons else [])])


def _pair(p: PairAgreement) -> list[str]:
    figures = (_cell(getattr(p.coefficients, key)) for key in SHORT)
    return [f"{p.first}, {p.second}", str(sum(map(sum, p.confusion))), *figures]


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
        rows.append([name + of, _value(figure), _interval(figure), str(figure.n), figure.interval or ""])
    return columns(["all items", "value", "95 % interval", "items", "interval"], rows)


def _confusion(p: PairAgreement, labels: list[str]) -> str:
    rows = [[label, *map(str, row), _cell(p.recall[label])] for label, row in zip(labels, p.confusion, strict=True)]
    precision = ["share the same", *(_value(p.precision[label]) for label in labels), ""]
    return f"rows: {p.first}, columns: {p.second}\n" + columns(["", *labels, "share the same"], [*rows, precision])


def _reasons(report: AgreementReport, parts: tuple[str, ...]) -> list[str]:
    """Why figures are missing, each reason once, with where it holds."""
    shown = {"": report.overall, **(report.criteria if "criterion" in parts else {})}
    where: dict[str, list[str]] = {}
    for name, a in shown.items():
        for key, title in NAMES.items():
            figure: Estimate = getattr(a.overall, key)
            if figure.reason and (not name or key in SHORT):
                where.setdefault(figure.reason, []).append(f"{name}: {title}" if name else title)
    return [
        f"{'; '.join(places[:4])}{f' and {len(places) - 4} more' if len(places) > 4 else ''}: {reason}."
        for reason, places in where.items()
    ]


def _value(figure: Estimate) -> str:
    return "–" if figure.value is None else f"{figure.value:.2f}".replace("-0.00", "0.00")


def _interval(figure: Estimate) -> str:
    return f"[{figure.low:.2f}, {figure.high:.2f}]" if figure.low is not None and figure.high is not None else ""


def _cell(figure: Estimate) -> str:
    return f"{_value(figure)} {_interval(figure)}".strip()
