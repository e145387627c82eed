"""What a sweep does next, by its facts alone."""

from __future__ import annotations

import pytest

from skillopt_es.events.errors import LogDamaged
from skillopt_es.sweeps.facts import (
    Fact,
    Outcome,
    RunEnded,
    RunEntry,
    RunLaunched,
    SettingDropped,
    SettingRestored,
    SweepBegan,
    SweepState,
    folded,
)
from skillopt_es.sweeps.next import drops, is_complete, to_begin
from skillopt_es.sweeps.table import table_of

SEEDS = (1, 2, 3, 4)
BEGAN = SweepBegan(
    software="test",
    file="sweep.yaml",
    score="test",
    runs=tuple(RunEntry(name=f"{name}{seed}", setting=name, seed=seed, digest="") for seed in SEEDS for name in "ab"),
)


def ended(run: str, score: float | None = None, outcome: Outcome = "completed") -> list[Fact]:
    """A run that was launched and came to this."""
    return [RunLaunched(run=run, resumes=False), RunEnded(run=run, outcome=outcome, test=score, calls=10)]


def state(*facts: list[Fact]) -> SweepState:
    """The state after the sweep began and these things happened."""
    return folded([BEGAN, *(fact for each in facts for fact in each)])


def names(found: SweepState, ended_now: tuple[str, ...] = (), live: tuple[str, ...] = ()) -> list[str]:
    """What may begin."""
    return [run.name for run in to_begin(found, ended_now=ended_now, live=live)]


def test_what_was_begun_goes_on_first() -> None:
    """Then the others, seed by seed; what is at work or done does not begin."""
    found = state(ended("a1", 0.5), ended("a2", outcome="killed"))
    assert names(found, live=("b1",)) == ["a2", "b2", "a3", "b3", "a4", "b4"]


def test_what_has_failed_just_now_waits_for_somebody() -> None:
    """Another process tries it again: the cause may be gone."""
    found = state(ended("a1", outcome="failed"))
    assert "a1" not in names(found, ended_now=("a1",))
    assert names(found)[0] == "a1"


def test_what_was_killed_goes_on_at_once() -> None:
    """A machine that is taken away has said nothing about the run."""
    assert names(state(ended("a1", outcome="killed")), ended_now=("a1",))[0] == "a1"


def test_a_setting_that_cannot_win_is_dropped() -> None:
    """b has 0.1 and may reach (0.1 + 3) / 4; a has at least (3 * 1.0) / 4."""
    runs = [ended("a1", 1.0), ended("a2", 1.0), ended("a3", 1.0), ended("b1", 0.1), ended("b2", 0.1)]
    assert not list(drops(state(*runs[:4])))
    [drop] = drops(state(*runs))
    assert (drop.setting, drop.by) == ("b", "a")
    assert (drop.highest, drop.lowest) == (pytest.approx(2.2 / 4), pytest.approx(3 / 4))
    after = state(*runs, [drop])
    assert names(after) == ["a4"]
    assert is_complete(state(*runs, [drop], ended("a4", 0.0)))


def test_a_setting_that_could_still_be_equal_is_not_dropped() -> None:
    """What may end level has not lost."""
    assert not list(drops(state(ended("a1", 1.0), ended("a2", 1.0), ended("b1", 0.0), ended("b2", 0.0))))


def test_a_run_without_a_score_is_neither_0_nor_1() -> None:
    """It leaves its setting with a mean of the others."""
    runs = [ended("a1", 1.0), ended("a2", 1.0), ended("a3", 1.0), ended("b1"), ended("b2", 0.9)]
    assert not list(drops(state(*runs)))


def test_a_run_of_a_dropped_setting_that_was_begun_is_finished() -> None:
    """It is paid for in part, and its score counts."""
    dropped: list[Fact] = [SettingDropped(setting="b", highest=0.1, by="a", lowest=0.2)]
    found = state(ended("b1", outcome="paused"), dropped)
    assert "b1" in names(found)
    assert "b2" not in names(found)


def test_a_restored_setting_is_not_dropped_again() -> None:
    """Who asks for it sees it to its end."""
    runs = [ended("a1", 1.0), ended("a2", 1.0), ended("a3", 1.0), ended("b1", 0.1), ended("b2", 0.1)]
    [drop] = drops(state(*runs))
    found = state(*runs, [drop, SettingRestored(setting="b")])
    assert names(found) == ["b3", "a4", "b4"]
    assert not list(drops(found))


def test_a_run_cannot_complete_twice() -> None:
    """A log that says so is not what was written."""
    with pytest.raises(LogDamaged):
        state(ended("a1", 0.5), ended("a1", 0.5))


def test_the_table_has_the_best_first_and_what_has_no_score_last() -> None:
    """Usage is that of the runs that completed."""
    table = table_of(state(ended("b1", 0.9), ended("b2", 0.8), ended("a1", outcome="failed")))
    first, last = table.rows
    assert (first.setting, first.leads, first.calls, first.done) == ("b", True, 20, 2)
    assert (last.setting, last.score, last.against) == ("a", None, None)
