"""The folder of shards: whose it is, what lies where, and finding a message in it by its place in the order of reading.

plan                   what the shards are of; they are used again for nothing else
read/                  a file for each shard, raw, until it is cleaned; and for each source what was counted
clean/SHARD/           rows as lines and as a table, and arrays with an entry for each
exact/  meetings/      exact copies, and which texts met in a band, by ranges of hashes
families/  near/       places of texts that may be near-copies of each other, and those that are
keep/SHARD/            which rows stay, and why the others don't
logs/                  datatrove's, with its notes of finished tasks
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataset_builder.corpora.read import Opened
from dataset_builder.corpora.recipe import Loaded
from dataset_builder.corpora.rows import identity
from dataset_builder.corpora.schema import CorpusError
from dataset_builder.corpora.write import TOOLS
from helmbench_common.files import write_whole
from helmbench_common.hashing import canonical

Places = NDArray[np.int64]
DOCUMENT = np.dtype(
    [("offset", "u8"), ("line", "u8"), ("high", "u8"), ("low", "u8"), ("grams", "u4"), ("length", "u4")]
)


class Work(NamedTuple):
    """What every step needs: the mapping file, its sources (without rows), the folder, and messages to a shard."""

    loaded: Loaded
    opened: list[Opened]
    folder: Path
    size: int

    @property
    def names(self) -> list[str]:
        """The shards in the order of reading; all sources must have been read."""
        counts = [note(self.folder / "read" / f"{n:04d}.json")["shards"] for n in range(len(self.opened))]
        return [f"{n:04d}-{shard:06d}" for n, count in enumerate(counts) for shard in range(count)]

    def source(self, name: str) -> str:
        """The name of the source that a shard is of."""
        return self.opened[int(name.split("-")[0])].source.name


def claim(work: Work) -> None:
    """Makes the folder of shards, or takes up one that holds shards of the same sources.

    Raises:
        CorpusError: it holds shards of other sources, another mapping file or other tools.
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
        raise FileExistsError(f"{work.folder}: exists and holds no shards; expected an empty or earlier folder")
    # What people wrote stands here before it is masked: for nobody else, and for no repository.
    work.folder.mkdir(parents=True, exist_ok=True)
    work.folder.chmod(0o700)
    write_whole(work.folder / ".gitignore", "*\n")
    write_whole(path, plan, private=True)


def note(path: Path) -> Any:
    """What a step wrote down as JSON."""
    return json.loads(path.read_bytes())


@dataclass(frozen=True)
class Messages:
    """Every cleaned message, by its place in the order of reading. Arrays are mapped, not read."""

    work: Work

    @cached_property
    def names(self) -> list[str]:
        return self.work.names

    @cached_property
    def starts(self) -> Places:
        """The place of each shard's first message, and after the last the number of all."""
        counts = [note(self.folder(n) / "summary.json")["messages"] for n in range(len(self.names))]
        return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)

    @property
    def total(self) -> int:
        return int(self.starts[-1])

    def folder(self, shard: int) -> Path:
        return self.work.folder / "clean" / self.names[shard]

    @cached_property
    def array(self) -> Callable[[int, str], NDArray[Any]]:
        """(shard, kind) → an array of that shard: documents, signatures, keys, order or digests."""
        # A process may have no more than 65,530 files mapped.
        return lru_cache(maxsize=10_000)(lambda n, kind: np.load(self.folder(n) / f"{kind}.npy", mmap_mode="r"))

    def gather(self, kind: str, places: Places) -> NDArray[Any]:
        """The entries of `documents` or `signatures` at these places, which rise; there must be one."""
        cuts = np.searchsorted(places, self.starts)
        own = [
            self.array(shard, kind)[places[cuts[shard] : cuts[shard + 1]] - self.starts[shard]]
            for shard in np.flatnonzero(np.diff(cuts)).tolist()
        ]
        return np.concatenate(own)

    def _at(self, place: int) -> tuple[int, Any]:
        shard = int(np.searchsorted(self.starts, place, side="right")) - 1
        return shard, self.array(shard, "documents")[place - int(self.starts[shard])]

    def line(self, place: int) -> bytes:
        """The row's line."""
        shard, document = self._at(place)
        with (self.folder(shard) / "rows.jsonl").open("rb") as rows:
            rows.seek(int(document["offset"]))
            return rows.readline()

    def id(self, place: int) -> str:
        """The row's id."""
        shard, document = self._at(place)
        digest = int(document["high"]).to_bytes(8, "big") + int(document["low"]).to_bytes(8, "big")
        return identity(self.work.source(self.names[shard]), digest)
