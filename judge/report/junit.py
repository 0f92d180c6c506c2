"""The gates of a comparison as JUnit XML, which CI systems show: one suite per run, one case per gate, no times."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from helmbench_common.formats.inert import inert
from judge import wording
from judge.scoring.compare import Comparison, Rank, Tested
from judge.scoring.gates import ANSWERED

FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0, even if escaped
ASKED = {
    ANSWERED: "enough was answered for the figures to count",
    "regression": "no certain loss of points against the baseline",
    "floor": "no breached floor",
    "undetermined": "no undetermined floor",
    "unscored": "few enough verdicts are unscored",
}


def as_junit(found: Comparison) -> str:
    """The file. A failed gate is a failure with its reasons; if too little was answered, every other gate is an
    error.
    """
    root = ElementTree.Element("testsuites", {"name": "helmbench compare"})
    for rank in sorted(found.ranks, key=lambda r: found.runs.index(r.run)):
        suite = ElementTree.SubElement(root, "testsuite", {"name": _text(rank.run)})
        _describe(suite, rank, found)
        for tested in found.tested:
            if tested.run == rank.run:
                _case(suite, tested, found)
        _count(suite)
    _count(root)
    ElementTree.indent(root)
    return "<?xml version='1.0' encoding='utf-8'?>\n" + ElementTree.tostring(root, encoding="unicode") + "\n"


def _describe(suite: ElementTree.Element, rank: Rank, found: Comparison) -> None:
    composite = f"{wording.of_hundred(rank.composite.value)} ({wording.interval(rank.composite)})"
    about = {"baseline": found.baseline, "judge": found.judge, "score_hash": found.score_hash, "composite": composite}
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in about.items():
        ElementTree.SubElement(properties, "property", {"name": name, "value": _text(value)})


def _case(suite: ElementTree.Element, tested: Tested, found: Comparison) -> None:
    name = f"{tested.gate}: {ASKED[tested.gate]}"
    case = ElementTree.SubElement(suite, "testcase", {"classname": _text(tested.run), "name": name})
    kind, reasons = "error" if tested.gate == ANSWERED else "failure", tested.reasons
    if not reasons and tested.gate != ANSWERED:
        kind, reasons = "error", [f"no gate passes: {why}" for why in found.unanswered]
    if reasons:
        told = ElementTree.SubElement(case, kind, {"type": tested.gate, "message": _text("; ".join(reasons))})
        told.text = _text("\n".join(reasons))


def _count(element: ElementTree.Element) -> None:
    for count, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        element.set(count, str(sum(1 for _ in element.iter(tag))))


def _text(value: str) -> str:
    return FORBIDDEN.sub("", inert(value))
