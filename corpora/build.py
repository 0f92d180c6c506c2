"""A mapping file → a corpus folder, in two passes: the sources are read into a spill file, then what stays is written.

In memory stand, per message, a digest and an id; texts and signatures (512 bytes each, mapped) are on disk. Nothing is
in `out` before everything is: a killed run leaves the earlier corpus whole.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from corpora import dedupe
from corpora.clean import Cleaned, clean_all
from corpora.licences import Reading, normal, read_licence
from corpora.normalise import fold
from corpora.read import Opened, documents, open_source
from corpora.recipe import Loaded, load_recipe
from corpora.sample import Member, draw, length_band
from corpora.schema import CorpusError, CorpusManifest, Document, Dropped, Recipe, SourceSummary
from corpora.write import Finished, is_corpus, write_folder
from dataset_builder import jsonl
from dataset_builder.files import replacing
from dataset_builder.release import canonical

licence_reading: Callable[[str | None], Reading] = cache(read_licence)


@dataclass
class Spill:
    """What the first pass leaves: rows on disk, found by place, and what the second needs to know of each.

    `lengths` are the folded texts', in characters; `digests` map what makes an exact copy to the place of the first.
    """

    folder: Path
    offsets: array[int] = field(default_factory=lambda: array("Q", [0]))
    lengths: array[int] = field(default_factory=lambda: array("L"))
    sizes: array[int] = field(default_factory=lambda: array("L"))
    ids: list[str] = field(default_factory=list[str])
    sources: list[str] = field(default_factory=list[str])
    lines: array[int] = field(default_factory=lambda: array("Q"))
    digests: dict[bytes, int] = field(default_factory=dict[bytes, int])
    dropped: list[Dropped] = field(default_factory=list[Dropped])
    changed: Counter[str] = field(default_factory=Counter[str])
    read: Counter[str] = field(default_factory=Counter[str])
    licences: dict[str, set[str | None]] = field(default_factory=dict[str, set[str | None]])

    @property
    def signatures(self) -> dedupe.Signatures:
        shape = (len(self.ids), dedupe.VALUES)
        return (
            np.memmap(self.folder / "signatures", np.uint32, "r", shape=shape)
            if self.ids
            else np.empty(shape, np.uint32)
        )

    def rows(self) -> Iterator[dict[str, Any]]:
        return (row for _, row in jsonl.objects(self.folder / "rows"))


def build(
    recipe_path: Path, out: Path, jobs: int = 1, tell: Callable[[str, int], None] = lambda step, done: None
) -> CorpusManifest:
    """Builds the corpus that the mapping file describes into `out`; an earlier corpus there is replaced whole.

    `tell(step, messages done)` is called now and then. The result depends on the mapping file and the sources only: not
    on `jobs`, the day, or the order in which samples are drawn.

    Raises:
        CorpusError: the mapping file, a source or a row can't be read, or the samples ask for more than there is.
        FileExistsError: `out` holds something that is no corpus, or a corpus that was labelled.
        ChildProcessError: a process was killed.
        OSError: the disk refuses.
    """
    loaded = load_recipe(recipe_path)
    if out.exists() and not is_corpus(out):
        raise FileExistsError(
            f"{out}: exists and is no corpus folder; expected an empty or earlier one, so nothing was written"
        )
    if any((out / name).exists() for name in ("labels.jsonl", "judge")):
        raise FileExistsError(
            f"{out}: holds labels or judges' answers, which would be lost; build elsewhere, and move its "
            "folder judge/ there to reuse answers"
        )
    opened = [open_source(source, recipe_path.parent) for source in loaded.recipe.sources]
    with replacing(out) as staging:
        spill = Spill(staging)
        hashes = _first_pass(loaded, opened, spill, jobs, tell)
        removed = _near(spill, loaded.recipe, tell)
        manifest = _second_pass(loaded, opened, spill, removed, hashes, tell)
        (staging / "rows").unlink()
        (staging / "signatures").unlink(missing_ok=True)
    return manifest


def summary(out: Path, manifest: CorpusManifest, seconds: float) -> str:
    """What was built, in lines: counts by step, samples, the hash, and what mustn't be passed on."""
    read = sum(s.read for s in manifest.sources)
    lines = [f"{out}: {manifest.corpus} of {manifest.date}, {manifest.rows} of {read} documents, {seconds:.1f} s"]
    lines += [
        f"  dropped at {step}: {n} ({reason})"
        for step, reasons in manifest.dropped.items()
        for reason, n in reasons.items()
    ]
    lines += [f"  {what}: {n}" for what, n in manifest.changed.items()]
    lines += [f"  sample {name}: {n}" for name, n in manifest.samples.items()]
    lines.append(f"corpus_hash {manifest.corpus_hash}")
    lines += [f"not redistributable: {s.name}: {s.why}" for s in manifest.sources if not s.redistributable]
    return "\n".join(lines)


def _first_pass(
    loaded: Loaded, opened: list[Opened], spill: Spill, jobs: int, tell: Callable[[str, int], None]
) -> dict[str, str]:
    """Reads and cleans everything, drops exact copies, fills the spill; returns the sha256 of every source."""
    hashers = {o.source.name: hashlib.sha256() for o in opened}

    def stream() -> Iterator[Document]:
        for source in opened:
            for document in documents(source, loaded.path.parent):
                spill.read[document.source] += 1
                if not source.sha256:
                    hashers[document.source].update(canonical(document).encode() + b"\n")
                yield document

    countries = {o.source.name: o.source.country for o in opened}
    with (spill.folder / "rows").open("wb") as rows, (spill.folder / "signatures").open("wb") as signatures:
        for batch in clean_all(stream(), countries, loaded.recipe.limits, jobs):
            new = _exact(batch, spill)
            for n in new:
                row = _row(batch.kept[n], batch.digests[n], loaded.recipe)
                spill.offsets.append(spill.offsets[-1] + rows.write(canonical(row).encode() + b"\n"))
            signatures.write(batch.signatures[new].tobytes())
            spill.sizes.extend(batch.sizes[new].tolist())
            spill.lengths.extend(len(batch.folded[n]) for n in new)
            spill.dropped += batch.dropped
            spill.changed.update(batch.changed)
            tell("read", sum(spill.read.values()))
    return {o.source.name: o.sha256 or hashers[o.source.name].hexdigest() for o in opened}


def _exact(batch: Cleaned, spill: Spill) -> list[int]:
    """Which of a batch are no copy of an earlier document; registers these, and drops the others."""
    new: list[int] = []
    for n, (document, digest) in enumerate(zip(batch.kept, batch.digests, strict=True)):
        spill.licences.setdefault(document.source, set()).add(document.licence)
        if (first := spill.digests.setdefault(digest, len(spill.ids))) < len(spill.ids):
            spill.dropped.append(
                Dropped(document.source, document.line, "exact_duplicate", "the same words", spill.ids[first], 1.0)
            )
            continue
        new.append(n)
        spill.ids.append(f"{document.source}-{digest.hex()[:16]}")
        spill.sources.append(document.source)
        spill.lines.append(document.line)
    return new


def _row(document: Document, digest: bytes, recipe: Recipe) -> dict[str, Any]:
    kept = dict(document.kept)
    return {
        "id": f"{document.source}-{digest.hex()[:16]}",
        "source": document.source,
        "source_id": document.source_id,
        "language": document.language,
        "licence": normal(document.licence) or None,
        "redistributable": licence_reading(document.licence).redistributable,
        "characters": len(document.said),
        "text": document.turns[-1].text,
        "messages": [{"role": t.role, "content": t.text} for t in document.turns],
        **{name: kept.get(name) for name in recipe.kept},
    }


def _near(spill: Spill, recipe: Recipe, tell: Callable[[str, int], None]) -> set[int]:
    """The places that near-duplicates leave. Short texts are spared: one word may be the whole meaning there."""
    lengths = np.array(spill.lengths, dtype=np.uint64)
    places = np.flatnonzero(lengths >= recipe.limits.near_min_characters)
    tell("near-duplicates", 0)
    with (spill.folder / "rows").open("rb") as handle:

        def text_of(n: int) -> str:
            handle.seek(spill.offsets[int(places[n])])
            return fold("\n".join(m["content"] for m in jsonl.loads(handle.readline())["messages"]))

        removed: set[int] = set()
        signatures, sizes = spill.signatures, np.array(spill.sizes, dtype=np.uint32)
        if len(places) < len(lengths):
            signatures, sizes = signatures[places], sizes[places]
        for pair in dedupe.near_duplicates(signatures, sizes, text_of, recipe.limits.near_jaccard):
            place, kept = int(places[pair.removed]), int(places[pair.kept])
            removed.add(place)
            near = Dropped(
                spill.sources[place],
                spill.lines[place],
                "near_duplicate",
                "nearly the same words",
                spill.ids[kept],
                round(pair.jaccard, 4),
            )
            spill.dropped.append(near)
            if len(removed) % 1000 == 0:
                tell("near-duplicates", len(removed))
    return removed


def _second_pass(
    loaded: Loaded,
    opened: list[Opened],
    spill: Spill,
    removed: set[int],
    hashes: dict[str, str],
    tell: Callable[[str, int], None],
) -> CorpusManifest:
    """Draws the samples, writes the folder and its manifest."""
    recipe = loaded.recipe
    kept = Counter(source for place, source in enumerate(spill.sources) if place not in removed)
    if not kept:
        raise CorpusError(
            f"{loaded.path}:1: nothing is left of {sum(spill.read.values())} documents: "
            f"{_reasons(spill.dropped)}; see `limits`"
        )
    samples: tuple[set[str], set[str]] = (set(), set())
    if recipe.samples:
        by = recipe.samples.by
        rows = (row for place, row in enumerate(spill.rows()) if place not in removed)
        members = [
            Member(row["id"], tuple(length_band(row["characters"]) if b == "length" else str(row[b]) for b in by))
            for row in rows
        ]
        samples = draw(members, recipe.samples)
    dropped: dict[str, Counter[str]] = {}
    for drop in spill.dropped:
        dropped.setdefault(drop.step, Counter())[drop.reason] += 1
    summaries = [_summary(o, hashes[o.source.name], spill, kept[o.source.name]) for o in opened]
    finished = Finished(
        loaded, summaries, {k: dict(v) for k, v in dropped.items()}, dict(sorted(spill.changed.items())), samples
    )
    written = (row for place, row in enumerate(spill.rows()) if place not in removed)
    return write_folder(spill.folder, finished, written, spill.dropped, lambda done: tell("written", done))


def _reasons(dropped: list[Dropped]) -> str:
    return (
        ", ".join(
            f"{n} {step} ({reason})"
            for (step, reason), n in Counter((d.step, d.reason) for d in dropped).most_common(5)
        )
        or "the sources are empty"
    )


def _summary(opened: Opened, sha256: str, spill: Spill, kept: int) -> SourceSummary:
    source = opened.source
    licences = spill.licences.get(source.name, {source.licence})
    readings = {licence_reading(licence) for licence in licences}
    return SourceSummary(
        name=source.name,
        place=opened.place,
        revision=opened.revision,
        date=source.date,
        sha256=sha256,
        licences=sorted({normal(licence) or "none stated" for licence in licences}),
        redistributable=all(r.redistributable for r in readings),
        why="; ".join(sorted({r.why for r in readings if not r.redistributable} or {r.why for r in readings})),
        read=spill.read[source.name],
        kept=kept,
    )
