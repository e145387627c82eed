"""
Worlds in which only the form of a folder matters: one long skill, or a short one for each part of what it says.

The agent opens a single skill, the one whose description names most of what its task is about. It holds so many words
of what it reads: of a longer text it remembers a part, by chance that the seed fixes. The manager knows both forms and
proposes the other one at each epoch's end, however good the folder is; so the gate alone decides which is kept.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping

from attrs import frozen

import skillopt_es as so
from skillopt_es.ports import ToolCall

PARTS = ("amber", "birch", "cedar", "daisy", "ebony", "fennel")
FORMS = ("one long", "several short")
LONG = "handbook"
_LISTED = re.compile(r"^- ([a-z0-9-]+): (.*)$", re.MULTILINE)
_RULE = re.compile(r"^For (\w+), write (\w+)", re.MULTILINE)
_FILLER = "It is said in so many words, with where it comes from and whom to ask about it, that nobody can miss it."


@frozen
class World:
    """How many parts a task needs at once, and how many words the agent can hold."""

    name: str
    needs: int
    holds: int
    better: str


WORLDS = {
    each.name: each
    for each in (
        World("forgets what is long", needs=1, holds=60, better="several short"),
        World("needs two things at once", needs=2, holds=1_000, better="one long"),
    )
}


@frozen
class Task:
    """A task: which parts it needs, and the word that goes in front."""

    id: str
    parts: tuple[str, ...]
    word: str

    @property
    def asked(self) -> str:
        """What the agent is told."""
        return f"Task {self.word} needs {' and '.join(self.parts)}."

    @property
    def expected(self) -> str:
        """The right answer."""
        return "-".join((self.word, *(part[::-1] for part in self.parts)))


def tasks(world: World, seed: int, split: str, many: int) -> list[Task]:
    """Tasks that need every part alike."""
    rng = random.Random(f"{world.name} {seed} {split}")
    found = []
    for number in range(many):
        first = PARTS[number % len(PARTS)]
        others = rng.sample([part for part in PARTS if part != first], world.needs - 1)
        found.append(Task(f"{split}{number}", (first, *others), f"w{rng.randrange(1000)}"))
    return found


def _section(part: str) -> str:
    return f"For {part}, write {part[::-1]}.\n{_FILLER}"


def folder(form: str) -> dict[str, tuple[str, str]]:
    """Descriptions and texts by name; both forms say the same."""
    if form == "one long":
        said = f"How tasks about {', '.join(PARTS)} are answered."
        return {LONG: (said, "\n\n".join(map(_section, PARTS)))}
    return {f"{part}-tasks": (f"How tasks about {part} are answered.", _section(part)) for part in PARTS}


def opened(listed: Mapping[str, str], parts: tuple[str, ...]) -> str | None:
    """The one skill that an agent opens: it names most of the parts, and is the first of those that do."""
    named = {skill: sum(part in said for part in parts) for skill, said in listed.items()}
    best = max(named, key=lambda skill: named[skill], default=None)
    return best if best is not None and named[best] else None


def answered(world: World, seed: int, asked: str, text: str) -> str:
    """The answer after reading a text, of which it remembers what it can hold."""
    word, parts = asked.split()[1], re.findall(r"\w+", asked)[3::2]
    share = world.holds / max(1, len(text.split()))
    known = {part: rule for part, rule in _RULE.findall(text) if _chance(seed, asked, part) < share}
    return "-".join((word, *(known.get(part, "unknown") for part in parts)))


def _chance(*parts: object) -> float:
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:8], 16) / 2**32


def score(world: World, seed: int, skills: Mapping[str, tuple[str, str]], many: int = 300) -> float:
    """The share of fresh tasks that are solved with a folder."""
    fresh = tasks(world, seed, "fresh", many)
    listed = {name: said for name, (said, _) in skills.items()}
    right = 0
    for task in fresh:
        skill = opened(listed, task.parts)
        right += answered(world, seed, task.asked, skills[skill][1] if skill else "") == task.expected
    return right / many


class Agent:
    """The target: looks at the list, opens one skill, answers."""

    def __init__(self, world: World, seed: int) -> None:
        self._world, self._seed = world, seed

    def __call__(self, request: so.ChatRequest) -> str | so.ChatReply:
        """An answer, or a call that opens a skill."""
        asked = next(each.content for each in request.messages if each.role == "user").strip()
        read = [json.loads(each.content) for each in request.messages if each.role == "tool"]
        listed = dict(_LISTED.findall(request.messages[0].content)) if request.tools else {}
        skill = opened(listed, tuple(re.findall(r"\w+", asked)[3::2]))
        if skill is not None and not read:
            call = ToolCall("c0", "skill_view", json.dumps({"skill_id": skill}))
            return so.ChatReply(text="", finish="tools", tool_calls=(call,))
        text = "\n".join(str(each.get("content", "")) for each in read)
        return answered(self._world, self._seed, asked, text)


def manager(request: so.ChatRequest) -> str:
    """At an epoch's end it asks for the other form; about single attempts it has nothing to say."""
    if request.stage != "meta_skill":
        return '{"edits": []}'
    listing = request.messages[-1].content.split("## Names and descriptions")[1].split("##")[0]
    there = [name for name, _ in _LISTED.findall(listing)]
    kind, form = ("split", "several short") if LONG in there else ("merge", "one long")
    into = list(_parts(form))
    return json.dumps({"changes": [{"kind": kind, "skills": there, "into": into}]})


def _parts(form: str) -> Iterator[dict[str, str]]:
    for name, (said, text) in folder(form).items():
        yield {"name": name, "description": said, "content": text}
