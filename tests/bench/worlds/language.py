"""
The language of the made worlds: what a rule does to a number, how a skill says it, how questions and answers look.

Numbers have four digits, so that one example tells most rules apart; of a remainder it takes two.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Literal

from attrs import frozen

OpName = Literal["plus", "minus", "times", "remainder", "backwards", "sum", "squared", "as it is"]

_DOES: dict[OpName, Callable[[int, int], int]] = {
    "plus": lambda number, k: number + k,
    "minus": lambda number, k: number - k,
    "times": lambda number, k: number * k,
    "remainder": lambda number, k: number % k,
    "backwards": lambda number, k: int(str(number)[::-1]),
    "sum": lambda number, k: sum(map(int, str(number))),
    "squared": lambda number, k: number * number,
    "as it is": lambda number, k: number,
}
_SAYS: dict[OpName, tuple[str, ...]] = {
    "plus": ("write the number plus {k}", "add {k} to the number", "write the number increased by {k}"),
    "minus": ("write the number minus {k}", "subtract {k} from the number", "write the number decreased by {k}"),
    "times": ("write the number times {k}", "multiply the number by {k}", "write the number multiplied by {k}"),
    "remainder": ("write the remainder of the number divided by {k}", "write the number modulo {k}"),
    "backwards": ("write the digits of the number backwards", "write the number with its digits reversed"),
    "sum": ("write the sum of the digits", "add up the digits"),
    "squared": ("write the number squared", "write the square of the number"),
    "as it is": ("write the number as it is",),
}
_READS: tuple[tuple[OpName, re.Pattern[str]], ...] = (
    ("backwards", re.compile(r"backwards|revers")),
    ("sum", re.compile(r"\bsum of (?:the|its) digits|\badd up the digits")),
    ("squared", re.compile(r"\bsquared?\b")),
    ("remainder", re.compile(r"(?:remainder\D*|\bmodulo )(\d+)")),
    ("plus", re.compile(r"(?:\bplus |\badd |\bincreased by )(\d+)")),
    ("minus", re.compile(r"(?:\bminus |\bsubtract |\bdecreased by |\bless )(\d+)")),
    ("times", re.compile(r"(?:\btimes |\bmultipl\w* \D*)(\d+)")),
    ("as it is", re.compile(r"\bas it is\b|\bunchanged\b")),
)


@frozen
class Op:
    """What a rule does to a number; `k` is 0 where it takes none."""

    name: OpName
    k: int = 0

    def of(self, number: int) -> int:
        """The number that it makes."""
        return _DOES[self.name](number, self.k)

    def said(self, draw: random.Random) -> str:
        """It in one of its wordings."""
        return draw.choice(_SAYS[self.name]).format(k=self.k)


OPS: tuple[Op, ...] = (
    *(Op("plus", k) for k in range(11, 100)),
    *(Op("minus", k) for k in range(11, 100)),
    *(Op("times", k) for k in range(2, 10)),
    *(Op("remainder", k) for k in range(11, 40)),
    Op("backwards"),
    Op("sum"),
    Op("squared"),
)
"""Every rule that a world may hide: what an optimizer takes for possible."""


def op_in(text: str) -> Op | None:
    """What a line of a skill says to do, in any of the wordings; None where it says nothing that can be done."""
    low = text.lower()
    for name, pattern in _READS:
        found = pattern.search(low)
        if found is not None:
            return Op(name, int(found[1]) if found.groups() else 0)
    return None


@frozen
class Part:
    """What a rule is asked about: a kind, and the group it belongs to where the world has groups."""

    kind: str
    group: str = ""


def sentence(whom: str, op: Op, draw: random.Random) -> str:
    """A rule as a skill says it; `whom` is `kind KAVO`, `group MERU` or the like."""
    return f"For {whom}: {op.said(draw)}."


_BEGINS = re.compile(r"\bbegins? with (?:an? )?([A-Za-z])\b", re.IGNORECASE)
_ALL = re.compile(r"\b(?:every|all|any|each) kinds?\b", re.IGNORECASE)


def fits(line: str, part: Part) -> bool:
    """Whether a line speaks of a part: of its kind, its group, its first letter, or of every kind."""
    named = set(re.findall(r"\b[A-Z]{4}\b", line))
    if part.kind in named or (part.group and part.group in named):
        return True
    begins = _BEGINS.search(line)
    return (begins is not None and begins[1].upper() == part.kind[0]) or _ALL.search(line) is not None


def lines_for(skill: str, part: Part) -> list[str]:
    """The lines of a skill that say what to do with a part, in their order; the last one decides."""
    return [line.strip() for line in skill.splitlines() if op_in(line) is not None and fits(line, part)]


def followed(skill: str, part: Part) -> Op | None:
    """What a skill has done with a part."""
    lines = lines_for(skill, part)
    return op_in(lines[-1]) if lines else None


def useless_lines(skill: str) -> int:
    """How many lines of a skill name a kind and say nothing that can be done."""
    lines = {line.strip() for line in skill.splitlines()}
    return sum(bool(re.search(r"\bkind [A-Z]{4}\b", line)) and op_in(line) is None for line in lines)


@frozen
class Item:
    """A task: each of its parts has a rule of its own, and all rules work on the one number."""

    id: str
    parts: tuple[Part, ...]
    number: int
    expected: str

    @property
    def question(self) -> str:
        """What the target is asked."""
        return f"{', '.join(map(_named, self.parts))}. Number {self.number}."

    @property
    def type(self) -> str:
        """The kind of task, where a task has one."""
        return self.parts[0].kind if len(self.parts) == 1 else ""


def _named(part: Part) -> str:
    return f"Kind {part.kind} of group {part.group}" if part.group else f"Kind {part.kind}"


_KIND = r"Kind [A-Z]{4}(?: of group [A-Z]{4})?"
QUESTION = re.compile(rf"({_KIND}(?:, {_KIND})*)\. Number (\d+)\.")
_PART = re.compile(r"Kind ([A-Z]{4})(?: of group ([A-Z]{4}))?")
ANSWER = re.compile(r"\b([A-Z]{4})=(-?\d+)")


def questions(text: str) -> Iterator[tuple[int, int, tuple[Part, ...], int]]:
    """The questions in any text: where each begins and ends, its parts and its number."""
    for found in QUESTION.finditer(text):
        yield found.start(), found.end(), tuple(Part(*each) for each in _PART.findall(found[1])), int(found[2])


def answer(values: Sequence[tuple[Part, int]]) -> str:
    """An answer, or what is expected: `KAVO=2874 BELU=1474`."""
    return " ".join(f"{part.kind}={value}" for part, value in values)


def consistent(examples: Collection[tuple[int, int]]) -> list[Op]:
    """The rules that make each of these numbers what was expected."""
    return [op for op in OPS if all(op.of(number) == expected for number, expected in examples)]


def right_share(said: str, expected: str) -> float:
    """The share of an answer's parts that are right."""
    got = dict(ANSWER.findall(said))
    wanted = dict(ANSWER.findall(expected))
    return sum(got.get(kind) == value for kind, value in wanted.items()) / len(wanted)
