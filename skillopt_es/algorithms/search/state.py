"""What only the search knows: its open step, what is known of each training item, and which edits were refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeGuard

from attrs import field, frozen

from skillopt_es.algorithms.search.steps import OpenStep, Saved
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.places import Place
from skillopt_es.events.values import Edit, Json, Measured, Minibatch
from skillopt_es.projections.state import AnyState, RunState, there

PRUNING: Literal["pruning"] = "pruning"
"""What a group of lines is called that are tried without."""
TOO_NARROW = "it fixed the tasks that it was made for, and no other task of their type"
_ENOUGH_ASKED = 2  # questions that tell whether a form of reply is any good


def why_dropped(fixed: Iterable[str], broke: Iterable[str]) -> str:
    """What an edit that the screen dropped has done alone, as later questions tell it."""
    did = [f"{what} {', '.join(items)}" for what, items in (("fixed", [*fixed]), ("broke", [*broke])) if items]
    if len(did) == 1 and did[0].startswith("fixed"):
        return f"alone it {did[0]}, which may have been luck"
    return f"alone it {' and '.join(did) or 'fixed nothing'}"


@frozen(kw_only=True)
class Tried:
    """
    An edit that is not in the skill, at which step it was refused, and why; `types` are those of its tasks.

    It was refused `alone`, or by the gate in company, where another one may have been to blame; what has fixed a task
    alone, perhaps by luck, counts as the latter.
    """

    step: int
    edit: Edit
    why: str
    types: frozenset[str] = frozenset()
    alone: bool = True


@frozen(kw_only=True)
class Kept:
    """
    An edit that got into the skill: the tasks that it fixed, where they had failed, and their types.

    `lines` are the lines of the skill that it wrote: all of them stand there while it is kept.
    """

    step: int
    edit: Edit
    items: tuple[str, ...]
    place: Place
    types: frozenset[str]
    lines: tuple[str, ...] = ()


@frozen(kw_only=True)
class Drawn:
    """What a training task came to under one text, draw by draw; `own` texts are those that were current."""

    text: str
    own: bool
    outcomes: tuple[Measured, ...] = ()


ReplyForm = Literal["json", "text"]


@frozen
class Earned:
    """How many questions wanted their answer in a form, and how many edits of these answers the screen has kept."""

    asked: int = 0
    kept: int = 0

    @property
    def rate(self) -> float:
        """Kept edits for a question."""
        return self.kept / self.asked if self.asked else 0.0


@frozen(kw_only=True)
class Search:
    """
    The open step, and what all steps so far have found out.

    `known` is each training item's last result on the way to the current skill, `under` the hash of the text that it is
    from, and `at` where it is recorded; `shown` is how many batches had it. `again` counts tasks that were tried under
    the same text once more, in a batch or for an edit's credit, `varied` how often one came out otherwise; `fickle` are
    those tasks. `drawn` is all that each task came to, text by text, and `repeated`, by task and text, what was
    drawn there more than once; `failed` is how often in a row a task could not be measured. What came of tasks at some
    places is no evidence: there they are `barred`.

    `widened` says that verdicts take all validation items now, not some of them.

    `kept` are the edits that are in the current skill, `saved` those to be tried again, after a candidate was refused
    that lost tasks of the types `lost`. `asked_anew` counts how often
    another edit was asked for in the place of one, by the types of its tasks. `examples` are the items that stand in
    the current skill, `spoiled` how often such a proposal was refused. `forms` is what answers in each form have
    earned, up to the last step. `tries` counts the results, `calls` those that they came from, and `questions` those to
    the optimizer.
    """

    step: OpenStep | None = None
    known: Mapping[str, Measured] = field(factory=dict)
    under: Mapping[str, str] = field(factory=dict)
    at: Mapping[str, Place] = field(factory=dict)
    shown: Mapping[str, int] = field(factory=dict)
    widened: bool = False
    kept: tuple[Kept, ...] = ()
    saved: tuple[Saved, ...] = ()
    lost: frozenset[str] = frozenset()
    asked_anew: Mapping[frozenset[str], int] = field(factory=dict)
    tried: tuple[Tried, ...] = ()
    pruned: str = ""
    examples: frozenset[str] = frozenset()
    spoiled: int = 0
    forms: Mapping[ReplyForm, Earned] = field(factory=dict)
    again: int = 0
    varied: int = 0
    fickle: frozenset[str] = frozenset()
    drawn: Mapping[str, tuple[Drawn, ...]] = field(factory=dict)
    repeated: Mapping[tuple[str, str], tuple[Measured, ...]] = field(factory=dict)
    failed: Mapping[str, int] = field(factory=dict)
    barred: Mapping[str, tuple[str, ...]] = field(factory=dict)
    tries: int = 0
    calls: int = 0
    questions: int = 0


SearchState = RunState[Search]
"""A run that is trained by the search."""


def is_search(state: AnyState) -> TypeGuard[SearchState]:
    """Whether a run is trained by the search."""
    return isinstance(state.algorithm, Search)


def checks_together(state: SearchState) -> bool:
    """Whether what is kept meets solved tasks before the gate (`search.together`)."""
    tasks = _recorded(state, "together")
    return isinstance(tasks, int) and tasks > 0


def _recorded(state: SearchState, key: str) -> Json:
    search = state.started.config.get("search")
    return search.get(key) if isinstance(search, dict) else None


def open_step(state: SearchState) -> OpenStep:
    """The step that is under way."""
    return there(state.algorithm.step, "step under way")


_ANEW, _RECALLED, _WIDER = "anew", "saved", "wider"


def wider_at(place: Place, number: int) -> Place:
    """Where a text is tried on the validation items that it has not met."""
    return place / f"{_WIDER}-{number}"


def is_wider(place: str) -> bool:
    """Whether something was tried there."""
    return Place(place).name.startswith(f"{_WIDER}-")


def anew_at(place: Place, index: int) -> Place:
    """The question for another edit in the place of one that is kept."""
    return place.analyst(_ANEW, index)


def recalled_at(place: Place, index: int) -> Place:
    """The group of edits that are tried again: nobody is asked about it."""
    return place.analyst(_RECALLED, index)


def replaced_by(algorithm: Search, group: Minibatch) -> Kept | None:
    """The edit in whose place a group's question wants another; None for most, and where it was not kept."""
    name, _, number = Place(group.id).name.rpartition("-")
    return algorithm.kept[int(number)] if name == _ANEW and int(number) < len(algorithm.kept) else None


def is_recalled(group: Minibatch) -> bool:
    """Whether a group's edits were proposed before."""
    return Place(group.id).name.startswith(f"{_RECALLED}-")


def types_of(state: SearchState, place: str, items: Iterable[str]) -> frozenset[str]:
    """The types of tasks that were tried at a place."""
    rows: Mapping[str, RolloutCompleted] = state.rollouts.get(place, {})
    return frozenset(rows[item].task_type for item in items if item in rows and rows[item].task_type)


def solved_types(state: SearchState) -> frozenset[str]:
    """The types of training tasks that something on the way to the current skill has solved, and no coin."""
    algorithm, found = state.algorithm, set[str]()
    for item, result in algorithm.known.items():
        if result.hard > 0 and item not in algorithm.fickle and item not in algorithm.examples and item in algorithm.at:
            found |= types_of(state, algorithm.at[item], [item])
    return frozenset(found)


def kept_edits(step: OpenStep) -> tuple[Edit, ...]:
    """The edits that the screen left over; none before it."""
    return tuple(edit for edit in step.edits if edit.id in step.chosen)


def names_type(text: str, kind: str) -> bool:
    """Whether a text has the name of a type as whole words: `early_refund` is named by "an early refund"."""
    name, words = _words(kind), _words(text)
    return bool(name) and any(words[at : at + len(name)] == name for at in range(len(words)))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def asked_form(state: SearchState) -> ReplyForm:
    """In which form the open step's questions want their answers; with `auto`, in what has earned more so far."""
    wish = state.overrides.get("search.reply", _recorded(state, "reply"))
    if wish == "text":
        return "text"
    if wish == "json":
        return "json"
    return better_form(state.algorithm)


def better_form(algorithm: Search) -> ReplyForm:
    """JSON, unless it has earned nothing at first, and plain text more, or was not asked for as often."""
    plain, usual = algorithm.forms.get("text", Earned()), algorithm.forms.get("json", Earned())
    if usual.asked < _ENOUGH_ASKED or (usual.kept and not plain.asked):
        return "json"
    if plain.asked < _ENOUGH_ASKED:
        return "text"
    if plain.rate == usual.rate:
        return "json" if usual.asked <= plain.asked else "text"
    return "json" if usual.rate > plain.rate else "text"
