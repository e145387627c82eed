"""Limits that several runs share: nobody exceeds them, together or alone, and a killed run's calls are counted."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from skillopt_es.engine.budget import Amount, Reached
from skillopt_es.events.errors import LogDamaged
from skillopt_es.sessions.commons import Commons, Full, Granted, Limits

CALL = Amount(calls=1, tokens=10, cost=Decimal("0.25"))
HERE = "host:80"


class Clock:
    """Seconds that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


@pytest.fixture
def runs(tmp_path: Path, clock: Clock) -> Iterator[list[Commons]]:
    """Three runs that share a file."""
    opened = [Commons(tmp_path / "limits.db", run_at_work(tmp_path / name), clock) for name in "abc"]
    yield opened
    for each in opened:
        each.close()


def run_at_work(folder: Path, pid: int | None = None) -> Path:
    """A run folder whose lock names a process."""
    folder.mkdir(exist_ok=True)
    holder = {"host": socket.gethostname(), "pid": pid or os.getpid(), "start": "now"}
    (folder / "lock").write_text(json.dumps(holder))
    return folder


def test_what_one_has_set_aside_another_cannot_take(runs: list[Commons]) -> None:
    """It waits until the first has settled, and then there is room for the rest."""
    one, two, _ = runs
    one.set_limits({HERE: Limits(max_tokens=15)})
    first = one.take(HERE, CALL, 0)
    assert isinstance(first, Granted)
    assert isinstance(two.take(HERE, CALL, 0), Full)
    one.settle(HERE, first.number, Amount(calls=1, tokens=5), 0)
    assert isinstance(two.take(HERE, CALL, 0), Granted)


def test_what_is_spent_is_spent(runs: list[Commons]) -> None:
    """Where nobody holds anything any more, the budget is reached, and that is said with its key."""
    one, two, _ = runs
    one.set_limits({HERE: Limits(max_calls=1)})
    first = one.take(HERE, CALL, 0)
    assert isinstance(first, Granted)
    one.settle(HERE, first.number, CALL, 0)
    reached = two.take(HERE, CALL, 0)
    assert isinstance(reached, Reached)
    assert reached.key == f"limits.{HERE}.max_calls"
    assert reached.message == f"{reached.key} is 1, with 1 request sent by all runs that share it"


def test_money_is_counted_exactly(runs: list[Commons]) -> None:
    """Four quarters are one, and a fifth does not fit."""
    one, two, _ = runs
    one.set_limits({HERE: Limits(max_cost=1.0)})
    for run in (one, two, one, two):
        grant = run.take(HERE, CALL, 0)
        assert isinstance(grant, Granted)
        run.settle(HERE, grant.number, CALL, 0)
    assert isinstance(one.take(HERE, CALL, 0), Reached)
    assert one.spent(HERE).cost == 1


def test_a_raised_limit_lets_go_on(runs: list[Commons]) -> None:
    """What was spent stays spent."""
    one, two, _ = runs
    one.set_limits({HERE: Limits(max_calls=1)})
    grant = one.take(HERE, CALL, 0)
    assert isinstance(grant, Granted)
    one.settle(HERE, grant.number, CALL, 0)
    two.set_limits({HERE: Limits(max_calls=2)})
    assert isinstance(one.take(HERE, CALL, 0), Granted)
    assert isinstance(two.take(HERE, CALL, 0), Full)


def test_a_run_that_was_killed_has_spent_what_it_held(tmp_path: Path, runs: list[Commons]) -> None:
    """At its worst, once nobody writes it: nobody waits for it for ever, and nothing is counted as free."""
    one, two, _ = runs
    one.set_limits({HERE: Limits(max_calls=1)})
    assert isinstance(one.take(HERE, CALL, 0), Granted)
    assert isinstance(two.take(HERE, CALL, 0), Full)
    (tmp_path / "a" / "lock").write_text("")
    assert isinstance(two.take(HERE, CALL, 0), Reached)
    assert two.spent(HERE) == CALL


def test_a_run_that_goes_on_has_spent_what_it_held(tmp_path: Path, runs: list[Commons], clock: Clock) -> None:
    """It finds what its killed process has left."""
    runs[0].set_limits({HERE: Limits(max_calls=3)})
    assert isinstance(runs[0].take(HERE, CALL, 0), Granted)
    again = Commons(tmp_path / "limits.db", tmp_path / "a", clock)
    assert again.spent(HERE) == CALL
    again.close()


def test_the_pace_is_everybodys(runs: list[Commons], clock: Clock) -> None:
    """A tenth of a minute's requests may go at once, the others one after another, whoever makes them."""
    one, two, three = runs
    one.set_limits({HERE: Limits(requests_per_minute=60)})
    waits = [grant.wait for run in (one, two, three) * 3 if isinstance(grant := run.take(HERE, CALL, 0), Granted)]
    assert waits == pytest.approx([0, 0, 0, 0, 0, 0, 1, 2, 3])
    clock.now += 4
    later = two.take(HERE, CALL, 0)
    assert isinstance(later, Granted)
    assert later.wait == pytest.approx(0)


def test_tokens_that_were_not_used_are_given_back_to_the_pace(runs: list[Commons]) -> None:
    """An estimate is no reason to be slow."""
    one, two, _ = runs
    one.set_limits({HERE: Limits(tokens_per_minute=600)})
    grant = one.take(HERE, CALL, 60)
    assert isinstance(grant, Granted)
    one.settle(HERE, grant.number, CALL, 50)
    other = two.take(HERE, CALL, 50)
    assert isinstance(other, Granted)
    assert other.wait == 0


def test_a_machine_that_began_anew_makes_nobody_wait(runs: list[Commons], clock: Clock) -> None:
    """Its clock is behind the one that was written down."""
    one, *_ = runs
    one.set_limits({HERE: Limits(requests_per_minute=1)})
    for _ in range(5):
        one.take(HERE, CALL, 0)
    clock.now = 3.0
    grant = one.take(HERE, CALL, 0)
    assert isinstance(grant, Granted)
    assert grant.wait == 0


def test_a_call_is_settled_once(tmp_path: Path) -> None:
    """However often it is told: an answer to the first telling may have been lost."""
    run = Commons(tmp_path / "limits.db", run_at_work(tmp_path / "run"))
    grant = run.take(HERE, CALL, 0)
    assert isinstance(grant, Granted)
    for _ in range(2):
        run.settle(HERE, grant.number, CALL, 0)
    assert run.spent(HERE) == CALL
    run.close()


def test_many_at_once_never_exceed_a_budget(tmp_path: Path) -> None:
    """Real threads with connections of their own: what is granted is at most what there is."""
    path, granted = tmp_path / "limits.db", []
    first = Commons(path, run_at_work(tmp_path / "first"))
    first.set_limits({HERE: Limits(max_calls=50)})

    def work(name: str) -> None:
        run = Commons(path, run_at_work(tmp_path / name))
        for _ in range(20):
            grant = run.take(HERE, CALL, 0)
            if isinstance(grant, Granted):
                granted.append(grant.number)
                run.settle(HERE, grant.number, CALL, 0)
        run.close()

    threads = [threading.Thread(target=work, args=(f"run{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) <= 50
    assert first.spent(HERE).calls == len(granted)
    first.close()


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    """With its path."""
    (tmp_path / "limits.db").write_bytes(b"something else" * 100)
    with pytest.raises(LogDamaged, match=r"limits\.db is damaged"):
        Commons(tmp_path / "limits.db", tmp_path)
