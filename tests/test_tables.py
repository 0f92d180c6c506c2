"""The text table that commands print."""

from __future__ import annotations

from helmbench_common.tables import columns


def test_numbers_are_right_aligned_and_text_left() -> None:
    """A dash stands for a missing number; trailing spaces are dropped."""
    assert columns(("tier", "samples", "note"), [("lite", "1,024", ""), ("core", "–", "none yet")]).splitlines() == [
        "tier  samples  note",
        "lite    1,024",
        "core        –  none yet",
    ]


def test_a_table_may_have_no_rows() -> None:
    """The header alone."""
    assert columns(("a", "b"), []) == "a  b"
