"""
What decided a step besides its validation items: the training items that say what should open which skill, and the
items that were tried under parts of a candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from skillopt_es.algorithms.skills.candidate import NONE, SHOULD, SHOULD_NOT
from skillopt_es.algorithms.skills.effects import standard_errors
from skillopt_es.algorithms.skills.parts import Whole
from skillopt_es.algorithms.skills.state import is_skills
from skillopt_es.audit.refused_again import earlier_refusals
from skillopt_es.engine.algorithms import check_allowed, fold_log
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.errors import NotInRun
from skillopt_es.events.catalog import EpochPlanned, Recorded, RolloutCompleted, only
from skillopt_es.events.places import Place
from skillopt_es.events.values import REFUSED_BEFORE, Measured
from skillopt_es.projections.chains import CHAIN_TYPES, Chain, chains
from skillopt_es.runs.lookup import not_in_run
from skillopt_es.runs.reading import Reading
from skillopt_es.skill.folders import skills_in

ONE_RESULT = "`explain` says what one result of it is: its event's number, or --item ID"
"""What to do with the log of an evaluation, which has no steps."""


def chain_of(step: int, reading: Reading) -> Chain:
    """A step's chain; raises NotInRun for a step that the run does not have, or has not reached."""
    check_allowed("steps", reading.started, reading.run.name, NotInRun, hint=ONE_RESULT)
    found = chains(reading.read(types=CHAIN_TYPES))
    if step in found:
        return found[step]
    beyond = not_in_run(reading, "step", step, max(found, default=0))
    if beyond is not None:
        raise beyond
    total, name = reading.started.total_steps, reading.run.name
    far = f"step {max(found)} of {total} is the last that it has reached" if found else "no step has come so far"
    raise NotInRun(f"nothing that the agent did in step {step} of {name} has been looked at yet: {far}")


@frozen(kw_only=True)
class Trigger:
    """
    A training item that met a candidate: what it opened before and under the candidate, and whether it passed then.

    `place` is where it was tried; `passed` is None where it could not be measured. It `decided` where the candidate was
    refused for its sake.
    """

    item: str
    kind: str
    place: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    passed: bool | None
    decided: bool


@frozen(kw_only=True)
class PartResult:
    """A validation item that was tried under some of a candidate's edits, and its result where it was measured."""

    item: str
    place: str
    edits: tuple[str, ...]
    hard: float | None


@frozen(kw_only=True)
class Tried:
    """
    Both, in the order of the log, and how sure the effects are that were found of a refused candidate's changes.

    `errors` has the standard error of each effect by the change's first edit, where there are draws enough to tell.
    `earlier` says of patches, of which nothing was tried because it had been refused before, at which step and why.
    """

    triggers: tuple[Trigger, ...] = ()
    parts: tuple[PartResult, ...] = ()
    errors: Mapping[str, float] = field(factory=dict)
    earlier: Mapping[str, str] = field(factory=dict)


def tried_in(chain: Chain, reading: Reading) -> Tried:
    """What a step has tried of both; nothing where it has planned neither."""
    errors = _errors(chain, reading)
    again = {name for name, made in chain.patches.items() if REFUSED_BEFORE in made.event.note}
    earlier = earlier_refusals(reading, again)
    planned = {tries.place: tries for seen in chain.tries for tries in seen.event.tries}
    if not any(tries.edits or _kind(place) for place, tries in planned.items()):
        return Tried(errors=errors, earlier=earlier)
    epochs = reading.read(until=chain.tries[0].seq, types=(EpochPlanned.__name__,))
    begun = max((recorded.seq for recorded in epochs), default=0)
    rows = reading.read(after=begun, until=chain.events[-1].seq, types=(RolloutCompleted.__name__,))
    before, found = _opened_before(rows)
    against = () if chain.gated is None else chain.gated.event.against
    return Tried(
        triggers=tuple(
            _trigger(row, before.get(row.item, ()), decided=row.item in against)
            for row in found
            if row.place in planned and _kind(row.place)
        ),
        parts=tuple(
            PartResult(item=row.item, place=row.place, edits=planned[row.place].edits, hard=_hard(row))
            for row in found
            if row.place in planned and planned[row.place].edits
        ),
        errors=errors,
        earlier=earlier,
    )


def _errors(chain: Chain, reading: Reading) -> dict[str, float]:
    """The standard errors of the effects that were found, from the draws that they were found from."""
    if chain.ranked is None or not chain.ranked.event.effects:
        return {}
    state, _ = fold_log(reading.read(until=chain.ranked.seq - 1))
    if state is None or state.built is None or not is_skills(state):
        return {}  # the log can be read in part only
    config = config_of_run(state.started, reading.log.path.parent, state.overrides)
    whole = Whole(state, state.built, config)
    return standard_errors(whole.draws, [change.name for change in whole.changes])


def _opened_before(rows: Iterable[Recorded]) -> tuple[Mapping[str, tuple[str, ...]], list[RolloutCompleted]]:
    """What each item opened when it was last tried in a batch, and what was tried elsewhere."""
    before: dict[str, tuple[str, ...]] = {}
    others: list[RolloutCompleted] = []
    for _, event in only(RolloutCompleted, rows):
        if Place(event.place).batch is not None:
            before[event.item] = skills_in(event.viewed)
        else:
            others.append(event)
    return before, others


def _kind(place: str) -> str:
    name = Place(place).name
    return name if name in (SHOULD, SHOULD_NOT, NONE) else ""


def _trigger(row: RolloutCompleted, before: tuple[str, ...], *, decided: bool) -> Trigger:
    return Trigger(
        item=row.item,
        kind=_kind(row.place),
        place=row.place,
        before=before,
        after=skills_in(row.viewed),
        passed=row.outcome.passed if isinstance(row.outcome, Measured) else None,
        decided=decided,
    )


def _hard(row: RolloutCompleted) -> float | None:
    return row.outcome.hard if isinstance(row.outcome, Measured) else None
