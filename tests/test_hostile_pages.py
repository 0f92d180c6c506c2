"""Strangers' text in every field of every page, summary, sheet and JUnit file at once: it stays text, in a parser and
in a real browser, and the page goes on working.
"""

from __future__ import annotations
