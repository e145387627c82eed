"""How a program of this package is started in a Python that knows none of its packages, and nothing of the user's."""

from __future__ import annotations

import sys
from pathlib import Path

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
