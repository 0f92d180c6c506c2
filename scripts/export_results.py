"""Writes a verified submission in a form that others collect: the Hub, Every Eval Ever, or CSV.

Usage: python scripts/export_results.py SUBMISSION --format hub|every-eval-ever|csv --out DIR
           [--dataset DIR] [--dataset-repo ORG/NAME] [--dataset-revision COMMIT] [--demo]
The submission is verified first, whole. Nothing is uploaded. Exit code 1: nothing was written, with the reason.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dataset_builder.files import write_whole
from dataset_builder.release import ReleaseError, open_release
from leaderboard.exports.export import FORMATS, export
from leaderboard.exports.headline import ExportError
from leaderboard.verify.verify import verify
from replies.errors import RunError


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="Export a verified submission.")
    parser.add_argument("submission", type=Path, help="its folder, as make_submission.py wrote it")
    parser.add_argument("--format", choices=FORMATS, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder to write into")
    parser.add_argument("--dataset", type=Path, help="the built dataset (default: as for the judge)")
    parser.add_argument("--dataset-repo", metavar="ORG/NAME", help="the dataset's id on the Hub; needed for hub")
    parser.add_argument("--dataset-revision", metavar="COMMIT", help="its commit there, as push_to_hub.py printed it")
    parser.add_argument(
        "--demo", action="store_true", help="export a run that the offline judge judged, every file marked as a demo"
    )
    options = parser.parse_args(arguments)
    try:
        release = open_release(options.dataset)
        verified = verify(options.submission, release)
        files = export(verified, options.format, release, options.dataset_repo, options.dataset_revision, options.demo)
        for name, text in files.items():
            write_whole(options.out / name, text)
            print(options.out / name)
    except (ExportError, ReleaseError, RunError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
