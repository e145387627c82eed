"""The reducer: a pure fold, the same over any division of the log, and never surprised by a legal one."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import events_of
from support.scripted import ScriptedWorld, config

from skillopt_es.engine.algorithms import evolve, fold
from skillopt_es.events.catalog import CandidateGated, Event, SlowUpdateApplied, StepSkipped
from skillopt_es.sessions.session import start

_EVENTS: list[Event] = []


@pytest.fixture(scope="module", autouse=True)
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """The events of a run with forced slow updates and two batches a step."""
    folder = tmp_path_factory.mktemp("run")
    asyncio.run(start(config(folder, ["train.accumulation=2"]), folder / "run", ScriptedWorld().session()))
    _EVENTS[:] = events_of(folder / "run")
    return _EVENTS


@given(st.data())
def test_a_fold_is_the_same_over_any_chunks(data: st.DataObject) -> None:
    """Folding in pieces, one after the other, gives the state of the whole."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(_EVENTS)), max_size=6)))
    state = None
    for begin, end in zip([0, *cuts], [*cuts, len(_EVENTS)], strict=True):
        state = fold(_EVENTS[begin:end], state)
    assert state == fold(_EVENTS)


def test_a_state_never_changes_afterwards() -> None:
    """Every state along the way is still what a fresh fold of its prefix gives."""
    state = None
    along = [state]
    for event in _EVENTS:
        state = evolve(state, event)
        along.append(state)
    for count in range(0, len(along), 7):
        assert along[count] == fold(_EVENTS[:count])


def test_the_current_score_is_unknown_until_its_text_was_measured() -> None:
    """After the placeholder and after a forced slow update nobody knows, and nobody pretends to."""
    state = None
    forced = 0
    for event in _EVENTS:
        state = evolve(state, event)
        if isinstance(event, SlowUpdateApplied) and event.verdict.action in ("placeholder", "force_accept"):
            assert state.current is not None
            assert (state.current.score, state.current.value) == (None, None)
            forced += 1
    assert forced == 3


def test_every_recorded_score_belongs_to_a_measured_text() -> None:
    """Whatever is current or best with a score was measured under exactly that hash."""
    state = None
    for event in _EVENTS:
        state = evolve(state, event)
        for standing in (state.current, state.best):
            if standing is not None and standing.score is not None:
                assert standing.skill.hash in state.measured


def test_the_buffer_holds_this_epoch_only() -> None:
    """Each gated step adds one attempt; an epoch begins with none."""
    state = None
    epoch = 0
    for event in _EVENTS:
        before = state
        state = evolve(state, event)
        if isinstance(event, CandidateGated):
            assert len(state.algorithm.buffer) == len(before.algorithm.buffer) + 1
            assert bool(state.algorithm.buffer[-1].rejected) == (event.verdict.action == "reject")
        if state.algorithm.epoch is not None and state.algorithm.epoch.number != epoch:
            epoch = state.algorithm.epoch.number
            assert state.algorithm.buffer == ()


def test_counts_add_up() -> None:
    """Every step ends exactly once: accepted, rejected or skipped."""
    state = fold(_EVENTS)
    gated = [event for event in _EVENTS if isinstance(event, CandidateGated)]
    skipped = [event for event in _EVENTS if isinstance(event, StepSkipped)]
    assert state.started is not None
    assert state.counts.accepted + state.counts.rejected == len(gated)
    assert state.counts.skipped == len(skipped)
    assert len(gated) + len(skipped) == state.started.total_steps == state.steps_done
