"""Reads a finished corpus and verifies every hash."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dataset_builder.corpora.schema import CorpusError, CorpusManifest, Part
from dataset_builder.corpora.write import CORPUS, TEST, VALIDATION, row_schema
from helmbench_common.formats import parquet_file
from helmbench_common.formats.plain_file import read_bytes
from helmbench_common.formats.refused import FormatError, shown
from helmbench_common.hashing import file_digest

M = TypeVar("M", bound=BaseModel)
EXPECTED = "the manifest of a corpus; name a folder that `helmbench corpus` wrote"
PLACES = {"corpus": CORPUS, "validation": VALIDATION, "test": TEST}


@dataclass(frozen=True)
class Corpus:
    """A verified corpus folder."""

    path: Path
    manifest: CorpusManifest

    def rows(self, part: Part = "corpus") -> Iterator[dict[str, Any]]:
        """Streams every row of a part, in order. Columns: `schema.COLUMNS`, then the kept fields.

        Raises:
            CorpusError: the corpus was built without samples, or the file doesn't hold its rows.
        """
        if PLACES[part] not in self.manifest.files:
            raise CorpusError(
                f"{shown(self.path)}: has no {part} sample; name `samples` in the mapping file and build it again"
            )
        own = row_schema(())
        columns = dict(zip(own.names, own.types, strict=True))
        try:
            for batch in parquet_file.batches(self.path / PLACES[part], "the rows of a corpus", columns):
                yield from batch.to_pylist()
        except FormatError as error:
            raise CorpusError(f"{error}; build the corpus again") from None


def open_corpus(folder: Path) -> Corpus:
    """The corpus in `folder`.

    Raises:
        CorpusError: it is missing, half-written or edited.
    """
    path = folder / "MANIFEST.json"
    manifest = read_json(path, CorpusManifest, EXPECTED, "build the corpus again")
    for name, expected in manifest.files.items():
        file = folder / name
        if PurePath(name).is_absolute() or ".." in PurePath(name).parts:
            raise CorpusError(
                f"{shown(path)}: lists '{shown(name)[:200]}', which is outside the folder; build the corpus again"
            )
        if not file.is_file():
            raise CorpusError(f"{shown(file)}: missing, though MANIFEST.json lists it; build the corpus again")
        if (found := file_digest(file)) != expected:
            raise CorpusError(
                f"{shown(file)}: sha256 is {found[:12]}…, MANIFEST.json says {shown(expected[:12])}…: it was edited or "
                "is half-written; build again"
            )
    return Corpus(folder, manifest)


def read_json(path: Path, model: type[M], expected: str, mend: str) -> M:
    """A JSON file that a command wrote. `expected`: a description of it; `mend`: what to do if it doesn't match.

    Raises:
        CorpusError: it can't be read or doesn't validate.
    """
    try:
        return model.model_validate_json(read_bytes(path, expected))
    except FormatError as error:
        raise CorpusError(str(error)) from None
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = shown(".".join(map(str, first["loc"])) or "file")[:200]
        raise CorpusError(f"{shown(path)}: {where}: {shown(first['msg'])[:200]}; {mend}") from None
