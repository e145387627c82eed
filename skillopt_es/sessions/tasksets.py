"""Tasks taken from the files of other tools, with what is wrong or doubtful about them: before any run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Unpack

from attrs import frozen

from skillopt_es.adapters.environments.tasks.checks import read_checks
from skillopt_es.adapters.environments.tasks.verdicts import Attempt, GraderError
from skillopt_es.adapters.tasksets.rows import Row, same_ids
from skillopt_es.adapters.tasksets.suites import READERS, read_taskset
from skillopt_es.adapters.tasksets.twins import Twins, twins_in
from skillopt_es.counting import counted
from skillopt_es.errors import DataError
from skillopt_es.events.values import Json
from skillopt_es.ports import AskOptions, ChatReply, Message

KINDS = tuple(READERS)
"""The kinds of files, as the command offers them."""


@frozen(kw_only=True)
class Found:
    """What was taken from a file, what was left and why, and the tasks that are alike."""

    kind: str
    tasks: tuple[Row, ...]
    left: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    twins: tuple[Twins, ...]

    @property
    def across(self) -> tuple[Twins, ...]:
        """The twins that are in two splits."""
        splits = {str(task["id"]): task.get("split") for task in self.tasks}
        return tuple(each for each in self.twins if splits[each.one] != splits[each.other])

    @property
    def says_splits(self) -> bool:
        """Whether all tasks say where they belong, and some are to train and to judge by."""
        said = {task.get("split") for task in self.tasks}
        return {"train", "val"} <= said <= {"train", "val", "test"}


def find_tasks(source: Path, kind: str, mapping: Mapping[str, str]) -> Found:
    """The tasks of a file; raises DataError for one that has none, or two of the same id."""
    kind, taken = read_taskset(source, kind, mapping)
    twice = list(same_ids(taken.tasks))
    if twice:
        raise DataError(
            f"{source}: the id {twice[0]!r} is there twice", hint="name the field with ids: --field id=NAME"
        )
    if not taken.tasks:
        raise DataError(f"{source}: no task could be taken: {taken.left[0][1] if taken.left else 'it is empty'}")
    notes = (*taken.notes, *_without_answer(taken.tasks), *_half_split(taken.tasks))
    twins = alike({str(task["id"]): _asked(task) for task in taken.tasks})
    return Found(kind=kind, tasks=taken.tasks, left=taken.left, notes=notes, twins=twins)


def _half_split(tasks: Sequence[Row]) -> Iterator[str]:
    """That what tasks say of their splits is not enough to divide them by."""
    said = [task["split"] for task in tasks if task.get("split")]
    missing = [split for split in ("train", "val") if split not in said]
    if said and (missing or len(said) < len(tasks)):
        without = counted(len(tasks) - len(said), "task")
        why = f"no task is in {' or '.join(missing)}" if missing else f"there is none for {without}"
        yield f"the splits that the tasks name are not used, as {why}: they are divided by env.split_ratio"


_GRADED_WITHOUT = frozenset({"judge", "checks", "reported"})


def _without_answer(tasks: Sequence[Row]) -> Iterator[str]:
    """That tasks have nothing to be graded by, if some have not."""
    open_ = [
        each for each in tasks if each.get("expected") in (None, "", []) and each.get("grader") not in _GRADED_WITHOUT
    ]
    if len(open_) == len(tasks):
        yield "no field is the expected answer: --field expected=NAME says which one is, or a judge grades (env.grader)"
    elif open_:
        yield f"without an expected answer: {counted(len(open_), 'task')} (first: {open_[0]['id']})"


async def unmet(check: Json, answer: str, tools: Sequence[str]) -> str:
    """Why an answer does not meet one of an item's `checks`, if it does not; raises ValueError for what is none."""
    used = tuple({"kind": "tool", "text": name} for name in tools)
    try:
        return (await read_checks([check])(Attempt(answer, _nobody, used))).note
    except GraderError as error:
        raise ValueError(f"cannot be made: {error}") from error


async def _nobody(messages: Sequence[Message], **options: Unpack[AskOptions]) -> ChatReply:
    raise GraderError("nobody is there to be asked")


def alike(texts: Mapping[str, str]) -> tuple[Twins, ...]:
    """The pairs of texts, by their names, that say the same or nearly the same."""
    return tuple(twins_in(texts))


def _asked(task: Row) -> str:
    asked = task.get("input", task.get("messages"))
    return asked if isinstance(asked, str) else json.dumps(asked, ensure_ascii=False)
