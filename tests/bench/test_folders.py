"""Worlds in which only the form of a folder matters: the gate keeps the form that fits the agent."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import bench_skills
from worlds.folders import FORMS, WORLDS, folder, score


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_what_is_long_is_split_where_that_helps_and_left_where_it_hurts(name: str, tmp_path: Path) -> None:
    world = WORLDS[name]
    found = bench_skills.trained(world, 1, "one long", gate=True, where=tmp_path)
    assert found.form == world.better
    assert found.end == found.best == 1.0


@pytest.mark.parametrize("name", WORLDS)
def test_each_world_has_a_form_that_is_worse(name: str) -> None:
    world = WORLDS[name]
    assert {form: score(world, 2, folder(form)) == 1.0 for form in FORMS} == {
        form: form == world.better for form in FORMS
    }
