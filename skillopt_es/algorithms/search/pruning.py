"""
Lines that earn nothing any more: proposed for deletion after a step that has earned nothing, without asking anybody.

A line is under suspicion where later ones speak of all its tasks, or where it came with others in one edit. A task
that it speaks of is tried without it: if it passes, the line goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from skillopt_es.algorithms.search.credit import spoken_of
from skillopt_es.algorithms.search.placing import belongs_to_others
from skillopt_es.algorithms.search.results import solved_tasks
from skillopt_es.algorithms.search.state import PRUNING, SearchState, open_step
from skillopt_es.config import RunConfig
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.events.catalog import Event, PatchProposed
from skillopt_es.events.places import Place
from skillopt_es.events.values import Edit, Minibatch, SkillTree


@frozen
class Suspect:
    """A line of the skill that may be of no use, and a solved task that would tell."""

    line: str
    file: str
    task: str


def pruning_due(state: SearchState, config: RunConfig) -> bool:
    """Whether the open step proposes deletions: the step before has earned nothing, and this text was never pruned."""
    step = open_step(state)
    idle = state.steps_done > state.best.step
    new = state.algorithm.pruned != state.current.skill.hash
    if state.algorithm.varied:  # a coin would pass without a line that is needed
        return False
    return config.search.prune and idle and new and not step.rounds and bool(step.batch.items)


def pruning_groups(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> tuple[Minibatch, ...]:
    """The tasks on which lines under suspicion are tried, by where they passed; none where no line is."""
    at = open_step(state).place.in_batch(0)
    places: dict[Place, list[str]] = {}
    for each in _suspects(state, config, evidence):
        places.setdefault(state.algorithm.at[each.task], []).append(each.task)
    return tuple(
        Minibatch(id=at.analyst(PRUNING, number), kind=PRUNING, place=place, items=tuple(items))
        for number, (place, items) in enumerate(places.items())
    )


def prune(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> Event:
    """Each such line taken out, as an edit for the task that it is tried on."""
    step = open_step(state)
    group = next(each for each in step.groups if each.kind == PRUNING and each.id not in step.patches)
    suspects = [each for each in _suspects(state, config, evidence) if each.task in group.items]
    edits = tuple(
        Edit(
            id=f"{group.id}#{number}",
            op="delete",
            target=each.line,
            file=each.file,
            source=PRUNING,
            origins=(group.id,),
            claims=(each.task,),
            hypothesis="the task passes without it",
        )
        for number, each in enumerate(suspects, start=1)
    )
    return PatchProposed(patch=group.id, step=step.number, kind=PRUNING, items=group.items, result="edits", edits=edits)


def _suspects(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> list[Suspect]:
    """At most one line for each task, the earliest: of two that say the same, one has to stay."""
    tasks, found = solved_tasks(state, config, evidence), dict[str, Suspect]()
    about = {file: _lines_about(text, tasks) for file, text in _current(state).files.items()}
    for kept in state.algorithm.kept:
        if kept.edit.source != "examples" and kept.edit.op != "delete":
            file = kept.edit.file or _current(state).main
            own = [item for item in kept.items if item in tasks]
            for line, task in lines_to_spare(kept.edit, about[file], own):
                found.setdefault(task, Suspect(line=line, file=file, task=task))
    return list(found.values())


def _current(state: SearchState) -> SkillTree:
    return state.current.skill


def _lines_about(text: str, tasks: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """The lines of a text in their order, each with the tasks that it speaks of."""
    return {line: spoken_of(line, tasks) for line in map(str.strip, text.splitlines()) if line}


def lines_to_spare(edit: Edit, about: Mapping[str, tuple[str, ...]], own: Sequence[str]) -> Iterator[tuple[str, str]]:
    """
    The lines of an edit that may be of no use, each with a task of its `own`, which it has fixed, that would tell.

    Words alone do not: a line has common ones with tasks that it is not for. What came alone is doubtful if later lines
    speak of all its tasks; of several lines that came together each is. Steps, and what stands under a heading, stay.
    """
    lines = [line for line in edit.content.splitlines() if line.strip()]
    if any(map(belongs_to_others, lines)):
        return
    order = list(about)
    for line in (each.strip() for each in lines if each.strip() in about):
        spoken = about[line]
        tells = [item for item in own if len(lines) == 1 or item in spoken or not spoken] or list(spoken)
        later = {item for other in order[order.index(line) + 1 :] for item in about[other]}
        if tells and (len(lines) > 1 or later.issuperset(tells)):
            yield line, tells[0]
