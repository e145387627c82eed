"""Running a grader's command: little environment, a deadline and modest output."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from skillopt_es.adapters.environments.tasks.verdicts import GraderError
from skillopt_es.adapters.processes import Ended, NotStartedError, Program, run_program

MOST_OUTPUT = 65_536  # bytes: a grader says a number or a line, and one that prints for ever would fill the memory
_ENVIRONMENT = ("PATH", "HOME", "LANG")


async def run_command(argv: Sequence[str], *, folder: Path, stdin: bytes, seconds: float) -> str:
    """What the command prints, trimmed; raises GraderError unless it ends well, in time and with modest output."""
    program = Program(
        argv=tuple(argv),
        folder=folder,
        environment={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        stdin=stdin,
        seconds=seconds,
        most_output=MOST_OUTPUT,
    )
    try:
        ended = await run_program(program)
    except NotStartedError as error:
        raise GraderError(str(error)) from error
    except TimeoutError:
        raise GraderError(_too_slow(seconds)) from None
    return _output(ended, seconds)


def _output(ended: Ended, seconds: float) -> str:
    if ended.how == "late":
        raise GraderError(_too_slow(seconds))
    if ended.how == "stopped":
        raise GraderError("stopped")
    if ended.how == "flooded" or len(ended.output) > MOST_OUTPUT:
        raise GraderError(f"the command printed more than {MOST_OUTPUT} bytes")
    if ended.code:
        how = f"exit code {ended.code}" if ended.code > 0 else f"signal {-ended.code}"
        lines = ended.errors.splitlines()
        raise GraderError(f"the command ended with {how}" + (f": {lines[-1][:500]}" if lines else ""))
    return ended.output.decode(errors="replace").strip()


def _too_slow(seconds: float) -> str:
    return f"the command took longer than {seconds:g} seconds"
