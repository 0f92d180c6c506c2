"""How much a submission may ask of whoever verifies it, and what may stand beside its messages."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from support import tampering
from support.submission_runs import Opened, as_chatml, build, copied, judged_offline

from dataset_builder.release import Release
from dataset_builder.schema import Row
from leaderboard.verify import dates, template
from leaderboard.verify.around import cut, fits
from leaderboard.verify.verify import verify


@pytest.fixture(scope="module")
def small(small_content: Path, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release of seven scenarios."""
    return build(small_content, tmp_path_factory.mktemp("built") / "helmbench")


@pytest.fixture(scope="module")
def templated(small: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An honest demo with the text of a chat template; read-only by agreement."""
    return judged_offline(tmp_path_factory.mktemp("templated"), small, form=as_chatml)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-07-26", date(2026, 7, 26)),
        ("26 Jul 2026", date(2026, 7, 26)),
        ("6 July 2026", date(2026, 7, 6)),
        ("July 26, 2026", date(2026, 7, 26)),
        ("May 06, 2026", date(2026, 5, 6)),
    ],
)
def test_dates_that_templates_write(text: str, day: date) -> None:
    """The forms of published templates, read where they stand and evened out."""
    evened, (written,) = dates.evened(f"Today: {text}\n")
    assert (evened, written.day) == (f"Today: {dates.MARK}\n", day)
    assert dates.read(f"Today: {text}\n", 7) == (written, 7 + len(text))


@pytest.mark.parametrize(
    "text",
    [
        "1 Crisis 2026",
        "31 Jun 2026",
        "2026-02-30",
        "Julia 26, 2026",
        "26 Jul 9999",
        "0 Jul 2026",
        "٢٦ Jul 2026",
        "26 Ju 2026",
    ],
)
def test_what_only_looks_like_a_date_is_text(text: str) -> None:
    """It stays as it is, so that it differs between requests."""
    assert dates.evened(text) == (text, [])
    assert dates.read(text, 0) is None


def test_two_hundred_kilobytes_of_dates_are_read_in_linear_time() -> None:
    """Eight are dates, the rest is text, in cutting and in fitting alike."""
    text = "26 Jul 2026 " * 17_000
    started = time.process_time()
    around, days, lacking = cut(f"{text}hello{text}", ["hello"])
    assert (len(days), lacking) == (16, None)
    assert fits(around, ["hello"], f"{text}hello{text}".replace("26 Jul", "27 Jul", 1)) is not None
    assert fits(around, ["hello"], f"{text}hello{text}"[:-13] + "27 Jul 2026 ") is None
    assert time.process_time() - started < 5


def flagged(opened: Opened, release: Release, kind: str) -> list[str]:
    """The messages of one kind of flag, of a submission that is not refused."""
    verified = verify(opened.close(), release)
    assert [(p.kind, p.message) for p in verified.problems] == []
    return [f.message for f in verified.flags if f.kind == kind]


def test_a_sign_in_conversations_is_flagged_or_refused(templated: Path, tmp_path: Path, small: Release) -> None:
    """Refused where it leans towards crises or controls, flagged elsewhere; a turn's number is only flagged."""
    opened = Opened(copied(templated, tmp_path / "a"), small)
    tampering.in_long_talks("2")(opened)
    (said,) = flagged(opened, small, "template_differs")
    assert "between user and the end some requests hold '2' where others hold ''" in said
    opened = Opened(copied(templated, tmp_path / "b"), small)
    tampering.in_long_talks("🆘")(opened)
    verified = verify(opened.close(), small)
    seen = {p.kind for p in (*verified.problems, *verified.flags)}
    assert seen & {"outside_text", "template_differs"}


@pytest.mark.parametrize("sign", ["🆘", "988", "user model " * 9, "x\ufe00\ufe01\ufe02", "x\u2003\u2002", "-+" * 40])
def test_signs_in_every_request_are_shown(sign: str, templated: Path, tmp_path: Path, small: Release) -> None:
    """A hint needs no letter; names of roles beyond a template's few are words, too."""
    opened = Opened(copied(templated, tmp_path), small)
    tampering.told(sign, sign)(opened)
    (said,) = flagged(opened, small, "template_text")
    assert repr(sign.strip())[1:-1] in said


def test_dates_that_follow_the_samples_a_little_are_flagged(small: Release) -> None:
    """A second day is always said, since with a sample's words it can tell anything. One that tells the label by itself
    is refused; a single day says nothing.
    """
    rows = sorted(small.rows.values(), key=lambda r: r.id)

    def told(late: Callable[[int, Row], bool]) -> tuple[list[str], list[str]]:
        days = dates.Days()
        for n, row in enumerate(rows):
            days.add([dates.Written(date(2026, 7, 26 + late(n, row)), "2026-07-26")], row)
        problems, flags = days.told()
        return [p.kind for p in problems], [f.kind for f in flags]

    assert told(lambda n, row: row.polarity == "crisis" and n % 3 == 0) == ([], ["dates"])
    assert told(lambda n, row: row.polarity == "crisis") == (["outside_text"], [])
    assert told(lambda n, row: (n % 2 == 0) != (row.polarity == "crisis")) == ([], ["dates"])
    assert told(lambda n, row: False) == ([], [])


def test_differences_are_cut_out() -> None:
    """What two pieces begin and end with alike is no difference."""
    assert template.apart("<a>\n[Round 2] ", "<a>\n[Round 3] ") == ("2", "3")
    assert template.apart("x", "x") == ("", "")
    assert template.apart("aa", "a") == ("a", "")
    assert [list(template.carries(p)) for p in (("2", "3"), ("🆘", ""), ("no", "🆘"), (" ", ""))] == [
        [],
        ["signs"],
        ["words"],
        [],
    ]
