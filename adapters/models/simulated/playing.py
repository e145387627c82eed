"""The simulated target at ALFWorld's games: it finds what lies in the open; all else needs a rule of the skill."""

from __future__ import annotations

import re

from attrs import frozen

from skillopt_es.adapters.models.simulated.household import TREATMENTS, wanted_in
from skillopt_es.adapters.models.simulated.reminders import forgets
from skillopt_es.adapters.models.simulated.worlds import worlds
from skillopt_es.ports import ChatRequest

_SEEN = re.compile(r"Your current observation is: (.*?)\n\nYour admissible commands are: \[(.*?)\]", re.DOTALL)
_PAST = re.compile(r"^\[Observation \d+: '(.*?)', Action \d+: '(.*?)'\]$", re.MULTILINE | re.DOTALL)
_SKILL = re.compile(r"^## Skill Knowledge\n(.*?)^You act in a household", re.MULTILINE | re.DOTALL)
_PLACE = re.compile(r"^(?:go to|open|close|.* from|.* to|.* with) (\w+ \d+)$")


def is_game(request: ChatRequest) -> bool:
    """Whether a question to the target is a step of a game."""
    return any(_SEEN.search(message.content) for message in request.messages if message.role == "user")


def play(request: ChatRequest) -> str:
    """The reply to a step: a thought and a command."""
    prompt = next(message.content for message in reversed(request.messages) if _SEEN.search(message.content))
    thought, command = _player(prompt).next()
    return f"<think>{thought}</think><action>{command}</action>"


@frozen
class _Player:
    """The target at one step; it knows nothing but its prompt."""

    wanted: re.Match[str] | None
    skill: str
    seen: str
    commands: list[str]
    past: list[tuple[str, str]]

    def next(self) -> tuple[str, str]:
        """A thought and the command."""
        last = self.past[-1][1] if self.past else ""
        habits = {rule.name for rule in worlds()["household"].harmful if rule.line_in(self.skill)}
        if self.past and last != "look" and "looking around" in habits:
            return "I look around after every command.", "look"
        if last != "inventory" and "counting" in habits:
            return "I check the inventory before every command.", "inventory"
        wanted = self.wanted
        if wanted is None:
            return "I do not know such a task.", "look"
        held = self._first(rf"examine ({wanted['lit'] or wanted['what']} \d+)")
        if not held:
            return self._search(wanted)
        return self._light(held) if wanted["lit"] else self._carry(held, wanted)

    def _search(self, wanted: re.Match[str]) -> tuple[str, str]:
        thing = wanted["lit"] or wanted["what"]
        stays = wanted["where"] if wanted["how"] == "two" and self._obeys("pairs") else ""
        for command in self.commands:
            if command.startswith(f"take {thing} ") and not (stays and f"from {stays} " in command):
                return f"Here is a {thing}.", command
        if self._can_open() and self._obeys("closed places"):
            return "It may be inside.", f"open {self._place}"
        return f"There is no {thing} here.", self._onwards()

    def _light(self, held: str) -> tuple[str, str]:
        if not self._obeys("light"):
            return "I look at it.", f"examine {held}"
        lamp = self._first(r"(use \w+ \d+)")
        return ("The lamp is here.", lamp) if lamp else ("There is no lamp here.", self._onwards())

    def _carry(self, held: str, wanted: re.Match[str]) -> tuple[str, str]:
        how, there = wanted["how"], f"{wanted['where']} 1"
        kind, place, verb = TREATMENTS.get(how, ("", "", ""))
        if kind and f"You {verb} the {held}" not in self._remembered and self._obeys(kind):
            treat = self._first(rf"({verb} {held} with \w+ \d+)")
            return f"It has to be {how}.", treat or f"go to {place} 1"
        if f"move {held} to {there}" in self.commands:
            return "It belongs here.", f"move {held} to {there}"
        if self._place == there:
            opens = self._can_open() and self._obeys("closed places")
            return "I cannot put it here.", f"open {there}" if opens else "look"
        return "I carry it to its place.", f"go to {there}"

    @property
    def _place(self) -> str:
        """Where it is, as far as it remembers."""
        found = (_PLACE.search(command) for _, command in reversed(self.past))
        return next((each[1] for each in found if each), "")

    @property
    def _remembered(self) -> str:
        return "\n".join([*(seen for seen, _ in self.past), self.seen])

    def _can_open(self) -> bool:
        return f"open {self._place}" in self.commands

    def _onwards(self) -> str:
        """To the next place in the order of their names, and from the last one to the first."""
        places = [each.removeprefix("go to ") for each in self.commands if each.startswith("go to ")]
        return f"go to {next((each for each in places if each > self._place), places[0])}"

    def _first(self, pattern: str) -> str:
        """What a pattern finds in the first command that it fits."""
        found = (re.fullmatch(pattern, command) for command in self.commands)
        return next((each[1] for each in found if each), "")

    def _obeys(self, kind: str) -> bool:
        rule = next(rule for rule in worlds()["household"].style if rule.name == kind)
        assert self.wanted is not None
        # The lapse is the task's: what slips its mind does so at every step.
        task = f"{rule.name}: {self.wanted.string}"
        return bool(rule.line_in(self.skill)) and not forgets(rule, task, self.skill)


def _player(prompt: str) -> _Player:
    skill, view = _SKILL.search(prompt), _SEEN.search(prompt)
    assert view is not None
    return _Player(
        wanted=wanted_in(prompt),
        skill=skill[1] if skill else "",
        seen=view[1],
        commands=re.findall(r"'([^']*)'", view[2]),
        past=_PAST.findall(prompt),
    )
