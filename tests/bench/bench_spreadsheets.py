"""
How many scripts on workbooks are run and compared in a minute, and what each part of one costs.

    python tests/bench/bench_spreadsheets.py [executions]
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.spreadsheets import sales, sales_with, write_task

from skillopt_es.adapters.environments.spreadsheetbench.items import Case, SheetItem, cases_in
from skillopt_es.adapters.environments.spreadsheetbench.ranges import read_ranges
from skillopt_es.adapters.environments.spreadsheetbench.workshop import open_workbooks, run_script
from skillopt_es.adapters.sandboxes.launch import Launch
from skillopt_es.adapters.sandboxes.opening import new_sandbox, open_sandbox

SCRIPT = "import openpyxl\nbook = openpyxl.load_workbook(INPUT_PATH)\nbook.active['D2'] = 5\nbook.save(OUTPUT_PATH)\n"
WITH_PANDAS = f"import pandas\n{SCRIPT}"
RANGES = read_ranges("D2", sheet="Sales", scoring="skillopt")


def processor_seconds() -> float:
    """What all children that have ended used up, and this process."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    return sum(used.ru_utime + used.ru_stime for used in both)


async def measured(name: str, count: int, job: Callable[[], Awaitable[object]]) -> None:
    """Runs the same job often, as many at once as there are processors."""
    await job()
    before, start = processor_seconds(), time.perf_counter()
    await asyncio.gather(*(job() for _ in range(count)))
    wall, used = time.perf_counter() - start, processor_seconds() - before
    quiet = 60 * count * (os.cpu_count() or 1) / used
    print(f"{name:34} {1000 * used / count:6.0f} ms of CPU {60 * count / wall:8.0f}/min, if quiet {quiet:8.0f}/min")


async def main(count: int, root: Path) -> None:
    """One line for each part and for the whole."""
    await open_sandbox("confined")
    confined, unconfined = new_sandbox("confined"), new_sandbox("unconfined")
    write_task(root, "1", [(sales(), sales_with(D2=5))])
    [case] = cases_in(root / "spreadsheet" / "1", [])
    item = SheetItem(
        id="1", task_type="", instruction="", instruction_type="", position="D2", ranges=RANGES, cases=(case,)
    )

    def program(code: str) -> Callable[[], Awaitable[object]]:
        return lambda: confined.run(Launch(command=[confined.python, "-I", "-c", code]))

    def script(code: str, one: Case = case) -> Callable[[], Awaitable[object]]:
        return lambda: run_script(confined, code, one, RANGES, seconds=60)

    spared = "import sys; sys.modules['numpy'] = None; import openpyxl"
    await measured("walls and an interpreter", count, program("pass"))
    await measured("... that imports openpyxl", count, program(spared))
    await measured("... that imports openpyxl and numpy", count, program("import openpyxl"))
    await measured("a script, run and read", count, script(SCRIPT))
    await measured("a script with pandas", count, script(WITH_PANDAS))
    await measured("a script without walls", count, lambda: run_script(unconfined, SCRIPT, case, RANGES, seconds=60))
    await measured("opening an item (once a run)", count, lambda: open_workbooks(confined, item))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100, Path(folder)))
