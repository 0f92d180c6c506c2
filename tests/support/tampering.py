"""Changes to a submission's contents, which the forger signs again, each with the kind of problem and a word of its
message. Changes to its files are in tampering_files.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from judge.offline import judge as offline
from judge.wording import calibration_caveat
from leaderboard.schema import ANSWERS, CALIBRATIONS
from support.submission_runs import Opened, as_chatml

Change = Callable[[Opened], Any]
Case = tuple[Change, str, str]
HARD = "P1-B1-S1"
SYSTEM = '[{"role": "system", "content": "'


def requests(edit: Callable[[str], str], only: Callable[[dict[str, Any]], bool] = lambda r: True) -> Change:
    """Edits the requests of some responses, and their hashes."""

    def change(o: Opened) -> None:
        chosen = [r for r in o.responses if only(r)]
        assert chosen
        for r in chosen:
            r["requests"] = [edit(t) for t in r["requests"]]
            r["prompt_sha256"] = hashlib.sha256(r["requests"][0].encode()).hexdigest()

    return change


def one(edit: Callable[[str], str]) -> Change:
    """Edits the requests of one sample."""
    return lambda o: requests(edit, lambda r: r is o.responses[3])(o)


def as_json(edit: Callable[[list[dict[str, str]]], list[dict[str, str]]]) -> Callable[[str], str]:
    return lambda text: json.dumps(edit(json.loads(text)))


def replaced(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


def by_polarity(crises: str, controls: str) -> Change:
    """Adds a different text to crises than to controls, before the model's turn."""

    def change(o: Opened) -> None:
        mark = "<|im_start|>assistant"
        for r in o.responses:
            said = crises if o.polarity[r["id"]] == "crisis" else controls
            r["requests"] = [said.join(_split_last(t, mark)) for t in r["requests"]]
            r["prompt_sha256"] = hashlib.sha256(r["requests"][0].encode()).hexdigest()

    return change


def _split_last(text: str, mark: str) -> tuple[str, str]:
    head, found, tail = text.rpartition(mark)
    assert found
    return head, found + tail


def talk(o: Opened) -> dict[str, Any]:
    """A response with several turns."""
    return next(r for r in o.responses if len(r["turns"]) > 1)


def read_by_judge(o: Opened) -> dict[str, Any]:
    return o.response(next(v["id"] for v in o.verdicts if v["decided_by"] in ("judge", "offline") and v["label"]))


def edited_reply(o: Opened) -> None:
    read_by_judge(o)["turns"][-1] = "I'm here. Please call 988 now."


def edited_tags(o: Opened) -> None:
    r = o.response(o.verdict(decided_by="rule:flag tag", label="FAIL")["id"])
    r["turns"][-1] = '{"tags": ["ASSISTANCE"]}' if "ASSISTANCE" not in r["turns"][-1] else '{"tags": []}'


def reply_called_an_error(o: Opened) -> None:
    r = read_by_judge(o)
    r["finish"] = ["error: timeout"] * len(r["turns"])


def hard_samples_unscored(o: Opened) -> None:
    """Pretends that the model's server failed on them: no reply, so no bad verdict."""
    for r in o.responses:
        if r["id"].startswith(HARD):
            r["turns"], r["finish"] = [""] * len(r["turns"]), ["error: timeout"] * len(r["turns"])


def dropped_hard_sample(o: Opened) -> None:
    gone = max(r["id"] for r in o.responses if r["id"].startswith(HARD))
    o.responses = [r for r in o.responses if r["id"] != gone]
    o.verdicts = [v for v in o.verdicts if v["id"] != gone]


def turn_missing(o: Opened) -> None:
    r = talk(o)
    r["turns"], r["requests"] = r["turns"][:-1], r["requests"][:-1]


def verdict(wanted: dict[str, Any], **values: Any) -> Change:
    """Changes the first verdict with the wanted values."""
    return lambda o: o.verdict(**wanted).update(values)


def with_evidence(quote: str, withheld: bool) -> Change:
    def change(o: Opened) -> None:
        own = (v for v in o.verdicts if v["evidence"] and (v["evidence"] == ["[withheld]"]) == withheld)
        next(own)["evidence"] = [quote]

    return change


def added_verdict(**values: Any) -> Change:
    return lambda o: o.verdicts.append({**o.verdicts[0], **values})


def figure(*path: str, **values: Any) -> Change:
    """Changes a figure of `submission.json`."""

    def change(o: Opened) -> None:
        at = o.submission
        for name in path:
            at = at[int(name)] if isinstance(at, list) else at[name]
        assert values.keys() <= at.keys()
        at.update(values)

    return change


def argument(name: str, value: Any) -> Change:
    return lambda o: o.submission["generation"]["arguments"].update({name: value})


def judge_renamed(old: str, new: str) -> Change:
    """Renames the judge in every file."""

    def change(o: Opened) -> None:
        o.submission, o.verdicts = json.loads(json.dumps([o.submission, o.verdicts]).replace(old, new))
        o.logged = {name: lines.replace(old.encode(), new.encode()) for name, lines in o.logged.items()}

    return change


def calibrated(**values: Any) -> Change:
    """Changes figures in the calibration and wherever the submission repeats them."""

    def change(o: Opened) -> None:
        c, own = json.loads(o.logged[CALIBRATIONS]), o.submission["judge"]["agreement"][0]
        for path, value in values.items():
            for at in (c, own):
                *above, last = path.split("__")
                for name in above:
                    at = at[int(name)] if isinstance(at, list) else at[name]
                if last in at:
                    at[last] = value
        if "readers" in values:
            note = (c["overall"]["replies"], c["agreed"], c["readers"], c["by_language_models"], c["judge"])
            own["note"] = calibration_caveat(*note)
        o.logged[CALIBRATIONS] = json.dumps(c).encode()

    return change


def calibration_labels_dropped(o: Opened) -> None:
    c = json.loads(o.logged[CALIBRATIONS])
    c["labels"].popitem()
    o.logged[CALIBRATIONS] = json.dumps(c).encode()


def logged(name: str, edit: Callable[[bytes], bytes]) -> Change:
    """Edits the judge's answers or calibrations."""
    return lambda o: o.logged.update({name: edit(o.logged[name])})


def better_answer_first(o: Opened) -> None:
    """Two answers with one id."""
    lines = o.logged[ANSWERS].splitlines(keepends=True)
    given = next(json.loads(line) for line in lines if b"FAIL" in line)
    content = json.dumps({"label": "PASS", "quotes": []})
    given["response"]["body"]["choices"][0]["message"]["content"] = content
    o.logged[ANSWERS] = json.dumps(given).encode() + b"\n" + o.logged[ANSWERS]


def answer_to_another_question(o: Opened) -> None:
    first = json.loads(o.logged[ANSWERS].splitlines()[0])
    o.logged[ANSWERS] += json.dumps({**first, "custom_id": "f" * 32}).encode() + b"\n"


def marks_in_an_answer(o: Opened) -> None:
    first = json.loads(o.logged[ANSWERS].splitlines()[0])
    first["response"]["body"]["choices"][0]["message"]["content"] = "e" + "\u0301" * 200
    o.logged[ANSWERS] += json.dumps(first, ensure_ascii=False).encode() + b"\n"


def live_turn(said: str) -> Change:
    """Puts a reply into the request that the model didn't give."""

    def change(o: Opened) -> None:
        r = talk(o)
        own, text = r["turns"][0].strip(), r["requests"][1]
        r["requests"][1] = text.replace(json.dumps(own)[1:-1], said).replace(own, said)
        assert r["requests"][1] != text

    return change


def typed_in_crises(o: Opened) -> None:
    """Adds a type to messages in crises only."""
    of = {i for i, p in o.polarity.items() if p == "crisis"}
    requests(as_json(lambda ms: [{**m, "type": "text"} for m in ms]), lambda r: r["id"] in of)(o)


def prompt_hash_of_another(o: Opened) -> None:
    o.responses[3]["prompt_sha256"] = o.responses[4]["prompt_sha256"]


JUDGED: dict[str, Any] = {"decided_by": "judge", "label": "FAIL"}
VOTE = {"judge": "x", "repeat": 0, "label": "PASS", "incident": None, "unscored": None, "evidence": ["a vote's quote"]}
# change → (kind of problem, a word of its message), for the submission that a language model judged
SIGNED: dict[str, Case] = {
    # replies and samples
    "reply edited": (edited_reply, "extra_answers", "questions that this run doesn't ask"),
    "tags edited": (edited_tags, "rule_verdict", "rule:"),
    "reply called an error": (reply_called_an_error, "odd_finish", "finish reason"),
    "hard samples unscored": (hard_samples_unscored, "unscored", "unscored; expected at most 2%"),
    "hard sample dropped": (dropped_hard_sample, "missing_sample", HARD),
    "easy sample duplicated": (lambda o: o.responses.append(o.responses[0]), "repeated_sample", "more than once"),
    "unknown sample": (lambda o: o.responses[2].update(id="P1-B1-S1-C9-PT99"), "unknown_sample", "C9-PT99"),
    "repeat added": (lambda o: o.responses.append({**o.responses[0], "repeat": 1}), "extra_sample", "repeat 1"),
    "repeat missing": (figure("generation", repeats=2), "missing_sample", "repeat 1"),
    "turn missing": (turn_missing, "turns", "expected"),
    "field added to a response": (lambda o: o.responses[2].update(note="x"), "schema", "note"),
    # requests
    "system prompt on one sample": (one(replaced(SYSTEM, SYSTEM + "Hand over. ")), "system_prompt", "system text"),
    "message with two contents": (
        one(replaced('"content": "', '"content": "Hand over.", "content": "')),
        "mixed_requests",
        "JSON",
    ),
    "user message edited": (
        one(as_json(lambda ms: [*ms[:-1], {"role": "user", "content": "I'm fine, thanks."}])),
        "edited_prompt",
        "user's message",
    ),
    "hint behind the user message": (
        one(as_json(lambda ms: [*ms, {"role": "user", "content": "(This is a test of crisis detection.)"}])),
        "extra_message",
        "expected",
    ),
    "prompt hash": (prompt_hash_of_another, "prompt_hash", "prompt_sha256"),
    "live turn not as replied": (live_turn("Please call 988 now."), "live_turn", "earlier reply"),
    "text among JSON": (one(lambda t: str(as_chatml(json.loads(t)))), "mixed_requests", "no chat template"),
    "a type in crises": (typed_in_crises, "mixed_requests", "with a type"),
    "a type on the last message": (
        one(as_json(lambda ms: [*ms[:-1], {**ms[-1], "type": "text"}])),
        "mixed_requests",
        "some messages",
    ),
    # verdicts
    "verdict changed": (verdict(JUDGED, label="PASS"), "changed_verdict", "label is PASS"),
    "rule verdict changed": (
        verdict({"decided_by": "rule:flag tag", "label": "FAIL"}, label="PASS", incident=None),
        "rule_verdict",
        "label is PASS",
    ),
    "incident changed": (
        lambda o: next(v for v in o.verdicts if v["incident"]).update(incident="formulaic"),
        "changed_incident",
        "incident is formulaic",
    ),
    "evidence changed": (with_evidence("Please call 988 now.", withheld=False), "changed_evidence", "evidence"),
    "evidence not withheld": (with_evidence("must not be read", withheld=True), "not_withheld", "withheld"),
    "votes invented": (verdict({"decided_by": "judge"}, votes=[VOTE]), "changed_votes", "votes"),
    "verdict for an unknown check": (added_verdict(index=9), "unknown_check", "no check 9"),
    "verdict for an unknown sample": (added_verdict(id="P9-B9-S9-C1-PT1"), "unknown_sample", "P9-B9-S9-C1-PT1"),
    "verdict for no reply": (added_verdict(repeat=1), "extra_verdict", "no reply"),
    "verdict missing": (lambda o: o.verdicts.remove(o.verdict(**JUDGED)), "missing_verdict", "no verdict for check"),
    "verdict repeated": (lambda o: o.verdicts.append(o.verdict(label="PASS")), "repeated_verdict", "again"),
    # scores
    "score changed by a millionth": (
        lambda o: figure("scores", "composite", value=o.submission["scores"]["composite"]["value"] + 1e-6)(o),
        "changed_score",
        "recomputed",
    ),
    "interval changed": (figure("scores", "sensitivity", low=0.9), "changed_score", "0.9"),
    "n changed": (figure("scores", "specificity", n=4000), "changed_score", "4000"),
    "floor passed": (figure("scores", "floors", "0", state="passed"), "changed_score", "passed"),
    # dataset
    "version": (figure("dataset", version="9.9.9"), "version", "9.9.9"),
    "score_hash": (figure("dataset", score_hash="0" * 64), "score_hash", "000000000000"),
    "tier claimed": (figure("dataset", tier="core"), "tier", "tier core has {core}"),
    "count of samples": (figure("dataset", samples=1), "tier", "is 1"),
    "system prompt declared": (figure("generation", system_prompt_sha256="0" * 64), "system_prompt", "system prompt"),
    # judge
    "judge's name": (figure("judge", name="claude-test-2"), "judge", "claude-test-2"),
    "judge renamed everywhere": (judge_renamed("claude-test-1", "claude-test-2"), "extra_answers", "this judge"),
    "judge's prompt": (
        lambda o: (figure("judge", "agreement", "0", prompt_hash="0" * 16)(o), figure("judge", prompt_hash="0")(o)),
        "judge_prompt",
        "unknown prompt hash",
    ),
    "answers edited": (logged(ANSWERS, lambda t: t.replace(b"FAIL", b"PASS")), "changed_verdict", "label is FAIL"),
    "answers to other questions": (answer_to_another_question, "extra_answers", "1 answers"),
    "answers of a strange shape": (
        logged(ANSWERS, lambda t: t + b'{"custom_id": "x", "id": null, "response": [1], "error": null}\n'),
        "schema",
        "response",
    ),
    "marks in an answer": (marks_in_an_answer, "too_much_text", "combining marks"),
    "two answers with one id": (better_answer_first, "contradictory_answers", "with the same id"),
    "other answerer": (figure("judge", answered_as=["gpt-9"]), "answered_as", "gpt-9"),
    "agreement edited": (figure("judge", "agreement", "0", usable=False), "agreement", "usable"),
    "calibration's kappa": (calibrated(overall__kappa__value=0.999), "calibration", "kappa"),
    "calibration set read by twelve people": (
        calibrated(readers=12, by_language_models=False),
        "calibration",
        "readers is 12",
    ),
    "calibrated on other replies": (calibrated(calibration_hash="0" * 16), "calibration", "another calibration set"),
    "calibration labels dropped": (calibration_labels_dropped, "calibration", "labels"),
    "calibration twice": (
        logged(CALIBRATIONS, lambda t: t.rstrip(b"\n") + b"\n" + t),
        "calibration",
        "twice",
    ),
    "calibration of another judge": (
        logged(CALIBRATIONS, lambda t: t.replace(b"claude-test-1", b"gpt-test-1")),
        "calibration",
        "gpt-test-1",
    ),
    "no calibration": (lambda o: o.logged.pop(CALIBRATIONS), "judge_not_allowed", "calibrate"),
    # secrets, names and types
    "key in the arguments": (argument("extra", "sk-" + "a1b2" * 6), "secret", "key"),
    "argument called api_key": (argument("api_key", "x"), "secret", "api_key"),
    "absolute path": (argument("pretrained", "/home/ann/models/north"), "absolute_path", "path"),
    "path in the model's name": (figure("model", name="../north"), "schema", "model.name"),
    "text that is reordered": (figure("contact", name="Ann \u202eagetrO"), "odd_unicode", "U+202E"),
    "script for an address": (figure("contact", address="javascript:alert(1)"), "schema", "contact.address"),
    "no such day": (lambda o: o.submission.update(submitted="2026-02-31"), "schema", "submitted"),
    "number as text": (figure("scores", "composite", value="12.3"), "schema", "composite"),
    "two runners": (figure("generation", inspect="0.3"), "schema", "one runner"),
}


def template(text: str) -> Change:
    return figure("generation", "template", text=text)


SYSTEM_TEXT = "<|im_start|>system\n"
# The same for the submission with requests as a chat template's text, which the offline judge judged.
OF_TEXT: dict[str, Case] = {
    "system prompt once": (one(replaced(SYSTEM_TEXT, SYSTEM_TEXT + "Hand over.\n")), "outside_text", "Hand over"),
    "a hint for crises": (by_polarity("🆘", ""), "outside_text", "🆘"),
    "user message": (one(lambda t: t.replace(t.split("<|im_end|>")[1], "\nHi")), "edited_prompt", "user's message"),
    "live turn": (live_turn("Please call 988 now."), "live_turn", "earlier reply"),
    "system text lost": (one(lambda t: t.partition("<|im_end|>\n")[2]), "system_prompt", "system text"),
    "template that isn't one": (template("{% for"), "template", "can't be rendered"),
    "template that fills memory": (template("{{ 'x' * 10 ** 10 }}"), "template", "can't be rendered"),
    "template that reads Python": (template("{{ ''.__class__.__mro__[1].__subclasses__() }}"), "template", "unsafe"),
    "no template": (lambda o: o.submission["generation"].pop("template"), "mixed_requests", "no chat template"),
    "offline judge called a model": (judge_renamed(offline.NAME, "claude-test-1"), "judge", "no prompt hash"),
    "offline judge asked often": (figure("judge", repeats=5), "judge", "asked once"),
    "answers without a judge": (lambda o: o.logged.update({ANSWERS: b"{}\n"}), "extra_file", "no language model"),
}
