"""Publishes a built dataset on the Hugging Face Hub: one commit, tagged with its version.

Usage: python dataset_builder/publishing/push_to_hub.py ORG/NAME [--dataset DIR] [--content DIR] [--changelog FILE]
[--private] [--yes]
Without --yes it only says what it would do: every file with size and hash, and how it differs from what is there.
The token is read from HF_TOKEN and nowhere else; HF_ENDPOINT names another Hub. Exit code 1: refused, with every
reason.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, DatasetInfo, HfApi
from huggingface_hub.errors import RepositoryNotFoundError

from dataset_builder.prompts import CONTENT
from dataset_builder.publishing import changelog, hub_diff
from dataset_builder.release import REPOSITORY, Release, ReleaseError, file_digest, open_release

T = TypeVar("T")


class PublishError(Exception):
    """Why nothing (more) was published; one reason per line, no token in any of them."""


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(
        description="Publish a built dataset on the Hub; without --yes only say what would be done."
    )
    parser.add_argument("repo", metavar="ORG/NAME", help="the dataset's id on the Hub, such as org/helmbench")
    parser.add_argument("--dataset", type=Path, help="the build (default: $HELMBENCH_DATASET, else ./helmbench)")
    parser.add_argument(
        "--content", type=Path, default=CONTENT, help="the content it was built from (default: the repository's)"
    )
    parser.add_argument(
        "--changelog",
        type=Path,
        default=changelog.CHANGELOG,
        help="the changelog that records the release (default: the repository's)",
    )
    parser.add_argument(
        "--private", action="store_true", help="create the repository as a private one, if there is none yet"
    )
    parser.add_argument("--yes", action="store_true", help="do it; without this nothing is sent")
    options = parser.parse_args(arguments)
    try:
        if not re.fullmatch(r"[\w.\-]+/[\w.\-]+", options.repo):
            raise PublishError(f"'{options.repo}' is no dataset id; expected ORG/NAME, such as org/helmbench")
        token = _token(options.yes)
        release = open_release(options.dataset)
        hub = Hub(options.repo, token)
        state = hub.state()
        changes = hub_diff.changes(release, state.files)
        print(hub_diff.listing(release, options.repo, state, changes))
        reasons = [
            *_local(release, options.content, options.changelog),
            *hub_diff.refusals(release, hub.manifest(state), state.tags),
        ]
        if reasons:
            raise PublishError("\n".join(reasons))
        if not options.yes:
            print("dry run: nothing was sent; add --yes to publish")
            return 0
        print(hub.publish(release, state, changes, options.private))
    except (PublishError, ReleaseError, changelog.ChangelogError) as error:
        print(error, file=sys.stderr)
        print("nothing was published", file=sys.stderr)
        return 1
    return 0


def _token(needed: bool) -> str | None:
    """HF_TOKEN. A token stored by `hf auth login` is not looked for: who publishes says so, each time."""
    token = os.environ.get("HF_TOKEN", "").strip() or None
    if token and not re.fullmatch(r"[!-~]+", token):
        raise PublishError("HF_TOKEN holds characters that no token has (not shown); copy it again")
    if needed and not token:
        raise PublishError("HF_TOKEN is not set; expected a token with write access in the environment")
    return token


def _local(release: Release, content: Path, log: Path) -> list[str]:
    """Why this build must not leave the machine, whatever is on the Hub."""
    from dataset_builder.composing.compose import compose
    from dataset_builder.checking.checks import check
    from dataset_builder.reading.load import load
    from dataset_builder.writing.write import write

    manifest, reasons = release.manifest, []
    if "+" in manifest.version:
        return [
            f"{release.path}: version {manifest.version} is a held-out split, which is never published "
            "(docs/held-out.md)"
        ]
    listed = {*manifest.files, "MANIFEST.json"}
    for path in sorted(p for p in release.path.rglob("*") if p.is_file() or p.is_symlink()):
        name = path.relative_to(release.path).as_posix()
        if name not in listed or path.is_symlink():
            reasons.append(
                f"{path}: {'is a link' if path.is_symlink() else 'is not in MANIFEST.json'}; a build holds "
                "only what it wrote: build again"
            )
    loaded, errors = load(content)
    if loaded:
        rows = compose(loaded)
        check(loaded, rows, errors)
    if errors.found or loaded is None:
        return [
            *reasons,
            f"{content}: has {len(errors.found)} content errors; `python -m dataset_builder check` prints them",
        ]
    with tempfile.TemporaryDirectory() as scratch:
        fresh = write(loaded, rows, Path(scratch) / "helmbench")
        stale = sorted(n for n in {**fresh.files, **manifest.files} if fresh.files.get(n) != manifest.files.get(n))
        # MANIFEST.json lists every other file's hash and not its own.
        if stale or file_digest(Path(scratch) / "helmbench" / "MANIFEST.json") != file_digest(
            release.path / "MANIFEST.json"
        ):
            reasons.append(
                f"{release.path}: is not what {content} builds now ({', '.join(stale) or 'MANIFEST.json'} "
                "differ); run `python -m dataset_builder build`"
            )
    return [*reasons, *_uncommitted(content), *hub_diff.unrecorded(manifest, log)]


def _uncommitted(content: Path) -> list[str]:
    """Files that a build reads and git has not, so that nobody could look them up: content outside of any git work tree
    is its owner's business.
    """
    places = [str(REPOSITORY / "dataset_builder")] if content.resolve().is_relative_to(REPOSITORY) else ["."]
    found = subprocess.run(
        ["git", "-C", str(content), "status", "--porcelain", "--", *places], capture_output=True, text=True, check=False
    )
    return [
        f"{line[3:]}: has changes that are not committed; a release is built from a commit"
        for line in found.stdout.splitlines()
    ]


class Hub:
    """One dataset repository on the Hub, asked with the caller's token or none; every error comes back as a
    PublishError.
    """

    def __init__(self, repo: str, token: str | None) -> None:
        self.repo, self._token = repo, token
        self._api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=token or False)

    def _ask(self, what: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except (
            Exception
        ) as error:  # whatever the client or the network raises may quote a header: one line leaves, without the token
            text = " ".join(f"{error} {error.__cause__ or ''}".split())
            raise PublishError(
                f"{self.repo}: {what}: {text.replace(self._token, '[token]') if self._token else text}"
            ) from None

    def state(self) -> hub_diff.State:
        """What is there; a repository that doesn't exist, or that this token may not see, is empty."""
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
        """MANIFEST.json as it stands on main."""
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
        """Commits, checks what has arrived, tags; returns what was done.

        One `create_commit` and not `upload_folder`, which is made of it: huggingface_hub 2.4 may spread a folder over
        several
        commits, and deletes by pattern where this deletes what was listed. `parent_commit` refuses a repository that
        moved since.
        """
        if state.commit is None:
            create = lambda: self._api.create_repo(self.repo, repo_type="dataset", private=private)  # noqa: E731
            self._ask("can't be created", create)
            state = self.state()
        version = release.manifest.version
        sent = [CommitOperationAdd(c.name, str(release.path / c.name)) for c in changes if c.what in ("new", "changed")]
        gone = [CommitOperationDelete(c.name) for c in changes if c.what == "deleted"]
        commit, title = state.commit, f"HELMbench {version}"
        if sent or gone:  # else a run that was stopped before its tag left nothing but the tag to do
            about = "\n".join(f"{name} {getattr(release.manifest, name)}" for name in changelog.HASHES)
            made = self._ask(
                "the commit failed",
                lambda: self._api.create_commit(
                    self.repo,
                    [*gone, *sent],
                    commit_message=title,
                    commit_description=about,
                    repo_type="dataset",
                    parent_commit=state.commit,
                ),
            )
            commit = made.oid
        arrived = self.state()
        if wrong := [c.name for c in hub_diff.changes(release, arrived.files) if c.what != "same"]:
            raise PublishError(
                f"{self.repo}: commit {commit} holds another {wrong[0]} than was sent, so it was not tagged; run again"
            )
        tag = f"v{version}"
        self._ask(
            f"commit {commit} is there, its tag {tag} failed",
            lambda: self._api.create_tag(self.repo, tag=tag, revision=commit, repo_type="dataset"),
        )
        return (
            f'published {self.repo} {tag} as commit {commit}\nload_dataset("{self.repo}", '
            f'revision="{tag}"); score_hash {release.manifest.score_hash}'
        )


if __name__ == "__main__":
    sys.exit(main())
