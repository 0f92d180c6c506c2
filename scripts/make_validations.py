"""Measures how far the offline judge agrees with people: the odd rows of published sets →
judge/agreement/shipped/offline/validation/SET-odd.json. Writes figures and ids, but no text of any set. Run it when the
offline judge's name changes.
"""

from __future__ import annotations

from pathlib import Path

from harness import run

from dataset_builder.release import open_release
from judge.agreement.known import SHIPPED
from judge.agreement.published.sets import MAPPINGS, read_set
from judge.agreement.validation import place, validate
from judge.llm.asking import Asker
from judge.offline import judge as offline
from judge.wording import coefficient

# Not bhh-messages: the offline judge reads no categories.
FOLDERS = {
    "bhh-ratings": "LLMs-Mental-Health-Crisis",
    "psychosis": "psychosis-LLM-evaluation",
    "vera-mh": "VERA-MH",
    "xstest": "exaggerated-safety",
}


def main(sets: Path, home: Path = SHIPPED, dataset: Path | None = None, mappings: Path = MAPPINGS) -> None:
    """Measure the offline judge against people's labels. SETS: a folder with a checkout of each set's repository."""
    release = open_release(dataset)
    read = [read_set(str(mappings / f"{name}.yaml"), sets / folder, "odd", release) for name, folder in FOLDERS.items()]
    for earlier in place(home, offline.NAME, True).glob("*.json"):
        earlier.unlink()  # of an earlier offline judge, or of a set that is no longer used
    for what in read:
        found, path = validate(what, release, offline.NAME, Asker(home))
        print(f"{path}: κ {coefficient(found.kappa)}, people {coefficient(found.people)}")


if __name__ == "__main__":
    run(main)
