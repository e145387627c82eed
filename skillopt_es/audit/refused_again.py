"""Answers of which nothing was tried because it had been refused before: at which step, and why it was refused then."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from attrs import evolve

from skillopt_es.algorithms.search.asking import asked_about, taken_from
from skillopt_es.algorithms.search.state import SearchState, is_search
from skillopt_es.engine.algorithms import fold_log
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.events.catalog import PatchProposed
from skillopt_es.events.errors import LogError
from skillopt_es.events.journal import Journal
from skillopt_es.events.values import REFUSED_BEFORE
from skillopt_es.projections.not_taken import Refused
from skillopt_es.projections.state import AnyState
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.runs.reading import Reading


def with_earlier_refusals(found: Refused, reading: Reading) -> Refused:
    """The same, with what was refused before it where an answer was left out for that."""
    again = {row.id for row in found.rows if row.kind == "reply" and REFUSED_BEFORE in row.detail}
    known = earlier_refusals(reading, again)
    return evolve(found, rows=tuple(evolve(row, earlier=known.get(row.id, "")) for row in found.rows))


def earlier_refusals(reading: Reading, patches: set[str]) -> Mapping[str, str]:
    """By patch, the step at which the first edit of its answer had been refused and why; what the log has of that."""
    if not patches:
        return {}
    proposed = reading.read(types=(PatchProposed.__name__,))
    asked = [(row.seq, row.event) for row in proposed if isinstance(row.event, PatchProposed)]
    asked = [(seq, event) for seq, event in asked if event.patch in patches]
    evidence, told = RecordedTexts(reading.log, Journal(reading.log.reader)), dict[str, str]()
    state: AnyState | None = None
    last = 0
    with suppress(LogError):  # a text was erased, or the log can be read in part only
        for seq, event in asked:
            state, _ = fold_log(reading.read(after=last, until=seq - 1), state)
            last = seq - 1
            if state is not None and is_search(state):
                told[event.patch] = _refusals(state, event, reading, evidence)
    return told


def _refusals(state: SearchState, event: PatchProposed, reading: Reading, evidence: RecordedTexts) -> str:
    step = state.algorithm.step
    group = next((each for each in step.groups if each.id == event.patch), None) if step is not None else None
    if group is None or not event.calls:
        return ""
    config = config_of_run(state.started, reading.log.path.parent, state.overrides)
    found = taken_from(evidence.exchange(event.calls[-1]).answer, group, asked_about(group, state, config, evidence))
    if isinstance(found, Unusable):
        return ""
    _, taken = found
    first = next(iter(taken.refused), "")
    return "; ".join(f"step {each.step}: {each.why}" for each in taken.before.get(first, ()))
