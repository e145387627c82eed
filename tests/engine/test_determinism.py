"""The same answers give the same log, whatever the concurrency and whatever finishes first."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from support.logs import rows_of
from support.params import parametrized
from support.scripted import ScriptedModel, ScriptedWorld, config, optimizer_reply, target_reply

from skillopt_es.sessions.session import start

OPTIONS = {
    "plain": [],
    "gated slow update, two batches a step": ["optimizer.slow_update_gate_with_selection=true", "train.accumulation=2"],
    "gate off": ["evaluation.use_gate=false", "evaluation.gate_metric=mixed"],
}


def trained(folder: Path, overrides: list[str], *, workers: int, seed: int | None) -> list[tuple[object, ...]]:
    """The event table of a run whose calls finish in an order that the seed shuffles."""
    shuffle = None if seed is None else random.Random(seed)
    world = ScriptedWorld(
        target=ScriptedModel("scripted target", target_reply, shuffle=shuffle),
        optimizer=ScriptedModel("scripted optimizer", optimizer_reply, shuffle=shuffle),
    )
    limits = [f"env.workers={workers}", f"gradient.analyst_workers={workers}"]
    run = folder / "same-name"
    asyncio.run(start(config(folder, [*overrides, *limits]), run, world.session()))
    assert workers == 1 or world.target.most_running > 1
    return rows_of(run)


def without_config(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """The rows without what names the worker counts: the first event's data, and the hashes that cover it."""
    return [(row[0], row[1], row[2], row[3], row[4], "" if row[0] == 1 else row[-1]) for row in rows]


@parametrized("name", OPTIONS, by_default=1)
def test_logs_are_equal_at_any_concurrency(name: str, tmp_path: Path) -> None:
    """1, 8 and 64 workers with shuffled completion: the same events in the same order."""
    first = trained(tmp_path / "a", OPTIONS[name], workers=1, seed=None)
    assert len(first) > 50
    for workers, seed in ((8, 1), (64, 2), (64, 3)):
        other = trained(tmp_path / f"{workers}-{seed}", OPTIONS[name], workers=workers, seed=seed)
        assert without_config(other) == without_config(first)


def test_logs_are_equal_byte_for_byte_under_a_frozen_clock(tmp_path: Path) -> None:
    """Every column, hashes and times included, for the same config."""
    first = trained(tmp_path / "a" / "x", [], workers=64, seed=1)
    second = trained(tmp_path / "b" / "x", [], workers=64, seed=2)
    assert first == second
