"""What a read model asks a log for is what it looks at: no event is forgotten beside the code that reads it."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest
from attrs import fields

from skillopt_es.events import catalog
from skillopt_es.events.catalog import BY_NAME, CATALOG, SKILL_TYPES, GapFound, skills_in
from skillopt_es.events.values import SkillTree

ROOT = Path(catalog.__file__).parents[1]


def tables(tree: ast.Module) -> set[str]:
    """The names of a module's own constants that list types of event."""
    named = {
        each.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for each in node.targets
        if isinstance(each, ast.Name)
    }
    return {name for name in named if name.endswith("TYPES")}


def matched(tree: ast.Module) -> set[str]:
    """The events that a module's `match` statements look at, or its tables of handlers."""
    looked: list[ast.expr | None] = []
    for node in ast.walk(tree):
        looked += [node.cls] if isinstance(node, ast.MatchClass) else node.keys if isinstance(node, ast.Dict) else []
    return {node.id for node in looked if isinstance(node, ast.Name) and node.id in BY_NAME}


FOLDS = [
    (file, tree)
    for folder in ("projections", "skillopt_es")
    for file in sorted((ROOT / folder).rglob("*.py"))
    if "TYPES" in (source := file.read_text("utf-8")) and tables(tree := ast.parse(source)) and matched(tree)
]


@pytest.mark.parametrize(("file", "tree"), [pytest.param(*each, id=each[0].stem) for each in FOLDS])
def test_a_read_model_asks_for_every_event_that_it_looks_at(file: Path, tree: ast.Module) -> None:
    """Its constant of types has each one that its code matches, and none that there is not."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    module = importlib.import_module(".".join(parts if parts[0] == "skillopt_es" else ("skillopt_es", *parts)))
    asked = set().union(*(set(getattr(module, name)) for name in tables(tree)))
    assert matched(tree) <= asked
    assert asked <= set(BY_NAME)


def test_there_are_such_read_models() -> None:
    """The test above has something to look at."""
    assert {"blame", "chains", "descent", "seal"} <= {file.stem for file, _ in FOLDS}


def test_every_event_that_can_hold_a_skill_is_known_for_it() -> None:
    """By the types of its fields, however they are wrapped."""
    assert {
        kind.__name__ for kind in CATALOG if "SkillTree" in "".join(str(each.type) for each in fields(kind))
    } == set(SKILL_TYPES)


def test_a_gap_can_hold_a_skill() -> None:
    """And need not."""
    skill = SkillTree(files={"SKILL.md": "# Skill\n"})
    assert skills_in(GapFound(place="end", what="x", why="y", skill=skill)) == (skill,)
    assert skills_in(GapFound(place="end", what="x", why="y")) == ()
