"""Calls, tokens, money and time, by stage."""

from __future__ import annotations

from collections.abc import Mapping

from skillopt_es.counting import counted
from skillopt_es.events.values import ImportedUsage
from skillopt_es.presenting.numbers import (
    lower_bounds,
    not_as_wanted,
    not_counted,
    shown_cost,
    shown_seconds,
    shown_tokens,
)
from skillopt_es.projections.usage import WHOLE_RUN, UsageSums, UsageThere, together
from skillopt_es.report.facts import Facts
from skillopt_es.report.html import DASH, Html, Row, count, el, note, number, row, section, table
from skillopt_es.runs.overview import Spent

_BAR = 120  # units of the drawing, a third of a phone's width


def spending_section(facts: Facts) -> Html | None:
    """What the run used; None where nothing of it can be read."""
    if facts.there is not None:
        return section("Calls and tokens", *_there(facts.there, facts), name="spending")
    if facts.spent is None:
        return None
    spent = facts.spent
    said = [note(f"+ at least: {line}.") for line in lower_bounds(spent)]
    said += (note(f"{each}.") for each in (*not_as_wanted(spent), *not_counted(spent)))
    if spent.inherited:
        said.append(
            note(f"A fork: what it copied from its parent ({counted(spent.inherited, 'call')}) is not counted.")
        )
    times = {} if facts.durations is None else facts.durations.by_stage
    if facts.durations is not None:
        said.append(
            note(
                "A stage's time is the time spent waiting for its results; calls run side by side. Time outside "
                "all stages (planning, gates, start-up) is only in the total; pauses are in neither."
            )
        )
    return section("Calls, tokens, money and time", _table(spent, times, facts), *said, name="spending")


def _table(spent: Spent, times: Mapping[str, float], facts: Facts) -> Html:
    most = max((_tokens(usage) for usage in spent.usage.by_stage.values()), default=0)
    cost = f" | #cost {spent.currency}" if spent.currency else ""
    headers = f"stage | #calls | #failed | #tokens in | #tokens out | share of tokens{cost} | #time"
    rows = [
        _row(stage.replace("_", " "), usage, spent.currency, times.get(stage), _bar(_tokens(usage), most))
        for stage, usage in spent.usage.by_stage.items()
    ]
    whole = None if facts.durations is None else facts.durations.total
    rows.append(_row("all", spent.usage.total, spent.currency, whole, "", class_="total"))
    return table("What each stage used", headers, rows)


def _tokens(usage: UsageSums) -> int:
    return usage.input.reported + usage.output.reported


def _bar(tokens: int, most: int) -> Html:
    width = number(_BAR * tokens / most) if most else "0"
    bar = el("rect", width=width, height=10, rx=2, class_="bar")
    return el("svg", bar, viewBox=f"0 0 {_BAR} 10", width=_BAR, height=10, aria_hidden="true")


def _row(
    name: str, usage: UsageSums, currency: str, seconds: float | None, bar: str | Html, *, class_: str | None = None
) -> Row:
    return row(
        name,
        f"{usage.calls:,}",
        f"{usage.failed:,}",
        shown_tokens(usage.input),
        shown_tokens(usage.output),
        bar,
        *([shown_cost(usage.cost)] if currency else []),
        DASH if seconds is None else shown_seconds(seconds),
        class_=class_,
    )


def _there(there: UsageThere, facts: Facts) -> list[Html]:
    """What the results of another trainer say; money is not in them."""
    imported = facts.summary.imported
    times = {} if imported is None else imported.seconds
    rows = [row(stage.replace("_", " "), *_numbers_there(usage)) for stage, usage in there.by_stage.items()]
    rows.append(row("all", *_numbers_there(together(there.by_stage.values())), class_="total"))
    headers = "stage | #calls | #tokens in | #tokens out"
    said = note("As counted by the trainer that made this run; a dash means not counted, not 0.")
    part = [] if there.whole else [note("Of the recorded steps only: there is no summary of the whole run.")]
    if WHOLE_RUN in times:
        part.append(note(f"The run took {shown_seconds(times[WHOLE_RUN])}."))
    return [table("What each stage used, as the imported results say", headers, rows), said, *part]


def _numbers_there(usage: ImportedUsage) -> list[str]:
    return [count(each) for each in (usage.calls, usage.input_tokens, usage.output_tokens)]
