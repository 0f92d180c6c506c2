"""Usage: python -m judge score RUN_DIR | score --replies FILE   [--judge offline|openai --base-url URL --model NAME]
python -m judge compare RUN_A RUN_B …   [--fail-on floor|regression]
python -m judge schema
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from dataset_builder.release import ReleaseError
from judge.errors import EngineError, RunError


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns the exit code (0 fine, 1 a gate is shut, 2 bad input, 3 the judge can't be reached)."""
    options = _parser().parse_args(arguments)
    try:
        return {"score": _score, "compare": _compare, "schema": _schema}[options.command](options)
    except (ReleaseError, RunError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    except (EngineError, OSError) as error:
        print(error, file=sys.stderr)
        return 3


def _score(options: argparse.Namespace) -> int:
    if (options.run_dir is None) == (options.replies is None):
        raise RunError("judge score: name either a RUN_DIR of lm_eval or --replies FILE")
    if options.judge == "openai" and not (options.base_url and options.model):
        raise RunError("judge score: --judge openai needs --base-url and --model")
    from judge.pipeline import score_run

    print(score_run(options))
    return 0


def _compare(options: argparse.Namespace) -> int:
    if len(options.runs) < 2 and options.fail_on != "floor":
        raise RunError("judge compare: name two runs or more; the first is the baseline (a single one only with --fail-on floor)")
    from dataset_builder.release import open_release
    from judge.compare import compare, read, table

    release = open_release(options.dataset)
    comparison = compare([read(folder, release) for folder in options.runs], options.fail_on, options.samples)
    print(table(comparison))
    if options.json:
        options.json.write_text(comparison.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return 1 if comparison.failed else 0


def _schema(options: argparse.Namespace) -> int:
    from judge.schema import Scorecard

    print(json.dumps(Scorecard.model_json_schema(), indent=1))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m judge", description="Judge a run's replies, score it, and compare runs.")
    commands = parser.add_subparsers(dest="command", required=True)
    score = commands.add_parser("score", help="replies → verdicts.jsonl, scorecard.json, summary.md, report.html")
    score.add_argument("run_dir", nargs="?", type=Path, help="the --output_path of an lm_eval run made with --log_samples")
    score.add_argument(
        "--replies", type=Path, metavar="FILE", help='replies collected elsewhere: JSONL of {"id", "reply"} (conversations: {"id", "replies": [...]})'
    )
    score.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: the run's folder, or a folder beside FILE)")
    score.add_argument("--judge", default="offline", help="offline (default: rules and word patterns, approximate) or openai (any OpenAI-compatible endpoint)")
    score.add_argument("--base-url", metavar="URL", help="endpoint of the LLM judge; its key comes from OPENAI_API_KEY")
    score.add_argument("--model", metavar="NAME", help="the LLM judge's model name; use a dated snapshot for figures that you publish")
    score.add_argument("--concurrency", type=int, default=16, help="requests to the LLM judge at once (default: %(default)s)")
    score.add_argument(
        "--show-withheld", action="store_true", help="show replies with a harm incident, and unscored ones, in the report; keep such a report to yourself"
    )
    compare = commands.add_parser("compare", help="paired differences between scored runs; the first is the baseline")
    compare.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a folder that `judge score` has written to")
    compare.add_argument("--fail-on", choices=("floor", "regression"), help="exit 1 where a run breaches a floor, or surely loses points against the baseline")
    compare.add_argument("--samples", type=int, default=10, metavar="N", help="how many samples to list where runs differ most (default: %(default)s)")
    compare.add_argument("--json", type=Path, metavar="FILE", help="also write the comparison as JSON")
    commands.add_parser("schema", help="print the JSON Schema of scorecard.json (published as docs/scorecard.schema.json)")
    for command in (score, compare):
        command.add_argument("--dataset", type=Path, metavar="DIR", help="the built dataset (default: $HELMBENCH_DATASET, ./helmbench, then this repository's)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
