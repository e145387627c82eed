"""
How a program of a sandbox is started: in a Python that knows none of its packages, and nothing of the user's.

This can be imported on every system; the programs themselves are for Linux.
"""

from __future__ import annotations

import os
import signal
import sys

# What the program that keeps a command apart says and exits with when it did not start the command.
NOT_STARTED = 125
WHY_NOT_STARTED = "skillopt-es did not start the command: "
# What follows that where the machine was short of something for a moment: the next time it may be started.
FOR_NOW = "for now: "
# The signal that ends that program and all that the command has started; when it has ended, they have.
END = signal.SIGUSR1 if sys.platform != "win32" else signal.SIGTERM

# What the program that looks for keys of others exits with where it can read some.
SEEN = 3

# The packages above it exist in name only: a sandbox's programs import one another and the standard library.
_START = """\
import sys, types
from importlib import import_module
folder, module, *sys.argv[1:] = sys.argv[1:]
package = ""
for part in ("skillopt_es", "adapters", "sandboxes"):
    package = f"{package}.{part}".lstrip(".")
    sys.modules[package] = types.ModuleType(package)
    sys.modules[package].__path__ = []
sys.modules[package].__path__.append(folder)
import_module(f"{package}.{module}").main()
"""


def command_for(module: str, *arguments: str) -> list[str]:
    """The command that calls `main` of a module beside this one, with these arguments."""
    folder = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120 -- pathlib takes a program long to import
    return [sys.executable, "-I", "-S", "-c", _START, folder, module, *arguments]


def system_name() -> str:
    """What people call the system that this runs on."""
    return {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
