"""The bench of parts: which changes of a refused candidate stay."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import bench_parts


def test_draws_under_parts_tell_two_edits_of_one_skill_apart() -> None:
    """Which nothing else can: every item notices both."""
    right = {}
    for way in ("opened", "fitted", "drawn"):
        found = [bench_parts.run(way, seed, "one skill", 2, 0.05) for seed in range(40)]
        there = [each for each in found if each is not None]
        right[way] = sum(each[0] for each in there) / len(there)
    assert (right["opened"], right["fitted"]) == (0.0, 0.0)
    assert right["drawn"] > 0.9


def test_none_spends_more_than_a_gate_and_the_parts() -> None:
    found = [bench_parts.run("drawn", seed, "overlapping", 3, 0.15) for seed in range(40)]
    most = bench_parts.ITEMS + bench_parts.PARTS
    assert 0 < max(each[2] for each in found if each is not None) <= most
