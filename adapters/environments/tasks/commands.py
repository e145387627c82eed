"""A user's command as a grader: JSON in, a grade out; behind walls unless the config says otherwise in words."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from attrs import frozen

from skillopt_es.adapters.environments.tasks.options import Command, TaskOptions
from skillopt_es.adapters.environments.tasks.processes import MOST_OUTPUT, run_command
from skillopt_es.adapters.environments.tasks.verdicts import (
    Attempt,
    Grader,
    GraderError,
    Verdict,
    row_of,
    shown,
    verdict_of,
)
from skillopt_es.adapters.sandboxes.inside import WORK
from skillopt_es.adapters.sandboxes.launch import MIB, Execution, Launch, Limits, Sandbox, SandboxError
from skillopt_es.adapters.sandboxes.opening import new_sandbox, proved_problem
from skillopt_es.adapters.sandboxes.places import is_visible
from skillopt_es.errors import SettingRefused
from skillopt_es.events.values import Json

Fields = Mapping[str, Json]
Run = Callable[[bytes], Awaitable[str]]


def command_graders(command: Command, options: TaskOptions, folder: Path) -> Callable[[Fields], Grader]:
    """Makes the grader of an item from its fields; raises ConfigError when there is no such program, or no walls."""
    _check_program(command.argv[0], folder)
    run = (
        confined(command.argv, options, folder)
        if options.sandbox == "confined"
        else _in_the_open(command, options, folder)
    )
    return lambda fields: _CommandGrader(run, fields)


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
class _CommandGrader:
    run: Run
    fields: Fields

    async def __call__(self, attempt: Attempt) -> Verdict:
        """What the user's command prints."""
        return verdict_of(_printed(await self.run(json.dumps(row_of(self.fields, attempt)).encode())))


def _printed(output: str) -> object:
    """The JSON that a command printed: all of its output, else the last line."""
    last = output.rsplit("\n", 1)[-1]
    for text in (output, last):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            continue
    raise GraderError(f"the command printed {shown(output)}, which is neither a number nor JSON")


_MOST_BYTES = 64 * MIB  # they are copied into the walls for each answer that is graded
_UNCONFINED = "env.sandbox: unconfined, which lets it do whatever you can do"


def confined(argv: Sequence[str], options: TaskOptions, folder: Path) -> Callable[[bytes], Awaitable[str]]:
    """Runs the command on a standard input; raises ConfigError where that cannot be done behind walls."""
    problem = proved_problem()
    if problem:
        raise SettingRefused(
            "env.grader",
            f": a command cannot be confined here: {problem}",
            hint="grade with a Python function (env.grader: python:module:function), run on a Linux that allows user "
            f"name spaces, or set {_UNCONFINED}",
        )
    named = {word: _inside(folder, word) for word in argv if _is_file_below(folder, word)}
    files = _files(folder, [*named, *options.grader_files])
    command = [_program(argv[0], folder), *(f"{WORK}/{named[word]}" if word in named else word for word in argv[1:])]
    programs = tuple(name for name in files if os.access(folder / name, os.X_OK))
    return partial(_run, new_sandbox("confined"), command, files, programs, options.timeout)


async def _run(
    sandbox: Sandbox,
    command: Sequence[str],
    files: Mapping[str, bytes],
    programs: Sequence[str],
    seconds: float,
    stdin: bytes,
) -> str:
    """What the command prints, trimmed; raises GraderError unless it ends well, in time and with modest output."""
    limits = Limits(wall_seconds=seconds, cpu_seconds=math.ceil(seconds) + 1, output_bytes=MOST_OUTPUT + 1)
    launch = Launch(command=command, files=files, programs=programs, stdin=stdin, limits=limits)
    try:
        ended = await sandbox.run(launch)
    except SandboxError as error:
        raise GraderError(str(error)) from error
    return _output(ended, seconds)


def _output(ended: Execution, seconds: float) -> str:
    if len(ended.stdout.encode(errors="replace")) > MOST_OUTPUT:
        raise GraderError(f"the command printed more than {MOST_OUTPUT} bytes")
    if ended.ended_by in ("timeout", "cpu"):
        raise GraderError(f"the command took longer than {seconds:g} seconds, or started too many processes")
    if ended.ended_by == "memory":
        raise GraderError("the command took more memory than it may")
    if not ended.well:
        how = f"exit code {ended.code}" if ended.ended_by == "exit" else f"signal {-ended.code}"
        lines = ended.stderr.replace(WORK, ".").splitlines()
        raise GraderError(f"the command ended with {how}" + (f": {lines[-1][:500]}" if lines else ""))
    return ended.stdout.strip()


def _program(name: str, folder: Path) -> str:
    """The program as it is called behind the walls."""
    if _is_file_below(folder, name):
        return f"{WORK}/{_inside(folder, name)}"
    found = str(folder / name) if "/" in name else shutil.which(name)
    if found is None or not is_visible(found):
        raise SettingRefused(
            "env.grader",
            f": the sandbox does not see the program {found or name}",
            hint=f"name one below {folder}, one of the system's, or this Python's, or set {_UNCONFINED}",
        )
    return found


def _is_file_below(folder: Path, word: str) -> bool:
    """Whether a word of the command names a file of the config's folder."""
    try:
        path = folder / word
        below = ".." not in path.parts and path.is_relative_to(folder)
        return below and path.is_file() and path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):  # too long for a path, or not one
        return False


def _inside(folder: Path, name: str) -> str:
    """The path of a file from the config's folder on; what a link leads to stands under the link's name."""
    return Path(os.path.relpath(folder / name, folder)).as_posix()


def _files(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    """The files with these names, and those in folders with these names, by their paths in the sandbox."""
    files = {name: data for each in names for name, data in _below(folder, each)}
    if sum(map(len, files.values())) > _MOST_BYTES:
        raise SettingRefused(
            "env.grader_files",
            f": they have more than {_MOST_BYTES // MIB} MiB in all",
            hint=f"name only what the grader reads, or set {_UNCONFINED}",
        )
    return files


def _below(folder: Path, name: str) -> Iterator[tuple[str, bytes]]:
    path, root = folder / name, folder.resolve()
    if ".." in Path(name).parts or not path.resolve().is_relative_to(root):
        raise SettingRefused(
            "env.grader_files", f": {name!r} points outside of {folder}", hint="name files below that folder"
        )
    if not path.exists():
        raise SettingRefused(
            "env.grader_files", f": there is no {name!r} in {folder}", hint="name files that are there"
        )
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file() and file.resolve().is_relative_to(root):
            try:
                yield _inside(folder, str(file)), file.read_bytes()
            except OSError as error:
                raise SettingRefused("env.grader_files", f": {file} cannot be read: {error.strerror}") from error
