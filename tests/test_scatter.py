"""The plot of sensitivity against specificity: where marks lie, how they are numbered, and its table."""

from __future__ import annotations

import re
from html import unescape

from judge.report.charts import BOTTOM, LEFT, RIGHT, TOP, Scatter, Spot, scatter
from judge.report.page import environment_over
from judge.schema import Figure


def spot(name: str, sensitivity: float | None, specificity: float | None, policy: bool = False) -> Spot:
    """One with intervals of ± 0.03."""

    def figure(value: float | None) -> Figure:
        ends = {} if value is None else {"low": max(0, value - 0.03), "high": min(1, value + 0.03)}
        return Figure(value=value, **ends)

    return Spot(name, figure(sensitivity), figure(specificity), "policy" if policy else "model")


POLICIES = [spot("always-escalate", 1, 0, policy=True), spot("never-escalate", 0, 1, policy=True)]


def drawn(spots: list[Spot]) -> str:
    template = environment_over().from_string("{% from 'scatter.html' import scatter %}{{ scatter(drawn, 'one') }}")
    return template.render(drawn=scatter(spots))


def test_marks_lie_at_their_figures() -> None:
    """Right is specificity, up is sensitivity; the intervals cross at the mark, and the line of no skill joins the
    policy that always alarms with the one that never does.
    """
    (mark,) = scatter([spot("m", 0.75, 0.5)]).marks
    assert (mark.x, mark.y) == ((LEFT + RIGHT) / 2, TOP + (BOTTOM - TOP) / 4)
    low, high = round(LEFT + 0.47 * 296, 1), round(LEFT + 0.53 * 296, 1)
    up = [round(BOTTOM - share * 296, 1) for share in (0.72, 0.78)]
    assert mark.cross == [f"M{low} {mark.y}H{high}", f"M{mark.x} {up[0]}V{up[1]}"]
    assert [(m.x, m.y) for m in scatter(POLICIES).marks] == [(LEFT, TOP), (RIGHT, BOTTOM)]
    assert f'<path class="no-skill" d="M{LEFT} {TOP}L{RIGHT} {BOTTOM}"/>' in drawn(POLICIES)


def test_marks_that_lie_on_each_other_share_a_label() -> None:
    """Every mark is in one label; a crowded one shows the first numbers and how many more there are."""
    crowd = [spot(f"model-{n}", 0.9 + 0.001 * n, 0.98 - 0.001 * n) for n in range(10)]
    labels = scatter([*POLICIES, *crowd, spot("apart", 0.5, 0.5)]).labels
    assert sorted(n for label in labels for n in label.numbers) == list(range(1, 14))
    assert [label.text for label in labels] == ["1", "2", "3, 4, 5 +7", "13"]
    assert [label.left for label in labels] == [False, True, True, False]


def test_the_table_holds_every_figure_and_names_stay_text() -> None:
    """Each spot's rates and limits, and one that can't be drawn because a figure is missing."""
    html = drawn([spot("<b>\u202ex", 0.912, 0.875), spot("half", None, 0.4), *POLICIES])
    rows = [
        re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", " ", row))).strip()
        for row in re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)[1:]
    ]
    assert rows[0] == "1 <b>[U+202E]x 91.2 % 88.2 to 94.2 87.5 % 84.5 to 90.5"
    assert rows[1] == "2 half not drawn: a figure is missing – 40.0 % 37.0 to 43.0"
    assert rows[2].startswith("3 always-escalate trivial policy 100.0 %")
    assert len(rows) == 4
    assert html.count("<circle") == 1
    assert "<b>" not in html


def test_nothing_to_draw_is_a_plot_without_marks() -> None:
    """No spot, and none with figures, are no error."""
    assert scatter([]) == Scatter([], [], [])
    assert not scatter([spot("m", None, None)]).marks
    assert "<circle" not in drawn([])
