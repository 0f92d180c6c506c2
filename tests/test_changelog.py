"""CHANGELOG.md says of every version whether scores stay comparable, and a release keeps the hashes it was published
with.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from dataset_builder.publishing import hub_diff
from dataset_builder.release import HASHES, Release

RELEASED = (
    "## 1.0.0 (2026-12-01)\n\n- Scores: not comparable with 0.1.0.\n- score_hash: `aa`\n- prose_hash: "
    "`bb`\n- messages_hash: `cc`\n- More messages.\n"
)
UNRELEASED = "## 1.1.0 (unreleased)\n\n- Scores: comparable on core.\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "CHANGELOG.md"
    path.write_text(f"# Changelog\n\n{text}", encoding="utf-8")
    return path


def test_the_current_version_has_an_entry_that_is_true(release: Release) -> None:
    """The newest entry is this content's version; once it is dated, its hashes are this build's: content that changes
    afterwards needs a new version.
    """
    newest = hub_diff.entries()[0]
    assert newest.version == release.manifest.version
    assert newest.released is None or hub_diff.unrecorded(release.manifest, hub_diff.CHANGELOG) == []


def test_no_changelog_is_one_line(tmp_path: Path) -> None:
    """An installed package has none: whoever publishes from there is told to take a checkout."""
    with pytest.raises(hub_diff.ChangelogError, match=r"^/.*CHANGELOG\.md: missing.*checkout$"):
        hub_diff.entries(tmp_path / "CHANGELOG.md")


def test_versions_fall_and_only_the_newest_is_unreleased() -> None:
    """Newest first, each number once, dates in order, hashes for every release."""
    entries = hub_diff.entries()
    numbers = [tuple(map(int, e.version.split("."))) for e in entries]
    assert numbers == sorted(set(numbers), reverse=True)
    assert all(e.released for e in entries[1:])
    assert all(
        newer.released is None or newer.released >= str(older.released) for newer, older in itertools.pairwise(entries)
    )


def test_entries_are_read(tmp_path: Path) -> None:
    """Version, date, line, what is said of scores, hashes."""
    found = hub_diff.entries(written(tmp_path, UNRELEASED + "\n" + RELEASED))
    assert found == [
        hub_diff.Entry("1.1.0", None, 3, "comparable on core.", None, None, None),
        hub_diff.Entry("1.0.0", "2026-12-01", 7, "not comparable with 0.1.0.", "aa", "bb", "cc"),
    ]
    assert hub_diff.entries(written(tmp_path, "")) == []


def test_an_entry_that_says_too_little_is_an_error(tmp_path: Path) -> None:
    """With file and line."""
    for text, message in (
        ("## 1.0.0\n\n- Scores: x\n", r":3: '## 1\.0\.0'; expected '## 1\.2\.3 \(2026-11-21\)'"),
        ("## 1.0.0 (soon)\n", r":3: '## 1\.0\.0 \(soon\)'; expected"),
        ("## 1.0.0 (unreleased)\n\n- More messages.\n", r":3: version 1\.0\.0 has no line '- Scores: …'"),
        (RELEASED.replace("- score_hash: `aa`\n", ""), r":3: version 1\.0\.0 has no line '- score_hash: …'"),
        (RELEASED.replace("- prose_hash: `bb`\n", ""), r":3: version 1\.0\.0 has no line '- prose_hash: …'"),
        (RELEASED.replace("- messages_hash: `cc`\n", ""), r":3: version 1\.0\.0 has no line '- messages_hash: …'"),
    ):
        with pytest.raises(hub_diff.ChangelogError, match=message):
            hub_diff.entries(written(tmp_path, text))


def test_a_release_whose_content_changed_is_named(release: Release, tmp_path: Path) -> None:
    """Another hash, another date, no entry: each says what to write."""
    manifest = release.manifest
    hashes = "".join(f"- {name}: `{getattr(manifest, name)}`\n" for name in HASHES)
    good = f"## {manifest.version} ({manifest.released})\n\n- Scores: x\n{hashes}"
    assert hub_diff.unrecorded(manifest, written(tmp_path, good)) == []
    changed = [(getattr(manifest, name), "0") for name in HASHES]
    moved = [(manifest.released, "2020-01-01"), (manifest.released, "unreleased"), (manifest.version, "9.9.9")]
    for old, new in (*changed, *moved):
        (reason,) = hub_diff.unrecorded(manifest, written(tmp_path, good.replace(old, new, 1)))
        assert reason.startswith(str(tmp_path / "CHANGELOG.md"))
        assert manifest.score_hash in reason
