"""Datasets from the Hub or a local folder, streamed through `datasets`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dataset_builder.corpora.schema import CorpusError, Source
from helmbench_common.formats.refused import shown

SAID = 400  # characters of a library's error message


def open_dataset(source: Source, folder: Path) -> tuple[Source, Iterator[tuple[int, dict[str, Any]]]]:
    """The source with its dataset card's license and the Hub's commit; its rows, numbered from 1.

    A folder of that name next to the mapping file takes precedence, as in `load_dataset`.

    Raises:
        CorpusError: the dataset, configuration, split or revision doesn't exist, or can't be downloaded.
    """
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    import datasets

    hub = str(source.hub)
    local = folder / hub
    name = str(local) if local.is_dir() else hub
    if local.is_dir():
        _only_files(local, source.name)
    try:
        revision = None if local.is_dir() else source.revision
        builder = datasets.load_dataset_builder(name, source.config, revision=revision)
        stream = datasets.load_dataset(name, source.config, split=source.split, streaming=True, revision=revision)
    except Exception as error:  # the library raises a dozen kinds, including network errors
        said = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise CorpusError(f"{shown(hub)}:1: source '{source.name}' can't be loaded: {shown(said)[:SAID]}") from None
    commit = None if local.is_dir() else builder.hash or source.revision
    licence = source.licence or _card_licence(local if local.is_dir() else None, hub, commit)
    found = source.model_copy(update={"licence": licence, "revision": commit})
    return found, _rows(stream, hub)


def _only_files(folder: Path, name: str) -> None:
    """Rejects a folder that contains anything but files and folders: `datasets` would wait forever for a pipe."""
    for found in folder.rglob("*"):
        if found.exists() and not (found.is_file() or found.is_dir()):
            raise CorpusError(f"{shown(found)}:1: source '{name}' holds a pipe or a device; expected files")


def _card_licence(local: Path | None, hub: str, commit: str | None) -> str | None:
    """The license in the dataset card; None if it names none, or several, which a person must read."""
    from huggingface_hub import DatasetCard, hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        path = local / "README.md" if local else hf_hub_download(hub, "README.md", repo_type="dataset", revision=commit)
        card = DatasetCard(Path(path).read_text(encoding="utf-8"), ignore_metadata_errors=True)
        stated = getattr(card.data, "license", None)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError):
        return None
    return stated if isinstance(stated, str) else None


def _rows(stream: Any, place: str) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    try:
        for number, row in enumerate(stream, start=1):
            yield number, row
    except Exception as error:  # as above, and anything the readers of a dozen formats raise
        said = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise CorpusError(f"{shown(place)}:{number + 1}: can't be read on: {shown(said)[:SAID]}") from None
