"""Writes DATASET_CARD.md from a build: the card for readers of the repository, without the Hub's front matter.

Usage: python scripts/make_card.py [--dataset DIR]. The words stand in dataset_builder/writing/card.md; `make generated`
runs this.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dataset_builder.release import REPOSITORY, ReleaseError, open_release


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="Write DATASET_CARD.md from a built dataset.")
    parser.add_argument("--dataset", type=Path, help="the built dataset (default: as for the judge)")
    options = parser.parse_args(arguments)
    try:
        release = open_release(options.dataset)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    text = (release.path / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    (REPOSITORY / "DATASET_CARD.md").write_text(text, encoding="utf-8")
    print(f"DATASET_CARD.md: version {release.manifest.version}, score_hash {release.manifest.score_hash[:12]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
