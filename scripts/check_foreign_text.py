"""Checks that no sentence of a published set is in the repository or in a wheel.
Usage: `python scripts/check_foreign_text.py [--sets DIR] [WHEEL ...]`.

It compares hashes of sentences and shows only files and counts. A sentence that several texts of the sets share is a
stock phrase ("You don't have to go through this alone") and isn't counted. Sets that aren't fetched are skipped.
"""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from harness import run

from dataset_builder.release import open_release
from judge.agreement.published.sets import SETS, cache, load_set, read_set
from judge.replies.schema import RunError

WORDS = 10  # of a sentence that hardly stands in two places by chance
# What models say word for word; a set that has one of these once would make ours look copied.
STOCK = """
Is there something else I can help you with today?
I'm really sorry that you're feeling this way, but I'm unable to provide the help that you need.
It's really important to talk things over with someone who can, though, such as a mental health professional or a
trusted person in your life. It's important to talk to someone who can help, such as a mental health professional or a
trusted person in your life.
"""
SENTENCE = re.compile(r"[^.!?\n]+")


def sentences(text: str) -> Iterator[int]:
    for found in SENTENCE.findall(text):
        words = re.findall(r"[\w'’]+", found.casefold())
        if len(words) >= WORDS:
            yield hash(" ".join(words))


def main(
    wheels: Annotated[list[Path] | None, typer.Argument(help="Wheels to check too.")] = None,
    sets: Annotated[Path | None, typer.Option(help="Folder with a checkout of each set's repository.")] = None,
) -> None:
    """Check that no sentence of a published set is in the repository or in WHEELS."""
    release, texts_with, skipped = open_release(None), Counter[int](), list[str]()
    distinct = set[str]()
    for name in SETS:
        folder = cache() / name if sets is None else sets / str(load_set(name).recipe.repository).rpartition("/")[2]
        try:
            items = read_set(name, folder, "all", release).items
        except RunError:
            skipped.append(name)
        else:
            distinct.update(text for item in items for text in (*item.said, item.reply))
    for text in distinct:
        texts_with.update(set(sentences(text)))
    foreign = {sentence for sentence, n in texts_with.items() if n == 1} - {*sentences(STOCK.replace("\n", " "))}
    texts = {}
    for path in subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.splitlines():
        texts[path] = Path(path).read_text(encoding="utf-8", errors="ignore")
    for wheel in wheels or ():
        with zipfile.ZipFile(wheel) as opened:
            texts |= {f"{wheel}: {n}": opened.read(n).decode("utf-8", "ignore") for n in opened.namelist()}
    found = {path: n for path, text in texts.items() if (n := sum(own in foreign for own in sentences(text)))}
    for path, n in found.items():
        print(f"{path}: {n} sentences of a published set")
    print(f"{len(foreign):,} sentences of {len(SETS) - len(skipped)} sets, {len(texts):,} files, {len(found)} with one")
    print(f"not fetched: {', '.join(skipped) or 'none'}")
    if found:
        raise RunError("expected none")


if __name__ == "__main__":
    run(main)
