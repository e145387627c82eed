"""The mutation tester knows tests that exist, changes one thing at a time, and explains only mutants that there are."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from mutate.mutants import mutants_of
from mutate.targets import TARGETS
from support.mirrors import modules, speaking_of

ROOT = Path(__file__).parent.parent
SMALL = '''
"""A module."""
MOST = 3

def kept(rows: list[str], most: int = MOST) -> str:
    """What is kept."""
    for row in rows:
        if len(row) > most or not row.startswith("a"):
            continue
        return row
    raise ValueError(1)
'''


@pytest.mark.parametrize("module", sorted(TARGETS))
def test_the_modules_and_their_tests_are_there(module: str) -> None:
    """A file that was renamed would leave a module without its tests; the first of them speaks of it."""
    assert [path for path in (module, *TARGETS[module]) if not (ROOT / path).exists()] == []
    [name] = [name for name, file in modules().items() if file == ROOT / module]
    assert ROOT / TARGETS[module][0] in speaking_of(name)


def test_what_is_explained_is_a_mutant_of_today() -> None:
    """An explanation of code that is gone is taken out."""
    explained: Mapping[str, Mapping[str, str]] = tomllib.loads(
        (ROOT / "tests/mutate/explained.toml").read_text("utf-8")
    )
    for module, reasons in explained.items():
        keys = {mutant.key for mutant in mutants_of((ROOT / module).read_text(encoding="utf-8"))}
        assert set(reasons) - keys == set(), module
        assert all(reason.strip() for reason in reasons.values()), module


def test_each_mutant_is_the_module_with_one_change() -> None:
    """Messages, docstrings and annotations stay; each has a name of its own and says which statement it changes."""
    mutants = list(mutants_of(SMALL))
    assert {mutant.key for mutant in mutants} == {
        ": 3 -> 4",
        "kept: if len(row) > most or not row.startswith('a'): -> if not (len(row) > most or not row.startswith('a')):",
        "kept: len(row) > most or not row.startswith('a') -> len(row) > most and (not row.startswith('a'))",
        "kept: len(row) > most -> len(row) >= most",
        "kept: len(row) > most -> len(row) <= most",
        "kept: not row.startswith('a') -> row.startswith('a')",
        "kept: row.startswith -> row.endswith",
        "kept: continue -> break",
        "kept: return row -> return None",
    }
    plain = ast.unparse(ast.parse(SMALL)).split("\n")
    for mutant in mutants:
        changed = ast.unparse(mutant.tree()).split("\n")
        assert sum(old != new for old, new in zip(plain, changed, strict=True)) == 1, mutant.key
        assert mutant.line in mutant.statement
        assert mutant.called == (mutant.function == "kept")
