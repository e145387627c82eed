"""
A session: one process that trains one run, from opening its log to closing it.

A new run's first event holds config, data and skill, which are checked together before anything is paid for.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from attrs import evolve, frozen

from skillopt_es.config import RunConfig, resume_overrides
from skillopt_es.config.dotenv import dotenv_notes
from skillopt_es.config.draft import DEFAULTS
from skillopt_es.config.layers import changed_since
from skillopt_es.config.places import recorded_place
from skillopt_es.counting import counted
from skillopt_es.engine.algorithms import algorithm_named, check_allowed, fold_log
from skillopt_es.engine.algorithms import evolve as evolved
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.catalog import RunForked, RunResumed, RunStarted, RunSteered
from skillopt_es.events.errors import RunNotFound, SkillOptError
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.values import Json, LostCall, Setting, SplitIds, digest_of
from skillopt_es.events.writer import RunWriter
from skillopt_es.gate.verdicts import too_little
from skillopt_es.ports import Splits, guide_of, worked_of
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.folders import dir_option
from skillopt_es.runs.lookup import Events
from skillopt_es.runs.now import Tally, Telling
from skillopt_es.runs.reading import whole_log
from skillopt_es.sessions.accounts import has_budget, lost_calls
from skillopt_es.sessions.continuing import Before, note_of
from skillopt_es.sessions.skills import first_skill
from skillopt_es.sessions.wiring import OpenWorld, Session, Stage, open_data, open_work, open_world
from skillopt_es.version import software_version


async def train_on(before: Before, folder: Path, session: Session) -> AnyState:
    """Trains a new run in `folder` that begins where another one has come to."""
    return await start(before.config, folder, session, before)


async def start(config: RunConfig, folder: Path, session: Session, before: Before | None = None) -> AnyState:
    """Trains a new run in `folder` to its end or pause."""
    async with open_data(config, session.world) as data:
        if before is not None:
            _check_same_data(data.splits, before.started)
        first = run_started(config, data.splits, folder, guide=guide_of(data.environment), before=before)
        first = evolve(first, worked=worked_of(data.environment), twins=_twins(data.splits))
        for warning in size_notes(config, len(data.splits.train)):
            session.warn(warning)
        async with (
            open_world(data, first.skill, folder, session) as world,
            closing(_new_writer(folder, session)) as writer,
        ):
            for warning in few_notes(data.splits):
                session.warn(warning)
            for said in data_notes(config, data.splits):
                session.note(said)
            first = evolve(first, notes=(*first.notes, *world.notes))
            stage = _stage(config, None, 0, first, session)
            return await _train(writer, stage, world, session)


def open_or_create(folder: Path, session: Session) -> RunWriter:
    """The writer of the log in a folder, which is created where there is none."""
    if (folder / LOG_FILE).exists():
        return RunWriter.open(folder, now=session.now, accept_loss=session.accept_loss)
    run_id = digest_of(f"{folder.name} {session.now().isoformat()}".encode())[:16]
    return RunWriter.create(folder, run_id=run_id, name=folder.name, now=session.now)


@asynccontextmanager
async def closing(writer: RunWriter) -> AsyncIterator[RunWriter]:
    """The writer, closed when the block ends."""
    try:
        yield writer
    finally:
        # It waits for the disk, which must not hold up the loop.
        await asyncio.to_thread(writer.close)


def _new_writer(folder: Path, session: Session) -> RunWriter:
    """The writer of a new run; one that was created but never began may be begun again."""
    there = (folder / LOG_FILE).exists()
    writer = open_or_create(folder, session)
    if there and writer.log.head().seq:
        writer.close()
        raise ConfigError(
            f"there is already a run in {folder}",
            hint=f"`skillopt-es resume {folder.name}{dir_option(folder.parent)}` continues it; `--name` names another",
        )
    return writer


async def resume(folder: Path, session: Session) -> AnyState:
    """Goes on with a run from wherever its log ends; a completed run is left as it is."""
    async with closing(RunWriter.open(folder, now=session.now, accept_loss=session.accept_loss)) as writer:
        state, head = fold_log(writer.log.read())
        state = _resumable(state, folder, lost_end=bool(writer.lost))
        started = state.started
        changed = resume_overrides(session.overrides, folder.name, dir_option(folder.parent), state.steps_done)
        # A complete run is no error: resuming in a loop until it is done must end well.
        if state.completed is not None:
            if changed:
                given = " ".join(map(_as_option, session.overrides)) + dir_option(folder.parent)
                raise ConfigError(
                    f"{folder.name} is complete, so no setting of it can change",
                    hint=f"`skillopt-es continue {folder.name} {given}` trains on from its best skill, as a new run",
                )
            return state
        overrides = {**state.overrides, **changed}
        config = config_of_run(started, folder, overrides)
        for note in _file_notes(started, config, folder, overrides):
            session.note(note)
        for note in dotenv_notes(config, os.environ):
            session.note(note)
        async with open_data(config, session.world) as data:
            # Before a model is opened: answers for other items would be paid for, and recorded under these ids.
            _check_same_data(data.splits, started)
            async with open_world(data, started.skill, folder, session) as world:
                resumed = RunResumed(
                    software=software_version(),
                    overrides=tuple(Setting(key, value) for key, value in changed.items()),
                    lost=lost_calls(folder, writer.log, writer.journal),
                    accepted_loss=writer.lost,
                )
                return await _train(writer, _stage(config, state, head, resumed, session), world, session)


def _file_notes(started: RunStarted, config: RunConfig, folder: Path, given: Collection[str]) -> Iterator[str]:
    """That the config's file has changed since the run began: it is not read again."""
    file = started.config_file
    if file is None:
        return
    try:
        keys = changed_since(config, file, given, os.environ)
    except SkillOptError as error:
        yield f"{file.name} cannot be read any more; the run goes by what it has recorded ({error})"
        return
    if keys:
        said = f"{', '.join(keys[:5])}{f' and {len(keys) - 5} more' if len(keys) > 5 else ''}"
        fork = f"skillopt-es fork {folder.name} --set KEY=VALUE{dir_option(folder.parent)}"
        yield (
            f"{file.name} has changed since the run began, and is not used here: {said}. "
            f"`{fork}` continues with another value, `resume --set` with another limit"
        )


def _as_option(setting: str) -> str:
    """A setting as the option that gives it."""
    key, _, value = setting.partition("=")
    limit = key.removeprefix("budget.")
    return f"--set {setting}" if limit == key else f"--{limit.replace('_', '-')} {value}"


def _resumable(state: AnyState | None, folder: Path, *, lost_end: bool) -> AnyState:
    """The state of a run that may be resumed; raises RunNotFound or ConfigError for one that may not."""
    if state is None:
        raise RunNotFound(
            f"{folder.name} stopped before it began",
            hint="nothing is left to continue from: remove its folder, or restore it from a copy"
            if lost_end
            else f"start it with `skillopt-es run CONFIG --name {folder.name}{dir_option(folder.parent)}`",
        )
    check_allowed("resume", state.started, folder.name)
    return state


def _check_same_data(splits: Splits, started: RunStarted) -> None:
    now = split_ids(splits)
    for name, digest in started.splits.digests.items():
        if now.digests.get(name) != digest:
            raise DataError(
                f"the {name} items are not those the run started with",
                hint="put the old data back to resume; start a new run for the new data",
            )


def _stage(
    config: RunConfig, before: AnyState | None, head: int, opening: RunStarted | RunResumed, session: Session
) -> Stage:
    lost: tuple[LostCall, ...] = opening.lost if isinstance(opening, RunResumed) else ()
    state = evolved(before, opening)
    return Stage(
        config=config,
        state=state,
        head=head,
        opening=((opening, state),),
        lost=lost,
        pays=has_budget(config),
        repeats=config.train.reuse == "identical",
        ask_again=session.ask_again,
    )


async def _train(writer: RunWriter, stage: Stage, world: OpenWorld, session: Session) -> AnyState:
    folder = writer.log.path.parent
    telling = Telling(folder, Tally(clock=session.clock, in_flight=session.in_flight))
    watched = evolve(session, observers=(*session.observers, telling))
    try:
        async with open_work(writer, stage, world, watched) as work:
            return await work.trainer.train()
    finally:
        telling.close()


def recorded_settings(log: Events) -> dict[str, Json]:
    """The settings that resuming, forking or steering a run has changed, by key."""
    found: dict[str, Json] = {}
    for recorded in log.read(types=("RunResumed", "RunForked", "RunSteered")):
        match recorded.event:
            case RunSteered(settings=changed) | RunResumed(overrides=changed) | RunForked(overrides=changed):
                found.update({setting.key: setting.value for setting in changed})
    return found


def read_state(folder: Path, until: int | None = None) -> AnyState | None:
    """A run's state, read from its log alone; up to an event if one is named. None for one that has not begun."""
    with whole_log(folder, until) as log:
        return fold_log(log.read(until=until))[0]


def run_started(
    config: RunConfig, splits: Splits, folder: Path, *, guide: str = "", before: Before | None = None
) -> RunStarted:
    """What a new run in `folder` is to do; raises DataError or ConfigError for what cannot be trained."""
    for why in refusals(config, splits):
        raise why
    algorithm = algorithm_named(config.train.algorithm)
    if before is None:
        skill, notes = first_skill(config, folder=algorithm.trains_folder)
    else:
        skill, notes = before.skill, (note_of(before),)
    steps_per_epoch, total_steps = algorithm.plan.steps(config.train, len(splits.train))
    return RunStarted(
        software=software_version(),
        config=config.resolved,
        folder=recorded_place(config.folder, folder),
        skill=skill,
        splits=split_ids(splits),
        steps_per_epoch=steps_per_epoch,
        total_steps=total_steps,
        notes=(*notes, *splits.told, *splits.notes, *shared_notes(splits), *size_notes(config, len(splits.train))),
        guide=guide,
        algorithm=algorithm.name,
        learned=None if before is None else before.learned,
        config_file=config.file,
        limit_chosen=config.limit_chosen,
    )


def refusals(config: RunConfig, splits: Splits) -> Iterator[SkillOptError]:
    """Why a run would not begin with these items, one reason after another; a run is refused for the first."""
    empty = [name for name, items in (("train", splits.train), ("validation", splits.val)) if not items]
    for name in empty:
        yield DataError(f"the {name} split is empty", hint="a run needs training and validation items")
    yield from _what_splits_share(config, _shared(splits))
    if empty:
        return  # the rest is about how many there are
    yield from _no_way_to_train(config)
    yield from _another_size(config, len(splits.train))
    yield from _too_few_to_judge(config, len(splits.val))
    yield from _nothing_to_trust(config)
    yield from _answers_that_differ(config)


def _no_way_to_train(config: RunConfig) -> Iterator[ConfigError]:
    """The algorithm is not installed, or its runs begin in another way."""
    place, name = config.place("train.algorithm"), config.train.algorithm
    try:
        refusal = algorithm_named(name, place).commands.refuses.get("start")
    except ConfigError as error:
        yield error
        return
    if refusal is not None:
        yield ConfigError(f"{place}train.algorithm is {name!r}, which {refusal.why}", hint=refusal.hint)


@frozen
class _Shared:
    """Ids in more than one split, and inputs in more than one split as `id (split) = id (split)`."""

    ids: tuple[str, ...]
    inputs: tuple[str, ...]


def _shared(splits: Splits) -> _Shared:
    """All that is shared, in the order of the data."""
    first_place: dict[str, str] = {}
    first_input: dict[str, tuple[str, str]] = {}
    ids: list[str] = []
    inputs: list[str] = []
    for name, items in (("train", splits.train), ("val", splits.val), ("test", splits.test)):
        for item in items:
            if first_place.setdefault(item.id, name) != name:
                ids.append(item.id)
            digest = splits.inputs.get(item.id)
            other, where = first_input.setdefault(digest, (item.id, name)) if digest else (item.id, name)
            if where != name:
                inputs.append(f"{item.id} ({name}) = {other} ({where})")
    return _Shared(tuple(ids), tuple(inputs))


def _what_splits_share(config: RunConfig, found: _Shared) -> Iterator[DataError]:
    if found.ids:
        yield DataError(
            f"{len(found.ids)} items are in two splits: first, {found.ids[0]}",
            hint="keep each in one split: a score must not use items that were trained on",
        )
    elif found.inputs and config.env.same_input == "refuse":
        yield DataError(
            _same_inputs(found),
            hint="remove one of each; or set env.same_input: warn, and scores count what was trained on",
        )


def _twins(splits: Splits) -> tuple[str, ...]:
    """Training items that ask what a held-out item asks."""
    held_out = {splits.inputs.get(item.id) for item in (*splits.val, *splits.test)} - {None}
    return tuple(item.id for item in splits.train if splits.inputs.get(item.id) in held_out)


def shared_notes(splits: Splits) -> tuple[str, ...]:
    """Notes about tasks that two splits share under different ids, where that is allowed."""
    found = _shared(splits)
    return (f"{_same_inputs(found)}; scores count what was trained on",) if found.inputs else ()


def _same_inputs(found: _Shared) -> str:
    more = f" and {len(found.inputs) - 5} more" if len(found.inputs) > 5 else ""
    return f"the same input stands in two splits under different ids: {', '.join(found.inputs[:5])}{more}"


def _another_size(config: RunConfig, size: int) -> Iterator[ConfigError]:
    configured = config.train.train_size
    if configured and configured != size and not _fewer_than_released(config, size):
        yield ConfigError(
            f"{config.place('train.train_size')}train.train_size is {configured}, "
            f"but the train split has {counted(size, 'item')}",
            hint="set train.train_size to 0 to use all of them",
        )


def _fewer_than_released(config: RunConfig, size: int) -> bool:
    """Whether a file of the original names the size of a split that these items are not."""
    return config.released_size and config.train.train_size > size


def data_notes(config: RunConfig, splits: Splits) -> Iterator[str]:
    """What is good to know of a run's data before it begins: how they were read, and divided where nobody says how."""
    yield from (*splits.told, *splits.notes, *shared_notes(splits))
    if usual := usual_split(config):
        sizes = f"{len(splits.train)} to train, {len(splits.val)} to validate, {len(splits.test)} to test"
        yield f"the tasks are divided as {usual}: {sizes}"


FEW_TO_JUDGE = 20
"""Validation tasks from which on verdicts see more than large gains: twelve lose a quarter of gains of 10 points."""


def few_notes(splits: Splits) -> tuple[str, ...]:
    """A warning about validation tasks that are too few for verdicts to rest on."""
    count = len(splits.val)
    if not 0 < count < FEW_TO_JUDGE:
        return ()
    return (f"{counted(count, 'validation task')}: fewer than {FEW_TO_JUDGE} show large gains and losses only",)


def usual_split(config: RunConfig) -> str:
    """How tasks are divided where nobody says it; empty where somebody does."""
    if config.env.split_mode != "ratio" or config.sources.get("env.split_ratio", DEFAULTS) != DEFAULTS:
        return ""
    return f"{config.env.split_ratio}, which is the default (env.split_ratio)"


def size_notes(config: RunConfig, size: int) -> tuple[str, ...]:
    """What is to be told where the original's own file says that there are more training items."""
    if not _fewer_than_released(config, size):
        return ()
    configured = f"{config.place('train.train_size')}train.train_size is {config.train.train_size}"
    said = f"{configured}, the size of the released split"
    return (f"{said}; this one has {counted(size, 'item')}, and that is what counts here (the original refuses it)",)


def _too_few_to_judge(config: RunConfig, validation_items: int) -> Iterator[ConfigError]:
    """The gate's rule cannot be carried by so few validation items."""
    why = too_little(config, validation_items)
    if why is None:
        return
    rule = why.key
    draws = ("evaluation.gate_repeats",) if rule == "evaluation.gate_rule" else ()
    limit = ("evaluation.sel_env_num",) if config.evaluation.sel_env_num else ()
    split = ("env.split_ratio",) if config.env.split_mode == "ratio" else ("env.split_mode",)
    decided = ", ".join(f"{key} ({config.origin(key)})" for key in (rule, *draws, *limit, *split))
    yield ConfigError(f"{config.place(rule)}{why.message}", hint=f"what decides this: {decided}")


def _nothing_to_trust(config: RunConfig) -> Iterator[ConfigError]:
    if config.evaluation.no_untrusted_only and config.env.trust == "untrusted":
        yield ConfigError(
            f"{config.place('evaluation.no_untrusted_only')}evaluation.no_untrusted_only refuses whatever comes from "
            "untrusted attempts, and env.trust says that all of them are",
            hint="turn it off, or mark each untrusted item in its field `trust`",
        )


def _answers_that_differ(config: RunConfig) -> Iterator[ConfigError]:
    """Nobody repeats answers where each is a draw of its own."""
    if config.train.reuse == "identical" and 0 not in (
        config.target_model.temperature,
        config.optimizer_model.temperature,
    ):
        yield ConfigError(
            f"{config.place('train.reuse')}train.reuse is identical, but neither model is asked at temperature 0",
            hint="set model.temperature: 0, or leave train.reuse at never",
        )


def split_ids(splits: Splits) -> SplitIds:
    """The ids and digests of loaded splits, as recorded."""
    return SplitIds(
        train=tuple(item.id for item in splits.train),
        val=tuple(item.id for item in splits.val),
        test=tuple(item.id for item in splits.test),
        digests=splits.digests,
    )
