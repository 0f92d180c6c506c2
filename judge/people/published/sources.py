"""Where a set lies: a folder, or a dataset of the Hub, which is fetched into the Hub's usual cache."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from judge.replies.errors import RunError

HUB_ID = re.compile(r"[A-Za-z0-9][\w.\-]*/[A-Za-z0-9][\w.\-]*")


def located(source: str) -> Path:
    """The folder of that name, or else the whole of the Hub's dataset OWNER/NAME at its newest commit. What was fetched
    before is not fetched again, and stands in where the Hub can't be reached.

    Raises:
        RunError: there is neither.
    """
    folder = Path(source)
    if folder.is_dir():
        return folder
    if not HUB_ID.fullmatch(source):
        raise RunError(
            f"--from {source}: no such folder; expected a checkout of the set's repository, or a dataset of the Hub "
            "(OWNER/NAME)"
        )
    return _fetched(source)


def _fetched(name: str) -> Path:
    from huggingface_hub import snapshot_download  # half a second to import
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError

    try:
        found = Path(snapshot_download(name, repo_type="dataset", endpoint=os.environ.get("HF_ENDPOINT")))
    except RepositoryNotFoundError:
        why = "the Hub has no dataset of this name that may be read without a token, or with this one"
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        why = f"the Hub's dataset can't be fetched: {_first_line(error)}"
    else:
        sys.stderr.write(f"{name}: from the Hub, commit {found.name}\n")
        return found
    raise RunError(f"--from {name}: no such folder, and {why}")


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
