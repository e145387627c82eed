"""The `prices` section: a unit that must be said, and for each model numbers that can be meant in that unit."""

from __future__ import annotations

import re

from skillopt_es.config.sections import PricesConfig, RunConfig
from skillopt_es.config.values import nearest
from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Json
from skillopt_es.projections.prices import UNIT

_UNIT = re.compile(rf"[A-Z]{{3}} {UNIT}")
_KEYS = ("input", "output", "cached_input")
# No model is priced outside of these, so a number outside is one per token or per thousand.
_LEAST, _MOST = 0.001, 10_000


def check_prices(prices: PricesConfig, source: str) -> None:
    """Raises ConfigError for a missing unit, an unknown key, or a number that cannot be a price per million tokens."""
    place = f"{source}: " if source else ""
    if (prices.models or prices.unit) and not _UNIT.fullmatch(prices.unit):
        raise ConfigError(
            f"{place}prices.unit is {prices.unit!r}, but must be three capital letters and `{UNIT}`",
            hint=f'write unit: "USD {UNIT}", and the prices per million tokens',
        )
    for model, row in prices.models.items():
        _check_model(f"{place}prices.models.{model}", row)


def _check_model(name: str, row: Json) -> None:
    if not isinstance(row, dict):
        raise ConfigError(f"{name} is {row!r}, but must be a mapping", hint="such as {input: 0.40, output: 1.60}")
    for key, value in row.items():
        if key not in _KEYS:
            raise ConfigError(f"{name}.{key}: unknown key", hint=nearest(key, _KEYS))
        if value is None and key == "cached_input":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{name}.{key} is {value!r}, but must be a number")
        if value and not _LEAST <= value <= _MOST:
            raise ConfigError(
                f"{name}.{key} is {value!r}, which cannot be a price {UNIT} (0, or {_LEAST:g} to {_MOST:g})",
                hint="a price per thousand tokens times 1000, or one per token times 1000000, is meant here",
            )
    for key in ("input", "output"):
        if key not in row:
            raise ConfigError(f"{name}.{key} is missing", hint="write 0 for what costs nothing")


def check_priced(config: RunConfig) -> None:
    """Raises ConfigError when there is a limit of money and a model without a price."""
    if config.budget.max_cost is None:
        return
    place = config.place("budget.max_cost")
    for role in (config.target_model, config.optimizer_model):
        if role.model not in config.prices.models:
            raise ConfigError(
                f"{place}budget.max_cost needs the price of every model, and {role.model} has none",
                hint=f'set prices.unit: "USD {UNIT}" and prices.models.{role.model}: {{input: …, output: …}}',
            )
