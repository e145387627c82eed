"""
What a run has used so far against its budget, and the purse of the session that goes on with it.

A budget holds over all sessions of a run. A fork begins at nothing: what came along from its parent is not its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

from skillopt_es.config import RunConfig
from skillopt_es.config.draft import ASKED
from skillopt_es.engine.budget import (
    NOTHING,
    Bound,
    Caps,
    Ledger,
    Spent,
    Tariff,
    bound_of,
    caps_of,
    longest_answer,
    silent,
    used_words,
)
from skillopt_es.engine.purse import Note, Purse
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import RunForked, RunResumed
from skillopt_es.events.erasures import ErasedText
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import LostCall, Role
from skillopt_es.ports import ChatModel
from skillopt_es.projections.prices import prices_in
from skillopt_es.projections.usage import UNTOLD, attempts_of, requests_sent
from skillopt_es.runs.durations import durations, moments_of

_ROLES: tuple[Role, ...] = ("target", "optimizer")
_MOST_BYTES = 1_000_000
_SESSIONS = ("RunResumed", "RunForked")


def has_budget(config: RunConfig) -> bool:
    """Whether anything limits what a run may come to."""
    return config.budget.max_minutes is not None or caps_of(config.budget) != Caps()


def open_purse(
    config: RunConfig, before: Spent, *, clock: Callable[[], float], stopping: Callable[[], bool], note: Note
) -> Purse:
    """The purse of a session that begins now; raises ConfigError when more is used already than may be."""
    _check_left(config, before)
    currency = prices_in(config.resolved).currency
    return Purse(
        Ledger(caps_of(config.budget), before.amount),
        tariffs_of(config),
        currency=currency,
        unreported=before.unreported,
        late=_late(config.budget.max_minutes, before.minutes, clock),
        stopping=stopping,
        note=note,
    )


def tariffs_of(config: RunConfig) -> dict[Role, Tariff]:
    """How each role's calls are counted."""
    prices = prices_in(config.resolved).by_role if config.budget.max_cost is not None else {}
    return {
        role: Tariff(price=prices.get(role), most_output=longest_answer(config.role(role).extra_body))
        for role in _ROLES
    }


def spent_before(config: RunConfig, log: EventLog, journal: Journal, lost: tuple[LostCall, ...]) -> Spent:
    """What a run has used in the sessions before this one, which finds these calls lost."""
    tariffs = tariffs_of(config)
    sessions = list(log.read(types=_SESSIONS))
    fork = max((each.seq for each in sessions if isinstance(each.event, RunForked)), default=0)
    inherited = max((each.event.inherited for each in sessions if isinstance(each.event, RunForked)), default=0)
    own = [each for each in sessions if each.seq > fork]
    gone = [call for each in own if isinstance(each.event, RunResumed) for call in each.event.lost]
    amount, unreported = NOTHING, 0
    for row in journal.read(after=inherited):
        attempts, tries = attempts_of(row.call)
        role: Role = "target" if row.call.role == "target" else "optimizer"
        bound = Bound(input=0, output=0)
        if silent(attempts):
            unreported += 1
            bound = bound_of(row.call.request, lambda digest: _size(log.text(digest)), tariffs[role].most_output)
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


def _late(most: float | None, before: float, clock: Callable[[], float]) -> Callable[[], str]:
    """Says why there is no time left, once that is so."""
    if most is None:
        return lambda: ""
    began = clock()

    def late() -> str:
        minutes = before + (clock() - began) / 60
        return f"budget.max_minutes is {most:g}, and the run has taken {minutes:.2f}" if minutes >= most else ""

    return late


def check_bounded(config: RunConfig, models: Mapping[Role, ChatModel]) -> None:
    """Raises ConfigError for a budget that cannot be promised with these models."""
    budget = config.budget
    key = "max_cost" if budget.max_cost is not None else "max_tokens" if budget.max_tokens is not None else ""
    for role, model in models.items():
        if key and getattr(model, "unbounded", False):
            raise ConfigError(
                f"{config.place(f'budget.{key}')}budget.{key} cannot be promised: the {role} is a coding agent "
                f"({config.role(role).backend}), which asks its model as often as it likes",
                hint="budget.max_calls (questions to the agent) and budget.max_minutes hold for it",
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
        raise ConfigError(
            f"{place}budget.max_{over} is {getattr(budget, f'max_{over}'):g}, with {used_words(over, shown)} so far",
            hint=f"give more than that: `--max-{over} N`",
        )
