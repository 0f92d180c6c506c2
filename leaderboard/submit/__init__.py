"""A scored run → a submission's folder, verified before it is moved into place.

`about`: who submits which model, from flags or a YAML file. Its fields are here, which is fast to import.
`run`: a scored run with its log, and whether the board accepts it. `answers`: the judges and their answers.
`pack`: writes the folder.
"""

from __future__ import annotations

# Field of the YAML file → what is expected there; `?` marks optional ones.
FIELDS = {
    "contact.name": "person responsible for the submission",
    "contact.address": "an email or web address",
    "model.organization": "developer of the model, such as ORG of ORG/NAME on the Hub",
    "model.name": "the model's name",
    "model.revision": "a commit or dated snapshot, of letters, digits and . _ - / :; `none` if the provider gives none",
    "model.access": "open_weights, api or private",
    "model.relation": "your relation to the developer of the model: developer, paid_by_developer or independent",
    "model.family?": "the model family, such as llama, if the name doesn't say it",
    "declaration.trained_on_benchmark": "no, yes or unknown: whether the model, or what it was made from, "
    "was trained on this benchmark",
    "declaration.note?": "anything to add",
}


def flag(field: str) -> str:
    """The command-line flag of a field: `--contact-name`, `--model`, and `--organization` for the model's fields."""
    part, _, name = field.rstrip("?").partition(".")
    if field == "model.name":
        return "--model"
    return f"--{part}-{name}" if part == "contact" or name == "note" else f"--{name}".replace("_", "-")
