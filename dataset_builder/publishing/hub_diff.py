"""What publishing would change on the Hub, and what CHANGELOG.md and the version must say about it; no network."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from huggingface_hub import RepoFile
from pydantic import ValidationError

from dataset_builder.release import HASHES, REPOSITORY, Release
from dataset_builder.schema import Manifest
from helmbench_common.errors import HelmbenchError

KEPT = ".gitattributes"  # written by the Hub; lists the large files
CHANGELOG = REPOSITORY / "CHANGELOG.md"
HEADING = re.compile(r"## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d|unreleased)\)")
LINE = re.compile(rf"- ({'|'.join(HASHES)}|Scores): (.+)")
What = Literal["new", "changed", "same", "deleted"]


class Change(NamedTuple):
    """One file. `size` (bytes) and `sha256` describe the local file; None if the file will be deleted."""

    what: What
    name: str
    size: int | None
    sha256: str | None


@dataclass(frozen=True)
class State:
    """A repository's main branch: its commit (None: no repository), files → the Hub's hash, tags → commit."""

    commit: str | None
    files: dict[str, str]
    tags: dict[str, str]


def remote_files(tree: list[Any]) -> dict[str, str]:
    """Name → sha256 of a large file or git blob id of another, from `list_repo_tree`."""
    return {f.path: f.lfs.sha256 if f.lfs else f.blob_id for f in tree if isinstance(f, RepoFile) and f.path != KEPT}


def changes(release: Release, remote: dict[str, str]) -> list[Change]:
    """Every file in the build and every remote file that isn't in it, by name."""
    names = [*release.manifest.files, "MANIFEST.json"]
    found = [Change("deleted", name, None, None) for name in remote if name not in names]
    for name in names:
        data = (release.path / name).read_bytes()
        sha256, blob = hashlib.sha256(data).hexdigest(), hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        there = remote.get(name)
        what: What = "new" if there is None else "same" if there in (sha256, blob) else "changed"
        found.append(Change(what, name, len(data), sha256))
    return sorted(found, key=lambda c: c.name)


def listing(release: Release, repo: str, state: State, found: list[Change]) -> str:
    """The plan as text."""
    manifest = release.manifest
    counts = ", ".join(f"{sum(c.what == w for c in found)} {w}" for w in ("new", "changed", "same", "deleted"))
    at = f"main is {state.commit}" if state.commit else "no repository that this token can see: it would be created"
    return "\n".join([
        f"{release.path} -> {repo} ({at})",
        f"version {manifest.version}, tag v{manifest.version}; tags there: {', '.join(sorted(state.tags)) or 'none'}",
        *(f"{name} {getattr(manifest, name)}" for name in HASHES),
        *(f"{c.what:<8}{'-' if c.size is None else c.size:>10}  {c.sha256 or '-':<64}  {c.name}" for c in found),
        counts,
    ])  # fmt: skip


def refusals(release: Release, there: bytes | None, tags: dict[str, str]) -> list[str]:
    """Why this build can't be published over the current release: its tag exists, or its version hides a change."""
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
                f"MANIFEST.json on the Hub can't be read ({error.errors()[0]['msg']}), so versions can't be compared; "
                "check it by hand"
            )
    return reasons


def unversioned(before: Manifest, after: Manifest) -> list[str]:
    """Changes the version hides. Major: scores aren't comparable; minor: changes outside core; patch: prose only."""
    old, new = (tuple(int(n) for n in m.version.split("+")[0].split(".")) for m in (before, after))
    moved = [h for h in HASHES if getattr(before, h) != getattr(after, h)]
    if new < old:
        return [f"version {after.version} is older than {before.version}, the one on the Hub"]
    if new == old and moved:
        return [
            f"{' and '.join(moved)} of version {after.version} differ from the Hub's; raise `version` in "
            "content/benchmark.yaml"
        ]
    if scored := [h for h in moved if h != "prose_hash"] if new[:2] == old[:2] else []:
        return [
            f"{' and '.join(scored)} changed from {before.version} to {after.version}; a patch changes prose "
            "only: raise the minor or the major number"
        ]
    if after.canary != before.canary:
        return ["the canary changed; it marks the benchmark in every release and must stay"]
    return []


def unrecorded(manifest: Manifest, path: Path) -> list[str]:
    """What CHANGELOG.md needs before this version can be released, with the lines to write."""
    entry = next((e for e in entries(path) if e.version == manifest.version), None)
    hashes = {name: getattr(manifest, name) for name in HASHES}
    lines = " and ".join(f"'- {name}: `{value}`'" for name, value in hashes.items())
    wanted = f"'## {manifest.version} ({manifest.released})' with {lines}"
    if entry is None:
        return [f"{path}: no entry for version {manifest.version}; expected {wanted} and a line '- Scores: …'"]
    recorded = [getattr(entry, name) for name in hashes]
    if (entry.released, recorded) != (manifest.released, [*hashes.values()]):
        said = ", ".join(map(str, (entry.released or "unreleased", *recorded)))
        return [f"{path}:{entry.line}: says {said} of version {entry.version}; expected {wanted}, or another version"]
    return []


class ChangelogError(HelmbenchError):
    """A changelog that can't be read."""


@dataclass(frozen=True)
class Entry:
    """One version. `released`: an ISO date, or None while the content still changes; the hashes are the release's."""

    version: str
    released: str | None
    line: int
    scores: str
    score_hash: str | None
    prose_hash: str | None
    messages_hash: str | None


def entries(path: Path = CHANGELOG) -> list[Entry]:
    """Every version, in file order (newest first).

    Raises:
        ChangelogError: no file, a malformed heading, a version without `- Scores: …`, or a dated one without hashes.
    """
    if not path.is_file():
        raise ChangelogError(f"{path}: missing; an installed package has none, so publish from a checkout")
    lines = path.read_text(encoding="utf-8").splitlines()
    starts = [n for n, text in enumerate(lines) if text.startswith("## ")]
    found: list[Entry] = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        line, title = start + 1, lines[start]
        heading = HEADING.fullmatch(title)
        if not heading:
            raise ChangelogError(
                f"{path}:{line}: '{title}'; expected '## 1.2.3 (2026-11-21)' or '## 1.2.3 (unreleased)'"
            )
        said = {m[1]: m[2].strip("`") for text in lines[start:end] if (m := LINE.fullmatch(text))}
        released = None if heading[2] == "unreleased" else heading[2]
        if missing := sorted({"Scores", *(HASHES if released else ())} - said.keys()):
            raise ChangelogError(
                f"{path}:{line}: version {heading[1]} has no line '- {missing[0]}: …'; every entry says whether scores "
                "stay comparable, a dated one its hashes"
            )
        found.append(Entry(heading[1], released, line, said["Scores"], *(said.get(name) for name in HASHES)))
    return found
