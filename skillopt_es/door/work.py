"""
Training, going on, scoring and estimating, as functions: the command does its work through these.

`offered.py` makes of each what `import skillopt_es` offers: with a signature that names all that may be handed over,
errors in Python's words, and a twin that waits.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Unpack

from attrs import evolve, field, frozen

from skillopt_es.config import RunConfig, with_overrides
from skillopt_es.door.given import Config, Given, Handed, config_from, settings_texts, stem_of
from skillopt_es.door.progress import Progress, Shown, shown
from skillopt_es.door.run import Run, open_run
from skillopt_es.engine.estimates import Planned
from skillopt_es.engine.in_flight import InFlight
from skillopt_es.engine.observers import Observer
from skillopt_es.errors import ConfigError
from skillopt_es.estimating.estimate import Estimate, estimate_of
from skillopt_es.estimating.history import past_runs
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.plain import real_path
from skillopt_es.events.values import SkillTree, Split
from skillopt_es.runs.folders import continued_folder, is_run, new_run_folder
from skillopt_es.runs.run_log import logged_to
from skillopt_es.sessions import evaluation, session
from skillopt_es.sessions.continuing import read_before
from skillopt_es.sessions.evaluation import ASKED_ROLES, OWN_BUDGET, Evaluated, EvaluationRequest, scorable_run
from skillopt_es.sessions.seal import Seal, seal_of, seal_of_run
from skillopt_es.sessions.session import few_notes, run_started, size_notes
from skillopt_es.sessions.skills import load_skill
from skillopt_es.sessions.wiring import Session, open_data

PathOrText = str | os.PathLike[str]
AnyRun = Run | PathOrText

stopping: ContextVar[Callable[[], bool] | None] = ContextVar("stopping", default=None)
"""Whether the caller who waits has pressed Ctrl-C."""


@frozen(kw_only=True)
class Watch:
    """
    Who looks on while a run works, and may end it.

    `observers` are told of every task, event and call; one that raises is left out from then on. `warn` gets sentences
    for a person, which otherwise go to the logger `skillopt_es`, and `note` those that are good to know and no reason
    to worry. Once `stopping` is true, nothing new is begun: what is in flight is finished and recorded, and Interrupted
    is raised. `in_flight` counts what is being waited for; `ahead_gave_up` hears why something tried ahead of its turn
    came to nothing.
    """

    observers: Sequence[Observer] = ()
    warn: Callable[[str], None] | None = None
    note: Callable[[str], None] | None = None
    stopping: Callable[[], bool] | None = None
    in_flight: InFlight = field(factory=InFlight)
    ahead_gave_up: Callable[[Exception], None] | None = None

    def session(self, given: Given | None = None) -> Session:
        """The session of the real clock and the given world."""
        stops = [stop for stop in (self.stopping, stopping.get()) if stop is not None]
        made = Session(
            now=partial(datetime.now, UTC),
            clock=time.monotonic,
            observers=self.observers,
            warn=self.warn or logging.getLogger("skillopt_es").warning,
            # Asked before and after every call: of one alone nothing has to be put together.
            stopping=stops[0] if len(stops) == 1 else lambda: any(stop() for stop in stops),
            in_flight=self.in_flight,
        )
        if given is not None:
            made = evolve(made, world=given.world())
        if self.note is not None:
            made = evolve(made, note=self.note)
        return made if self.ahead_gave_up is None else evolve(made, ahead_gave_up=self.ahead_gave_up)


class Watched(Handed, total=False):
    """What each function takes that trains or scores."""

    watch: Watch | None
    progress: Progress


def _given(handed: Handed, directory: Path) -> Given:
    """What was handed over, without who looks on."""
    objects = {name: value for name, value in handed.items() if name in Handed.__annotations__}
    return Given(directory=directory, **objects)  # type: ignore[arg-type]  # its fields are those of Handed


@contextmanager
def _line(handed: Watched, watched: Session) -> Iterator[Shown | None]:
    """What shows how far the work is, until the block ends; None where nothing does."""
    line = shown(handed.get("progress", True), watched.warn)
    try:
        yield line
    finally:
        if line is not None:
            line.close()


@contextmanager
def _followed(handed: Watched, given: Given) -> Iterator[Session]:
    """The session of a training, with a line of progress until the block ends."""
    watched = _session(handed, given)
    with _line(handed, watched) as line:
        yield watched if line is None else evolve(watched, observers=(*watched.observers, line))


def _session(handed: Watched, given: Given) -> Session:
    return (handed.get("watch") or Watch()).session(given)


async def atrain(
    config: Config = None, *, name: str | None = None, runs: PathOrText = "runs", **handed: Unpack[Watched]
) -> Run:
    """
    Train a skill, and return its run when it is complete or pauses (`run.status` says which).

    Args:
        config: a YAML file, a mapping as it would hold, or None for the bundled offline demo.
        name: what the run is called; by default the config's name and the time.
        runs: the directory of runs.
        settings: config keys over that, such as `{"train.num_epochs": 2}`; see docs/config.md.
        tasks: your tasks as a list of dicts, or a dict of such lists for `train`, `val` and `test`.
        target: the agent that is trained for: a function from an `AgentTask` to an answer, a
            `ChatFunction` or a `ChatModel`.
        optimizer: the model that writes the skill: a function from a `ChatRequest` to text, or a `ChatModel`.
        environment: an `Environment` in place of the one that the config names.
        grader: a function from an answer and its item to a grade, for your own tasks (`env.name: tasks`).
        judge: a model that grades, where `env.grader` is `judge`; like the optimizer.
        algorithm: a `Algorithm` in place of the one that `train.algorithm` names (docs/algorithms.md).
        watch: observers, warnings, and a way to end the run early.
        progress: a line that shows how far it is, in a terminal or a notebook; False shows nothing, and a function gets
            each `Now` in place of that.

    Raises:
        ConfigError, DataError: before anything is paid for.
        BackendError: a model cannot be used; what was answered is recorded, and `resume` continues it.
        Interrupted: after Ctrl-C, or when `watch.stopping` says so; `resume` continues it.

    Example:
        >>> import skillopt_es
        >>> run = skillopt_es.train(settings={"train.num_epochs": 1}, name="first")
        >>> run.status
        'completed'

    """
    given = _given(handed, Path(runs))
    loaded = config_from(config, given)
    with new_run_folder(name, stem_of(config, given), datetime.now(UTC), Path(runs)) as folder, _in_run(folder):
        with _followed(handed, given) as watched:
            await session.start(loaded, folder, watched)
        return Run(folder)


async def atrain_on(run: AnyRun, *, name: str | None = None, **handed: Unpack[Watched]) -> Run:
    """
    Train on from a run's best skill, as a new run with what was learned: refused edits, and the optimizer's notes.

    Args:
        run: a `Run`, its folder, or its name under `runs/`; it stays as it is.
        name: what the new run is called; by default the other one's name and a number.
        settings: what is to be different, such as `{"train.num_epochs": 2}`.
        tasks: the tasks of the run, which have to be the same; the run has kept them, so they can be left out.
        target, optimizer, environment, grader, judge, algorithm, watch, progress: as for `train`.

    Raises:
        RunNotFound, and what `train` raises.

    """
    parent = open_run(run).folder
    given = _given(handed, parent.parent)
    before = read_before(parent, given.texts())
    with continued_folder(name, parent) as folder, _in_run(folder):
        with _followed(handed, given) as watched:
            await session.train_on(before, folder, watched)
        return Run(folder)


async def aresume(run: AnyRun, *, ask_again: bool = False, accept_loss: bool = False, **handed: Unpack[Watched]) -> Run:
    """
    Resume a run from exactly where it stopped; a complete one is left as it is.

    Args:
        run: a `Run`, its folder, or its name under `runs/`.
        ask_again: where a recorded answer is to another request, or was cut off, ask again.
        accept_loss: continue with what is left of a log whose end is missing.
        settings: what may change without changing a decision, such as `{"budget.max_calls": 500}`.
        tasks: the tasks of the run, which have to be the same; the run has kept them, so they can be left out.
        target, optimizer, environment, grader, judge, algorithm: what was handed over when it began, which has to be
            handed over again.
        watch, progress: as for `train`.

    Raises:
        RunNotFound, RunBusy, and what `train` raises.

    """
    folder = open_run(run).folder
    given = _given(handed, folder.parent)
    texts = settings_texts(given.settings)
    with _in_run(folder), _followed(handed, given) as watched:
        await session.resume(folder, evolve(watched, overrides=texts, ask_again=ask_again, accept_loss=accept_loss))
    return Run(folder)


async def aevaluate(
    skill: SkillTree | Run | PathOrText | None = None,
    config: Config = None,
    *,
    run: AnyRun | None = None,
    splits: Sequence[Split] = (),
    limit: int = 0,
    again: bool = False,
    open_test: bool = False,
    evals: PathOrText = "evals",
    **handed: Unpack[Watched],
) -> Evaluated:
    """
    Score a skill on whole splits; `.results` has one result a split: its `score`, or None and why in `problem`.

    Args:
        skill: a `SkillTree` such as `run.skill()`, a file, or a `Run` for its best skill; None for the best skill of
            `run`, or for the one that `config` starts from.
        config: the config that says which target and which tasks, as for `train`.
        run: a run whose config and tasks are used in place of `config`.
        splits: of `train`, `val` and `test`; none means each that is not sealed.
        limit: only the first items of each split; 0 takes all.
        again: draw everything once more, where a score is recorded already.
        open_test: look at sealed test items, which the log then says for ever.
        evals: where evaluations are recorded; what was answered once is not asked again.
        settings, tasks, target, environment, grader, judge, watch, progress: as for `train`.
        optimizer, algorithm: not used, as scoring asks neither; they may stay among what is handed over everywhere.

    """
    given = _given(handed, Path(evals))
    asked = _asked(skill, config, run, given, opens=open_test)
    watched = _session(handed, given)
    with _line(handed, watched) as line:
        request = EvaluationRequest(
            config=asked.config,
            skill=asked.skill,
            notes=asked.notes,
            splits=tuple(splits),
            leave_sealed=not splits,
            limit=limit,
            directory=Path(evals),
            stem=asked.stem,
            seal=asked.seal,
            again=again,
        )
        return await evaluation.evaluate(request, watched, lambda *far: None if line is None else line.scored(*far))


@frozen(kw_only=True)
class _Asked:
    """What is scored, and where that comes from."""

    config: RunConfig
    skill: SkillTree
    notes: tuple[str, ...]
    stem: str
    seal: Seal | None


def _asked(
    skill: SkillTree | Run | PathOrText | None, config: Config, run: AnyRun | None, given: Given, *, opens: bool
) -> _Asked:
    """What an evaluation is about; raises ConfigError where nothing says on what to score."""
    if config is not None and run is not None:
        raise ConfigError("both `config` and `run` are given", hint="pass the one whose tasks are meant")
    if config is None and run is None and isinstance(skill, Run):
        run = skill
    if run is not None:
        return _of_run(skill, open_run(run).folder, given, opens=opens)
    if config is None and not given.has_data:
        raise ConfigError(
            "nothing says on which tasks to score, and with which target",
            hint="pass `run=` (a run), `config=` (a file or a mapping) or `tasks=` (a list of dicts)",
        )
    loaded = config_from({} if config is None else config, given, ASKED_ROLES)
    tree, notes = load_skill(loaded) if skill is None else _tree(skill, loaded)
    return _Asked(
        config=loaded, skill=tree, notes=notes, stem=stem_of(config, given), seal=seal_of(loaded, opens=opens)
    )


def _of_run(skill: SkillTree | Run | PathOrText | None, folder: Path, given: Given, *, opens: bool) -> _Asked:
    """A skill on the tasks of a run, with the target that the run has recorded."""
    of = scorable_run(folder)
    own = with_overrides(of.config, OWN_BUDGET, os.environ, asks=ASKED_ROLES)
    config = config_from(own, given, ASKED_ROLES)
    tree, notes = (of.skill("best"), ()) if skill is None else _tree(skill, config)
    seal = seal_of_run(of.state.started, of.config, of.folder, config, opens=opens)
    return _Asked(config=config, skill=tree, notes=notes, stem=real_path(folder).name, seal=seal)


def _tree(given: SkillTree | Run | PathOrText, config: RunConfig) -> tuple[SkillTree, tuple[str, ...]]:
    """The skill to score, and notes on how it was read."""
    if isinstance(given, SkillTree):
        return given, ()
    if isinstance(given, Run):
        return given.skill("best"), ()
    if not isinstance(given, str | os.PathLike):
        raise ConfigError(
            f"skill is {given!r:.60}, but must be a SkillTree, a Run or the path of a skill",
            hint='`run.skill("best")` is a SkillTree',
        )
    return load_skill(evolve(config, env=evolve(config.env, skill_init=str(Path(given).absolute()))))


async def aestimate(config: Config = None, *, runs: PathOrText = "runs", **handed: Unpack[Handed]) -> Estimate:
    """
    The calls, tokens, money and time of a run, each from low to high; asks no model.

    Args:
        config: as for `train`.
        runs: where earlier runs of the same models and data are looked for.
        settings, tasks, target, optimizer, environment, grader, judge, algorithm: as for `train`.

    """
    directory = Path(runs)
    with TemporaryDirectory(prefix="skillopt-tasks-") as scratch:
        given = _given(handed, Path(scratch))
        loaded = config_from(config, given)
        async with open_data(loaded, given.world()) as data:
            started = run_started(loaded, data.splits, directory / "estimate")
    run = Planned(config=loaded, started=started)
    found = estimate_of(run, past_runs(directory, run))
    notes = (*size_notes(loaded, len(started.splits.train)), *few_notes(data.splits))
    return evolve(found, notes=(*notes, *found.notes))


@contextmanager
def _in_run(folder: Path) -> Iterator[None]:
    """Logs what is worth it beside the run, and adds to what is raised inside where the run is, for `resume`."""
    try:
        with logged_to(folder):
            yield
    except SkillOptError as error:
        if is_run(folder):
            error.add_note(f"the run is in {folder}")
        raise
