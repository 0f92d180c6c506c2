"""Reads `baselines.yaml`: what can be had without reading the message, and the label that each criterion gives it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Errors, closest
from dataset_builder.reading.settings import misfits, read_yaml
from dataset_builder.schema import Baseline

NEEDED = ("job", "handoff")  # of which the baseline that reads only the history is made


def read_baselines(path: Path, labels: Mapping[str, tuple[str, ...]], errors: Errors) -> dict[str, Baseline]:
    """Every baseline by name. `labels`: criterion → the labels that it gives."""
    found: dict[str, Baseline] = {}
    read = read_yaml(path, "baselines, each with its labels", errors)
    for name, value in read.value.items():
        if not isinstance(name, str):
            errors.add(path, read.line((str(name),)), f"'{name}' is not a name; expected a word")
            continue
        try:
            found[name] = Baseline.model_validate(value)
        except ValidationError as error:
            misfits(path, read, error, errors, name)
            continue
        for criterion, label in found[name].labels.items():
            if label not in labels.get(criterion, (label,)):
                line = read.line((name, "labels", criterion))
                errors.add(path, line, f"'{name}': '{criterion}' is '{label}'; {closest(label, labels[criterion])}")
    for name in NEEDED:
        if read.value and not (name in found and found[name].anchors):
            errors.add(path, 1, f"has no '{name}' with `anchors: true`, of which the baseline of histories is made")
    return found


def held(content: Content, errors: Errors) -> None:
    """Adds an error for every criterion that a baseline has no label of, and every anchor that no calibration reply of
    a criterion stands for, or one with another label. A team's own criteria need neither.
    """
    if content.additions:
        return
    written = {(r.criterion, r.baseline): r for r in content.calibration if r.baseline}
    for name, baseline in content.baselines.items():
        for criterion in sorted(content.criteria):
            label, path = baseline.labels.get(criterion), content.root / "calibration" / f"{criterion}.jsonl"
            row = written.pop((criterion, name), None)
            if label is None:
                errors.add(content.root / "baselines.yaml", 1, f"'{name}' has no label for '{criterion}'; expected one")
            elif row is None and baseline.anchors and path.is_file():
                errors.add(path, 1, f"has no reply with baseline '{name}'; expected one of each that anchors")
            elif row is not None and row.label != label:
                errors.add(path, 1, f"'{row.id}' is {row.label}; baselines.yaml says {label} of '{name}'")
    for criterion, name in written:
        path = content.root / "calibration" / f"{criterion}.jsonl"
        errors.add(path, 1, f"has a reply of the unknown baseline '{name}'; {closest(str(name), content.baselines)}")
