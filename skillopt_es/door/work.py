"""Training, going on, scoring and estimating, as functions: the command does its work through these, too."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from attrs import evolve, field, frozen

from skillopt_es.config import EMPTY, RunConfig
from skillopt_es.door.given import Config, Given, Model, Settings, config_from, settings_texts, stem_of
from skillopt_es.door.run import Run, open_run
from skillopt_es.engine.in_flight import InFlight
from skillopt_es.engine.observers import Observer
from skillopt_es.engine.programs import Program
from skillopt_es.engine.tasks import RunData
from skillopt_es.errors import Interrupted
from skillopt_es.estimating.estimate import Estimate, estimate_of
from skillopt_es.estimating.history import past_runs
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.plain import real_path
from skillopt_es.events.values import SkillTree, Split
from skillopt_es.ports import Environment, GraderFunction
from skillopt_es.programs.evaluation.scoring import Progress
from skillopt_es.runs.folders import continued_folder, is_run, new_run_folder
from skillopt_es.sessions import evaluation, session
from skillopt_es.sessions.continuing import read_before
from skillopt_es.sessions.evaluation import Evaluated, EvaluationRequest
from skillopt_es.sessions.seal import seal_of
from skillopt_es.sessions.session import few_notes, run_started, size_notes
from skillopt_es.sessions.skills import load_skill
from skillopt_es.sessions.wiring import Session, open_data

T = TypeVar("T")
PathOrText = str | os.PathLike[str]


_NOTHING = Given()


@frozen(kw_only=True)
class Watch:
    """
    Who looks on while a run works, and may end it.

    `observers` are told of every task, event and call. `warn` gets sentences for a person, and `note` those that are
    good to know and no reason to worry. Once `stopping` is true,
    nothing new is begun: what is in flight is finished and recorded, and Interrupted is raised. `in_flight` counts
    what is being waited for; `ahead_gave_up` hears why something tried ahead of its turn came to nothing.
    """

    observers: Sequence[Observer] = ()
    warn: Callable[[str], None] = field(default=lambda message: None)
    note: Callable[[str], None] = field(default=lambda message: None)
    stopping: Callable[[], bool] = field(default=lambda: False)
    in_flight: InFlight = field(factory=InFlight)
    ahead_gave_up: Callable[[Exception], None] = field(default=lambda error: None)

    def session(self, given: Given = _NOTHING) -> Session:
        """The session of the real clock and the given world."""
        return Session(
            now=lambda: datetime.now(UTC),
            clock=time.monotonic,
            world=given.world(),
            observers=self.observers,
            warn=self.warn,
            note=self.note,
            stopping=self.stopping,
            in_flight=self.in_flight,
            ahead_gave_up=self.ahead_gave_up,
        )


_NOBODY = Watch()


async def atrain(
    config: Config = None,
    *,
    settings: Settings = EMPTY,
    name: str | None = None,
    runs: PathOrText = "runs",
    target: Model | None = None,
    optimizer: Model | None = None,
    environment: Environment | None = None,
    grader: GraderFunction | None = None,
    judge: Model | None = None,
    program: Program[Any] | None = None,
    watch: Watch = _NOBODY,
) -> Run:
    """`train`, for those who have an event loop of their own."""
    given = Given(
        target=target, optimizer=optimizer, environment=environment, grader=grader, judge=judge, program=program
    )
    loaded = config_from(config, settings, given)
    with new_run_folder(name, stem_of(config), datetime.now(UTC), Path(runs)) as folder, _told(folder):
        await session.start(loaded, folder, watch.session(given))
        return Run(folder)


def train(
    config: Config = None,
    *,
    settings: Settings = EMPTY,
    name: str | None = None,
    runs: PathOrText = "runs",
    target: Model | None = None,
    optimizer: Model | None = None,
    environment: Environment | None = None,
    grader: GraderFunction | None = None,
    judge: Model | None = None,
    program: Program[Any] | None = None,
    watch: Watch = _NOBODY,
) -> Run:
    """
    Train a skill, and return its run when it is complete or pauses (`run.status` says which).

    Args:
        config: a YAML file, a mapping as it would hold, or None for the bundled offline demo.
        settings: config keys over that, such as `{"train.num_epochs": 2}`; see docs/config.md.
        name: what the run is called; by default the config's name and the time.
        runs: the directory of runs.
        target: the model that is trained for: a `ChatModel`, or a function from a `ChatRequest` to text.
        optimizer: the model that writes the skill, likewise.
        environment: an `Environment` in place of the one that the config names.
        grader: a function from an answer and its item to a grade, for your own tasks (`env.name: tasks`).
        judge: a model that grades, where `env.grader` is `judge`; like the others.
        program: a `Program` in place of the one that `train.program` names (docs/programs.md).
        watch: observers, warnings, and a way to end the run early.

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
    return _waited(
        lambda stopping: atrain(
            config,
            settings=settings,
            name=name,
            runs=runs,
            target=target,
            optimizer=optimizer,
            environment=environment,
            grader=grader,
            judge=judge,
            program=program,
            watch=_also(watch, stopping),
        )
    )


async def atrain_on(
    run: Run | PathOrText,
    *,
    settings: Settings = EMPTY,
    name: str | None = None,
    target: Model | None = None,
    optimizer: Model | None = None,
    environment: Environment | None = None,
    grader: GraderFunction | None = None,
    program: Program[Any] | None = None,
    watch: Watch = _NOBODY,
) -> Run:
    """`train_on`, for those who have an event loop of their own."""
    parent = run.folder if isinstance(run, Run) else open_run(run).folder
    given = Given(target=target, optimizer=optimizer, environment=environment, grader=grader, program=program)
    before = read_before(parent, (*settings_texts(settings), *given.overrides()))
    with continued_folder(name, parent) as folder, _told(folder):
        await session.train_on(before, folder, watch.session(given))
        return Run(folder)


def train_on(
    run: Run | PathOrText,
    *,
    settings: Settings = EMPTY,
    name: str | None = None,
    target: Model | None = None,
    optimizer: Model | None = None,
    environment: Environment | None = None,
    grader: GraderFunction | None = None,
    program: Program[Any] | None = None,
    watch: Watch = _NOBODY,
) -> Run:
    """
    Train on from a run's best skill, as a new run with what was learned: refused edits, and the optimizer's notes.

    Args:
        run: a `Run`, its folder, or its name under `runs/`; it stays as it is.
        settings: what is to be different, such as `{"train.num_epochs": 2}`; the data has to be the same.
        name: what the new run is called; by default the other one's name and a number.
        target, optimizer, environment, grader, program, watch: as for `train`.

    Raises:
        RunNotFound, and what `train` raises.

    """
    return _waited(
        lambda stopping: atrain_on(
            run,
            settings=settings,
            name=name,
            target=target,
            optimizer=optimizer,
            environment=environment,
            grader=grader,
            program=program,
            watch=_also(watch, stopping),
        )
    )


async def aresume(
    run: Run | PathOrText,
    *,
    settings: Settings = EMPTY,
    ask_again: bool = False,
    accept_loss: bool = False,
    target: Model | None = None,
    optimizer: Model | None = None,
    environment: Environment | None = None,
    grader: GraderFunction | None = None,
    judge: Model | None = None,
    program: Program[Any] | None = None,
    watch: Watch = _NOBODY,
) -> Run:
    """`resume`, for those who have an event loop of their own."""
    folder = run.folder if isinstance(run, Run) else open_run(run).folder
    given = Given(
        target=target, optimizer=optimizer, environment=environment, grader=grader, judge=judge, program=program
    )
    with _told(folder):
        await session.resume(
            folder,
            evolve(
                watch.session(given),
                overrides=settings_texts(settings),
                ask_again=ask_again,
                accept_loss=accept_loss,
            ),
        )
    return Run(folder)


def resume(
    run: Run | PathOrText,
    *,
    settings: Settings = EMPTY,
    ask_again: bool = False,
    accept_loss: bool = False,
    target: Model | None = None,
    optimizer: Model | None = None,
    environment: Environment | None = None,
    grader: GraderFunction | None = None,
    judge: Model | None = None,
    program: Program[Any] | None = None,
    watch: Watch = _NOBODY,
) -> Run:
    """
    Resume a run from exactly where it stopped; a complete one is left as it is.

    Args:
        run: a `Run`, its folder, or its name under `runs/`.
        settings: what may change without changing a decision, such as `{"budget.max_calls": 500}`.
        ask_again: where a recorded answer is to another request, or was cut off, ask again.
        accept_loss: go on from what is left of a log whose end is missing.
        target, optimizer, environment, grader, judge, program: what was handed over when it began, which has to be
            handed over again.
        watch: as for `train`.

    Raises:
        RunNotFound, RunBusy, and what `train` raises.

    """
    return _waited(
        lambda stopping: aresume(
            run,
            settings=settings,
            ask_again=ask_again,
            accept_loss=accept_loss,
            target=target,
            optimizer=optimizer,
            environment=environment,
            grader=grader,
            judge=judge,
            program=program,
            watch=_also(watch, stopping),
        )
    )


async def aevaluate(
    skill: SkillTree | PathOrText | None = None,
    config: Config = None,
    *,
    splits: Sequence[Split] = (),
    settings: Settings = EMPTY,
    limit: int = 0,
    again: bool = False,
    open_test: bool = False,
    evals: PathOrText = "evals",
    target: Model | None = None,
    environment: Environment | None = None,
    grader: GraderFunction | None = None,
    judge: Model | None = None,
    progress: Progress = lambda split, done, total: None,
    watch: Watch = _NOBODY,
) -> Evaluated:
    """`evaluate`, for those who have an event loop of their own."""
    given = Given(target=target, environment=environment, grader=grader, judge=judge)
    loaded = config_from(config, settings, given)
    tree, notes = _skill(skill, loaded)
    request = EvaluationRequest(
        config=loaded,
        skill=tree,
        notes=notes,
        splits=tuple(splits),
        leave_sealed=not splits,
        limit=limit,
        directory=Path(evals),
        stem=stem_of(config),
        seal=seal_of(loaded, opens=open_test),
        again=again,
    )
    return await evaluation.evaluate(request, watch.session(given), progress)


def _skill(given: SkillTree | PathOrText | None, config: RunConfig) -> tuple[SkillTree, tuple[str, ...]]:
    """The skill to score, and notes on how it was read."""
    if isinstance(given, SkillTree):
        return given, ()
    if given is None:
        return load_skill(config)
    return load_skill(evolve(config, env=evolve(config.env, skill_init=str(real_path(given)))))


def evaluate(
    skill: SkillTree | PathOrText | None = None,
    config: Config = None,
    *,
    splits: Sequence[Split] = (),
    settings: Settings = EMPTY,
    limit: int = 0,
    again: bool = False,
    open_test: bool = False,
    evals: PathOrText = "evals",
    target: Model | None = None,
    environment: Environment | None = None,
    grader: GraderFunction | None = None,
    judge: Model | None = None,
    progress: Progress = lambda split, done, total: None,
    watch: Watch = _NOBODY,
) -> Evaluated:
    """
    Score a skill on whole splits; `.results` has one result a split, each with a score or the reason why there is none.

    Args:
        skill: a `SkillTree` such as `run.skill()`, a file, or None for the one that the config starts from.
        config: as for `train`.
        splits: of `train`, `val` and `test`; none means each that is not sealed.
        limit: only the first items of each split; 0 takes all.
        again: draw everything once more, where a score is recorded already.
        open_test: look at sealed test items, which the log then says for ever.
        evals: where evaluations are recorded; what was answered once is not asked again.
        progress: told the split, how many items are done, and how many there are.
        settings, target, environment, grader, judge, watch: as for `train`.

    """
    return _waited(
        lambda stopping: aevaluate(
            skill,
            config,
            splits=splits,
            settings=settings,
            limit=limit,
            again=again,
            open_test=open_test,
            evals=evals,
            target=target,
            environment=environment,
            grader=grader,
            judge=judge,
            progress=progress,
            watch=_also(watch, stopping),
        )
    )


async def aestimate(
    config: Config = None,
    *,
    settings: Settings = EMPTY,
    runs: PathOrText = "runs",
    target: Model | None = None,
    optimizer: Model | None = None,
    environment: Environment | None = None,
    grader: GraderFunction | None = None,
    judge: Model | None = None,
    program: Program[Any] | None = None,
) -> Estimate:
    """`estimate`, for those who have an event loop of their own."""
    given = Given(
        target=target, optimizer=optimizer, environment=environment, grader=grader, judge=judge, program=program
    )
    loaded, directory = config_from(config, settings, given), Path(runs)
    async with open_data(loaded, given.world()) as data:
        started = run_started(loaded, data.splits, directory / "estimate")
    run = RunData(config=loaded, started=started)
    found = estimate_of(run, past_runs(directory, run))
    notes = (*size_notes(loaded, len(started.splits.train)), *few_notes(data.splits))
    return evolve(found, notes=(*notes, *found.notes))


def estimate(
    config: Config = None,
    *,
    settings: Settings = EMPTY,
    runs: PathOrText = "runs",
    target: Model | None = None,
    optimizer: Model | None = None,
    environment: Environment | None = None,
    grader: GraderFunction | None = None,
    judge: Model | None = None,
    program: Program[Any] | None = None,
) -> Estimate:
    """
    The calls, tokens, money and time of a run, each from low to high; asks no model.

    Args:
        config, settings, target, optimizer, environment, grader, judge, program: as for `train`.
        runs: where earlier runs of the same models and data are looked for.

    """
    return _waited(
        lambda stopping: aestimate(
            config,
            settings=settings,
            runs=runs,
            target=target,
            optimizer=optimizer,
            environment=environment,
            grader=grader,
            judge=judge,
            program=program,
        )
    )


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Adds to whatever is raised inside where the run is, which `resume` needs."""
    try:
        yield
    except SkillOptError as error:
        if is_run(folder):
            error.add_note(f"the run is in {folder}")
        raise


def _also(watch: Watch, stopping: Callable[[], bool]) -> Watch:
    return evolve(watch, stopping=lambda: watch.stopping() or stopping())


def _waited(work: Callable[[Callable[[], bool]], Coroutine[object, object, T]]) -> T:
    """
    The result of the work, on a thread with an event loop of its own, so that a notebook's loop does not matter.

    The first KeyboardInterrupt lets calls in flight end; the second one does not wait.
    """
    asked = threading.Event()
    outcome: list[T] = []
    failure: list[BaseException] = []

    async def whole() -> T:
        return await work(asked.is_set)

    def run() -> None:
        try:
            outcome.append(asyncio.run(whole()))
        except BaseException as error:  # noqa: BLE001 -- raised again where the caller waits
            failure.append(error)

    thread = threading.Thread(target=run, name="skillopt-es", daemon=True)
    thread.start()
    while thread.is_alive():
        try:
            thread.join()
        except KeyboardInterrupt:
            if asked.is_set():
                raise Interrupted("stopped at once, as asked; calls in flight may be paid again") from None
            asked.set()
    if failure:
        raise failure[0]
    return outcome[0]
