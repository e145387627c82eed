"""
How often a run's test split was looked at, and by whom.

A sealed split is opened by an event, each time. Without a seal, that it was looked at is all that is known.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from skillopt_es.events.catalog import Event, RunForked, SealedTestOpened, SkillScored

LOOK_TYPES = ("SealedTestOpened", "SkillScored", "RunForked")
"""The events that looks are made of."""


@frozen(kw_only=True)
class Looks:
    """
    The looks in order, those in the part that a fork shares with its parent included.

    `final` says whether the run's own final evaluation has opened the seal; a fork has one of its own. `unsealed` says
    whether test items were tried without an opening.
    """

    opened: tuple[SealedTestOpened, ...] = ()
    final: bool = False
    unsealed: bool = False

    @property
    def count(self) -> int:
        """How often the split was looked at, at least."""
        return len(self.opened) + self.unsealed

    def after(self, event: SealedTestOpened) -> Looks:
        """With one more look."""
        return evolve(self, opened=(*self.opened, event), final=self.final or event.by == "final")

    def tested(self) -> Looks:
        """Test items were scored; without an opening before it, that is a look nobody announced."""
        return self if self.opened else evolve(self, unsealed=True)

    def forked(self) -> Looks:
        """What the parent looked at was looked at; the fork's own final evaluation is still to come."""
        return evolve(self, final=False)

    def of_evaluation(self, evaluation: str, skill: str) -> SealedTestOpened | None:
        """The look that an evaluation of a skill has had already, if it has."""
        known = (look for look in self.opened if (look.evaluation, look.skill) == (evaluation, skill))
        return next(known, None)


def looks_in(events: Iterable[Event]) -> Looks:
    """The looks of a log: all of its events, or those of LOOK_TYPES."""
    looks = Looks()
    for event in events:
        match event:
            case SealedTestOpened():
                looks = looks.after(event)
            case SkillScored(purpose="test", split="test"):
                looks = looks.tested()
            case RunForked():
                looks = looks.forked()
    return looks
