"""Private additions: a team's own scenarios laid over the published content, marked as such.

A folder with a `benchmark.yaml` is a content of its own. One without it, that holds scenarios, conversations,
conditions, personas, criteria, calibration or helplines, is laid over the published content: both are copied into one
folder, which every later stage reads as it reads any other, so that no check is left out. Errors name the author's own
file and line.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dataset_builder.prompts import CONTENT
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import BYTES, ContentError, Errors
from dataset_builder.reading.strays import links, unasked
from helmbench_common.formats import csv_file
from helmbench_common.formats.plain_file import read_text
from helmbench_common.formats.refused import FormatError

FIRST_OWN = 900  # scenario numbers from here on are never the benchmark's, so that no later release can clash
PREFIX = "own-"  # the same for the names of conditions, personas and criteria
SCENARIOS, SHARED, CALIBRATION, HELPLINES = (
    ("scenarios", "conversations"),
    ("conditions", "personas", "criteria"),
    "calibration",
    "helplines.csv",
)
OWN_SCENARIO = re.compile(rf"P\d-B\d-S({FIRST_OWN // 100}\d\d|[1-9]\d{{3,}})")
FOLDERS = (*SCENARIOS, *SHARED, CALIBRATION)


@dataclass(frozen=True)
class Source:
    """A content folder to read, and where its files come from. `own` None: one folder, as it stands."""

    root: Path
    own: Path | None = None
    base: Path = CONTENT
    suffix: str = ""
    base_helplines: int = 0

    def place(self, path: Path | str, line: int = 1) -> tuple[Path, int]:
        """The authored file and line behind a file and line of `root`."""
        path = Path(path)
        if self.own is None or not path.is_relative_to(self.root):
            return path, line
        name = path.relative_to(self.root)
        if name == Path(HELPLINES) and line > self.base_helplines:
            return self.own / name, line - self.base_helplines + 1
        mine = name != Path(HELPLINES) and (self.own / name).exists()
        return (self.own if mine else self.base) / name, line

    def authored(self, path: Path) -> Path:
        """The authored file behind a file of `root`."""
        return self.place(path)[0]

    def placed(self, errors: Errors) -> Errors:
        """The same errors at the authors' own files."""
        moved = Errors()
        moved.found = [ContentError(*self.place(e.path, e.line), e.message) for e in errors.found]
        return moved

    def marked(self, content: Content) -> Content:
        """The content with the local version and the sentence that says what is private in it."""
        if self.own is None:
            return content
        own = [s for s in content.scenarios if OWN_SCENARIO.fullmatch(s.id)]
        name = re.sub(r"[^\w .-]", "_", self.own.resolve().name)
        number = f"{len(own)} scenario{'s' if len(own) != 1 else ''}"
        sentence = f"private additions: {number} from {name}, not the published benchmark"
        return replace(content, version=f"{content.version}+local.{self.suffix}", additions=sentence)


def is_overlay(folder: Path) -> bool:
    """Whether a folder holds private additions and no content of its own."""
    parts = any((folder / name).exists() for name in (*FOLDERS, HELPLINES))
    return parts and not (folder / "benchmark.yaml").exists()


@contextmanager
def opened(folder: Path, errors: Errors, base: Path = CONTENT) -> Iterator[Source]:
    """`folder` itself, or, for private additions, a folder that holds `base` and them for as long as the block runs.

    Errors are added where they have names that are not theirs to take, or hold what can't be laid over.
    """
    if not is_overlay(folder):
        yield Source(folder)
        return
    with tempfile.TemporaryDirectory(prefix="helmbench-") as temporary:
        root = Path(shutil.copytree(base, Path(temporary) / "content"))
        files = _own_files(folder, base, errors)
        for file in files:
            target = root / file.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.name != HELPLINES and not target.exists():
                shutil.copyfile(file, target)
        lines = _join_helplines(folder / HELPLINES, root / HELPLINES, errors)
        yield Source(root, folder, base, _suffix(folder, files), lines)


def _own_files(folder: Path, base: Path, errors: Errors) -> list[Path]:
    """Every file of the additions, in order; an error for each that has no business there."""
    links(folder, errors)
    if errors.found:
        return []  # nothing that lies elsewhere is read
    allowed = {*FOLDERS, HELPLINES, "README.md"}
    for entry in sorted(folder.iterdir()):
        if entry.name not in allowed and not unasked(entry):
            errors.add(
                entry,
                1,
                f"has no place in private additions; expected only {', '.join(sorted(allowed))} (weights and "
                "tiers stay the benchmark's)",
            )
    files = [folder / HELPLINES] if (folder / HELPLINES).is_file() else []
    for name in FOLDERS:
        for file in sorted(p for p in (folder / name).rglob("*") if not _is_plain_folder(p) and not unasked(p)):
            relative = file.relative_to(folder)
            if not file.is_file():
                errors.add(file, 1, "not a file; expected text or rows of this name")
            elif (
                (name == CALIBRATION) != (file.suffix == ".jsonl")
                or (name != CALIBRATION and file.suffix != ".md")
                or not _placed_right(relative)
            ):
                errors.add(
                    file,
                    1,
                    "isn't read; expected "
                    f"{'NAME.jsonl or readings/READER.jsonl' if name == CALIBRATION else 'NAME.md'} in {name}/",
                )
            elif (base / relative).exists():
                errors.add(file, 1, f"the published content already has this file; {_reserved(name)}")
            elif not _is_own(name, file.stem) and relative.parent.name != "readings":
                errors.add(file, 1, f"'{file.stem}' is not a name for private additions; {_reserved(name)}")
            else:
                files.append(file)
    return files


def _is_plain_folder(path: Path) -> bool:
    return path.is_dir() and path.suffix not in (".md", ".jsonl")


def _placed_right(relative: Path) -> bool:
    return len(relative.parts) == 2 or (len(relative.parts) == 3 and relative.parts[:2] == (CALIBRATION, "readings"))


def _is_own(folder: str, stem: str) -> bool:
    return bool(OWN_SCENARIO.fullmatch(stem)) if folder in SCENARIOS else stem.startswith(PREFIX)


def _reserved(folder: str) -> str:
    form = (
        f"a number from S{FIRST_OWN} on, such as P1-B1-S{FIRST_OWN}"
        if folder in SCENARIOS
        else f"a name that begins with '{PREFIX}'"
    )
    return f"expected {form}: those stay free in every release (a whole content folder also has a benchmark.yaml)"


def _join_helplines(own: Path, joined: Path, errors: Errors) -> int:
    """Appends the rows of `own` to `joined`; the number of lines that were there before."""
    text = joined.read_bytes().decode("utf-8")
    text += "" if text.endswith("\n") else "\n"
    before = text.count("\n")
    if not own.is_file():
        return before
    try:
        more = read_text(own, "helplines as CSV", BYTES).replace("\r\n", "\n")
    except FormatError as error:
        errors.refused(error)
        return before
    head, _, rows = more.partition("\n")
    if head.strip() != text.partition("\n")[0].strip():
        errors.add(
            own,
            1,
            f"columns are '{head[:200]}'; expected those of the published helplines.csv: "
            f"'{text.partition(chr(10))[0].strip()}'",
        )
        return before
    try:
        known = {named for _, named in _services(text, joined)}
        for line, (country, service) in _services(more, own):
            if (country, service) in known:
                what = f"'{service}' in {country} already has a row; expected services that are not listed yet"
                errors.add(own, line, what)
    except FormatError as error:
        errors.refused(error)
        return before
    joined.write_text(text + rows, encoding="utf-8", newline="")
    return before


def _services(text: str, path: Path) -> Iterator[tuple[int, tuple[str, str]]]:
    """The country and service of each row that has both, with its line."""
    at: tuple[int, int] | None = None
    for line, cells in csv_file.rows(text, path):
        if at is None:
            at = cells.index("country"), cells.index("service")
        elif len(cells) > max(at):
            yield line, (cells[at[0]], cells[at[1]])


def _suffix(folder: Path, files: list[Path]) -> str:
    """8 hex digits that stand for the additions: their names and bytes, whatever folder they lie in."""
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(folder).as_posix()}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()[:8]
