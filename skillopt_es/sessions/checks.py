"""What can be checked on this machine alone: SQLite, skill, data, grader, and the place where runs are to be kept."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Unpack

import attrs
from attrs import frozen

from skillopt_es.config import RunConfig
from skillopt_es.counting import counted
from skillopt_es.engine.algorithms import algorithm_named
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.errors import RunBusy, SkillOptError
from skillopt_es.events.lock import RunLock
from skillopt_es.events.values import Failed, SkillTree
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import AgentStep, AskOptions, ChatReply, Environment, Episode, Item, Message, Splits, judge_calls
from skillopt_es.sessions.hiding import check_walls
from skillopt_es.sessions.opening import open_environment
from skillopt_es.sessions.session import few_notes, refusals, shared_notes, size_notes, usual_split
from skillopt_es.sessions.skills import first_skill
from skillopt_es.sessions.tasksets import alike
from skillopt_es.skill.folders import SHOWN_BY_AGENTS, listing_of

# The first release with the fix, for each line of releases.
_WAL_RESET_FIXED = ((3, 44, 6), (3, 50, 7), (3, 51, 3))
_LITTLE_SPACE = 2**30  # a log of 193,000 calls has 289 MB; forks and what is exported come on top
_NO_SPACE = 100 * 2**20  # room for the calls of one long run, at 1.5 kB each, and no more
# Whether it is right does not matter: the grader has to give a grade.
MADE_UP = "42"
_MOST_ITEMS = 5  # one of each type; a grader that fails at all of them fails at five
_SECONDS = 120.0  # a grader may start a compiler or a container first
NO_SKILL = SkillTree({"SKILL.md": "\n"})


@frozen
class Check:
    """One thing that was looked at; `fix` is what to do about it."""

    name: str
    status: Literal["ok", "warning", "problem"]
    message: str
    fix: str = ""


def problem(name: str, error: SkillOptError) -> Check:
    """The check that failed with this error."""
    return Check(name, "problem", error.message, error.hint)


def problems(name: str, error: SkillOptError) -> Iterator[Check]:
    """That check, and one more for each further mistake that was found with it."""
    others = error.others if isinstance(error, ConfigError) else ()
    yield from (problem(name, each) for each in (error, *others))


def check_sqlite(version: tuple[int, ...]) -> Check:
    """Which SQLite this is; its WAL-reset bug needs two writers, and a log has one."""
    shown = ".".join(map(str, version))
    fixed = any(fix[:2] == version[:2] and version >= fix for fix in _WAL_RESET_FIXED)
    if fixed or version >= _WAL_RESET_FIXED[-1]:
        return Check("sqlite", "ok", f"SQLite {shown}")
    return Check("sqlite", "ok", f"SQLite {shown} is fine here; do not write to log.db with other programs")


def check_skill(config: RunConfig) -> Check:
    """Whether the skill to start from can be read."""
    try:
        skill, notes = first_skill(config, folder=algorithm_named(config.train.algorithm).trains_folder)
    except SkillOptError as error:
        return problem("skill", error)
    listed = len(listing_of(skill)) if skill.is_folder else 0
    if listed > SHOWN_BY_AGENTS:
        return Check(
            "skill",
            "warning",
            "; ".join((*notes, f"names and descriptions have {listed:,} characters")),
            f"agents show about {SHOWN_BY_AGENTS:,} and leave out the rest: shorten them, or train fewer skills",
        )
    if notes:
        return Check("skill", "ok", "; ".join(notes))
    size = sum(map(len, skill.files.values()))
    return Check("skill", "ok", f"{config.path(config.env.skill_init)}, {size:,} characters")


async def check_data(config: RunConfig, *, runs: Path, try_grader: bool) -> AsyncIterator[Check]:
    """Whether the environment opens, what it loads (counts, notes, items that are there twice), and how it grades."""
    try:
        environment = open_environment(config)
    except SkillOptError as error:
        for check in problems("environment", error):
            yield check
        return
    try:
        yield _check_walls(environment, config, runs)
        splits = environment.load()
    except SkillOptError as error:
        yield problem("data", error)
    else:
        sizes = f"{len(splits.train)} train, {len(splits.val)} val, {len(splits.test)} test items"
        yield Check("data", "ok", f"{sizes}{', as ' + usual if (usual := usual_split(config)) else ''}")
        for said in splits.told:
            yield Check("data", "ok", said)
        for note in splits.notes:
            yield Check("data", "warning", note, "change env.split_mode or the data, unless this is meant")
        for check in _check_beginning(config, splits):
            yield check
        if try_grader and judge_calls(environment):
            yield Check("grader", "ok", "a judge grades the answers: `doctor --grade` tries it")
        elif try_grader:
            yield await _check_grader(environment, splits)
    finally:
        await environment.aclose()


def _check_walls(environment: Environment, config: RunConfig, runs: Path) -> Check:
    """Whether the environment keeps the answers from the code that it runs."""
    try:
        check_walls(environment, config, runs / "a-run")
    except ConfigError as error:
        return problem("environment", error)
    return Check("environment", "ok", f"{environment.name} opens")


async def _check_grader(environment: Environment, splits: Splits) -> Check:
    """Whether answers get a grade: a grader that breaks would cost a call for each item before anybody sees it."""
    why = await _why_not_graded(environment, splits)
    if not why:
        return Check("grader", "ok", "made-up answers get a grade")
    return Check("grader", "problem", why, "fix this first: until then, no answer of the target gets a score")


def _check_beginning(config: RunConfig, splits: Splits) -> Iterator[Check]:
    """What a run would refuse to begin with, and what it would tell of the data in its notes."""
    refused = list(refusals(config, splits))
    for why in refused:
        yield problem("data" if isinstance(why, DataError) else "config", why)
    for note in size_notes(config, len(splits.train)):
        yield Check("data", "warning", note, "`--set train.train_size=0` says that this is meant")
    if any(isinstance(why, DataError) for why in refused):
        return
    for note in few_notes(splits):
        yield Check("data", "warning", note, _MORE_TO_JUDGE)
    told = [Check("data", "warning", note, "remove one of each") for note in shared_notes(splits)]
    yield from told or _check_twins(splits)
    yield from _check_alike(splits)


_MORE_TO_JUDGE = "add tasks, or give validation a larger share (env.split_ratio: 2:1:1)"


def _check_twins(splits: Splits) -> Iterator[Check]:
    """Warns of items that differ in their ids only; across splits they let a skill be scored on what it was taught."""
    first: dict[tuple[str, ...], str] = {}
    twins: list[tuple[str, str]] = []
    for name, items in (("train", splits.train), ("val", splits.val), ("test", splits.test)):
        for item in items:
            content = _content(item)
            here = f"{item.id} ({name})"
            other = first.setdefault(content, here) if content else here
            if other != here:
                twins.append((other, here))
    if twins:
        verb = "items repeat another one" if len(twins) > 1 else "item repeats another one"
        yield Check(
            "data", "warning", f"{len(twins)} {verb} under a new id: first, {twins[0][1]} is {twins[0][0]}", "drop them"
        )


def _check_alike(splits: Splits) -> Iterator[Check]:
    """Warns of tasks in two splits that ask nearly the same; those that ask the same are spoken of elsewhere."""
    named = (("train", splits.train), ("val", splits.val), ("test", splits.test))
    places = {item.id: name for name, items in named for item in items}
    texts = {item.id: _asked(item) for _, items in named for item in items}
    pairs = [
        each
        for each in alike({name: text for name, text in texts.items() if text})
        if each.share < 1 and places[each.one] != places[each.other]
    ]
    if pairs:
        first = pairs[0]
        said = f"{first.one} ({places[first.one]}) and {first.other} ({places[first.other]}, {first.share:.0%})"
        yield Check(
            "data",
            "warning",
            f"nearly the same is asked in two splits by {counted(len(pairs), 'pair')} of tasks: first, {said}",
            "keep such tasks in one split, or a score counts what was trained on",
        )


def _asked(item: Item) -> str:
    task = getattr(item, "task", "")
    return task if isinstance(task, str) else ""


def _content(item: Item) -> tuple[str, ...]:
    kind: type = type(item)
    if not attrs.has(kind):
        return ()
    return tuple(repr(getattr(item, each.name)) for each in attrs.fields(kind) if each.name != "id" and each.eq)


def check_folder(directory: Path) -> Check:
    """Whether a log can be written and locked where the runs are to be: tried with a real one, which is removed."""
    base = existing(directory)
    try:
        probe = Path(tempfile.mkdtemp(prefix=".skillopt-doctor-", dir=base))
    except OSError as error:
        return Check("folder", "problem", f"{base} cannot be written: {error.strerror}", "choose another --dir")
    try:
        return _tried(probe, base)
    except SkillOptError as error:
        # The folder that was tried is gone when this is read.
        return Check("folder", "problem", error.message.replace(str(probe), str(base)), error.hint)
    finally:
        shutil.rmtree(probe, ignore_errors=True)


def _tried(probe: Path, base: Path) -> Check:
    with RunWriter.create(probe, run_id="doctor", name="doctor", now=lambda: datetime.now(UTC)):
        try:
            RunLock(probe, start="").release()
        except RunBusy:
            return Check("folder", "ok", f"{base} takes a write-ahead log and a lock")
    return Check(
        "folder", "problem", f"{base} does not honour locks: two writers could collide", "keep runs on a local disk"
    )


def check_space(directory: Path) -> Check:
    """How much room the runs have."""
    free = shutil.disk_usage(existing(directory)).free
    shown = f"{free / 2**30:,.1f} GiB free"
    if free < _NO_SPACE:
        return Check("space", "problem", shown, "free some space: a log that cannot be written pauses the run")
    if free < _LITTLE_SPACE:
        return Check("space", "warning", shown, "a long run may need more")
    return Check("space", "ok", shown)


def existing(directory: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    folder = directory.resolve()
    while not folder.is_dir():
        folder = folder.parent
    return folder


# --- the grader, tried with answers that are made up, without any model -----------------------------------------------


@frozen
class _Says:
    """A target that gives one answer, whatever it is asked."""

    text: str

    async def __call__(self, messages: Sequence[Message], **options: Unpack[AskOptions]) -> ChatReply:
        # Some graders take the score that an agent gives itself.
        score = AgentStep(kind="score", text='{"hard":0,"soft":0}')
        return ChatReply(text=self.text, finish="stop", steps=(score,))


async def _why_not_graded(environment: Environment, splits: Splits) -> str:
    """Why an answer to one of these items gets no grade; nothing when all do."""
    for item in one_of_each_type(splits, _MOST_ITEMS):
        try:
            with redirect_stdout(sys.stderr):  # what a grader prints is none of the caller's output
                why = await asyncio.wait_for(_grade_missing(environment, item), _SECONDS)
        except TimeoutError:
            why = f"no grade came within {_SECONDS:g} seconds"
        except Exception as error:  # noqa: BLE001 - whatever somebody's environment raises is what is wrong with it
            why = f"{type(error).__name__}: {error}"
        if why:
            return f"item {item.id!r}: {why}"
    return ""


def one_of_each_type(splits: Splits, most: int) -> Iterator[Item]:
    """Items that are used for training; each type of tasks may have its own fields."""
    seen: set[str] = set()
    for item in (*splits.train, *splits.val):
        if item.task_type not in seen and len(seen) < most:
            seen.add(item.task_type)
            yield item


async def _grade_missing(environment: Environment, item: Item) -> str:
    """Why a wrong or a right answer to an item has no grade; nothing when both have one."""
    episode = await _attempt(environment, item, MADE_UP)
    if not isinstance(episode.outcome, Failed) and episode.answers:
        episode = await _attempt(environment, item, episode.answers[0])
    return episode.outcome.message if isinstance(episode.outcome, Failed) else ""


async def _attempt(environment: Environment, item: Item, answer: str) -> Episode:
    return await environment.attempt(item, NO_SKILL, _Says(answer), seed=0)
