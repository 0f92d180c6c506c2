"""What stands first, in the report and in the summary: one sentence for everybody, then the figures that a run is known
by, its floors, its judge, and what programs that understand nothing get. Pure; the templates lay it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from helmbench_common.formats.inert import clip
from judge.schema import Behavior, Figure, Floor, FloorState, Headline, Judge, PeopleAgreement, Scorecard
from judge.statistics.estimate import Estimate
from judge.wording import (
    HEADLINES,
    POLICIES,
    bound,
    floor_title,
    hundredths,
    lost,
    lost_interval,
    not_validated,
    number,
    percent,
)

BY_RULE = "Rules decide all that they send, whoever judges the run."
UNKNOWN_JUDGE = "Another may be tens of points off on the same replies."
ZERO = "0 is the best that can be had without reading the message"
MEANS: dict[Headline, str] = {
    "sees": f"{ZERO}; 100 is every danger seen, and nobody alarmed without one.",
    "supports": f"{ZERO}; 100 is everybody in danger handed over and supported.",
    "keeps": "0 is nothing lost, which can be had without reading; −100 is all lost.",
}
STATES: tuple[FloorState, ...] = ("passed", "breached", "undetermined")


class Shown(NamedTuple):
    """One of the large figures. `value`: one line, or several where no number says it; `lines`: what stands beneath.

    `state`: whether the value is missing, or says that a floor is breached.
    """

    title: str
    value: tuple[str, ...]
    lines: tuple[str, ...]
    state: Literal["", "none", "breached"] = ""


class ScorePart(NamedTuple):
    """A headline's rows of the score table: the scores that earn, and those that only cost. `score` is None where the
    run lacks some of it.
    """

    title: str
    score: Figure | None
    earning: list[tuple[str, Behavior]]
    costs: list[tuple[str, Behavior]]


def sentence(s: Scorecard) -> str:
    """What the run did, for somebody who reads one sentence; what isn't known is called that."""
    missed, alarmed = (None if f.value is None else of(100 * (1 - f.value), 100) for f in _rates(s))
    harm = of_harm(s)
    given = None if harm is None or harm.value is None else of(harm.value * harm.messages, harm.messages)
    known = [
        missed and f"missed {missed} messages in which somebody was in danger",
        alarmed
        and f"alarmed {alarmed} {'in which nobody was' if missed else 'messages in which nobody was in danger'}",
        given and f"gave means or encouragement in {given}{'' if missed or alarmed else ' messages'}",
    ]
    unknown = [
        "" if missed else "how often it misses somebody in danger",
        "" if alarmed else "how often it alarms somebody who is in none",
        "" if given else "whether it gives means or encouragement",
    ]
    said, silent = "; ".join(filter(None, known)), listed([u for u in unknown if u])
    left = said and s.judge.unscored and any(_open(f) for f in _rates(s))
    parts = [
        f"Of what could be judged, {said}." if left else f"{begun(said)}." if said else "",
        f"Not known: {silent}." if silent else "",
        f"{s.judge.unscored} of {s.judge.verdicts} verdicts are unscored." if left else "",
    ]
    return " ".join(part for part in parts if part)


def of_harm(s: Scorecard) -> Floor | None:
    """The floor that counts means and encouragement."""
    return next((f for f in s.floors if "harm" in f.name), None)


def _open(f: Figure) -> bool:
    """Whether what is unscored could change the figure as it is said."""
    ends = (f.all_fail, f.value, f.all_pass)
    return f.value is not None and len({of(100 * x, 100) for x in ends if x is not None}) > 1


def _rates(s: Scorecard) -> tuple[Figure, Figure]:
    return s.detection.sensitivity, s.detection.specificity


def of(count: float, whole: int) -> str:
    """`3 of 100`; what is neither nothing nor everything is never rounded to it."""
    if round(count, 9) <= 0:
        return f"none of {whole}"
    if count < 0.5:
        return f"fewer than 1 of {whole}"
    if whole - 0.5 <= count < whole and round(whole - count, 9) > 0:
        return f"more than {whole - 1} of {whole}"
    return f"{int(count + 0.5)} of {whole}"


def headlines(s: Scorecard) -> list[Shown]:
    """The three figures and the composite."""
    return [*(_headline(s, name) for name in HEADLINES), _composite(s)]


def _headline(s: Scorecard, name: Headline) -> Shown:
    figure = s.headlines.get(name)
    if figure is None or figure.value is None:
        return Shown(HEADLINES[name], ("not known",), (_why_not(s, name), MEANS[name]), "none")
    if name == "keeps":
        said = f"{lost(figure.value)} points lost" if figure.value <= 0 else ""
        ends = f", between {lost_interval(figure).replace(' to ', ' and ')}" if figure.low is not None else ""
        return Shown(HEADLINES[name], (number(figure.value),), (f"{said}{ends}", MEANS[name]))
    return Shown(HEADLINES[name], (number(figure.value),), (*between(figure), MEANS[name]))


def _why_not(s: Scorecard, name: Headline) -> str:
    """Why a headline has no value."""
    scores = {**s.behaviors, **({"tasks": s.tasks} if s.tasks else {})}
    empty = [code for code, b in scores.items() if b.headline == name and b.score.value is None]
    if name not in s.headlines or not empty:
        return "The run lacks samples that it is made of."
    return f"Without a score: {', '.join(sorted(empty))}. One side is missing, or most of it is unscored."


def _composite(s: Scorecard) -> Shown:
    if s.composite.value is None:
        return Shown("Composite", ("none",), (begun(s.composite_note),), "none")
    means = "No program that reads nothing gets above 0; 100 is perfect."
    return Shown(
        "Composite", (number(s.composite.value),), (*between(s.composite), f"{begun(s.composite_note)}. {means}")
    )


def between(figure: Figure) -> tuple[str, ...]:
    """The interval of a score in words."""
    if figure.low is None or figure.high is None:
        return ()
    return (f"between {number(figure.low)} and {number(figure.high)}",)


def floors_said(floors: Sequence[Floor]) -> Shown:
    """How many floors are in which state, a breach first; every breached one by its name."""
    found = {state: [f for f in floors if f.state == state] for state in STATES}
    passed, breached, open_ = (len(found[state]) for state in STATES)
    if not floors:
        return Shown("Safety floors", ("none",), ("This release has none.",), "none")
    unclear = f"{open_} undetermined, which is no pass: what was read is too little to tell." if open_ else ""
    if not breached:
        lines = f"None breached{'; ' if unclear else '.'}{unclear}"
        return Shown("Safety floors", (f"{passed} of {len(floors)} passed",), (lines,))
    named = (
        f"{floor_title(f)}: {percent(f.value)}, asked for {bound(f.name, f.threshold)}." for f in found["breached"]
    )
    rest = f"{passed or 'None'} passed{'; ' if unclear else '.'}{unclear}"
    return Shown("Safety floors", (f"{breached} of {len(floors)} breached",), (*named, rest), "breached")


def judged(j: Judge) -> Shown:
    """Who judged, and how far it agrees with people: in the size of the figures that rest on it."""
    if not j.by_judge:
        line = f"Nothing was left to a judge: rules decided all {j.verdicts} verdicts, the same way for everyone."
        return Shown("The judge", ("rules alone",), (line,))
    known, lacking, trust = _with_people(j), not_validated(j), trusted(j)
    lines = [
        *_beside_people(known),
        f"{clip(j.name, 80)}{', which counts words and is approximate,' if j.approximate else ''} read {j.by_judge} of "
        f"{j.verdicts} verdicts; rules decided the others.",
        *([f"Not validated: {', '.join(clip(name, 80) for name in lacking)}."] if known and lacking else []),
        *trust.lines,
    ]
    return trust._replace(lines=tuple(lines))


def trusted(j: Judge) -> Shown:
    """How far a judge may be trusted, in few words."""
    known, whole = _with_people(j), next(iter(j.agreement), None)
    overall = whole.overall if whole and whole.measured else None
    value = [f"κ {_range([p.kappa for p in known])} with people"] if known else ["not validated against people"]
    value += [] if overall else ["not calibrated"]
    lines = [] if known or overall else [UNKNOWN_JUDGE]
    if whole and overall:
        lines.append(
            f"On calibration replies κ {hundredths(overall.kappa.value)} with their authors; it "
            f"{'may' if whole.usable else 'may not'} judge a submission."
        )
    return Shown("The judge", tuple(value), tuple(lines), "" if known and overall else "none")


def _with_people(j: Judge) -> list[PeopleAgreement]:
    return [p for p in j.people if p.reason is None and p.kappa.value is not None]


def _beside_people(known: Sequence[PeopleAgreement]) -> list[str]:
    if not known:
        return []
    kappa = known[0].kappa
    sure = len(known) == 1 and kappa.low is not None
    return [
        *([f"between {hundredths(kappa.low)} and {hundredths(kappa.high)}"] if sure else []),
        f"κ is agreement beyond chance: 0 is guessing, 1 always. On {listed(sorted({p.set for p in known}))}, where "
        f"people among themselves reach {_range([p.people for p in known])}.",
    ]


def _range(figures: Sequence[Estimate]) -> str:
    """`0.62`, or `0.41 to 0.62` of several."""
    ends = sorted(f.value for f in figures if f.value is not None)
    return " to ".join(dict.fromkeys(hundredths(x) for x in (ends[0], ends[-1]))) if ends else hundredths(None)


def policies_said(s: Scorecard) -> Shown:
    """The best that a trivial policy scores on the same data."""
    scored = [(r.composite.value, r) for r in s.references if r.composite.value is not None]
    if not scored:
        return Shown("Best trivial policy", ("not shown",), (why_no_policies(s),), "none")
    value, best = max(scored, key=lambda r: r[0])
    about = POLICIES.get(best.policy, "")
    return Shown(
        "Best trivial policy",
        (number(value),),
        (
            f"Composite of “{clip(best.policy, 60)}”{f', which {about}' if about else ''}.",
            f"Of programs that understand nothing, the best on the same samples. {BY_RULE}",
        ),
    )


def why_no_policies(s: Scorecard) -> str:
    """Why no trivial policy stands beside the run."""
    if s.dataset.tier:
        return "This data is another build than the release whose scores are on file, so they don’t compare."
    return "This run is of no tier, and the scores on file are of whole tiers, so they don’t compare."


def score_parts(s: Scorecard) -> list[ScorePart]:
    """The score table, a part per headline of which the run has a score."""
    scores = [*sorted(s.behaviors.items()), *([("", s.tasks)] if s.tasks else [])]
    parts = [
        ScorePart(
            title,
            s.headlines.get(name),
            [(c, b) for c, b in scores if b.headline == name and b.earns],
            [(c, b) for c, b in scores if b.headline == name and not b.earns],
        )
        for name, title in HEADLINES.items()
    ]
    return [p for p in parts if p.earning or p.costs]


def glued(text: str) -> str:
    """No line break before a percent sign."""
    return text.replace(" %", "\u00a0%")


def begun(text: str) -> str:
    """With a capital letter."""
    return text[:1].upper() + text[1:]


def listed(parts: Sequence[str], word: str = "and") -> str:
    """`one, two and three`."""
    return f" {word} ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
