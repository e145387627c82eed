"""Small changes to a module, each of which some test should notice."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

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
    tree: ast.Module

    @property
    def key(self) -> str:
        """Names it without a line number, so that it outlives edits elsewhere in the file."""
        return f"{self.function}: {self.before} -> {self.after}"


def mutants_of(source: str) -> Iterator[Mutant]:
    """Every mutant of a module, in the order in which it is written."""
    tree = ast.parse(source)
    for function, node in _places(tree):
        for number, made in enumerate(_changes(node)):
            changed = copy.deepcopy(tree)
            twin = next(new for old, new in zip(ast.walk(tree), ast.walk(changed), strict=True) if old is node)
            _put(changed, twin, _changes(twin)[number])
            ast.fix_missing_locations(changed)
            yield Mutant(function, getattr(node, "lineno", 0), _head(node), _head(made), changed)


def _places(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The nodes that may change, with the function they are in; not annotations, docstrings, decorators or messages."""

    def walk(node: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{name}.{node.name}".lstrip(".")
            defaults = (
                [] if isinstance(node, ast.ClassDef) else [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            )
            for part in (*defaults, *_without_docstring(node.body)):
                yield from walk(part, inner)
            return
        if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
            return
        yield name, node
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "ctx", "type_comment"):
                continue
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST):
                    yield from walk(part, name)

    for part in _without_docstring(tree.body):
        yield from walk(part, "")


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
    return [ast.Constant(node.value + 1)] if isinstance(node.value, int | float) else []


def _returned(node: ast.Return) -> list[ast.AST]:
    nothing = node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
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
        for field, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, field, made)
                return
            if isinstance(value, list) and any(part is node for part in value):
                setattr(parent, field, [made if part is node else part for part in value])
                return


def _head(node: ast.AST) -> str:
    """The first line of a node's text, short."""
    line = ast.unparse(node).strip().partition("\n")[0]
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
