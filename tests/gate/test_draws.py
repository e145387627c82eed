"""Gates that draw again: what is drawn, what is recorded, and that everything follows from it again."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest
from attrs import evolve as replace
from support.audits import regated
from support.crashes import KillAt, in_child
from support.flaky import flaky_world
from support.logs import call_slots, decisions_of, events_of, rows_of
from support.params import parametrized
from support.scripted import NOON, config

from skillopt_es.audit.check import check
from skillopt_es.engine.algorithms import evolve
from skillopt_es.engine.evaluations import measure, score, selection
from skillopt_es.engine.run_config import config_of_run, validation_items
from skillopt_es.engine.work import AddUp, Rollouts, Work
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import (
    BestPromoted,
    CandidateBuilt,
    CandidateGated,
    Event,
    RolloutCompleted,
    RunCompleted,
    RunStarted,
    SkillScored,
    SlowUpdateApplied,
    StepSkipped,
)
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import Place
from skillopt_es.events.values import Measured, SkillTree
from skillopt_es.projections.state import AnyState
from skillopt_es.projections.summary import summarize
from skillopt_es.runs.lookup import seq_of
from skillopt_es.sessions.forking import make_fork
from skillopt_es.sessions.session import read_state, resume, start

GATED = ("optimizer.slow_update_gate_with_selection=true", "train.num_epochs=2", "train.batch_size=3")
RULES = {
    "paired": ("evaluation.gate_rule=paired", "evaluation.gate_repeats=3", "evaluation.gate_standard_errors=1.5"),
    "paired, told": ("evaluation.gate_rule=paired", "evaluation.gate_repeats=2", "evaluation.fresh_score=true"),
    "paired, clauses": ("evaluation.gate_rule=paired", "evaluation.no_regression=0", "evaluation.min_items=3"),
    "strict, told": ("evaluation.fresh_score=true",),
    "strict, early": ("evaluation.early_stop=exact", "evaluation.early_stop_wave=3"),
    "paired, early": (
        "evaluation.gate_rule=paired",
        "evaluation.gate_repeats=3",
        "evaluation.gate_standard_errors=1.5",
        "evaluation.early_stop=exact",
        "evaluation.early_stop_wave=4",
    ),
    "retest": ("evaluation.gate_rule=retest", "evaluation.gate_repeats=3"),
    "retest, early, told": (
        "evaluation.gate_rule=retest",
        "evaluation.gate_repeats=4",
        "evaluation.early_stop=exact",
        "evaluation.early_stop_wave=3",
        "evaluation.fresh_score=true",
    ),
    "not worse, retest": (
        "evaluation.gate_rule=not_worse_retest",
        "evaluation.gate_repeats=4",
        "evaluation.early_stop=exact",
    ),
    "mixed, early": (
        "evaluation.gate_metric=mixed",
        "evaluation.use_semantic_density=true",
        "evaluation.early_stop=exact",
        "evaluation.early_stop_wave=2",
    ),
}


def trained(folder: Path, *overrides: str) -> Path:
    asyncio.run(start(config(folder, (*GATED, *overrides)), folder / "run", flaky_world().session()))
    return folder / "run"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One run a rule."""
    return {name: trained(tmp_path_factory.mktemp("run"), *rule) for name, rule in RULES.items()}


def verdicts(run: Path) -> list[CandidateGated]:
    return [event for event in events_of(run) if isinstance(event, CandidateGated)]


def rollouts(run: Path) -> list[RolloutCompleted]:
    return [event for event in events_of(run) if isinstance(event, RolloutCompleted)]


def scores(run: Path) -> list[SkillScored]:
    return [event for event in events_of(run) if isinstance(event, SkillScored) and event.purpose == "selection"]


@parametrized("name", RULES, by_default=3)
def test_every_decision_follows_again_from_the_log(runs: dict[str, Path], name: str) -> None:
    with EventLog.open(runs[name]) as log:
        report = asyncio.run(check(log, Journal(log.reader), runs[name]))
    assert report.ok, report.mismatch
    assert report.status == "completed"


@pytest.mark.parametrize("name", RULES)
def test_the_recorded_rule_gives_every_recorded_verdict_again(runs: dict[str, Path], name: str) -> None:
    found = regated(runs[name])
    assert found.verdicts
    assert [each for each in found.verdicts if each.changed or each.zone != "exact"] == []
    assert found.best_recorded == found.best_derived


@parametrized("name", RULES, by_default=2)
@pytest.mark.parametrize("other", ["strict", "paired", "retest", "not_worse", "not_worse_retest"])
def test_any_rule_can_be_asked_of_any_log(runs: dict[str, Path], name: str, other: str) -> None:
    found = regated(runs[name], (f"evaluation.gate_rule={other}", "evaluation.gate_repeats=3"))
    for verdict in found.verdicts:
        assert (verdict.derived is None) == (verdict.changed is None) == bool(verdict.why)
    untold = [verdict for verdict in found.verdicts if verdict.derived is None]
    assert all("never" in verdict.why for verdict in untold)


def test_a_draw_that_was_not_made_ends_what_can_be_told_exactly(runs: dict[str, Path]) -> None:
    found = regated(runs["strict, told"], ("evaluation.gate_rule=paired",))
    first = found.parting
    assert first is not None
    assert (first.derived, first.changed, first.zone) == (None, None, "estimate")
    assert first.value is not None  # the one draw that there is
    assert first.against is not None
    assert first.why == "draw 2 of the candidate and draw 2 of the current skill were never made"
    assert {each.zone for each in found.verdicts[found.verdicts.index(first) + 1 :]} <= {"estimate"}


def test_a_verdict_says_its_rule_its_draws_and_its_reason(runs: dict[str, Path]) -> None:
    found = verdicts(runs["paired"])
    assert {event.verdict.rule for event in found} == {"paired"}
    for event in found:
        if event.verdict.action in ("accept", "accept_new_best"):
            assert event.verdict.reason == "beyond_noise"
            assert min(event.verdict.repeats, event.verdict.current_repeats) > 1
        if event.verdict.action == "indecisive":
            assert (event.verdict.reason, event.verdict.repeats) == ("within_noise", 3)
        if event.verdict.action == "reject":
            assert event.verdict.reason == "not_better"
    assert {event.verdict.action for event in found} >= {"indecisive", "accept_new_best"}


@pytest.mark.parametrize("name", ["retest", "retest, early, told"])
def test_what_turned_is_drawn_again_and_nothing_else(runs: dict[str, Path], name: str) -> None:
    """Under both texts alike; what is won and lost is among it, and stands."""
    again = [event for event in verdicts(runs[name]) if event.verdict.retested]
    assert again
    for event in again:
        assert {*event.verdict.won, *event.verdict.lost} <= {*event.verdict.retested}
    for further in (each for each in scores(runs[name]) if each.repeat > 1):
        tried = {event.item for event in rollouts(runs[name]) if event.place == further.place}
        assert 0 < len(tried) < further.score.measured
        assert further.carried_from == further.skill
        assert {*further.carried}.isdisjoint(tried)


def test_every_further_draw_is_a_draw_of_its_own(runs: dict[str, Path]) -> None:
    """Another place, so another slot and a call of its own; and another seed, which is recorded."""
    assert any(event.repeat > 1 for run in runs.values() for event in scores(run))
    for run in runs.values():
        by_text: dict[str, list[SkillScored]] = {}
        for event in scores(run):
            by_text.setdefault(event.skill, []).append(event)
        for drawn in by_text.values():
            numbers = sorted(event.repeat for event in drawn if event.repeat)
            assert numbers == list(range(1, len(numbers) + 1))
            assert len({event.place for event in drawn}) == len(drawn)
            seeds = [event.seed for event in drawn if event.repeat != 1]
            assert None not in seeds
            assert len({*seeds}) == len(seeds)
        slots = call_slots(run)
        rollouts = [event for event in events_of(run) if isinstance(event, RolloutCompleted)]
        assert len(slots) == len({*slots})
        assert len({call.slot for event in rollouts for call in event.calls}) == len(rollouts)


def test_draws_of_the_current_skill_have_places_beside_the_candidates(runs: dict[str, Path]) -> None:
    places = [event.place for event in scores(runs["paired"])]
    assert any(place.endswith("/gate/repeat-2") for place in places)
    assert any("/current/repeat-" in place for place in places)


def test_a_current_skill_is_not_drawn_again_where_it_has_draws_enough(runs: dict[str, Path]) -> None:
    drawn = Counter(event.skill for event in scores(runs["paired"]) if event.repeat)
    assert max(drawn.values()) == 3


def test_an_undecided_candidate_is_counted_and_not_told_as_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    state = read_state(runs["paired"])
    assert state.counts.indecisive == sum(event.verdict.action == "indecisive" for event in verdicts(runs["paired"]))
    with EventLog.open(runs["paired"]) as log:
        seq = next(
            each.seq
            for each in log.read()
            if isinstance(each.event, CandidateGated) and each.event.verdict.action == "indecisive"
        )
    before, after = read_state(runs["paired"], seq - 1), read_state(runs["paired"], seq)
    assert before.current is not None
    assert after.current is not None
    assert after.current.skill == before.current.skill
    assert after.algorithm.buffer[-1].action == "indecisive"
    assert after.algorithm.buffer[-1].rejected == ()


def test_the_told_score_is_of_a_draw_that_decided_nothing(runs: dict[str, Path]) -> None:
    run = runs["paired, told"]
    told = {event.skill: event for event in scores(run) if event.repeat == 0}
    state = read_state(run)
    for standing in (state.current, state.best):
        assert standing is not None
        assert standing.score == told[standing.skill.hash].score
        assert standing.value == told[standing.skill.hash].value
    taken = {event.candidate for event in verdicts(run) if event.verdict.action == "accept_new_best"}
    assert taken <= set(told)
    rejected = {event.candidate for event in verdicts(run) if event.verdict.action == "reject"} - taken
    assert not rejected & set(told)


def test_gated_guidance_is_judged_by_the_same_rule(runs: dict[str, Path]) -> None:
    guided = [
        event
        for event in events_of(runs["paired"])
        if isinstance(event, SlowUpdateApplied) and event.verdict.candidate_value is not None and event.epoch > 1
    ]
    assert {event.verdict.rule for event in guided} == {"paired"}


def test_a_candidate_that_is_too_large_is_not_tried_and_told_as_refused(tmp_path: Path) -> None:
    run = trained(tmp_path, "evaluation.max_size=20")
    skipped = [event for event in events_of(run) if isinstance(event, StepSkipped) and event.reason == "too_large"]
    assert skipped
    assert "evaluation.max_size is 20" in skipped[0].detail
    assert f"e1/s{skipped[0].step}/gate" not in {event.place for event in scores(run)}
    with EventLog.open(run) as log:
        assert asyncio.run(check(log, Journal(log.reader), run)).ok


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (("evaluation.gate_rule=paired", "env.limit=3"), "10 items are enough"),
        (("evaluation.min_items=21",), "there are 20 validation items"),
        (("evaluation.no_regression=20",), "at most 19"),
        (
            ("evaluation.gate_rule=paired", "skillopt.follow=[stale_scores]"),
            "strict where skillopt.follow names stale_scores",
        ),
    ],
)
def test_a_rule_that_the_items_cannot_carry_is_refused_at_the_start(
    tmp_path: Path, rule: tuple[str, ...], said: str
) -> None:
    world = flaky_world(val=3) if "env.limit=3" in rule else flaky_world()
    with pytest.raises(ConfigError, match=said):
        asyncio.run(start(config(tmp_path, (*GATED, *rule)), tmp_path / "run", world.session()))
    assert not (tmp_path / "run" / "log.db").exists()


@pytest.mark.slow
def test_logs_are_equal_at_any_concurrency(tmp_path: Path) -> None:
    for rule in (RULES["paired, told"], RULES["paired, early"]):
        assert_equal_at_any_concurrency(tmp_path / rule[-1], *rule)


def assert_equal_at_any_concurrency(folder_of_runs: Path, *rule: str) -> None:
    logs = []
    for workers in (1, 8, 64):
        folder = folder_of_runs / str(workers)
        run = trained(folder, *rule, f"env.workers={workers}", f"gradient.analyst_workers={workers}")
        logs.append([(row[1], row[-1]) for row in rows_of(run) if row[0] != 1])
    assert logs[0] == logs[1] == logs[2]


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("retest", marks=pytest.mark.slow), "paired, early"])
def test_killed_among_the_draws_a_run_recovers(runs: dict[str, Path], tmp_path: Path, name: str) -> None:
    whole = decisions_of(runs[name])
    drawn = [seq for seq, event in enumerate(whole, start=1) if isinstance(event, SkillScored) and event.repeat > 1]
    for seq in (drawn[0] - 3, drawn[0] - 6, drawn[0], drawn[0] + 1, drawn[-1]):
        folder = tmp_path / str(seq)

        def begin(folder: Path = folder, seq: int = seq) -> None:
            session = flaky_world().session(observers=(KillAt(event=seq),))
            asyncio.run(start(config(folder, (*GATED, *RULES[name])), folder / "run", session))

        assert in_child(begin) == signal.SIGKILL
        asyncio.run(resume(folder / "run", flaky_world().session()))
        assert decisions_of(folder / "run") == whole


@parametrized("name", [name for name in RULES if name.endswith("early")], by_default=2)
def test_ended_early_a_run_decides_what_it_decides_in_full(runs: dict[str, Path], tmp_path: Path, name: str) -> None:
    early, full = runs[name], trained(tmp_path, *RULES[name], "evaluation.early_stop=off")
    assert [decided(event) for event in events_of(early) if decided(event)] == [
        decided(event) for event in events_of(full) if decided(event)
    ]
    saved = len(slots_of_gates(full)) - len(slots_of_gates(early))
    assert saved == sum(len(event.not_run) for event in scores(early)) > 0


def decided(event: Event) -> tuple[object, ...]:
    match event:
        case CandidateGated() | SlowUpdateApplied():
            return (type(event).__name__, event.candidate, event.verdict.action, event.verdict.reason)
        case BestPromoted() | RunCompleted():
            return (event,)
        case _:
            return ()


def slots_of_gates(run: Path) -> list[str]:
    return [slot for slot in call_slots(run) if "/b" not in slot and "slow/previous" not in slot]


@pytest.mark.parametrize("name", [name for name in RULES if name.endswith("early")])
def test_what_was_not_run_is_named_and_its_score_is_a_bound(runs: dict[str, Path], name: str) -> None:
    ended = [event for event in scores(runs[name]) if not event.exact]
    assert ended
    for event in ended:
        tried = {
            row.item
            for row in events_of(runs[name])
            if isinstance(row, RolloutCompleted) and row.place in (event.place, event.begun_at)
        }
        assert event.not_run
        assert not tried & {*event.not_run}
        assert len(tried) + len(event.not_run) == 20
        assert event.by_type == {}
        assert event.score.measured == len(tried)
    bounds = {event.skill for event in ended}
    gated = [event for event in verdicts(runs[name]) if not event.verdict.exact]
    assert {event.candidate for event in gated} <= bounds
    for event in gated:
        assert event.verdict.action in ("reject", "indecisive")
        assert event.verdict.current_value is not None
        assert event.verdict.candidate_value <= event.verdict.current_value
        assert event.verdict.candidate_score.measured == event.verdict.compared


def test_a_text_that_was_not_run_to_its_end_is_completed_and_not_begun_again(runs: dict[str, Path]) -> None:
    """The items that were run are not run again, and only with the others it has a score."""
    state, run = None, None
    texts: dict[str, SkillTree] = {}
    for event in events_of(runs["strict, early"]):
        state = evolve(state, event)
        if isinstance(event, RunStarted):
            run = config_of_run(event, runs["strict, early"])
        if isinstance(event, CandidateBuilt):
            texts[event.candidate.hash] = event.candidate
        if isinstance(event, SkillScored) and not event.exact:
            break
    assert run is not None
    assert isinstance(event, SkillScored)
    assert event.skill not in state.measured
    items = validation_items(state.started, run)
    later = [selection(run, Place("later"), texts[event.skill], items)]
    work = measure(state, later)
    assert isinstance(work, Rollouts)
    assert [unit.item for unit in work.units] == list(event.not_run)
    for unit in work.units:
        row = RolloutCompleted(
            place="later", purpose="selection", item=unit.item, skill=event.skill, outcome=Measured(1.0, 1.0),
            task_type="fern", turns=1,
        )  # fmt: skip
        state = evolve(state, row)
    ended = measure(state, later)
    assert isinstance(ended, AddUp)
    scored = score(ended.evaluation, state, run)
    assert isinstance(scored, SkillScored)
    assert (scored.exact, scored.not_run, scored.begun_at) == (True, (), event.place)
    assert scored.score.hard == pytest.approx(event.score.hard)
    assert scored.score.measured == 20
    state = evolve(state, scored)
    assert len(state.measured[event.skill].items) == 20
    assert state.partial == {}


@pytest.mark.parametrize("name", ["paired, early", "retest"])
def test_rollouts_ahead_of_a_verdict_change_nothing(runs: dict[str, Path], tmp_path: Path, name: str) -> None:
    """Also where the verdict takes several waves and draws."""
    ahead = trained(tmp_path, *RULES[name], "train.speculate=true")
    assert decisions_of(ahead)[1:] == decisions_of(runs[name])[1:]


@pytest.mark.parametrize("name", ["strict, early", "paired, told"])
def test_a_fork_may_go_on_by_another_rule(runs: dict[str, Path], tmp_path: Path, name: str) -> None:
    parent = tmp_path / "parent"
    shutil.copytree(runs[name], parent)
    with EventLog.open(parent) as log:
        seq = seq_of(log, ("step", 3))
    changed = ("evaluation.gate_rule=retest", "evaluation.gate_metric=soft", "evaluation.early_stop=off")
    make_fork(parent, seq, tmp_path / "fork", overrides=changed, now=lambda: NOON)
    asyncio.run(resume(tmp_path / "fork", flaky_world().session()))
    with EventLog.open(tmp_path / "fork") as log:
        report = asyncio.run(check(log, Journal(log.reader), tmp_path / "fork"))
    assert report.ok, report.mismatch
    later = [event for event in verdicts(tmp_path / "fork") if event.step > 3]
    assert {event.verdict.rule for event in later} == {"retest"}
    state, summary = read_state(tmp_path / "fork"), summarize(events_of(tmp_path / "fork"))
    assert state.current is not None
    assert summary.current.value == pytest.approx(state.current.value)


def test_a_fork_to_a_rule_that_the_items_cannot_carry_is_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    shutil.copytree(runs["strict, told"], parent)
    with EventLog.open(parent) as log:
        seq = seq_of(log, ("step", 3))
    with pytest.raises(ConfigError, match="there are 20 validation items"):
        make_fork(parent, seq, tmp_path / "fork", overrides=("evaluation.min_items=21",), now=lambda: NOON)


@pytest.mark.parametrize("name", RULES)
def test_what_is_told_of_a_run_is_what_the_trainer_holds(runs: dict[str, Path], name: str) -> None:
    state, summary = read_state(runs[name]), summarize(events_of(runs[name]))
    for standing, place in ((state.current, summary.current), (state.best, summary.best)):
        assert standing is not None
        assert place.skill == standing.skill.hash
        assert place.value == pytest.approx(standing.value)


def test_too_many_failures_in_the_waves_pause_a_run_and_it_goes_on(tmp_path: Path) -> None:
    """What failed is tried again, and what was run stays."""
    rule = (*GATED, *RULES["paired, early"])
    down: set[str] = {f"v{index}" for index in range(0, 20, 3)}
    world = flaky_world()
    scored = 0

    def broken(item: str) -> bool:
        return scored > 1 and item in down

    class Watching:
        def planned(self, work: Work, state: AnyState) -> None: ...

        def happened(self, seq: int, event: Event, state: AnyState) -> None:
            nonlocal scored
            scored += isinstance(event, SkillScored)

        def called(self, row: CallRow) -> None: ...

    shaky = replace(world, environment=replace(world.environment, broken=broken))
    asyncio.run(start(config(tmp_path, rule), tmp_path / "run", shaky.session(observers=(Watching(),))))
    paused = read_state(tmp_path / "run")
    assert paused.paused is not None
    assert paused.paused.reason == "unmeasured"
    asyncio.run(resume(tmp_path / "run", flaky_world().session()))
    assert read_state(tmp_path / "run").status == "completed"
    with EventLog.open(tmp_path / "run") as log:
        assert asyncio.run(check(log, Journal(log.reader), tmp_path / "run")).ok


def test_a_run_knows_which_items_ever_gave_two_results(runs: dict[str, Path]) -> None:
    """Under one text, whichever; and the type of each."""
    seen: dict[tuple[str, str], set[Measured]] = {}
    types = {}
    for event in events_of(runs["paired"]):
        if isinstance(event, RolloutCompleted) and event.purpose == "selection":
            types[event.item] = event.task_type
            if isinstance(event.outcome, Measured):
                seen.setdefault((event.skill, event.item), set()).add(event.outcome)
    state = read_state(runs["paired"])
    assert state.flipped == {item for (_, item), outcomes in seen.items() if len(outcomes) > 1} != set()
    assert state.types == types
    assert read_state(runs["strict, told"]).flipped <= state.types.keys()
