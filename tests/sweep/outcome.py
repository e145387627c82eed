"""What a disturbed run has to be when it is over: the undisturbed one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from attrs import frozen
from support.logs import call_slots, decisions_of, events_of
from sweep.commands import Done, run
from sweep.worlds import World

from skillopt_es.events.catalog import RunCompleted
from skillopt_es.events.verify import verify

PAUSED = 3
MOST_PAUSES = 40


class Difference(Exception):
    """The disturbed run is not what the undisturbed one is."""


@frozen
class Whole:
    """A run that nobody disturbed, and how long it took."""

    world: World
    folder: Path
    seconds: float


def begun(world: World, home: Path) -> Done:
    """Starts a run from nothing and goes on through its pauses until it is complete."""
    done = run(world.words(home), home / "said.txt")
    return gone_on(world, home) if done.code == PAUSED else done


def gone_on(world: World, home: Path) -> Done:
    """The last of the commands that bring a run to its end, as a user types them."""
    done = Done(0, "")
    for _ in range(MOST_PAUSES):
        if is_complete(home):
            return done
        done = run(next_words(world, home), home / "said.txt")
        if done.code not in (0, PAUSED):
            return done
    raise Difference(f"not complete after {MOST_PAUSES} commands: {done}")


def next_words(world: World, home: Path) -> list[str]:
    """`resume`, or `run` where the disturbance came before the run's first event."""
    folder = home / "run"
    has_begun = (folder / "log.db").exists() and bool(events_of(folder))
    return world.resume(home, len(call_slots(folder))) if has_begun else world.words(home)


def is_complete(home: Path) -> bool:
    """Whether its last event says so."""
    folder = home / "run"
    return (folder / "log.db").exists() and any(isinstance(event, RunCompleted) for event in events_of(folder)[-1:])


def compare(whole: Whole, home: Path) -> None:
    """Raises `Difference` unless it is the undisturbed run: decisions, calls, chain, each decision derived again."""
    folder = home / "run"
    ours, theirs = decisions_of(folder), decisions_of(whole.folder / "run")
    if ours != theirs:
        at = next(
            (n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs))
        )
        raise Difference(
            f"{len(ours)} and {len(theirs)} decisions, unlike from {at} on: {ours[at : at + 1]} {theirs[at : at + 1]}"
        )
    slots, expected = Counter(call_slots(folder)), Counter(call_slots(whole.folder / "run"))
    if set(slots) != set(expected):
        raise Difference(f"other calls: {sorted(set(slots) ^ set(expected))[:5]}")
    report = verify(folder)
    if not report.ok:
        raise Difference(f"verify: {report.problems}")
    checked = run(["replay", "run", "--dir", str(home), "--check"], home / "said.txt")
    if checked.code != 0:
        raise Difference(f"replay --check: {checked.said[-500:]}")
