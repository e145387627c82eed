"""
Budgets: the most that a call may cost is set aside before it starts, and replaced afterwards by its real cost.

Pure: no clock, no waiting. What a provider did not report stays charged at the worst that it can have been.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal

from attrs import field, frozen

from skillopt_es.config.sections import BudgetConfig
from skillopt_es.events.requests import RecordedRequest
from skillopt_es.events.values import Json
from skillopt_es.projections.prices import Price, input_cost
from skillopt_es.projections.usage import TryTokens

# A token is at least one byte of what is sent. What wire formats and chat templates add is far below these numbers;
# the largest count of tokens that any provider charges for one picture is below the last.
_TOKENS_A_REQUEST, _TOKENS_A_MESSAGE, _TOKENS_AN_IMAGE = 2048, 64, 50_000
_LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_MILLION = Decimal(1_000_000)


@frozen(kw_only=True)
class Amount:
    """The cost of calls: money, tokens (input and output), and requests sent."""

    cost: Decimal = Decimal(0)
    tokens: int = 0
    calls: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(cost=self.cost + other.cost, tokens=self.tokens + other.tokens, calls=self.calls + other.calls)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(cost=self.cost - other.cost, tokens=self.tokens - other.tokens, calls=self.calls - other.calls)


NOTHING = Amount()


@frozen(kw_only=True)
class Caps:
    """What must not be exceeded; None: no limit."""

    cost: Decimal | None = None
    tokens: int | None = None
    calls: int | None = None

    def exceeded_by(self, amount: Amount) -> str:
        """The first cap that is below the amount; empty when all hold."""
        for name in ("cost", "tokens", "calls"):
            cap = getattr(self, name)
            if cap is not None and getattr(amount, name) > cap:
                return name
        return ""


def caps_of(budget: BudgetConfig) -> Caps:
    """The caps of a config, except the minutes."""
    cost = None if budget.max_cost is None else Decimal(str(budget.max_cost))
    return Caps(cost=cost, tokens=budget.max_tokens, calls=budget.max_calls)


@frozen
class Reached:
    """That nothing more starts: the budget's `key` in a config, and why in words."""

    key: str
    message: str


_DONE = {
    "calls": (" call", "made"),
    "tokens": (" token", "used"),
    "cost": ("", "spent"),
    "minutes": (" minute", "taken"),
}


def used_words(name: str, shown: str) -> str:
    """How much of a budget's limit was used, to go on with `so far`."""
    noun, done = _DONE[name]
    return f"{shown}{noun}{'s' if noun and shown != '1' else ''} {done}"


class Account:
    """What is spent, and what is set aside for calls under way; together they never exceed the caps."""

    def __init__(self, caps: Caps, spent: Amount = NOTHING) -> None:
        self.caps = caps
        self.spent = spent
        self.reserved = NOTHING

    def lacks(self, more: Amount) -> str:
        """The cap that keeps so much more from being set aside just now; empty when it fits."""
        return self.caps.exceeded_by(self.spent + self.reserved + more)

    def reserve(self, more: Amount) -> bool:
        """Sets so much more aside, if it fits; what is negative gives some back."""
        if self.lacks(more):
            return False
        self.reserved += more
        return True

    def settle(self, held: Amount, came_to: Amount) -> None:
        """Frees what was set aside for a call, and spends its real cost."""
        self.reserved -= held
        self.spent += came_to


@frozen(kw_only=True)
class Bound:
    """The most tokens that one try of a call can use."""

    input: int
    output: int


def bound_of(recorded: RecordedRequest, size: Callable[[str], int], most_output: int = 0) -> Bound:
    """
    The bound of a request; `size` is the bytes of a text by its digest.

    `most_output` is a limit of the answer that is sent besides the request's own.
    """
    texts = sum(size(digest) for _, digest in recorded.messages)
    besides = len(json.dumps(recorded.params, ensure_ascii=False).encode())  # tools, their use, and the schema
    wrapping = _TOKENS_A_REQUEST + _TOKENS_A_MESSAGE * len(recorded.messages)
    pictures = _TOKENS_AN_IMAGE * len(recorded.images)
    return Bound(input=texts + besides + wrapping + pictures, output=max(recorded.max_tokens, most_output))


def longest_answer(extra_body: Mapping[str, Json]) -> int:
    """The limit of an answer that a config adds to every request; 0 for none."""
    return max((value for name in _LENGTHS if type(value := extra_body.get(name)) is int), default=0)


@frozen(kw_only=True)
class Tariff:
    """How one role's calls are counted; without a price nothing is said of money."""

    price: Price | None = None
    most_output: int = 0

    def worst(self, bound: Bound) -> Amount:
        """The most that one try can cost."""
        return self._amount((None, None, None, None), bound) + Amount(calls=1)

    def charged(self, attempts: Iterable[TryTokens], sent: int, bound: Bound) -> Amount:
        """The cost of a call's tries: what was reported, and the bound for what was not."""
        return sum((self._amount(attempt, bound) for attempt in attempts), Amount(calls=sent))

    def _amount(self, attempt: TryTokens, bound: Bound) -> Amount:
        told, said, cached = attempt[:3]
        inputs = bound.input if told is None else told
        outputs = bound.output if said is None else said
        if self.price is None:
            return Amount(tokens=inputs + outputs)
        # Where not even the input was told, nothing is known of its cached part.
        read = input_cost(self.price, inputs, None if told is None else cached, unknown=max)
        return Amount(cost=(read + outputs * self.price.output) / _MILLION, tokens=inputs + outputs)


def silent(attempts: Sequence[TryTokens]) -> bool:
    """Whether some of what a call used was not reported."""
    return any(attempt[0] is None or attempt[1] is None for attempt in attempts)


@frozen(kw_only=True)
class Spent:
    """What a run has used before a session: `unreported` calls count as the most that they can have used."""

    amount: Amount = field(factory=Amount)
    unreported: int = 0
    minutes: float = 0.0
