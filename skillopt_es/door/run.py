"""A run, read only: its state at any moment, its events, and what is made of them, as typed values."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from attrs import asdict, frozen

from skillopt_es.audit.blame import BLAME_TYPES, Blame, blame
from skillopt_es.audit.side_by_side import Side, side
from skillopt_es.audit.tried import chain_of
from skillopt_es.deploy.evidence import facts_of
from skillopt_es.deploy.files import write_built
from skillopt_es.deploy.folder import name_of, skill_folder, skill_folders
from skillopt_es.door.given import Settings, settings_texts
from skillopt_es.engine.algorithms import fold_log
from skillopt_es.errors import ConfigError, NotInRun
from skillopt_es.events.catalog import BY_NAME, Recorded, RolloutCompleted, RunCompleted, RunPaused
from skillopt_es.events.errors import RunNotFound
from skillopt_es.events.log import EventLog
from skillopt_es.events.plain import real_path
from skillopt_es.events.values import Json, Measured, Score, SkillTree
from skillopt_es.events.verify import VerifyReport, verify
from skillopt_es.presenting.documents import step_json
from skillopt_es.projections.lineage import TYPES as LINEAGE_TYPES
from skillopt_es.projections.lineage import Lineage, lineage
from skillopt_es.projections.lines import StepLine
from skillopt_es.projections.state import AnyState
from skillopt_es.projections.summary import DETAILS, Summary, summarize
from skillopt_es.runs.folders import find_run, fork_folder
from skillopt_es.runs.lookup import Kind, seq_of
from skillopt_es.runs.overview import Spent, spent
from skillopt_es.runs.reading import Reading, whole_log
from skillopt_es.sessions.forking import make_fork

if TYPE_CHECKING:
    import pandas as pd

Moment = int | str | None
Which = Literal["best", "current", "certified", "initial"]
Table = Literal["events", "steps", "items"]


@frozen
class Run:
    """
    A run's folder, and what its log says; nothing here changes it, and a writer may be at work meanwhile.

    Every method reads the log anew. A moment is the number of an event, or text such as `"step 12"` or `"epoch 2"`;
    None is now.
    """

    folder: Path

    @property
    def name(self) -> str:
        """What the run is called."""
        return self.folder.name

    @property
    def status(self) -> str:
        """`new`, `running` (or killed while it was), `paused` or `completed`."""
        state = self._state()
        return "new" if state is None else state.status

    @property
    def pause(self) -> str:
        """Why the run is paused, in a sentence; empty when it is not."""
        state = self._state()
        return "" if state is None or state.paused is None else state.paused.message

    def state(self, at: Moment = None) -> AnyState:
        """Everything that the trainer knew at a moment, folded from the log; raises NotInRun for one it has not."""
        state = self._state(at)
        if state is None:
            raise NotInRun(f"{self.name} has not begun")
        return state

    def _state(self, at: Moment = None) -> AnyState | None:
        with self._log() as log:
            until = _seq(log, at)
            return fold_log(log.read(until=until))[0]

    def events(
        self, types: Collection[str] | None = None, *, after: int = 0, until: Moment = None
    ) -> Iterator[Recorded]:
        """
        What happened, in order: each event with its number, time and hash; of some types, if you name them.

        Raises NotInRun for a type that no event has.
        """
        unknown = [name for name in types or () if name not in BY_NAME]
        if unknown:
            raise NotInRun(f"there is no event of type {unknown[0]}", hint=f"the types are {', '.join(BY_NAME)}")
        with self._log() as log:
            yield from log.read(after, _seq(log, until), types)

    def follow(self, *, after: int = 0, sleep: Callable[[float], None] = time.sleep) -> Iterator[Recorded]:
        """The events after `after`, and then each new one as it is written, until the run is complete or pauses."""
        with self._log() as log:
            for recorded in log.follow(after, sleep=sleep):
                yield recorded
                if isinstance(recorded.event, RunCompleted | RunPaused) and recorded.seq == log.head().seq:
                    return

    def skill(self, which: Which = "best", at: Moment = None) -> SkillTree:
        """The best, current, certified or initial skill: `.text` is its main file, `.files` has each."""
        state = self._state(at)
        skills = {} if state is None else {name: each.skill for name, each in state.standings.items()}
        if state is not None:
            skills["initial"] = state.started.skill
        if which not in skills:
            raise NotInRun(f"{self.name} has no {which} skill", hint="it has best, current, certified and initial")
        return skills[which]

    def test_score(self, which: Which = "best") -> Score | None:
        """The score of a skill on the test items; None where it was not tested."""
        tested = self.state().tests.get(self.skill(which).hash)
        return None if tested is None else tested.score

    def summary(self) -> Summary:
        """What came of the run: its scores, its steps one by one, and why each candidate was taken or refused."""
        return summarize(recorded.event for recorded in self.events(DETAILS))

    def lineage(self) -> Lineage:
        """Which text came from which, how each was judged, and which is the best."""
        return lineage(self.events(LINEAGE_TYPES))

    def blame(self) -> Blame:
        """Who wrote each line of the current and of the best skill: step, edit, and the evidence behind it."""
        found = blame(self.events(BLAME_TYPES))
        if found is None:
            raise NotInRun(f"{self.name} stopped before it began, so it has no skill")
        return found

    def explain(self, step: int) -> dict[str, Json]:
        """What led to a step's verdict, as `skillopt-es explain --json` says it; raises NotInRun for one it has not."""
        with Reading.of(self.folder) as reading:
            return step_json(chain_of(step, reading))

    def fork(self, at: Moment = None, *, settings: Settings | None = None, name: str | None = None) -> Run:
        """
        A new run in the same folder that shares what this run did up to a moment; `resume` continues it.

        `settings` may change from there on, also those that decide. Nothing is asked yet, and this run stays as it is.
        """
        with self._log() as log:
            seq = _seq(log, at)
            seq = log.head().seq if seq is None else seq
        parent = self.folder if self.folder.name not in ("", "..") else real_path(self.folder)
        with fork_folder(name, parent, f"event-{seq}") as folder:
            made = make_fork(parent, seq, folder, overrides=settings_texts(settings), now=lambda: datetime.now(UTC))
        return Run(made.folder)

    def export(self, place: str | os.PathLike[str], which: Which = "best") -> list[Path]:
        """
        Writes a skill into a folder that coding agents load: SKILL.md with frontmatter, other files, PROVENANCE.json.

        The files of a folder of skills go into a folder for each. Raises OutputRefused where a file is there already.
        """
        with self._log() as log:
            skill, facts = facts_of(log, which)
        folder = Path(place)
        if skill.is_folder:
            built = [(folder / each.name, each) for each in skill_folders(skill, facts)]
        else:
            built = [(folder, skill_folder(skill, facts, name_of(skill, None, real_path(folder).name), None))]
        return [file for where, each in built for file in write_built(where, each, force=False)]

    def usage(self) -> Spent:
        """What was used: calls, tokens, and money where the config has prices; by stage, model and step."""
        return spent(self.folder)

    def verify(self) -> VerifyReport:
        """Whether the log is what was written; `.ok`, and what is wrong where it is not."""
        return verify(self.folder)

    def to_pandas(self, table: Table = "steps") -> pd.DataFrame:
        """The run as a table: `events`, `steps`, or `items` (each result of each item); needs pandas."""
        try:
            import pandas as pd  # noqa: PLC0415 -- an extra
        except ImportError:
            raise ConfigError("to_pandas needs pandas", hint="`pip install pandas`") from None
        return pd.DataFrame(self.rows(table))

    def rows(self, table: Table = "steps") -> list[dict[str, object]]:
        """The rows of such a table as plain dicts."""
        makers = {"events": self._event_rows, "steps": self._step_rows, "items": self._item_rows}
        if table not in makers:
            raise NotInRun(f"there is no table {table!r}", hint=f"tables: {', '.join(makers)}")
        return list(makers[table]())

    def _event_rows(self) -> Iterator[dict[str, object]]:
        for recorded in self.events():
            step = getattr(recorded.event, "step", None)
            yield {"seq": recorded.seq, "at": recorded.recorded_at, "type": type(recorded.event).__name__, "step": step}

    def _step_rows(self) -> Iterator[dict[str, object]]:
        for line in self.summary().lines:
            if isinstance(line, StepLine):
                yield {**asdict(line), "train": None if line.train is None else line.train.hard}

    def _item_rows(self) -> Iterator[dict[str, object]]:
        for recorded in self.events(("RolloutCompleted",)):
            event = cast(RolloutCompleted, recorded.event)
            measured = event.outcome if isinstance(event.outcome, Measured) else None
            yield {
                "seq": recorded.seq,
                "place": event.place,
                "purpose": event.purpose,
                "item": event.item,
                "type": event.task_type,
                "skill": event.skill,
                "hard": None if measured is None else measured.hard,
                "soft": None if measured is None else measured.soft,
                "failure": event.failure,
            }

    @contextmanager
    def _log(self) -> Iterator[EventLog]:
        with whole_log(self.folder) as log:
            yield log


def compare(*runs: Run | str | os.PathLike[str]) -> list[Side]:
    """What `skillopt-es compare` shows, a value for each run: status, steps, scores, what was used."""
    sides = [side(open_run(run).folder) for run in runs]
    for each in sides:
        if each.problem is not None:  # the command shows it beside the table; a list has no such place
            raise each.problem
    return sides


def open_run(run: Run | str | os.PathLike[str], *, runs: str | os.PathLike[str] = "runs") -> Run:
    """A run by its folder, or by its name under `runs`; raises RunNotFound."""
    if isinstance(run, Run):
        return run
    if not isinstance(run, str | os.PathLike):
        raise ConfigError(f"run is {run!r:.60}, but must be a Run, its folder or its name")
    if not os.fspath(run):
        raise RunNotFound("a run has a name", hint="name its folder, or the run under `runs`")
    return Run(find_run(os.fspath(run), Path(runs)))


def _seq(log: EventLog, at: Moment) -> int | None:
    if at is None:
        return None
    if isinstance(at, int):
        return seq_of(log, ("seq", at))
    kind, _, number = at.strip().partition(" ")
    if kind not in ("step", "epoch", "seq") or not number.strip().isdecimal():
        raise NotInRun(f"{at!r} is no moment of a run", hint='write 345, "seq 345", "step 12" or "epoch 2"')
    return seq_of(log, (cast("Kind", kind), int(number)))
