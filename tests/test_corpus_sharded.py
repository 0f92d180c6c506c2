"""The large form of the corpus step: the small form's corpus, byte for byte, however it is cut, killed and taken up."""

from __future__ import annotations

import csv
import json
import multiprocessing
import random
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from dataset_builder.corpora import build as small
from dataset_builder.corpora.schema import CorpusError
from dataset_builder.corpora.sharded import copies, local
from dataset_builder.corpora.sharded.folder import Messages, Work
from dataset_builder.corpora.sharded.steps import Stage, Step, stages

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
STAGES = ("read", "clean", "exact", "meetings", "families", "near", "keep")


class Home:
    """A folder with a mapping file and three sources made from a seed; a message in four is a copy of some kind."""

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
        self.mapping.write_text(self.mapping_file(), encoding="utf-8")

    def texts(self, size: int) -> list[tuple[int, str]]:
        """Own words, exact copies, chains of which each link is near the one before it, and one large family."""
        made, large = [self.own()], self.own(60)
        while len(made) < size:
            kind = self.chance.random()
            if kind < 0.5:
                made.append(self.own())
            elif kind < 0.6:
                made.append(self.chance.choice(self.made or made).upper() + "!")
            elif kind < 0.75:
                made.append(
                    self.edited(made[-1] if self.chance.random() < 0.7 else self.chance.choice(self.made + made))
                )
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

    def mapping_file(self) -> str:
        pick = self.chance.choice
        return (
            "name: kitchen\ndate: 2026-11-01\nsources:\n"
            "  - {name: forum, path: forum.jsonl, licence: cc-by-4.0, fields: {text: body, id: n, keep: [topic]}}\n"
            "  - {name: chat, path: chat.csv, language: en, fields: {turns: turns, licence: licence}}\n"
            "  - {name: talks, path: talks.jsonl, licence: mit, fields: {text: said, conversation: talk, role: who}}\n"
            f"limits: {{near_jaccard: {pick([0.5, 0.6, 0.8, 0.8, 0.9, 1])}, near_min_characters: {pick([0, 40, 120])}, "
            f"min_letters: {pick([0, 5, 60])}, long_conversations: {pick(['cut', 'drop'])}, max_messages: 3, "
            f"languages: {pick(['[]', '[en]'])}}}\n"
            f"samples: {{validation: 9, test: {pick([0, 20])}, seed: {pick([1, 2])}, "
            f"by: {pick(['[source]', '[length, topic]', '[language, licence, source]'])}, "
            f"allocation: {pick(['equal', 'proportional'])}}}\n"
        )


def run_here(these: list[Stage], chance: random.Random) -> None:
    """Every task of every stage in this process, a stage's in any order."""
    for stage in these:
        ranks = list(range(stage.tasks))
        for rank in chance.sample(ranks, len(ranks)):
            stage.step.run(None, rank, stage.tasks)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def work_of(these: list[Stage]) -> Work:
    work: Work = these[0].step.work
    return work


@pytest.mark.parametrize("seed", range(12))
def test_the_corpus_is_the_small_forms(seed: int, tmp_path: Path) -> None:
    """Rows, samples, what was dropped and the manifest, each byte, for shards of any size and any number of tasks."""
    home = Home(tmp_path / "home", seed)
    small.build(home.mapping, tmp_path / "small")
    size, tasks = home.chance.choice([3, 7, 50, 1000]), home.chance.choice([1, 2, 5, 40])
    run_here(stages(home.mapping, tmp_path / "large", tmp_path / "shards", tasks, size), home.chance)
    assert contents(tmp_path / "large") == contents(tmp_path / "small")


def test_the_made_corpora_hold_what_is_hard(tmp_path: Path) -> None:
    """Four seeds: exact and near copies of texts in other sources, families of which several stay, families of which
    not every pair was looked at, and more than one range of hashes; else the test above had nothing to get wrong.
    """
    found: Counter[str] = Counter()
    for seed in range(4):
        home = Home(tmp_path / str(seed), seed)
        these = stages(home.mapping, tmp_path / "out", tmp_path / f"shards-{seed}", 1, 3)
        run_here(these[:4], home.chance)
        work = work_of(these)
        copies.families(work, 10**6)  # one to a pack
        packs = {path.stem: set(np.load(path).tolist()) for path in (work.folder / "families").iterdir()}
        copies.near(work, list(packs))
        removed = set(copies.near_copies(work)["removed"].tolist())
        messages = Messages(work)
        found["ranges"] += len(copies.digest_ranges(messages)) > 1
        found["several stay"] += sum(len(family - removed) > 1 and bool(family & removed) for family in packs.values())
        found["large"] += sum(len(family) > copies.CLOSE for family in packs.values())
        exact = {(int(n), int(first)) for n, first in copies.copies(work).T}
        near = {(int(n), int(kept)) for n, kept, _ in copies.near_copies(work)}
        for name, pairs in (("exact", exact), ("near", near)):
            found[name] += len(pairs)
            found[f"{name}, elsewhere"] += sum(source(messages, a) != source(messages, b) for a, b in pairs)
    assert found["ranges"] == 4
    assert min(found["several stay"], found["large"]) > 1
    assert min(found["exact"], found["near"]) > 50
    assert min(found["exact, elsewhere"], found["near, elsewhere"]) > 1


def source(messages: Messages, place: int) -> str:
    return messages.id(place).split("-")[0]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home", 5)


def test_processes_of_its_own_build_it_too(home: Home, tmp_path: Path) -> None:
    """The command, with two processes: the small form's bytes and words, and no shard is left."""
    told = [
        subprocess.run(
            [sys.executable, "-m", "helmbench.cli", "corpus", str(home.mapping), *options],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        for options in (["--out", "small", "--jobs", "1"], ["--out", "large", "--shards", "shards", "--jobs", "2"])
    ]
    assert contents(tmp_path / "large") == contents(tmp_path / "small")
    assert told[1].stdout.splitlines()[1:] == told[0].stdout.splitlines()[1:]
    assert [run.stderr for run in told] == ["", ""]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["home", "large", "small"]


KILLED = """
import os, signal, sys
from pathlib import Path
from dataset_builder.corpora.sharded import local, steps
mapping, out, shards, stage = sys.argv[1:]
def dying(step):
    run = step.run
    def run_and_die(self, data=None, rank=0, world_size=1):
        if rank == world_size // 2 or self.name in ("read", "families"):
            if rank % 2:
                run(self, data, rank, world_size)  # its parts are there, and nobody knows
            os.kill(os.getpid(), signal.SIGKILL)
        run(self, data, rank, world_size)
    return run_and_die
for step in (steps.Step, steps.Families):
    whole, deadly = step.run, dying(step)
    step.run = lambda self, *a, whole=whole, deadly=deadly: (deadly if self.name == stage else whole)(self, *a)
if __name__ == "__main__":
    try:
        local.build(Path(mapping), Path(out), Path(shards), 2, size=20)
    except ChildProcessError as error:
        print(error)
        sys.exit(9)
"""


@pytest.mark.parametrize("stage", ["read", "clean", "meetings", "near"])
def test_a_killed_process_is_told_and_what_was_finished_is_not_made_again(
    stage: str, home: Home, tmp_path: Path
) -> None:
    """A worker is killed at this stage. Then the run goes on with other numbers of tasks, touches no finished part, and
    the corpus is the small form's.
    """
    (tmp_path / "killed.py").write_text(KILLED, encoding="utf-8")
    arguments = [str(home.mapping), str(tmp_path / "out"), str(tmp_path / "shards"), stage]
    done = subprocess.run(
        [sys.executable, str(tmp_path / "killed.py"), *arguments], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 9, done.stderr
    assert done.stdout == (
        f"a process was killed, most likely for memory; what was finished stays in {tmp_path / 'shards'}, and the same "
        "command goes on from there: try fewer --jobs\n"
    )
    assert not (tmp_path / "out").exists()
    before = finished_parts(tmp_path / "shards")
    these = stages(home.mapping, tmp_path / "out", tmp_path / "shards", 3, 20)
    run_here(these[:-1], home.chance)
    after = finished_parts(tmp_path / "shards")
    assert {path: stamp for path, stamp in after.items() if path in before} == before
    assert {path.split("/")[0] for path in before} >= set(STAGES[1 : STAGES.index(stage)]) - {"families"}
    run_here(these[-1:], home.chance)
    small.build(home.mapping, tmp_path / "small")
    assert contents(tmp_path / "out") == contents(tmp_path / "small")


def finished_parts(shards: Path) -> dict[str, tuple[int, int]]:
    """Every whole file of every part, with what changes when it is made again."""
    parts = [p for name in STAGES[1:] for p in (shards / name).rglob("*") if p.is_file()]
    return {
        str(p.relative_to(shards)): (p.stat().st_ino, p.stat().st_mtime_ns)
        for p in parts
        if not any(part.startswith(".") for part in p.relative_to(shards).parts)
    }


def test_shards_of_something_else_are_refused(home: Home, tmp_path: Path) -> None:
    """Another mapping file, an edited source, a folder of the user's own: nothing of it is touched."""
    shards = tmp_path / "shards"
    run_here(stages(home.mapping, tmp_path / "out", shards, 2, 20)[:2], home.chance)
    before = contents(shards)
    with (home.folder / "talks.jsonl").open("a", encoding="utf-8") as handle:
        handle.write('{"talk": 99, "who": "user", "said": "One more cup of tea."}\n')
    with pytest.raises(CorpusError, match=r"shards: holds shards of another mapping file, other sources"):
        local.build(home.mapping, tmp_path / "out", shards, size=20)
    assert contents(shards) == before
    with pytest.raises(FileExistsError, match=r"home: exists and holds no shards; expected an empty or earlier folder"):
        local.build(home.mapping, tmp_path / "out", home.folder)


@pytest.mark.parametrize("slip", ["row", "nothing", "samples"])
def test_slips_are_told_as_by_the_small_form(slip: str, home: Home, tmp_path: Path) -> None:
    """The same words, no corpus, and no shards, which would be those of other sources once it is mended."""
    mapping = home.mapping.read_text(encoding="utf-8")
    if slip == "row":
        for name, row in (("forum", "{"), ("talks", '{"talk": 99, "who": "nobody", "said": "Tea?"}')):
            with (home.folder / f"{name}.jsonl").open("a", encoding="utf-8") as handle:
                handle.write(row + "\n")
    elif slip == "nothing":
        home.mapping.write_text(mapping.replace("min_letters: ", "min_letters: 9000"), encoding="utf-8")
    else:
        home.mapping.write_text(mapping.replace("validation: 9", "validation: 9000"), encoding="utf-8")
    with pytest.raises(CorpusError) as told:
        small.build(home.mapping, tmp_path / "small")
    with pytest.raises(CorpusError) as told_by_shards:
        local.build(home.mapping, tmp_path / "large", tmp_path / "shards", 2, size=50)
    assert told_by_shards.value.lines == told.value.lines
    assert [p.name for p in tmp_path.iterdir()] == ["home"]


def test_the_extra_is_named_where_it_is_missing(home: Home, tmp_path: Path) -> None:
    """Without datatrove the command says what to install, exits 2, and writes nothing."""
    program = (
        "import sys; sys.modules['datatrove'] = None; from helmbench.cli.app import main; sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["corpus", str(home.mapping), "--out", "out", "--shards", "shards"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "needs datatrove; pip install '.[datatrove]'" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["home"]


def test_unmasked_words_go_when_their_shard_is_clean(home: Home, tmp_path: Path) -> None:
    """The folder is the user's alone; after cleaning no address is in any file of it."""
    these = stages(home.mapping, tmp_path / "out", tmp_path / "shards", 2, 20)
    run_here(these[:1], home.chance)
    assert any(b"jo@example.org" in content for content in contents(tmp_path / "shards").values())
    assert (tmp_path / "shards").stat().st_mode & 0o077 == 0
    assert (tmp_path / "shards" / ".gitignore").read_text(encoding="utf-8") == "*\n"
    run_here(these[1:-1], home.chance)
    assert not any(b"jo@example.org" in content for content in contents(tmp_path / "shards").values())


def test_logs_hold_nobodys_words(home: Home, tmp_path: Path) -> None:
    """datatrove's logger would print the values of variables beside an error's lines; the row that is wrong is told by
    its place.
    """
    with (home.folder / "forum.jsonl").open("a", encoding="utf-8") as handle:
        handle.write('{"n": {}, "body": "nobody but me should read this", "topic": null}\n')
    stage = stages(home.mapping, tmp_path / "out", tmp_path / "shards", 2, 1000)[0]
    assert isinstance(stage.step, Step)
    with (
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), local._silence) as pool,
        pytest.raises(CorpusError, match=r"forum.jsonl:261: field 'n' is '\{\}'; expected text"),
    ):
        local._run(stage, pool, stage.step.work, lambda step, done: None)
    logs = [log.read_text(encoding="utf-8") for log in (tmp_path / "shards" / "logs").rglob("*.log")]
    assert any("Traceback" in log and "forum.jsonl:261" in log for log in logs)
    assert not any("nobody but me" in log for log in logs)


def test_a_family_that_meets_in_large_groups_only_is_one(tmp_path: Path) -> None:
    """A text posted 150 times, each time with another word changed: no pair of a group so large is looked at."""
    home = Home(tmp_path / "home", 2)
    words = home.own(300).split() * 2
    posts = [" ".join([*words[:n], f"other{n}", *words[n + 1 :]]) for n in range(150)]
    made = [{"n": n, "body": text, "topic": None} for n, text in enumerate(posts)]
    (home.folder / "forum.jsonl").write_text("".join(json.dumps(r) + "\n" for r in made), encoding="utf-8")
    limits = "limits: {near_jaccard: 0.8}\n"
    mapping = "".join(limits if x.startswith("limits") else x for x in home.mapping_file().splitlines(True))
    home.mapping.write_text(mapping, encoding="utf-8")
    manifest = small.build(home.mapping, tmp_path / "small")
    assert manifest.sources[0].kept == 1
    run_here(stages(home.mapping, tmp_path / "large", tmp_path / "shards", 10, 7), home.chance)
    assert contents(tmp_path / "large") == contents(tmp_path / "small")


def test_a_batch_across_a_shards_end_is_the_same(tmp_path: Path) -> None:
    """A source of more than one batch, in shards of one and a half: rows and groups of the parquet are the same."""
    home = Home(tmp_path / "home", 1)
    made: list[dict[str, Any]] = [{"n": n, "body": f"{text} {n}", "topic": None} for n, text in home.texts(4100)]
    (home.folder / "forum.jsonl").write_text("".join(json.dumps(r) + "\n" for r in made), encoding="utf-8")
    small.build(home.mapping, tmp_path / "small")
    run_here(stages(home.mapping, tmp_path / "large", tmp_path / "shards", 2, 3000), home.chance)
    assert contents(tmp_path / "large") == contents(tmp_path / "small")
    assert pq.read_table(tmp_path / "large" / "data" / "corpus.parquet").num_rows > 1000
