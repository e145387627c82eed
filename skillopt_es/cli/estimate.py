"""`estimate` and `run --dry-run`: calls, tokens, money and time of a run before its first call."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import config_named, directory_option, json_option, set_option
from skillopt_es.cli.printing import print_json, print_table, tell_of
from skillopt_es.cli.terminal import field, say
from skillopt_es.counting import counted
from skillopt_es.events.values import Json
from skillopt_es.presenting.documents import some_of

if TYPE_CHECKING:
    from skillopt_es.config import RunConfig
    from skillopt_es.estimating.estimate import Estimate, Range


_STAGES = {
    "train": "training items",
    "appendix": "reminder notes",
    "reported": "fresh score",
    "comparison": "epochs compared",
    "slow_gate": "gate of guidance",
    "final": "final skill",
    "test": "test items",
}


@click.command("estimate")
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--demo", metavar="NAME", help="Estimate a bundled demo: demo, or a benchmark's name.")
@set_option("Set a config key, such as train.seed=7.")
@directory_option
@json_option
def estimate_command(
    config: Path | None, demo: str | None, overrides: tuple[str, ...], directory: Path, as_json: bool
) -> None:
    """
    Estimate the calls, tokens, money and time of a run of CONFIG, without making a call.

    Without CONFIG, uses config.yaml of the current folder; without that, the bundled demo.
    From the plan that the config and the data make, and from earlier runs of the same models and data under --dir.
    """
    from skillopt_es.config import load_config

    loaded = load_config(config_named(config, demo), overrides, os.environ)
    tell_of(loaded)
    print_estimate(loaded, directory, as_json=as_json)


def print_estimate(config: RunConfig, directory: Path, *, as_json: bool) -> None:
    """Loads the data, reads earlier runs, and prints the estimate."""
    from skillopt_es.door.work import aestimate

    found = asyncio.run(aestimate(config, runs=directory))
    if as_json:
        print_json(_as_json(found))
    else:
        _print(found)


def _print(found: Estimate) -> None:
    field("plan", _planned(found))
    field("rests on", ", ".join(found.runs) or "the config alone")
    headers = ("stage", "calls", "tokens in", "tokens out", *([f"cost {found.currency}"] if found.currency else []))
    rows = [
        (_stage(line.kind), *_cells(line.calls, line.input_tokens, line.output_tokens, line.cost, found.currency))
        for line in found.lines
    ]
    total = _cells(found.calls, found.input_tokens, found.output_tokens, found.cost, found.currency)
    say()
    print_table(headers, [*rows, ("total", *total)], right=range(1, len(headers)))
    say()
    stages: dict[str, list[str]] = {}
    for line in found.lines:
        stages.setdefault(line.basis, []).append(_stage(line.kind))
    print_table(("what its numbers rest on", "stages"), [(basis, ", ".join(of)) for basis, of in stages.items()])
    say()
    time = found.seconds
    field("time", f"{_clock(time.low)} to {_clock(time.high)}, about {_clock(time.expected)}; {found.time_basis}")
    if found.cost is None:
        field("money", "unknown: prices.models has no price of every model")
    for note in found.notes:
        field("note", note)


def _planned(found: Estimate) -> str:
    if found.within is not None:
        return f"as many steps as {found.within:,} calls pay for, tests included"
    return f"{counted(found.epochs, 'epoch')}, {counted(found.steps, 'step')}"


def _stage(kind: str) -> str:
    """What a kind of call is called."""
    return _STAGES.get(kind, kind.replace("_", " "))


def _cells(calls: Range, inputs: Range, outputs: Range, cost: Range | None, currency: str) -> tuple[str, ...]:
    from skillopt_es.presenting.numbers import shown_amount

    shown = "-" if cost is None else _shown(cost, shown_amount)
    return (_shown(calls), _shown(inputs), _shown(outputs), *([shown] if currency else []))


def _shown(found: Range, form: Callable[[float], str] | None = None) -> str:
    """One number where it is certain, else what is expected and from where to where."""
    low, expected, high = map(form or _rounded, (found.low, found.expected, found.high))
    return expected if low == high else f"{expected} ({low}-{high})"


def _rounded(number: float) -> str:
    """A count as exactly as an estimate can be: 9,876, 148k, 2.55M."""
    if number < 9_999.5:
        return f"{number:,.0f}"
    if number < 999_500:
        return f"{number / 1e3:.3g}k"
    return f"{number / 1e6:,.3g}M" if number < 9.995e8 else f"{number / 1e9:,.0f}G"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def _as_json(found: Estimate) -> Json:
    return {
        **some_of(found, "epochs", "steps", "within"),
        "earlier_runs": list(found.runs),
        "currency": found.currency or None,
        "calls": _range(found.calls),
        "input_tokens": _range(found.input_tokens),
        "output_tokens": _range(found.output_tokens),
        "cost": None if found.cost is None else _range(found.cost, 6),
        "seconds": _range(found.seconds, 1),
        "time_basis": found.time_basis,
        "notes": list(found.notes),
        "stages": [
            {
                "stage": line.kind,
                "role": line.role,
                "calls": _range(line.calls),
                "input_tokens": _range(line.input_tokens),
                "output_tokens": _range(line.output_tokens),
                "cost": None if line.cost is None else _range(line.cost, 6),
                "basis": line.basis,
            }
            for line in found.lines
        ],
    }


def _range(found: Range, digits: int | None = None) -> Json:
    """Whole numbers, or so many digits."""
    return {name: round(getattr(found, name), digits) for name in ("low", "expected", "high")}
