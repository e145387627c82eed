"""The benchmarks that are known, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib import resources
from typing import Any

import yaml
from attrs import evolve

from skillopt_es.adapters.benchmarks import alfworld, docvqa, livemath, officeqa, searchqa, spreadsheetbench
from skillopt_es.adapters.benchmarks.id_lists import released_ids
from skillopt_es.adapters.benchmarks.plan import Benchmark, Divide, Read, Source
from skillopt_es.errors import ConfigError, extra_hint

_READ: Mapping[str, tuple[Read, Divide | None]] = {
    "alfworld": (alfworld.read, alfworld.divided),
    "docvqa": (docvqa.read, None),
    "livemathematicianbench": (livemath.read, livemath.divided),
    "officeqa": (officeqa.read, lambda _: released_ids("officeqa")),
    "searchqa": (searchqa.read, None),
    "spreadsheetbench": (spreadsheetbench.read, lambda _: released_ids("spreadsheetbench")),
}


def _known() -> Iterator[Benchmark]:
    said = yaml.safe_load(resources.files(__package__).joinpath("benchmarks.yaml").read_text(encoding="utf-8"))
    for name, (read, divide) in _READ.items():
        plain: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in said[name].items()
        }
        sources = tuple(Source(**each) for each in plain.pop("sources"))
        noted = tuple(evolve(each, note=each.note.format(materialize=extra_hint("materialize"))) for each in sources)
        yield Benchmark(name=name, sources=noted, read=read, divide=divide, **plain)


BENCHMARKS = {each.name: each for each in _known()}


def benchmark_named(name: str) -> Benchmark:
    """The benchmark of a name; raises ConfigError with the nearest one."""
    if name in BENCHMARKS:
        return BENCHMARKS[name]
    near = get_close_matches(name, BENCHMARKS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(BENCHMARKS)}"
    raise ConfigError(f"there is no benchmark {name!r}", hint=hint)
