"""
The household of the simulation: how the target plays ALFWorld's games, and what the optimizer sees go wrong in one.

Left to itself the target finds what lies in the open and carries it to its place; all else needs a rule of the skill.
"""

from __future__ import annotations

import re

from attrs import frozen

from skillopt_es.adapters.models.simulated.lapses import forgets
from skillopt_es.adapters.models.simulated.rules import Lesson, Rule
from skillopt_es.ports import ChatRequest

_TASK = re.compile(r"Your task is to: (.*)")
_SEEN = re.compile(r"Your current observation is: (.*?)\n\nYour admissible commands are: \[(.*?)\]", re.DOTALL)
_PAST = re.compile(r"^\[Observation \d+: '(.*?)', Action \d+: '(.*?)'\]$", re.MULTILINE | re.DOTALL)
_SKILL = re.compile(r"^## Skill Knowledge\n(.*?)^You act in a household", re.MULTILINE | re.DOTALL)
_WANTED = re.compile(
    r"look at (?P<lit>\w+) under|put (?:a )?(?:(?P<how>clean|hot|cool|two) )?(?P<what>\w+) in (?P<where>\w+)"
)
_PLACE = re.compile(r"^(?:go to|open|close|.* from|.* to|.* with) (\w+ \d+)$")
_PLAYED = re.compile(r"^type: (?:pick_|look_at_obj)", re.MULTILINE)

OPENING = Rule(
    name="closed places",
    keywords=[r"\bopen\b", r"\bclosed\b"],
    wording="Open every closed receptacle that you come to while you search: what you need may be inside.",
)
CLEANING = Rule(
    name="cleaning",
    keywords=[r"\bclean\b", r"\bsink\w*"],
    wording="For a clean object, take it to the sinkbasin and clean it there before you put it away.",
)
HEATING = Rule(
    name="heating",
    keywords=[r"\b(?:heat|hot)\b", r"\bmicrowave\b"],
    wording="For a hot object, take it to the microwave and heat it there before you put it away.",
)
COOLING = Rule(
    name="cooling",
    keywords=[r"\bcool\b", r"\bfridge\b"],
    wording="For a cool object, take it to the fridge and cool it there before you put it away.",
)
PAIRS = Rule(
    name="pairs",
    keywords=[r"\btwo\b", r"\bsecond\b"],
    wording="For two objects, leave the first one where you have put it and search for the second one.",
)
LIGHT = Rule(
    name="light",
    keywords=[r"\blamp\b|\bdesklamp\b", r"\buse\b"],
    wording="To look at an object under a lamp, carry it to the desklamp and use the lamp.",
)
STYLE = (OPENING, CLEANING, HEATING, COOLING, PAIRS, LIGHT)
LOOKING = Rule(
    name="looking around",
    keywords=[r"\blook around\b", r"\bafter every (?:command|step|action)\b"],
    wording="Look around again after every command.",
)
COUNTING = Rule(
    name="counting",
    keywords=[r"\binventory\b", r"\bbefore every (?:command|step|action)\b"],
    wording="Check the inventory before every command.",
)
HARMFUL = (LOOKING, COUNTING)
CARE = Rule(
    name="care",
    keywords=[r"\bwhat is still to be done\b"],
    wording="Say what is still to be done before you choose a command.",
)
WARNING = "Rules about every single command waste steps: leave them out."

_TREATMENTS = {"clean": (CLEANING, "sinkbasin"), "hot": (HEATING, "microwave"), "cool": (COOLING, "fridge")}
_VERBS = {"clean": "clean", "hot": "heat", "cool": "cool"}


def is_game(request: ChatRequest) -> bool:
    """Whether a question to the target is a step of a game."""
    return any(_SEEN.search(message.content) for message in request.messages if message.role == "user")


def play(request: ChatRequest) -> str:
    """The reply to a step: a thought and a command."""
    prompt = next(message.content for message in reversed(request.messages) if _SEEN.search(message.content))
    thought, command = _player(prompt).next()
    return f"<think>{thought}</think><action>{command}</action>"


def is_played(text: str) -> bool:
    """Whether a question to the optimizer is about games."""
    return _PLAYED.search(text) is not None


def lesson_of(trajectory: str) -> Lesson | None:
    """What a failed game's trajectory shows to be missing."""
    task = _TASK.search(trajectory)
    wanted = _WANTED.search(task[1]) if task else None
    if wanted is None:
        return None
    thing = wanted["lit"] or wanted["what"]
    if f"You pick up the {thing} " not in trajectory:
        return _lesson(OPENING, "An object was never found")
    if wanted["lit"]:
        return _lesson(LIGHT, "The lamp was not used")
    how = wanted["how"]
    if how == "two":
        taken = re.findall(rf"You pick up the ({thing} \d+)", trajectory)
        return _lesson(PAIRS if len(taken) > len(set(taken)) else OPENING, "Only one object was put away")
    if how and f"You {_VERBS[how]} the {thing}" not in trajectory:
        return _lesson(_TREATMENTS[how][0], f"The object was not made {how}")
    return _lesson(OPENING, "The object did not get into its place")


def _lesson(rule: Rule, what: str) -> Lesson:
    return Lesson(kind=rule.name, rule=rule, failure=rule.name, what=what, lacks="the skill has no rule for it")


@frozen
class _Player:
    """The target at one step; it knows nothing but its prompt."""

    task: str
    skill: str
    seen: str
    commands: list[str]
    past: list[tuple[str, str]]

    def next(self) -> tuple[str, str]:
        """A thought and the command."""
        last = self.past[-1][1] if self.past else ""
        if self.past and last != "look" and LOOKING.line_in(self.skill):
            return "I look around after every command.", "look"
        if last != "inventory" and COUNTING.line_in(self.skill):
            return "I check the inventory before every command.", "inventory"
        wanted = _WANTED.search(self.task)
        if wanted is None:
            return "I do not know such a task.", "look"
        held = self._first(rf"examine ({wanted['lit'] or wanted['what']} \d+)")
        if not held:
            return self._search(wanted)
        return self._light(held) if wanted["lit"] else self._carry(held, wanted)

    def _search(self, wanted: re.Match[str]) -> tuple[str, str]:
        thing = wanted["lit"] or wanted["what"]
        stays = wanted["where"] if wanted["how"] == "two" and self._obeys(PAIRS) else ""
        for command in self.commands:
            if command.startswith(f"take {thing} ") and not (stays and f"from {stays} " in command):
                return f"Here is a {thing}.", command
        if self._can_open() and self._obeys(OPENING):
            return "It may be inside.", f"open {self._place}"
        return f"There is no {thing} here.", self._onwards()

    def _light(self, held: str) -> tuple[str, str]:
        if not self._obeys(LIGHT):
            return "I look at it.", f"examine {held}"
        lamp = self._first(r"(use \w+ \d+)")
        return ("The lamp is here.", lamp) if lamp else ("There is no lamp here.", self._onwards())

    def _carry(self, held: str, wanted: re.Match[str]) -> tuple[str, str]:
        how, there = wanted["how"], f"{wanted['where']} 1"
        rule, place = _TREATMENTS.get(how, (None, ""))
        if rule and f"You {_VERBS[how]} the {held}" not in self._remembered and self._obeys(rule):
            treat = self._first(rf"({_VERBS[how]} {held} with \w+ \d+)")
            return f"It has to be {how}.", treat or f"go to {place} 1"
        if f"move {held} to {there}" in self.commands:
            return "It belongs here.", f"move {held} to {there}"
        if self._place == there:
            opens = self._can_open() and self._obeys(OPENING)
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

    def _obeys(self, rule: Rule) -> bool:
        return bool(rule.line_in(self.skill)) and not forgets(rule, f"{rule.name}: {self.task}", self.skill)


def _player(prompt: str) -> _Player:
    task, skill, view = _TASK.search(prompt), _SKILL.search(prompt), _SEEN.search(prompt)
    assert view is not None
    return _Player(
        task=task[1] if task else "",
        skill=skill[1] if skill else "",
        seen=view[1],
        commands=re.findall(r"'([^']*)'", view[2]),
        past=_PAST.findall(prompt),
    )
