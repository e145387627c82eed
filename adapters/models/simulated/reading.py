"""What the simulated optimizer reads out of a user message: fenced texts, trajectories, sections, proposed edits."""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import cast

from attrs import frozen

from skillopt_es.adapters.models.simulated.household import missing_in
from skillopt_es.adapters.models.simulated.kinds import Topic, World
from skillopt_es.adapters.models.simulated.worlds import world_of
from skillopt_es.events.values import Json

_FENCED = re.compile(
    r"^(?:(?P<note>before|now):\n)?(?P<fence>~{4,}) (?P<label>[^\n]+)\n(?P<text>.*?)\n(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_HEADING = re.compile(r"^## (.*)$", re.MULTILINE)
_ITEM = re.compile(r"^item: (.+)$", re.MULTILINE)
_RESULT = re.compile(r"^result: (PASS|FAIL)", re.MULTILINE)
_TASK = re.compile(r"^\[task\] (.*?)(?=^\[(?:agent|evaluation|tool|task|system)\] |\Z)", re.MULTILINE | re.DOTALL)
_EVALUATION = re.compile(r"^\[evaluation\] (.*)\Z", re.MULTILINE | re.DOTALL)
_PROPOSALS = re.compile(r"^## Proposed edits: .*\n\s*(?=\[)", re.MULTILINE)
_DECODER = json.JSONDecoder()


@frozen
class Trajectory:
    """One attempt as the optimizer is shown it; `moment` is before or now in a comparison of two skills."""

    text: str
    moment: str = ""

    @property
    def item(self) -> str:
        """The item's id."""
        return _first(_ITEM, self.text)

    @property
    def failed(self) -> bool:
        """Whether it was graded as not solved."""
        return _first(_RESULT, self.text) == "FAIL"

    @property
    def task(self) -> str:
        """What the target was asked."""
        return _first(_TASK, self.text)

    @property
    def topic(self) -> Topic | None:
        """What it shows to be missing: the house style of its kind, or what its world reads from it; else None."""
        world = world_of(self.task)
        if world.missing == "game":
            kind = missing_in(self.text)
            return next((topic for topic in world.topics if topic.kind == kind), None)
        if world.missing == "asked":
            return next((topic for topic in world.topics if topic.is_asked_in(self.task)), None)
        asked = world.topic_of(self.task)
        if asked is None:
            return None
        topic, found = asked
        return topic if topic.wanted_by(_first(_EVALUATION, self.text), found) else None


class Question(str):
    """A user message, read by its parts."""

    @cached_property
    def _blocks(self) -> list[tuple[str, re.Match[str]]]:
        """Every fenced text with the heading that it stands under."""
        blocks: list[tuple[str, re.Match[str]]] = []
        heading, place = "", 0
        for block in _FENCED.finditer(self):
            heading = [heading, *_HEADING.findall(self[place : block.start()])][-1]
            blocks.append((heading, block))
            place = block.end()
        return blocks

    @cached_property
    def outside(self) -> str:
        """The message without its fenced texts."""
        return _FENCED.sub("", self)

    def skill(self, *titles: str) -> str:
        """The skill under one of these headings, all its files together."""
        return self.fenced_under(*titles)

    def fenced_under(self, *titles: str) -> str:
        """All fenced texts under these headings."""
        return "\n".join(block["text"] for heading, block in self._blocks if heading in titles)

    def labelled(self, title: str) -> list[tuple[str, str]]:
        """The fenced texts under a heading, each with its label."""
        return [(block["label"], block["text"]) for heading, block in self._blocks if heading == title]

    def fenced(self, label: str) -> list[str]:
        """The fenced texts whose label begins like this, in order."""
        return [block["text"] for _, block in self._blocks if block["label"].startswith(label)]

    @property
    def trajectories(self) -> list[Trajectory]:
        """The trajectories in order."""
        blocks = [block for _, block in self._blocks if block["label"] == "trajectory"]
        return [Trajectory(block["text"], block["note"] or "") for block in blocks]

    @property
    def world(self) -> World:
        """The world that its trajectories come from; without any, the one of the demo."""
        return world_of(next((trajectory.task for trajectory in self.trajectories), ""))

    def section(self, title: str) -> str:
        """What stands under a heading, up to the next one of the same level."""
        return _first(re.compile(rf"^## {re.escape(title)}.*\n((?:(?!## ).*\n?)*)", re.MULTILINE), self.outside)

    def number(self, pattern: str, default: int) -> int:
        """The number that a pattern's group finds outside fenced texts."""
        found = re.search(pattern, self.outside)
        return int(found[1]) if found else default

    @property
    def proposals(self) -> list[dict[str, Json]]:
        """The edits of a merge question, each with its label, in order."""
        starts = list(_PROPOSALS.finditer(self))
        if not starts:
            return []
        groups, _ = _DECODER.raw_decode(self, starts[-1].end())
        return [cast(dict[str, Json], edit) for group in groups for edit in group["edits"]]


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1].strip() if found else ""
