"""A mapping file → a corpus folder, in two passes: the sources are read into a spill file, then what stays is written.

In memory stand, per message, a digest and an id; texts and signatures (512 bytes each, mapped) are on disk. Nothing is
in `out` before everything is: a killed run leaves the earlier corpus whole.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dataset_builder.corpora import dedupe
from dataset_builder.corpora.clean import Cleaned, clean_all
from dataset_builder.corpora.finish import Counts, finished
from dataset_builder.corpora.read import Opened, documents, open_source
from dataset_builder.corpora.recipe import Loaded, load_recipe
from dataset_builder.corpora.rows import exact_copy, folded, identity, near_copy, row
from dataset_builder.corpora.sample import draw, gather, member
from dataset_builder.corpora.schema import CorpusManifest, Document, Dropped, Recipe
from dataset_builder.corpora.write import dropped_table, is_corpus, pieces, schema, write_folder
from helmbench_common import jsonl
from helmbench_common.files import replacing
from helmbench_common.hashing import canonical


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
    counts: Counts = field(default_factory=Counts)

    @property
    def signatures(self) -> dedupe.Signatures:
        shape = (len(self.ids), dedupe.VALUES)
        return (
            np.memmap(self.folder / "signatures", np.uint32, "r", shape=shape)
            if self.ids
            else np.empty(shape, np.uint32)
        )

    def kept_lines(self, removed: set[int]) -> Iterator[bytes]:
        with (self.folder / "rows").open("rb") as rows:
            yield from (line for place, line in enumerate(rows) if place not in removed)


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
    loaded, opened = opened_sources(recipe_path, out)
    with replacing(out) as staging:
        spill = Spill(staging)
        hashes = _first_pass(loaded, opened, spill, jobs, tell)
        removed = _near(spill, loaded.recipe, tell)
        manifest = _second_pass(loaded, opened, spill, removed, hashes, tell)
        (staging / "rows").unlink()
        (staging / "signatures").unlink(missing_ok=True)
    return manifest


def opened_sources(recipe_path: Path, out: Path) -> tuple[Loaded, list[Opened]]:
    """The mapping file and its sources, when they can be read and `out` may be written; raises as `build` does."""
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
    return loaded, [open_source(source, recipe_path.parent) for source in loaded.recipe.sources]


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
                spill.counts.read[document.source] += 1
                if not source.sha256:
                    hashers[document.source].update(canonical(document).encode() + b"\n")
                yield document

    countries = {o.source.name: o.source.country for o in opened}
    with (spill.folder / "rows").open("wb") as rows, (spill.folder / "signatures").open("wb") as signatures:
        for batch in clean_all(stream(), countries, loaded.recipe.limits, jobs):
            new = _exact(batch, spill)
            for n in new:
                line = canonical(row(batch.kept[n], batch.digests[n], loaded.recipe))
                spill.offsets.append(spill.offsets[-1] + rows.write(line.encode() + b"\n"))
            signatures.write(batch.signatures[new].tobytes())
            spill.sizes.extend(batch.sizes[new].tolist())
            spill.lengths.extend(len(batch.folded[n]) for n in new)
            spill.dropped += batch.dropped
            spill.counts.changed.update(batch.changed)
            tell("read", spill.counts.read.total())
    return {o.source.name: o.sha256 or hashers[o.source.name].hexdigest() for o in opened}


def _exact(batch: Cleaned, spill: Spill) -> list[int]:
    """Which of a batch are no copy of an earlier document; registers these, and drops the others."""
    new: list[int] = []
    for n, (document, digest) in enumerate(zip(batch.kept, batch.digests, strict=True)):
        spill.counts.licences.setdefault(document.source, set()).add(document.licence)
        if (first := spill.digests.setdefault(digest, len(spill.ids))) < len(spill.ids):
            spill.dropped.append(exact_copy(document.source, document.line, spill.ids[first]))
            continue
        new.append(n)
        spill.ids.append(identity(document.source, digest))
        spill.sources.append(document.source)
        spill.lines.append(document.line)
    return new


def _near(spill: Spill, recipe: Recipe, tell: Callable[[str, int], None]) -> set[int]:
    """The places that near-duplicates leave. Short texts are spared: one word may be the whole meaning there."""
    lengths = np.array(spill.lengths, dtype=np.uint64)
    places = np.flatnonzero(lengths >= recipe.limits.near_min_characters)
    tell("near-duplicates", 0)
    with (spill.folder / "rows").open("rb") as handle:

        def text_of(n: int) -> str:
            handle.seek(spill.offsets[int(places[n])])
            return folded(handle.readline())

        removed: set[int] = set()
        signatures, sizes = spill.signatures, np.array(spill.sizes, dtype=np.uint32)
        if len(places) < len(lengths):
            signatures, sizes = signatures[places], sizes[places]
        for pair in dedupe.near_duplicates(signatures, sizes, text_of, recipe.limits.near_jaccard):
            place, kept = int(places[pair.removed]), int(places[pair.kept])
            removed.add(place)
            spill.dropped.append(near_copy(spill.sources[place], spill.lines[place], spill.ids[kept], pair.jaccard))
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
    spill.counts.kept.update(source for place, source in enumerate(spill.sources) if place not in removed)
    position = {source.name: n for n, source in enumerate(recipe.sources)}
    spill.dropped.sort(key=lambda document: (position[document.source], document.line))
    spill.counts.drop(spill.dropped)
    done = finished(loaded, opened, hashes, spill.counts)
    if wanted := recipe.samples:
        members = (member(jsonl.loads(line), wanted) for line in spill.kept_lines(removed))
        done = done._replace(samples=draw(gather(members, wanted), wanted))
    rows = pieces(spill.kept_lines(removed), schema(recipe.kept))
    return write_folder(spill.folder, done, rows, [dropped_table(spill.dropped)], lambda n: tell("written", n))
