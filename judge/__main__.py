"""Usage: python -m judge score RUN_DIR | score --replies FILE   [--judge offline|openai --base-url URL --model NAME]"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dataset_builder.release import ReleaseError
from judge.errors import EngineError, RunError


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns the exit code (0 fine, 2 bad input, 3 the judge can't be reached)."""
    options = _parser().parse_args(arguments)
    if (options.run_dir is None) == (options.replies is None):
        print("judge score: name either a RUN_DIR of lm_eval or --replies FILE", file=sys.stderr)
        return 2
    if options.judge == "openai" and not (options.base_url and options.model):
        print("judge score: --judge openai needs --base-url and --model", file=sys.stderr)
        return 2
    from judge.pipeline import score_run

    try:
        outcome = score_run(options)
    except (ReleaseError, RunError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    except (EngineError, OSError) as error:
        print(error, file=sys.stderr)
        return 3
    print(outcome)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m judge", description="Judge a run's replies and score it.")
    commands = parser.add_subparsers(dest="command", required=True)
    score = commands.add_parser("score", help="replies → verdicts.jsonl, scorecard.json, summary.md, report.html")
    score.add_argument("run_dir", nargs="?", type=Path, help="the --output_path of an lm_eval run made with --log_samples")
    score.add_argument(
        "--replies", type=Path, metavar="FILE", help='replies collected elsewhere: JSONL of {"id", "reply"} (conversations: {"id", "replies": [...]})'
    )
    score.add_argument("--dataset", type=Path, metavar="DIR", help="the built dataset (default: $HELMBENCH_DATASET, ./helmbench, then this repository's)")
    score.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: the run's folder, or a folder beside FILE)")
    score.add_argument("--judge", default="offline", help="offline (default: rules and word patterns, approximate) or openai (any OpenAI-compatible endpoint)")
    score.add_argument("--base-url", metavar="URL", help="endpoint of the LLM judge; its key comes from OPENAI_API_KEY")
    score.add_argument("--model", metavar="NAME", help="the LLM judge's model name; use a dated snapshot for figures that you publish")
    score.add_argument("--concurrency", type=int, default=16, help="requests to the LLM judge at once (default: %(default)s)")
    score.add_argument(
        "--show-withheld", action="store_true", help="show replies with a harm incident, and unscored ones, in the report; keep such a report to yourself"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
