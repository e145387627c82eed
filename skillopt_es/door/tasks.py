"""
Tasks that a caller hands over in memory, kept in files: a run is resumed, forked and checked with the data that it had.

The files lie in `_tasks` beside the runs, named after a digest of what they hold: the same tasks are kept once. Runs
name them as they name any other data, so every command finds them again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from skillopt_es.config import EnvConfig
from skillopt_es.errors import DataError
from skillopt_es.events.faults import system_fault
from skillopt_es.events.plain import write_plain
from skillopt_es.events.values import Json, digest_of

Task = Mapping[str, Any]
Tasks = Sequence[Task] | Mapping[str, Sequence[Task]]
"""Tasks as dicts, which are split as a file's are; or a list of them for each of `train`, `val` and `test`."""

FOLDER = "_tasks"
"""No run can be called so."""
_SPLITS = ("train", "val", "test")
_DIVIDED = ("split_dir", "file")


@frozen
class KeptTasks:
    """Where tasks are kept: a file, or a folder with a file for each split; `texts` is what each file holds."""

    place: Path
    divided: bool
    texts: Mapping[Path, str] = field(repr=False)

    def write(self) -> None:
        """Writes the files that are not there yet."""
        for place, text in self.texts.items():
            _write(place, text)

    def settings(self, env: EnvConfig) -> dict[str, Json]:
        """What a config says of them."""
        if self.divided:
            return {"env.split_mode": "file", "env.split_dir": str(self.place)}
        mode = "ratio" if env.split_mode in _DIVIDED else env.split_mode
        return {"env.split_mode": mode, "env.data_path": str(self.place)}

    def read_by(self, env: EnvConfig) -> EnvConfig:
        """The settings of an environment that reads them, wherever its config lies."""
        place = str(self.place.absolute())
        return evolve(env, split_dir=place) if self.divided else evolve(env, data_path=place)


def kept_below(directory: Path, tasks: Tasks) -> KeptTasks:
    """Where tasks are to be kept below a directory; raises DataError for what is no list of tasks. Writes nothing."""
    if isinstance(tasks, Mapping):
        return _kept_splits(tasks, directory / FOLDER)
    text = _lines(tasks, "tasks")
    place = directory / FOLDER / f"{_named_after(text)}.jsonl"
    return KeptTasks(place, divided=False, texts={place: text})


def _kept_splits(tasks: Mapping[str, Sequence[Task]], directory: Path) -> KeptTasks:
    unknown = [name for name in tasks if name not in _SPLITS]
    if unknown or not tasks:
        said = f"tasks has a split {unknown[0]!r}" if unknown else "tasks is empty"
        raise DataError(said, hint="pass a list of tasks, or a dict with lists for train, val and test")
    texts = {name: _lines(tasks[name], f"tasks[{name!r}]") for name in _SPLITS if name in tasks}
    place = directory / _named_after(json.dumps(texts))
    return KeptTasks(place, divided=True, texts={place / f"{name}.jsonl": text for name, text in texts.items()})


def _lines(tasks: Sequence[Task], name: str) -> str:
    """One line of JSON for each task."""
    if isinstance(tasks, str | bytes) or not isinstance(tasks, Sequence):
        raise DataError(f"{name} is {tasks!r:.60}, but must be a list of dicts", hint=_EXAMPLE)
    if not tasks and name == "tasks":
        raise DataError("tasks is empty", hint=f"pass at least one for each split; {_EXAMPLE}")
    return "".join(f"{_line(task, f'{name}[{at}]')}\n" for at, task in enumerate(tasks))


_EXAMPLE = 'a task is a dict such as {"id": "t1", "input": "...", "expected": "..."}'


def _line(task: Task, name: str) -> str:
    if not isinstance(task, Mapping):
        raise DataError(f"{name} is {task!r:.60}, but must be a dict", hint=_EXAMPLE)
    if "id" not in task:
        raise DataError(f"{name} has no `id`", hint=f"give each task its own; {_EXAMPLE}")
    try:
        return json.dumps(dict(task), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is not JSON: {error}", hint="use texts, numbers, lists and dicts") from None


def _named_after(text: str) -> str:
    return digest_of(text.encode("utf-8", "surrogatepass"))[:16]


def _write(place: Path, text: str) -> None:
    """Writes a file whole or not at all; one that is there has the same content, as its name says."""
    if place.exists():
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_plain(place, text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise system_fault(error, place) from error
