"""The drawing of sensitivity against specificity: where marks stand, and that names can be read."""

from __future__ import annotations

import re
from html import unescape
from itertools import combinations

import pytest

from judge.report.page import environment_over
from judge.report.scatter import BOTTOM, LEFT, RIGHT, TOP, Label, Line, Scatter, Spot, scatter
from judge.schema import Figure

LETTER = 5.6  # of 11 px text in the fonts that pages ask for; the drawing reckons with more


def spot(name: str, sensitivity: float | None, specificity: float | None, policy: bool = False) -> Spot:
    """One with intervals of ± 0.03."""
    return Spot(name, _figure(sensitivity), _figure(specificity), "policy" if policy else "model")


def _figure(value: float | None) -> Figure:
    return (
        Figure(value=None)
        if value is None
        else Figure(value=value, low=max(0, value - 0.03), high=min(1, value + 0.03))
    )


POLICIES = [
    spot("always-escalate", 1, 0, policy=True),
    spot("never-escalate", 0, 1, policy=True),
    spot("random", 0.38, 0.61, policy=True),
    spot("keyword", 0.03, 0.96, policy=True),
    spot("context-only", 0.02, 0.98, policy=True),
    spot("always-kind", 0, 1, policy=True),
]


def drawn(points: list[Spot]) -> str:
    """The template's HTML."""
    template = environment_over().from_string("{% from 'scatter.html' import scatter %}{{ scatter(drawn, 'one') }}")
    return template.render(drawn=scatter(points))


def box(label: Label) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a label, as it is drawn."""
    width = LETTER * len(label.text)
    left = {"start": label.x, "middle": label.x - width / 2, "end": label.x - width}[label.anchor]
    return left, label.y - 9, left + width, label.y + 2


def meet(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def test_marks_stand_where_their_figures_are() -> None:
    """Right is specificity, up is sensitivity, each from 0 to 100 %; the intervals cross at the mark."""
    (mark,) = scatter([spot("m", 0.75, 0.5)]).marks
    assert (mark.x, mark.y) == ((LEFT + RIGHT) / 2, TOP + (BOTTOM - TOP) / 4)
    assert mark.cross == [
        Line(round(LEFT + 0.47 * 296, 1), mark.y, round(LEFT + 0.53 * 296, 1), mark.y),
        Line(mark.x, round(BOTTOM - 0.72 * 296, 1), mark.x, round(BOTTOM - 0.78 * 296, 1)),
    ]


def test_whatever_alarms_without_reading_stands_on_the_line() -> None:
    """The line of no skill goes from the mark that alarms at everybody to the one that alarms at nobody."""
    html = drawn(POLICIES)
    assert f'<path class="no-skill" d="M{LEFT} {TOP}L{RIGHT} {BOTTOM}"/>' in html
    everybody, nobody, *_ = scatter(POLICIES).marks
    assert ((everybody.x, everybody.y), (nobody.x, nobody.y)) == ((LEFT, TOP), (RIGHT, BOTTOM))


@pytest.mark.parametrize("models", [0, 1, 6, 12])
def test_names_lie_on_no_other_name_and_no_mark(models: int) -> None:
    """The policies, two of which share their place, and models that crowd in the corner of good ones."""
    made = [spot(f"model-{n}", 0.84 + 0.013 * n, 0.97 - 0.011 * ((5 * n) % 12)) for n in range(models)]
    found = scatter(made + POLICIES).marks
    boxes = [box(m.label) for m in found]
    assert [p for p in combinations(boxes, 2) if meet(*p)] == []
    marks = [(m.x - 4, m.y - 4, m.x + 4, m.y + 4) for m in found]
    assert [(b, m) for b in boxes for m in marks if meet(b, m)] == []
    assert all(left >= LEFT and right <= 360 and top >= 0 and bottom <= BOTTOM for left, top, right, bottom in boxes)


def test_numbers_stand_for_names_that_find_no_room() -> None:
    """Forty models in one corner are numbered as in the table, and the page says so; the policies keep their names."""
    made = [spot(f"a-rather-long-model-name-{n}", 0.9 + 0.002 * n, 0.98 - 0.002 * n) for n in range(40)]
    one = scatter(made + POLICIES)
    assert one.numbered
    assert {m.label.text for m in one.marks} == {*map(str, range(1, 41)), *(p.name for p in POLICIES)}
    assert "numbers stand for them, as in the table" in drawn(made + POLICIES)
    assert not scatter(POLICIES).numbered
    assert "numbers stand" not in drawn(POLICIES)


def test_table_holds_every_figure_of_the_drawing() -> None:
    """Each spot's rates and limits, and one that can't be drawn because a figure is missing."""
    html = drawn([spot("seen", 0.912, 0.875), spot("half", None, 0.4), *POLICIES])
    rows = [
        re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", " ", row))).strip()
        for row in re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)[1:]
    ]
    assert rows[0] == "1 seen 91.2 % 88.2 to 94.2 87.5 % 84.5 to 90.5"
    assert rows[1] == "2 half not drawn: a figure is missing – 40.0 % 37.0 to 43.0"
    assert rows[2].startswith("3 always-escalate trivial policy 100.0 %")
    assert len(rows) == 8
    assert html.count("<circle") == 1
    assert "Names would lie" not in html


def test_nothing_to_draw_is_a_plot_without_marks() -> None:
    """No spot, and none with figures, are no error."""
    assert scatter([]) == Scatter([], [])
    assert not scatter([spot("m", None, None)]).marks
    assert "<circle" not in drawn([])


def test_a_name_from_outside_stays_text() -> None:
    """Markup is escaped, what would reorder a line is spelt out, and a long name is cut on the drawing only."""
    html = drawn([spot("<b>\u202ex" + "y" * 60, 0.5, 0.5)])
    assert "<b>" not in html
    assert "\u202e" not in html
    assert "&lt;b&gt;[U+202E]x" + "y" * 60 in html
    assert f"{'y' * 9}…</text>" in html


def test_names_that_are_cut_alike_become_numbers() -> None:
    """Prompts under one model differ at the end of their names."""
    drawing = scatter(
        [spot("a-model-of-a-name under calm.txt", 0.9, 0.5), spot("a-model-of-a-name under cold.txt", 0.2, 0.5)]
    )
    assert sorted(m.label.text for m in drawing.marks) == ["1", "2"]
    assert drawing.numbered
