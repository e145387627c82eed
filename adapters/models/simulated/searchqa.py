"""The simulated world of SearchQA: made-up snippets, and how short an answer has to be to match exactly."""

from __future__ import annotations

from skillopt_es.adapters.models.simulated import forms
from skillopt_es.adapters.models.simulated.kinds import Rule, Topic
from skillopt_es.adapters.models.simulated.rules import FULL_SENTENCE, ONE_WORD
from skillopt_es.adapters.models.simulated.world import World

_NAME = r"[A-Z]\w+"


def _title_and_name(found: forms.Found) -> str:
    """Dame Orla Belford."""
    return f"{found['title']} {found['value']}"


def _whole_date(found: forms.Found) -> str:
    """3 May 1845."""
    return f"{found['day']} {found['value']}"


def _with_region(found: forms.Found) -> str:
    """Kelvik in Norland."""
    return f"{found['value']} in {found['region']}"


def _about(found: forms.Found) -> str:
    """About 240 steps."""
    return f"about {found['value']} {found['unit']}"


def _with_kind(found: forms.Found) -> str:
    """The novel The Grey Ferry (1902)."""
    return f"the {found['form']} {found['value']} ({found['published']})"


SEARCHQA = World(
    tasks=r"## Context\n",
    rest="\n## Task\nYou get a context made of several passages",
    mistake="A {kind} that says more than the accepted answer",
    said=lambda answer: f"One of the passages says so.\n<answer>{answer}</answer>",
    habits=(FULL_SENTENCE, ONE_WORD),
    topics=(
        Topic(
            kind="person",
            asked="Who",
            value=rf"designed by (?P<title>Sir|Dame|Doctor) (?P<value>{_NAME} {_NAME})",
            naive=_title_and_name,
            rule=Rule(
                name="titles of people",
                keywords=[r"\bSir\b|\bhonorifics?\b", r"\b(?:name|person|people)\b"],
                wording="Give the name of a person without Sir, Dame, Doctor or any other title before it.",
            ),
        ),
        Topic(
            kind="year",
            asked="In which year",
            value=r"opened on (?P<day>\d+ [A-Z]\w+) (?P<value>\d{4})",
            naive=_whole_date,
            rule=Rule(
                name="years",
                keywords=[r"\byears?\b", r"\bdays?\b|\bmonths?\b"],
                wording="When a year is asked for, give the year alone, without day and month.",
            ),
        ),
        Topic(
            kind="town",
            asked="In which town",
            value=rf"stands in (?P<value>{_NAME}) in the region of (?P<region>{_NAME})",
            naive=_with_region,
            rule=Rule(
                name="towns",
                keywords=[r"\btowns?\b|\bplaces?\b", r"\bregions?\b|\bcountry\b"],
                wording="Name a town or place alone, without the region or country it lies in.",
            ),
        ),
        Topic(
            kind="count",
            asked="How many",
            value=r"has about (?P<value>\d+) (?P<unit>steps|windows|lamps)",
            naive=_about,
            rule=Rule(
                name="counts",
                keywords=[r"\b(?:counts?|how many|numbers?)\b", r"\bunits?\b|\babout\b"],
                wording="Answer how many with the bare number, without about and without a unit.",
            ),
        ),
        Topic(
            kind="work",
            asked="Which (?:novel|opera|poem)",
            value=rf"the (?P<form>novel|opera|poem) (?P<value>The {_NAME} {_NAME}) \((?P<published>\d{{4}})\)",
            naive=_with_kind,
            rule=Rule(
                name="titles of works",
                keywords=[r"\b(?:works?|novels?|operas?|poems?)\b", r"\btitle\b"],
                wording="Give the title of a work alone: no word for its kind, no year in brackets.",
            ),
        ),
        Topic(
            kind="colour",
            asked="What colour",
            value=r"door is painted (?P<value>[a-z]+)",
            naive=forms.as_written,
        ),
    ),
)
