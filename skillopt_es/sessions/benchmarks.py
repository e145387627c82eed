"""Data of public benchmarks, for the command: `opening.py` knows all other adapters, this one those of data."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from skillopt_es.adapters.benchmarks.build import Built, build
from skillopt_es.adapters.benchmarks.check import check_folder
from skillopt_es.adapters.benchmarks.plan import Benchmark
from skillopt_es.adapters.benchmarks.registry import BENCHMARKS, benchmark_named
from skillopt_es.config import RunConfig, load_config
from skillopt_es.errors import DataError
from skillopt_es.ports import Splits
from skillopt_es.sessions.wiring import REAL_WORLD, open_data
from skillopt_es.version import software_version

__all__ = ["BENCHMARKS", "Benchmark", "Built", "CheckedData", "benchmark_named", "build_data", "check_data"]


@frozen(kw_only=True)
class CheckedData:
    """What data was found: sizes of its splits, notes, and problems, of which there should be none."""

    of: str
    counts: Mapping[str, int]
    notes: tuple[str, ...]
    problems: tuple[str, ...]


def build_data(name: str, *, source: Path, out: Path, ids: Path | None) -> Built:
    """Splits of a benchmark in a new folder, from downloaded files."""
    return build(benchmark_named(name), source=source, out=out, ids=ids, software=software_version())


def check_data(what: Path) -> CheckedData:
    """The data of a config, as its environment reads it, or a folder of splits."""
    if what.is_dir():
        found = check_folder(what)
        return CheckedData(of=found.benchmark or str(what), counts=found.counts, notes=(), problems=found.problems)
    config = load_config(what)
    try:
        splits = asyncio.run(_loaded(config))
    except DataError as error:
        said = f"{error} ({error.hint})" if error.hint else str(error)
        return CheckedData(of=config.env.name, counts={}, notes=(), problems=(said,))
    counts = {"train": len(splits.train), "val": len(splits.val), "test": len(splits.test)}
    return CheckedData(of=config.env.name, counts=counts, notes=splits.notes, problems=())


async def _loaded(config: RunConfig) -> Splits:
    async with open_data(config, REAL_WORLD) as data:
        return data.splits
