"""Numbers as people read them: scores, times, settings, tokens and money, and why a sum is only a lower bound."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal

from skillopt_es.counting import counted
from skillopt_es.events.requests import KINDS
from skillopt_es.events.values import Setting
from skillopt_es.projections.usage import Money, Tally, UsageSums
from skillopt_es.runs.overview import Spent


def shown_settings(settings: Sequence[Setting]) -> str:
    """Settings as somebody would write them; nothing for none."""
    return ", ".join(f"{each.key} = {json.dumps(each.value, ensure_ascii=False)}" for each in settings)


def shown_value(value: float | None) -> str:
    """A score for people; a dash for one that was not measured."""
    return "-" if value is None else f"{value:.4f}"


def shown_time(recorded_at: str) -> str:
    """A recorded moment to the second, in UTC."""
    return recorded_at[:19].replace("T", " ")


def shown_seconds(seconds: float) -> str:
    """A stretch of time for people."""
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    return f"{hours}h{minutes % 60:02}m" if hours else f"{minutes}m{int(seconds % 60):02}s"


def not_as_wanted(spent: Spent) -> list[str]:
    """What was asked ahead of a verdict and what was not asked again, where there is any of it."""
    ahead, lines = spent.ahead, []
    if ahead.made.calls:
        lost = shown_usage(ahead.wasted, spent.currency)
        lines.append(f"{ahead.made.calls:,} calls were made ahead of a verdict; not used in the end: {lost}")
    if ahead.repeats:
        lines.append(f"{ahead.repeats:,} more calls were not needed: the same request had been answered before")
    return lines


def lower_bounds(spent: Spent) -> list[str]:
    """Why totals end in +, one sentence each; empty when none does."""
    total = spent.usage.total
    lines = []
    for kind in KINDS:
        tally: Tally = getattr(total, kind)
        if tally.silent and tally.speaking:
            lines.append(
                f"{tally.silent:,} of {counted(total.calls, 'call')} did not report {kind} tokens, or not for each try"
            )
    if spent.currency and total.cost.unknown:
        lines.append(
            f"the cost of {total.cost.unknown:,} of {counted(total.calls, 'call')} is unknown (no price, or no tokens)"
        )
    return lines


def not_counted(spent: Spent) -> list[str]:
    """What no number has, although it may have cost something."""
    times = "once" if spent.crashes == 1 else f"{spent.crashes} times"
    return [f"the run was killed {times}; calls that were in flight then are not counted"] if spent.crashes else []


def shown_tokens(tally: Tally) -> str:
    """A count of tokens for people: a plus behind a lower bound, a dash for what no call reported."""
    if tally.known is None:
        return "-"
    return f"{tally.known:,}{'+' if tally.silent else ''}"


def shown_amount(amount: Decimal | float, *, least: bool = False) -> str:
    """An amount of money for people: four decimals, more for what is tiny; a plus behind the `least` that it can be."""
    tiny = 0 < amount < Decimal("0.001")
    return f"{amount:,.{8 if tiny else 4}f}{'+' if least else ''}"


def shown_cost(cost: Money) -> str:
    """What calls cost, as an amount; a dash for what is not known at all."""
    return "-" if cost.known is None else shown_amount(cost.known, least=bool(cost.unknown))


def shown_usage(usage: UsageSums, currency: str) -> str:
    """Calls, tokens and money in one line; a plus behind a lower bound, a dash for what is not known at all."""
    tokens = f"{counted(usage.calls, 'call')}, {shown_tokens(usage.input)} tokens in, {shown_tokens(usage.output)} out"
    return f"{tokens}, {currency} {shown_cost(usage.cost)}" if currency else tokens


def change(value: float) -> str:
    """A difference, with its sign."""
    # What floats leave of equal scores is no difference.
    if abs(value) < 1e-9:
        return "no difference"
    return f"{value:+.4f}".replace("-", "−")


def chance(probability: float) -> str:
    """A probability in as many digits as say something, on one line."""
    said = "p < 0.0001" if probability < 0.0001 else f"p = {probability:.2g}"
    return said.replace(" ", "\N{NO-BREAK SPACE}")
