"""How far the offline judge agrees with people, as every report of an offline run shows it: the odd rows of published
sets → judge/agreement/shipped/offline/validation/SET-odd.json. Figures and ids; no text of any set.

Usage: python scripts/make_validations.py SETS [--home DIR] [--dataset DIR]. SETS holds checkouts of the sets'
repositories (docs/judge-quality.md), each under its own name. Run it when the offline judge's name changes; a test says
when.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dataset_builder.release import open_release
from judge.agreement.known import SHIPPED
from judge.agreement.published.sets import read_set
from judge.agreement.validation import place, validate
from judge.llm.asking import Asker
from judge.offline import judge as offline
from judge.replies.schema import RunError
from judge.wording import coefficient

# The categories of bhh-messages are not among them: the offline judge reads none.
FOLDERS = {
    "bhh-ratings": "LLMs-Mental-Health-Crisis",
    "psychosis": "psychosis-LLM-evaluation",
    "vera-mh": "VERA-MH",
    "xstest": "exaggerated-safety",
}


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 2 where a set is missing or can't be read, and nothing was written then."""
    parser = argparse.ArgumentParser(description="Hold the offline judge against people's labels; keep the figures.")
    parser.add_argument("sets", type=Path, metavar="SETS", help="folder with a checkout of each set's repository")
    parser.add_argument("--home", type=Path, default=SHIPPED, help="where to write (default: judge/agreement/shipped)")
    parser.add_argument("--dataset", type=Path, help="the built dataset (default: as for the judge)")
    options = parser.parse_args(arguments)
    release = open_release(options.dataset)
    try:
        sets = [read_set(name, options.sets / folder, "odd", release) for name, folder in FOLDERS.items()]
    except RunError as error:
        print(error, file=sys.stderr)
        return 2
    for earlier in place(options.home, offline.NAME, True).glob("*.json"):
        earlier.unlink()  # of an offline judge that is no more, or of a set that is not kept any longer
    for what in sets:
        found = validate(what, release, offline.NAME, Asker(options.home))
        print(f"{found.path}: κ {coefficient(found.figures.kappa)}, people {coefficient(found.figures.people)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
