"""Typed values as JSON: the shapes that programs get from `--json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import asdict

from skillopt_es.events.values import Json, Proposal
from skillopt_es.projections.seal import Looks
from skillopt_es.projections.usage import KINDS, Tally, UsageSums
from skillopt_es.runs.overview import Spent

if TYPE_CHECKING:
    from skillopt_es.projections.fates import Fate
    from skillopt_es.runs.reading import Reading


def looks_json(looks: Looks, *, sealed: bool) -> Json:
    """The same for programs."""
    opened: list[Json] = [
        {"look": look.look, "by": look.by, "skill": look.skill or None, "evaluation": look.evaluation or None}
        for look in looks.opened
    ]
    return {"sealed": sealed, "count": looks.count, "opened": opened}


def total_json(spent: Spent) -> Json:
    """The totals, for other commands' documents."""
    head: dict[str, Json] = {"currency": spent.currency or None, "crashes": spent.crashes, "inherited": spent.inherited}
    return {**head, **usage_json(spent.usage.total)}


def usage_json(usage: UsageSums) -> dict[str, Json]:
    """A group as JSON; null for what no call reported."""
    tokens: dict[str, Json] = {}
    for kind in KINDS:
        tally: Tally = getattr(usage, kind)
        tokens[f"{kind}_tokens"] = tally.known
        tokens[f"{kind}_unreported_calls"] = tally.silent
    known = usage.cost.known
    return {
        "calls": usage.calls,
        "failed": usage.failed,
        "tries": usage.tries,
        **tokens,
        "cost": None if known is None else float(known),
        "cost_unknown_calls": usage.cost.unknown,
    }


def fate_json(fate: Fate) -> Json:
    """A fate for programs."""
    return {
        "path": list(fate.path),
        "reason": fate.reason,
        "detail": fate.detail,
        "assumed": fate.assumed,
        "same_as": fate.same_as or None,
    }


def proposal_json(proposal: Proposal) -> Json:
    """A proposal for programs, with its kind."""
    values: dict[str, Json] = asdict(proposal, value_serializer=lambda _, __, value: _listed(value))
    return {"type": type(proposal).__name__.lower(), **values}


def _listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def problem_json(reading: Reading) -> Json:
    """What is wrong with the log, for programs; null when nothing was noticed."""
    return None if reading.problem is None else str(reading.problem)
