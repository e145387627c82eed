"""
A household in plain Python: ALFRED's rules and ALFWorld's wording, for games of `problem.py`.

It needs no TextWorld, so that games can be played anywhere; where TextWorld is installed, a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from attrs import frozen

from skillopt_es.adapters.environments.alfworld.names import readable_names
from skillopt_es.adapters.environments.alfworld.problem import Fact, Problem, holds

WELCOME = "-= Welcome to TextWorld, ALFRED! =-"
TASK_MARK = "Your task is to: "

_CONDITIONS = (  # the first line whose predicates all hold says what an examined object is like
    (("isclean", "ishot", "issliced"), "This is a hot and clean sliced {}."),
    (("isclean", "iscool", "issliced"), "This is a cool and clean sliced {}."),
    (("isclean", "issliced"), "This is a clean sliced {}."),
    (("ishot", "issliced"), "This is a hot sliced {}."),
    (("iscool", "issliced"), "This is a cool sliced {}."),
    (("isclean", "ishot"), "This is a hot and clean {}."),
    (("isclean", "iscool"), "This is a cool and clean {}."),
    (("ishot",), "This is a hot {}."),
    (("isclean",), "This is a clean {}."),
    (("iscool",), "This is a cold {}."),
    (("toggleable", "istoggled"), "This {} is on."),
    (("toggleable",), "This {} is off."),
    (("sliceable", "issliced"), "This is a sliced {}."),
    ((), "There's nothing special about {}."),
)


@frozen
class Household:
    """What never changes in one game."""

    problem: Problem
    task: str
    agent: str
    names: Mapping[str, str]
    objects: tuple[str, ...]
    receptacles: tuple[str, ...]
    places: Mapping[str, str]

    def begin(self) -> Moment:
        """The game before the first command."""
        return Moment(self, self.problem.facts)

    def intro(self) -> str:
        """What is said before the first command."""
        return f"{WELCOME}\n\n{self.begin().overview()}\n\n{TASK_MARK}{self.task}"


def household(problem: Problem, task: str) -> Household:
    """The household of a problem; raises ValueError when the agent is nowhere or the goal cannot be judged."""
    agent = problem.of_kind("agent")[0]
    if not any(fact[:2] == ("atlocation", agent) for fact in problem.facts):
        raise ValueError(f"the PDDL problem does not say where {agent} is: (atLocation {agent} …)")
    holds(problem.goal, problem.facts, problem.kinds)
    return Household(
        problem=problem,
        task=task,
        agent=agent,
        names=readable_names(name for fact in problem.facts for name in fact[1:]),
        objects=tuple(problem.of_kind("object")),
        receptacles=tuple(problem.of_kind("receptacle")),
        places={fact[1]: fact[2] for fact in problem.facts if fact[0] == "receptacleatlocation"},
    )


@frozen
class Moment:
    """A household as it is now, and what is said of it."""

    house: Household
    facts: frozenset[Fact]

    @property
    def won(self) -> bool:
        """Whether the goal is reached."""
        return holds(self.house.problem.goal, self.facts, self.house.problem.kinds)

    @cached_property
    def location(self) -> str:
        """Where the agent is."""
        return next(fact[2] for fact in self.facts if fact[:2] == ("atlocation", self.house.agent))

    @property
    def held(self) -> tuple[str, ...]:
        """What the agent carries."""
        return tuple(each for each in self.house.objects if self.has("holds", self.house.agent, each))

    def look(self) -> str:
        """What is said of the surroundings."""
        here = self.here()
        if not here:  # also where there is much to see: the grammar binds its list to the agent's own place
            return self._in_the_middle("nothing")
        facing = _joined([self.named(each) for each in here])
        return f"You are facing the {facing}. Next to it, you see nothing."

    def overview(self) -> str:
        """What is said of the room at the beginning."""
        return self._in_the_middle(self.listed(self.house.receptacles)) if not self.here() else self.look()

    def inventory(self) -> str:
        """What is said of what the agent carries."""
        return f"You are carrying: {self.listed(self.held)}." if self.held else "You are not carrying anything."

    def receptacle(self, receptacle: str) -> str:
        """What is said of a receptacle."""
        name = self.named(receptacle)
        if not self.has("openable", receptacle):
            return f"On the {name}, you see {self.listed(self.inside(receptacle))}."
        if not self.has("opened", receptacle):
            return f"The {name} is closed."
        return f"The {name} is open. In it, you see {self.listed(self.inside(receptacle))}."

    def object(self, each: str) -> str:
        """What is said of an object."""
        name = self.named(each)
        if self.has("isreceptacleobject", each):
            inside = [other for other in self.house.objects if self.has("inreceptacleobject", other, each)]
            return f"This is a normal {name}. In it, you see {self.listed(inside)}."
        return next(line for needed, line in _CONDITIONS if all(self.has(one, each) for one in needed)).format(name)

    def _in_the_middle(self, seen: str) -> str:
        return f"You are in the middle of a room. Looking quickly around you, you see {seen}."

    def has(self, *fact: str) -> bool:
        """Whether something holds."""
        return fact in self.facts

    def named(self, each: str) -> str:
        """The readable name of a thing."""
        return self.house.names.get(each, each)

    def listed(self, things: Iterable[str]) -> str:
        """Things in words, as a list."""
        return _joined([f"a {self.named(each)}" for each in things])

    def here(self) -> list[str]:
        """The receptacles that the agent stands at."""
        location = self.location
        return [each for each in self.house.receptacles if self.house.places.get(each) == location]

    def inside(self, receptacle: str) -> list[str]:
        """What is in or on a receptacle."""
        return [each for each in self.house.objects if self.has("inreceptacle", each, receptacle)]

    def accessible(self, receptacle: str) -> bool:
        """Whether things can be put into it and taken out of it."""
        return not self.has("openable", receptacle) or self.has("opened", receptacle)

    def types(self, predicate: str, each: str) -> list[str]:
        """What a thing is an example of."""
        return [fact[2] for fact in self.facts if fact[:2] == (predicate, each)]


def _joined(names: list[str]) -> str:
    """ALFWorld's lists: `a`, `a, and b`, `a, b, and c`."""
    if not names:
        return "nothing"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])}, and {names[-1]}"
