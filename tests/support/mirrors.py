"""Which tests speak of a module, by imports and names of files: `python tests/support/mirrors.py FILE`."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
FOLDERS = {"events": "events", "projections": "projections", "adapters": "adapters", "skillopt_es": ""}
NO_TESTS = {"bench", "mutate", "sweep", "golden"}


@cache
def modules() -> Mapping[str, Path]:
    """Every module of ours, by the name it is imported by; a package has that of its folder."""
    found = {}
    for folder, inner in FOLDERS.items():
        for file in sorted((ROOT / folder).rglob("*.py")):
            parts = [part for part in file.relative_to(ROOT / folder).with_suffix("").parts if part != "__init__"]
            found[".".join(["skillopt_es", *([inner] if inner else []), *parts])] = file
    return found


_TEXT = re.compile(r"(\"{3}|'{3})(?:\\.|(?!\1).)*\1", re.DOTALL)  # may show code, and is none
_STATEMENT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[\w.]+)[ \t]+import[ \t]*(?P<taken>\([^)]*\)|[^\n]*)"
    r"|import[ \t]+(?P<plain>[^\n]*))",
    re.MULTILINE,
)


@cache
def import_statements(file: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each import of a file, also inside functions: the module, and what is taken from it."""
    found: list[tuple[str, tuple[str, ...]]] = []
    # Not by `ast`: parsing every file of ours takes thirty times as long.
    for statement in _STATEMENT.finditer(_TEXT.sub('""', file.read_text(encoding="utf-8"))):
        lines = [line.partition("#")[0] for line in (statement["taken"] or statement["plain"]).splitlines()]
        words = [each.split() for each in "".join(lines).strip("( )").split(",")]
        names = tuple(each[0] for each in words if each)  # without `as`
        found += [(statement["module"], names)] if statement["module"] else [(name, ()) for name in names]
    return tuple(found)


@cache
def imports_of(file: Path) -> frozenset[str]:
    """The modules of ours that a file imports, also inside functions."""
    names: set[str] = set()
    for module, taken in import_statements(file):
        names |= {module, *(f"{module}.{name}" for name in taken)}
    return frozenset(names & modules().keys())


@cache
def files_of_tests() -> tuple[Path, ...]:
    """The tests, and what they share."""
    return tuple(sorted(file for file in TESTS.rglob("*.py") if not NO_TESTS & set(file.relative_to(TESTS).parts)))


def speaking_of(module: str) -> list[Path]:
    """The test files that import a module, or have its name in the folder that mirrors its own; the nearest first."""
    file = modules()[module]
    name = file.parent.name if file.stem == "__init__" else file.stem
    own = TESTS / file.relative_to(ROOT).parent.as_posix().removeprefix("skillopt_es/").removeprefix("skillopt_es")
    named = sorted(own.glob(f"test_{name}*.py"))
    return [*named, *(test for test in _importers().get(module, ()) if test not in named)]


@cache
def _importers() -> Mapping[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for test in files_of_tests():
        for module in imports_of(test):
            found.setdefault(module, []).append(test)
    return found


def doors() -> Iterator[str]:
    """What is not imported but asked for by a word that tests say: commands, and entry points of the package."""
    from skillopt_es.cli.main import COMMANDS

    yield from (f"skillopt_es.cli.{module}" for module, _ in COMMANDS.values())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for group in (project["scripts"], *project["entry-points"].values()):
        yield from (where.partition(":")[0] for where in group.values())


def spoken_of() -> set[str]:
    """The modules that a test speaks of, and those in their folder that only help one of these."""
    known = {module for module in modules() if speaking_of(module)} | set(doors())
    waiting = list(known)
    while waiting:
        helpers = set(_helpers(waiting.pop())) - known
        known |= helpers
        waiting += helpers
    return known


def _helpers(module: str) -> Iterator[str]:
    """The modules in its folder that a module imports, and those that it runs as programs."""
    file = modules()[module]
    text = file.read_text(encoding="utf-8")
    programs = set(re.findall(r'command_for\("(\w+)"', text))
    for name, other in modules().items():
        near = other.parent == file.parent and (name in imports_of(file) or f'"{name}"' in text)
        if near or other.stem in programs:
            yield name


def main(words: Iterable[str]) -> None:
    """Prints the tests of each file."""
    for word in words:
        [module] = [name for name, file in modules().items() if file == Path(word).resolve()]
        print("\n".join(str(test.relative_to(ROOT)) for test in speaking_of(module)))


if __name__ == "__main__":
    main(sys.argv[1:])
