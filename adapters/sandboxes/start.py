"""
How a program of a sandbox is started: in a Python that knows none of its packages, and nothing of the user's.

This can be imported on every system; the programs themselves are for Linux.
"""

from __future__ import annotations

import sys
from pathlib import Path

# What the program that hides files says and exits with when it cannot.
NOT_HIDDEN = 125
WHY_NOT_HIDDEN = "cannot be hidden: "

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
    folder = str(Path(__file__).resolve().parent)
    return [sys.executable, "-I", "-S", "-c", _START, folder, module, *arguments]


def system_name() -> str:
    """What people call the system that this runs on."""
    return {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
