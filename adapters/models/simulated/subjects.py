"""The two subjects that the simulated optimizer knows: answers in a house style, and tasks in a household."""

from __future__ import annotations

from attrs import frozen

from skillopt_es.adapters.models.simulated import household
from skillopt_es.adapters.models.simulated.rules import BREVITY, HARMFUL, STYLE, Rule


@frozen(kw_only=True)
class Subject:
    """What can be learned about a subject, which rules hurt in it, and the words in which all that is said."""

    style: tuple[Rule, ...]
    harmful: tuple[Rule, ...]
    habit: Rule
    pattern: str
    praise: str
    advice: str
    warning: str
    guidance: str


HOUSE_STYLE = Subject(
    style=STYLE,
    harmful=HARMFUL,
    habit=BREVITY,
    pattern="The answers hold nothing but what was asked for.",
    praise="Simulated: short answers pass.",
    advice="Rules that name one kind of value and show its form help.",
    warning="Rules about all answers (their length, their case, their grammar) hurt: leave them out.",
    guidance="Before you answer, re-check every rule of this document that fits the question.",
)
HOUSEHOLD = Subject(
    style=household.STYLE,
    harmful=household.HARMFUL,
    habit=household.CARE,
    pattern="Solved tasks were taken one step after the other.",
    praise="Simulated: who knows what is left gets there.",
    advice="Rules that name one kind of task and the place where it is done help.",
    warning=household.WARNING,
    guidance="Before you choose a command, re-check every rule of this document that fits the task.",
)
EVERY_STYLE = (*HOUSE_STYLE.style, *HOUSEHOLD.style)
EVERY_RULE = (
    *HOUSE_STYLE.style, *HOUSE_STYLE.harmful, HOUSE_STYLE.habit,
    *HOUSEHOLD.style, *HOUSEHOLD.harmful, HOUSEHOLD.habit,
)  # fmt: skip


def subject_of(question: str) -> Subject:
    """What a question to the optimizer is about."""
    return HOUSEHOLD if household.is_played(question) else HOUSE_STYLE
