"""What a run used, by stage, role and step, what caches and repeats saved, and what the rest may take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from skillopt_es.counting import counted
from skillopt_es.engine.algorithms import planned_steps
from skillopt_es.presenting.numbers import shown_amount, shown_cost, shown_seconds, shown_tokens
from skillopt_es.projections.usage import UsageSums
from skillopt_es.report.facts import Facts
from skillopt_es.report.html import DASH, Child, Html, el, note, row, section, table
from skillopt_es.report.spending import spending_section
from skillopt_es.runs.overview import Spent
from skillopt_es.ui.shell import link, part

_MOST_STEPS = 200  # the last ones: a table of thousands of rows is slow in any browser


def cost_page(facts: Facts) -> list[Html]:
    """The report's own table by stage, then by role and by step, then the forecast."""
    parts: list[Child] = [
        el("h1", "Cost of ", link(facts.name, "run", facts.name)),
        spending_section(facts) or note("Nothing of it can be read."),
    ]
    if facts.spent is not None:
        parts += [_by_role(facts.spent), _by_step(facts, facts.spent), *_forecast(facts, facts.spent)]
    return [part("cost-part", *parts)]


def _headers(spent: Spent, first: str) -> list[str]:
    cost = [f"#cost {spent.currency}"] if spent.currency else []
    return [first, "#calls", "#failed", "#tokens in", "#of them cached", "#tokens out", *cost]


def _cells(usage: UsageSums, spent: Spent) -> list[Child]:
    cost: list[Child] = [shown_cost(usage.cost)] if spent.currency else []
    cached = DASH if usage.cached.known is None else shown_tokens(usage.cached)
    tokens = (shown_tokens(usage.input), cached, shown_tokens(usage.output))
    return [f"{usage.calls:,}", f"{usage.failed:,}", *tokens, *cost]


def _by_role(spent: Spent) -> Html | None:
    roles: Mapping[str, UsageSums] = spent.usage.by_role
    if not roles:
        return None
    rows = [row(role, *_cells(usage, spent)) for role, usage in roles.items()]
    return section("By role", table("What each role used", _headers(spent, "role"), rows), name="roles")


def _by_step(facts: Facts, spent: Spent) -> Html | None:
    steps = [(step, usage) for step, usage in spent.usage.by_step.items() if step is not None][-_MOST_STEPS:]
    if not steps:
        return None
    times = {} if facts.durations is None else facts.durations.by_step
    rows = []
    for step, usage in sorted(steps):
        took: Child = shown_seconds(times[step]) if step in times else DASH
        # A step that is under way may have no page yet.
        name = link(f"step {step}", "run", facts.name, "step", step) if step <= facts.summary.step else f"step {step}"
        rows.append(row(name, *_cells(usage, spent), took))
    headers = [*_headers(spent, "step"), "#time"]
    return section("By step", table("What each step used", headers, rows, kind="steps"), name="by-step")


def _forecast(facts: Facts, spent: Spent) -> Iterator[Html]:
    """The steps that are left, if each takes what those that are over took on average."""
    summary = facts.summary
    done = [usage for step, usage in spent.usage.by_step.items() if step is not None and step <= summary.step]
    steps = planned_steps(summary)
    left = 0 if steps is None else steps - summary.step
    if summary.completed is not None or summary.stopped is not None or not done or left <= 0:
        return
    share = left / len(done)
    said = [f"{share * sum(usage.calls for usage in done):,.0f} calls"]
    tokens = sum(usage.input.reported + usage.output.reported for usage in done)
    said.append(f"{share * tokens:,.0f} tokens")
    known = [usage.cost.known for usage in done]
    if spent.currency and all(each is not None for each in known):
        said.append(f"{spent.currency} {shown_amount(share * float(sum(each for each in known if each is not None)))}")
    words = (
        f"{counted(left, 'step')} {'is' if left == 1 else 'are'} left. If each takes as much as the "
        f"{counted(len(done), 'step')} so far: {', '.join(said)}. "
        "The ends of epochs and the final evaluation come on top."
    )
    yield section("Forecast", note(words), name="forecast")
