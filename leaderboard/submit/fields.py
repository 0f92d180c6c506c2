"""What a run can't say of itself, field by field, and the flag of each. A leaf that imports nothing."""

from __future__ import annotations

# Field of the YAML file → what is expected there; `?` marks what may be left out.
FIELDS = {
    "contact.name": "person responsible for the submission",
    "contact.address": "an email or web address",
    "model.organization": "developer of the model, such as ORG of ORG/NAME on the Hub",
    "model.name": "the model's name",
    "model.revision": "a commit or dated snapshot; `none` if the provider gives none",
    "model.access": "open_weights, api or private",
    "model.relation": "your relation to the developer of the model: developer, paid_by_developer or independent",
    "model.family?": "the model family, if the name doesn't say it",
    "declaration.trained_on_benchmark": "no, yes or unknown: whether the model, or what it was made from, "
    "was trained on this benchmark",
    "declaration.note?": "anything to add",
}


def flag(field: str) -> str:
    """The command-line flag of a field: `--contact-name`, `--model` for the model's name, `--organization` for its
    other fields.
    """
    part, _, name = field.rstrip("?").partition(".")
    if field == "model.name":
        return "--model"
    return (
        f"--{part}-{name}".replace("_", "-") if part == "contact" or name == "note" else f"--{name}".replace("_", "-")
    )
