"""
A household in plain Python: ALFRED's rules and ALFWorld's wording, for games of `problem.py`.

It needs no TextWorld, so that games can be played anywhere; where TextWorld is installed, a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from attrs import evolve, frozen

from skillopt_es.adapters.environments.alfworld.names import readable_names
from skillopt_es.adapters.environments.alfworld.problem import Fact, Problem, holds
from skillopt_es.adapters.environments.alfworld.world import NOTHING_HAPPENS, View

WELCOME = "-= Welcome to TextWorld, ALFRED! =-"
TASK_MARK = "Your task is to: "

_KNIVES = ("knifetype", "butterknifetype")
_APPLIANCES = (  # verb, what an object must be, where it is done, what it makes true and what false
    ("clean", "cleanable", "sinkbasintype", "isclean", ""),
    ("heat", "heatable", "microwavetype", "ishot", "iscool"),
    ("cool", "coolable", "fridgetype", "iscool", "ishot"),
)
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

_Feedback = Callable[["Moment"], str]


@frozen
class Command:
    """Something that can be done now: what it makes true and false, and what is then said."""

    text: str
    feedback: _Feedback
    true: frozenset[Fact] = frozenset()
    false: frozenset[Fact] = frozenset()


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
    """A household as it is now; doing something gives the next moment."""

    house: Household
    facts: frozenset[Fact]

    @property
    def won(self) -> bool:
        """Whether the goal is reached."""
        return holds(self.house.problem.goal, self.facts, self.house.problem.kinds)

    def after(self, command: Command) -> Moment:
        """The moment after a command; what it makes true stays true, whatever it makes false."""
        return evolve(self, facts=(self.facts - command.false) | command.true)

    def view(self, observation: str) -> View:
        """What the agent is shown now."""
        won = self.won
        return View(observation, tuple(sorted(each.text for each in self.commands())), won, won)

    def commands(self) -> Iterator[Command]:
        """Everything that can be done now."""
        yield Command("help", lambda _: _HELP)
        yield Command("inventory", Moment.inventory)
        yield Command("look", Moment.look)
        for each in self.house.receptacles:
            place = self.house.places.get(each, self.location)
            if place != self.location:
                yield self._go(each, place)
        for each in self._here():
            yield from self._at(each)
        yield from self._with_what_is_held()

    def do(self, text: str) -> tuple[Moment, str]:
        """The next moment and what is said; nothing happens for what cannot be done."""
        for command in self.commands():
            if command.text == text:
                after = self.after(command)
                return after, command.feedback(after)
        return self, NOTHING_HAPPENS

    # --- what is so ---------------------------------------------------------------------------------------------------

    @property
    def location(self) -> str:
        """Where the agent is."""
        return next(fact[2] for fact in self.facts if fact[:2] == ("atlocation", self.house.agent))

    @property
    def held(self) -> tuple[str, ...]:
        """What the agent carries."""
        return tuple(each for each in self.house.objects if self._is("holds", self.house.agent, each))

    def look(self) -> str:
        """What is said of the surroundings."""
        here = self._here()
        if not here:  # also where there is much to see: the grammar binds its list to the agent's own place
            return self._in_the_middle("nothing")
        facing = _joined([self._named(each) for each in here])
        return f"You are facing the {facing}. Next to it, you see nothing."

    def overview(self) -> str:
        """What is said of the room at the beginning."""
        return self._in_the_middle(self._listed(self.house.receptacles)) if not self._here() else self.look()

    def inventory(self) -> str:
        """What is said of what the agent carries."""
        return f"You are carrying: {self._listed(self.held)}." if self.held else "You are not carrying anything."

    def receptacle(self, receptacle: str) -> str:
        """What is said of a receptacle."""
        name = self._named(receptacle)
        if not self._is("openable", receptacle):
            return f"On the {name}, you see {self._listed(self._inside(receptacle))}."
        if not self._is("opened", receptacle):
            return f"The {name} is closed."
        return f"The {name} is open. In it, you see {self._listed(self._inside(receptacle))}."

    def object(self, each: str) -> str:
        """What is said of an object."""
        name = self._named(each)
        if self._is("isreceptacleobject", each):
            inside = [other for other in self.house.objects if self._is("inreceptacleobject", other, each)]
            return f"This is a normal {name}. In it, you see {self._listed(inside)}."
        return next(line for needed, line in _CONDITIONS if all(self._is(one, each) for one in needed)).format(name)

    def _in_the_middle(self, seen: str) -> str:
        return f"You are in the middle of a room. Looking quickly around you, you see {seen}."

    def _is(self, *fact: str) -> bool:
        return fact in self.facts

    def _named(self, each: str) -> str:
        return self.house.names.get(each, each)

    def _listed(self, things: Iterable[str]) -> str:
        return _joined([f"a {self._named(each)}" for each in things])

    def _here(self) -> list[str]:
        location = self.location
        return [each for each in self.house.receptacles if self.house.places.get(each) == location]

    def _inside(self, receptacle: str) -> list[str]:
        return [each for each in self.house.objects if self._is("inreceptacle", each, receptacle)]

    def _accessible(self, receptacle: str) -> bool:
        return not self._is("openable", receptacle) or self._is("opened", receptacle)

    def _type(self, predicate: str, each: str) -> list[str]:
        return [fact[2] for fact in self.facts if fact[:2] == (predicate, each)]

    # --- what can be done ---------------------------------------------------------------------------------------------

    def _go(self, receptacle: str, place: str) -> Command:
        name, agent = self._named(receptacle), self.house.agent
        return Command(
            f"go to {name}",
            lambda then: f"You arrive at {name}. {then.receptacle(receptacle)}",
            true=frozenset({("atlocation", agent, place)}),
            false=frozenset({("atlocation", agent, self.location)}),
        )

    def _at(self, receptacle: str) -> Iterator[Command]:
        """What can be done with a receptacle that the agent stands at."""
        name = self._named(receptacle)
        yield Command(f"examine {name}", lambda then: then.receptacle(receptacle))
        opened = frozenset({("opened", receptacle)})
        if self._is("openable", receptacle) and not self._is("opened", receptacle):
            yield Command(
                f"open {name}", lambda then: f"You open the {name}. {then.receptacle(receptacle)}", true=opened
            )
        elif self._is("openable", receptacle):
            yield Command(f"close {name}", lambda _: f"You close the {name}.", false=opened)
        if self._accessible(receptacle):
            yield from (self._take(each, receptacle) for each in self._inside(receptacle) if self._can_take(each))
            yield from (self._put(each, receptacle) for each in self.held if self._fits(each, receptacle))
        kinds = self._type("receptacletype", receptacle)
        for verb, able, kind, makes, ends in _APPLIANCES:
            if kind in kinds:
                yield from (
                    self._treat(verb, each, receptacle, makes, ends) for each in self.held if self._is(able, each)
                )
        for each in self._inside(receptacle):
            if self._is("toggleable", each):
                yield self._use(each)

    def _can_take(self, each: str) -> bool:
        return self._is("pickupable", each) and not self._is("holdsany", self.house.agent)

    def _fits(self, each: str, receptacle: str) -> bool:
        return any(
            self._is("cancontain", holder, kind)
            for holder in self._type("receptacletype", receptacle)
            for kind in self._type("objecttype", each)
        )

    def _take(self, each: str, receptacle: str) -> Command:
        name, where, agent = self._named(each), self._named(receptacle), self.house.agent
        return Command(
            f"take {name} from {where}",
            lambda _: f"You pick up the {name} from the {where}.",
            true=frozenset({("holds", agent, each), ("holdsany", agent)}),
            false=frozenset({("inreceptacle", each, receptacle), ("objectatlocation", each, self.location)}),
        )

    def _put(self, each: str, receptacle: str) -> Command:
        name, where, agent = self._named(each), self._named(receptacle), self.house.agent
        return Command(
            f"move {name} to {where}",
            lambda _: f"You move the {name} to the {where}.",
            true=frozenset({("inreceptacle", each, receptacle), ("objectatlocation", each, self.location)}),
            false=frozenset({("holds", agent, each), ("holdsany", agent)}),
        )

    def _treat(self, verb: str, each: str, receptacle: str, makes: str, ends: str) -> Command:
        name, where = self._named(each), self._named(receptacle)
        return Command(
            f"{verb} {name} with {where}",
            lambda _: f"You {verb} the {name} using the {where}.",
            true=frozenset({(makes, each)}),
            false=frozenset({(ends, each)}),
        )

    def _use(self, each: str) -> Command:
        name, lit = self._named(each), frozenset({("ison", each)})
        was_on = self._is("ison", each)
        return Command(
            f"use {name}",
            lambda _: f"You turn on the {name}.",
            true=frozenset({("istoggled", each)}) | (frozenset() if was_on else lit),
            false=lit if was_on else frozenset(),
        )

    def _with_what_is_held(self) -> Iterator[Command]:
        """Examining what is held, and slicing with a held knife; what only lies here cannot be examined."""
        for each in self.held:
            yield self._examine(each)
        for knife in self.held:
            if not set(_KNIVES).isdisjoint(self._type("objecttype", knife)):
                for each in self.house.objects:
                    if self._is("sliceable", each) and self._is("objectatlocation", each, self.location):
                        yield self._slice(each, knife)

    def _examine(self, each: str) -> Command:
        return Command(f"examine {self._named(each)}", lambda then: then.object(each))

    def _slice(self, each: str, knife: str) -> Command:
        name, tool = self._named(each), self._named(knife)
        true = frozenset({("issliced", each)})
        return Command(f"slice {name} with {tool}", lambda _: f"You sliced the {name} with the {tool}.", true=true)


class BuiltinWorld:
    """A game in the household of this module."""

    def __init__(self, house: Household) -> None:
        self._house = house
        self._now = house.begin()

    async def reset(self) -> View:
        """The first view."""
        self._now = self._house.begin()
        return self._now.view(self._house.intro())

    async def step(self, command: str) -> View:
        """The view after a command."""
        self._now, said = self._now.do(command.strip())
        return self._now.view(said)

    async def aclose(self) -> None:
        """Nothing to give back."""


def _joined(names: list[str]) -> str:
    """ALFWorld's lists: `a`, `a, and b`, `a, b, and c`."""
    if not names:
        return "nothing"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])}, and {names[-1]}"


_HELP = "Every turn shows the commands that can be given; any other changes nothing."
