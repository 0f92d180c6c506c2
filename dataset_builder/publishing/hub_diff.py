"""What a publication would change on the Hub, and what about it would be wrong: no network here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from huggingface_hub import RepoFile
from pydantic import ValidationError

from dataset_builder.publishing import changelog
from dataset_builder.release import HASHES, Release
from dataset_builder.schema import Manifest
from helmbench_common.hashing import file_digest

KEPT = ".gitattributes"  # the Hub's own file: it says what is stored as a large file


class Change(NamedTuple):
    """One file. `size` in bytes and `sha256` are the local file's; both are None for one that will be deleted."""

    what: Literal["new", "changed", "same", "deleted"]
    name: str
    size: int | None
    sha256: str | None


@dataclass(frozen=True)
class State:
    """What a repository holds on main: its commit (None: no repository), files → hash as the Hub gives it, tags →
    commit.
    """

    commit: str | None
    files: dict[str, str]
    tags: dict[str, str]


def remote_files(tree: list[Any]) -> dict[str, str]:
    """Name → sha256 for large files, git's blob id for others, from `list_repo_tree`."""
    return {f.path: f.lfs.sha256 if f.lfs else f.blob_id for f in tree if isinstance(f, RepoFile) and f.path != KEPT}


def changes(release: Release, remote: dict[str, str]) -> list[Change]:
    """Every file of the build and every file that is there without being in it, by name."""
    names = [*release.manifest.files, "MANIFEST.json"]
    found = [_change(name, release.path / name, remote.get(name)) for name in names]
    found += [Change("deleted", name, None, None) for name in remote if name not in names]
    return sorted(found, key=lambda c: c.name)


def _change(name: str, path: Path, there: str | None) -> Change:
    data = path.read_bytes()
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    sha256 = file_digest(path)
    return Change("new" if there is None else "same" if there in (sha256, blob) else "changed", name, len(data), sha256)


def listing(release: Release, repo: str, state: State, found: list[Change]) -> str:
    """The plan as text."""
    manifest = release.manifest
    counts = ", ".join(f"{sum(c.what == w for c in found)} {w}" for w in ("new", "changed", "same", "deleted"))
    at = (
        f"main is {state.commit}"
        if state.commit
        else "no such repository yet, or none that this token may see: it would be created"
    )
    lines = [
        f"{release.path} -> {repo} ({at})",
        f"version {manifest.version}, tag v{manifest.version}; tags there: {', '.join(sorted(state.tags)) or 'none'}",
        f"score_hash {manifest.score_hash}",
        f"prose_hash {manifest.prose_hash}",
        f"messages_hash {manifest.messages_hash}",
        *(f"{c.what:<8}{'-' if c.size is None else c.size:>10}  {c.sha256 or '-':<64}  {c.name}" for c in found),
        counts,
    ]
    return "\n".join(lines)


def refusals(release: Release, there: bytes | None, tags: dict[str, str]) -> list[str]:
    """Why this build must not follow what is there: its tag exists, or its version doesn't say what changed."""
    manifest, reasons = release.manifest, []
    if (tag := f"v{manifest.version}") in tags:
        reasons.append(
            f"tag {tag} exists on commit {tags[tag]}; a published version never changes: raise `version` in "
            "content/benchmark.yaml"
        )
    if there is not None:
        try:
            reasons += unversioned(Manifest.model_validate_json(there), manifest)
        except ValidationError as error:
            reasons.append(
                f"MANIFEST.json on the Hub can't be read ({error.errors()[0]['msg']}), so the versions can't "
                "be compared; look at it by hand"
            )
    return reasons


def unversioned(before: Manifest, after: Manifest) -> list[str]:
    """What the version hides. Major: scores don't compare; minor: outside core; patch: prose (DATASET_CARD.md,
    "Versions").
    """
    old, new = (tuple(int(n) for n in m.version.split("+")[0].split(".")) for m in (before, after))
    moved = [h for h in HASHES if getattr(before, h) != getattr(after, h)]
    if new < old:
        return [f"version {after.version} is older than {before.version}, which is there"]
    if new == old and moved:
        return [
            f"{' and '.join(moved)} of version {after.version} differ from what is there; raise `version` in "
            "content/benchmark.yaml"
        ]
    if scored := [h for h in moved if h != "prose_hash"] if new[:2] == old[:2] else []:
        return [
            f"{' and '.join(scored)} changed from {before.version} to {after.version}; a patch changes prose "
            "only: raise the minor or the major number"
        ]
    if after.canary != before.canary:
        return ["the canary changed; it marks the benchmark in every release and stays"]
    return []


def unrecorded(manifest: Manifest, path: Path) -> list[str]:
    """What CHANGELOG.md lacks for this version to be a release, with the lines to write."""
    entry = next((e for e in changelog.entries(path) if e.version == manifest.version), None)
    hashes = {name: getattr(manifest, name) for name in HASHES}
    lines = " and ".join(f"'- {name}: `{value}`'" for name, value in hashes.items())
    wanted = f"'## {manifest.version} ({manifest.released})' with {lines}"
    if entry is None:
        return [f"{path}: has no entry for version {manifest.version}; expected {wanted} and a line '- Scores: …'"]
    recorded = [getattr(entry, name) for name in hashes]
    if (entry.released, recorded) != (manifest.released, [*hashes.values()]):
        said = ", ".join(map(str, (entry.released or "unreleased", *recorded)))
        return [f"{path}:{entry.line}: says {said} of version {entry.version}; expected {wanted}, or another version"]
    return []
