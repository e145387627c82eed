"""
What a run's calls cost: a pure fold over the journal, by stage, role, step, epoch, evaluation and place.

A provider that does not report a number has not reported 0: a tally keeps apart what was counted and how many calls
said nothing, or not all. Every attempt on the wire counts, also one whose reply could not be used.

Counted besides: calls that were made ahead of a verdict, or not at all because their answer was known; and those of an
imported run, as the trainer that made them counted them, for there is no journal of them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Generic, TypeVar

from attrs import define, field, fields, frozen

from skillopt_es.events.catalog import (
    Event,
    Recorded,
    RunForked,
    RunImported,
    RunPaused,
    RunResumed,
    RunStarted,
    StepImported,
)
from skillopt_es.events.journal import CallRow, Charge, ChargeRow, ChargeSum, FinishedCall
from skillopt_es.events.places import DEEPEST, Place
from skillopt_es.events.requests import KINDS, OWN_CALLS, TOLD_COST, TryTokens, attempt_in, charged
from skillopt_es.events.values import ImportedUsage
from skillopt_es.projections.prices import Price, Prices, cost_of

NO_PRICES = Prices()


@frozen
class Tally:
    """A count of tokens: the sum of what was reported, and how many calls did not report it, or not for each try."""

    reported: int = 0
    silent: int = 0
    speaking: int = 0

    @property
    def known(self) -> int | None:
        """The sum, at least; None when no call reported anything."""
        return None if self.silent and not self.speaking else self.reported

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.reported + other.reported, self.silent + other.silent, self.speaking + other.speaking)


@frozen
class Money:
    """A sum of costs, and how many calls cost an unknown amount: those without a price, or with tokens untold."""

    amount: Decimal = Decimal(0)
    unknown: int = 0
    priced: int = 0

    @property
    def known(self) -> Decimal | None:
        """The sum, at least; None when nothing is known of any call."""
        return None if self.unknown and not self.priced else self.amount

    def __add__(self, other: Money) -> Money:
        return Money(self.amount + other.amount, self.unknown + other.unknown, self.priced + other.priced)


@frozen(kw_only=True)
class UsageSums:
    """The cost of a group of calls; `tries` counts attempts on the wire, those that were repeated too."""

    calls: int = 0
    failed: int = 0
    tries: int = 0
    input: Tally = field(factory=Tally)
    output: Tally = field(factory=Tally)
    cached: Tally = field(factory=Tally)
    reasoning: Tally = field(factory=Tally)
    cost: Money = field(factory=Money)

    def __add__(self, other: UsageSums) -> UsageSums:
        return UsageSums(
            **{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(UsageSums)}
        )


@frozen(kw_only=True)
class RunUsage:
    """
    The usage of a run, whole and by group; groups stand in the order in which their first call was recorded.

    An evaluation is a whole pass over validation, test or comparison items; None is what lies outside of all groups.
    """

    total: UsageSums
    by_stage: Mapping[str, UsageSums]
    by_role: Mapping[str, UsageSums]
    by_step: Mapping[int | None, UsageSums]
    by_epoch: Mapping[int | None, UsageSums]
    by_evaluation: Mapping[str | None, UsageSums]
    by_place: Mapping[str, UsageSums]


def usage_of(
    rows: Iterable[CallRow | ChargeRow], prices: Prices = NO_PRICES, sums: Iterable[ChargeSum] = ()
) -> RunUsage:
    """
    The usage of all these calls and sums; None is the key of what lies outside every step, epoch or evaluation.

    A repeat is no call, for nobody was asked; nor is an agent's attempt whose own calls are counted.
    """
    finest = _Groups[tuple[str, str, str]]()  # each call is added once, and what these few come to seven times
    firsts: dict[tuple[str, str, str], int] = {}
    for each in sums:
        key = (each.stage, each.role, each.start)
        firsts[key] = min(each.first, firsts.get(key, each.first))
        finest.at(key).add_many(each, prices.by_role.get(each.role))
    for row in rows:
        call = row.call
        if call.repeats or asks_itself(call):
            continue
        key = (call.stage, call.role, Place(call.slot).starts(DEEPEST))
        firsts[key] = min(row.n, firsts.get(key, row.n))
        finest.at(key).add(_counted(call, prices.by_role.get(call.role)))
    total = _Sum()
    stages, roles, places = _Groups[str](), _Groups[str](), _Groups[str]()
    steps, epochs = _Groups[int | None](), _Groups[int | None]()
    evaluations = _Groups[str | None]()
    for (stage, role, start), part in sorted(finest.sums.items(), key=lambda each: firsts[each[0]]):
        where = Place(start)
        evaluation = where.site if stage == "rollout" and where.batch is None else None
        for group in (
            total,
            stages.at(stage),
            roles.at(role),
            steps.at(where.step),
            epochs.at(where.epoch),
            evaluations.at(evaluation),
            places.at(where.site),
        ):
            group.join(part)
    return RunUsage(
        total=total.usage,
        by_stage=stages.usages,
        by_role=roles.usages,
        by_step=steps.usages,
        by_epoch=epochs.usages,
        by_evaluation=evaluations.usages,
        by_place=places.usages,
    )


def crashes(events: Iterable[Recorded]) -> int:
    """How often a writer ended without a pause: calls that were in flight then are in no journal."""
    resting, count = False, 0
    for recorded in events:
        match recorded.event:
            case RunForked():  # what stands before it is the parent's, and so are its crashes
                resting, count = True, 0
            case RunPaused():
                resting = True
            case RunStarted():
                resting = False
            case RunResumed():
                resting, count = False, count + (not resting)
    return count


# --- one call ------------------------------------------------------------------------------------------------------


@frozen
class _Counted:
    """One call: the tokens of each kind that are known, the kinds of which some are not, and what it cost at least."""

    failed: bool
    tries: int
    tokens: tuple[int | None, ...]
    silent: tuple[bool, ...]
    amount: Decimal | None
    unknown_cost: bool


def _counted(call: FinishedCall | Charge, price: Price | None) -> _Counted:
    attempts, tries = attempts_of(call)
    told = told_cost(call)
    columns = [[attempt[kind] for attempt in attempts] for kind in range(len(KINDS))]
    known = [[count for count in column if count is not None] for column in columns]
    costs = [] if price is None else [cost_of(price, input=a[0], output=a[1], cached=a[2]) for a in attempts]
    something = any(a[0] is not None or a[1] is not None for a in attempts) or not attempts
    reckoned = sum((c.amount for c in costs), Decimal(0)) if price and something else None
    return _Counted(
        failed=call.outcome == "failed",
        tries=tries,
        tokens=tuple(sum(column) if column else None for column in known),
        silent=tuple(None in column for column in columns),
        amount=reckoned if told is None else told,
        unknown_cost=told is None and (price is None or not all(c.exact for c in costs)),
    )


def told_cost(call: FinishedCall | Charge) -> Decimal | None:
    """
    What an agent says that it spent: it stands among the tries, and comes before what its tokens would cost.

    Where it made calls of its own, these say it.
    """
    rows = [] if TOLD_COST not in call.tries else json.loads(call.tries)
    if any(row["kind"] == OWN_CALLS for row in rows):
        return None
    return next((Decimal(row["message"]) for row in rows if row["kind"] == TOLD_COST), None)


def asks_itself(call: FinishedCall | Charge) -> bool:
    """Whether this is an agent's attempt whose every try made calls of its own: what it took, these say."""
    return OWN_CALLS in call.tries and not attempts_of(call)[1]


def attempts_of(call: FinishedCall | Charge) -> tuple[list[TryTokens], int]:
    """
    The tokens of every attempt that may have been charged, and how many attempts there were in all.

    A try in which an agent made calls of its own is none: these are.
    """
    rows = [] if call.tries == "[]" else json.loads(call.tries)
    own = any(row["kind"] == OWN_CALLS for row in rows)
    rows = [row for row in rows if row["kind"] not in (TOLD_COST, OWN_CALLS) and not row.get(OWN_CALLS)]
    answer = (call.input_tokens, call.output_tokens, call.cached_tokens, call.reasoning_tokens)
    answered = answer if call.outcome == "answered" and not own else None
    made = answered is not None and not call.repeats
    return charged(map(attempt_in, rows), answered, call.error_kind), len(rows) + made


# --- sums ----------------------------------------------------------------------------------------------------------


@define
class _Sum:
    """A usage that grows in place, for a journal is long."""

    calls: int = 0
    failed: int = 0
    tries: int = 0
    reported: list[int] = field(factory=lambda: [0] * len(KINDS))
    silent: list[int] = field(factory=lambda: [0] * len(KINDS))
    speaking: list[int] = field(factory=lambda: [0] * len(KINDS))
    amount: Decimal = Decimal(0)
    unknown: int = 0
    priced: int = 0

    def add(self, one: _Counted) -> None:
        """With one more call."""
        self.calls += 1
        self.failed += one.failed
        self.tries += one.tries
        for kind, tokens in enumerate(one.tokens):
            self.silent[kind] += one.silent[kind]
            if tokens is not None:
                self.reported[kind] += tokens
                self.speaking[kind] += 1
        self.unknown += one.unknown_cost
        if one.amount is not None:
            self.amount += one.amount
            self.priced += 1

    def add_many(self, some: ChargeSum, price: Price | None) -> None:
        """With calls that were answered at once: each said the same kinds of tokens, and money is in proportion."""
        columns = (some.input_tokens, some.output_tokens, some.cached_tokens, some.reasoning_tokens)
        self.calls += some.calls
        self.tries += some.calls
        for kind, tokens in enumerate(columns):
            self.silent[kind] += some.calls if tokens is None else 0
            if tokens is not None:
                self.reported[kind] += tokens
                self.speaking[kind] += some.calls
        if price is None:
            self.unknown += some.calls
            return
        cost = cost_of(price, input=columns[0], output=columns[1], cached=columns[2])
        self.unknown += 0 if cost.exact else some.calls
        if columns[0] is not None or columns[1] is not None:
            self.amount += cost.amount
            self.priced += some.calls

    def join(self, other: _Sum) -> None:
        """With all the calls of another sum."""
        self.calls += other.calls
        self.failed += other.failed
        self.tries += other.tries
        for kind in range(len(KINDS)):
            self.reported[kind] += other.reported[kind]
            self.silent[kind] += other.silent[kind]
            self.speaking[kind] += other.speaking[kind]
        self.amount += other.amount
        self.unknown += other.unknown
        self.priced += other.priced

    @property
    def usage(self) -> UsageSums:
        """Its cost."""
        tallies = {
            name: Tally(self.reported[kind], self.silent[kind], self.speaking[kind]) for kind, name in enumerate(KINDS)
        }
        money = Money(self.amount, self.unknown, self.priced)
        return UsageSums(calls=self.calls, failed=self.failed, tries=self.tries, cost=money, **tallies)


K = TypeVar("K")


@define
class _Groups(Generic[K]):
    """Sums by key."""

    sums: dict[K, _Sum] = field(factory=dict)

    def at(self, key: K) -> _Sum:
        """The sum of a key."""
        found = self.sums.get(key)
        if found is None:
            found = self.sums[key] = _Sum()
        return found

    @property
    def usages(self) -> dict[K, UsageSums]:
        """The cost of each."""
        return {key: one.usage for key, one in self.sums.items()}


@frozen(kw_only=True)
class Ahead:
    """What was asked ahead, the part of it that nobody wanted in the end, and how many repeats saved a call."""

    made: UsageSums
    wasted: UsageSums
    repeats: int


@define
class AheadTally:
    """Gathers what was asked ahead while somebody else reads the journal."""

    _made: dict[str, CallRow | ChargeRow] = field(factory=dict)
    _asked_otherwise: set[str] = field(factory=set)
    _repeats: int = 0

    def passing(self, rows: Iterable[CallRow | ChargeRow]) -> Iterator[CallRow | ChargeRow]:
        """The same rows, after a look at each."""
        for row in rows:
            call = row.call
            self._repeats += bool(call.repeats)
            if call.ahead:
                self._made[call.slot] = row
            elif call.slot in self._made and call.request_digest != self._made[call.slot].call.request_digest:
                self._asked_otherwise.add(call.slot)
            yield row

    def result(self, accepted: Collection[int], prices: Prices = NO_PRICES, *, last_step: int | None = None) -> Ahead:
        """
        The calls made ahead; `accepted` are the steps whose candidate was taken, `last_step` is the last step.

        A call is waste when the candidate of the step before its own was taken, when its place asked something else, or
        when the training ended before its step.
        """
        wasted = [
            row
            for slot, row in self._made.items()
            if slot in self._asked_otherwise
            or _step(slot) - 1 in accepted
            or (last_step is not None and _step(slot) > last_step)
        ]
        made, lost = usage_of(self._made.values(), prices).total, usage_of(wasted, prices).total
        return Ahead(made=made, wasted=lost, repeats=self._repeats)


def _step(slot: str) -> int:
    step = Place(slot).step
    assert step is not None  # nothing but a step's own tasks is tried ahead
    return step


WHOLE_RUN = "run"
"""What an imported run calls its whole time."""


@frozen(kw_only=True)
class UsageThere:
    """Calls and tokens by stage and by step; `whole` says whether the stages' counts are those of the whole run."""

    by_stage: Mapping[str, ImportedUsage]
    by_step: Mapping[int, ImportedUsage]
    whole: bool

    @property
    def total(self) -> ImportedUsage | None:
        """The counts of the whole run; None where they are of the recorded steps only."""
        return together(self.by_stage.values()) if self.whole else None


def usage_there(events: Iterable[Event]) -> UsageThere | None:
    """The counts of an imported run's events; None for a run of our own."""
    imported: RunImported | None = None
    steps: list[StepImported] = []
    for event in events:
        if isinstance(event, RunImported):
            imported = event
        elif isinstance(event, StepImported):
            steps.append(event)
    if imported is None:
        return None
    by_stage: dict[str, list[ImportedUsage]] = {}
    for step in steps:
        for stage, usage in step.usage.items():
            by_stage.setdefault(stage, []).append(usage)
    summed = {stage: together(rows) for stage, rows in by_stage.items()}
    whole = bool(imported.usage) and all(_covers(imported.usage.get(stage), row) for stage, row in summed.items())
    return UsageThere(
        by_stage=imported.usage if whole else summed,
        by_step={step.step: together(step.usage.values()) for step in steps},
        whole=whole,
    )


def _covers(total: ImportedUsage | None, part: ImportedUsage) -> bool:
    """Whether a total is one: the original's is that of its last process only."""
    if total is None or total.calls is None or part.calls is None:
        return total is not None
    return total.calls >= part.calls


def together(rows: Iterable[ImportedUsage]) -> ImportedUsage:
    """Several counts as one; what one of them does not say is unknown, and so is the sum of none."""
    each = list(rows)
    return ImportedUsage(
        calls=_sum([row.calls for row in each]),
        input_tokens=_sum([row.input_tokens for row in each]),
        output_tokens=_sum([row.output_tokens for row in each]),
    )


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
