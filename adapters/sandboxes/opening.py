"""Which sandbox a config asks for, and whether this machine has it."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Literal

from skillopt_es.adapters.sandboxes.launch import Launch, Sandbox, SandboxError
from skillopt_es.adapters.sandboxes.namespaces import Namespaces
from skillopt_es.adapters.sandboxes.start import system_name
from skillopt_es.adapters.sandboxes.unconfined import Unconfined
from skillopt_es.errors import ConfigError

Mode = Literal["confined", "unconfined"]
_SECONDS = 30.0  # a first program takes some 50 ms; a machine that needs this long says nothing about its walls


async def open_sandbox(mode: Mode, *, at_once: int | None = None) -> Sandbox:
    """A sandbox that has proved to work here; raises ConfigError where code cannot be confined."""
    problem = await problem_with_confinement() if mode == "confined" else ""
    if problem:
        raise ConfigError(
            f"generated code cannot be confined here: {problem}",
            hint="allow user namespaces on this machine, run on one that has them (Linux), or set "
            "env.sandbox: unconfined, which lets that code do whatever you can do",
        )
    return new_sandbox(mode, at_once=at_once)


def new_sandbox(mode: Mode, *, at_once: int | None = None) -> Sandbox:
    """Another sandbox, where one of its kind has proved to work; each belongs to the event loop that first uses it."""
    return Unconfined(at_once=at_once) if mode == "unconfined" else Namespaces(at_once=at_once)


@lru_cache(maxsize=1)
def proved_problem() -> str:
    """Why code cannot be confined here, tried once in a process; in a thread, as an event loop may be running."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, problem_with_confinement()).result()


async def problem_with_confinement() -> str:
    """Why code cannot be confined on this machine; nothing if it can."""
    if sys.platform != "linux":
        return f"the walls are name spaces of Linux, and this is {system_name()}"
    sandbox = Namespaces()
    first = Launch(command=[sandbox.python, "-I", "-S", "-c", "print(6 * 7)"])
    try:
        tried = await asyncio.wait_for(sandbox.run(first), _SECONDS)
    except (SandboxError, OSError) as error:
        return str(error)
    except TimeoutError:
        return f"a first program did not end within {_SECONDS:g} seconds; is this machine very busy?"
    return "" if tried.stdout.strip() == "42" else f"a first program failed: {tried.stderr.strip()[-200:]}"
