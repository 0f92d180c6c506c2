"""The way of a clinician, walked: book → comment → patch; sheet → labels → agreement. Every command is run as it is
typed, every click is made in headless Chromium and every word typed there, and each is timed.

Usage: python scripts/walk_through.py [--replies N] [--keep DIR]

Printed: step, who, command or clicks, clicks, keys, seconds; then what each of the two ways takes in all. Seconds are
the machine's own: reading, thinking and mailing files are not in them. Needs Debian's `chromium` and `chromium-driver`.
The comments are no clinician's, and the labels are keys 1, 2, 3 in turn: what agreement they come to says nothing.
Nothing is written into this checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from webdriver import Browser, driven, until

ROOT = Path(__file__).resolve().parents[1]
CRITERION = "acts-at-once"
READ, SIGNED = "P1-B1-S1", "P4-B2-S1"  # a scenario to comment on, and one to sign
NAME, QUALIFICATION = "Walk Through", "nobody, a script"
COMMENT = "Written by a script that walks this way: it says nothing of the message."
CLINICIAN, MAINTAINER = "clinician", "maintainer"
DOWNLOADED = (".json", ".jsonl")
NEXT = "\ue014"  # the arrow to the right


class Step(NamedTuple):
    """`commands`, `clicks`, `keys`: how many of each it took; a file that is opened is one click."""

    way: str
    who: str
    what: str
    commands: int
    clicks: int
    keys: int
    seconds: float


class Walk:
    """The steps so far. `place`: where commands are typed and files are saved."""

    def __init__(self, browser: Browser, place: Path) -> None:
        self.browser, self.place, self.steps, self.way = browser, place, list[Step](), ""

    @contextmanager
    def step(self, who: str, what: str, commands: int = 0, clicks: int = 0, keys: int = 0) -> Iterator[None]:
        """Times what the block does."""
        started = time.monotonic()
        yield
        self.steps.append(Step(self.way, who, what, commands, clicks, keys, time.monotonic() - started))

    def command(self, typed: str, into: str = "", at: Path | None = None) -> str:
        """Runs a command as it is typed; what it printed is also written `into` a file.

        Raises:
            SystemExit: it failed.
        """
        shown = f"{typed} > {into}" if into else typed
        with self.step(MAINTAINER, shown, commands=1, keys=len(shown) + 1):
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                typed.split(), cwd=at or self.place, env=os.environ | {"PATH": path}, capture_output=True, text=True
            )
        if done.returncode:
            raise SystemExit(f"{typed}: exit code {done.returncode}\n{done.stderr}")
        if into:
            (self.place / into).write_text(done.stdout, encoding="utf-8")
        return done.stdout

    def opened(self, name: str) -> None:
        with self.step(CLINICIAN, f"open {name} (double click)", clicks=2):
            self.browser.show(self.place / name)

    def click(self, what: str, *selectors: str) -> None:
        with self.step(CLINICIAN, what, clicks=len(selectors)):
            for selector in selectors:
                self.browser.click(selector)

    def typed(self, what: str, selector: str, text: str) -> None:
        with self.step(CLINICIAN, what, clicks=1, keys=len(text)):
            self.browser.write(selector, text)

    def saved(self, what: str, selector: str, ready: Callable[[str], bool]) -> str:
        """Presses a download button; the name of the file that it gave."""
        before = {*self.place.iterdir()}
        with self.step(CLINICIAN, what, clicks=1):
            self.browser.click(selector)
            until(lambda: any(p.suffix in DOWNLOADED and ready(_text(p)) for p in {*self.place.iterdir()} - before))
        return next(p.name for p in {*self.place.iterdir()} - before if p.suffix in DOWNLOADED)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def comment(walk: Walk) -> None:
    """Book → comment → patch."""
    walk.way = "book → comment → patch"
    walk.command("helmbench book")
    walk.opened("book.html")
    walk.click("Open the book", "#pause > summary")
    until(lambda: bool(walk.browser.script("return !document.getElementById('inside').hidden")))
    walk.typed("name", "#reviewer [name=name]", NAME)
    walk.typed("qualification", "#reviewer [name=qualification]", QUALIFICATION)
    walk.click(f"{READ} in Contents", f"#contents a[href='#{READ}']")
    walk.typed("comment on its first message", f"#{READ}-PT1 textarea", COMMENT)
    walk.click("agree with its severity", f"#{READ}-PT1 [value=agree]")
    walk.typed("another severity for its second", f"#{READ}-PT2 [type=number]", "9")
    walk.click(f"{SIGNED} in Contents, once it has been read", f"#contents a[href='#{SIGNED}']")
    walk.click("sign it", f"#{SIGNED} [data-sign] [type=checkbox]")
    file = walk.saved("Download the review", "#download", lambda text: text.endswith("}\n"))
    walk.command(f"helmbench review {file}", into="review.patch")
    walk.command(f"git apply --check {walk.place / 'review.patch'}", at=ROOT)


def label(walk: Walk, replies: int) -> None:
    """Sheet → labels → agreement, of two people and of one with the authors."""
    walk.way = "sheet → labels → agreement"
    for name in ("ann", "ben"):
        sheet = f"sheet-{name}.html"
        walk.command(
            f"helmbench annotate export calibration --rater {name} --out {sheet} "
            f"--criterion {CRITERION} --sample {replies}"
        )
        walk.opened(sheet)
        walk.click("Begin", "#begin")
        with walk.step(CLINICIAN, f"{replies} labels: a digit and an arrow each", keys=2 * replies - 1):
            for n in range(replies):
                walk.browser.press(str(n % 3 + 1))
                if n < replies - 1:
                    walk.browser.press(NEXT)
        walk.typed("a note on the last reply", "#note", COMMENT)
        file = walk.saved("Download", "#download", lambda text: text.count("\n") == replies)
        walk.command(f"helmbench annotate import {file} --cases calibration --out {name}.jsonl")
    walk.command("helmbench agreement ann.jsonl ben.jsonl")
    walk.command("helmbench agreement ann.jsonl calibration")


def table(steps: list[Step]) -> str:
    """The steps, and the sum of each way."""
    lines = []
    for way in dict.fromkeys(step.way for step in steps):
        own = [step for step in steps if step.way == way]
        lines += ["", way, f"{'who':<11}{'clicks':>7}{'keys':>6}{'seconds':>9}  command or click"]
        lines += [f"{s.who:<11}{s.clicks:>7}{s.keys:>6}{s.seconds:>9.1f}  {s.what}" for s in own]
        for who in (CLINICIAN, MAINTAINER):
            part = [step for step in own if step.who == who]
            lines.append(
                f"{who}: {sum(s.commands for s in part)} commands, {sum(s.clicks for s in part)} clicks, "
                f"{sum(s.keys for s in part)} keys, {sum(s.seconds for s in part):.1f} s of the machine"
            )
    return "\n".join(lines[1:])


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="Walk a clinician's way through book and sheet, and time it.")
    parser.add_argument("--replies", type=int, default=12, metavar="N", help="replies on each of the two sheets")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what was made there")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="helmbench-walk-") as temporary:
        place = (options.keep or Path(temporary) / "way").resolve()
        place.mkdir(parents=True, exist_ok=True)
        os.environ.setdefault("HELMBENCH_DATASET", str(ROOT / "helmbench"))
        with driven(Path(temporary) / "profile") as browser:
            browser.downloads(place)
            walk = Walk(browser, place)
            comment(walk)
            label(walk, options.replies)
        found = json.loads(_text(next(place.glob("helmbench-review-*.json"))))
    print(table(walk.steps))
    print(f"\nin the review: {sum(len(i['notes']) for i in found['items'])} notes, "
          f"{sum(i['signed'] for i in found['items'])} scenario signed")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
