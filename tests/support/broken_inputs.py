"""Broken input files: for each, what is broken, which command reads it, its exit code and its message.

`pytest -n0 -v tests/test_broken_inputs.py` runs all of them and prints the table.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

SHUT, BAD_INPUT = 1, 2
CHECK = ("check", "--content", "{content}")
SCENARIO, PERSONA, TALK = "scenarios/P1-B1-S1.md", "personas/ama.md", "conversations/P2-B1-S1.md"
ROWS = "calibration/acts-at-once.jsonl"
ESCAPE = "\x1b[31m"


class Place(NamedTuple):
    """A separate folder for each case. `content`: a copy of the content in it, whose files are hard links until they
    are written.
    """

    root: Path

    @property
    def content(self) -> Path:
        return self.root / "content"

    def put(self, name: str, text: str | bytes) -> None:
        """Writes a file of `root`, replacing a shared one."""
        path = self.root / name
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def edit(self, name: str, old: str, new: str) -> None:
        """Replaces a text in a file."""
        text = (self.root / name).read_text(encoding="utf-8")
        assert old in text, f"{name} has no {old!r}"
        self.put(name, text.replace(old, new, 1))


class Broken(NamedTuple):
    """One broken input. `command`: its words, with `{content}` and `{root}` for the folders. `says`: what the message
    contains, file and line first.
    """

    kind: str
    name: str
    make: Callable[[Place], object]
    says: tuple[str, ...]
    command: tuple[str, ...] = CHECK
    code: int = SHUT

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"


def place(small: Path, root: Path) -> Place:
    """A folder with the content, as hard links to one copy, and an earlier build."""
    shutil.copytree(small, root / "content", copy_function=os.link)
    made = Place(root)
    made.put("built/MANIFEST.json", '{"name": "helmbench"}')
    return made


def smaller(content: Path, root: Path) -> Path:
    """A copy of the content with only what reading a scenario and a conversation needs; it needn't pass `check`."""
    shutil.copytree(content, root, ignore=shutil.ignore_patterns("rating_calibration", "language-model-*.jsonl"))
    for folder, kept in (
        ("scenarios", (Path(SCENARIO).name,)),
        ("personas", ("jason.md", "michel.md", "suki.md", "harold.md", Path(PERSONA).name)),
        ("calibration", (Path(ROWS).name, "readings")),
    ):
        for path in (root / folder).iterdir():
            if path.name not in kept:
                path.unlink()
    (root / "refused_terms.yaml").write_text("salt: of no account\nbegins: []\nterms: {}\n", encoding="utf-8")
    (root / "allowed_amounts.yaml").write_text("", encoding="utf-8")
    return root


def state(root: Path) -> dict[str, tuple[int, bytes | str]]:
    """Everything below a folder: its mode, and its content or link target."""
    return dict(_state(root))


def _state(root: Path) -> Iterator[tuple[str, tuple[int, bytes | str]]]:
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            whole = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            yield str(path), (mode, os.readlink(path) if path.is_symlink() else whole)


def _put(name: str, text: str | bytes) -> Callable[[Place], None]:
    return lambda place: place.put(name, text)


def _edit(name: str, old: str, new: str) -> Callable[[Place], None]:
    return lambda place: place.edit(name, old, new)


def _content(name: str, text: str | bytes) -> Callable[[Place], None]:
    return _put(f"content/{name}", text)


def _in_content(name: str, old: str, new: str) -> Callable[[Place], None]:
    return _edit(f"content/{name}", old, new)


def _pipe(name: str) -> Callable[[Place], None]:
    return lambda place: os.mkfifo(place.root / name)


def _instead(name: str, make: Callable[[Path], object]) -> Callable[[Place], None]:
    """Puts something else in place of a file of the content, or next to its files."""

    def change(place: Place) -> None:
        path = place.content / name
        path.unlink(missing_ok=True)
        make(path)

    return change


# Invalid contents of any YAML file: name, text, and the message from the line number on.
YAML: tuple[tuple[str, str | bytes, str], ...] = (
    ("a list", "- a\n- b\n", ":1: is a list"),
    ("one word", "word\n", ":1: is a text"),
    ("one number", "12\n", ":1: is a single value"),
    ("nothing", "", ":1: is empty"),
    ("NaN", "a: 1\nb: .nan\n", ":2: '.nan' is not a finite number"),
    ("infinity", "a: 1\nb: 1.0e+400\n", ":2: '1.0e+400' is not a finite number"),
    ("Latin-1", b"a: 1\n\nb: caf\xe9\n", ":3: is not UTF-8"),
    ("UTF-16", "a: 1\n".encode("utf-16"), ":1: is not UTF-8"),
    ("brackets without end", "a: " + "[" * 100_000, ":1: is nested more than 32 deep"),
    ("dashes without end", "a: 1\nb:\n" + "- " * 50_000, ":3: is nested more than 32 deep"),
    ("aliases of aliases", "\n".join(
        ["a: &a [x, x, x, x, x, x, x, x, x]"]
        + [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    ), ":1: '&a' is an anchor"),
    ("a merge", "a: 1\n<<: {b: 2}\n", ":2: '<<' is a merge"),
    ("a key twice", "a: 1\nb: 2\na: 3\n", ":3: 'a' appears twice"),
    ("5,000 digits", "a: 1\nb: " + "9" * 5_000, ":2: contains a number of 5,000 digits"),
    ("50,000 sixtieths", "a: 1" + ":1" * 50_000, ":1: contains a number of 50,001 digits"),
    ("a tag that calls", "a: 1\nb: !!python/object/apply:os.getcwd []\n", ":2: 'tag:yaml.org,2002:python/object/"),
    ("a list as a key", "? [a, b]\n: 1\n", ":1: a list or a mapping can't be a key"),
    ("an escape character", f"a: 1\nb: {ESCAPE}\n", r":2: contains the character '\x1b'"),
    ("half a surrogate pair", 'a: 1\nb: "\\ud800"\n', ":2: invalid YAML"),
    ("an escape beyond characters", 'a: 1\n\nb: "\\UFFFFFFFF"\n', ":3: invalid YAML"),
    ("two documents", "a: 1\n---\nb: 2\n", ":2: invalid YAML"),
    ("no date", "a: 1\nb: 2026-99-99\n", ":2: '2026-99-99' can't be read as a timestamp"),
    ("30,000 keys", "".join(f"k{n}: 1\n" for n in range(30_000)), ":10000: contains more than 20,000"),
    ("more than a megabyte", "a: " + "x" * 2**20, ":1: is longer than 1,048,576 bytes"),
)  # fmt: skip
FEW = ("one word", "a key twice")


def _yaml() -> Iterator[Broken]:
    for name, text, said in YAML:
        yield Broken("scoring.yaml", name, _content("scoring.yaml", text), (f"content/scoring.yaml{said}",))
    for file in ("benchmark.yaml", "baselines.yaml", "refused_terms.yaml", "allowed_amounts.yaml"):
        for name, text, said in YAML:
            if name in FEW:
                yield Broken(file, name, _content(file, text), (f"content/{file}{said}",))
    words = _content("allowed_amounts.yaml", "- a\n- b\n")
    yield Broken("allowed_amounts.yaml", "a list of words", words, ("content/allowed_amounts.yaml:1: '0'",))


def _about(name: str, text: str | bytes, said: str) -> Broken:
    command = ("submit", "{root}/run", "--about", "{root}/about.yaml", "--date", "2026-11-22", "--out", "{root}/out")
    return Broken("about.yaml", name, _put("about.yaml", text), (f"about.yaml{said}",), command)


def _rejudged(name: str, text: str | bytes, said: str) -> Broken:
    command = ("board", "{root}/submissions", "--out", "{root}/board", "--rejudged", "{root}/rejudged.yaml")
    make = _put("rejudged.yaml", text)
    return Broken("rejudged.yaml", name, lambda p: (p.put("submissions/README.md", ""), make(p)),
                  (f"rejudged.yaml{said}",), command, BAD_INPUT)  # fmt: skip


def _held_out(name: str, text: str | bytes, said: str) -> Broken:
    command = (*CHECK, "--held-out", "{root}/split")
    return Broken("held-out.yaml", name, _put("split/held-out.yaml", text), (f"split/held-out.yaml{said}",), command)


def _lists() -> Iterator[Broken]:
    known = {name: (text, said) for name, text, said in YAML}
    for name in ("a list", "a key twice"):
        yield _about(name, *known[name])
    yield _about("a text for a part", "contact: x\n", ":1: contact: expected one of the parts")
    yield _about("no such field", "contact:\n  name: x\n  nmae: y\n", ":3: contact.nmae: no such field")
    yield _about("a list for a text", "contact:\n  name: [x]\n", ":2: contact.name: expected text")
    yield _rejudged("a mapping", "a: 1\n", ":1: is a mapping")
    yield _rejudged("words", "- a\n- b\n", ":2: entry 1")
    yield _rejudged("a key twice", "- run: a\n  run: b\n", ":2: 'run' appears twice")
    yield _held_out("a list", *known["a list"])
    yield _held_out("a canary that is short", "split: a\nreleased: 2026-11-22\ncanary: x\n", ":3: 'canary'")


A_NUMBER, LIMIT, EARNS = "Input should be a valid number", "unscored_limit: 0.02", "earns: detection, weight: 18"
SCORING = (
    ("a limit in words", LIMIT, "unscored_limit: lots", f"'unscored_limit': {A_NUMBER}"),
    ("a misspelt key", "floor_messages: 30", "floor_mesages: 30", "'floor_mesages': Extra inputs"),
    ("a weight in words", "weight: 14}       #", "weight: heavy}  #", "'scores.P1-B2.weight'"),
    ("a score that earns and costs", EARNS, f"costs: points, {EARNS}", "'scores.P1-B1'"),
    ("bands with a gap", "{from: 4, to: 6,", "{from: 5, to: 6,", "severity 4 is in 0 of the bands"),
    ("an unknown floor", "kind: specificity", "kind: kindness", "'floors.9.kind'"),
    ("true for a number", "hard: 0.4", "hard: yes", f"'hard': {A_NUMBER}"),
)


def _settings() -> Iterator[Broken]:
    for name, old, new, said in SCORING:
        make = _in_content("scoring.yaml", old, new)
        yield Broken("scoring.yaml", name, make, ("content/scoring.yaml:", said))
    build = ("build", "--content", "{content}", "--out", "{root}/built", "--quiet")
    make = _in_content("scoring.yaml", "unscored_limit: 0.02", "unscored_limit: lots")
    yield Broken("scoring.yaml", "a limit in words, built over an earlier build", make, ("scoring.yaml:",), build)
    for name, old, new, said in (
        ("a version in words", "version: 0.1.0", "version: first", "'version'"),
        ("a tier twice", "  lite_probes: 5 ", "  lite_probes: 5\n  lite_probes: 6 ", "'lite_probes' appears twice"),
        ("tiers of no number", "  lite_probes: 5 ", "  lite_probes: many ", "'tiers.lite_probes'"),
    ):
        yield Broken("benchmark.yaml", name, _in_content("benchmark.yaml", old, new), ("content/benchmark.yaml:", said))
    for command in (("stats",), ("book", "--out", "{root}/book.html")):
        listed = (*command, "--content", "{content}")
        make = _content("benchmark.yaml", "- a\n")
        yield Broken("benchmark.yaml", f"a list, for {command[0]}", make, ("benchmark.yaml:1:",), listed)


TITLE = "title: Copy-editing a letter"  # the third line of the scenario
FRONT = (
    ("a list of lists", "title: [[a]]", ":3: key 'title' is empty or nested"),
    ("empty", "title:", ":3: key 'title' is empty or nested"),
    ("a key twice", f"{TITLE}\n{TITLE}", ":4: key 'title' appears twice"),
    ("an anchor", "title: &a b", ":3: cannot read"),
    ("100,000 spaces", " " * 100_000 + "x", ":3: cannot read"),
    ("an open quote", "title: '" + "x" * 100_000, ":3: cannot read"),
    ("an escape character", f"title: {ESCAPE}x", ":3: cannot read"),
    ("an unknown key", f"{TITLE}\ncolour: red", ":4: unknown key 'colour'"),
    ("ages of 5,000 digits", f"{TITLE}\nages: {'9' * 5_000}-{'9' * 5_000}", ":4: ages is"),
    ("a review by a name without end", "title: x\nreview: signed by " + "a" * 100_000, ":4: review is"),
)
HEADS = (
    ("500 spaces", "# " + " " * 500, "cannot read the heading"),
    ("100,000 spaces and a bracket", "# x" + " " * 100_000 + "(", "cannot read the heading"),
    ("100,000 brackets", "# x " + "(" * 100_000, "cannot read the heading"),
    ("no name", "# (severity 5)", "cannot read the heading"),
    ("a severity of 5,000 digits", f"# PT90 (severity {'9' * 5_000})\nx", "severity is"),
    ("a superscript severity", "# PT90 (severity ²)\nx", "severity is '²'"),
    ("a rating of 5,000 digits", f"# PT90 (severity 5; rating {'9' * 5_000}-{'9' * 5_000})\nx", "rating is"),
    ("a rung of 5,000 digits", f"# U90 michel/{'9' * 5_000}", "has no rung"),
    ("an attribute of 100,000 spaces", "# PT90 (severity" + " " * 100_000 + ")\nx", "cannot read 'severity'"),
    ("100,000 semicolons", "# PT90 (severity 5" + ";" * 100_000 + " severity 6)\nx", "'severity' appears twice"),
)


def _markdown() -> Iterator[Broken]:
    for name, line, said in FRONT:
        make = _in_content(SCENARIO, TITLE, line)
        yield Broken("front matter", name, make, (f"content/{SCENARIO}{said}",))
    for name, text, said in HEADS:

        def add(place: Place, text: str = text) -> None:
            lines = (place.content / SCENARIO).read_text(encoding="utf-8").rstrip("\n")
            place.put(f"content/{SCENARIO}", f"{lines}\n{text}\n")

        yield Broken("heading", name, add, (f"content/{SCENARIO}:", said))
    for file in (SCENARIO, PERSONA, "voices.md", "prompts/judge.md", "taxonomy/no_crisis.md"):
        latin = _content(file, b"---\nid: x\n---\n# One\ncaf\xe9\n")
        yield Broken("Markdown", f"Latin-1 in {file}", latin, (f"content/{file}:5: is not UTF-8",))
    for file in (SCENARIO, PERSONA, "criteria/acts-at-once.md", "protocols/no_crisis.md"):
        yield Broken("Markdown", f"nothing in {file}", _content(file, ""), (f"content/{file}:1: has no front matter",))
    long = _content(SCENARIO, "x" * (2**21 + 1))
    yield Broken("Markdown", "more than two megabytes", long, (f"content/{SCENARIO}:1: is longer than",))
    rung = _in_content(PERSONA, "# 1 (", "# ² (")
    yield Broken("heading", "a superscript rung of a person", rung, (f"content/{PERSONA}:", "unexpected heading '# ²'"))
    rung = _in_content(PERSONA, "# 1 (", f"# {'1' * 5_000} (")
    yield Broken("heading", "a person's rung of 5,000 digits", rung, (f"content/{PERSONA}:", "unexpected heading"))
    turn = _in_content(TALK, "## User", "## " + " " * 100_000 + "(")
    yield Broken("heading", "a turn of 100,000 spaces", turn, (f"content/{TALK}:", "cannot read turn"))
    check = _in_content(TALK, "acts-at-once: P2-B1 severity 8", f"acts-at-once: P2-B1 severity {'8' * 5_000}")
    yield Broken("heading", "a checkpoint of 5,000 digits", check, (f"content/{TALK}:", "severity is"))


ROW = '{{"id": "acts-at-once-01", "criterion": "acts-at-once", "label": "PASS"{}}}\n'
LINES: tuple[tuple[str, str | bytes, str], ...] = (
    ("cut off", '{"id": "a", \n', ":1: 'line'"),
    ("a list", "[1]\n", ":1: 'line'"),
    ("no such fields", "{}\n", ":1: 'id'"),
    ("a key twice", ROW.format(', "label": "FAIL"'), ":1: 'line': 'label' appears twice"),
    ("NaN", ROW.format(', "country": NaN'), ":1: 'line': NaN is not a number"),
    ("5,000 digits", ROW.format(f', "country": {"9" * 5_000}'), ":1: 'line': contains a whole number of 5,000 digits"),
    ("too deep", ROW.format(f', "said": {"[" * 100_000}{"]" * 100_000}'), ":1: 'line': is nested more than 100 deep"),
    ("Latin-1", b'\n{"id": "caf\xe9"}\n', ":2: 'line': is not UTF-8"),
    ("half a surrogate pair", ROW.format(', "country": "\\ud800"'), ":1: 'line'"),
)


def _jsonl() -> Iterator[Broken]:
    for name, text, said in LINES:
        yield Broken("calibration rows", name, _content(ROWS, text), (f"content/{ROWS}{said}",))
    readings = "calibration/readings/reader-a.jsonl"
    for name, line in (("an id that is a list", '{"id": [], "label": "PASS"}'), ("too deep", "[" * 100_000)):
        yield Broken("readings", name, _content(readings, line), (f"content/{readings}:1:",))
    worded = '{"message": "a", "authored": "x", "read": 1, "words_sha256": ""}'
    for name, line in (("a severity in words", worded), ("too deep", "[" * 100_000)):
        make, stats = _content("readings/first.jsonl", line), ("stats", "--content", "{content}")
        yield Broken("readings", f"{name}, for stats", make, ("content/readings/first.jsonl:1:",), stats)


COLUMNS = "country,service,kind,population,phone,text,url,aliases,superseded,always_open,tier,verified,expires,source"
SHEETS: tuple[tuple[str, str | bytes, str], ...] = (
    ("nothing", "", ":1: is empty"),
    ("a zero byte", f"{COLUMNS}\nGB,a\0b\n", ":2: not CSV (contains a zero byte)"),
    ("other columns", "a,b\n1,2\n", ":1: columns are ['a', 'b']"),
    ("a column twice", f"{COLUMNS},country\n", ":1: columns are"),
    ("too few cells", f"{COLUMNS}\nGB,a\n", ":2: has 2 cells; expected 14"),
    ("an open quote", f'{COLUMNS}\nGB,"a\n', ": is not CSV"),
    ("5,000 columns", "a," * 5_000 + "a\n", ":1: has 5,001 columns"),
    ("Latin-1", f"{COLUMNS}\nGB,caf\xe9\n".encode("latin-1"), ":2: can't be read (not UTF-8)"),
    ("a spreadsheet's own file", b"PK\x03\x04 and so on", ": is a spreadsheet's own file"),
)


def _csv() -> Iterator[Broken]:
    for name, text, said in SHEETS:
        yield Broken("helplines.csv", name, _content("helplines.csv", text), ("content/helplines.csv", said))
    agreement = ("agreement", "{root}/a.csv", "{root}/b.jsonl")
    for name, text, said in (
        ("nothing", "", ":1: empty file"),
        ("a zero byte", "id,label\na,\0\n", ":2: not CSV (contains a zero byte)"),
        ("an open quote", 'id,label\na,"PASS\n', ": is not CSV"),
        ("a column twice", "id,label,label\na,PASS,FAIL\n", ":1: column 'label' appears twice"),
        ("too few cells", "id,label\na\n", ":2: has 1 cells, the header 2"),
        ("no label", "id,mark\na,PASS\n", ":2: no `label`"),
        ("Latin-1", b"id,label\na,caf\xe9\n", ":2: can't be read (not UTF-8)"),
        ("half of UTF-16", b"\xff\xfea", ": can't be read (not UTF-8)"),
    ):
        yield Broken("labels, CSV", name, _labels("a.csv", text), ("a.csv", said), agreement, BAD_INPUT)
    agreement = ("agreement", "{root}/a.jsonl", "{root}/b.jsonl")
    verdict = '{{"id": {}, "check": "graded", "unscored": null, "label": "PASS", "repeat": {}, "criterion": {}}}'
    for name, text, said in (
        ("cut off", '{"id": "a"', ":1: not a JSON object"),
        ("too deep", "\n" + "[" * 100_000, ":2: not a JSON object"),
        ("5,000 digits", f'{{"id": "a", "label": {"9" * 5_000}}}', ":1: not a JSON object"),
        ("NaN for a label", '{"id": "a", "label": NaN}', ":1: a: label is NaN"),
        ("a verdict of a number", verdict.format(7, 0, '"x"'), ":1: 7: id: Input should be a valid string"),
        (
            "a verdict whose repeat is a word",
            verdict.format('"a"', '"x"', '"x"'),
            ":1: a: repeat: Input should be a valid integer",
        ),
        ("half a surrogate pair in two ids", '{"id": "\\ud800", "label": "x"}\n{"id": "\\ud800", "label": "y"}', ":2:"),
    ):
        yield Broken("labels, JSONL", name, _labels("a.jsonl", text), ("a.jsonl", said), agreement, BAD_INPUT)
    coded = "id,repeat,category,message,reply,rating,evidence,code,note,coder"
    for name, text, said in (
        ("nothing", "", ":1: is empty"),
        ("other columns", "a,b\n", ": no row has a code"),
        ("a column twice", f"{coded},code\n", ":1: column 'code' appears twice"),
        ("a superscript repeat", f"{coded}\na,²,no_crisis,,,1,,x,,y\n", ":2: repeat is"),
        ("a repeat of 5,000 digits", f"{coded}\na,{'9' * 5_000},no_crisis,,,1,,x,,y\n", ":2: repeat is"),
        ("a zero byte", f"{coded}\na\0", ":2: not CSV"),
    ):
        sheet = ("ratings", "import", "{root}/sheet.csv")
        yield Broken("coded sheet", name, _put("sheet.csv", text), ("sheet.csv", said), sheet, BAD_INPUT)


def _labels(name: str, text: str | bytes) -> Callable[[Place], None]:
    def make(place: Place) -> None:
        place.put(name, text)
        place.put("b.jsonl", '{"id": "a", "label": "PASS"}\n')

    return make


REVIEW = (
    ("nothing", "", ":1: is not JSON"),
    ("a list", "[]", ":1: is a list"),
    ("a page", "<html>", ":1: is not JSON"),
    ("too deep", "\n" + "[" * 100_000, ": is nested more than"),
    ("a key twice", '{"format": "helmbench-review-1",\n"format": "x"}', ": 'format' appears twice"),
    ("NaN", '{"format":\n\nNaN}', ": NaN is not a number"),
    ("5,000 digits", '{"a":\n' + "9" * 5_000 + "}", ": contains a whole number of 5,000 digits"),
    ("1e999", '{"a": 1e999}', ": '1e999' is too large"),
    ("Latin-1", b'{"a":\n"caf\xe9"}', ":2: is not UTF-8"),
    ("another format", '{"format": "x"}', ": not a review file; expected"),
    ("two megabytes", " " * 2_000_001, ": has 2.0 MB"),
)


def _reviews() -> Iterator[Broken]:
    command = ("review", "{root}/review.json", "--content", "{content}")
    for name, text, said in REVIEW:
        yield Broken("review file", name, _put("review.json", text), ("review.json", said), command)
    yield Broken(
        "review file", "a pipe", _pipe("review.json"), ("review.json", "is not a regular file"), command, BAD_INPUT
    )
    yield Broken("review file", "none", lambda _: None, ("review.json", "No such file"), command, BAD_INPUT)


def _secret(place: Place) -> None:
    place.put("elsewhere/secret.md", "my own words\n")
    (place.content / "scenarios/P1-B1-S9.md").symlink_to(place.root / "elsewhere/secret.md")


def _far_folder(place: Place) -> None:
    place.put("elsewhere/P1-B1-S9.md", "my own words\n")
    (place.content / "scenarios/more").symlink_to(place.root / "elsewhere")


def _own_pipe(place: Place) -> None:
    place.put("ours/scenarios/README.txt", "")
    os.mkfifo(place.root / "ours/scenarios/P1-B1-S900.md")


NAMES = (
    (f"{ESCAPE}red.md", "[U+001B][31mred.md:1:"),
    ("a\nb.md", "a[U+000A]b.md:1:"),
    ("\u202eb.md", "[U+202E]b.md:1:"),
    (os.fsdecode(b"caf\xe9.md"), "caf[U+DCE9].md:1:"),
    ("x" * 250 + ".md", "xxx.md:1:"),
)


def _names() -> Iterator[Broken]:
    new, file = "scenarios/P1-B1-S9.md", "content/scenarios/P1-B1-S9.md:1: "
    yield Broken("links", "out of the folder", _secret, (file + "is a link out of the content folder",))
    yield Broken("links", "a folder elsewhere", _far_folder, ("scenarios/more:1: is a link out of the content folder",))
    nowhere = _instead(new, lambda p: p.symlink_to("nowhere.md"))
    yield Broken("links", "to nothing", nowhere, (file + "is a link to nothing",))
    loop = _instead(new, lambda p: p.symlink_to(p.name))
    yield Broken("links", "to itself", loop, (file + "is a link to nothing",))
    endless = _instead("scoring.yaml", lambda p: p.symlink_to("/dev/zero"))
    yield Broken("links", "to a device without end", endless, ("content/scoring.yaml:1: is a link out of the content",))
    for name in (new, "voices.md", "scoring.yaml", "helplines.csv", "prompts/judge.md", ROWS):
        yield Broken("pipes", name, _instead(name, os.mkfifo), (f"content/{name}:1: ", "is not a regular file"))
        yield Broken("folders", name, _instead(name, Path.mkdir), (f"content/{name}:1: ", "is a folder"))
    stats = ("stats", "--content", "{content}")
    first = _instead("readings/first.jsonl", os.mkfifo)
    yield Broken("pipes", "readings/first.jsonl, for stats", first, ("first.jsonl:1: ", "is not a regular file"), stats)
    for name, said in NAMES:
        yield Broken("names", ascii(name)[:30], _content(f"scenarios/{name}", "x"), (said,))
    inside = _content(SCENARIO, f"---\nid: {ESCAPE}\n---\n# One\n")
    yield Broken(
        "names", "an escape character in a line", inside, (f"content/{SCENARIO}:2: cannot read 'id: [U+001B][31m'",)
    )
    overlay = ("check", "--content", "{root}/ours")
    yield Broken("private additions", "a pipe", _own_pipe, ("ours/scenarios/P1-B1-S900.md:1: not a file",), overlay)
    rows = _put("ours/helplines.csv", f"{COLUMNS}\nGB,\0\n")
    yield Broken("private additions", "a zero byte", rows, ("ours/helplines.csv:2: not CSV",), overlay)
    huge = ("new", "scenario", "P1-B1-S" + "9" * 5_000, "--content", "{root}/ours")
    yield Broken("new scenario", "a number of 5,000 digits", lambda _: None, ("is not an id",), huge)
    there = ("new", "scenario", "P1-B1", "--content", "{root}/ours")
    yield Broken("new scenario", "a pipe for a folder", _pipe("ours"), ("ours: not a content folder",), there)


def _mappings() -> Iterator[Broken]:
    command = ("corpus", "{root}/mapping.yaml", "--out", "{root}/corpus", "--quiet")
    for name, text, line in (("a list", "- a\n", 1), ("one word", "x\n", 1), ("an open bracket", "name: [\n", 2)):
        yield Broken("mapping file", name, _put("mapping.yaml", text), (f"mapping.yaml:{line}: ",), command)


ALL: tuple[Broken, ...] = tuple(
    broken
    for made in (_yaml, _lists, _settings, _markdown, _jsonl, _csv, _reviews, _names, _mappings)
    for broken in made()
)
