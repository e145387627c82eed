"""The tree of errors at the top of `skillopt_es/errors.py` shows all of them as they are."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import get_args

from attrs import frozen
from support.mirrors import modules

from skillopt_es import errors
from skillopt_es.ports import SYSTEMIC, FailureKind

DRAWING = errors.__doc__ or ""
_LINE = re.compile(r"^(?P<branch>(?:│   |    )*(?:[├└]── )?)(?P<name>[A-Z]\w+) {2,}(?P<said>.+)$", re.MULTILINE)
_CLASS = re.compile(r"^ *class ([A-Z]\w+)\(([\w, ]+)\):", re.MULTILINE)  # a private one has no line
_MODULE = re.compile(r"\((?:exit \d+; )?([a-z_]+\.[a-z_]+)\)$")


@frozen
class Drawn:
    """A line of the drawing."""

    name: str
    parent: str
    said: str

    @property
    def where(self) -> str:
        """The module that defines it."""
        found = _MODULE.search(self.said)
        short = found[1] if found else "events.errors" if self.parent == "LogError" else "errors"
        return f"skillopt_es.{short}"

    @property
    def exits_with(self) -> int:
        """What a command exits with."""
        found = re.search(r"\(exit (\d+)", self.said)
        return int(found[1]) if found else 1


def drawn() -> Iterator[Drawn]:
    """The lines of the drawing, each with the one above it in the tree."""
    path: list[str] = []
    for line in _LINE.finditer(DRAWING):
        depth = len(line["branch"]) // 4
        path = [*path[:depth], line["name"]]
        yield Drawn(line["name"], path[-2] if depth else "", line["said"])


def defined() -> set[tuple[str, str]]:
    """The public classes of the product that derive from what is drawn, each with its base, by their definitions."""
    found = {(each.name, "") for each in drawn() if not each.parent}
    classes = [
        (name, base.strip())
        for file in modules().values()
        for name, bases in _CLASS.findall(file.read_text(encoding="utf-8"))
        for base in bases.split(",")
    ]
    grown = True
    while grown:
        names = {name for name, _ in found}
        more = {each for each in classes if each[1] in names} - found
        grown, found = bool(more), found | more
    return found


def test_the_drawing_shows_every_error_below_its_base() -> None:
    """A new one is drawn, and one that is gone is taken out."""
    assert {(each.name, each.parent) for each in drawn()} == defined()


def test_each_error_is_where_the_drawing_says_and_exits_so() -> None:
    """By module and exit code."""
    lines = list(drawn())
    assert len(lines) > 20
    for each in lines:
        kind = getattr(importlib.import_module(each.where), each.name)
        assert kind.__module__ == each.where, each.name
        assert getattr(kind, "exit_code", 1) == each.exits_with, each.name


def test_the_kinds_of_a_failed_call_are_all_named() -> None:
    """First those after which every later call would fail too."""
    _, _, words = DRAWING.partition("tells the kinds apart")
    systemic, _, others = words.partition("rate_limit")
    kinds = set(get_args(FailureKind))
    assert set(re.findall(r"[a-z_]+", systemic)) & kinds == SYSTEMIC
    assert set(re.findall(r"[a-z_]+", f"rate_limit{others}")) & kinds == kinds - SYSTEMIC
