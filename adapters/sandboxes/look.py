"""The program that looks for the keys of others: says which processes' environments it can read, and ends with 3."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from skillopt_es.adapters.sandboxes.start import SEEN


def main() -> None:
    """Looks into all processes but itself and the one that holds it."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        own = {line.split()[1] for line in file if line.startswith(("Pid:", "PPid:"))}
    seen = [name for name in os.listdir("/proc") if name.isdecimal() and name not in own and can_be_read(name)]
    if seen:
        os.write(1, f"it can read the environment of {len(seen)} other processes".encode())
    sys.exit(SEEN if seen else 0)


def can_be_read(process: str) -> bool:
    """Whether there is anything to read; the kernel's own processes have no environment."""
    with suppress(OSError), open(f"/proc/{process}/environ", "rb") as file:
        return bool(file.read(1))
    return False
