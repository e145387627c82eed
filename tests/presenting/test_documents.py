"""What programs get of a value: its fields, but for the shapes that they know by other names."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from attrs import frozen

from skillopt_es.errors import DataError
from skillopt_es.events.values import Edit, Failed, Measured, Outcome, Score
from skillopt_es.presenting.documents import plain, plain_score
from skillopt_es.projections.fates import Fate
from skillopt_es.projections.intervals import Interval


@frozen
class _Finding:
    where: Path
    outcomes: tuple[Outcome, ...]
    interval: Interval | None
    problem: DataError | None = None


def test_a_value_is_an_object_of_its_fields() -> None:
    """Whatever is in it has the shape that it has alone; what is not there is null."""
    found = _Finding(Path("runs/demo"), (Measured(1, 0.5), Failed("rate_limit", "busy")), Interval(low=0.1, high=0.9))
    assert plain(found) == {
        "where": "runs/demo",
        "outcomes": [
            {"outcome": "measured", "hard": 1, "soft": 0.5},
            {"outcome": "failed", "kind": "rate_limit", "message": "busy"},
        ],
        "interval": [0.1, 0.9],
        "problem": None,
    }
    assert plain(DataError("a bad line", hint="fix it")) == "a bad line"


def test_what_says_nothing_is_null() -> None:
    """A blank name, and a mean of nothing."""
    fate = plain(Fate(path=("a",), reason="chosen", detail="", same_as=""))
    assert fate == {"path": ["a"], "reason": "chosen", "detail": "", "assumed": False, "same_as": None}
    empty = Score(hard=0, soft=0, measured=0, unmeasured=3)
    assert plain_score(empty) == {"hard": None, "soft": None, "measured": 0, "unmeasured": 3}


def test_kinds_are_told_apart_by_a_word() -> None:
    """A proposal says which kind it is; money is a number."""
    edit = plain(Edit(id="e1", op="append", content="Write dates as ISO."))
    assert isinstance(edit, dict)
    assert (edit["type"], edit["op"], edit["origins"]) == ("edit", "append", [])
    assert plain({"cost": Decimal("0.25")}) == {"cost": 0.25}
