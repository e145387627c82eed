"""The benchmarks that are known, by name."""

from __future__ import annotations

from difflib import get_close_matches

from skillopt_es.adapters.benchmarks.alfworld import ALFWORLD
from skillopt_es.adapters.benchmarks.docvqa import DOCVQA
from skillopt_es.adapters.benchmarks.livemath import LIVEMATH
from skillopt_es.adapters.benchmarks.officeqa import OFFICEQA
from skillopt_es.adapters.benchmarks.plan import Benchmark
from skillopt_es.adapters.benchmarks.searchqa import SEARCHQA
from skillopt_es.adapters.benchmarks.spreadsheetbench import SPREADSHEETBENCH
from skillopt_es.errors import ConfigError

BENCHMARKS = {each.name: each for each in (ALFWORLD, DOCVQA, LIVEMATH, OFFICEQA, SEARCHQA, SPREADSHEETBENCH)}


def benchmark_named(name: str) -> Benchmark:
    """The benchmark of a name; raises ConfigError with the nearest one."""
    if name in BENCHMARKS:
        return BENCHMARKS[name]
    near = get_close_matches(name, BENCHMARKS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(BENCHMARKS)}"
    raise ConfigError(f"there is no benchmark {name!r}", hint=hint)
