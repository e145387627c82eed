"""A sealed test split is opened once by the run itself, and every look stands in its log."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.logs import events_of
from support.scripted import NOON, ScriptedWorld, config
from support.tamper import cut_off, rewritten, seqs_of

from skillopt_es.audit.check import check
from skillopt_es.engine.differences import CheckReport
from skillopt_es.events.catalog import Event, RolloutCompleted, RunCompleted, RunPaused, SealedTestOpened
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.sessions.forking import make_fork
from skillopt_es.sessions.session import read_state, resume, start

SEALED = ("env.seal_test=true", "train.num_epochs=1")


def trained(folder: Path, *more: str) -> Path:
    """A run whose test items are sealed."""
    asyncio.run(start(config(folder, (*SEALED, *more)), folder / "run", ScriptedWorld().session()))
    return folder / "run"


def checked(folder: Path) -> CheckReport:
    """What `replay --check` finds."""
    with EventLog.open(folder) as log:
        return asyncio.run(check(log, Journal(log.reader), folder))


def test_the_final_evaluation_opens_the_seal_once(tmp_path: Path) -> None:
    """Before the first test item is tried, and the check derives it."""
    run = trained(tmp_path)
    events = events_of(run)
    [opening] = [event for event in events if isinstance(event, SealedTestOpened)]
    assert opening == SealedTestOpened(look=1, by="final")
    first = next(at for at, event in enumerate(events) if isinstance(event, RolloutCompleted) and event.item[0] == "x")
    assert events.index(opening) == first - 1
    assert checked(run).ok


def test_without_tests_or_without_a_seal_nothing_is_opened(tmp_path: Path) -> None:
    """An event says that somebody looked, so nobody who does not look has one."""
    for name, settings in (("a", ("evaluation.eval_test=false",)), ("b", ("env.seal_test=false",))):
        run = trained(tmp_path / name, *settings)
        assert not seqs_of(run, SealedTestOpened)
        assert checked(run).ok


def test_what_is_left_of_a_killed_run_opens_it_no_second_time(tmp_path: Path) -> None:
    """Resumed after its opening, between two test items."""
    run = trained(tmp_path)
    [opening] = seqs_of(run, SealedTestOpened)
    cut = cut_off(run, tmp_path / "cut", opening + 2)
    asyncio.run(resume(cut, ScriptedWorld().session()))
    assert len(seqs_of(cut, SealedTestOpened)) == 1
    assert read_state(cut).looks.count == 1
    assert checked(cut).ok


def test_test_items_without_an_opening_do_not_follow(tmp_path: Path) -> None:
    """Whoever takes the event out of the log is found."""
    run = trained(tmp_path)
    [opening] = seqs_of(run, SealedTestOpened)
    report = checked(rewritten(run, tmp_path / "silent", opening, lambda event: None))
    assert report.mismatch is not None
    assert report.mismatch.seq == opening
    assert "SealedTestOpened" in report.mismatch.message or "x0" in report.mismatch.message


def test_a_look_that_is_counted_wrongly_does_not_follow(tmp_path: Path) -> None:
    """The number is derived, of the run's own opening and of others' looks."""

    def first_again(event: Event) -> Event:
        return SealedTestOpened(look=1, by="eval", skill="s", evaluation="e")

    run = trained(tmp_path)
    report = checked(rewritten(run, tmp_path / "twice", seqs_of(run, RunCompleted)[0], first_again))
    assert report.mismatch is not None
    assert [each.field for each in report.mismatch.differences] == ["look"]


def test_a_fork_has_its_parents_looks_and_one_of_its_own(tmp_path: Path) -> None:
    """Made where the parent's final evaluation had begun: the second look is the fork's."""
    run = trained(tmp_path)
    [opening] = seqs_of(run, SealedTestOpened)
    made = make_fork(run, opening, tmp_path / "fork", now=lambda: NOON)
    asyncio.run(resume(made.folder, ScriptedWorld().session()))
    looks = read_state(made.folder).looks
    assert [(look.look, look.by) for look in looks.opened] == [(1, "final"), (2, "final")]
    assert not seqs_of(made.folder, RunPaused)
    assert checked(made.folder).ok
