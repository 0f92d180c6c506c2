"""A mapping file → a corpus folder, in three stages over a folder of shards.

read     cuts a source into shards of raw documents
clean    cleans a shard and removes its raw form
finish   drops copies across all shards, draws the samples and writes the corpus

`build` runs them on this machine, cluster.py on datatrove's executors. Finished shards are never rebuilt.

read/                  raw shards until they are cleaned, and the counts for each source
clean/SHARD/           rows as lines and as a table; their digests and signatures; dropped documents
plan                   the shards' inputs; a build with other inputs doesn't use them
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import feather

from dataset_builder.corpora import clean, dedupe
from dataset_builder.corpora.labelled import by_people, labels_summary, of_people, write_labels
from dataset_builder.corpora.normalize import fold
from dataset_builder.corpora.read import Loaded, Opened, documents, load_recipe, open_source
from dataset_builder.corpora.sample import draw, gather, member
from dataset_builder.corpora.schema import STEPS, CorpusError, CorpusManifest, Document, Dropped, SourceSummary, Turn
from dataset_builder.corpora.write import TOOLS, Finished, Piece, dropped_table, row_schema, write_folder
from helmbench_common import jsonl
from helmbench_common.files import naming, replaceable, replacing, write_whole
from helmbench_common.hashing import canonical

SHARD, SMALL_SHARD = 10_000, 2_000  # messages per shard, with and without a folder kept for restarts
DOCUMENT = np.dtype([("offset", "u8"), ("line", "u8"), ("digest", "S16"), ("grams", "u4"), ("length", "u4")])
Tell = Callable[[str, int], None]


class Work(NamedTuple):
    """What every stage needs: the mapping file, its sources (without rows) and where they are, the folder of shards,
    and messages per shard.
    """

    loaded: Loaded
    home: Path
    opened: list[Opened]
    folder: Path
    size: int

    @property
    def shards(self) -> list[tuple[int, str]]:
        """(source number, name) of each shard, in reading order; requires that every source has been read."""
        counts = [self.noted(n)["shards"] for n in range(len(self.opened))]
        return [(n, f"{n:04d}-{shard:06d}") for n, count in enumerate(counts) for shard in range(count)]

    def noted(self, source: int) -> Any:
        """The counts of stage `read` for a source: {documents, shards, sha256}."""
        return json.loads((self.folder / "read" / f"{source:04d}.json").read_bytes())


def build(
    recipe_path: Path,
    out: Path,
    jobs: int = 1,
    tell: Tell = lambda step, done: None,
    shards: Path | None = None,
    size: int | None = None,
    home: Path | None = None,
) -> CorpusManifest:
    """Builds the corpus that the mapping file describes into `out`, replacing any earlier corpus there.

    `home`: the folder with the sources' files; None for the mapping file's own. The result depends only on the mapping
    file and the sources, not on `jobs`, `shards`, `size` or the day.
    `shards`: a folder that keeps finished shards if the run is killed, so that the same call resumes; removed at the
    end. `size`: messages per shard, which determines memory use. Calls `tell(step, messages done)` periodically.

    Raises:
        CorpusError: the mapping file, a source or a row can't be read, or the samples need more rows than exist.
        FileExistsError: `out` is not a corpus, or is one with labels; or `shards` holds something else.
        ChildProcessError: a process was killed.
        OSError: a file can't be written.
    """
    home = home or recipe_path.parent
    loaded, opened = opened_sources(recipe_path, home, out)
    with replacing(out) as staging:
        work = Work(loaded, home, opened, shards or staging / "shards", size or (SHARD if shards else SMALL_SHARD))
        claim(work)
        try:
            for n in range(len(opened)):
                read(work, n)
                tell("read", sum(work.noted(m)["documents"] for m in range(n + 1)))
            _clean_all(work, jobs, tell)
            manifest = finish(work, staging, tell)
        except BrokenProcessPool:
            kept = (
                f"finished shards are in {shards}, and the same command continues" if shards else "nothing was written"
            )
            raise ChildProcessError(f"a process was killed, most likely for memory; {kept}: try fewer --jobs") from None
        except CorpusError:  # fixing the mistake changes the inputs, so these shards are useless
            shutil.rmtree(work.folder)
            raise
        shutil.rmtree(work.folder)
    return manifest


def _clean_all(work: Work, jobs: int, tell: Tell) -> None:
    total = sum(work.noted(n)["documents"] for n in range(len(work.opened)))
    shards = work.shards
    if jobs == 1 or total <= min(work.size, SMALL_SHARD):  # starting processes would take longer
        for done, (n, name) in enumerate(shards, 1):
            clean_shard(work, n, name)
            tell("clean", total * done // len(shards))
        return
    # Not fork: a forked process would wait for the threads of libraries that the caller loaded.
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(clean_shard, work, n, name) for n, name in shards]
        for done, task in enumerate(as_completed(waiting), 1):
            task.result()
            tell("clean", total * done // len(shards))


def opened_sources(recipe_path: Path, home: Path, out: Path) -> tuple[Loaded, list[Opened]]:
    """The mapping file and its sources in `home` (without rows), if they can be read and `out` may be written.

    Raises the same errors as `build`.
    """
    loaded = load_recipe(recipe_path)
    if loaded.recipe.asks and loaded.recipe.asks.kind != "category":  # the labels are of the replies
        plain: dict[str, Any] = {"labels": {}, "models": {}, "settled": None}
        sources = [s.model_copy(update={"fields": s.fields.model_copy(update=plain)}) for s in loaded.recipe.sources]
        loaded = loaded._replace(recipe=loaded.recipe.model_copy(update={"sources": sources}))
    if out.exists() and not replaceable(out, "helmbench-corpus"):
        raise FileExistsError(f"{out}: not a corpus folder; expected an empty folder or an earlier corpus")
    if (out / "judge").exists() or ((out / "labels.jsonl").exists() and not by_people(out)):
        raise FileExistsError(
            f"{out}: holds labels or judges' answers, which would be lost; build elsewhere, and move its folder judge/ "
            "there to reuse answers"
        )
    opened = [open_source(source, home) for source in loaded.recipe.sources]
    return loaded, [source._replace(rows=iter(())) for source in opened]


def claim(work: Work) -> None:
    """Creates the shards folder, or checks that an existing one has shards of the same sources.

    Raises:
        CorpusError: its shards come from other sources, another mapping file or other tools.
        FileExistsError: it holds something else.
    """
    sources = [[o.source.name, o.place, o.sha256, o.revision] for o in work.opened]
    tools = {name: version(name) for name in TOOLS}
    plan = canonical({"mapping": work.loaded.sha256, "sources": sources, "tools": tools, "size": work.size})
    path = work.folder / "plan"
    if path.is_file():
        if path.read_text(encoding="utf-8") != plan:
            raise CorpusError(
                f"{work.folder}: holds shards of another mapping file, other sources or other versions of the tools; "
                "remove it, or name another folder"
            )
        return
    if work.folder.exists() and (not work.folder.is_dir() or any(work.folder.iterdir())):
        raise FileExistsError(f"{work.folder}: not a folder of shards; expected an empty or earlier folder")
    # It temporarily holds unmasked messages: only its owner may read it, and no repository should contain it.
    work.folder.mkdir(parents=True, exist_ok=True)
    work.folder.chmod(0o700)
    write_whole(work.folder / ".gitignore", "*\n")
    write_whole(path, plan, private=True)


def read(work: Work, n: int) -> None:
    """Splits source `n` into raw shards; records their number and the source's sha256."""
    done = work.folder / "read" / f"{n:04d}.json"
    if done.exists():
        return
    opened = open_source(work.opened[n].source, work.home)
    hasher, count, shards = hashlib.sha256(), 0, 0
    for batch in clean.batches(documents(opened, work.home), work.size):
        text = jsonl.lines(document._asdict() for document in batch)
        write_whole(done.with_name(f"{n:04d}-{shards:06d}.jsonl"), text, private=True)
        if not opened.sha256:
            for document in batch:
                hasher.update(canonical(document).encode() + b"\n")
        count, shards = count + len(batch), shards + 1
    noted = {"documents": count, "shards": shards, "sha256": opened.sha256 or hasher.hexdigest()}
    write_whole(done, canonical(noted))


def clean_shard(work: Work, n: int, name: str) -> None:
    """Cleans a raw shard of source `n`, then deletes it, so that unmasked text is kept no longer than necessary."""
    raw, done = work.folder / "read" / f"{name}.jsonl", work.folder / "clean" / name
    recipe = work.loaded.recipe
    if not done.exists():
        batch = clean.clean(_raw_documents(raw), work.opened[n].source, recipe)
        rows = [clean.row(d, digest, recipe) for d, digest in zip(batch.kept, batch.digests, strict=True)]
        lines = [canonical(row).encode() + b"\n" for row in rows]
        signatures, grams = dedupe.sign(batch.folded)
        found = np.zeros(len(rows), DOCUMENT)
        found["offset"] = np.cumsum([0, *map(len, lines)])[:-1]
        found["line"] = [d.line for d in batch.kept]
        found["digest"] = batch.digests
        found["grams"] = grams
        found["length"] = [len(text) for text in batch.folded]
        licences = list({d.licence for d in batch.kept})
        posted = any(d.forum for d in batch.kept)
        summary = {"changed": batch.changed, "licences": licences, "dropped": batch.dropped, "forum": posted}
        with replacing(done) as staging:
            (staging / "rows.jsonl").write_bytes(b"".join(lines))
            if recipe.labelled:
                labels = (of_people(d, row["id"]) for d, row in zip(batch.kept, rows, strict=True))
                (staging / "labels.jsonl").write_text(jsonl.lines(labels), encoding="utf-8")
            feather.write_feather(pa.Table.from_pylist(rows, row_schema(recipe.kept)), staging / "rows.arrow")
            np.save(staging / "documents.npy", found)
            np.save(staging / "signatures.npy", signatures)
            write_whole(staging / "summary.json", canonical(summary))
    raw.unlink(missing_ok=True)


def _raw_documents(raw: Path) -> Iterator[Document]:
    for _, own in jsonl.objects(raw):
        turns = tuple(Turn(*turn) for turn in own.pop("turns"))
        kept = tuple((name, value) for name, value in own.pop("kept"))
        yield Document(**own, turns=turns, kept=kept)


class Shard(NamedTuple):
    """A cleaned shard. `start`: the position of its first row in reading order, across all shards."""

    folder: Path
    source: str
    start: int
    found: NDArray[Any]

    def rows(self, stays: NDArray[np.bool_]) -> pa.Table:
        return feather.read_table(self.folder / "rows.arrow").filter(pa.array(stays))

    def lines(self, stays: NDArray[np.bool_], name: str = "rows.jsonl") -> bytes:
        with (self.folder / name).open("rb") as lines:
            return b"".join(line for line, stay in zip(lines, stays.tolist(), strict=True) if stay)


def finish(work: Work, out: Path, tell: Tell = lambda step, done: None) -> CorpusManifest:
    """Drops copies across shards, draws the samples, and writes the corpus into the empty folder `out`.

    Raises:
        CorpusError: no rows are left, or the samples need more rows than exist.
    """
    shards, start = list[Shard](), 0
    for n, name in work.shards:
        folder = work.folder / "clean" / name
        shards.append(Shard(folder, work.opened[n].source.name, start, np.load(folder / "documents.npy")))
        start += len(shards[-1].found)
    copies = _copies(work, shards, tell)
    dropped, stays = list[pa.Table](), list[NDArray[np.bool_]]()
    counts, kept, changed = Counter[tuple[str, str]](), Counter[str](), Counter[str]()
    licences: dict[str, set[str | None]] = {o.source.name: set() for o in work.opened}
    forums = {o.source.name for o in work.opened if o.source.forum}
    for shard in shards:
        places = range(shard.start, shard.start + len(shard.found))
        stays.append(np.array([place not in copies for place in places], dtype=bool))
        summary = json.loads((shard.folder / "summary.json").read_bytes())
        gone = [Dropped(*values) for values in summary["dropped"]] + [copies[p] for p in places if p in copies]
        dropped.append(dropped_table(sorted(gone, key=lambda d: d.line)))
        counts.update((d.step, d.reason) for d in gone)
        kept[shard.source] += int(stays[-1].sum())
        changed.update(summary["changed"])
        licences[shard.source].update(summary["licences"])
        forums |= {shard.source} if summary["forum"] else set()
    summaries = [
        _summary(opened, work, n, licences[name], kept[name], name in forums)
        for n, opened in enumerate(work.opened)
        for name in [opened.source.name]
    ]
    if not kept.total():
        most = ", ".join(f"{n} {step} ({reason})" for (step, reason), n in counts.most_common(5))
        raise CorpusError(
            f"{work.loaded.path}:1: nothing is left of {sum(s.read for s in summaries)} documents: "
            f"{most or 'the sources are empty'}; see `limits`"
        )
    samples = set[str](), set[str]()
    if wanted := work.loaded.recipe.samples:
        columns = sorted({"id", "characters", *wanted.by} - {"length"})
        rows = (row for s, stay in zip(shards, stays, strict=True) for row in s.rows(stay).select(columns).to_pylist())
        samples = draw(gather((member(row, wanted) for row in rows), wanted), wanted)
    by_step = {step: {r: n for (s, r), n in sorted(counts.items()) if s == step} for step in STEPS}
    finished = Finished(
        work.loaded,
        summaries,
        {s: found for s, found in by_step.items() if found},
        dict(sorted(changed.items())),
        samples,
    )
    pieces = (Piece(shard.rows(stay), shard.lines(stay)) for shard, stay in zip(shards, stays, strict=True))
    manifest = write_folder(out, finished, pieces, dropped, lambda n: tell("written", n))
    if work.loaded.recipe.labelled:
        own = (s.lines(stay, "labels.jsonl").splitlines(keepends=True) for s, stay in zip(shards, stays, strict=True))
        write_labels(out, manifest, work.loaded.recipe, chain.from_iterable(own))
    return manifest


def _copies(work: Work, shards: list[Shard], tell: Tell) -> dict[int, Dropped]:
    """Every row that is an exact or near copy of an earlier kept row, by position."""
    limits = work.loaded.recipe.limits
    found = np.concatenate([np.empty(0, DOCUMENT), *(shard.found for shard in shards)])
    starts = np.array([shard.start for shard in shards])

    def shard_of(place: int) -> Shard:
        return shards[int(np.searchsorted(starts, place, side="right")) - 1]

    def row_id(place: int) -> str:
        # numpy strips null bytes from the end
        return clean.row_id(shard_of(place).source, bytes(found["digest"][place]).ljust(16, b"\0"))

    def text_of(n: int) -> str:
        with (shard_of(int(places[n])).folder / "rows.jsonl").open("rb") as rows:
            rows.seek(int(found["offset"][places[n]]))
            return fold("\n".join(m["content"] for m in jsonl.loads(rows.readline())["messages"]))

    copies: dict[int, Dropped] = {}
    _, firsts, which = np.unique(found["digest"], return_index=True, return_inverse=True)
    for place in np.flatnonzero(firsts[which] != np.arange(len(found))).tolist():
        at, line = shard_of(place).source, int(found["line"][place])
        copies[place] = Dropped(at, line, "exact_duplicate", "the same words", row_id(firsts[which[place]]), 1.0)
    # From short texts, drop only exact copies: one word can carry the whole meaning.
    near = found["length"] >= limits.near_min_characters
    near[list(copies)] = False
    places = np.flatnonzero(near)
    tell("near-duplicates", 0)
    with naming(work.folder), (work.folder / "signatures").open("wb") as file:  # mapped, not held in memory
        for shard in shards:
            file.write(np.load(shard.folder / "signatures.npy")[near[shard.start :][: len(shard.found)]].tobytes())
    shape = len(places), dedupe.VALUES
    signatures = (
        np.memmap(work.folder / "signatures", np.uint32, "r", shape=shape)
        if len(places)
        else np.empty(shape, np.uint32)
    )
    for n, pair in enumerate(
        dedupe.near_duplicates(signatures, found["grams"][places], text_of, limits.near_jaccard), 1
    ):
        place, original = int(places[pair.removed]), row_id(int(places[pair.kept]))
        at, line, jaccard = shard_of(place).source, int(found["line"][place]), round(pair.jaccard, 4)
        copies[place] = Dropped(at, line, "near_duplicate", "nearly the same words", original, jaccard)
        if n % 1000 == 0:
            tell("near-duplicates", n)
    return copies


def _summary(opened: Opened, work: Work, n: int, licences: set[str | None], kept: int, forum: bool) -> SourceSummary:
    source, recipe, noted = opened.source, work.loaded.recipe, work.noted(n)
    readings = {clean.read_licence(licence) for licence in licences or {source.licence}}
    if forum:
        readings.add(clean.LicenceReading(False, f"a forum: {clean.FORUM}"))
    return SourceSummary(
        name=source.name,
        place=opened.place,
        repository=source.repository or recipe.repository,
        revision=opened.revision or recipe.commit,
        date=source.date,
        sha256=noted["sha256"],
        query=hashlib.sha256(source.query.encode()).hexdigest() if source.query else None,
        files=opened.files,
        licences=sorted({clean.normal_licence(licence) or "none stated" for licence in licences or {source.licence}}),
        redistributable=all(r.redistributable for r in readings),
        why="; ".join(sorted({r.why for r in readings if not r.redistributable} or {r.why for r in readings})),
        read=noted["documents"],
        kept=kept,
    )


def summary(out: Path, manifest: CorpusManifest, seconds: float) -> str:
    """A summary in lines: counts by step, samples, the hash, and what may not be shared."""
    read = sum(s.read for s in manifest.sources)
    return "\n".join([
        f"{out}: {manifest.corpus} of {manifest.date}, {manifest.rows} of {read} documents, {seconds:.1f} s",
        *(
            f"  dropped at {step}: {n} ({reason})"
            for step, reasons in manifest.dropped.items()
            for reason, n in reasons.items()
        ),
        *(f"  {what}: {n}" for what, n in manifest.changed.items()),
        *(f"  sample {name}: {n}" for name, n in manifest.samples.items()),
        *labels_summary(out),
        f"corpus_hash {manifest.corpus_hash}",
        *(f"not redistributable: {s.name}: {s.why}" for s in manifest.sources if not s.redistributable),
    ])  # fmt: skip
