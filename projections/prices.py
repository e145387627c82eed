"""
What tokens cost: each role's price per million tokens, as a run's config has recorded it.

Amounts are decimal numbers, so that sums are exact. What is not known is a lower bound that says so, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import cast

from attrs import evolve, field, frozen

from skillopt_es.events.catalog import Event, RunForked, RunResumed, RunStarted
from skillopt_es.events.values import Json

UNIT = "per 1M tokens"
_MILLION = Decimal(1_000_000)


@frozen(kw_only=True)
class Price:
    """What a million tokens cost; without a price of their own, cached input tokens cost what all input does."""

    input: Decimal
    output: Decimal
    cached_input: Decimal | None = None


@frozen(kw_only=True)
class Prices:
    """The prices that are known, by role, in one currency (empty when there are none)."""

    currency: str = ""
    by_role: Mapping[str, Price] = field(factory=dict)


@frozen
class Cost:
    """What an attempt cost, or at least cost when that is not `exact`."""

    amount: Decimal
    exact: bool


def cost_of(price: Price, *, input: int | None, output: int | None, cached: int | None) -> Cost:  # noqa: A002
    """The cost of so many tokens; None is a number that was not reported."""
    amount, exact = Decimal(0), input is not None and output is not None
    if input is not None:
        amount += input_cost(price, input, cached, unknown=min)  # the least that it can be
        exact = exact and (price.cached_input is None or cached is not None)
    if output is not None:
        amount += output * price.output
    return Cost(amount / _MILLION, exact)


def input_cost(
    price: Price, tokens: int, cached: int | None, *, unknown: Callable[[Decimal, Decimal], Decimal]
) -> Decimal:
    """What so many input tokens cost, not yet by the million; `unknown` takes a price where no count of cached is."""
    if price.cached_input is None:
        return tokens * price.input
    if cached is None:
        return tokens * unknown(price.input, price.cached_input)
    from_cache = min(cached, tokens)
    return (tokens - from_cache) * price.input + from_cache * price.cached_input


def recorded_prices(events: Iterable[Event]) -> Prices:
    """The prices in force at the end of a log: its first event's, and what resuming or forking it has changed."""
    config: dict[str, Json] = {}
    for event in events:
        if isinstance(event, RunStarted):
            config = dict(event.config)
        elif isinstance(event, RunResumed | RunForked):
            for setting in event.overrides:
                section, _, name = setting.key.partition(".")
                if section == "prices":
                    config[section] = {**_mapping(config.get(section)), name: setting.value}
    return prices_in(config)


def prices_in(config: Mapping[str, Json]) -> Prices:
    """The prices of a config as it is recorded; it was checked when it was read."""
    section, model = _mapping(config.get("prices")), _mapping(config.get("model"))
    known = _mapping(section.get("models"))
    named = {role: known.get(str(model.get(role))) for role in ("target", "optimizer", "judge")}
    return Prices(
        currency=str(section.get("unit", "")).removesuffix(UNIT).strip(),
        by_role={role: price_in(_mapping(row)) for role, row in named.items() if row is not None},
    )


def price_in(row: Mapping[str, Json]) -> Price:
    """One model's price from its numbers."""
    price = Price(input=_decimal(row["input"]), output=_decimal(row["output"]))
    cached = row.get("cached_input")
    return price if cached is None else evolve(price, cached_input=_decimal(cached))


def _decimal(number: Json) -> Decimal:
    return Decimal(str(number))  # the shortest text of a float is what somebody wrote


def _mapping(value: Json | None) -> Mapping[str, Json]:
    return cast("Mapping[str, Json]", value) if isinstance(value, Mapping) else {}
