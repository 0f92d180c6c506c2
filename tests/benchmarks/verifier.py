"""What `helmbench verify` makes of each tampering, honest submission and stall of the tests, and what it takes.

Usage: python tests/benchmarks/verifier.py [--every 1]. Needs no built dataset: seven scenarios are built for it.

Each submission is read in a process of its own, which may take LIMIT_S of processor time and LIMIT_GB of memory;
`plain` is a process with the same limits that only reads the same files, with zipfile and json. Memory is the peak of
the process, which begins at that of the process that it is forked from. `--every N` takes each N-th case of a kind.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "scripts")]

import test_verify_honest as honest  # noqa: E402
from support import stalls  # noqa: E402
from support.contents import small  # noqa: E402
from support.submission_runs import Opened, as_chatml, build, copied, judged_by_model, judged_offline  # noqa: E402
from support.tampering import OF_TEXT, SIGNED  # noqa: E402
from support.tampering_files import RAW  # noqa: E402
from support.tampering_kinds import kind_of  # noqa: E402

from dataset_builder.release import Release  # noqa: E402
from leaderboard.verify import files  # noqa: E402
from leaderboard.verify.verify import verify  # noqa: E402

LIMIT_S, LIMIT_GB = 60, 3
Prepare = Callable[[Path], Path]  # an empty folder → a submission in it


class Case(NamedTuple):
    kind: str
    name: str
    due: str  # the state: `refused`, `accepted`, or `either`
    prepare: Prepare


class Done(NamedTuple):
    """What became of a process: what it said (`died` where it said nothing), processor seconds, peak memory in MB."""

    said: str
    seconds: float
    memory: float


def apart(work: Callable[[], str]) -> Done:
    """Does something in a process of its own, within the limits."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))
            resource.setrlimit(resource.RLIMIT_AS, (LIMIT_GB * 2**30, LIMIT_GB * 2**30))
            signal.alarm(4 * LIMIT_S)  # a pipe takes no processor time
            os.write(writer, work().encode(errors="replace")[:4000])
        except BaseException as error:
            os.write(writer, f"raised {type(error).__name__}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    _, _, used = os.wait4(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    return Done(said or "died", used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def checked(folder: Path, release: Release) -> str:
    return verify(folder, release).state


def plain(folder: Path) -> str:
    """All that the files hold, each line read as JSON and let go again; what isn't JSON is passed over."""
    for path in sorted(p for p in folder.iterdir() if p.is_file()):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                lines = [line for name in archive.namelist() for line in archive.read(name).splitlines()]
        else:
            lines = [path.read_bytes()] if path.suffix == ".json" else path.read_bytes().splitlines()
        for line in lines:
            try:
                json.loads(line)
            except (ValueError, RecursionError):
                continue
    return "read"


def cases(release: Release, bases: dict[str, Path]) -> list[Case]:
    """All of them. The bases are read-only by agreement."""

    def opened(base: str, change: Callable[[Opened], object], close: bool = True) -> Prepare:
        def prepare(home: Path) -> Path:
            o = Opened(copied(bases[base], home), release)
            change(o)
            return o.close() if close else o.folder

        return prepare

    def changed(change: Callable[[Path], object], sign: bool = False) -> Prepare:
        def prepare(home: Path) -> Path:
            folder = copied(bases["judged"], home)
            change(folder)
            found = next((p for p in home.glob("*/*/*") if p.name in (folder.name, "renamed")), folder)
            if sign:
                files.sign(found)
            return found

        return prepare

    def offline(given: dict[str, object]) -> Prepare:
        return lambda home: judged_offline(home, release, **given)

    def by_models(work: honest.Make) -> Prepare:
        return lambda home: work(home, release)

    found = [Case(kind_of(n, p), n, "refused", opened("judged", change)) for n, (change, p, _) in SIGNED.items()]
    found += [Case(kind_of(n, p), n, "refused", opened("templated", change)) for n, (change, p, _) in OF_TEXT.items()]
    found += [Case(kind_of(n, p), n, "refused", changed(change)) for n, (change, p, _) in RAW.items()]
    found.sort(key=lambda case: case.kind)
    found += [Case("honest: offline judge", n, "accepted", offline(given)) for n, given in honest.OFFLINE.items()]
    found += [Case("honest: language models", n, "accepted", by_models(work)) for n, (work, _) in honest.PANELS.items()]
    found += [Case("honest: rewritten", n, "accepted", changed(c, sign=True)) for n, c in honest.REWRITTEN.items()]
    return found + [
        Case("stalls", name, "refused" if kinds else "either", opened(base, change, close=False))
        for name, (base, change, kinds) in stalls.STALLS.items()
    ]


def measured(case: Case, release: Release, home: Path) -> tuple[Done, Done]:
    """Verifying, and plainly reading, one submission; it is made in a process of its own, too, and gone afterwards."""
    made = home / "made"

    def prepare() -> str:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            return str(case.prepare(made))

    prepared = apart(prepare)
    try:
        folder = Path(prepared.said)
        return apart(lambda: checked(folder, release)), apart(lambda: plain(folder))
    finally:
        shutil.rmtree(made, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1)
    every = parser.parse_args().every
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with redirect_stdout(StringIO()):
            release = build(small(home / "content"), home / "built" / "helmbench")
            bases = {
                "judged": judged_by_model(home / "judged", release),
                "offline": judged_offline(home / "offline", release),
                "templated": judged_offline(home / "templated", release, form=as_chatml),
            }
        own = cases(release, bases)
        print(f"{'kind':26}{'tried':>7}{'as due':>8}{'CPU s':>8}{'MB':>7}{'plain s':>9}{'MB':>7}{'died':>6}")
        wrong: list[str] = []
        every_done: list[tuple[Done, Done]] = []
        for kind in dict.fromkeys(case.kind for case in own):
            tried = [case for case in own if case.kind == kind][::every]
            done = [measured(case, release, home) for case in tried]
            every_done += done
            bad = [f"{c.name}: {d.said[:200]}" for c, (d, _) in zip(tried, done, strict=True) if not as_due(c, d)]
            wrong += bad
            row(kind, len(tried), len(tried) - len(bad), done)
        row("all", len(every_done), len(every_done) - len(wrong), every_done)
        print("\n".join(wrong))


def as_due(case: Case, done: Done) -> bool:
    states = {"refused": {"refused"}, "accepted": {"verified", "demo"}}.get(case.due, {"refused", "verified", "demo"})
    return done.said in states


def row(kind: str, tried: int, due: int, done: list[tuple[Done, Done]]) -> None:
    """The largest time and memory of each."""
    ours, theirs = zip(*done, strict=True)
    died = sum(d.said != "read" for d in theirs)
    print(
        f"{kind:26}{tried:7}{due:8}{max(d.seconds for d in ours):8.1f}{max(d.memory for d in ours):7.0f}"
        f"{max(d.seconds for d in theirs):9.1f}{max(d.memory for d in theirs):7.0f}{died:6}",
        flush=True,
    )


if __name__ == "__main__":
    main()
