"""Reading a household as PDDL has it: who and what is there, what holds at the start, and the goal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from attrs import frozen

Fact = tuple[str, ...]
Expression = str | tuple["Expression", ...]

_TOKENS = re.compile(r";[^\n]*|[()]|[^\s();]+")


@frozen
class Problem:
    """A PDDL problem of ALFRED's domain; every name is in lower case, as PDDL does not tell cases apart."""

    kinds: Mapping[str, str]
    facts: frozenset[Fact]
    goal: Expression

    def of_kind(self, kind: str) -> list[str]:
        """The names of one kind, sorted."""
        return sorted(name for name, each in self.kinds.items() if each == kind)


def read_problem(text: str) -> Problem:
    """The problem that a PDDL text describes; raises ValueError with what is wrong with it."""
    whole = _parsed(text)
    if not isinstance(whole, tuple) or whole[:1] != ("define",):
        raise ValueError("a PDDL problem begins with (define")
    sections = {each[0]: each[1:] for each in whole[1:] if isinstance(each, tuple) and each}
    missing = [name for name in (":objects", ":init", ":goal") if name not in sections]
    if missing:
        raise ValueError(f"the PDDL problem has no ({missing[0]} …)")
    if len(sections[":goal"]) != 1:
        raise ValueError("the PDDL problem needs one goal: (:goal (…))")
    kinds = _kinds(sections[":objects"])
    facts = frozenset(_facts(sections[":init"]))
    if "agent" not in kinds.values():
        raise ValueError("the PDDL problem has no agent among its (:objects …)")
    return Problem(kinds, facts, sections[":goal"][0])


def holds(goal: Expression, facts: Iterable[Fact], kinds: Mapping[str, str]) -> bool:
    """Whether a goal is reached; raises ValueError for an expression that this reader does not know."""
    return _Judge(facts if isinstance(facts, set | frozenset) else frozenset(facts), kinds).holds(goal, {})


class _Judge:
    """Decides goals over a set of facts; a condition is tested as soon as all of its variables are bound."""

    def __init__(self, facts: set[Fact] | frozenset[Fact], kinds: Mapping[str, str]) -> None:
        self._facts = facts
        self._kinds = kinds

    def holds(self, goal: Expression, bound: Mapping[str, str]) -> bool:
        if not isinstance(goal, tuple):
            raise ValueError(f"not a condition: {goal!r}")
        if not goal:
            return True
        head, *parts = goal
        match head:
            case "and":
                found = all(self.holds(each, bound) for each in parts)
            case "or":
                found = any(self.holds(each, bound) for each in parts)
            case "not":
                found = not self.holds(parts[0], bound)
            case "exists":
                found = self._exists(_variables(parts[0]), _conditions(parts[1]), bound)
            case "forall":
                found = not self._exists(_variables(parts[0]), [("not", parts[1])], bound)
            case "=":
                found = _value(parts[0], bound) == _value(parts[1], bound)
            case _:
                found = tuple(_value(each, bound) for each in goal) in self._facts
        return found

    def _exists(
        self, variables: Sequence[tuple[str, str]], conditions: Sequence[Expression], bound: Mapping[str, str]
    ) -> bool:
        free = {name for name, _ in variables}
        later = [each for each in conditions if free & _mentioned(each)]
        if not all(self.holds(each, bound) for each in conditions if each not in later):
            return False
        if not variables:
            return True
        (name, kind), *others = variables
        return any(
            self._exists(others, later, {**bound, name: value}) for value, each in self._kinds.items() if each == kind
        )


def _parsed(text: str) -> Expression:
    stack: list[list[Expression]] = [[]]
    for token in _TOKENS.findall(text):
        if token == "(":  # noqa: S105 - a bracket, not a password
            stack.append([])
        elif token == ")":  # noqa: S105
            done = tuple(stack.pop())
            if not stack:
                raise ValueError("the PDDL text has a closing bracket too many")
            stack[-1].append(done)
        elif not token.startswith(";"):
            stack[-1].append(token.lower())
    if len(stack) != 1 or len(stack[0]) != 1:
        raise ValueError("the PDDL text is not one bracketed expression: a bracket is missing")
    return stack[0][0]


def _kinds(words: Sequence[Expression]) -> dict[str, str]:
    return dict(_typed(words))


def _variables(words: Expression) -> list[tuple[str, str]]:
    return list(_typed(words)) if isinstance(words, tuple) else []


def _typed(words: Sequence[Expression]) -> Iterator[tuple[str, str]]:
    """The names of a typed list `a b - kind c - other`, each with its kind."""
    waiting: list[str] = []
    names = iter(words)
    for word in names:
        if not isinstance(word, str):
            raise ValueError(f"not a name: {word!r}")
        if word == "-":
            kind = next(names, "")
            yield from ((name.rstrip(","), str(kind)) for name in waiting)
            waiting = []
        else:
            waiting.append(word)
    if waiting:
        raise ValueError(f"{waiting[0]!r} has no kind: write it as {waiting[0]} - kind")


def _facts(given: Sequence[Expression]) -> Iterator[Fact]:
    for each in given:
        if not isinstance(each, tuple) or not each:
            raise ValueError(f"not a fact: {each!r}")
        if each[0] != "=":  # costs and distances decide nothing
            yield tuple(_name(word) for word in each)


def _name(word: Expression) -> str:
    if not isinstance(word, str):
        raise ValueError(f"not a name: {word!r}")
    return word


def _value(word: Expression, bound: Mapping[str, str]) -> str:
    name = _name(word)
    if not name.startswith("?"):
        return name
    if name not in bound:
        raise ValueError(f"{name} stands under no exists or forall")
    return bound[name]


def _conditions(goal: Expression) -> Sequence[Expression]:
    return goal[1:] if isinstance(goal, tuple) and goal[:1] == ("and",) else (goal,)


@lru_cache(maxsize=4096)  # a goal is looked at after every command
def _mentioned(goal: Expression) -> frozenset[str]:
    """The variables anywhere in an expression."""
    if isinstance(goal, str):
        return frozenset({goal} if goal.startswith("?") else ())
    return frozenset(name for each in goal for name in _mentioned(each))
