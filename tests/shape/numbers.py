"""
Counts what a reader has to hold in the head: `python -m tests.shape.numbers` prints the numbers beside their bounds.

`test_shape.py` keeps them. A change that needs a higher bound raises it there, in the open, and says what it buys.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import attrs

ROOT = Path(__file__).parent.parent.parent
TOPS = ("skillopt_es", "events", "projections", "adapters")
CORE = ("projections", "skillopt_es/engine", "skillopt_es/gate", "skillopt_es/algorithms")


@cache
def modules(*tops: str) -> tuple[Path, ...]:
    """The product's modules below these folders, or all of them."""
    return tuple(sorted(file for top in tops or TOPS for file in (ROOT / top).rglob("*.py")))


@cache
def tree_of(module: Path) -> ast.Module:
    """A module, parsed."""
    return ast.parse(module.read_text(encoding="utf-8"))


def code_lines(module: Path) -> int:
    """The lines of a module that are neither blank, nor a comment, a docstring or an import."""
    passed: set[int] = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            passed.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
                passed.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = module.read_text(encoding="utf-8").splitlines()
    return sum(
        number not in passed and bool(line.strip()) and not line.lstrip().startswith("#")
        for number, line in enumerate(lines, start=1)
    )


def version_conditions() -> list[str]:
    """Where an algorithm asks for a version of itself."""
    return [
        where
        for module in modules("skillopt_es/algorithms")
        for node, where in _places(module)
        if isinstance(node, ast.Compare)
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and part.attr in ("version", "since")
    ]


def promises() -> list[str]:
    """Asserts that a value is there, and in the core also casts: what a type ought to say."""
    found = []
    for module in modules():
        if (ROOT / "skillopt_es" / "testing") in module.parents:  # its subject is asserting
            continue
        core = any((ROOT / room) in module.parents for room in CORE)
        for node, where in _places(module):
            if isinstance(node, ast.Assert) and _is_promise(node.test):
                found.append(where)
            if core and isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast":
                found.append(where)
        if core:
            lines = module.read_text(encoding="utf-8").splitlines()
            found += [
                f"{module.relative_to(ROOT)}:{number}"
                for number, line in enumerate(lines, start=1)
                if "# type: ignore" in line
            ]
    return found


def _is_promise(test: ast.expr) -> bool:
    """Whether an assert says that something is there, or of a type."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and any(isinstance(each, ast.IsNot) for each in node.ops):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            return True
    return False


def unexplained() -> list[str]:
    """
    Constants of modules that hold numbers, and have no reason beside them.

    A reason is a comment on the line or right above it, or a docstring below.
    """
    found = []
    for module in modules():
        lines = module.read_text(encoding="utf-8").splitlines()
        body = tree_of(module).body
        for at, node in enumerate(body):
            after = body[at + 1] if at + 1 < len(body) else None
            if not (name := _constant(node)) or not _numbers(node):
                continue
            # What a tool is to skip is no reason.
            said = any(
                re.search(r"#(?! (?:fmt|noqa|type): )", line) for line in lines[node.lineno - 1 : node.end_lineno]
            )
            above = lines[node.lineno - 2].startswith("#") if node.lineno > 1 else False
            below = (
                isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            )
            if not (said or above or below):
                found.append(f"{module.relative_to(ROOT)}:{node.lineno} {name}")
    return found


def _constant(node: ast.stmt) -> str:
    """The name of a module's constant, or the names of several; empty for any other statement."""
    target = (
        node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
    )
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    names = [part.id for part in parts if isinstance(part, ast.Name) and part.id.lstrip("_").isupper()]
    return ", ".join(names)


def _numbers(node: ast.stmt) -> bool:
    """Whether a constant is made of numbers, as they stand there."""
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "frozenset" and value.args:
        value = value.args[0]
    if not isinstance(value, ast.Constant | ast.BinOp | ast.UnaryOp | ast.Tuple | ast.List | ast.Dict | ast.Set):
        return False
    # A place in a list is no decision.
    places = {id(part.slice) for part in ast.walk(value) if isinstance(part, ast.Subscript)}
    return any(
        isinstance(part, ast.Constant)
        and isinstance(part.value, int | float)
        and not isinstance(part.value, bool)
        and id(part) not in places
        for part in ast.walk(value)
    )


def wide_constructors(most: int) -> list[str]:
    """Functions called `__init__` of the engine with more parameters than that; fields of values are not counted."""
    return [
        f"{where} ({count})"
        for module in modules("skillopt_es/engine")
        for node, where in _places(module)
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
        for count in [len(node.args.args) + len(node.args.kwonlyargs) - 1]
        if count > most
    ]


def algorithm_fields() -> dict[str, int]:
    """The fields of an algorithm, and of each value of ours that it bundles."""
    from skillopt_es.algorithms.classic.algorithm import CLASSIC
    from skillopt_es.engine.algorithm import Algorithm

    found = {"Algorithm": len(attrs.fields(Algorithm))}
    for each in attrs.fields(Algorithm):
        value = getattr(CLASSIC, each.name)
        if attrs.has(type(value)):
            found[type(value).__name__] = len(attrs.fields(type(value)))
    return found


def _places(module: Path) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.stmt | ast.expr):
            yield node, f"{module.relative_to(ROOT)}:{node.lineno}"


def main() -> None:
    """Prints every number."""
    lines = {module: code_lines(module) for module in modules()}
    print(f"{sum(lines.values()):>7} code lines in {len(lines)} modules")
    for name, count in algorithm_fields().items():
        print(f"{count:>7} fields of {name}")
    for title, found in (
        ("conditions on an algorithm's version", version_conditions()),
        ("asserts and casts that a type ought to say", promises()),
        ("constants without a reason", unexplained()),
        ("constructors of the engine with more than 8 parameters", wide_constructors(8)),
    ):
        print(f"{len(found):>7} {title}")
        if "-v" in sys.argv:
            print("\n".join(f"          {each}" for each in found))


if __name__ == "__main__":
    main()
