"""docs/notebook.ipynb: its cells run in a fresh process, under an event loop as Jupyter's kernel has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.ready import PATIENCE

NOTEBOOK = Path(__file__).parent.parent.parent / "docs" / "notebook.ipynb"
KERNEL = """
import asyncio, json, sys

async def kernel():
    names = {"__name__": "__main__"}
    for number, cell in enumerate(json.load(sys.stdin)):
        exec(compile(cell, f"cell {number}", "exec"), names)

asyncio.run(kernel())
"""


def cells() -> list[dict[str, Any]]:
    """The code cells."""
    said = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return [cell for cell in said["cells"] if cell["cell_type"] == "code"]


def test_its_cells_train_a_skill_and_show_it(tmp_path: Path) -> None:
    """A loop that runs already is in nobody's way."""
    sources = json.dumps(["".join(cell["source"]) for cell in cells()])
    kernel = [sys.executable, "-c", KERNEL]
    done = subprocess.run(
        kernel, cwd=tmp_path, input=sources, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "completed 0.0 -> 1.0"
    table = [line.split() for line in done.stdout.splitlines()[1:3]]
    assert table[0] == ["step", "train", "current", "candidate", "verdict"]
    assert table[1] == ["1", "0.0", "0.0", "1.0", "accept_new_best"]
    assert "with the year first" in done.stdout


def test_it_is_kept_without_outputs() -> None:
    """They vary, and would be a difference in every commit."""
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells())
