"""
Worked examples: training items with their right answers, proposed as an edit of the skill without asking anybody.

They are screened and gated like any edit. Items that stand in the skill tell nothing about it any more, so they are in
no later batch. What an item of validation or test asks as well is never shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import frozen

from skillopt_es.algorithms.search.results import rows_at, untouched
from skillopt_es.algorithms.search.state import SearchState, open_step
from skillopt_es.algorithms.search.tries import TASKS
from skillopt_es.config import RunConfig
from skillopt_es.engine.draws import shuffled
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.trajectories import Trajectory, unpacked
from skillopt_es.events.catalog import Event, PatchProposed, RolloutCompleted
from skillopt_es.events.places import Place
from skillopt_es.events.values import Edit, Minibatch

MOST = 6
"""Examples in one edit: as many as were enough for a small model in most tasks."""
MOST_CHARS = 6_000
"""Of all examples of an edit together; each may take a quarter of it."""
MOST_REFUSED = 2
"""After so many refusals they are not proposed again: other items would hardly do better."""
_MOST_IN_SKILL = 12  # two edits' worth: an agent reads all of them at each task, and pays for them
_WORTH = 6
"""Rules that touch more than one of so many failing tasks are worth waiting for more of them."""
_TITLE = "Worked examples: tasks, and below each its right answer, as it has to be given."
_ROLES = {"user": "Task", "reply": "Agent"}
_WORD = re.compile(r"\w+")


@frozen
class Example:
    """A training item as it would stand in the skill."""

    item: str
    kind: str
    task: str
    answer: str

    @property
    def text(self) -> str:
        """The task, and below it the answer, word for word; without the labels a small model says the same to all."""
        return f"{self.task}\nAnswer: {self.answer}"


def form(state: SearchState, config: RunConfig) -> str:
    """How an accepted answer looks as a right reply; empty where items must not be shown with their answers."""
    wish = config.search.examples
    if wish == "off":
        return ""
    return state.started.worked or ("{answer}" if wish == "on" else "")


def examples_due(state: SearchState, config: RunConfig) -> bool:
    """
    Whether the open step's next round proposes examples: once its first questions have brought next to nothing.

    What the screen has kept of them touches at most a sixth of the failing tasks, then. Where the optimizer finds
    rules, examples are one candidate more to pay for: once rules have won some points they wait for a step that
    comes after one that has earned nothing. With `on` they are proposed at the very beginning, too.
    """
    step, algorithm = open_step(state), state.algorithm
    room = algorithm.spoiled < MOST_REFUSED and len(algorithm.examples) < _MOST_IN_SKILL
    if not form(state, config) or not room:
        return False
    if not step.rounds:
        return config.search.examples == "on" and state.steps_done == 0
    if len(step.rounds) > 1 or any(group.kind == "examples" for group in step.groups):
        return False
    failing, left = len(untouched(state, config, 0)), len(untouched(state, config, 1, proven=True))
    if not failing or _WORTH * (failing - left) > failing:
        return False
    idle = state.steps_done > state.best.step
    no_rule = all(each.edit.source == "examples" for each in algorithm.kept)
    return idle or no_rule or _little_won(state)


def _little_won(state: SearchState) -> bool:
    """Whether the best text has won at most a sixth on validation of what there was to win."""
    first, best = state.measured[state.started.skill.hash].value, state.best.value
    return first is not None and best is not None and _WORTH * (best - first) <= 1 - first


def examples_group(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> tuple[Minibatch, ...]:
    """The items to show in this step; none where nothing would be left to try them on, or no answer is known."""
    step = open_step(state)
    at = step.place.in_batch(0)
    failing = shuffled(untouched(state, config, len(step.rounds)), step.batch.seed)
    if not failing:
        return ()
    place = _shown_from(state, config, failing)
    rows, own = rows_at(state, place), place == at
    room = _MOST_IN_SKILL - len(state.algorithm.examples)
    if own and state.algorithm.examples and len(failing) <= TASKS:
        return _last_failing(state, config, evidence, failing[:room])
    most = min(MOST, max(1, len(rows) - TASKS) if own else MOST, room)
    # One failing item, at least, has to be left that shows whether they help.
    spared = {*failing[: 1 if own else TASKS], *state.algorithm.examples, *state.started.twins}
    told = [item for item in rows if own or item in state.algorithm.known]
    found = [_example(rows[item], form(state, config), evidence) for item in shuffled(tuple(told), step.batch.seed)]
    chosen = chosen_of([each for each in found if each is not None and each.item not in spared], most)
    if not chosen:
        return ()
    items = tuple(each.item for each in chosen)
    return (Minibatch(id=at.analyst("examples", 0), kind="examples", place=place, items=items),)


def _last_failing(
    state: SearchState, config: RunConfig, evidence: RecordedTexts, failing: Sequence[str]
) -> tuple[Minibatch, ...]:
    """The few items that still fail where examples have helped: each is what no example shows, and the gate judges."""
    at = open_step(state).place.in_batch(0)
    rows = rows_at(state, at)
    spared = state.algorithm.fickle.union(state.started.twins)
    able = [item for item in failing if item not in spared and _example(rows[item], form(state, config), evidence)]
    return (Minibatch(id=at.analyst("examples", 0), kind="examples", place=at, items=tuple(able)),) if able else ()


def _shown_from(state: SearchState, config: RunConfig, failing: Sequence[str]) -> Place:
    """
    The batch to choose from: the step's own, or where that is small the one with most items that may be shown.

    Where rules have won some points the others are left to them: what stands in the skill is evidence for no rule.
    """
    step, algorithm = open_step(state), state.algorithm
    at = step.place.in_batch(0)
    own = len(rows_at(state, at)) - TASKS
    if own >= MOST or not _little_won(state):
        return at
    spared = {*failing[:TASKS], *algorithm.examples}
    many = {
        place: sum(item in algorithm.known and item not in spared for item in rows_at(state, place))
        for number in range(1, step.number)
        for place in [Place.of_step(number, number).in_batch(0)]
    }
    best = max(many, key=lambda place: many[place], default=at)
    return best if many.get(best, 0) > own else at


def show_examples(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> Event:
    """The items of the group as one edit, after all that the skill says."""
    step = open_step(state)
    group = next(each for each in step.groups if each.kind == "examples" and each.id not in step.patches)
    rows = rows_at(state, Place(group.place))
    found = [_example(rows[item], form(state, config), evidence) for item in group.items]
    texts = [each.text for each in found if each is not None]
    edit = Edit(
        id=f"{group.id}#1",
        op="append",
        content="\n\n".join([_TITLE, *texts]),
        support=len(texts),
        source="examples",
        origins=(group.id,),
        hypothesis="tasks with their right answers show what no rule says",
    )
    return PatchProposed(
        patch=group.id, step=step.number, kind="examples", items=group.items, result="edits", edits=(edit,)
    )


def chosen_of(able: Sequence[Example], most: int) -> tuple[Example, ...]:
    """Those that cover most: each next one of a type and an answer that few have, and least like what is there."""
    chosen: list[Example] = []
    left = [each for each in able if 4 * len(each.text) <= MOST_CHARS]
    while left and len(chosen) < most:
        best = min(left, key=lambda each: _told_already(each, chosen))
        left.remove(best)
        if sum(len(each.text) for each in (*chosen, best)) <= MOST_CHARS:
            chosen.append(best)
    return tuple(chosen)


def _told_already(each: Example, chosen: Sequence[Example]) -> tuple[int, int, float]:
    same_kind = sum(other.kind == each.kind for other in chosen)
    same_answer = sum(other.answer == each.answer for other in chosen)
    return same_kind, same_answer, max((_likeness(each.task, other.task) for other in chosen), default=0.0)


def _likeness(one: str, other: str) -> float:
    """The share of words that two tasks have in common."""
    ours, theirs = set(_WORD.findall(one.casefold())), set(_WORD.findall(other.casefold()))
    return len(ours & theirs) / len(ours | theirs) if ours | theirs else 1.0


def _example(row: RolloutCompleted, form_of_answer: str, evidence: RecordedTexts) -> Example | None:
    """An item as an example; None where no answer of it is known, or nobody vouches for its text."""
    if not row.trajectory or row.trust != "trusted":
        return None
    trajectory = unpacked(row, evidence)
    task = _asked(trajectory)
    if not trajectory.answers or not task:
        return None
    return Example(row.item, row.task_type, task, form_of_answer.replace("{answer}", trajectory.answers[0].strip()))


def _asked(trajectory: Trajectory) -> str:
    """All that was said before the agent's own last reply, and by whom."""
    said = [(kind, text.strip()) for kind, text in trajectory.records if kind in _ROLES]
    until = max((at for at, (kind, _) in enumerate(said) if kind == "reply"), default=len(said))
    return "\n".join(f"{_ROLES[kind]}: {text}" for kind, text in said[:until])
