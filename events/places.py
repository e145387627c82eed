"""
Places: where in a run something happened. They are written and read here and nowhere else.

A place is a path, from the whole to the detail: `e2/s7/gate`, `e1/slow/current`, `final/test/best`. What is done there
has a place below it: `…/repeat-2` a further evaluation, `…/item/ID` the calls of one item, `…/b0/failure-0` one
question. Such a place of a call is its slot. An algorithm makes its own places with `/`: `Place("search") / "round-3"`.

A place is text, equal to what the log has, so that tables of places can be asked for one that was read as well as for
one that was made. Any text is a place: what it does not say (an epoch, an item) is None.
"""

from __future__ import annotations

import re
from functools import lru_cache

from attrs import frozen

# What a place must be told apart by, seen from the left: the rest of a slot may be an item's id, whatever that says.
_SITE = re.compile(r"(?:e\d+/(?:s\d+/|slow/)?|final/(?:test/)?|eval/)?[^/]+")
_WHEN = re.compile(r"e(?P<epoch>\d+)(?:/s(?P<step>\d+))?(?:/|$)")
_BATCH = re.compile(r"b(\d+)")
_REPEAT = re.compile(r"/repeat-(\d+)(?:/|$)")
_ANEW = re.compile(r"repeat-\d+|reported")
_LAST_NUMBER = re.compile(r"-(\d+)$")
_OWN_CALL = re.compile(r"own-[0-9a-f]{16}(?:-\d+)?")
_TRIED = re.compile(r"try-\d+")
_JUDGED = re.compile(r"judge-(\d+)")
_ITEM = "/item/"

DEEPEST = 3
"""How many parts a site can have."""

STARTS_SQL = (
    "select case when a = 0 or b = 0 or instr(substr(slot, a + b + 1), '/') = 0 then slot"
    " else substr(slot, 1, a + b + instr(substr(slot, a + b + 1), '/') - 1) end"
    " from (select a, instr(substr(slot, a + 1), '/') as b from (select instr(slot, '/') as a))"
)
"""A column `slot` as `starts(DEEPEST)` gives it."""


class Place(str):
    """Where in a run something happened, or where a call was made."""

    __slots__ = ()

    # --- made ------------------------------------------------------------------------------------------------------

    @classmethod
    def of_epoch(cls, epoch: int) -> Place:
        """An epoch."""
        return cls(f"e{epoch}")

    @classmethod
    def of_step(cls, epoch: int, step: int) -> Place:
        """A step; steps are counted through all epochs."""
        return cls(f"e{epoch}/s{step}")

    def __truediv__(self, part: str) -> Place:
        """One part more; raises ValueError for what would be read as something else."""
        if not part or "/" in part or part == "item":
            raise ValueError(f"{part!r:.80} cannot be a part of a place")
        return Place(f"{self}/{part}")

    def in_batch(self, index: int) -> Place:
        """A training batch of a step."""
        return self / f"b{index}"

    def drawn(self, number: int) -> Place:
        """The n-th evaluation of the same text; the first one is at the place itself."""
        return self if number < 2 else self / f"repeat-{number}"

    def graded(self, number: int) -> Place:
        """The n-th grading of the same answers; the first one is at the place itself."""
        return self if number < 2 else self / str(number)

    def analyst(self, kind: str, index: int | str) -> Place:
        """The question to one analyst of a batch."""
        return self / f"{kind}-{index}"

    def merge(self, kind: str, level: int, index: int) -> Place:
        """One merge of a step's patches of one kind."""
        return self.merges / f"{kind}-{level}-{index}"

    def after_step(self, step: int | None) -> Place:
        """A question that is put again after a step, which is another one: more has happened since."""
        return self if step is None else self / f"after-s{step}"

    def of_item(self, item: str) -> Place:
        """The slot of an item's first call; its id stays one part, whatever characters it has."""
        # % comes first here and last in `_unescaped`, or the escapes would be escaped.
        return Place(f"{self}{_ITEM}{item.replace('%', '%25').replace('/', '%2F')}")

    def shown(self, item: str) -> str:
        """An item's result as tables call it: the id as it is. Nobody reads this."""
        return f"{self}/{item}"

    def turn(self, number: int) -> Place:
        """The slot of the n-th call of an item."""
        return self if number < 2 else self / f"turn-{number}"

    def judged(self, number: int) -> Place:
        """The slot of the n-th question to the judge about an item's answer."""
        return self / f"judge-{number}"

    def own_call(self, digest: str, number: int) -> Place:
        """The slot of a call that an agent makes itself, by what it asks; the n-th of the same is another draw."""
        return self / (f"own-{digest}" if number < 2 else f"own-{digest}-{number}")

    def tried(self, number: int) -> Place:
        """The slot below which the n-th attempt at a call makes calls of its own; the first one's are at the call."""
        return self if number < 2 else self / f"try-{number}"

    @property
    def again(self) -> Place:
        """The slot of a question that is repeated because its answer was of no use."""
        return self / "again"

    @property
    def gate(self) -> Place:
        """Where a candidate is drawn for its verdict."""
        return self / "gate"

    @property
    def current(self) -> Place:
        """Where the current skill is drawn: for a step's verdict, or for an epoch's comparison."""
        return self / "current"

    @property
    def standing(self) -> Place:
        """Where the current skill is drawn for the verdict over guidance."""
        return self / "standing"

    @property
    def best(self) -> Place:
        """Where the best skill is drawn."""
        return self / "best"

    @property
    def certified(self) -> Place:
        """Where the certified skill meets the items of the batches here."""
        return self / "certified"

    @property
    def previous(self) -> Place:
        """Where an epoch's first skill is drawn for its comparison."""
        return self / "previous"

    @property
    def reported(self) -> Place:
        """Where a text that was taken is evaluated once more, for the score that is reported."""
        return self / "reported"

    @property
    def slow(self) -> Place:
        """The end of an epoch: its comparison, guidance, and what the gate draws for that."""
        return self / "slow"

    @property
    def merges(self) -> Place:
        """The merges of a step."""
        return self / "merge"

    @property
    def last_merge(self) -> Place:
        """The merge of the results of both kinds of patches."""
        return self.merges / "final"

    # --- read ------------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int | None:
        """The number of its epoch."""
        return _read(self).epoch

    @property
    def step(self) -> int | None:
        """The number of its step."""
        return _read(self).step

    @property
    def site(self) -> Place:
        """The stage that this is part of, where calls are added up; draws, items and questions are all at its site."""
        return _read(self).site

    @property
    def stage(self) -> str:
        """What is done at its site, such as `gate`, `slow/current` or `b0`: the site without its epoch and step."""
        return _read(self).stage

    @property
    def batch(self) -> int | None:
        """The index of its training batch."""
        found = _BATCH.fullmatch(self.stage)
        return int(found[1]) if found and self.step is not None else None

    @property
    def repeat(self) -> int:
        """Which evaluation of the same text it is of."""
        found = _REPEAT.search(self.evaluation)
        return int(found[1]) if found else 1

    @property
    def drawn_anew(self) -> bool:
        """Whether an item's call is made here of a text that was measured before: a new answer is wanted."""
        at = self.evaluation
        return at != self and _ANEW.fullmatch(at.rpartition("/")[2]) is not None

    @property
    def name(self) -> str:
        """Its last part but a repeat's."""
        parts = self.split("/")
        return parts[-2] if len(parts) > 1 and _REPEAT.fullmatch(f"/{parts[-1]}") else parts[-1]

    @property
    def number(self) -> int | None:
        """The number at its end, by which questions of one kind are told apart."""
        found = _LAST_NUMBER.search(self)
        return int(found[1]) if found else None

    @property
    def evaluation(self) -> Place:
        """The place that an item's results are recorded at; of any other place, itself."""
        return Place(self.partition(_ITEM)[0])

    @property
    def item(self) -> str | None:
        """The id of the item whose call was made here."""
        escaped = self.partition(_ITEM)[2].partition("/")[0]
        return _unescaped(escaped) or None

    @property
    def is_own_call(self) -> bool:
        """Whether an agent made this call itself, within its attempt."""
        _, slash, last = self.partition(_ITEM)[2].rpartition("/")  # an item may be called like one
        return bool(slash) and _OWN_CALL.fullmatch(last) is not None

    @property
    def question(self) -> int | None:
        """Which question to the judge about an item's answer this is; None for any other call."""
        _, slash, last = self.partition(_ITEM)[2].rpartition("/")  # an item may be called like one
        found = _JUDGED.fullmatch(last) if slash else None
        return int(found[1]) if found else None

    @property
    def asked_about(self) -> Place:
        """The slot of the attempt, or of the pair of answers, that a question to the judge is about."""
        return Place(self.rpartition("/")[0])

    @property
    def attempt(self) -> Place | None:
        """The slot of the attempt in which an agent made this call itself; None for any other call."""
        if not self.is_own_call:
            return None
        at, _, last = self.rpartition("/")[0].rpartition("/")
        within = at.partition(_ITEM)[2]  # an item may be called like a try
        return Place(at) if within and _TRIED.fullmatch(last) else Place(self.rpartition("/")[0])

    def starts(self, parts: int) -> str:
        """Its first so many parts."""
        return "/".join(self.split("/", parts)[:parts])

    def holds(self, other: str) -> bool:
        """Whether another place is this one or lies in it."""
        return other == self or other.startswith(f"{self}/")

    def is_batch_at(self, other: str) -> bool:
        """Whether this is where a batch was tried directly at another place: `e3/s3/b0` at `e3/s3`."""
        here, _, last = self.rpartition("/")
        return here == other and _BATCH.fullmatch(last) is not None

    def is_grading_of(self, first: str) -> bool:
        """Whether this is where the answers of an evaluation were graded, once or again."""
        return self == first or (Place(first).holds(self) and self[len(first) + 1 :].isdecimal())


@frozen
class _Read:
    site: Place
    stage: str
    epoch: int | None
    step: int | None


@lru_cache(maxsize=8192)
def _read(text: str) -> _Read:
    found, when = _SITE.match(text), _WHEN.match(text)
    site = Place(found[0] if found else "")
    if when is None:
        return _Read(site, site, None, None)
    step = when["step"]
    return _Read(site, site[when.end() :], int(when["epoch"]), None if step is None else int(step))


def _unescaped(item: str) -> str:
    return item.replace("%2F", "/").replace("%25", "%")


def result_named(slot: str) -> tuple[Place, str]:
    """The place and the item that somebody names by a slot: the id's slashes may be escaped or as they are."""
    place, _, item = slot.partition(_ITEM)
    return Place(place), _unescaped(item)


BASELINE = Place("baseline")
"""Where the initial skill is measured."""

SLOW = Place("slow")
"""An epoch's end as its stages are called."""

FINAL = Place("final")
"""All that is evaluated at the end of a run."""

FINAL_VAL = FINAL / "val"
"""Where the final skill is drawn, to be promoted."""

FINAL_BEST = FINAL.best
"""Where the best skill is drawn against it."""

FINAL_FRESH = FINAL / "fresh"
"""Where the best skill meets items that the run has not met yet, for its certificate."""

FINAL_TEST = FINAL / "test"
"""Where the initial, best or final skill is tried on the test items: each at a part of this named after it."""


def evaluated(split: str) -> Place:
    """Where a skill alone is evaluated on a split."""
    return Place("eval") / split


def harvested(candidate: str) -> Place:
    """Where a model is asked what it makes of a candidate task."""
    return Place("harvest") / candidate


def checked(role: str) -> Place:
    """Where a role's model is asked whether it answers."""
    return Place("doctor") / role
