"""Usage: python -m judge score RUN_DIR | score --replies FILE   [--judge offline | MODEL | openai --base-url URL
--model NAME]
python -m judge score RUN_DIR --judge A --judge B --judge C   [--repeats N] [--calibration FILE …]
python -m judge requests RUN_DIR --model NAME   [--out FILE] [--repeats N]
python -m judge run RUN_DIR --model NAME --base-url URL   [--max-cost X --price-in P --price-out P]
python -m judge compare RUN_A RUN_B …   [--fail-on floor|regression]
python -m judge appropriateness RUN …   [--json FILE] [--csv FILE]
python -m judge agreement | annotate | calibrate | ratings …
python -m judge label CORPUS --model NAME --base-url URL   [--repeats N] [--sample validation|test|all]
python -m judge schema
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

from dataset_builder.release import ReleaseError
from judge.llm.budget import BudgetError
from judge.llm.questions import PLAIN, REASONED, WORDINGS
from replies.errors import EngineError, RunError

# Each is a module of ours with `add_arguments(parser)` and `run(options) -> int`; read only when it is asked for.
MODULES = {
    "agreement": ("judge.people.raters", "how far raters agree: any two or more label files"),
    "annotate": ("judge.people.annotate", "a blinded sheet for human raters: export it, import what they labelled"),
    "appropriateness": (
        "judge.report.ratings_table",
        "the paper's tables over scored runs of the appropriateness task, one row per model, harm first",
    ),
    "ratings": (
        "judge.people.low_ratings",
        "replies rated 1 or 2 as a sheet for hand coding: export it, import what was coded",
    ),
    "calibrate": (
        "judge.calibration.command",
        "how far a judge agrees with the calibration set, and whether it may be used in a submission",
    ),
    "label": (
        "judge.people.corpus_labels",
        "the category of every message of a corpus, by the majority of a judge's repeats",
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns the exit code.

    0 fine, 1 a gate is shut, 2 bad input, 3 the judge can't be reached or some questions got no answer, 4 --max-cost is
    reached, 130 stopped by Ctrl-C.
    """
    given = sys.argv[1:] if arguments is None else arguments
    options = _parser(given[0] if given else "").parse_args(given)
    try:
        return int(options.work(options))
    except (ReleaseError, RunError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    except (EngineError, OSError) as error:
        print(error, file=sys.stderr)
        return 3
    except BudgetError as error:
        print(error, file=sys.stderr)
        return 4
    except KeyboardInterrupt:
        print("stopped; run the same command again to go on where it stopped", file=sys.stderr)
        return 130


def _score(options: argparse.Namespace) -> int:
    if (options.run_dir is None) == (options.replies is None):
        raise RunError("judge score: name either a RUN_DIR of lm_eval or --replies FILE")
    options.judge = options.judge or ["offline"]
    if "openai" in options.judge and not (options.base_url and options.model):
        raise RunError("judge score: --judge openai needs --base-url and --model")
    from judge.pipeline import score_run

    print(score_run(options))
    return 0


def _requests(options: argparse.Namespace) -> int:
    from judge.llm.run import write_requests

    print(write_requests(options))
    return 0


def _run(options: argparse.Namespace) -> int:
    from judge.llm.run import ask

    print(ask(options))
    return 0


def _compare(options: argparse.Namespace) -> int:
    if len(options.runs) < 2 and options.fail_on != "floor":
        raise RunError(
            "judge compare: name two runs or more; the first is the baseline (a single one only with --fail-on floor)"
        )
    from dataset_builder.release import open_release
    from judge.scoring.compare import compare, read, table

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


def _parser(asked: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m judge", description="Judge a run's replies, score it, and compare runs."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    score = commands.add_parser("score", help="replies → verdicts.jsonl, scorecard.json, summary.md, report.html")
    score.set_defaults(work=_score)
    _which_run(score)
    score.add_argument(
        "--out", type=Path, metavar="DIR", help="where to write (default: the run's folder, or a folder beside FILE)"
    )
    score.add_argument(
        "--judge",
        action="append",
        metavar="NAME",
        help="offline (default: rules and word patterns, approximate); a model whose answers `judge run` or "
        "another engine wrote; openai: ask --model first. "
        "Given several times: a panel, which decides by majority",
    )
    score.add_argument(
        "--calibration",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="what `judge calibrate` measured of a judge; repeatable",
    )
    score.add_argument(
        "--model",
        metavar="NAME",
        help="with --judge openai: the LLM judge's model name; use a dated snapshot for figures that you publish",
    )
    score.add_argument(
        "--allow-missing",
        action="store_true",
        help="score although some questions have no answer yet; they are unscored",
    )
    score.add_argument(
        "--show-withheld",
        action="store_true",
        help="show replies with a harm incident, and unscored ones, in the report; keep such a report to yourself",
    )
    _engine(score)
    requests = commands.add_parser(
        "requests", help="what is still to be asked of an LLM judge → requests.jsonl, in the OpenAI batch format"
    )
    requests.set_defaults(work=_requests)
    requests.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="where to write (default: judge/MODEL/requests.jsonl in the run's folder)",
    )
    run = commands.add_parser("run", help="ask an LLM judge at an OpenAI-compatible endpoint what is still to be asked")
    run.set_defaults(work=_run)
    _engine(run)
    for command in (requests, run):
        _which_run(command)
        command.add_argument(
            "--model",
            metavar="NAME",
            required=True,
            help="the judge's model name; use a dated snapshot for figures that you publish",
        )
    for command in (score, requests, run):
        command.add_argument(
            "--repeats",
            type=int,
            default=1,
            metavar="N",
            help="ask every question so often; the majority counts (default: %(default)s)",
        )
        command.add_argument(
            "--prompt",
            choices=WORDINGS,
            default=PLAIN,
            help="the wording of the question, a file of dataset_builder/content/prompts (default: %(default)s)",
        )
        command.add_argument(
            "--reason-first",
            dest="prompt",
            action="store_const",
            const=REASONED[0],
            help=f"let the judge give a short reason first: --prompt {REASONED[0]}",
        )
        _prices(command)
    compare = commands.add_parser("compare", help="paired differences between scored runs; the first is the baseline")
    compare.set_defaults(work=_compare)
    compare.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a folder that `judge score` has written to")
    compare.add_argument(
        "--fail-on",
        choices=("floor", "regression"),
        help="exit 1 where a run breaches a floor, or surely loses points against the baseline",
    )
    compare.add_argument(
        "--samples",
        type=int,
        default=10,
        metavar="N",
        help="how many samples to list where runs differ most (default: %(default)s)",
    )
    compare.add_argument("--json", type=Path, metavar="FILE", help="also write the comparison as JSON")
    commands.add_parser(
        "schema", help="print the JSON Schema of scorecard.json (published as docs/scorecard.schema.json)"
    ).set_defaults(work=_schema)
    for command in (score, requests, run, compare):
        command.add_argument(
            "--dataset",
            type=Path,
            metavar="DIR",
            help="the built dataset (default: $HELMBENCH_DATASET, ./helmbench, then this repository's)",
        )
    for name, (path, about) in MODULES.items():
        command = commands.add_parser(name, help=about)
        if asked == name:
            module = importlib.import_module(path)
            module.add_arguments(command)
            if name in ("calibrate", "label"):
                _engine(command)
                _prices(command)
            command.set_defaults(work=module.run)
    return parser


def _which_run(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "run_dir", nargs="?", type=Path, help="the --output_path of an lm_eval run made with --log_samples"
    )
    command.add_argument(
        "--replies",
        type=Path,
        metavar="FILE",
        help='replies collected elsewhere: JSONL of {"id", "reply"} (conversations: {"id", "replies": [...]})',
    )
    command.add_argument(
        "--messages",
        type=Path,
        metavar="FOLDER",
        help="the labelled corpus that the run was made on, in the place of the dataset's messages",
    )


def _engine(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--base-url",
        metavar="URL",
        required=command.prog.endswith(" run"),
        help="the judge's endpoint; its key comes from OPENAI_API_KEY",
    )
    command.add_argument(
        "--concurrency", type=int, default=16, metavar="N", help="questions under way at once (default: %(default)s)"
    )
    command.add_argument(
        "--timeout", type=float, default=120.0, metavar="SECONDS", help="for one attempt (default: %(default)g)"
    )
    command.add_argument(
        "--max-retries",
        type=int,
        default=6,
        metavar="N",
        help="after 429, 5xx and broken connections, with growing waits (default: %(default)s)",
    )
    command.add_argument(
        "--max-cost",
        type=float,
        metavar="X",
        help="stop (exit 4) before this judge's questions to this run can cost more; needs both prices",
    )


def _prices(command: argparse.ArgumentParser) -> None:
    command.add_argument("--price-in", type=float, metavar="P", help="money per million tokens that the judge reads")
    command.add_argument("--price-out", type=float, metavar="P", help="money per million tokens that the judge writes")


if __name__ == "__main__":
    sys.exit(main())
