"""The summary and the tables say what the trainer's own state says, at every moment of a run."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.logs import events_of
from support.scripted import ScriptedWorld, config
from support.tamper import cut_off, seqs_of

from skillopt_es.engine.algorithms import evolve
from skillopt_es.events.catalog import EditsRanked, Event, RolloutCompleted, SkillScored
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Score
from skillopt_es.projections.lines import EpochLine, StepLine, pooled
from skillopt_es.projections.summary import DETAILS, OVERVIEW, summarize
from skillopt_es.projections.tables import rebuild_tables
from skillopt_es.sessions.session import start

VARIANTS = [
    (),
    ("evaluation.use_gate=false",),
    pytest.param(("evaluation.gate_metric=soft", "train.accumulation=2"), marks=pytest.mark.slow),
    pytest.param(("optimizer.use_slow_update=false", "optimizer.use_meta_skill=false"), marks=pytest.mark.slow),
    ("optimizer.slow_update_gate_with_selection=true",),
]


@pytest.fixture(params=VARIANTS, ids=lambda overrides: ",".join(overrides) or "plain")
def events(request: pytest.FixtureRequest, tmp_path: Path) -> list[Event]:
    """The events of a scripted run under several configs."""
    asyncio.run(start(config(tmp_path, request.param), tmp_path / "run", ScriptedWorld().session()))
    return events_of(tmp_path / "run")


def test_it_stands_where_the_state_stands(events: list[Event]) -> None:
    """After every event that matters: status, position, and both skills with their values."""
    state = None
    for count, event in enumerate(events, start=1):
        state = evolve(state, event)
        if type(event).__name__ not in OVERVIEW:
            continue
        summary = summarize(events[:count])
        assert state.current is not None
        assert state.best is not None
        assert (summary.status, summary.step) == (state.status, state.steps_done)
        assert (summary.current.skill, summary.current.value) == (state.current.skill.hash, state.current.value)
        assert (summary.best.skill, summary.best.value) == (state.best.skill.hash, state.best.value)


def test_the_overview_leaves_out_numbers_only(events: list[Event]) -> None:
    """Fewer events, the same place."""
    full = summarize(events)
    short = summarize(event for event in events if type(event).__name__ in OVERVIEW)
    assert (short.current, short.best, short.step, short.epoch) == (full.current, full.best, full.step, full.epoch)
    assert [line.verdict for line in short.step_lines] == [line.verdict for line in full.step_lines]
    assert summarize(event for event in events if type(event).__name__ in DETAILS) == full


def test_there_is_one_line_a_step_and_one_an_epoch(events: list[Event]) -> None:
    """In their order."""
    summary = summarize(events)
    assert [line.step for line in summary.step_lines] == list(range(1, summary.total_steps + 1))
    assert [line.epoch for line in summary.lines if isinstance(line, EpochLine)] == [1, 2, 3]
    assert isinstance(summary.lines[0], StepLine)


def test_a_step_line_counts_its_edits(demo_run: Path) -> None:
    """Proposed, merged, chosen and applied, from the events of that step."""
    events = events_of(demo_run)
    summary = summarize(events)
    ranked = {event.step: event for event in events if isinstance(event, EditsRanked)}
    for line in summary.step_lines:
        if line.step in ranked:
            assert (line.merged, line.chosen) == (len(ranked[line.step].pool), len(ranked[line.step].chosen))
            assert line.proposed >= line.merged >= line.chosen >= line.applied
    assert summary.baseline is not None
    assert summary.baseline.place == "baseline"
    assert [line.place for line in summary.tests] == ["final/test/initial", "final/test/best"]


def test_batches_of_a_step_are_pooled_by_what_they_measured() -> None:
    """Nine of ten and nothing of one."""
    both = pooled([Score(hard=0.9, soft=1.0, measured=10), Score(hard=0.0, soft=0.0, measured=0, unmeasured=1)])
    assert both == Score(hard=0.9, soft=1.0, measured=10, unmeasured=1)
    assert pooled([]) is None


def test_tables_hold_every_row(demo_run: Path, tmp_path: Path) -> None:
    """And are rebuilt each time."""
    with EventLog.open(demo_run) as log:
        rebuild_tables([log], tmp_path / "t.db")
        path = rebuild_tables([log], tmp_path / "t.db")
    events = events_of(demo_run)
    with closing(sqlite3.connect(path)) as tables:
        counts = {
            name: tables.execute(f"select count(*) from {name}").fetchone()[0]
            for name in ("steps", "evaluations", "rollouts", "edits", "items", "applied_edits")
        }
        kinds = set(tables.execute("select distinct typeof(hard), typeof(step) from rollouts").fetchall())
        verdicts = dict(tables.execute("select id, verdict from applied_edits").fetchall())
    assert counts["steps"] == len(summarize(events).step_lines)
    assert counts["rollouts"] == sum(isinstance(event, RolloutCompleted) for event in events)
    assert counts["evaluations"] == sum(isinstance(event, SkillScored) for event in events)
    assert 0 < counts["applied_edits"] < counts["edits"]
    assert kinds == {("real", "integer"), ("real", "null")}
    assert set(verdicts.values()) <= {"accept", "accept_new_best", "reject"}
    assert list(tmp_path.iterdir()) == [path]


def test_edits_of_an_open_step_have_no_verdict_yet(demo_run: Path, tmp_path: Path) -> None:
    """A run that was cut off in the middle of its first step."""
    [chosen, *_] = seqs_of(demo_run, EditsRanked)
    copy = cut_off(demo_run, tmp_path / "run", chosen)
    with EventLog.open(copy) as log, closing(sqlite3.connect(rebuild_tables([log], tmp_path / "t.db"))) as tables:
        fates = set(tables.execute("select chosen, verdict from edits").fetchall())
    assert fates == {(0, None), (1, None)}
