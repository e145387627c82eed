"""What can be done in a household, with ALFRED's conditions and effects, and the world that does it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import evolve, frozen

from skillopt_es.adapters.environments.alfworld.household import Household, Moment
from skillopt_es.adapters.environments.alfworld.problem import Fact
from skillopt_es.adapters.environments.alfworld.world import NOTHING_HAPPENS, View

_HELP = "Every turn shows the commands that can be given; any other changes nothing."

_KNIVES = ("knifetype", "butterknifetype")
_APPLIANCES = (  # verb, what an object must be, where it is done, what it makes true and what false
    ("clean", "cleanable", "sinkbasintype", "isclean", ""),
    ("heat", "heatable", "microwavetype", "ishot", "iscool"),
    ("cool", "coolable", "fridgetype", "iscool", "ishot"),
)


_Feedback = Callable[[Moment], str]


@frozen
class Command:
    """Something that can be done now: what it makes true and false, and what is then said."""

    text: str
    feedback: _Feedback
    true: frozenset[Fact] = frozenset()
    false: frozenset[Fact] = frozenset()


class BuiltinWorld:
    """A game in a household."""

    def __init__(self, house: Household) -> None:
        self._house = house
        self._now = house.begin()

    async def reset(self) -> View:
        """The first view."""
        self._now = self._house.begin()
        return view(self._now, self._house.intro())

    async def step(self, command: str) -> View:
        """The view after a command."""
        self._now, said = do(self._now, command.strip())
        return view(self._now, said)

    async def aclose(self) -> None:
        """Nothing to give back."""


def after(now: Moment, command: Command) -> Moment:
    """The moment after a command; what it makes true stays true, whatever it makes false."""
    return evolve(now, facts=(now.facts - command.false) | command.true)


def view(now: Moment, observation: str) -> View:
    """What the agent is shown now."""
    won = now.won
    return View(observation, tuple(sorted(each.text for each in commands(now))), won, won)


def commands(now: Moment) -> Iterator[Command]:
    """Everything that can be done now."""
    yield Command("help", lambda _: _HELP)
    yield Command("inventory", Moment.inventory)
    yield Command("look", Moment.look)
    for each in now.house.receptacles:
        place = now.house.places.get(each, now.location)
        if place != now.location:
            yield _go(now, each, place)
    for each in now.here():
        yield from _at(now, each)
    yield from _with_what_is_held(now)


def do(now: Moment, text: str) -> tuple[Moment, str]:
    """The next moment and what is said; nothing happens for what cannot be done."""
    for command in commands(now):
        if command.text == text:
            then = after(now, command)
            return then, command.feedback(then)
    return now, NOTHING_HAPPENS


def _go(now: Moment, receptacle: str, place: str) -> Command:
    name, agent = now.named(receptacle), now.house.agent
    return Command(
        f"go to {name}",
        lambda then: f"You arrive at {name}. {then.receptacle(receptacle)}",
        true=frozenset({("atlocation", agent, place)}),
        false=frozenset({("atlocation", agent, now.location)}),
    )


def _at(now: Moment, receptacle: str) -> Iterator[Command]:
    """What can be done with a receptacle that the agent stands at."""
    name = now.named(receptacle)
    yield Command(f"examine {name}", lambda then: then.receptacle(receptacle))
    opened = frozenset({("opened", receptacle)})
    if now.has("openable", receptacle) and not now.has("opened", receptacle):
        yield Command(f"open {name}", lambda then: f"You open the {name}. {then.receptacle(receptacle)}", true=opened)
    elif now.has("openable", receptacle):
        yield Command(f"close {name}", lambda _: f"You close the {name}.", false=opened)
    if now.accessible(receptacle):
        yield from (_take(now, each, receptacle) for each in now.inside(receptacle) if _can_take(now, each))
        yield from (_put(now, each, receptacle) for each in now.held if _fits(now, each, receptacle))
    kinds = now.types("receptacletype", receptacle)
    for verb, able, kind, makes, ends in _APPLIANCES:
        if kind in kinds:
            yield from (_treat(now, verb, each, receptacle, makes, ends) for each in now.held if now.has(able, each))
    for each in now.inside(receptacle):
        if now.has("toggleable", each):
            yield _use(now, each)


def _can_take(now: Moment, each: str) -> bool:
    return now.has("pickupable", each) and not now.has("holdsany", now.house.agent)


def _fits(now: Moment, each: str, receptacle: str) -> bool:
    return any(
        now.has("cancontain", holder, kind)
        for holder in now.types("receptacletype", receptacle)
        for kind in now.types("objecttype", each)
    )


def _take(now: Moment, each: str, receptacle: str) -> Command:
    name, where, agent = now.named(each), now.named(receptacle), now.house.agent
    return Command(
        f"take {name} from {where}",
        lambda _: f"You pick up the {name} from the {where}.",
        true=frozenset({("holds", agent, each), ("holdsany", agent)}),
        false=frozenset({("inreceptacle", each, receptacle), ("objectatlocation", each, now.location)}),
    )


def _put(now: Moment, each: str, receptacle: str) -> Command:
    name, where, agent = now.named(each), now.named(receptacle), now.house.agent
    return Command(
        f"move {name} to {where}",
        lambda _: f"You move the {name} to the {where}.",
        true=frozenset({("inreceptacle", each, receptacle), ("objectatlocation", each, now.location)}),
        false=frozenset({("holds", agent, each), ("holdsany", agent)}),
    )


def _treat(now: Moment, verb: str, each: str, receptacle: str, makes: str, ends: str) -> Command:
    name, where = now.named(each), now.named(receptacle)
    return Command(
        f"{verb} {name} with {where}",
        lambda _: f"You {verb} the {name} using the {where}.",
        true=frozenset({(makes, each)}),
        false=frozenset({(ends, each)}),
    )


def _use(now: Moment, each: str) -> Command:
    name, lit = now.named(each), frozenset({("ison", each)})
    was_on = now.has("ison", each)
    return Command(
        f"use {name}",
        lambda _: f"You turn on the {name}.",
        true=frozenset({("istoggled", each)}) | (frozenset() if was_on else lit),
        false=lit if was_on else frozenset(),
    )


def _with_what_is_held(now: Moment) -> Iterator[Command]:
    """Examining what is held, and slicing with a held knife; what only lies here cannot be examined."""
    for each in now.held:
        yield _examine(now, each)
    for knife in now.held:
        if not set(_KNIVES).isdisjoint(now.types("objecttype", knife)):
            for each in now.house.objects:
                if now.has("sliceable", each) and now.has("objectatlocation", each, now.location):
                    yield _slice(now, each, knife)


def _examine(now: Moment, each: str) -> Command:
    return Command(f"examine {now.named(each)}", lambda then: then.object(each))


def _slice(now: Moment, each: str, knife: str) -> Command:
    name, tool = now.named(each), now.named(knife)
    true = frozenset({("issliced", each)})
    return Command(f"slice {name} with {tool}", lambda _: f"You sliced the {name} with the {tool}.", true=true)
