"""The numbers of the page for programs."""

from __future__ import annotations

from skillopt_es.audit.headlines import Accepted, Difference, Headline
from skillopt_es.events.values import Json, Measured
from skillopt_es.presenting.claims import said
from skillopt_es.presenting.documents import by_hand_json, plain, plain_judged, some_of
from skillopt_es.projections.intervals import Paired, judged
from skillopt_es.projections.item_results import Results
from skillopt_es.projections.lines import StepLine
from skillopt_es.report.facts import Facts
from skillopt_es.report.page import headlines_of


def document(facts: Facts) -> dict[str, Json]:
    """Scores with what can be said of them, steps, lineage, items, usage and time; null for what is not known."""
    found, summary = headlines_of(facts), facts.summary
    return {
        "run": facts.name,
        "status": facts.status,
        "events": facts.end,
        "read": facts.read,
        "problems": list(facts.problems),
        "scores": [_score(each) for each in found.scores],
        "differences": [_difference(each) for each in found.differences],
        "accepted": [_accepted(each) for each in found.accepted],
        "said": list(said(found)),
        "by_hand": by_hand_json(summary.by_hand),
        "steps": [plain(line) for line in summary.lines if isinstance(line, StepLine)],
        "lineage": {
            "current": facts.tree.current,
            "best": facts.tree.best,
            "nodes": [plain(node) for node in facts.tree.nodes],
        },
        "items": {
            "validation": {skill: _results(results) for skill, results in facts.results.validation.items()},
            "test": {skill: _results(results) for skill, results in facts.results.test.items()},
            "train": {str(step): _results(results) for step, results in facts.results.train.items()},
        },
        "usage": None if facts.spent is None else plain(facts.spent),
        "by_stage": None if facts.spent is None else plain(facts.spent.usage.by_stage),
        "seconds": None
        if facts.durations is None
        else {"total": facts.durations.total, "by_stage": dict(facts.durations.by_stage)},
    }


def _score(each: Headline) -> Json:
    return {
        **some_of(each, "split", "names", "skill", "hard", "soft", "items"),
        "over_items": plain(each.over),
        **some_of(each, "unmeasured", "exact", "grid", "interval"),
        "interval_by_type": plain(each.by_family),
        "chosen_on_these_items": each.chosen,
        "repeats": list(each.draws) if each.draws[1] else None,
    }


def _difference(each: Difference) -> Json:
    return {
        "split": each.split,
        "before": list(each.before.names),
        "after": list(each.after.names),
        "change": each.change,
        **({"claim": None, "within_noise": None} if each.paired is None else _claim(each, each.paired)),
    }


def _claim(each: Difference, pair: Paired) -> dict[str, Json]:
    """What can be claimed of a difference: on the items that chose a text never that it is more than noise."""
    found = plain_judged(judged(pair))
    if each.after.chosen and not judged(pair).within_noise:
        return {**found, "probability": None, "probability_by_type": None, "claim": None, "within_noise": None}
    return found


def _accepted(each: Accepted) -> Json:
    return {"step": each.step, "epoch": each.epoch, **plain_judged(judged(each.paired))}


def _results(results: Results) -> dict[str, Json]:
    return {
        item: [outcome.hard if isinstance(outcome, Measured) else None for outcome in outcomes]
        for item, outcomes in results.items()
    }
