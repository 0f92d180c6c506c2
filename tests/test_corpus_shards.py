"""How the work on a corpus is cut: same bytes for any shards, processes and executors, interrupted or not."""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from helmbench.cli.app import main

from dataset_builder.corpora.build import build
from dataset_builder.corpora.cluster import Stage, stages
from dataset_builder.corpora.schema import CorpusError

PAGE = (
    "tea kettle garden window letter cousin train platform soup pencil cloud ladder button harbour violin pepper "
    "blanket candle the and of my with under slow before never green"
)
WORDS = PAGE.split()
FOREIGN = (
    "Die Katze geht jedes Mal aus dem Zimmer, bevor das Wasser warm ist.",
    "Le chat quitte la pièce chaque fois avant que l'eau ne soit chaude.",
    "El gato sale de la habitación cada vez antes de que el agua esté caliente.",
)


class Home:
    """A folder with a mapping file and three sources made from a seed; one message in four is a copy of some kind."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.made: list[str] = []
        self.mapping = folder / "mapping.yaml"
        folder.mkdir(exist_ok=True)
        forum = [{"n": n, "body": text, "topic": self.chance.choice(["tea", None])} for n, text in self.texts(260)]
        (folder / "forum.jsonl").write_text("".join(json.dumps(r) + "\n" for r in forum), encoding="utf-8")
        with (folder / "chat.csv").open("w", encoding="utf-8", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerow(["turns", "licence"])
            for n, text in self.texts(40):
                turns = [text, "I see.", *(["And then?"] * (n % 5))]
                writer.writerow([json.dumps(turns), self.chance.choice(["mit", "cc-by-nc-4.0", ""])])
        talks = [{"talk": n // 3, "who": "user", "said": text} for n, text in self.texts(60)]
        (folder / "talks.jsonl").write_text("".join(json.dumps(r) + "\n" for r in talks), encoding="utf-8")
        pick = self.chance.choice
        self.mapping.write_text(
            "name: kitchen\ndate: 2026-11-01\nsources:\n"
            "  - {name: forum, path: forum.jsonl, licence: cc-by-4.0, fields: {text: body, id: n, keep: [topic]}}\n"
            "  - {name: chat, path: chat.csv, language: en, fields: {turns: turns, licence: licence}}\n"
            "  - {name: talks, path: talks.jsonl, licence: mit, fields: {text: said, conversation: talk, role: who}}\n"
            f"limits: {{near_jaccard: {pick([0.6, 0.8, 1])}, near_min_characters: {pick([0, 40])}, "
            f"min_letters: {pick([0, 5])}, long_conversations: {pick(['cut', 'drop'])}, max_messages: 3, "
            f"languages: {pick(['[]', '[en]'])}}}\n"
            f"samples: {{validation: 9, test: {pick([0, 20])}, seed: 1, "
            f"by: {pick(['[source]', '[length, topic]', '[language, licence, source]'])}}}\n",
            encoding="utf-8",
        )

    def texts(self, size: int) -> list[tuple[int, str]]:
        """New texts, exact copies, chains in which each text is near the one before, and one large family."""
        made, large = [self.own()], self.own(60)
        while len(made) < size:
            kind = self.chance.random()
            if kind < 0.5:
                made.append(self.own())
            elif kind < 0.6:
                made.append(self.chance.choice(self.made or made).upper() + "!")
            elif kind < 0.75:
                made.append(self.edited(self.chance.choice([made[-1], self.chance.choice(self.made + made)])))
            elif size > 200 and kind < 0.95:
                made.append(self.edited(large))
            else:
                made.append(self.chance.choice(["", "hm", *FOREIGN, "Write to jo@example.org. " + self.own()]))
        self.made += made
        return list(enumerate(made))

    def own(self, most: int = 40) -> str:
        return " ".join(self.chance.choices(WORDS, k=self.chance.randint(most // 6, most)))

    def edited(self, text: str) -> str:
        words = text.split() or ["tea"]
        for _ in range(self.chance.randint(1, 3)):
            words[self.chance.randrange(len(words))] = self.chance.choice(WORDS)
        return " ".join(words)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home", 5)


def run_here(these: list[Stage], chance: random.Random) -> None:
    """Every task of every stage in this process; the tasks of a stage in any order."""
    for stage in these:
        for rank in chance.sample(range(stage.tasks), stage.tasks):
            stage.step.run(None, rank, stage.tasks)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_shards_of_any_size_give_the_same_corpus(tmp_path: Path) -> None:
    """Every byte, with exact and near copies within and across sources, which the corpora of three seeds all have."""
    found: Counter[tuple[str, bool]] = Counter()
    for seed in range(3):
        home, folder = Home(tmp_path / f"home-{seed}", seed), tmp_path / str(seed)
        build(home.mapping, folder / "whole")
        these = stages(home.mapping, folder / "cut", folder / "shards", home.chance.choice([1, 5, 40]), 3 + 20 * seed)
        run_here(these, home.chance)
        assert contents(folder / "cut") == contents(folder / "whole"), seed
        drops: list[dict[str, Any]] = pq.read_table(folder / "whole" / "dropped.parquet").to_pylist()
        copies = [d for d in drops if d["duplicate_of"]]
        found.update((d["step"], d["duplicate_of"].startswith(d["source"])) for d in copies)
    assert len(found) == 4, found
    assert min(found.values()) > 1, found


def test_the_command_and_processes_give_the_same_corpus(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With and without a folder for shards, and by two processes; nothing else is left."""
    outputs = []
    for name, options in (("one", []), ("kept", ["--shards", str(tmp_path / "shards")])):
        assert main(["corpus", str(home.mapping), "--out", str(tmp_path / name), "--jobs", "1", *options]) == 0
        printed = capsys.readouterr()
        assert printed.err == ""
        outputs.append(printed.out.splitlines()[1:])
    assert outputs[0] == outputs[1]
    build(home.mapping, tmp_path / "two", jobs=2, size=100)
    assert contents(tmp_path / "one") == contents(tmp_path / "kept") == contents(tmp_path / "two")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["home", "kept", "one", "two"]


KILLED = """
import os, signal, sys
from pathlib import Path
from dataset_builder.corpora import build, clean
whole = clean.clean
def dying(documents, *rest):
    read = list(documents)
    if read[0].source == "chat":
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(read, *rest)
clean.clean = dying
if __name__ == "__main__":
    mapping, out, shards = map(Path, sys.argv[1:])
    try:
        build.build(mapping, out, 2, shards=shards, size=20)
    except ChildProcessError as error:
        print(error)
        sys.exit(9)
"""


def test_a_killed_run_continues(home: Home, tmp_path: Path) -> None:
    """A worker is killed: the error says so, and the same command makes no finished shard again."""
    (tmp_path / "killed.py").write_text(KILLED, encoding="utf-8")
    shards = tmp_path / "shards"
    arguments: list[str | Path] = [sys.executable, tmp_path / "killed.py", home.mapping, tmp_path / "out", shards]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert done.returncode == 9, done.stderr
    assert done.stdout == (
        f"a process was killed, most likely for memory; finished shards are in {shards}, and the same command "
        "continues: try fewer --jobs\n"
    )
    assert not (tmp_path / "out").exists()
    before = finished(shards)
    these = stages(home.mapping, tmp_path / "out", shards, 3, 20)
    run_here(these[:2], home.chance)
    assert before
    assert {path: stamp for path, stamp in finished(shards).items() if path in before} == before
    build(home.mapping, tmp_path / "out", shards=shards, size=20)
    build(home.mapping, tmp_path / "whole")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def finished(shards: Path) -> dict[Path, tuple[int, int]]:
    """Every file of every finished shard, with what changes when it is made again."""
    files = (shards / "clean").glob("[!.]*/*")
    return {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in files}


def test_shards_are_private_and_of_one_mapping(home: Home, tmp_path: Path) -> None:
    """Only the user may read them, and no raw text is left after cleaning. A folder of other sources, or of the user's
    own, is refused and stays as it is.
    """
    shards = tmp_path / "shards"
    these = stages(home.mapping, tmp_path / "out", shards, 2, 20)
    run_here(these[:1], home.chance)
    assert any(b"jo@example.org" in content for content in contents(shards).values())
    assert shards.stat().st_mode & 0o077 == 0
    assert (shards / ".gitignore").read_text(encoding="utf-8") == "*\n"
    run_here(these[1:2], home.chance)
    before = contents(shards)
    assert not any(b"jo@example.org" in content for content in before.values())
    with (home.folder / "talks.jsonl").open("a", encoding="utf-8") as handle:
        handle.write('{"talk": 99, "who": "user", "said": "One more cup of tea."}\n')
    with pytest.raises(CorpusError, match=r"shards: holds shards of another mapping file, other sources"):
        build(home.mapping, tmp_path / "out", shards=shards, size=20)
    assert contents(shards) == before
    with pytest.raises(FileExistsError, match=r"home: not a folder of shards; expected an empty or earlier folder"):
        build(home.mapping, tmp_path / "out", shards=home.folder)


def test_errors_leave_no_shards(home: Home, tmp_path: Path) -> None:
    """Once the mistake is fixed, the shards would be those of other sources."""
    mapping = home.mapping.read_text(encoding="utf-8")
    for old, new, error in (
        ("min_letters: ", "min_letters: 9000", r"mapping.yaml:1: nothing is left of \d+ documents: \d+ length"),
        ("validation: 9", "validation: 9000", r"the corpus has \d+ rows, the samples ask for 9000 \+"),
        (
            "{text: said, conversation: talk, role: who}",
            "{text: said, id: nobody}",
            r"talks.jsonl:1: the row has no field 'nobody'",
        ),
    ):
        home.mapping.write_text(mapping.replace(old, new), encoding="utf-8")
        for shards in (None, tmp_path / "shards"):
            with pytest.raises(CorpusError, match=error):
                build(home.mapping, tmp_path / "out", shards=shards)
            assert [p.name for p in tmp_path.iterdir()] == ["home"]


EXECUTED = """
import sys
from pathlib import Path
from dataset_builder.corpora.cluster import stages
from datatrove.executor.local import LocalPipelineExecutor
if __name__ == "__main__":
    for home in map(Path, sys.argv[1:]):
        for stage in stages(home / "mapping.yaml", home / "out", home / "shards", 2, 100):
            LocalPipelineExecutor([stage.step], tasks=stage.tasks, workers=1, logging_dir=stage.logs).run()
"""


def test_datatroves_executor_builds_it_and_logs_nobodys_words(home: Home, tmp_path: Path) -> None:
    """Its logger would print the values of variables with an error. The bad row of a second corpus is named by its
    place only.
    """
    (tmp_path / "executed.py").write_text(EXECUTED, encoding="utf-8")
    bad = Home(tmp_path / "bad", 5).folder
    with (bad / "forum.jsonl").open("a", encoding="utf-8") as handle:
        handle.write('{"n": {}, "body": "nobody but me should read this", "topic": null}\n')
    arguments: list[str | Path] = [sys.executable, tmp_path / "executed.py", home.folder, bad]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert done.returncode
    build(home.mapping, tmp_path / "whole")
    assert contents(home.folder / "out") == contents(tmp_path / "whole")
    logs = [log.read_text(encoding="utf-8") for log in (bad / "shards" / "logs").rglob("*.log")]
    assert any("Traceback" in log and "forum.jsonl:261: field 'n' is '{}'; expected text" in log for log in logs)
    assert not any("nobody but me" in text for text in (*logs, done.stdout, done.stderr))
