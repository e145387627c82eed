"""
What a judge said of two answers to one item, and which calls gave the answers that can be compared. A pure fold.

Comparisons are kept until the verdict that they are for. An answer is known by its call: its text is in the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from attrs import evolve as replace

from skillopt_es.events.catalog import AnswersCompared, RolloutCompleted, SkillScored
from skillopt_es.events.places import Place
from skillopt_es.events.values import UNREADABLE, CallRef, Failed, Measured
from skillopt_es.projections.state import RunState

S = TypeVar("S")


def compares_answers(state: RunState[S]) -> bool:
    """Whether the gate goes by what a judge prefers."""
    assert state.started is not None
    section = state.started.config.get("evaluation")
    value = section.get("compare_answers") if isinstance(section, dict) else None
    return state.overrides.get("evaluation.compare_answers", value) is True


def answers_of(
    state: RunState[S], event: SkillScored, rows: Mapping[str, RolloutCompleted]
) -> dict[str, CallRef | None]:
    """The call that gave each item's answer; the carried items have those of the skill that they are carried from."""
    found = {item: state.measured[event.carried_from].drawn[0].answers.get(item) for item in event.carried}
    for item, row in rows.items():
        if isinstance(row.outcome, Measured):
            asked = [call for call in row.calls if Place(call.slot).question is None]
            found[item] = asked[-1] if asked and row.trajectory else None  # an attempt that was late left none
    return found


def after_comparison(state: RunState[S], event: AnswersCompared) -> RunState[S]:
    """The state with one comparison more."""
    rivals = (event.candidate, event.current, Place(event.place).repeat)
    known = {**state.compared.get(rivals, {}), event.item: event}
    return replace(state, compared={**state.compared, rivals: known})


def compared_again(state: RunState[S]) -> RunState[S]:
    """The state without the comparisons that came to nothing: they are to be made again."""
    lost = [each for done in state.compared.values() for each in done.values() if isinstance(each.outcome, Failed)]
    if not lost:
        return state
    left = {
        rivals: {item: each for item, each in done.items() if not isinstance(each.outcome, Failed)}
        for rivals, done in state.compared.items()
    }
    return replace(state, compared=left, misjudged={**state.misjudged, **dict(misjudged(lost))})


def misjudged(lost: Iterable[RolloutCompleted | AnswersCompared]) -> Iterator[tuple[str, int]]:
    """How many questions to the judge were of no use, by attempt: recorded replies stay, so others are asked."""
    for each in lost:
        if each.failure == UNREADABLE:
            for call in each.calls:
                slot = Place(call.slot)
                if slot.question is not None:
                    yield slot.asked_about, slot.question  # in the order in which they were asked
