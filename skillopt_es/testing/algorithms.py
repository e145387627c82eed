"""
What every algorithm keeps to, one check each; a check that fails raises an AssertionError that says what is wrong.

Each check trains small runs in an empty folder of its own. A run is killed in a process of its own, by a signal.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from attrs import evolve as replace
from attrs import field, frozen

from skillopt_es.audit.check import check
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Algorithm
from skillopt_es.engine.algorithms import algorithm_at, algorithm_named, evolve, fold
from skillopt_es.engine.work import Questions, Work
from skillopt_es.errors import Interrupted
from skillopt_es.events.catalog import (
    STEP_ENDS,
    Event,
    EvidenceRetracted,
    RolloutCompleted,
    RunPaused,
    RunResumed,
    RunStarted,
)
from skillopt_es.events.codec import encode
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.inbox import leave
from skillopt_es.sessions.session import read_state, resume, start
from skillopt_es.sessions.wiring import Session

# One after the other, fewer than a batch, and all of a batch at once: answers then come in different orders.
_WORKERS = (1, 8, 64)
_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def _session() -> Session:
    return Session(now=lambda: _DAY, clock=time.monotonic)


@frozen(kw_only=True)
class AlgorithmCase:
    """
    An algorithm, and a small run that it trains.

    `config` writes what the run needs into a folder and returns its config, under further settings (`env.workers=8`);
    `train.algorithm` names the algorithm. Answers must be the same whenever the same is asked, as those of
    `model.backend: simulated` are. `session` is for those who bring models of their own.
    """

    config: Callable[[Path, Sequence[str]], RunConfig]
    session: Callable[[], Session] = field(default=_session)

    def algorithm(self, folder: Path) -> Algorithm[object]:
        """The algorithm by the name in the config."""
        return algorithm_named(self.config(folder, ()).train.algorithm)

    def trained(self, folder: Path, *settings: str, observer: _Observer | None = None) -> list[Event]:
        """Trains a whole run; its events."""
        folder.mkdir(parents=True, exist_ok=True)
        session = self.session()
        if observer is not None:
            session = replace(session, observers=(observer,))
        asyncio.run(start(self.config(folder, settings), folder / "run", session))
        return _events(folder / "run")


def _events(run: Path) -> list[Event]:
    with EventLog.open(run) as log:
        return [recorded.event for recorded in log.read()]


def _slots(run: Path) -> Counter[str]:
    with EventLog.open(run) as log:
        return Counter(row.call.slot for row in Journal(log.reader).read())


def _decided(events: Sequence[Event]) -> list[Event]:
    """All events but those of writers that came and went."""
    return [event for event in events if not isinstance(event, RunPaused | RunResumed)]


class _Observer:
    """Sees a run, and kills its process after the n-th event, or just before the n-th answer is used."""

    def __init__(self, *, event: int = 0, call: int = 0) -> None:
        self._event = event
        self._call = call
        self._calls = 0
        self.jobs: dict[type, object] = {}

    def planned(self, work: Work, state: AnyState) -> None:
        """Notes what is asked."""
        if isinstance(work, Questions):
            self.jobs |= {type(job): job for job in work.jobs}

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """An event is durable."""
        if seq == self._event:
            os.kill(os.getpid(), signal.SIGKILL)

    def called(self, row: CallRow) -> None:
        """A call is durable."""
        self._calls += 1
        if self._calls == self._call:
            os.kill(os.getpid(), signal.SIGKILL)


def _folded(events: Sequence[Event]) -> AnyState:
    state = fold(events)
    assert state is not None, "the log does not begin with the start of a run"
    return state


# --- the log --------------------------------------------------------------------------------------------------------


def a_run_comes_to_its_end(case: AlgorithmCase, folder: Path) -> None:
    """With as many steps as were planned, or a reason why it stopped."""
    state = _folded(case.trained(folder))
    assert state.started.algorithm == case.algorithm(folder).name, "the run is not recorded as the algorithm's"
    assert state.completed is not None, f"the run ended as {state.status}, without a RunCompleted"
    planned = state.started.total_steps
    assert state.stopped is not None or state.steps_done == planned, f"{state.steps_done} steps of {planned} were done"


def the_same_answers_give_the_same_log(case: AlgorithmCase, folder: Path) -> None:
    """Byte for byte, whether one call is in flight or many."""
    logs = {}
    for workers in _WORKERS:
        settings = (f"env.workers={workers}", f"gradient.analyst_workers={workers}")
        events = case.trained(folder / str(workers), *settings)
        logs[workers] = [encode(event) for event in events if not isinstance(event, RunStarted)]
    for workers in _WORKERS[1:]:
        # Lengths come after that: which event differs says more.
        pairs = zip(logs[_WORKERS[0]], logs[workers], strict=False)
        wrong = next((seq for seq, (one, other) in enumerate(pairs, start=2) if one != other), None)
        assert wrong is None, f"event {wrong} depends on how many calls are in flight"
        assert len(logs[workers]) == len(logs[_WORKERS[0]]), "how many events there are depends on calls in flight"


def a_killed_run_goes_on_as_if_nothing_had_been(case: AlgorithmCase, folder: Path) -> None:
    """After any event, and with any call paid for: nothing is decided otherwise, and nothing is asked twice."""
    whole = _decided(case.trained(folder / "whole"))
    slots = _slots(folder / "whole" / "run")
    moments = [{"event": seq} for seq in range(1, len(whole))] + [{"call": 1 + slots.total() // 2}]
    for number, moment in enumerate(moments):
        place = folder / str(number)
        _killed(case, place, moment)
        asyncio.run(resume(place / "run", case.session()))
        found = _decided(_events(place / "run"))
        pairs = zip(whole, found, strict=False)
        wrong = next((seq for seq, (one, other) in enumerate(pairs, start=1) if one != other), None)
        assert wrong is None, f"killed at {moment}, event {wrong} came out otherwise"
        assert len(found) == len(whole), f"killed at {moment}, it ended after {len(found)} events of {len(whole)}"
        assert _slots(place / "run") == slots, f"killed at {moment}, calls were made again or left out"


def _killed(case: AlgorithmCase, folder: Path, moment: Mapping[str, int]) -> None:
    """A run whose process was killed; `multiprocessing` would wait for it, so that it is over when this returns."""
    child = multiprocessing.get_context("fork").Process(
        target=case.trained, args=(folder,), kwargs={"observer": _Observer(**moment)}
    )
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL, f"at {moment} the run was not killed: it ended with {child.exitcode}"


# --- the fold -------------------------------------------------------------------------------------------------------


def a_state_is_a_fold_of_its_events(case: AlgorithmCase, folder: Path) -> None:
    """One by one as all at once, and no state changes once another one follows it."""
    events = case.trained(folder)
    state: AnyState | None = None
    along, alone = [], []
    for seq, event in enumerate(events, start=1):
        state = evolve(state, event)
        along.append(state)
        alone.append(fold(events[:seq]))
        assert state == alone[-1], f"event {seq} folds otherwise alone than with those before it"
    for seq, (then, still) in enumerate(zip(along, alone, strict=True), start=1):
        assert then == still, f"the state after event {seq} was changed later"


def the_next_work_is_the_states_alone(case: AlgorithmCase, folder: Path) -> None:
    """Nothing else is looked at, so that a run goes on where it stopped; and every decision has its function."""
    events = case.trained(folder)
    algorithm, observer = case.algorithm(folder), _Observer()
    case.trained(folder / "again", observer=observer)
    unknown = observer.jobs.keys() - set(algorithm.questions)
    assert not unknown, f"nobody knows how to ask {', '.join(sorted(job.__name__ for job in unknown))}"
    for seq in range(1, len(events) + 1):
        state = _folded(events[:seq])
        assert algorithm_at(state) is algorithm, f"after event {seq} the run is another algorithm's"
        assert algorithm.commands.under_way(state) == algorithm.commands.under_way(_folded(events[:seq])), (
            "what is under way is not the state's"
        )
    assert algorithm.commands.under_way(_folded(events)) == "", "a run that is over has something under way"


# --- what readers get -----------------------------------------------------------------------------------------------


def every_decision_follows_from_the_evidence(case: AlgorithmCase, folder: Path) -> None:
    """`replay --check` finds nothing."""
    case.trained(folder)
    _check_derives(folder / "run")


def _check_derives(run: Path) -> None:
    with EventLog.open(run) as log:
        report = asyncio.run(check(log, Journal(log.reader), run))
    first = report.mismatch
    assert first is None, f"it does not follow: {first}"
    assert report.decisions, "nothing was derived again"


class _UntilAStep(_Observer):
    """Has a run stopped once its first step is over."""

    over = False

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """An event is durable."""
        self.over = self.over or isinstance(event, STEP_ENDS)

    def stopping(self) -> bool:
        """Whether the run is to stop."""
        return self.over


def it_goes_on_without_an_item(case: AlgorithmCase, folder: Path) -> None:
    """What somebody retracts on the way is never tried again, and the log derives with that."""
    if "retract" not in case.algorithm(folder).commands.heeds:
        return
    run, first = folder / "run", _UntilAStep()
    session = replace(case.session(), observers=(first,), stopping=first.stopping)
    with suppress(Interrupted):
        asyncio.run(start(case.config(folder, ("train.num_epochs=3",)), run, session))
    state = read_state(run)
    assert state is not None
    for items in (state.started.splits.train, state.started.splits.val):
        if len(items) > 1:
            leave(run, "retract", by="somebody", why="a check", text=items[-1])
    if state.completed is None:
        asyncio.run(resume(run, case.session()))
    gone: set[str] = set()
    for event in _events(run):
        if isinstance(event, EvidenceRetracted):
            gone.update(event.items)
        tried = isinstance(event, RolloutCompleted) and event.item in gone
        assert not tried, f"{event} is tried after it was retracted: take it out of what the algorithm keeps"
    # At the latest, an order is followed when the step that was open has ended.
    assert gone or state.steps_done + 1 >= state.started.total_steps, "an order to leave an item out was not followed"
    _check_derives(run)


def it_has_words_for_what_it_does(case: AlgorithmCase, folder: Path) -> None:
    """Where a run stands at any moment, and what each of its questions is called."""
    algorithm = case.algorithm(folder)
    observer = _Observer()
    events = case.trained(folder, observer=observer)
    for kind, job in observer.jobs.items():
        assert algorithm.words.doing(job).strip(), f"{kind.__name__} has no words for progress"
    for seq in range(1, len(events) + 1):
        state = _folded(events[:seq])
        words = algorithm.words
        assert words.stands(state).position.strip(), f"after event {seq} nothing says where the run stands"
        assert "\n" not in words.stands(state).where, f"after event {seq} the line of progress is no line"
        encode(RunPaused(reason="error", message=str(words.snapshot(state))))


ALGORITHM_CHECKS: Mapping[str, Callable[[AlgorithmCase, Path], None]] = {
    check.__name__: check
    for check in (
        a_run_comes_to_its_end,
        the_same_answers_give_the_same_log,
        a_killed_run_goes_on_as_if_nothing_had_been,
        a_state_is_a_fold_of_its_events,
        the_next_work_is_the_states_alone,
        every_decision_follows_from_the_evidence,
        it_goes_on_without_an_item,
        it_has_words_for_what_it_does,
    )
}
