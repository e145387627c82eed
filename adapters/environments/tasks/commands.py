"""A user's command as a grader: JSON in, a grade out; behind walls unless the config says otherwise in words."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

from attrs import frozen

from skillopt_es.adapters.environments.tasks.confined import confined
from skillopt_es.adapters.environments.tasks.options import Command, TaskOptions
from skillopt_es.adapters.environments.tasks.processes import run_command
from skillopt_es.adapters.environments.tasks.verdicts import GraderError, Judge, Verdict, shown, verdict_of
from skillopt_es.errors import SettingRefused
from skillopt_es.events.values import Json

Fields = Mapping[str, Json]
Run = Callable[[bytes], Awaitable[str]]


def command_judges(command: Command, options: TaskOptions, folder: Path) -> Callable[[Fields], Judge]:
    """Makes the judge of an item from its fields; raises ConfigError when there is no such program, or no walls."""
    _check_program(command.argv[0], folder)
    run = (
        confined(command.argv, options, folder)
        if options.sandbox == "confined"
        else _in_the_open(command, options, folder)
    )
    return lambda fields: _CommandJudge(run, fields)


def _check_program(program: str, folder: Path) -> None:
    found = os.access(folder / program, os.X_OK) if "/" in program else shutil.which(program) is not None
    if not found:
        raise SettingRefused(
            "env.grader",
            f": there is no program {program!r} to run",
            hint=f"name one that is on the PATH, or a path from {folder} such as ./grade.sh, and make it executable",
        )


def _in_the_open(command: Command, options: TaskOptions, folder: Path) -> Run:
    """In the config's folder, with the user's rights."""
    if options.grader_files:
        raise SettingRefused(
            "env.grader_files",
            " are copied behind walls, and env.sandbox is 'unconfined'",
            hint="leave them out: an unconfined command finds its files in the config's folder",
        )
    return partial(_in_folder, command.argv, folder, options.timeout)


async def _in_folder(argv: tuple[str, ...], folder: Path, seconds: float, stdin: bytes) -> str:
    try:
        return await run_command(argv, folder=folder, stdin=stdin, seconds=seconds)
    except GraderError as error:
        raise GraderError(str(error).replace(str(folder), ".")) from error


@frozen
class _CommandJudge:
    run: Run
    fields: Fields

    async def __call__(self, answer: str) -> Verdict:
        """What the user's command prints."""
        asked = self.fields["input"] if "input" in self.fields else self.fields.get("messages")
        always = {"id": str(self.fields.get("id", "")), "input": asked, "expected": self.fields.get("expected")}
        row = {**self.fields, **always, "answer": answer}
        return verdict_of(_printed(await self.run(json.dumps(row).encode())))


def _printed(output: str) -> object:
    """The JSON that a command printed: all of its output, else the last line."""
    last = output.rsplit("\n", 1)[-1]
    for text in (output, last):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            continue
    raise GraderError(f"the command printed {shown(output)}, which is neither a number nor JSON")
