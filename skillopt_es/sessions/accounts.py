"""
What a run has used so far against its budget, and the account of the session that goes on with it.

A budget holds over all sessions of a run. A fork begins at nothing: what came along from its parent is not its own.

Calls under a budget that have started stand in `in-flight.jsonl` in the run folder, one line a try. A killed process
leaves them in no journal, though they may have been paid for: whoever goes on with the run compares the lines with the
journal and records what is missing, at its worst, in `RunResumed`. An orderly end leaves no file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import TextIO, TypeVar, cast

from attrs import evolve, field, frozen, validators

from skillopt_es.config import RunConfig
from skillopt_es.config.backends import is_own_agent
from skillopt_es.config.draft import ASKED
from skillopt_es.engine.budget import (
    NOTHING,
    Bound,
    Caps,
    Minutes,
    OwnAccount,
    Spent,
    Tariff,
    bound_of,
    caps_of,
    longest_answer,
    silent,
    used_words,
)
from skillopt_es.engine.steering import Asked, OrderRefused, check_order
from skillopt_es.errors import BudgetReached, ConfigError
from skillopt_es.events.catalog import RunForked, RunResumed, only
from skillopt_es.events.erasures import ErasedText
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.faults import read_fault
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.plain import read_plain
from skillopt_es.events.requests import UNTOLD, requests_sent
from skillopt_es.events.strict import MISFITS, strict_converter
from skillopt_es.events.values import Json, LostCall, Role
from skillopt_es.ports import ChatModel, is_unbounded
from skillopt_es.projections.prices import prices_in
from skillopt_es.projections.state import AnyState
from skillopt_es.projections.usage import asks_itself, attempts_of
from skillopt_es.runs.durations import durations, moments_of

FILE = "in-flight.jsonl"

T = TypeVar("T")
_CONVERTER = strict_converter(detailed=False)
_COUNT = (validators.ge(0), validators.lt(2**63))  # what SQLite and every reader of JSON can hold
# How long an erased text was is not known: a budget then counts too much rather than too little.
_MOST_BYTES = 1_000_000
_SESSIONS = ("RunResumed", "RunForked")


def has_budget(config: RunConfig) -> bool:
    """Whether anything limits what a run may use."""
    return config.budget.max_minutes is not None or caps_of(config.budget) != Caps()


def open_account(
    config: RunConfig,
    before: Spent,
    *,
    clock: Callable[[], float],
    stopping: Callable[[], bool],
    ordered: Collection[str] = (),
) -> OwnAccount:
    """
    The account of a session that begins now; raises BudgetReached when more is used already than may be.

    Limits that were `ordered` raise nothing: the order is followed first, and where it leaves nothing the run pauses.
    """
    _check_left(evolve(config, budget=evolve(config.budget, **dict.fromkeys(ordered))), before)
    return OwnAccount(
        caps_of(config.budget),
        before,
        Minutes(config.budget.max_minutes, before.minutes, clock),
        currency=prices_in(config.resolved).currency,
        stopping=stopping,
    )


_WHEN_PAUSED = "pause it and give the limit then: it holds when the run goes on"


def with_ordered_limits(
    config: RunConfig, state: AnyState, waiting: Iterable[Asked], changed: Callable[[Mapping[str, Json]], RunConfig]
) -> RunConfig:
    """
    A run's config with the limits that were ordered while it was at rest: the session counts what they bound.

    `changed` is the config with other settings. An order that cannot be followed is left out here, and refused when it
    is its turn.
    """
    settings: dict[str, Json] = {}
    for asked in waiting:
        if asked.order == "budget" and asked.name not in state.steering.orders:
            with suppress(ConfigError):
                check_order(asked, state)
                config = changed({**settings, **asked.settings})
                settings |= asked.settings
    return config


def change_limits(account: OwnAccount | None, config: RunConfig, settings: Mapping[str, Json]) -> None:
    """Gives a session limits of a changed config; raises OrderRefused where it did not count what they bound."""
    if account is None:
        raise OrderRefused("this session was begun without a budget, and so has counted nothing", hint=_WHEN_PAUSED)
    if "budget.max_cost" in settings and account.caps.cost is None:
        raise OrderRefused(
            "this session was begun without budget.max_cost, and so has counted no money", hint=_WHEN_PAUSED
        )
    given = caps_of(config.budget)
    changed = {name: getattr(given, name) for name in ("cost", "tokens", "calls") if f"budget.max_{name}" in settings}
    minutes = config.budget.max_minutes if "budget.max_minutes" in settings else account.minutes.most
    account.limit(evolve(account.caps, **changed), minutes)


def tariffs_of(config: RunConfig) -> dict[Role, Tariff]:
    """How each role's calls are counted."""
    prices = prices_in(config.resolved).by_role
    return {
        role: Tariff(price=prices.get(role), most_output=longest_answer(config.role(role).extra_body))
        for role in config.roles
    }


def spent_before(config: RunConfig, log: EventLog, journal: Journal, lost: tuple[LostCall, ...]) -> Spent:
    """What a run has used in the sessions before this one, which finds these calls lost."""
    tariffs = tariffs_of(config)
    sessions = list(log.read(types=_SESSIONS))
    forks = list(only(RunForked, sessions))
    fork, inherited = max((seq for seq, _ in forks), default=0), max((each.inherited for _, each in forks), default=0)
    gone = [call for seq, resumed in only(RunResumed, sessions) if seq > fork for call in resumed.lost]
    amount, unreported = NOTHING, 0
    for row in journal.read(after=inherited):
        if asks_itself(row.call):
            continue
        attempts, tries = attempts_of(row.call)
        role = cast(Role, row.call.role)
        bound = Bound(input=0, output=0)
        if silent(attempts):
            unreported += 1
            texts = sum(_size(log.text(digest)) for _, digest in row.call.request.messages)
            bound = bound_of(row.call.request, texts, tariffs[role].most_output)
        sent = 0 if row.call.repeats else requests_sent(tries, row.call.error_kind)
        amount += tariffs[role].charged(attempts, sent, bound)
    for call in (*gone, *lost):
        bound = Bound(input=call.input_tokens, output=call.output_tokens)
        amount += tariffs[call.role].charged([UNTOLD] * call.tries, call.tries, bound)
    return Spent(amount=amount, unreported=unreported + len(gone) + len(lost), minutes=minutes_of(log))


def _size(text: str) -> int:
    """The bytes of a text; of one that was erased, more than it can have had."""
    return _MOST_BYTES if isinstance(text, ErasedText) else len(text.encode())


def minutes_of(log: EventLog) -> float:
    """How long the sessions of a run were at work, each to its last event; of a fork, its own."""
    return durations(moments_of(log.reader, log.head().seq)).total / 60


def check_bounded(config: RunConfig, models: Mapping[Role, ChatModel]) -> None:
    """Raises ConfigError for a budget that cannot be promised with these models."""
    budget = config.budget
    key = "max_cost" if budget.max_cost is not None else "max_tokens" if budget.max_tokens is not None else ""
    for role, model in models.items():
        if key and is_unbounded(model):
            own = is_own_agent(config.role(role).backend)
            hint = "budget.max_calls (questions to the agent) and budget.max_minutes work for it"
            kind = "an agent" if own else "a coding agent"
            raise ConfigError(
                f"{config.place(f'budget.{key}')}budget.{key} cannot be kept: the {role} is {kind} "
                f"({config.role(role).backend}), which asks its model as often as it likes",
                hint=f"{hint}; with model.{role}_gateway its calls count, too" if own else hint,
            )


def _check_left(config: RunConfig, before: Spent) -> None:
    """A cap below what is spent already cannot be kept."""
    budget = config.budget
    over = caps_of(budget).exceeded_by(before.amount)
    used: Decimal | float = getattr(before.amount, over) if over else before.minutes
    if not over and budget.max_minutes is not None and before.minutes > budget.max_minutes:
        over = "minutes"
    if over:
        shown = f"{used:,}" if isinstance(used, int) else f"{used:.4f}"
        asked = config.sources.get(f"budget.max_{over}") == ASKED  # by an option of its own or --set: who did knows
        place = "" if asked else config.place(f"budget.max_{over}")
        raise BudgetReached(
            f"{place}budget.max_{over} is {getattr(budget, f'max_{over}'):g}, with {used_words(over, shown)} so far",
            key=f"budget.max_{over}",
            hint=f"set a higher limit: `--max-{over} N`",
        )


# --- calls in flight -------------------------------------------------------------------------------------------------


@frozen
class _Begun:
    """The first line: where log and journal ended when the session began."""

    events: int = field(validator=_COUNT)
    calls: int = field(validator=_COUNT)


@frozen
class _Try:
    """A try that was about to start, and what it may use at most; `again`: of the same call as the one before."""

    slot: str = field(validator=lambda _, __, slot: slot.encode())  # half a character is none
    role: Role
    input: int = field(validator=_COUNT)
    output: int = field(validator=_COUNT)
    again: bool


class StartedCalls:
    """The file of one session."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._file: TextIO | None = None

    def open(self, log: EventLog, journal: Journal) -> None:
        """Begins anew: what stood in the file is in the log."""
        self._file = self._path.open("w", encoding="utf-8", buffering=1)  # a line is the system's once it is written
        self._file.write(json.dumps({"events": log.head().seq, "calls": len(journal)}) + "\n")

    def note(self, slot: str, role: Role, bound: Bound, again: bool) -> None:
        """A try is about to start."""
        assert self._file is not None
        row = {"slot": slot, "role": role, "input": bound.input, "output": bound.output, "again": again}
        self._file.write(json.dumps(row) + "\n")

    def leave(self) -> None:
        """Closes the file and leaves it for the next session, which reads what was in flight."""
        if self._file is not None:
            self._file.close()

    def close(self) -> None:
        """Every call has come to its end: the file has nothing to tell."""
        self.leave()
        if self._file is not None:
            self._path.unlink(missing_ok=True)


def lost_calls(folder: Path, log: EventLog, journal: Journal) -> tuple[LostCall, ...]:
    """
    The calls that a killed process left in flight, unless the log has them already.

    Raises LogDamaged for a file that is not what was written: how much was paid for cannot be told then.
    """
    said = _read(folder / FILE)
    if said is None:
        return ()
    begun, tries = said
    # A session that began since then has recorded them.
    if any(isinstance(each.event, RunResumed) for each in log.read(after=begun.events)):
        return ()
    recorded = Counter(row.call.slot for row in journal.read(after=begun.calls))
    # The calls of a slot are recorded in their order: the first so many have come to their end.
    return tuple(call for slot, calls in _started(tries).items() for call in calls[recorded[slot] :])


def _started(tries: Iterable[_Try]) -> dict[str, list[LostCall]]:
    """The calls that started, by slot, in their order."""
    found: dict[str, list[LostCall]] = {}
    for each in tries:
        calls = found.setdefault(each.slot, [])
        if each.again and calls:
            calls[-1] = evolve(calls[-1], tries=calls[-1].tries + 1)
        else:
            calls.append(
                LostCall(slot=each.slot, role=each.role, input_tokens=each.input, output_tokens=each.output, tries=1)
            )
    return found


def _read(path: Path) -> tuple[_Begun, list[_Try]] | None:
    """What the file says; None where no call can have started."""
    try:
        content = read_plain(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise read_fault(error, path) from error
    *lines, _ = content.split(b"\n")  # what follows the last line's end was cut when the process ended
    if not lines:
        return None
    begun = _structured(path, 1, lines[0], _Begun)
    return begun, [_structured(path, number, line, _Try) for number, line in enumerate(lines[1:], start=2)]


def _structured(path: Path, number: int, line: bytes, kind: type[T]) -> T:
    try:
        return _CONVERTER.structure(json.loads(line), kind)
    except MISFITS as error:
        raise LogDamaged(
            f"line {number} of {path} was changed: it cannot be told which calls were in flight when the run was "
            "killed",
            hint="restore the file from a copy; or remove it and continue: the budget then does not count these calls",
        ) from error
