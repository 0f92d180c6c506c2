"""What the transcripts' page costs to write and to open.

Usage: python tests/benchmarks/transcripts.py [--entries 5000 100000] [--keep FOLDER]. Needs a built dataset; opening
needs Chromium with its chromedriver, and is skipped without.

Rows are those of the full tier, repeated as often as needed. Replies are 40 to 260 words of the criteria in random
order, so that little in them packs well; verdicts have every label and a quote each.

Writing is measured in a process of its own, from replies and verdicts in memory to the file; "before" is the memory
that these take. Opening: from disk until the list can be used, then a choice in a filter, a search for a word, another
search, and another choice, each until the new list is painted (a search waits a quarter of a second for the next key).
`longest` is the longest task of the page's main thread, as far as it is over 50 ms. `heap`: the script's memory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts"), str(ROOT / "tests")]

from support.browser import CHROMIUM, DRIVER, Browser, driven  # noqa: E402

from dataset_builder.release import Release, open_release  # noqa: E402
from dataset_builder.schema import Label, Row  # noqa: E402
from helmbench_common.files import write_whole  # noqa: E402
from judge import schema  # noqa: E402
from judge.replies.schema import Model, Reply  # noqa: E402
from judge.replies.script import live_turns  # noqa: E402
from judge.report.page import report  # noqa: E402
from judge.schema import Verdict  # noqa: E402
from judge.scoring.scorecard import About, judge_card, scorecard  # noqa: E402

LABELS: dict[Label | None, int] = {"PASS": 80, "PARTIAL": 9, "FAIL": 10, None: 1}
# Runs before the page's own script: what its main thread did, and when it was ready.
WATCH = """
    window.longest = 0; window.usable = null;
    new PerformanceObserver(l => l.getEntries().forEach(e => { longest = Math.max(longest, e.duration); }))
        .observe({type: 'longtask', buffered: true});
    const ready = () => document.querySelector('#filter[data-state=ready]');
    new MutationObserver(() => { if (usable === null && ready()) usable = performance.now(); })
        .observe(document, {subtree: true, attributes: true, childList: true});
"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]"
# Sets a field of the form, and answers with how long it took until a changed list was painted.
ACT = """
    const done = arguments[0], form = document.getElementById('filter');
    longest = 0;
    const count = document.getElementById('count'), began = performance.now();
    count.textContent = '';
    form.elements['NAME'].value = VALUE;
    form.elements['NAME'].dispatchEvent(new Event('input', {bubbles: true}));
    const look = () => {
        if (!count.textContent.includes(' of ')) return setTimeout(look, 1);
        const said = count.textContent.split(', ')[0];
        requestAnimationFrame(() => setTimeout(() => {
            const took = performance.now() - began;
            setTimeout(() => done([took, longest, said]), 300);  // what is observed is told a while later
        }, 0));
    };
    look();
"""


class Opened(NamedTuple):
    """What a page did in the browser; times in milliseconds, memory in megabytes."""

    paint: float
    usable: float
    longest: float
    steps: dict[str, tuple[float, float, str]]
    heap: float


def synthetic(release: Release, entries: int) -> tuple[list[Reply], list[Verdict]]:
    """Replies to the release's rows, and their verdicts."""
    draw = random.Random(0)
    rows = sorted(release.rows.values(), key=lambda r: draw.random())  # few of them are of all kinds too
    prose = [c.text for c in release.criteria.values()] + [t for p in release.protocols.values() for t in p.levels]
    words = Counter(w for text in prose for w in text.split() if w.isalpha())
    known, often = list(words), list(words.values())
    replies: list[Reply] = []
    verdicts: list[Verdict] = []
    for n in range(entries):
        row, repeat = rows[n % len(rows)], n // len(rows)
        turns = tuple(
            " ".join(draw.choices(known, often, k=draw.randint(40, 260))) + "." for _ in range(live_turns(row))
        )
        replies.append(Reply(id=row.id, repeat=repeat, turns=turns))
        verdicts += _verdicts(row, repeat, turns[-1], draw)
    return replies, verdicts


def _verdicts(row: Row, repeat: int, said: str, draw: random.Random) -> Iterator[Verdict]:
    for index, check in enumerate(row.evaluation):
        (label,) = draw.choices(list(LABELS), list(LABELS.values()))
        at = draw.randrange(len(said) - 40)
        yield Verdict.model_construct(
            id=row.id,
            repeat=repeat,
            index=index,
            check=check.check,
            behavior=check.behavior,
            turn=check.turn,
            criterion=getattr(check, "criterion", None),
            label=label,
            unscored=None if label else "unparsable",
            incident="missed_crisis" if label == "FAIL" else None,
            decided_by="judge",
            judge="synthetic",
            evidence=(said[at : at + 40].strip(),),
        )


def write(entries: int, out: Path) -> dict[str, Any]:
    """Runs in a process of its own, so that its peak memory is nobody else's."""
    release = open_release()
    replies, verdicts = synthetic(release, entries)
    whole = schema.Dataset(version="0", score_hash="0" * 64, tier="full", samples=1, expected=1, complete=True)
    few = {r.id for r in replies[:300]}  # the figures are no part of what is measured
    scored = [v for v in verdicts if v.repeat == 0 and v.id in few]
    about = About(whole, Model(name="synthetic", backend="none"))
    card = scorecard(scored, release, about, judge_card(scored, "none", "0"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = 1_950_000
    made = report(card, verdicts, replies, release.rows, "all", size, dict(release.criteria))
    began = time.process_time()
    write_whole(out, made.transcripts)
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    megabytes = out.stat().st_size / 1e6
    characters = sum(len(t) for r in replies for t in r.turns) / 1e6
    return {"seconds": seconds, "before": before / 1024, "peak": peak / 1024, "size": megabytes, "said": characters}


def open_page(path: Path) -> Opened:
    """Opens a page and uses it as a reader would."""
    with tempfile.TemporaryDirectory() as profile, driven(Path(profile)) as browser:
        browser.driver.set_page_load_timeout(110)
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        browser.show(path)
        _wait(browser)
        paint = browser.script(f"return {PAINT}.startTime")
        usable, longest = browser.script("return [usable, longest]")
        steps = {}
        for name, field, value in (
            ("filter", "behavior", "P3-B1"),
            ("search", "words", "hospital"),
            ("other", "words", "nobody"),
            ("again", "polarity", "crisis"),
        ):
            steps[name] = _act(browser, field, value)
        browser.devtools("HeapProfiler.collectGarbage")
        heap = browser.devtools("Runtime.getHeapUsage")["usedSize"] / 1e6
        return Opened(paint, usable, longest, steps, heap)


def _wait(browser: Browser) -> None:
    """Until the list can be used and the first paint is told of: on a busy machine either may come first."""
    for _ in count():
        if browser.script(f"return usable !== null && {PAINT} !== undefined"):
            return
        time.sleep(0.2)


def _act(browser: Browser, field: str, value: str) -> tuple[float, float, str]:
    wanted = json.dumps(value)
    if field != "words":  # the transcripts' options have numbers for values, and words that begin with the code
        wanted = (
            f"[...form.elements['{field}'].options].find(o => [o.value, (o.dataset.label || '').split(' ')[0]]"
            f".includes({wanted})).value"
        )
    source = ACT.replace("NAME", field).replace("VALUE", wanted)
    milliseconds, longest, said = browser.later(source)
    return milliseconds, longest, said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, nargs="+", default=[5_000, 100_000])
    parser.add_argument("--keep", type=Path, help="a folder for the pages, which else are thrown away")
    parser.add_argument("--one", nargs=2, metavar=("ENTRIES", "FILE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(write(int(args.one[0]), Path(args.one[1]))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        made = [(n, (args.keep or Path(scratch)) / f"transcripts-{n}.html") for n in args.entries]
        _say_writing(made)
        if not (CHROMIUM and DRIVER):
            print("no Chromium with chromedriver: the pages aren't opened")
            return
        _say_opening(made)


def _say_writing(made: list[tuple[int, Path]]) -> None:
    print(f"{'writing':12}{'replies':>9}{'said MB':>9}{'file MB':>9}{'CPU s':>9}{'before MB':>11}{'peak MB':>9}")
    for n, path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, __file__, "--one", str(n), str(path)]
        r = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ).stdout)
        print(
            f"{'':12}{n:9,}{r['said']:9.1f}{r['size']:9.1f}{r['seconds']:9.1f}{r['before']:11.0f}{r['peak']:9.0f}",
            flush=True,
        )


def _say_opening(made: list[tuple[int, Path]]) -> None:
    steps = ("filter", "search", "other", "again")
    head = ("paint", "usable", "longest", *(h for step in steps for h in (step, "longest")), "heap MB")
    print(f"\n{'opening, ms':12}{'replies':>9}" + "".join(f"{h:>9}" for h in head))
    for n, path in made:
        o = open_page(path)
        times = [o.paint, o.usable, o.longest, *(t for s in o.steps.values() for t in s[:2]), o.heap]
        print(f"{'':12}{n:9,}" + "".join(f"{t:9.0f}" for t in times), flush=True)
        print(f"{'':21}" + "; ".join(f"{name}: {s[2]}" for name, s in o.steps.items()), flush=True)


if __name__ == "__main__":
    main()
