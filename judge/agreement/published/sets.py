"""Sets that other people published, by reference: each is a mapping file in `sets/`, with the repository, its commit
and the sha256 of every file it reads (NAME.sha256, in the format of sha256sum). Their text never enters this
repository.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from dataset_builder.corpora.read import Loaded, load_recipe
from dataset_builder.corpora.schema import CorpusError
from dataset_builder.release import Release
from helmbench_common.formats.plain_file import sha256
from helmbench_common.formats.refused import FormatError, shown
from judge.agreement.published.labeled_set import LabeledSet, read_mapping
from judge.replies.schema import RunError, run_error
from judge.schema import LabelledRows

MAPPINGS = Path(__file__).with_name("sets")
SETS = tuple(sorted(path.stem for path in MAPPINGS.glob("*.yaml")))
HUB_ID = re.compile(r"[A-Za-z0-9][\w.\-]*/[A-Za-z0-9][\w.\-]*")


def read_set(name: str, source: Path | str | None, rows: LabelledRows, release: Release) -> LabeledSet:
    """The items of one half of a set, in its order. `name`: one of `SETS`, or a mapping file. `source`: a checkout, a
    Hub dataset, or None for what `field fetch` fetched (a mapping file: its own folder).

    Raises:
        RunError: the set is unknown or not fetched, a file differs from the one its figures belong to, or a row is bad.
    """
    loaded = load_set(name)
    folder = located(loaded, source)
    return read_mapping(loaded, folder, rows, release)


def mapping_of(name: str) -> Path:
    """The mapping file of a set, or `name` if it is one."""
    if name in SETS:
        return MAPPINGS / f"{name}.yaml"
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    raise RunError(f"{shown(name)}: unknown set; expected one of {', '.join(SETS)}, or a mapping file (.yaml)")


def load_set(name: str) -> Loaded:
    """The mapping file of a set, read."""
    try:
        return load_recipe(mapping_of(name))
    except CorpusError as error:
        raise RunError(str(error)) from None


def cache() -> Path:
    """Where fetched sets are: HELMBENCH_FIELD, or helmbench/field in the user's cache."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("HELMBENCH_FIELD") or home / "helmbench" / "field")


def located(loaded: Loaded, source: Path | str | None) -> Path:
    """The folder with a set's files, none of which is missing or changed."""
    folder = _folder(loaded, source)
    check_files(loaded, folder)
    return folder


def _folder(loaded: Loaded, source: Path | str | None) -> Path:
    own = loaded.path.parent != MAPPINGS
    if source is None:
        folder = loaded.path.parent if own else cache() / loaded.recipe.name
        if own or folder.is_dir():
            return folder
        raise RunError(
            f"{loaded.recipe.name}: not fetched yet; run `helmbench field fetch {loaded.recipe.name}`, or name a "
            f"checkout of {loaded.recipe.repository} with --from"
        )
    if Path(source).is_dir():
        return Path(source)
    source = str(source)
    if not HUB_ID.fullmatch(source):
        raise RunError(
            f"--from {source}: no such folder; expected a checkout of the set's repository, or a Hub dataset "
            "(OWNER/NAME)"
        )
    from huggingface_hub import snapshot_download  # takes half a second to import
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        found = Path(snapshot_download(source, repo_type="dataset", endpoint=os.environ.get("HF_ENDPOINT")))
    except RepositoryNotFoundError:
        why = "the Hub has no dataset of this name that your token, or no token, can read"
        raise RunError(f"--from {source}: no such folder, and {why}") from None
    except (HFValidationError, OSError) as error:
        why = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise RunError(f"--from {source}: no such folder, and the Hub dataset can't be fetched: {why}") from None
    sys.stderr.write(f"{source}: from the Hub, commit {found.name}\n")
    return found


def pinned(loaded: Loaded) -> Iterator[tuple[str, str]]:
    """The path and sha256 of every file that a set's figures belong to."""
    listed = loaded.path.with_suffix(".sha256")
    for line in listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else ():
        digest, _, path = line.partition("  ")
        yield path, digest


def check_files(loaded: Loaded, folder: Path) -> None:
    """Raises RunError, which names every file that is missing or has changed."""
    problems, listed = [], [*pinned(loaded)]
    where = f"{loaded.recipe.repository} at commit {(loaded.recipe.commit or '')[:12]}"
    if listed and not any((folder / path).exists() for path, _ in listed):
        raise RunError(f"{shown(folder)}: has none of the set's files; expected a checkout of {where}")
    for path, expected in listed:
        try:
            found = sha256(folder / path, "")
        except FormatError:
            problems.append(f"{shown(folder / path)}: can't be read; expected a checkout of {where}")
        else:
            if found != expected:
                problems.append(f"{shown(folder / path)}: has changed; expected the file of {where}")
    if problems:
        raise run_error(problems)


def fetch(loaded: Loaded) -> Path:
    """Fetches a set's commit with git into the cache, and checks its files; returns the folder.

    Raises:
        RunError: the cache is inside a checkout, git fails, or a file isn't the expected one.
    """
    recipe, folder = loaded.recipe, cache() / loaded.recipe.name
    if not recipe.repository or not recipe.commit:
        raise RunError(f"{recipe.name}: has no commit to fetch; download {recipe.repository} and name it with --from")
    for parent in folder.absolute().parents:
        if (parent / ".git").exists():
            raise RunError(f"{folder}: is inside the checkout {parent}, where a commit could publish people's words")
    folder.parent.mkdir(parents=True, exist_ok=True)
    host = os.environ.get("HELMBENCH_GIT", "https://github.com")
    with TemporaryDirectory(dir=folder.parent) as made:
        for command in (
            ("init", "--quiet"),
            ("fetch", "--quiet", "--depth", "1", f"{host}/{recipe.repository}", recipe.commit),
            ("checkout", "--quiet", "--force", recipe.commit),
        ):
            done = subprocess.run(["git", "-C", made, *command], capture_output=True, text=True)
            if done.returncode:
                raise RunError(f"{recipe.name}: git {command[0]} failed: {done.stderr.strip()[-300:]}")
        shutil.rmtree(folder, ignore_errors=True)
        Path(made).rename(folder)
        Path(made).mkdir()  # for the context to remove
    check_files(loaded, folder)
    return folder
