"""
A sweep at work: processes begin, end, are adopted and asked to stop; each thing that happens is a fact in its log.

Whatever may be killed leaves a state from which the same command goes on: a run's own log says what became of it, and
its lock whether somebody writes it. A run that an earlier process has left at work is waited for, never begun again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from attrs import define, field, frozen

from skillopt_es.counting import counted
from skillopt_es.errors import ConfigError
from skillopt_es.sessions.commons import VARIABLE, Commons
from skillopt_es.sweeps.children import Child, Processes, Workshop, another_run, result_of, run_folder, words_for
from skillopt_es.sweeps.facts import (
    Fact,
    RunEnded,
    RunEntry,
    RunLaunched,
    SettingRestored,
    SweepBegan,
    SweepCompleted,
    SweepContinued,
    SweepPaused,
    SweepState,
)
from skillopt_es.sweeps.log import SweepWriter
from skillopt_es.sweeps.next import drops, is_complete, to_begin
from skillopt_es.sweeps.plan import PlannedRun, SweepPlan
from skillopt_es.version import software_version

_LIMITS = "limits.db"
# A run that ends makes room for the next one this much later; each look asks the kernel once a child.
_LOOK_EVERY = 0.05
_MOST_KILLS = 3
"""So often a run whose process is killed is continued at once; more of it has a cause that stays."""


@frozen(kw_only=True)
class Outside:
    """What a sweep is given: the time of day, who is told of facts, and how often it was asked to stop."""

    now: Callable[[], datetime]
    tell: Callable[[Fact], None]
    asked_to_stop: Callable[[], int]
    sleep: Callable[[float], None] = time.sleep


def drive(plan: SweepPlan, folder: Path, outside: Outside, restore: Sequence[str] = ()) -> SweepState:
    """Begins or continues the sweep in a folder until nothing of it can go on; raises RunBusy while another does."""
    with SweepWriter(folder, outside.now) as writer:
        _open(writer, plan, folder)
        sweep = _Sweep(plan, folder, writer, outside, _workshop(plan, folder, writer.name))
        try:
            sweep.restore(restore)
            sweep.work()
        finally:
            sweep.workshop.close()
        return writer.state


def _workshop(plan: SweepPlan, folder: Path, name: str) -> Workshop:
    """Where the runs' processes work; their shared limits hold from now on as the plan has them."""
    path: Path | None = folder / _LIMITS
    assert path is not None
    if not plan.limits and not path.exists():
        path = None
    else:
        commons = Commons(path, folder)
        commons.set_limits(plan.limits)
        commons.close()
    if plan.ray is not None:
        from skillopt_es.sweeps.jobs import open_jobs  # noqa: PLC0415 -- it needs an HTTP client, and few sweeps do

        return open_jobs(plan.ray, folder, name, path)
    return Processes(folder, {} if path is None else {VARIABLE: str(path.resolve())})


def _open(writer: SweepWriter, plan: SweepPlan, folder: Path) -> None:
    if writer.state.began is not None:
        _require_same(writer.state.began, plan, folder)
        writer.append(SweepContinued(software=software_version()))
        return
    entries = tuple(RunEntry(name=run.name, setting=run.setting, seed=run.seed, digest=run.digest) for run in plan.runs)
    writer.append(SweepBegan(software=software_version(), file=str(plan.file), score=plan.score, runs=entries))


def _require_same(began: SweepBegan, plan: SweepPlan, folder: Path) -> None:
    """A sweep that has begun keeps its runs: a table of two plans would compare what nobody planned."""
    now = {run.name: run.digest for run in plan.runs}
    then = {run.name: run.digest for run in began.runs}
    other = "" if began.score == plan.score else "score is another"
    if not other and now.keys() != then.keys():
        other = f"it has other runs ({counted(len(now), 'run')} now, {len(then)} then)"
    changed = [name for name in then if now.get(name) != then[name]]
    if not other and changed:
        other = f"{changed[0]} has other settings"
    if other:
        raise ConfigError(
            f"{plan.file}: the sweep in {folder} was begun with another plan: {other}",
            hint="restore what was changed; or give the new plan another name: `--name NAME`",
        )


@define
class _Sweep:
    """One process that works through a sweep."""

    plan: SweepPlan
    folder: Path
    writer: SweepWriter
    outside: Outside
    workshop: Workshop
    live: dict[str, Child] = field(factory=dict)
    ended_now: set[str] = field(factory=set)
    kills: Counter[str] = field(factory=Counter)
    passed_on: int = 0

    def restore(self, settings: Sequence[str]) -> None:
        """Settings that were dropped go on, to their end."""
        for setting in settings:
            if setting not in self.writer.state.settings:
                known = ", ".join(self.writer.state.settings)
                raise ConfigError(f"--restore {setting}: there is no such setting", hint=f"settings: {known}")
            if setting not in self.writer.state.restored:
                self._record(SettingRestored(setting=setting))

    def work(self) -> None:
        """Until every run is done, or nothing goes on without somebody."""
        self._adopt()
        while True:
            self._look_after_the_living()
            stopping = self._pass_on_signals()
            if not stopping:
                self._drop()
                self._begin()
            if not self.live:
                break
            self.outside.sleep(_LOOK_EVERY)
        self._close()

    def _record(self, fact: Fact) -> None:
        self.writer.append(fact)
        self.outside.tell(fact)

    def _adopt(self) -> None:
        """Runs that an earlier process has left at work are ours; what ended meanwhile has ended."""
        for run in self.plan.runs:
            if self.writer.state.done(run.name):
                continue
            at_work = self.workshop.at_work(run, self.writer.state.launches.get(run.name, 0))
            if at_work is not None:
                self.live[run.name] = at_work
            elif run.name in self.writer.state.launches:
                self.workshop.ended(run)
                self._look_at_what_is_left(run)

    def _look_at_what_is_left(self, run: PlannedRun) -> None:
        """A run may have completed while nobody looked."""
        found = result_of(self.folder, run, None)
        if found.outcome == "completed":
            self._record(found)

    def _look_after_the_living(self) -> None:
        for name, child in list(self.live.items()):
            if not child.has_ended():
                continue
            other = self.workshop.at_work(child.run, self.writer.state.launches.get(name, 0))
            if other is not None:
                self.live[name] = other  # somebody else was there first, and is at it
                continue
            del self.live[name]
            self.workshop.ended(child.run)
            self._end(result_of(self.folder, child.run, child.code, child.last_words()))

    def _end(self, found: RunEnded) -> None:
        self._record(found)
        if found.outcome == "killed":
            self.kills[found.run] += 1
        if found.outcome != "killed" or self.kills[found.run] >= _MOST_KILLS:
            self.ended_now.add(found.run)

    def _pass_on_signals(self) -> bool:
        """Whether the sweep is stopping; what it was asked, its runs are asked, too."""
        asked = self.outside.asked_to_stop()
        while self.passed_on < asked:
            self.passed_on += 1
            for child in self.live.values():
                child.interrupt()
        return asked > 0

    def _drop(self) -> None:
        if self.plan.finish_early:
            for fact in drops(self.writer.state):
                self._record(fact)

    def _begin(self) -> None:
        planned = {run.name: run for run in self.plan.runs}
        spent = self._spent()
        for entry in to_begin(self.writer.state, ended_now=self.ended_now, live=self.live):
            run = planned[entry.name]
            if len(self.live) >= self.plan.at_once:
                return
            if spent.isdisjoint(run.endpoints):
                self._launch(run)

    def _spent(self) -> set[str]:
        """The endpoints whose shared budget some run has just found used up."""
        keys = {self.writer.state.ended[name].key for name in self.ended_now}
        return {name for name in self.plan.limits for key in keys if key.startswith(f"limits.{name}.")}

    def _launch(self, run: PlannedRun) -> None:
        left = self.writer.state.ended.get(run.name)
        wrong = another_run(run_folder(self.folder, run), run)
        if wrong is not None:
            self._end(wrong)
            return
        # Before the process: a kill in between leaves a launch of nothing, never a process that nobody knows of.
        self._record(RunLaunched(run=run.name, resumes=run.name in self.writer.state.launches))
        words = words_for(self.folder, run, left)
        self.live[run.name] = self.workshop.start(run, words, self.writer.state.launches[run.name])

    def _close(self) -> None:
        if is_complete(self.writer.state):
            if not self.writer.state.completed:
                self._record(SweepCompleted())
            return
        reason, message = self._why()
        self._record(SweepPaused(reason=reason, message=message))

    def _why(self) -> tuple[Literal["interrupt", "budget", "handoff", "error"], str]:
        """Why it stands still though it is not complete."""
        if self.outside.asked_to_stop():
            return "interrupt", "stopped as asked; every run that was at work is paused"
        left = [self.writer.state.ended[name] for name in sorted(self.ended_now)]
        left = [each for each in left if each.outcome != "completed"]
        wrong = [each for each in left if each.reason not in _PATIENT]
        first = (wrong or left)[0]
        if wrong:
            return "error", f"{counted(len(wrong), 'run')} did not complete: first {first.run}, {first.message}"
        return _PATIENT[first.reason], f"{counted(len(left), 'run')} paused: first {first.run}, {first.message}"


_PATIENT: Mapping[str, Literal["budget", "handoff", "interrupt"]] = {
    "budget": "budget",
    "handoff": "handoff",
    "asked": "interrupt",  # somebody paused the run itself
}
