"""The simulated target: it follows the last line of its skill that fits, and knows nothing else."""

from __future__ import annotations

import random
from collections import Counter
from threading import Lock

from attrs import define, field

from worlds.language import Op, answer, followed, questions
from worlds.made import World


@define
class Target:
    """
    Answers from the system text and the question.

    Some questions of a flaky world, and some calls of a noisy one, it answers by the toss of a coin: the n-th asking of
    one request always falls the same way, so that a run can be repeated.
    """

    world: World
    asked: Counter[tuple[str, str]] = field(factory=Counter)
    _lock: Lock = field(factory=Lock)

    def __call__(self, skill: str, question: str) -> str:
        """The answer to a question under a skill."""
        found = next(iter(questions(question)), None)
        if found is None:
            return "I see no task."
        _, _, parts, number = found
        if self.world.noise or self.world.tosses(question.strip()):
            tossed = self._tossed(skill, question)
            if tossed is not None:
                return answer([(part, self.world.truth[part].of(number) if tossed else number) for part in parts])
        if self.world.overlooks(skill, question.strip()):
            return answer([(part, number) for part in parts])
        heeded = self.world.heeded(skill)
        return answer([(part, (followed(heeded, part) or Op("as it is")).of(number)) for part in parts])

    def _tossed(self, skill: str, question: str) -> bool | None:
        """Whether the coin falls for the right answer; None where none is tossed."""
        with self._lock:
            self.asked[skill, question] += 1
            times = self.asked[skill, question]
        draw = random.Random(f"{skill}\n{question}\n{times}")
        heads = draw.random() < 0.5
        return heads if self.world.tosses(question.strip()) or draw.random() < self.world.noise else None
