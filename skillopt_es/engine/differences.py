"""What of a log does not follow: events, their fields with both values, a line each; and the report of a whole walk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from attrs import asdict, evolve, field, frozen

from skillopt_es.events.catalog import Event, Recorded
from skillopt_es.events.places import Place

_MOST = 5  # the first ones tell the cause; what follows from it may be every field
_WIDTH = 60  # characters: two of them stand on one line of a wide terminal
_ABSENT = object()


@frozen
class Difference:
    """One field that differs: what is recorded, and what the evidence leads to."""

    field: str
    recorded: str
    derived: str

    def __str__(self) -> str:
        return f"{self.field} is {self.recorded}, but follows as {self.derived}"


def differences(recorded: Event, derived: Event) -> tuple[Difference, ...]:
    """The first few fields in which two events of one type differ."""
    return mapping_differences(asdict(recorded), asdict(derived))


def mapping_differences(recorded: Mapping[str, object], derived: Mapping[str, object]) -> tuple[Difference, ...]:
    """The first few keys in which two mappings differ."""
    return tuple(islice(_walk("", recorded, derived), _MOST))


def _walk(path: str, left: object, right: object) -> Iterator[Difference]:
    if left == right:
        return
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in {**left, **right}:
            name = f"{path}.{key}" if path else str(key)
            yield from _walk(name, left.get(key, _ABSENT), right.get(key, _ABSENT))
    elif isinstance(left, tuple | list) and isinstance(right, tuple | list) and len(left) == len(right):
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from _walk(f"{path}[{index}]", one, other)
    else:
        at = _common(left, right) if isinstance(left, str) and isinstance(right, str) else 0
        yield Difference(path, _short(left, at), _short(right, at))


def _common(left: str, right: str) -> int:
    """Where two texts begin to differ, a little before it, so that a long text is shown at the right place."""
    same = next((i for i, (one, other) in enumerate(zip(left, right, strict=False)) if one != other), None)
    position = min(len(left), len(right)) if same is None else same
    return max(0, position - _WIDTH // 3) if max(len(left), len(right)) > _WIDTH else 0


def _short(value: object, start: int = 0) -> str:
    if value is _ABSENT:
        return "absent"
    text = repr(value[start:]) if isinstance(value, str) else repr(value)
    text = f"…{text}" if start else text
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


@frozen
class Mismatch:
    """
    An event that does not follow from what was recorded before it: what is `said` of it.

    One that is a `follow_up` stands after another: its cause may be that one, or its own. One that is `derived` was
    decided again, and came out otherwise.
    """

    seq: int
    event: str
    said: str
    differences: tuple[Difference, ...] = ()
    step: int | None = None
    follow_up: bool = False
    derived: bool = False

    @property
    def message(self) -> str:
        """What is wrong with it, to go on with after its name."""
        return f"does not follow from the evidence: {self.said}" if self.derived else self.said

    def __str__(self) -> str:
        return f"event {self.seq} ({self.event}) {self.message}"


def mismatch(recorded: Recorded, message: str) -> Mismatch:
    """What is wrong with an event, in words."""
    return Mismatch(recorded.seq, type(recorded.event).__name__, message, step=step_of(recorded.event))


def came_out_otherwise(recorded: Recorded, found: tuple[Difference, ...] = (), said: str = "") -> Mismatch:
    """That an event was derived again with another result: in words, or by its fields."""
    said = said or "; ".join(str(difference) for difference in found)
    return evolve(mismatch(recorded, said), differences=found, derived=True)


ILLEGAL = (AssertionError, LookupError, ValueError, TypeError, AttributeError)
"""What folding an event may raise that no run would have recorded at its place."""


def cannot_go_on(recorded: Recorded, error: Exception) -> Mismatch:
    """That what follows an event cannot be told, because the state that it leads to makes no sense."""
    why = f" ({error})" if str(error) else ""
    return mismatch(recorded, f"leads to no state that a run can continue from{why}: what follows it was not checked")


def step_of(event: Event) -> int | None:
    """The step that an event belongs to, if it says so."""
    step: int | None = getattr(event, "step", None)
    return Place(getattr(event, "place", "")).step if step is None else step


def all_of(found: Sequence[Mismatch]) -> tuple[Mismatch, ...]:
    """Mismatches in their order, all but the first as follow-ups."""
    return tuple(evolve(each, follow_up=number > 0) for number, each in enumerate(found))


@frozen(kw_only=True)
class CheckReport:
    """
    How much was derived again, and every event that came out differently, in order.

    `evidence` counts the attempts that analysts were shown; none of them is of a validation or test item.
    `unchecked` counts what could not be derived, because its evidence was erased or an import did not have it.
    """

    events: int
    decisions: int
    rollouts: int
    status: str
    evidence: int = 0
    mismatches: tuple[Mismatch, ...] = ()
    unchecked: Mapping[str, int] = field(factory=dict)

    @property
    def mismatch(self) -> Mismatch | None:
        """The first event that came out differently, if any."""
        return self.mismatches[0] if self.mismatches else None

    @property
    def ok(self) -> bool:
        """Whether every decision follows."""
        return not self.mismatches
