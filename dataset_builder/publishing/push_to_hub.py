"""Publishes a built dataset on the Hugging Face Hub: one commit, tagged with its version.

`planned` → `refuse` → `publish`; only the last one sends anything. The token comes only from HF_TOKEN; HF_ENDPOINT
selects another Hub.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, DatasetInfo, HfApi
from huggingface_hub.errors import RepositoryNotFoundError

from dataset_builder.checking.checks import check
from dataset_builder.composing.compose import compose
from dataset_builder.prompts import CONTENT
from dataset_builder.publishing import hub_diff
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.load import load
from dataset_builder.release import HASHES, REPOSITORY, Release, open_release
from dataset_builder.schema import Row
from helmbench_common.errors import RefusedError
from helmbench_common.hashing import file_digest

T = TypeVar("T")


class PublishError(RefusedError):
    """Why nothing (more) was published; one reason per line, without the token."""


@dataclass(frozen=True)
class Plan:
    """A release and what publishing it would change in a Hub repository."""

    release: Release
    hub: Hub
    state: hub_diff.State
    changes: list[hub_diff.Change]

    def __str__(self) -> str:
        return hub_diff.listing(self.release, self.hub.repo, self.state, self.changes)


def planned(repo: str, dataset: Path | None = None, *, sending: bool = False) -> Plan:
    """What publishing the build in `dataset` would change. `repo`: ORG/NAME. `sending`: require a token.

    Raises:
        PublishError: `repo` is not a dataset id, HF_TOKEN is missing or malformed, or the Hub can't be read.
        ReleaseError: the build is missing or incomplete.
    """
    if not re.fullmatch(r"[\w.\-]+/[\w.\-]+", repo):
        raise PublishError(f"'{repo}' is not a dataset id; expected ORG/NAME, such as org/helmbench")
    # Ignore a token stored by `hf auth login`: publishing requires an explicit one each time.
    token = os.environ.get("HF_TOKEN", "").strip() or None
    if token and not re.fullmatch(r"[!-~]+", token):
        raise PublishError("HF_TOKEN has characters that no token has (not shown); copy it again")
    if sending and not token:
        raise PublishError("HF_TOKEN is not set; expected a token with write access in the environment")
    release = open_release(dataset)
    hub = Hub(repo, token)
    state = hub.state()
    return Plan(release, hub, state, hub_diff.changes(release, state.files))


def refuse(plan: Plan, content: Path = CONTENT, log: Path = hub_diff.CHANGELOG) -> None:
    """Raises unless the plan may be published. `content`: the release's source; `log`: its changelog.

    Raises:
        PublishError: every reason not to publish.
        ChangelogError: the changelog can't be read.
    """
    there = plan.hub.manifest(plan.state)
    if reasons := [*_local(plan.release, content, log), *hub_diff.refusals(plan.release, there, plan.state.tags)]:
        raise PublishError(*reasons)


def publish(plan: Plan, private: bool = False) -> str:
    """Publishes a plan that passed `refuse`; returns a report. `private`: make a new repository private.

    Raises:
        PublishError: the Hub refuses, or its files differ from those sent.
    """
    return plan.hub.publish(plan.release, plan.state, plan.changes, private)


def _local(release: Release, content: Path, log: Path) -> list[str]:
    """Why this build can't be published, regardless of the Hub's state."""
    manifest = release.manifest
    if "+" in manifest.version:
        return [f"{release.path}: version {manifest.version} is a held-out split, which is never published"]
    listed = {*manifest.files, "MANIFEST.json"}
    surplus = [
        f"{path}: {'is a link' if path.is_symlink() else 'is not in MANIFEST.json'}; build again"
        for path in sorted(release.path.rglob("*"))
        if path.is_symlink() or (path.is_file() and path.relative_to(release.path).as_posix() not in listed)
    ]
    loaded, errors = load(content)
    rows = compose(loaded) if loaded else []
    if loaded:
        check(loaded, rows, errors)
    if errors.found or loaded is None:
        return [*surplus, f"{content}: has {len(errors.found)} content errors; `helmbench check` prints them"]
    stale = _stale(release, loaded, rows, content)
    return [*surplus, *stale, *_uncommitted(content), *hub_diff.unrecorded(manifest, log)]


def _stale(release: Release, content: Content, rows: list[Row], folder: Path) -> list[str]:
    """How a fresh build would differ."""
    from dataset_builder.writing.write import write

    old = release.manifest
    with tempfile.TemporaryDirectory() as scratch:
        built = Path(scratch) / "helmbench"
        fresh = write(content, rows, built)
        stale = sorted(n for n in {**fresh.files, **old.files} if fresh.files.get(n) != old.files.get(n))
        # MANIFEST.json lists the hash of every file but itself.
        if not stale and file_digest(built / "MANIFEST.json") == file_digest(release.path / "MANIFEST.json"):
            return []
    return [
        f"{release.path}: is not what {folder} builds now ({', '.join(stale) or 'MANIFEST.json'} differ); "
        "run `helmbench build`"
    ]


def _uncommitted(content: Path) -> list[str]:
    """Uncommitted files that a build reads. Content outside a git work tree isn't checked."""
    places = [str(REPOSITORY / "dataset_builder")] if content.resolve().is_relative_to(REPOSITORY) else ["."]
    found = subprocess.run(
        ["git", "-C", str(content), "status", "--porcelain", "--", *places], capture_output=True, text=True, check=False
    )
    return [
        f"{line[3:]}: has changes that are not committed; a release is built from a commit"
        for line in found.stdout.splitlines()
    ]


class Hub:
    """One dataset repository on the Hub, read with the caller's token or none; every error becomes a PublishError."""

    def __init__(self, repo: str, token: str | None) -> None:
        self.repo, self._token = repo, token
        self._api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=token or False)

    def _ask(self, what: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except Exception as error:
            # A client or network error may quote a header: show one line, without the token.
            text = " ".join(f"{error} {error.__cause__ or ''}".split())
            raise PublishError(
                f"{self.repo}: {what}: {text.replace(self._token, '[token]') if self._token else text}"
            ) from None

    def state(self) -> hub_diff.State:
        """The main branch; empty if the repository doesn't exist or this token can't see it."""
        info = self._ask("can't be read", self._info)
        if info is None:
            return hub_diff.State(None, {}, {})
        tree = self._ask(
            "can't be listed",
            lambda: list(self._api.list_repo_tree(self.repo, repo_type="dataset", recursive=True, revision=info.sha)),
        )
        refs = self._ask("can't be listed", lambda: self._api.list_repo_refs(self.repo, repo_type="dataset"))
        return hub_diff.State(info.sha, hub_diff.remote_files(tree), {t.name: t.target_commit for t in refs.tags})

    def _info(self) -> DatasetInfo | None:
        try:
            return self._api.dataset_info(self.repo)
        except RepositoryNotFoundError:
            return None

    def manifest(self, state: hub_diff.State) -> bytes | None:
        """MANIFEST.json on main."""
        if "MANIFEST.json" not in state.files:
            return None
        with tempfile.TemporaryDirectory() as folder:
            path = self._ask(
                "MANIFEST.json can't be read",
                lambda: self._api.hf_hub_download(
                    self.repo, "MANIFEST.json", repo_type="dataset", revision=state.commit, local_dir=folder
                ),
            )
            return Path(path).read_bytes()

    def publish(self, release: Release, state: hub_diff.State, changes: list[hub_diff.Change], private: bool) -> str:
        """Commits, verifies the uploaded files and tags; returns a report."""
        if state.commit is None:
            create = lambda: self._api.create_repo(self.repo, repo_type="dataset", private=private)  # noqa: E731
            self._ask("can't be created", create)
            state = self.state()
        commit = self._commit(release, state, changes)
        arrived = self.state()
        if wrong := [c.name for c in hub_diff.changes(release, arrived.files) if c.what != "same"]:
            raise PublishError(
                f"{self.repo}: commit {commit} has another {wrong[0]} than was sent, so it was not tagged; run again"
            )
        tag = f"v{release.manifest.version}"
        self._ask(
            f"commit {commit} is there, its tag {tag} failed",
            lambda: self._api.create_tag(self.repo, tag=tag, revision=commit, repo_type="dataset"),
        )
        return (
            f'published {self.repo} {tag} as commit {commit}\nload_dataset("{self.repo}", '
            f'revision="{tag}"); score_hash {release.manifest.score_hash}'
        )

    def _commit(self, release: Release, state: hub_diff.State, changes: list[hub_diff.Change]) -> str | None:
        """The commit that holds the release.

        One `create_commit`, not `upload_folder`: huggingface_hub 2.4 may split a folder over several commits, and
        deletes by pattern; this deletes only listed files. `parent_commit` rejects a repository that has changed since.
        """
        sent = [CommitOperationAdd(c.name, str(release.path / c.name)) for c in changes if c.what in ("new", "changed")]
        gone = [CommitOperationDelete(c.name) for c in changes if c.what == "deleted"]
        if not (sent or gone):  # an earlier run committed but stopped before tagging
            return state.commit
        about = "\n".join(f"{name} {getattr(release.manifest, name)}" for name in HASHES)
        made = self._ask(
            "the commit failed",
            lambda: self._api.create_commit(
                self.repo,
                [*gone, *sent],
                commit_message=f"HELMbench {release.manifest.version}",
                commit_description=about,
                repo_type="dataset",
                parent_commit=state.commit,
            ),
        )
        return made.oid
