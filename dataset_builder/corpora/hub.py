"""Datasets of the Hub, or in a local folder, through `datasets`: streamed, so that a corpus larger than memory can be
read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dataset_builder.corpora.schema import CorpusError, Source
from helmbench_common.formats.refused import shown

SAID = 400  # characters of what a library says


def open_dataset(source: Source, folder: Path) -> tuple[Source, str, str, Iterator[tuple[int, dict[str, Any]]]]:
    """The source, completed by what the dataset's card says; its name in errors; its fingerprint; its rows, counted
    from 1.

    A folder of that name beside the mapping file goes first, as with `load_dataset` itself. The fingerprint is the
    Hub's
    commit where there is one: pin it with `revision` to read the same rows again.

    Raises:
        CorpusError: there is no such dataset, configuration, split or revision, or no network to it.
    """
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    import datasets

    hub = str(source.hub)
    local = folder / hub
    name = str(local) if local.is_dir() else hub
    if local.is_dir():
        _only_files(local, source.name)
    try:
        builder = datasets.load_dataset_builder(
            name, source.config, revision=None if local.is_dir() else source.revision
        )
        stream = datasets.load_dataset(
            name,
            source.config,
            split=source.split,
            streaming=True,
            revision=None if local.is_dir() else source.revision,
        )
    except Exception as error:  # the library raises a dozen kinds, some of them the network's
        said = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise CorpusError(f"{shown(hub)}:1: source '{source.name}' can't be loaded: {shown(said)[:SAID]}") from None
    commit = None if local.is_dir() else builder.hash or source.revision
    licence = source.licence or _card_licence(local if local.is_dir() else None, hub, commit)
    found = source.model_copy(update={"licence": licence, "revision": commit})
    return found, hub, "", _rows(stream, hub)


def _only_files(folder: Path, name: str) -> None:
    """Refuses a folder in which anything but files and folders lies: `datasets` would wait for a pipe, and read a
    device without end.
    """
    for found in folder.rglob("*"):
        if found.exists() and not (found.is_file() or found.is_dir()):
            raise CorpusError(f"{shown(found)}:1: source '{name}' holds a pipe or a device; expected files")


def _card_licence(local: Path | None, hub: str, commit: str | None) -> str | None:
    """What the dataset's card states; several licences, or none, are for a person to read and give none here."""
    from huggingface_hub import DatasetCard, hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        card = (
            local / "README.md"
            if local
            else Path(hf_hub_download(hub, "README.md", repo_type="dataset", revision=commit))
        )
        stated = getattr(
            DatasetCard(card.read_text(encoding="utf-8"), ignore_metadata_errors=True).data, "license", None
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError):
        return None
    return stated if isinstance(stated, str) else None


def _rows(stream: Any, place: str) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    try:
        for number, row in enumerate(stream, start=1):
            yield number, row
    except Exception as error:  # as above, and whatever the readers of a dozen formats raise
        said = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise CorpusError(f"{shown(place)}:{number + 1}: can't be read on: {shown(said)[:SAID]}") from None
