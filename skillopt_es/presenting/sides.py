"""One run of a comparison in words and numbers, by the label of its row, for the command and for pages."""

from __future__ import annotations

from collections.abc import Collection

from skillopt_es.audit.side_by_side import Side
from skillopt_es.events.values import Score
from skillopt_es.presenting.claims import claim_words
from skillopt_es.presenting.numbers import change, shown_cost, shown_seconds, shown_settings, shown_tokens, shown_value
from skillopt_es.presenting.words import by_hand_words, items_words
from skillopt_es.projections.intervals import Interval, Judged
from skillopt_es.projections.usage import together


def column(each: Side) -> dict[str, str]:
    """One run's cells, by the label of their row."""
    cells = {
        "status": each.status,
        "fork of": "" if each.forked is None else f"{each.forked.parent} after event {each.forked.seq:,}",
        "changed": "" if each.forked is None else shown_settings(each.forked.overrides),
        "steered by hand": by_hand_words(each.by_hand),
        "steps": f"{each.step}" if each.steps is None else f"{each.step} of {each.steps}",
        "accepted": str(each.accepted),
        "rejected": str(each.rejected),
        "indecisive": str(each.indecisive) if each.indecisive else "",
        "skipped": str(each.skipped),
        "unknown": str(each.unknown) if each.unknown else "",
        "gate metric": each.metric or "-",
        "best value": shown_value(each.value),
    }
    for name, score in scores_of(each).items():
        cells[f"{name} hard"] = shown_value(None if score is None else score.hard)
        cells[f"{name} soft"] = shown_value(None if score is None else score.soft)
        cells[f"{name} over"] = items_words(each.over.get(name), chosen=name == "best" and each.chosen)
    return cells | _used(each) | {"time": "-" if each.seconds is None else shown_seconds(each.seconds)}


def against_words(seen: Judged | None) -> str:
    """A run's best skill against the first run's, by the test items of both."""
    if seen is None:
        return "no test item was measured under both"
    by = change((len(seen.pair.won) - len(seen.pair.lost)) / seen.pair.items)
    return f"{by}, {claim_words(seen)}"


def first_words(judgments: Collection[Judged | None]) -> str:
    """What the others are compared with, and for how many comparisons their chances are corrected."""
    said = "The others are compared with the run that was named first."
    most = max((each.comparisons for each in judgments if each is not None), default=1)
    if most == 1:
        return said
    pairs = "all pairs, because the first leads: " if most > len(judgments) else ""
    return f"{said} Each p is corrected (Holm) for {pairs}{most} comparisons."


def interval_words(reach: Interval | None) -> str:
    """From where to where; empty where there is no interval."""
    return "" if reach is None else f"{reach.low:.3f} to {reach.high:.3f}"


def _used(each: Side) -> dict[str, str]:
    if each.spent is None:
        counts = None if each.there is None else together(each.there.by_stage.values())
        known = (None, None, None) if counts is None else (counts.calls, counts.input_tokens, counts.output_tokens)
        part = "" if each.there is None or each.there.whole else "+"
        calls, read, written = ("-" if count is None else f"{count:,}{part}" for count in known)
        return {"calls": calls, "calls of parent": "", "tokens in": read, "tokens out": written, "cost": "-"}
    used, total = each.spent, each.spent.usage.total
    return {
        "calls": f"{total.calls:,}",
        "calls of parent": f"{used.inherited:,}" if used.inherited else "",
        "tokens in": shown_tokens(total.input),
        "tokens out": shown_tokens(total.output),
        "cost": f"{used.currency} {shown_cost(total.cost)}" if used.currency else "-",
    }


def scores_of(each: Side) -> dict[str, Score | None]:
    """Its scores on validation and test items, by what was measured."""
    return {
        "initial": each.baseline,
        "best": each.best,
        "test initial": each.test_initial,
        "test best": each.test_best,
        "test final": each.test_final,
    }
