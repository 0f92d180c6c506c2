"""A finished corpus, read back with every hash checked. Labelling and tasks read corpora through this module only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pydantic import ValidationError

from corpora.schema import CorpusError, CorpusManifest, Part
from corpora.write import CORPUS, TEST, VALIDATION
from dataset_builder.release import file_digest

PLACES = {"corpus": CORPUS, "validation": VALIDATION, "test": TEST}


@dataclass(frozen=True)
class Corpus:
    """A verified corpus folder."""

    path: Path
    manifest: CorpusManifest

    def rows(self, part: Part = "corpus") -> Iterator[dict[str, Any]]:
        """Every row of a part, in order, a thousand in memory at once. Columns: `schema.COLUMNS`, then the kept fields.

        Raises:
            CorpusError: the corpus was made without samples.
        """
        if PLACES[part] not in self.manifest.files:
            raise CorpusError(
                f"{self.path}: has no {part} sample; name `samples` in the mapping file and build it again"
            )
        for batch in pq.ParquetFile(self.path / PLACES[part]).iter_batches(batch_size=1000):
            yield from batch.to_pylist()


def open_corpus(folder: Path) -> Corpus:
    """The corpus in `folder`.

    Raises:
        CorpusError: it is missing, half-written or edited.
    """
    path = folder / "MANIFEST.json"
    try:
        manifest = CorpusManifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise CorpusError(
            f"{path}: can't be read ({error.strerror}); name a folder that `helmbench corpus` made"
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        raise CorpusError(
            f"{path}: {'.'.join(map(str, first['loc'])) or 'file'}: {first['msg']}; build the corpus again"
        ) from None
    for name, expected in manifest.files.items():
        file = folder / name
        if not file.is_file():
            raise CorpusError(f"{file}: missing, though MANIFEST.json lists it; build the corpus again")
        if (found := file_digest(file)) != expected:
            raise CorpusError(
                f"{file}: sha256 is {found[:12]}…, MANIFEST.json says {expected[:12]}…: it was edited or is "
                "half-written; build again"
            )
    return Corpus(folder, manifest)
