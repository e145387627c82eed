"""What a run will come to: within the plan's bounds at first, close to the truth once a run has been made."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from attrs import evolve
from support.command import command
from support.logs import events_of
from support.params import parametrized
from support.scripted import NOON, ScriptedEnvironment, ScriptedModel, ScriptedWorld, config

from skillopt_es.algorithms.classic.estimate import kind_of, plan_of
from skillopt_es.config import RunConfig
from skillopt_es.engine.estimates import Planned
from skillopt_es.estimating.estimate import Estimate, estimate_of
from skillopt_es.estimating.history import past_runs
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.ports import ChatReply
from skillopt_es.runs.overview import spent
from skillopt_es.sessions.session import run_started, start

PRICED = ["prices.unit=USD per 1M tokens", "prices.models={t: {input: 1, output: 4}, o: {input: 2, output: 8}}"]
SETTINGS = {
    "plain": [],
    "gated guidance": ["optimizer.slow_update_gate_with_selection=true", "train.accumulation=2"],
    "gate off": ["evaluation.use_gate=false"],
    "failures only": ["gradient.failure_only=true", "train.batch_size=5"],
    "turned pairs": ["optimizer.longitudinal_pair_policy=changed"],
    "no epoch ends": ["optimizer.use_slow_update=false", "optimizer.use_meta_skill=false"],
    "no cap": ["optimizer.lr_control_mode=none"],
    "own rate": ["optimizer.lr_control_mode=autonomous"],
}


def trained(run: Path, settings: RunConfig, train: int = 12) -> Planned:
    """A scripted run under a clock that goes on with each call; its data."""
    world = ScriptedWorld(environment=ScriptedEnvironment(train=train))
    asyncio.run(start(settings, run, evolve(world.session(), now=lambda: NOON + timedelta(seconds=world.calls))))
    started = events_of(run)[0]
    assert isinstance(started, RunStarted)
    return Planned(config=settings, started=started)


def seconds_of(run: Path) -> float:
    """From a log's first event to its last."""
    with EventLog.open(run) as log:
        times = [datetime.fromisoformat(recorded.recorded_at) for recorded in log.read()]
    return (times[-1] - times[0]).total_seconds()


def estimated(directory: Path, settings: RunConfig, train: int = 12) -> Estimate:
    """The estimate of a scripted run that has not begun."""
    started = run_started(settings, ScriptedEnvironment(train=train).load(), directory / "next")
    run = Planned(config=settings, started=started)
    return estimate_of(run, past_runs(directory, run))


@parametrized("name", SETTINGS, by_default=4)
def test_every_run_keeps_to_the_bounds_of_its_plan(name: str, tmp_path: Path) -> None:
    """Each kind of call, whatever the config; what is certain is met exactly."""
    run = trained(tmp_path / "run", config(tmp_path, SETTINGS[name]))
    parts = {part.kind: part for part in plan_of(run, run.started.total_steps, run.config.train.num_epochs)}
    with EventLog.open(tmp_path / "run") as log:
        made = Counter(kind_of(row.call.slot, row.call.stage) for row in Journal(log.reader).read())
    assert set(made) <= set(parts)
    assert {kind: made[kind] for kind, part in parts.items() if not part.low <= made[kind] <= part.high} == {}


def test_without_an_earlier_run_nothing_is_measured(tmp_path: Path) -> None:
    """The bounds of the plan, and it says that tokens are assumptions."""
    found = estimated(tmp_path, config(tmp_path))
    assert found.runs == ()
    assert found.cost is None
    assert any("assumptions" in note for note in found.notes)
    assert all(line.basis.endswith("tokens assumed") for line in found.lines)
    assert {line.kind: line.calls.expected for line in found.lines if line.basis.startswith("the plan;")} == {
        "baseline": 12,
        "train": 36,
        "slow_update": 2,
        "meta_skill": 2,
    }


@pytest.mark.parametrize("judge", [(), ("model.judge=j", "model.judge_backend=simulated")])
@pytest.mark.parametrize("calls", [60, 300])
def test_what_is_expected_adds_up_to_the_calls_that_there_are(
    tmp_path: Path, calls: int, judge: tuple[str, ...]
) -> None:
    """A search plans its end by them, and a judge is asked out of the same calls."""
    settings = config(tmp_path, ["train.algorithm=search", f"budget.max_calls={calls}", *judge])
    found = estimated(tmp_path, settings)
    assert sum(line.calls.expected for line in found.lines) == found.calls.expected <= calls
    assert all(line.calls.low <= line.calls.expected <= line.calls.high for line in found.lines)
    assert ("judge" in {line.kind for line in found.lines}) == bool(judge)


def test_what_an_agent_spends_inside_is_not_estimated(tmp_path: Path) -> None:
    """And that is said."""
    agent = ("model.target_backend=python:a.py:answer", "model.target=small")
    assert any("what it spends inside" in note for note in estimated(tmp_path, config(tmp_path, agent)).notes)
    asking = (*agent, "model.target_gateway=simulated")
    assert any("its calls of small come on top" in note for note in estimated(tmp_path, config(tmp_path, asking)).notes)


@pytest.mark.parametrize("seed", [4])
def test_few_steps_leave_a_wide_range(seed: int, tmp_path: Path) -> None:
    """Chance decides how many of nine steps come to a gate; the truth is in the range all the same."""
    trained(tmp_path / "runs" / "one", config(tmp_path))
    settings = config(tmp_path, [f"train.seed={seed}"])
    span = estimated(tmp_path / "runs", settings).calls
    trained(tmp_path / "other", settings)
    assert span.low <= spent(tmp_path / "other").usage.total.calls <= span.high


@pytest.mark.parametrize("seed", [7, 9])
def test_a_second_run_of_a_set_up_is_known_within_a_quarter(seed: int, tmp_path: Path) -> None:
    """Calls, tokens, money and time, and the truth lies in each range."""
    longer = [*PRICED, "train.num_epochs=4"]
    trained(tmp_path / "runs" / "one", config(tmp_path, longer), 24)
    settings = config(tmp_path, [*longer, f"train.seed={seed}"])
    found = estimated(tmp_path / "runs", settings, 24)
    trained(tmp_path / "other", settings, 24)
    used = spent(tmp_path / "other").usage.total
    assert used.cost.known is not None
    assert found.cost is not None
    truth = {
        "calls": used.calls,
        "input_tokens": used.input.known,
        "output_tokens": used.output.known,
        "cost": float(used.cost.known),
        "seconds": seconds_of(tmp_path / "other"),
    }
    for name, value in truth.items():
        span = getattr(found, name)
        assert value is not None
        assert abs(span.expected - value) <= 0.25 * value, name
        assert span.low <= value <= span.high, name


def test_only_runs_of_the_same_models_and_data_count(tmp_path: Path) -> None:
    """Another model's run says nothing; one that stopped early says what a call takes."""
    trained(tmp_path / "runs" / "one", config(tmp_path))
    assert estimated(tmp_path / "runs", config(tmp_path)).runs == ("one",)
    assert estimated(tmp_path / "runs", config(tmp_path, ["model.target=other"])).runs == ()
    world = ScriptedWorld(target=ScriptedModel("scripted target", lambda request: ChatReply(text="r", finish="length")))
    asyncio.run(start(config(tmp_path), tmp_path / "more" / "cut", world.session()))
    found = estimated(tmp_path / "more", config(tmp_path))
    assert found.runs == ("cut",)
    assert "no earlier run of this set-up is complete" in " ".join(found.notes)


def test_the_command_says_it_and_starts_nothing(tmp_path: Path) -> None:
    """`estimate` and `run --dry-run` print the same, for people and for programs; a mistake is named."""
    dry = command("run", "--dry-run", cwd=tmp_path)
    assert dry.code == 0, dry.err
    assert dry.out == command("estimate", cwd=tmp_path).out
    assert "baseline" in dry.out
    assert list(tmp_path.iterdir()) == []
    document = command("estimate", "--json", cwd=tmp_path).json
    assert document == command("run", "--dry-run", "--json", cwd=tmp_path).json
    warned = command("run", "--dry-run", "--max-calls", "20", cwd=tmp_path).out
    assert "budget.max_calls is 20, and about" in warned
    assert document["calls"]["high"] == sum(stage["calls"]["high"] for stage in document["stages"])
    wrong = command("estimate", "missing.yaml", cwd=tmp_path)
    assert (wrong.code, "no such config file" in wrong.err) == (2, True)
