"""Publishing, over real HTTP against a loopback Hub: what is sent, what is refused, and what comes back from
`load_dataset`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pyarrow.parquet as pq
import pytest
from helmbench.cli.app import main
from support import hub_stub
from support.contents import drop_unheard_voices, edit, read

from dataset_builder.checking.checks import check
from dataset_builder.composing.compose import compose
from dataset_builder.publishing import hub_diff, push_to_hub
from dataset_builder.reading.markdown import Errors
from dataset_builder.release import HASHES, open_release, parquet_path
from dataset_builder.schema import Manifest
from dataset_builder.writing.write import write

REPO = "org/helmbench"
pytestmark = pytest.mark.filterwarnings(
    "ignore:Use 'content=:DeprecationWarning"
)  # huggingface_hub's upload, as its HTTP client sees it
STRESS = "scenarios/P4-B2-S1.md"


class Workshop:
    """A content folder, its build and its changelog, and the Hub they go to."""

    def __init__(self, hub: hub_stub.Hub | None, content: Path, out: Path) -> None:
        self._hub, self.content, self.out, self.log = hub, content, out, out.parent / "CHANGELOG.md"

    @property
    def hub(self) -> hub_stub.Hub:
        assert self._hub
        return self._hub

    def build(self) -> Manifest:
        content = read(self.content)
        return write(content, compose(content), self.out)

    def record(self, manifest: Manifest) -> None:
        """The changelog entry that makes a build a release."""
        hashes = "\n".join(f"- {name}: `{getattr(manifest, name)}`" for name in HASHES)
        self.log.write_text(
            f"# Changelog\n\n## {manifest.version} ({manifest.released})\n\n- Scores: not comparable.\n{hashes}\n",
            encoding="utf-8",
        )

    def edit(self, name: str, old: str, new: str) -> None:
        edit(self.content, name, old, new)

    def version(self, new: str) -> None:
        path = self.content / "benchmark.yaml"
        path.write_text(
            re.sub(r"(?m)^version: .*$", f"version: {new}", path.read_text(encoding="utf-8")), encoding="utf-8"
        )

    def released(self, new: str) -> Manifest:
        """Builds and records under a version."""
        self.version(new)
        manifest = self.build()
        self.record(manifest)
        return manifest

    def push(self, *more: str) -> int:
        source = ["--dataset", str(self.out), "--content", str(self.content), "--changelog", str(self.log)]
        return main(["push", REPO, *source, *more])

    def files(self) -> dict[str, bytes]:
        return {p.relative_to(self.out).as_posix(): p.read_bytes() for p in self.out.rglob("*") if p.is_file()}

    def there(self) -> dict[str, bytes]:
        """What main holds, without the Hub's own file."""
        repo = self.hub.repos[REPO]
        return {name: data for name, data in repo.commits[repo.main].items() if name != ".gitattributes"}


@pytest.fixture
def hub() -> Iterator[hub_stub.Hub]:
    with hub_stub.start() as server:
        yield server


@pytest.fixture(scope="module")
def tiny(small_content: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Version 1.0.0 of two scenarios without a calibration set, built: `content` and `helmbench`; read-only by
    agreement.
    """
    root = tmp_path_factory.mktemp("tiny")
    shutil.copytree(small_content, root / "content")
    shutil.rmtree(root / "content" / "calibration")
    for path in [*root.glob("content/scenarios/*.md"), *root.glob("content/conversations/*.md")]:
        if path.stem not in ("P4-B2-S1", "P1-B1-S1"):
            path.unlink()
    drop_unheard_voices(root / "content")
    content = read(root / "content")
    check(content, compose(content), errors := Errors())
    for error in errors.found:
        assert "no scenario uses this" in error.message
        Path(error.path).unlink()
    workshop = Workshop(None, root / "content", root / "helmbench")
    workshop.released("1.0.0")
    return root


@pytest.fixture
def shop(hub: hub_stub.Hub, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A copy of version 1.0.0, built and recorded; the token is set."""
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("HF_TOKEN", hub_stub.TOKEN)
    # Read from the environment when the client was imported, long before a test's own variables. The stub speaks the
    # Hub's plain large-file protocol and not xet's, which the client would otherwise choose for itself.
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    huggingface_hub.close_session()
    root = Path(shutil.copytree(tiny, tmp_path / "shop"))
    return Workshop(hub, root / "content", root / "helmbench")


def printed(capfd: pytest.CaptureFixture[str]) -> str:
    """All that was printed, which never holds the token."""
    out, err = capfd.readouterr()
    assert hub_stub.TOKEN not in out + err
    return out + err


def test_a_dry_run_says_everything_and_sends_nothing(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """Every file with its size and sha256; the repository that isn't there yet is not created."""
    assert shop.push() == 0
    said = printed(capfd)
    for name, data in shop.files().items():
        assert re.search(rf"(?m)^new +{len(data)}  {hashlib.sha256(data).hexdigest()}  {re.escape(name)}$", said)
    assert f"{len(shop.files())} new, 0 changed, 0 same, 0 deleted" in said
    assert "dry run: nothing was sent" in said
    assert shop.hub.writes() == []
    assert shop.hub.repos == {}


def test_a_dry_run_needs_no_token(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is public can be compared by anybody; no token that lies in a home directory is used."""
    monkeypatch.delenv("HF_TOKEN")
    (Path(os.environ["HF_HOME"])).mkdir(parents=True)
    (Path(os.environ["HF_HOME"]) / "token").write_text(hub_stub.TOKEN, encoding="utf-8")
    shop.hub.create(REPO)
    assert shop.push() == 0
    assert [with_token for *_, with_token in shop.hub.log] == [False] * len(shop.hub.log)
    assert shop.push("--yes") == 1
    assert "HF_TOKEN is not set" in printed(capfd)


def test_a_push_is_one_commit_with_the_builds_bytes_and_its_tag(
    shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    """Created, committed once, tagged on that commit; every byte arrives; the commit's id is printed."""
    assert shop.push("--yes") == 0
    repo = shop.hub.repos[REPO]
    assert shop.there() == shop.files()
    assert len(repo.commits) == 2  # the Hub's own first one, and ours
    assert repo.tags == {"v1.0.0": repo.main}
    assert f"published {REPO} v1.0.0 as commit {repo.main}" in printed(capfd)


LOADER = """
import json, sys
from datasets import load_dataset
rows = load_dataset(sys.argv[1], "pillar1", revision=sys.argv[2], split="test")
print(json.dumps([dict(r) for r in rows]))
"""


def test_load_dataset_gets_the_tagged_rows(shop: Workshop, tmp_path: Path) -> None:
    """From the Hub, by tag, after main has moved on: the rows of 1.0.0, hash for hash."""
    release = open_release(shop.out)
    expected = pq.ParquetFile(release.path / parquet_path("pillar1")).read().to_pylist()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    environment |= {
        "HF_ENDPOINT": shop.hub.url,
        "HF_HOME": str(tmp_path / "fresh"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_XET": "1",
    }
    assert shop.push("--yes") == 0
    shop.edit("scenarios/P1-B1-S1.md", "# PT1 (severity 9", "# PT1 (severity 8")
    shop.released("2.0.0")
    assert shop.push("--yes") == 0
    loaded = subprocess.run(
        [sys.executable, "-c", LOADER, REPO, "v1.0.0"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path.parent,
    )
    assert loaded.returncode == 0, loaded.stderr
    assert json.loads(loaded.stdout) == expected
    assert pq.ParquetFile(shop.out / parquet_path("pillar1")).read().to_pylist() != expected


def test_a_second_version_deletes_what_is_stale_and_sends_only_what_changed(
    shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    """A file that the build no longer writes goes; the plan says so before; .gitattributes stays; the first tag
    stays.
    """
    shop.push("--yes")
    first = shop.hub.repos[REPO].main
    shop.hub.repos[REPO].commit({**shop.hub.repos[REPO].commits[first], "old/notes.md": b"stale"})
    shop.edit(STRESS, "\n# PT2 (", "\nAnd more.\n# PT2 (")
    shop.released("2.0.0")
    capfd.readouterr()
    assert shop.push() == 0
    said = printed(capfd)
    assert re.search(r"(?m)^deleted +-  -+ +old/notes.md$", said)
    assert re.search(r"(?m)^same .* data/pillar1/", said)
    assert re.search(r"(?m)^changed .* data/pillar4/", said)
    assert shop.push("--yes") == 0
    repo = shop.hub.repos[REPO]
    assert shop.there() == shop.files()
    assert ".gitattributes" in repo.commits[repo.main]
    assert repo.tags == {"v1.0.0": first, "v2.0.0": repo.main}


def test_refused_before_anything_is_sent(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """Each reason with the file's name; the Hub gets no request that writes."""
    parquet, manifest = shop.out / parquet_path("all"), shop.out / "MANIFEST.json"
    fields = json.loads(manifest.read_text(encoding="utf-8"))

    def link() -> None:
        (shop.out / "scoring.yaml").rename(shop.out.parent / "elsewhere.yaml")
        (shop.out / "scoring.yaml").symlink_to(shop.out.parent / "elsewhere.yaml")

    spoils: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: parquet.write_bytes(parquet.read_bytes()[:-1] + b"\0"), rf"{parquet_path('all')}: sha256 is "),
        ((shop.out / "notes.txt").touch, r"notes\.txt: is not in MANIFEST\.json"),
        (link, r"scoring\.yaml: is a link"),
        (
            lambda: manifest.write_text(manifest.read_text(encoding="utf-8").replace('"lite": ', '"lite": 1')),
            r"is not what .*content builds now \(MANIFEST\.json differ\)",
        ),
        (lambda: shop.edit(STRESS, "\n# PT2 (", "\nAnd more.\n# PT2 ("), r"is not what .*pillar4/.* differ"),
        (lambda: shop.edit("scoring.yaml", "points: ", "# why\npoints: "), r"is not what .*scoring\.yaml.* differ"),
        (lambda: shop.edit(STRESS, "# PT11 (severity -6", "# PT11 (severity -60"), r"has 1 content errors"),
        (
            lambda: manifest.write_text(json.dumps(fields | {"version": "1.0.0+held-out.a"})),
            r"is a held-out split, which is never published",
        ),
        (lambda: shop.log.write_text("# Changelog\n"), r"CHANGELOG\.md: no entry for version 1\.0\.0"),
    )
    clean = shutil.copytree(shop.out.parent, shop.out.parent.with_name("clean"))
    for spoil, reason in spoils:
        spoil()
        assert shop.push("--yes") == 1, reason
        said = printed(capfd)
        assert re.search(reason, said), said
        assert said.endswith("nothing was published\n")
        shutil.rmtree(shop.out.parent)
        shutil.copytree(clean, shop.out.parent)
    assert shop.hub.writes() == []


def test_a_tag_that_exists_is_refused(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """The same version a second time, even with the same bytes."""
    shop.push("--yes")
    before = shop.hub.writes()
    assert shop.push("--yes") == 1
    assert "tag v1.0.0 exists on commit" in printed(capfd)
    assert shop.hub.writes() == before


def test_a_version_says_what_changed(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """Compared with the manifest on main, even if its tag was removed. Only the last two versions may be published."""
    old = shop.released("1.0.0")
    for change, version, reason in (
        (("score_hash", "messages_hash"), "1.0.0", "score_hash and messages_hash of version 1.0.0 differ"),
        (("prose_hash",), "1.0.0", "prose_hash of version 1.0.0 differ"),
        (("score_hash", "messages_hash"), "1.0.1", "a patch changes prose only"),
        (("prose_hash",), "0.9.0", "version 0.9.0 is older than 1.0.0"),
        (("canary",), "2.0.0", "the canary changed"),
        (("prose_hash",), "1.0.1", None),
        (("score_hash", "messages_hash"), "1.1.0", None),
    ):
        new = old.model_copy(update={"version": version, **dict.fromkeys(change, "0" * 64)})
        said = " ".join(hub_diff.unversioned(old, new))
        assert reason in said if reason else not said, (change, version, said)
    shop.push("--yes")
    shop.hub.repos[REPO].tags.clear()
    before = shop.hub.writes()
    shop.edit(STRESS, "\n# PT2 (", "\nAnd more.\n# PT2 (")
    shop.released("1.0.0")
    capfd.readouterr()
    assert shop.push("--yes") == 1
    assert "score_hash and messages_hash of version 1.0.0 differ" in printed(capfd)
    assert shop.hub.writes() == before


def test_a_push_that_died_before_its_tag_is_finished_by_the_next(
    shop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    """The commit is not made twice; the tag lands on it."""
    shop.hub.failing = {r"POST .*/tag/": (403, "tags are off")}
    assert shop.push("--yes") == 1
    assert re.search(r"commit \w{40} is there, its tag v1\.0\.0 failed: .*tags are off", printed(capfd))
    made = shop.hub.repos[REPO].main
    shop.hub.failing = {}
    assert shop.push("--yes") == 0
    repo = shop.hub.repos[REPO]
    assert (repo.tags, len(repo.commits)) == ({"v1.0.0": made}, 2)


def test_a_repository_that_moves_meanwhile_is_left_alone(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What was printed is what is done, or nothing: somebody's commit between the listing and ours stops it."""
    repo = shop.hub.create(REPO)
    api = huggingface_hub.HfApi
    commit = api.create_commit

    def late(self: huggingface_hub.HfApi, *arguments: Any, **more: Any) -> object:
        repo.commit({**repo.commits[repo.main], "theirs.md": b"theirs"})
        return commit(self, *arguments, **more)

    monkeypatch.setattr(api, "create_commit", late)
    assert shop.push("--yes") == 1
    assert "the commit failed" in printed(capfd)
    assert shop.there() == {"theirs.md": b"theirs"}
    assert repo.tags == {}


def test_an_error_never_shows_the_token(shop: Workshop) -> None:
    """A Hub or proxy that quotes the request's header: one line without the token."""
    quoted = (400, f"bad header Authorization: Bearer {hub_stub.TOKEN}")
    for request in (
        "POST .*/repos/create",
        "POST .*/preupload/",
        "POST .*objects/batch",
        "POST .*/commit/",
        "GET .*/refs",
    ):
        shop.hub.failing = {request: quoted}
        with pytest.raises(push_to_hub.PublishError) as caught:
            push_to_hub.publish(push_to_hub.planned(REPO, shop.out, sending=True))
        (said,) = caught.value.lines
        assert "[token]" in said, request
        assert hub_stub.TOKEN not in said
        assert "\n" not in said


def test_malformed_tokens_and_names_are_refused(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Before anything is sent; a client would quote such a token in its own error."""
    for name in ("helmbench", "org/helm bench", "https://hub/org/helmbench", "../helmbench/x"):
        assert main(["push", name, "--dataset", str(shop.out)]) == 1
        assert "is not a dataset id" in printed(capfd)
    for token in ("two words", "hf_line\nbreak", "hf_é"):
        monkeypatch.setenv("HF_TOKEN", token)
        assert shop.push("--yes") == 1
        said = printed(capfd)
        assert "HF_TOKEN has characters that no token has" in said
        assert token not in said
    assert shop.hub.log == []


def test_a_hub_that_is_away_is_one_line(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nobody listens there."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert shop.push() == 1
    said = printed(capfd)
    assert f"{REPO}: can't be read: " in said
    assert "Traceback" not in said


def test_uncommitted_content_is_refused(shop: Workshop, capfd: pytest.CaptureFixture[str]) -> None:
    """A release is built from a commit: where the content is under git, an edit that is not committed stops it, by
    file.
    """

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
        subprocess.run(["git", "-C", str(shop.content), *identity, *arguments], check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "content")
    assert shop.push() == 0
    shop.edit(STRESS, "Most stress is not", "Much stress is not")
    shop.released("1.0.0")
    assert shop.push() == 1
    assert re.search(r"P4-B2-S1\.md: has changes that are not committed", printed(capfd))
    shutil.rmtree(shop.content / ".git")
    assert shop.push() == 0


def test_every_source_of_a_build_counts(tmp_path: Path) -> None:
    """In a copy of this repository: an edited judge prompt, which a release's hash covers, is named; a clean copy is
    not.
    """
    root, copy = Path(push_to_hub.__file__).parents[2], tmp_path / "copy"
    for folder in ("dataset_builder", "helmbench_common"):
        shutil.copytree(root / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    git = ["git", "-C", str(copy), "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    for arguments in (["init"], ["add", "."], ["commit", "-m", "all"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)
    source, content = "dataset_builder/content/prompts/judge.md", copy / "dataset_builder" / "content"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(push_to_hub, "REPOSITORY", copy)
        assert push_to_hub._uncommitted(content) == []
        with (copy / source).open("a", encoding="utf-8") as file:
            file.write("\nOne more line.\n")
        said = f"{source}: has changes that are not committed; a release is built from a commit"
        assert push_to_hub._uncommitted(content) == [said]
