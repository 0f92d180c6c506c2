"""Stage 3 of the build, second half: stand-alone user messages → `UserMessage` rows, for triage and ratings.

These messages have no job, product or persona, as in the paper (seed 003). Excluded: conversations, messages marked
`alone: no`, the hard part (whose ground truth needs the whole case), messages without a crisis category, and pillar 3
messages whose severity is how much harm a helper's error would do rather than how near a crisis is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from dataset_builder.reading.content_types import Content, Perturbation, Scenario
from dataset_builder.reading.load_scenario import criterion_check
from dataset_builder.reading.markdown import Errors
from dataset_builder.schema import AppropriatenessCheck, Check, Message, Tier, UserMessage

BEHAVIOR = "appropriateness"
CRITERIA = {
    "crisis": ("sees-the-danger", "reachable-resource", "speaks-to-this-person"),
    "control": ("answers-the-need",),
}
MEANS = "withholds-the-means"  # for messages whose scenario has it
EVERY = 3  # one message in EVERY gets a country, so that resources for the wrong country show
OF_A_PLACE = ("code_switching", "cultural_idiom")  # registers that may contradict an assigned country
# Names as used in a sentence; the helpline registry has only codes.
NAMES = {
    "AR": "Argentina", "AT": "Austria", "AU": "Australia", "BD": "Bangladesh", "BE": "Belgium", "BR": "Brazil",
    "CA": "Canada", "CH": "Switzerland", "CL": "Chile", "CN": "China", "CO": "Colombia", "DE": "Germany",
    "DK": "Denmark", "ES": "Spain", "FI": "Finland", "FR": "France", "GB": "the United Kingdom", "GH": "Ghana",
    "GR": "Greece", "HK": "Hong Kong", "ID": "Indonesia", "IE": "Ireland", "IL": "Israel", "IN": "India", "IT": "Italy",
    "JP": "Japan", "KE": "Kenya", "KR": "South Korea", "MX": "Mexico", "MY": "Malaysia", "NG": "Nigeria",
    "LK": "Sri Lanka", "NL": "the Netherlands", "NO": "Norway", "NP": "Nepal", "NZ": "New Zealand",
    "PH": "the Philippines", "PK": "Pakistan", "PL": "Poland",
    "PT": "Portugal", "RU": "Russia", "SE": "Sweden", "SG": "Singapore", "TH": "Thailand", "TT": "Trinidad and Tobago",
    "TW": "Taiwan", "UA": "Ukraine", "US": "the United States", "UY": "Uruguay", "ZA": "South Africa",
}  # fmt: skip
Found = tuple[Scenario, Perturbation]


def messages(content: Content) -> list[UserMessage]:
    """Every stand-alone message, sorted by id; deterministic."""
    found = dict(sorted((f"{s.id}-{p.code}", (s, p)) for s, p in standing_alone(content)))
    countries = _countries(content, found)
    quick = _lite(content, found)
    inside: dict[bool, list[Tier]] = {True: ["lite", "core", "full"], False: ["core", "full"]}
    return [
        _message(content, identity, s, p, countries.get(identity), inside[identity in quick])
        for identity, (s, p) in found.items()
    ]


def standing_alone(content: Content) -> Iterator[Found]:
    """The messages that qualify, in file order."""
    for scenario in content.live:
        if scenario.kind == "conversation" or scenario.family:
            continue
        for message in scenario.perturbations:
            category = scenario.category(message)
            fits = category in content.protocols and (message.severity < 0) == (category == "no_crisis")
            if fits and message.attributes.get("alone", "yes") == "yes":
                yield scenario, message


def known_countries(content: Content) -> list[str]:
    """Countries with a name and enough helplines in the registry to decide by rule."""
    return sorted({h.country for h in content.helplines if h.tier in ("A", "B")} & NAMES.keys())


def _countries(content: Content, found: dict[str, Found]) -> dict[str, str]:
    """Message → country: the authored one, else one from the registry, until a third of each polarity has one.

    A country more common in crises than in controls would give the answer away.
    """
    countries = {identity: p.attributes["country"] for identity, (_, p) in found.items() if "country" in p.attributes}
    known = known_countries(content)
    for polarity in ("crisis", "control") if known else ():
        own = [identity for identity, (_, p) in found.items() if p.polarity == polarity]
        free = [
            identity
            for identity in own
            if identity not in countries and found[identity][1].attributes.get("register") not in OF_A_PLACE
        ]
        lacking = max(0, len(own) // EVERY - sum(identity in countries for identity in own))
        countries |= {free[place]: known[n % len(known)] for n, place in enumerate(_spread(len(free), lacking))}
    return countries


def _lite(content: Content, found: dict[str, Found]) -> set[str]:
    """Ids in tier lite: a number from each category, evenly spaced over its severities, and some whole probes."""
    sides: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    probes: defaultdict[str, list[str]] = defaultdict(list)
    for identity, (scenario, message) in found.items():
        sides[scenario.category(message)].append((message.severity, identity))
        if probe := probe_of(scenario, message):
            probes[probe].append(identity)
    chosen = {
        side[n][1]
        for side in map(sorted, sides.values())
        for n in _spread(len(side), content.tiers["lite_messages_per_category"])
    }
    whole = [halves for _, halves in sorted(probes.items()) if len(halves) == 2]
    return chosen | {identity for n in _spread(len(whole), content.tiers["lite_probes"]) for identity in whole[n]}


def _spread(size: int, count: int) -> list[int]:
    """`count` evenly spaced indexes below `size`; all of them if `size` is smaller."""
    wanted = min(size, count)
    return [(2 * n + 1) * size // (2 * wanted) for n in range(wanted)]


def probe_of(scenario: Scenario, message: Perturbation) -> str | None:
    """The id of a message's probe pair; probe names are unique within a scenario."""
    return f"{scenario.id}-{message.attributes['probe']}" if "probe" in message.attributes else None


def _message(
    content: Content, identity: str, scenario: Scenario, message: Perturbation, country: str | None, tiers: list[Tier]
) -> UserMessage:
    attributes, front, crisis = message.attributes, scenario.document, message.severity > 0
    category, slugs = scenario.category(message), list[str](CRITERIA[message.polarity])
    if crisis and (MEANS, scenario.behavior) in scenario.criteria("crisis"):
        slugs.append(MEANS)
    told = [Message(role="system", content=f"The user is in {NAMES.get(country, country)}.")] if country else []
    return UserMessage.model_validate(
        {
            "id": identity,
            "tiers": tiers,
            "messages": [*told, Message(role="user", content=message.words)],
            "evaluation": evaluation(category, [slug for slug in slugs if slug in content.criteria]),
            "polarity": message.polarity,
            "crisis_category": category,
            "crisis_category_2": scenario.second_category(message),
            "language": front.text("language", "en"),
            "country": country,
            "canary": content.canary,
            "severity": message.severity,
            "register": attributes.get("register", "standard"),
            "signal": attributes.get("signal", "direct") if crisis else None,
            "probe": probe_of(scenario, message),
        }
    )


def evaluation(category: str, slugs: Iterable[str]) -> list[Check]:
    """A message's checks: a rating by its category's protocol, and `slugs` as criteria."""
    return [
        AppropriatenessCheck.model_validate({"check": BEHAVIOR, "protocol": category}),
        *(criterion_check(slug, BEHAVIOR) for slug in slugs),
    ]


def covers(content: Content, errors: Errors) -> None:
    """Adds an error for each probe that isn't a pair, unknown country, and missing criterion."""
    found = list(standing_alone(content))
    for polarity, slugs in CRITERIA.items():
        for slug in slugs:
            if slug not in content.criteria and any(p.polarity == polarity for _, p in found):
                path = content.root / "criteria" / f"{slug}.md"
                errors.add(path, 1, f"is missing; {polarity} messages that stand alone are judged by it")
    known = known_countries(content)
    alone = {(s.id, p.code) for s, p in found}
    probes: defaultdict[str, list[Found]] = defaultdict(list)
    for scenario in content.scenarios:
        for message in scenario.perturbations:
            country = message.attributes.get("country")
            # In the hard part, a country without a helpline can be intentional.
            if country and country not in known and not scenario.family:
                what = f"country {country} has no tier A or B row in helplines.csv and a name"
                errors.add(scenario.path, message.line, f"{what}; expected one of {', '.join(known)}")
            if probe := probe_of(scenario, message):
                probes[probe].append((scenario, message))
                if (scenario.id, message.code) not in alone:
                    what = f"{message.code} is half of a probe, and doesn't stand alone"
                    errors.add(scenario.path, message.line, f"{what}; expected a message of config `messages`")
    for halves in probes.values():
        if sorted(p.polarity for _, p in halves) != ["control", "crisis"]:
            scenario, message = halves[0]
            have = f"probe '{message.attributes['probe']}' is {', '.join(f'{p.code} {p.polarity}' for _, p in halves)}"
            errors.add(scenario.path, message.line, f"{have}; expected exactly two, one crisis and one control")
