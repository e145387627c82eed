"""Another rule over a recorded run: the recorded one changes nothing, any other is exact until the histories part."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.audits import regated
from support.logs import events_of
from support.params import parametrized
from support.scripted import NOON, ScriptedEnvironment, ScriptedModel, ScriptedWorld, config, optimizer_reply
from support.scripted_modes import MODES, rewriting_world

from skillopt_es.audit.regated import Regated
from skillopt_es.errors import ConfigError, NotInRun
from skillopt_es.events.catalog import BestPromoted, CandidateBuilt, CandidateGated, SlowUpdateApplied
from skillopt_es.events.log import EventLog
from skillopt_es.events.writer import RunWriter
from skillopt_es.runs.lookup import seq_of
from skillopt_es.sessions.forking import make_fork
from skillopt_es.sessions.session import read_state, resume, start

SMALL = ("train.batch_size=3", "optimizer.slow_update_gate_with_selection=true")


def world(salt: str = "") -> ScriptedWorld:
    """A small run, with other mistakes of the optimizer for another salt."""
    environment = ScriptedEnvironment(train=6, val=6, test=3)
    return ScriptedWorld(environment=environment, optimizer=ScriptedModel(f"optimizer {salt}", optimizer_reply))


def trained(folder: Path, *overrides: str, there: ScriptedWorld | None = None) -> Path:
    """A complete run; its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(start(config(folder, (*SMALL, *overrides)), folder / "run", (there or world()).session()))
    return folder / "run"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """A run by the usual rule for each seed, trained once; read it, never write to it."""
    return cache(lambda seed: trained(tmp_path_factory.mktemp("plain"), f"train.seed={seed}"))


def assert_as_recorded(run: Path) -> None:
    """The recorded rule gives every recorded verdict again, values and all."""
    found = regated(run)
    recorded = [
        (event.verdict.action, event.verdict.candidate_value, event.verdict.current_value)
        for event in events_of(run)
        if isinstance(event, CandidateGated)
        or (isinstance(event, SlowUpdateApplied) and event.verdict.action in ("accept", "accept_new_best", "reject"))
    ]
    judged = [verdict for verdict in found.verdicts if verdict.kind != "promotion"]
    assert [(each.derived, each.value, each.against) for each in judged] == recorded
    assert not any(each.changed for each in found.verdicts)
    assert all(each.zone == "exact" and each.derived == each.recorded for each in found.verdicts)
    assert (found.first_change, found.told) == (None, None)
    best = read_state(run).best
    assert best is not None
    assert found.best_recorded == found.best_derived == best.skill.hash
    promoted = any(isinstance(event, BestPromoted) for event in events_of(run))
    assert [each.recorded for each in found.verdicts if each.kind == "promotion"] == ["promote" if promoted else "keep"]


RULES = (
    (),
    ("evaluation.use_gate=false",),
    ("evaluation.gate_metric=soft",),
    ("evaluation.gate_metric=mixed", "evaluation.gate_mixed_weight=0.3"),
    ("evaluation.use_semantic_density=true", "evaluation.semantic_density_weight=0.5"),
    ("evaluation.use_semantic_density=true", "evaluation.semantic_density_weight=-3.0"),
    ("optimizer.slow_update_gate_with_selection=false",),
    ("optimizer.slow_update_gate_with_selection=false", "skillopt.follow=[stale_scores]", "evaluation.use_gate=false"),
    (
        "optimizer.slow_update_gate_with_selection=false",
        "skillopt.follow=[stale_scores, gate_unchanged]",
    ),
    ("evaluation.eval_test=false", "evaluation.use_gate=false"),
)


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rule=st.sampled_from(RULES), seed=st.integers(0, 10_000), size=st.integers(1, 4))
def test_the_recorded_rule_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, rule: tuple[str, ...], seed: int, size: int
) -> None:
    """Whatever the rule, the order of the tasks and the size of a step."""
    folder = tmp_path_factory.mktemp("regate")
    assert_as_recorded(trained(folder, *rule, f"train.seed={seed}", f"train.batch_size={size}"))


@parametrized("rule", RULES, by_default=2)
def test_each_recorded_rule_changes_nothing(tmp_path: Path, rule: tuple[str, ...]) -> None:
    """One run of each."""
    assert_as_recorded(trained(tmp_path, *rule))


@pytest.mark.parametrize("mode", MODES)
def test_the_recorded_rule_changes_nothing_where_skills_are_rewritten(tmp_path: Path, mode: str) -> None:
    """A candidate may have fewer or other lines than any before."""
    assert_as_recorded(trained(tmp_path, f"optimizer.skill_update_mode={mode}", there=rewriting_world()))


def test_the_recorded_rule_changes_nothing_in_the_demo(demo_run: Path) -> None:
    """All of its verdicts."""
    assert_as_recorded(demo_run)
    assert len(regated(demo_run).verdicts) == 13


@parametrized("rule", RULES[1:6], by_default=2)
def test_a_forks_own_rule_is_a_recorded_one_too(
    plain: Callable[[int], Path], tmp_path: Path, rule: tuple[str, ...]
) -> None:
    """Before the fork the parent's rule holds, after it the fork's."""
    run = plain(1)
    with EventLog.open(run) as log:
        seq = seq_of(log, ("step", 2))
    fork = make_fork(run, seq, tmp_path / "fork", overrides=rule, now=lambda: NOON).folder
    asyncio.run(resume(fork, world().session()))
    assert_as_recorded(fork)


def outcomes(run: Path) -> list[tuple[int, bool]]:
    """Which step's candidate was taken, as it happened."""
    return [
        (event.step, event.verdict.action != "reject") for event in events_of(run) if isinstance(event, CandidateGated)
    ]


def foretold(found: Regated) -> list[tuple[int, bool]]:
    """The part that must come true: up to the first change, as long as the optimizer is told the same."""
    told = []
    for each in found.verdicts:
        if each.zone == "exact" and each.kind == "candidate":
            told.append((each.number, each.derived != "reject"))
            if found.told == each.number:
                break
    return told


@parametrized("rule", RULES[1:6], by_default=2)
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_what_is_exact_comes_true(
    plain: Callable[[int], Path], tmp_path: Path, seed: int, rule: tuple[str, ...]
) -> None:
    """A run that had the other rule from its start decides so, up to and with the first change."""
    recorded = plain(seed)
    other = trained(tmp_path / "other", f"train.seed={seed}", *rule)
    exact = foretold(regated(recorded, rule))
    assert exact
    assert outcomes(other)[: len(exact)] == exact


def test_after_the_first_change_it_is_an_estimate(demo_run: Path) -> None:
    """The changed verdict itself is the last that is certain."""
    found = regated(demo_run, ["evaluation.use_gate=false"])
    assert found.first_change is not None
    assert (found.first_change.number, found.first_change.recorded) == (3, "reject")
    zones = [each.zone for each in found.verdicts]
    at = found.verdicts.index(found.first_change)
    assert zones == ["exact"] * (at + 1) + ["estimate"] * (len(zones) - at - 1)


def test_a_result_that_is_missing_is_not_made_up(tmp_path: Path) -> None:
    """Without a gate, guidance that was put in was never measured: what a gate would say of the next is not known."""
    run = trained(tmp_path, "evaluation.use_gate=false", "optimizer.slow_update_gate_with_selection=false")
    found = regated(run, ["evaluation.use_gate=true"])
    unknown = [each for each in found.verdicts if each.derived is None]
    assert unknown
    assert {each.why for each in unknown} <= {
        "the skill that would be current was never measured",
        "the final skill was never measured",
    }
    assert all(each.changed is None and each.zone == "estimate" for each in unknown)
    assert found.parting is unknown[0] or found.parting is found.first_change


@pytest.mark.parametrize("key", ["train.seed=3", "evaluation.sel_env_num=2", "evaluation.nothing=1", "x"])
def test_only_the_gates_rule_can_be_asked_about(demo_run: Path, key: str) -> None:
    """The error says what can."""
    with pytest.raises(ConfigError):
        regated(demo_run, [key])


def test_a_run_that_never_began_has_judged_nothing(tmp_path: Path) -> None:
    """One sentence."""
    RunWriter.create(tmp_path / "empty", run_id="e", name="empty", now=lambda: NOON).close()
    with pytest.raises(NotInRun):
        regated(tmp_path / "empty")


def test_a_limit_of_size_can_be_asked_about(tmp_path: Path) -> None:
    """What would be too large is refused untried; what was refused as too large was never measured."""
    run = trained(tmp_path)
    built = {event.step: event.candidate for event in events_of(run) if isinstance(event, CandidateBuilt)}
    judged = [event for event in events_of(run) if isinstance(event, CandidateGated)]
    most = sorted(len(built[event.step].text) for event in judged)[len(judged) // 2]
    found = regated(run, [f"evaluation.max_size={most}"])
    rows = {verdict.number: verdict for verdict in found.verdicts if verdict.kind == "candidate"}
    for event in judged:
        too_large = len(built[event.step].text) > most
        assert (rows[event.step].derived == "too_large") == too_large
        if too_large and rows[event.step].zone == "exact":
            assert rows[event.step].changed == event.verdict.taken
    assert any(row.derived == "too_large" for row in rows.values())
    limited = trained(tmp_path / "limited", f"evaluation.max_size={most}")
    assert_as_recorded_steps(limited)
    without = regated(limited, ["evaluation.max_size=0"])
    untried = [verdict for verdict in without.verdicts if verdict.recorded == "too_large"]
    assert untried
    assert {(verdict.derived, verdict.why) for verdict in untried} == {(None, "the candidate was never measured")}


def assert_as_recorded_steps(run: Path) -> None:
    """The recorded rule gives every recorded verdict again, those of candidates that were never tried included."""
    found = regated(run)
    assert {verdict.recorded for verdict in found.verdicts} & {"too_large"}
    assert all(verdict.derived == verdict.recorded for verdict in found.verdicts)
    assert found.first_change is None
