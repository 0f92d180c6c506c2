"""Six published sets, each read from a checkout of its repository (docs/judge-quality.md).

Each reader takes a checkout and returns its rows, in the order that defines the halves, and a function that reads items
from one of the halves.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

from dataset_builder.release import Release
from dataset_builder.schema import CrisisCategory
from helmbench_common.formats.plain_file import read_bytes
from helmbench_common.formats.refused import shown
from judge.agreement.published.labeled_set import (
    ANSWER,
    RATING,
    REFUSAL,
    REFUSALS,
    Item,
    LabeledSet,
    Row,
    Scale,
    crisis_or_not,
    items,
    nearest,
    read_list,
    read_own,
    read_table,
)
from judge.replies.schema import RunError
from judge.schema import VERDICTS, LabelKind, LabelledRows

HUB_ID = re.compile(r"[A-Za-z0-9][\w.\-]*/[A-Za-z0-9][\w.\-]*")
Rows = tuple[list[Any], Callable[[int, Any], Iterable[Item]]]


def _find(folder: Path, pattern: str, repository: str) -> list[Path]:
    """The files of a checkout that match a pattern, sorted by name."""
    if files := sorted(folder.glob(pattern)):
        return files
    raise RunError(f"{folder}: no file matches {pattern}; expected a checkout of {repository}")


# --- Between Help and Harm: four people's categories of 206 messages, and two clinicians' ratings, 1 to 5, of a reply
# to each. Rows are those of the label files, which share one order.

BHH = "ellisalicante/LLMs-Mental-Health-Crisis"
BHH_PEOPLE = "data/human_label/H?_label*.json"
BHH_CLINICIANS = "data/human_label/H?_scores_*.json"
BHH_JUDGES = {
    "gpt-4o-mini": "sampled_lowest_scores_n200.json",
    "gpt-5-nano": "sampled_lowest_scores_n200__gpt-5-nano.json",
    "llama-4": "sampled_lowest_scores_n200__meta-llama.json",
    "jury": "sampled_lowest_scores_n200__jury.json",
}
CATEGORIES: tuple[str, ...] = get_args(CrisisCategory)
BHH_NAMES = {  # where HelmBench's differ
    "self-harm": "self_harm",
    "substance_abuse_or_withdrawal": "substance_use",
    "risk_taking_behaviours": "risk_taking",
    "risk_taking_behaviors": "risk_taking",
}


def bhh_messages(folder: Path) -> Rows:
    """Each person's categories of the messages. The coarse scale is crisis or not: a message outside the taxonomy is a
    danger of another kind, for which this set has no label.
    """
    files = _find(folder, BHH_PEOPLE, BHH)

    def read(number: int, rows: tuple[Row, ...]) -> Iterator[Item]:
        labels = {p.name[:2]: _bhh_category(own) for p, own in zip(files, rows, strict=True) if own.has("label")}
        if labels:
            yield Item(str(number), (_bhh_message(rows[0]),), labels)

    return _parallel(files), read


def bhh_ratings(folder: Path) -> Rows:
    """The clinicians' ratings, and those of the published judges, which are means of several passes; a reply that a
    clinician skipped is not an item.
    """
    people, clinicians = _find(folder, BHH_PEOPLE, BHH)[:1], _find(folder, BHH_CLINICIANS, BHH)
    sampled = folder / "data/llm_evaluator/sampled"
    judges = {name: sampled / file for name, file in BHH_JUDGES.items() if (sampled / file).is_file()}

    def read(number: int, rows: tuple[Row, ...]) -> Iterator[Item]:
        message, given, others = rows[0], rows[1 : 1 + len(clinicians)], rows[1 + len(clinicians) :]
        if not all(own.has("evaluation") for own in given):
            return
        category = _bhh_category(given[0])
        yield Item(
            str(number),
            (_bhh_message(message),),
            {
                p.name[:2]: own.label("evaluation", RATING.labels, f"{own.number('evaluation'):g}")
                for p, own in zip(clinicians, given, strict=True)
            },
            given[0].text("answer"),
            by=category,
            groups=(category,) if category == "no_crisis" else (category, "any crisis"),
            published={
                name: own.label("evaluation", RATING.labels, str(nearest(own.number("evaluation"))))
                for name, own in zip(judges, others, strict=True)
                if own.has("evaluation")
            },
        )

    return _parallel([*people, *clinicians, *judges.values()]), read


def _parallel(files: list[Path]) -> list[tuple[Row, ...]]:
    """The rows of files in the same order, each with its counterparts."""
    lists = [read_list(path) for path in files]
    for path, own in zip(files, lists, strict=True):
        if len(own) != len(lists[0]):
            raise RunError(f"{path}: has {len(own)} rows; expected {len(lists[0])}, as {files[0].name} has")
    return list(zip(*lists, strict=True))


def _bhh_category(row: Row) -> str:
    given = row.text("label")
    return row.label("label", CATEGORIES, BHH_NAMES.get(given, given))


def _bhh_message(row: Row) -> str:
    parts = row.fields.get("inputs")
    joined = " ".join(parts) if isinstance(parts, list) and all(isinstance(p, str) for p in parts) else parts
    return Row(row.where, {"inputs": joined}).text("inputs")


# --- XSTest: two people's labels of five models' replies. Rows are counted over the files of model_completions/, sorted
# by name. A partial refusal also answers, and HelmBench's rule only covers replies that do nothing but refuse.

XSTEST = "paul-rottger/exaggerated-safety"
XSTEST_LABELS = {"1_full_compliance": ANSWER, "2_full_refusal": REFUSAL, "3_partial_refusal": ANSWER}
XSTEST_PEOPLE = ("annotation_1", "annotation_2")


def xstest(folder: Path) -> Rows:
    columns = ("id", "prompt", "completion", *XSTEST_PEOPLE, "final_label")
    files = _find(folder, "model_completions/*.csv", XSTEST)

    def read(_: int, reply: tuple[str, Row]) -> Iterator[Item]:
        model, row = reply
        labels = {
            name: XSTEST_LABELS[row.label(name, XSTEST_LABELS)]
            for name in (*XSTEST_PEOPLE, "final_label")
            if row.has(name) or name == "final_label"
        }
        settled = labels.pop("final_label")
        said, reply_text, family = (row.text("prompt"),), row.fields["completion"], row.fields["id"]
        yield Item(f"{model}-{row.text('id')}", said, labels, reply_text, "", family, (model,), settled)

    models = {path: path.stem.removeprefix("xstest_v2_completions_") for path in files}
    return [(model, row) for path, model in models.items() for row in read_table(path, columns)], read


# --- Psychosis: two clinicians' marks of four models' replies to 16 delusional messages. Rows are counted message by
# message in the order of the clinicians' consensus, then by model. Judged by keeps-to-reality: a reply that validates
# or expands the delusion is FAIL, any other PASS. The criterion's PARTIAL doesn't question the belief, so a judge's
# PARTIAL is read as FAIL.

PSYCHOSIS = "skeuomorph/psychosis-LLM-evaluation"
PSYCHOSIS_DATA = "pipeline/src/data/"
PSYCHOSIS_MODELS = ("chatgpt", "claude", "deepseek", "llama")
PSYCHOSIS_JUDGES = ("gemini", "kimi", "qwen")
PSYCHOSIS_HARMFUL = (2, 3)  # their criteria: validates the delusion, expands on it


def psychosis(folder: Path) -> Rows:
    """The replies, with each clinician's marks, their consensus, and the published judges' first pass."""
    marked = [f"{model}_criteria_{k}" for model in PSYCHOSIS_MODELS for k in PSYCHOSIS_HARMFUL]

    def by_message(path: Path, columns: Iterable[str] = marked) -> dict[str, Row]:
        return {row.fields["id"].strip(): row for row in read_table(path, ("id", *columns))}

    def label(row: Row, model: str) -> str:
        given = [row.label(f"{model}_criteria_{k}", ("0", "1")) for k in PSYCHOSIS_HARMFUL]
        return "FAIL" if "1" in given else "PASS"

    judged = f"{PSYCHOSIS_DATA}judges/"
    consensus = by_message(_find(folder, f"{judged}human_consensus_*.csv", PSYCHOSIS)[0])
    people = {p.name.partition("_")[0]: by_message(p) for p in sorted(folder.glob(f"{judged}human[0-9]_*.csv"))}
    judges = {}
    for name in PSYCHOSIS_JUDGES:
        passes = sorted(folder.glob(f"{judged}{name}_as_judge_binary_*.csv"))
        if first := [path for path in passes if "_seed_" not in path.name]:  # later passes have their seed in the name
            judges[name] = by_message(first[0])
    source = _find(folder, f"{PSYCHOSIS_DATA}model_responses_to_base_scenarios_*.csv", PSYCHOSIS)[0]
    texts = by_message(source, ("scenarios", *(f"{model}_response" for model in PSYCHOSIS_MODELS)))

    def read(number: int, reply: tuple[str, str]) -> Iterator[Item]:
        key, model = reply
        own = Row(f"{source}: message '{key}'", texts[key].fields if key in texts else {})
        yield Item(
            str(number),
            (own.text("scenarios"),),
            {name: label(marks[key], model) for name, marks in people.items() if key in marks},
            own.text(f"{model}_response"),
            "keeps-to-reality",
            family=key,
            settled=label(consensus[key], model),
            published={name: label(marks[key], model) for name, marks in judges.items() if key in marks},
        )

    return [(key, model) for key in consensus for model in PSYCHOSIS_MODELS], read


# --- VERA-MH: clinicians' ratings of 90 conversations between a person at risk and a chatbot, in five dimensions. Rows
# are conversations, sorted by id; an item is one conversation in one dimension. Clinicians rated whole conversations,
# while HelmBench's criteria judge one reply: all user turns become the message, all chatbot turns the reply.

VERA = "SpringCare/VERA-MH (or a fork with publication_data/human_validation)"
VERA_DATA = "publication_data/human_validation/"
VERA_LABELS = {
    "Best Practice": "PASS",
    "Suboptimal but Low Potential for Harm": "PARTIAL",
    "High Potential for Harm": "FAIL",
    "Not Relevant": None,
}
VERA_TURN = re.compile(r"(?m)^(user|chatbot):\s")
VERA_DIMENSIONS = {  # our criterion, if any; docs/judge-quality.md says why
    "detects": "sees-the-danger",
    "confirms": None,
    "guides": "acts-at-once",
    "supportive": "avoids-helper-errors",
    "boundaries": "says-its-limits",
}
VERA_NOTES = tuple(
    f"{name}: {own or 'no criterion of ours'}; docs/judge-quality.md says why" for name, own in VERA_DIMENSIONS.items()
)


def vera_mh(folder: Path) -> Rows:
    """Every conversation in every dimension that has a criterion and that most clinicians considered relevant."""
    path = _find(folder, f"{VERA_DATA}clinician_judging/*.csv", VERA)[0]
    texts = {p.name.partition("_")[0]: p for p in _find(folder, f"{VERA_DATA}conversations/*/*.txt", VERA)}
    rated: dict[str, list[Row]] = {}
    for row in read_table(
        path, ("clinician_id", "conversation_id", *(f"clinician_{name}" for name in VERA_DIMENSIONS))
    ):
        rated.setdefault(row.fields["conversation_id"].lstrip("#"), []).append(row)

    def read(_: int, conversation: tuple[str, list[Row]]) -> Iterator[Item]:
        key, ratings = conversation
        if key not in texts:
            raise ValueError(f"{ratings[0].where}: no conversation '{shown(key)[:40]}' in {folder / VERA_DATA}")
        parts = VERA_TURN.split(read_bytes(texts[key], "a conversation").decode("utf-8", "replace"))
        turns = list(zip(parts[1::2], parts[2::2], strict=True))
        sides = [[words.strip() for role, words in turns if role == who] for who in ("user", "chatbot")]
        if not all(sides):
            raise ValueError(f"{shown(texts[key])}: holds no turns 'user: …' and 'chatbot: …'")
        said, reply = ("\n\n".join(f"(turn {n}) {words}" for n, words in enumerate(side, start=1)) for side in sides)
        for dimension, criterion in VERA_DIMENSIONS.items():
            name = f"clinician_{dimension}"
            given = {row.fields["clinician_id"]: VERA_LABELS[row.label(name, VERA_LABELS)] for row in ratings}
            labels = {rater: label for rater, label in given.items() if label is not None}
            if criterion and 2 * len(labels) > len(given):
                yield Item(f"{key}/{dimension}", (said,), labels, reply, criterion, family=key, groups=(dimension,))

    return sorted(rated.items()), read


# --- CounselBench-Eval: professionals' overall ratings, 1 to 5, of four responders' answers to 100 questions of a
# public forum. The file has one line per rating and doesn't name the raters, so they are numbered in file order. Rows
# are answers in order of first appearance.

COUNSELBENCH = "izi-ano/CounselBench-Eval"
COUNSELBENCH_COLUMNS = ("questionID", "questionTitle", "questionText", "responder", "response", "overall_score")
COUNSELBENCH_NOTE = "every answer is rated by the protocol of messages that are no crisis: the set names no category"
BREAK = re.compile(r"<\s*+br\s*+(?:/\s*+)?>", re.IGNORECASE)


def counselbench(folder: Path) -> Rows:
    rated: dict[tuple[str, str], list[Row]] = {}
    for row in read_table(_find(folder, "counselbench_eval.csv", COUNSELBENCH)[0], COUNSELBENCH_COLUMNS):
        rated.setdefault((row.fields["questionID"], row.fields["responder"]), []).append(row)

    def read(_: int, ratings: list[Row]) -> Iterator[Item]:
        scores = [
            r.label("overall_score", RATING.labels, r.fields["overall_score"].strip().removesuffix(".0"))
            for r in ratings
            if r.has("overall_score")
        ]
        if not scores:
            return
        row = ratings[0]
        # The title, unless the question repeats it, and the question; some have only a title.
        title, body = row.fields["questionTitle"].strip(), row.fields["questionText"].strip()
        asked = body if title and title in body else f"{title}\n\n{body}".strip()
        yield Item(
            f"{row.text('questionID')}/{row.text('responder')}",
            (BREAK.sub("\n", Row(row.where, {"questionText": asked}).text("questionText")),),
            {f"rating {n}": score for n, score in enumerate(scores, start=1)},
            BREAK.sub("\n", row.text("response")),
            "no_crisis",
            family=row.fields["questionID"],
            groups=(row.fields["responder"],),
        )

    return list(rated.values()), read


class PublishedSet(NamedTuple):
    """What a set's items are judged by, on which scale, and how its files are read; otherwise like a `LabeledSet`."""

    kind: LabelKind
    scale: Scale
    read: Callable[[Path], Rows]
    reads: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()


SETS = {
    "bhh-ratings": PublishedSet("rating", RATING, bhh_ratings),
    "bhh-messages": PublishedSet("category", Scale(CATEGORIES, coarse=crisis_or_not(CATEGORIES)), bhh_messages),
    "xstest": PublishedSet("refusal", REFUSALS, xstest),
    "psychosis": PublishedSet("criterion", Scale(("FAIL", "PASS")), psychosis, reads={"PARTIAL": "FAIL"}),
    "vera-mh": PublishedSet("criterion", Scale(VERDICTS), vera_mh, notes=VERA_NOTES),
    "counselbench": PublishedSet("rating", RATING, counselbench, notes=(COUNSELBENCH_NOTE,)),
}


def read_set(name: str, folder: Path, rows: LabelledRows, release: Release) -> LabeledSet:
    """The labeled items of one half of a set, in the set's order. `name`: a key of `SETS`, or the path of a mapping
    file.
    """
    if own := SETS.get(name):
        return LabeledSet(name, rows, own.kind, own.scale, items(*own.read(folder), rows), own.reads, own.notes)
    if name.endswith((".yaml", ".yml")):
        return read_own(Path(name), folder, rows, release)
    raise RunError(f"--set {name}: unknown set; expected one of {', '.join(SETS)}, or a mapping file (.yaml)")


def located(source: str) -> Path:
    """The folder of that name, or else the latest commit of the Hub dataset OWNER/NAME, fetched into the Hub cache."""
    folder = Path(source)
    if folder.is_dir():
        return folder
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
