"""Small changes to a module, each of which some test should notice."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from attrs import evolve, field, frozen

COMPARED: Mapping[type[ast.cmpop], Sequence[type[ast.cmpop]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
CALCULATED: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
LONGEST = 70
OPPOSITE = {"min": "max", "max": "min", "any": "all", "all": "any", "startswith": "endswith", "lstrip": "rstrip"}


@frozen
class Mutant:
    """One change: where it is, what stood there and what stands there now."""

    function: str
    line: int
    before: str
    after: str
    nth: int = 1  # of those that read alike, in the same function
    statement: range = range(0)  # the lines of the statement that it changes
    called: bool = False  # whether it changes what a function does, not how its module is made
    _source: str = field(default="", repr=False)
    _place: int = 0
    _change: int = 0

    @property
    def key(self) -> str:
        """Names it without a line number, so that it outlives edits elsewhere in the file."""
        again = f" ({self.nth})" if self.nth > 1 else ""
        return f"{self.function}: {self.before} -> {self.after}{again}"

    def tree(self) -> ast.Module:
        """The changed module."""
        tree = ast.parse(self._source)
        place = next(islice(_places(tree), self._place, None))
        _put(tree, place.node, _changes(place.node)[self._change])
        return ast.fix_missing_locations(tree)


@frozen
class _Place:
    """A node that may change, with the function and the statement that it is in."""

    node: ast.AST
    function: str
    statement: ast.stmt
    called: bool


def mutants_of(source: str) -> Iterator[Mutant]:
    """Every mutant of a module, in the order in which it is written."""
    alike: Counter[tuple[str, str, str]] = Counter()
    for number, place in enumerate(_places(ast.parse(source))):
        for change, made in enumerate(_changes(place.node)):
            statement = place.statement
            name = place.function, _head(place.node), _head(made)
            alike[name] += 1
            yield Mutant(
                *(place.function, getattr(place.node, "lineno", statement.lineno), *name[1:], alike[name]),
                statement=range(statement.lineno, (statement.end_lineno or statement.lineno) + 1),
                called=place.called,
                source=source,
                place=number,
                change=change,
            )


def _places(tree: ast.Module) -> Iterator[_Place]:
    """What may change: not annotations, docstrings, decorators or messages."""
    for statement in _without_docstring(tree.body):
        yield from _places_in(statement, _Place(statement, "", statement, called=False))


def _places_in(node: ast.AST, around: _Place) -> Iterator[_Place]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        inner = f"{around.function}.{node.name}".lstrip(".")
        is_class = isinstance(node, ast.ClassDef)
        for default in () if isinstance(node, ast.ClassDef) else (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                yield from _places_in(default, evolve(around, function=inner, statement=node))
        for part in _without_docstring(node.body):
            called = around.called or not is_class
            yield from _places_in(part, _Place(part, inner, part, called=called))
    elif not isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom) and not _decides_nothing(node):
        yield evolve(around, node=node)
        for part in _parts(node):
            statement = part if isinstance(part, ast.stmt) else around.statement
            yield from _places_in(part, evolve(around, statement=statement))


def _decides_nothing(node: ast.AST) -> bool:
    """Whether this only makes sure of what is so, as `zip(…, strict=True)` does, or is for a programmer's eye."""
    return isinstance(node, ast.keyword) and node.arg in ("strict", "repr")


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        parts = value if isinstance(value, list) else [value]
        if name not in ("annotation", "returns", "ctx", "type_comment"):
            yield from (part for part in parts if isinstance(part, ast.AST))


def _without_docstring(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    first = body[0] if body else None
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if documented else body


def _changes(node: ast.AST) -> list[ast.AST]:
    """What may be put in a node's place."""
    change = CHANGES.get(type(node))
    return change(node) if change else []


def _compare(node: ast.Compare) -> list[ast.AST]:
    return [_with(node, ops=[other()]) for other in COMPARED[type(node.ops[0])]] if len(node.ops) == 1 else []


def _calculation(node: ast.BinOp | ast.AugAssign) -> list[ast.AST]:
    other = CALCULATED.get(type(node.op))
    return [_with(node, op=other())] if other and not _is_text(node) else []


def _constant(node: ast.Constant) -> list[ast.AST]:
    if isinstance(node.value, bool):
        return [ast.Constant(not node.value)]
    if node.value == "":
        return [ast.Constant("?")]
    return [ast.Constant(node.value + 1)] if isinstance(node.value, int | float) else []


def _returned(node: ast.Return) -> list[ast.AST]:
    nothing = node.value is None or (isinstance(node.value, ast.Constant) and not node.value.value)
    return [] if nothing else [_with(node, value=ast.Constant(None))]


CHANGES: Mapping[type[ast.AST], Callable[[Any], list[ast.AST]]] = {
    ast.Compare: _compare,
    ast.BoolOp: lambda node: [_with(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())],
    ast.BinOp: _calculation,
    ast.AugAssign: _calculation,
    ast.UnaryOp: lambda node: [node.operand] if isinstance(node.op, ast.Not) else [],
    ast.Constant: _constant,
    **dict.fromkeys((ast.If, ast.IfExp, ast.While), lambda node: [_with(node, test=ast.UnaryOp(ast.Not(), node.test))]),
    ast.comprehension: lambda node: [_with(node, ifs=[])] if node.ifs else [],
    ast.Return: _returned,
    ast.Continue: lambda _: [ast.Break()],
    ast.Break: lambda _: [ast.Continue()],
    ast.Expr: lambda node: [ast.Pass()] if isinstance(node.value, ast.Call | ast.Await) else [],
    ast.Name: lambda node: [_with(node, id=OPPOSITE[node.id])] if node.id in OPPOSITE else [],
    ast.Attribute: lambda node: [_with(node, attr=OPPOSITE[node.attr])] if node.attr in OPPOSITE else [],
}


def _is_text(node: ast.BinOp | ast.AugAssign) -> bool:
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


def _with(node: ast.AST, **fields: object) -> ast.AST:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _put(tree: ast.Module, node: ast.AST, made: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, name, made)
                return
            if isinstance(value, list) and any(part is node for part in value):
                setattr(parent, name, [made if part is node else part for part in value])
                return


def _head(node: ast.AST) -> str:
    """The first line of a node's text, short."""
    line = ast.unparse(node).strip().partition("\n")[0]
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
