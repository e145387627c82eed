"""What improvement cost: every call in one stretch, every point and line where it was gained."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from attrs import evolve
from support.logs import events_of
from support.scripted import ScriptedWorld, config

from skillopt_es.audit.improvement import Improvement, improvement_of
from skillopt_es.events.catalog import CandidateBuilt, CandidateGated, SlowUpdateApplied
from skillopt_es.projections.usage import UsageSums
from skillopt_es.runs.overview import Spent, spent
from skillopt_es.sessions.session import start

PRICED = ["prices.unit=USD per 1M tokens", "prices.models={t: {input: 1, output: 4}, o: {input: 2, output: 8}}"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scripted run with prices and gated guidance."""
    folder = tmp_path_factory.mktemp("improvement")
    settings = config(folder, [*PRICED, "optimizer.slow_update_gate_with_selection=true"])
    asyncio.run(start(settings, folder / "run", ScriptedWorld().session()))
    return folder / "run"


@pytest.fixture(scope="module")
def used(run: Path) -> Spent:
    """Its usage."""
    return spent(run)


@pytest.fixture(scope="module")
def found(run: Path, used: Spent) -> Improvement:
    """Its improvement."""
    return improvement_of(events_of(run), used.usage)


def test_every_call_is_in_one_stretch(found: Improvement, used: Spent) -> None:
    """The stretches add up to the whole, and the curve ends with it."""
    assert sum((each.usage for each in found.curve), UsageSums()) == used.usage.total
    assert found.curve[-1].so_far == used.usage.total
    assert (found.curve[0].name, found.curve[-1].name) == ("baseline", "final")
    amounts = [each.so_far.cost.amount for each in found.curve]
    assert amounts == sorted(amounts)


def test_points_and_edits_are_those_of_the_verdicts(run: Path, found: Improvement) -> None:
    """What each verdict gained adds up to what the whole run gained."""
    events = events_of(run)
    assert sum(each.points for each in found.curve) == pytest.approx(found.points)
    assert found.points > 0
    reports = {e.step: e.reports for e in events if isinstance(e, CandidateBuilt)}
    taken = {e.step: e.verdict.action for e in events if isinstance(e, CandidateGated) and e.verdict.action != "reject"}
    wanted = {step: sum(report.status.startswith("applied") for report in reports[step]) for step in taken}
    assert {each.name: each.edits for each in found.curve if each.edits} == {
        f"step {step}": count for step, count in wanted.items()
    }
    assert found.edits == sum(wanted.values())
    assert {each.name: each.verdict for each in found.curve if each.name.removeprefix("step ") in map(str, taken)} == {
        f"step {step}": action for step, action in taken.items()
    }
    guided = [e for e in events if isinstance(e, SlowUpdateApplied) and e.epoch > 1]
    assert [each.verdict for each in found.curve if each.name in {f"end of epoch {e.epoch}" for e in guided}] == [
        e.verdict.action for e in guided
    ]


def test_what_the_gate_could_not_decide_on_is_not_taken(run: Path, used: Spent) -> None:
    """Its edits and lines are in no skill."""
    events = events_of(run)
    at, gate = next(
        (at, each) for at, each in enumerate(events) if isinstance(each, CandidateGated) and each.verdict.taken
    )
    undecided = evolve(gate, verdict=evolve(gate.verdict, action="indecisive", new_best=False))
    [step] = [
        each for each in improvement_of([*events[:at], undecided], used.usage).curve if each.name == f"step {gate.step}"
    ]
    assert (step.verdict, step.edits, step.lines) == ("indecisive", 0, 0)


def test_a_run_under_way_tells_all_it_has_used(run: Path, used: Spent) -> None:
    """Calls of a stretch without its end are under way."""
    events = events_of(run)
    half = improvement_of(events[: len(events) // 2], used.usage)
    assert half.curve[-1].name == "under way"
    assert half.curve[-1].so_far == used.usage.total
