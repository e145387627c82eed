"""Where workbooks are opened and scripts are run: always in a sandbox, of which only plain values come back."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Literal

from attrs import asdict, frozen

from skillopt_es.adapters.environments.spreadsheetbench import child
from skillopt_es.adapters.environments.spreadsheetbench.books import Book, UnreadableError, read_book
from skillopt_es.adapters.environments.spreadsheetbench.items import Case, SheetItem
from skillopt_es.adapters.environments.spreadsheetbench.ranges import Range
from skillopt_es.adapters.sandboxes.launch import MIB, Execution, Launch, Limits, Sandbox, SandboxError
from skillopt_es.adapters.sandboxes.opening import Mode, new_sandbox, open_sandbox
from skillopt_es.errors import ConfigError, SettingRefused, extra_hint
from skillopt_es.events.values import Json

SourceProblem = Literal["exec_error", "timeout", "no_output", "unreadable_output"]

_SOURCE = Path(child.__file__).read_text(encoding="utf-8")
_READING_SECONDS = 60.0  # importing openpyxl takes a fifth of one, a large workbook minutes: those fail, and say so
_MOST_RESULT = 16 * MIB  # the cells of a sheet as JSON: a million of them, which no graded range has
_FOLDER = "/sandbox"
_TRY_AGAIN = "try again when this machine is less busy"
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")  # of an object: another one in every process


@frozen(kw_only=True)
class Opened:
    """What is known of an item's workbooks: a preview of the first, and the expected cells of every case."""

    preview: str
    golds: tuple[Book, ...]
    ranges: tuple[Range, ...]


@frozen(kw_only=True)
class Ran:
    """What came of a script: what it printed, the workbook it saved, or why there is none to grade."""

    output: str
    book: Book | None
    problem: SourceProblem | Literal[""] = ""
    detail: str = ""


def sandbox_for(mode: Mode) -> Sandbox:
    """A sandbox in which openpyxl works; raises ConfigError with what to install or to set."""
    if importlib.util.find_spec("openpyxl") is None:
        raise SettingRefused(
            "env.name",
            ": spreadsheetbench needs openpyxl, which is not installed",
            hint=extra_hint("spreadsheet"),
        )
    _prove(mode)
    return new_sandbox(mode)


@lru_cache(maxsize=2)
def _prove(mode: Mode) -> None:
    """Tries it, once in a process; in a thread, as an event loop may be running here."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _try(mode)).result()


async def _try(mode: Mode) -> None:
    sandbox = await open_sandbox(mode)
    try:
        check_import(await sandbox.run(Launch(command=[sandbox.python, "-I", "-c", "import openpyxl"])))
    except SandboxError as error:
        raise ConfigError(f"openpyxl could not be tried in the sandbox: {error}", hint=_TRY_AGAIN) from error


def check_import(tried: Execution) -> None:
    """Raises ConfigError for an import of openpyxl that did not end well, with what to do about the reason."""
    if tried.ended_by in ("timeout", "cpu"):
        raise ConfigError("importing openpyxl in the sandbox did not end in time", hint=_TRY_AGAIN)
    if tried.ended_by == "exit" and "ModuleNotFoundError" in tried.stderr:
        raise SettingRefused(
            "env.name",
            ": spreadsheetbench needs openpyxl, which the sandbox does not see",
            hint=f"into the environment that runs it, not for a single user: {extra_hint('spreadsheet')}",
        )
    if not tried.well:
        raise ConfigError(f"importing openpyxl in the sandbox failed: {_last_line(tried)}", hint=_TRY_AGAIN)


async def open_workbooks(sandbox: Sandbox, item: SheetItem) -> Opened:
    """Reads an item's workbooks; no script is near. Raises SandboxError, or UnreadableError for a broken gold file."""
    names = [f"gold-{number}.xlsx" for number in range(len(item.cases))]
    files = {name: case.gold.read_bytes() for name, case in zip(names, item.cases, strict=True)}
    ranges = [asdict(each) for each in item.ranges]
    asked = {"do": "look", "preview": child.INPUT, "books": [{"file": name, "ranges": ranges} for name in names]}
    files[child.INPUT] = item.cases[0].given.read_bytes()
    ended = await sandbox.run(_launch(sandbox, asked, files, seconds=_READING_SECONDS))
    told = _result(ended)
    if told is None:
        raise UnreadableError(f"the workbooks of item {item.id!r} cannot be read: {_last_line(ended)}")
    books = told["books"]
    assert isinstance(books, list)
    try:
        golds = tuple(map(read_book, books))
    except UnreadableError as error:
        raise UnreadableError(f"an expected workbook of item {item.id!r} cannot be read: {error}") from None
    first = golds[0].sheets[0]
    graded = tuple(each.on(first) for each in item.ranges)
    for gold in golds:
        for each in graded:
            if each.sheet not in gold.sheets:
                raise UnreadableError(f"an expected workbook of item {item.id!r} has no sheet {each.sheet!r}")
    return Opened(preview=str(told["preview"]), golds=golds, ranges=graded)


async def run_script(sandbox: Sandbox, source: str, case: Case, ranges: Sequence[Range], *, seconds: float) -> Ran:
    """Runs a script on a copy of a case's workbook, in a fresh folder; raises SandboxError."""
    asked = {"do": "run", "source": source, "seconds": seconds, "ranges": [asdict(each) for each in ranges]}
    files = {child.INPUT: case.given.read_bytes()}
    ended = await sandbox.run(_launch(sandbox, asked, files, seconds=seconds + _READING_SECONDS))
    told = _result(ended)
    if told is None:
        return _without_result(ended)
    folder = told.get("folder")
    output = _printed(ended, folder if isinstance(folder, str) else _FOLDER)
    if told.get("ended") == "timeout":
        problem: SourceProblem = "timeout"
        detail = f"the script did not end within {seconds:g} s"
    elif told.get("ended") != "exit" or told.get("code") != 0:
        problem, detail = "exec_error", _last(output) or f"the script ended with code {_number(told.get('code'))}"
    elif not told.get("saved"):
        problem, detail = "no_output", "the script saved nothing at OUTPUT_PATH"
    else:
        try:
            return Ran(output=output, book=read_book(told.get("book")))
        except UnreadableError as error:
            problem, detail = "unreadable_output", f"what the script saved is no workbook that can be read: {error}"
    return Ran(output=output, book=None, problem=problem, detail=detail)


def _launch(sandbox: Sandbox, asked: Mapping[str, object], files: Mapping[str, bytes], *, seconds: float) -> Launch:
    return Launch(
        command=[sandbox.python, "-I", "-c", _SOURCE],
        files=files,
        stdin=json.dumps(asked).encode(),
        collect=[child.RESULT],
        limits=Limits(wall_seconds=seconds, cpu_seconds=int(seconds) + 1),
    )


def _result(ended: Execution) -> dict[str, Json] | None:
    """What `child.py` wrote, if it came to that."""
    content = ended.files.get(child.RESULT, b"")
    if not ended.well or not content or len(content) > _MOST_RESULT:
        return None
    try:
        told = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _without_result(ended: Execution) -> Ran:
    if ended.ended_by == "timeout":
        return Ran(output="", book=None, problem="timeout", detail="the script and reading what it saved did not end")
    ends = {
        "cpu": "it used up its processor time",
        "signal": "it was ended by a signal",
        "memory": "it took more memory than it may",
    }
    detail = ends.get(ended.ended_by) or "its result is missing or too large to be read"
    return Ran(output=_printed(ended, _FOLDER), book=None, problem="unreadable_output", detail=detail)


def _number(told: Json) -> str:
    """A number as text; what a script put in its place is not repeated."""
    return str(told) if isinstance(told, int) else "?"


def _printed(ended: Execution, folder: str) -> str:
    """What the script said; the folder has one name, wherever it was run."""
    said = ended.stdout + ended.stderr
    said = said.replace(folder, _FOLDER) if len(folder) > len(_FOLDER) else said
    return _ADDRESS.sub("0x…", said)


def _last_line(ended: Execution) -> str:
    return _last(ended.stderr) or f"the reader was ended ({ended.ended_by})"


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else ""
