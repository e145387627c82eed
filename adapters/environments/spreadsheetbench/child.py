"""
The program that handles workbooks in a sandbox, started as `python -I -c SOURCE` with one JSON object on its input.

    {"do": "look", "books": [{"file", "ranges"}], "preview": FILE}    the values of workbooks, a preview of one
    {"do": "run", "source", "seconds", "ranges"}                      a script, and the values of what it saved

It writes `result.json` into the work folder. Needs openpyxl. Nothing in it may be trusted once a script has run, which
is no loss: a script could have saved whatever it would have this program say.
"""

from __future__ import annotations

import atexit
import importlib
import json
import linecache
import os
import signal
import sys
import threading
import time
import traceback
import warnings
import zipfile
from datetime import date, datetime, timedelta
from datetime import time as day_time
from typing import Any, cast

INPUT, OUTPUT, RESULT, SOLUTION = "input.xlsx", "output.xlsx", "result.json", "solution.py"
# The original's: rows and columns of each sheet, and characters of a value.
PREVIEW_ROWS, PREVIEW_COLUMNS, PREVIEW_WIDTH = 5, 20, 40
KINDS = (bool, int, float, str, datetime, date, day_time)

Range = dict[str, Any]


def main() -> None:
    """Does what the standard input asks for."""
    asked = json.load(sys.stdin.buffer)
    # One thread is enough here, and each of theirs would count against the limits.
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    warnings.simplefilter("ignore")
    import_openpyxl(asked.get("source", ""))  # before the script's process is split off, so that it has it, too
    done = look(asked) if asked["do"] == "look" else run(asked)
    if os.path.lexists(RESULT):
        os.unlink(RESULT)
    with open(RESULT, "x", encoding="utf-8") as file:
        json.dump(done, file, ensure_ascii=True)


def import_openpyxl(source: str) -> None:
    """Imports openpyxl without numpy, which takes longer than all the rest, unless the script may make use of it."""
    spared = "numpy" not in source and "pandas" not in source
    if spared:
        sys.modules["numpy"] = cast(Any, None)
    importlib.import_module("openpyxl")
    if spared:
        del sys.modules["numpy"]


def look(asked: dict[str, Any]) -> dict[str, Any]:
    """The values of workbooks, and the preview of one."""
    return {
        "books": [values(each["file"], each["ranges"]) for each in asked["books"]],
        "preview": preview(asked["preview"]) if asked["preview"] else "",
    }


def run(asked: dict[str, Any]) -> dict[str, Any]:
    """How a script ended, and the values of the workbook that it saved."""
    for stale in (OUTPUT, RESULT):
        if os.path.lexists(stale):
            os.unlink(stale)
    here = os.getcwd()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        become_script(asked["source"])
    ended, code = waited(child, asked["seconds"])
    os.chdir(here)
    saved = os.path.isfile(OUTPUT)
    return {
        "folder": here,
        "ended": ended,
        "code": code,
        "saved": saved,
        "book": values(OUTPUT, asked["ranges"]) if saved and ended == "exit" and code == 0 else None,
    }


# The script


class Names(dict[str, Any]):
    """The names of a script, in which the two paths stay what they are, whatever the script makes of them."""

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in ("INPUT_PATH", "OUTPUT_PATH"):
            super().__setitem__(name, value)


def become_script(source: str) -> None:
    """Turns this process into the script; its source is compiled as it stands."""
    code = 1
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        given, wanted = os.path.abspath(INPUT), os.path.abspath(OUTPUT)
        sys.argv = [SOLUTION, given, wanted]
        linecache.cache[SOLUTION] = (len(source), None, source.splitlines(keepends=True), SOLUTION)
        names = Names(INPUT_PATH=given, OUTPUT_PATH=wanted, __name__="__main__", __builtins__=__builtins__)
        exec(compile(source, SOLUTION, "exec", dont_inherit=True), names)  # noqa: S102 -- this is what the walls are for
        finish()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)  # noqa: T201
    except BaseException as error:  # noqa: BLE001 -- whatever it is, it is the script's
        complain(error)
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 1
        os._exit(code & 0xFF)


def finish() -> None:
    """What an interpreter does at its end."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()


def complain(error: BaseException) -> None:
    """The traceback without what lies outside the script: those lines name places of this machine."""
    told = traceback.TracebackException(type(error), error, error.__traceback__, compact=True)
    told.stack = traceback.StackSummary.from_list([frame for frame in told.stack if frame.filename == SOLUTION])
    told.__cause__ = told.__context__ = None
    sys.stderr.write("".join(told.format()))


def waited(child: int, seconds: float) -> tuple[str, int]:
    """How the script's process ended; at the deadline it is ended."""
    deadline = time.monotonic() + seconds
    pause = 0.0005
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return ("exit", code) if code >= 0 else ("signal", code)
        time.sleep(pause)
        pause = min(2 * pause, 0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout", -signal.SIGKILL


# Workbooks


def values(file: str, ranges: list[Range]) -> dict[str, Any]:
    """The sheets of a workbook and what their cells in the ranges hold; an error instead if it cannot be read."""
    try:
        book = load(file, data_only=True)
        graded = [resolved(each, book) for each in ranges]
        cells = list(found(book, graded))
        return {"sheets": book.sheetnames, "cells": cells, "formulas": formulas(file, graded, cells)}
    except Exception as error:  # noqa: BLE001 -- whatever a broken file makes of openpyxl
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def load(file: str, *, data_only: bool) -> Any:
    """The workbook; openpyxl has no types."""
    return importlib.import_module("openpyxl").load_workbook(file, data_only=data_only)


def resolved(graded: Range, book: Any) -> Range:
    """The range on a sheet that has a name: the first one, if none is named."""
    return graded if graded["sheet"] else {**graded, "sheet": book.sheetnames[0]}


def found(book: Any, ranges: list[Range]) -> Any:
    """The cells in the ranges that hold something: sheet, row, column, kind, value."""
    seen = set()
    for graded in ranges:
        name = graded["sheet"]
        sheet = book[name] if name in book.sheetnames else None
        # The cells that exist, not the rectangle: one cell in the last corner makes that huge.
        for (row, column), cell in sorted(getattr(sheet, "_cells", {}).items()):
            inside = graded["top"] <= row <= graded["bottom"] and graded["left"] <= column <= graded["right"]
            if inside and cell.value is not None and (name, row, column) not in seen:
                seen.add((name, row, column))
                yield [name, row, column, *told(cell.value)]


def formulas(file: str, ranges: list[Range], cells: list[Any]) -> list[list[Any]]:
    """The cells in the ranges that hold a formula and, as nothing has computed it, no value."""
    if not has_formulas(file):
        return []
    valued = {tuple(cell[:3]) for cell in cells}
    written = found(load(file, data_only=False), ranges)
    return [cell[:3] for cell in written if cell[3] in ("str", "other") and tuple(cell[:3]) not in valued]


def has_formulas(file: str) -> bool:
    """Whether any sheet has a formula; far quicker than loading the workbook for it."""
    with zipfile.ZipFile(file) as parts:
        sheets = [name for name in parts.namelist() if name.startswith("xl/worksheets/")]
        return any(b"<f>" in text or b"<f " in text for text in map(parts.read, sheets))


def told(value: Any) -> tuple[str, str]:
    """A value as JSON can carry it, with its kind."""
    for kind in KINDS:
        if isinstance(value, kind):
            return kind.__name__, str(value.isoformat() if isinstance(value, date | day_time) else value)
    if isinstance(value, timedelta):
        return "timedelta", repr(value.total_seconds())
    return "other", f"{type(value).__name__} {getattr(value, 'text', '')}"


def preview(file: str) -> str:
    """The first cells of every sheet, as text."""
    try:
        book = load(file, data_only=False)
    except Exception as error:  # noqa: BLE001 -- whatever a broken file makes of openpyxl
        return f"(the workbook cannot be opened: {type(error).__name__})"
    return "\n\n".join(sheet_preview(book[name], name) for name in book.sheetnames)


def sheet_preview(sheet: Any, name: str) -> str:
    """The first rows and columns of a sheet."""
    if not hasattr(sheet, "iter_rows"):
        return f"[Sheet: {name}] (a chart)"
    lines = [f"[Sheet: {name}] dimensions={sheet.dimensions} max_row={sheet.max_row} max_column={sheet.max_column}"]
    last = min(sheet.max_row, PREVIEW_ROWS)
    rows = sheet.iter_rows(min_row=1, max_row=last, max_col=min(sheet.max_column, PREVIEW_COLUMNS))
    lines += [" | ".join(f"{cell.coordinate}={brief(cell.value)}" for cell in row) for row in rows]
    if sheet.max_row > last:
        lines.append(f"... ({sheet.max_row - last} more rows)")
    return "\n".join(lines)


def brief(value: Any) -> str:
    """A value in at most 40 characters; a formula as it is written."""
    text = "" if value is None else str(getattr(value, "text", value))
    return text if len(text) <= PREVIEW_WIDTH else text[: PREVIEW_WIDTH - 3] + "..."


if __name__ == "__main__":
    main()
