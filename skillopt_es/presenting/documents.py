"""
Typed values as JSON: the one way from a value to what programs get of `--json`.

A value is an object of its fields, whatever is in it. Hooks are for what programs know by another shape: a name that
differs, a text that is null where it says nothing, a sum without what only the log needs. Events and calls are as the
log has them, whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attrs import asdict, evolve, fields
from cattrs import Converter
from cattrs.gen import make_dict_unstructure_fn, override

from skillopt_es.audit.improvement import Stretch
from skillopt_es.errors import SkillOptError
from skillopt_es.events.catalog import (
    Event,
    Recorded,
    RolloutCompleted,
    RunForked,
    SealedTestOpened,
)
from skillopt_es.events.journal import CallRow
from skillopt_es.events.requests import KINDS
from skillopt_es.events.strict import strict_converter
from skillopt_es.events.values import Draft, Edit, Failed, Json, Measured, NotRun, Proposal, Score, Suggestion
from skillopt_es.projections.by_hand import ByHand
from skillopt_es.projections.chains import Chain, EpochEnd, Seen
from skillopt_es.projections.fates import Fate, fates_of, note_fates, verdict_of
from skillopt_es.projections.intervals import Interval, Judged
from skillopt_es.projections.item_results import Turned
from skillopt_es.projections.lines import Part
from skillopt_es.projections.seal import Looks
from skillopt_es.projections.usage import Tally, UsageSums
from skillopt_es.runs.overview import Spent

if TYPE_CHECKING:
    from skillopt_es.projections.item_results import Use


_converter = Converter()


def plain(value: object) -> Json:
    """A value as JSON; null for None."""
    return cast("Json", _converter.unstructure(value))


def plain_fields(value: object) -> dict[str, Json]:
    """A value with fields as a JSON object."""
    return cast("dict[str, Json]", _converter.unstructure(value))


def some_of(value: object, *names: str) -> dict[str, Json]:
    """Some of a value's fields, each under its own name."""
    return {name: plain(getattr(value, name)) for name in names}


def plain_score(score: Score) -> dict[str, Json]:
    """A score whose means are null when nothing was measured."""
    return {**plain_fields(score), **({"hard": None, "soft": None} if score.measured == 0 else {})}


def plain_part_score(score: Score, part: Part | None) -> dict[str, Json]:
    """A score on validation, and over which part of the items it is; null where it is over all."""
    return {**plain_score(score), "over_items": plain(part)}


def plain_judged(seen: Judged) -> dict[str, Json]:
    """What a comparison by the same items shows: what turned, how probable that is by chance, and what can be said."""
    pair = seen.pair
    return {
        **some_of(pair, "items", "won", "lost"),
        "probability": seen.probability,
        "probability_by_type": seen.by_family,
        "comparisons": seen.comparisons,
        "types_that_could_turn": pair.kinds_that_could if pair.families else None,
        "types_that_turned": pair.kinds_turned if pair.families else None,
        "claim": seen.claim,
        "within_noise": seen.within_noise,
    }


def plain_origin(forked: RunForked | None) -> Json:
    """Which run a fork was made of, and where; null for a run that is none."""
    return None if forked is None else {"run": forked.parent, "run_id": forked.parent_id, "seq": forked.seq}


def _hook(cls: type, shape: Callable[[Any], Json]) -> None:
    _converter.register_unstructure_hook(cls, shape)


def _fields(cls: type, *, null: str = "", **names: str) -> None:
    """A value's own fields; the one called `null` is null where it says nothing, some have other names for programs."""

    def made(known: Any) -> Callable[[Any], Json]:  # noqa: ANN401 - a class, as cattrs says it
        blank = (lambda value: value or None) if null else None
        changed: Any = {name: override(rename=other) for name, other in names.items()}
        changed[null] = override(rename=names.get(null), unstruct_hook=blank)
        return make_dict_unstructure_fn(known, _converter, **changed)

    _converter.register_unstructure_hook_factory(lambda asked: asked is cls, made)


def _tagged(kind: str, word: str) -> Callable[[Any], Json]:
    """The fields of one of several kinds, with a word that says which."""

    def shape(value: Any) -> Json:  # noqa: ANN401 - one of the kinds
        return {kind: word, **{each.name: plain(getattr(value, each.name)) for each in fields(type(value))}}

    return shape


def _usage(usage: UsageSums) -> dict[str, Json]:
    """Calls, tokens and money; null for what no call reported."""
    tokens: dict[str, Json] = {}
    for kind in KINDS:
        tally: Tally = getattr(usage, kind)
        tokens[f"{kind}_tokens"] = tally.known
        tokens[f"{kind}_unreported_calls"] = tally.silent
    known = usage.cost.known
    return {
        **some_of(usage, "calls", "failed", "tries"),
        **tokens,
        "cost": None if known is None else float(known),
        "cost_unknown_calls": usage.cost.unknown,
    }


def _spent(spent: Spent) -> Json:
    head: Mapping[str, Json] = {
        "currency": spent.currency or None,
        "crashes": spent.crashes,
        "inherited": spent.inherited,
    }
    return {**head, **_usage(spent.usage.total)}


def _look(look: SealedTestOpened) -> Json:
    return {"look": look.look, "by": look.by, "skill": look.skill or None, "evaluation": look.evaluation or None}


_hook(Path, str)
_hook(Decimal, float)
_hook(SkillOptError, str)
_hook(UsageSums, _usage)
_hook(Spent, _spent)
_hook(Interval, lambda interval: [interval.low, interval.high])
_hook(Seen, lambda seen: {"seq": seen.seq, "type": type(seen.event).__name__, "data": plain_payload(seen.event)})
_hook(Looks, lambda looks: {"count": looks.count, "opened": [_look(look) for look in looks.opened]})
for _proposal in (Edit, Suggestion, Draft):
    _hook(_proposal, _tagged("type", _proposal.__name__.lower()))
for _outcome, _word in ((Measured, "measured"), (Failed, "failed"), (NotRun, "not_run")):
    _hook(_outcome, _tagged("outcome", _word))
_fields(Fate, null="same_as")
_fields(Turned, null="action", action="verdict")
_fields(Stretch, null="verdict", name="after", usage="used")

_event_converter = strict_converter(detailed=False)


def plain_event(recorded: Recorded) -> dict[str, Json]:
    """An event as JSON, in the current version of its type."""
    kind = type(recorded.event)
    return {
        "seq": recorded.seq,
        "type": kind.__name__,
        "version": kind.VERSION,
        **some_of(recorded, "recorded_at", "prev_hash", "hash"),
        "data": plain_payload(recorded.event),
    }


def plain_payload(event: Event) -> dict[str, Json]:
    """What an event says, as JSON."""
    return cast("dict[str, Json]", _event_converter.unstructure(event))


def plain_call(row: CallRow) -> dict[str, Json]:
    """A call as JSON; its messages and its answer are named by digest."""
    call = asdict(row.call)
    call.update(request=row.call.request.said, tries=json.loads(row.call.tries))
    return {
        **some_of(row, "n", "attempt", "recorded_at", "digest"),
        **call,
    }


def by_hand_json(found: ByHand) -> Json:
    """What people did to a run, for programs; null where they did nothing."""
    if not found:
        return None
    counts = found.counts
    return {
        "accepted": counts.accepted,
        "rejected": counts.rejected,
        **some_of(found, "pinned", "struck", "hints"),
        "left_out": {split: list(items) for split, items in found.left_out.items()},
        "results_left_out": [{"place": place, "item": item} for place, item in found.results],
    }


def step_json(chain: Chain) -> dict[str, Json]:
    """A step for programs: its events whole, and the fate of everything that was proposed."""
    reason, detail = verdict_of(chain)
    return {
        "step": chain.step,
        "epoch": chain.epoch,
        "verdict": reason,
        "detail": detail,
        "matched_by_wording": bool(chain.unsaid),
        "events": [plain(seen) for seen in chain.events],
        "proposals": [_proposal_json(chain, proposal) for proposal in chain.proposals.values()],
        "notes": [
            {"patch": fate.patch, "note": fate.note, "reason": fate.reason, "detail": fate.detail}
            for fate in note_fates(chain)
        ],
    }


def _proposal_json(chain: Chain, proposal: Proposal) -> Json:
    patches = chain.patches_behind(proposal.id)
    return {
        "proposal": plain(evolve(proposal, origins=chain.sources[proposal.id])),
        "made_by": chain.maker_of[proposal.id],
        "patches": list(patches),
        "items": list(chain.items_behind(patches)),
        "fates": [plain(fate) for fate in fates_of(chain, proposal.id)],
    }


def epoch_json(end: EpochEnd) -> dict[str, Json]:
    """The end of an epoch for programs."""
    return {
        "epoch": end.epoch,
        "verdict": end.applied[-1].event.verdict.action if end.applied else None,
        "events": [plain(seen) for seen in end.events],
    }


def result_json(seen: Seen[RolloutCompleted]) -> Json:
    """One result for programs."""
    event, outcome = seen.event, seen.event.outcome
    measured = isinstance(outcome, Measured)
    kind = "measured" if measured else "failed" if isinstance(outcome, Failed) else "not_run"
    return {
        "seq": seen.seq,
        **some_of(event, "place", "purpose", "skill"),
        "outcome": kind,
        "passed": outcome.passed if isinstance(outcome, Measured) else None,
        "hard": outcome.hard if isinstance(outcome, Measured) else None,
        "soft": outcome.soft if isinstance(outcome, Measured) else None,
        "failure": event.failure,
    }


def use_json(use: Use) -> Json:
    """The same for programs."""
    return {
        "patch": use.patch.event.patch,
        "seq": use.patch.seq,
        **some_of(use.patch.event, "step", "kind", "result"),
        "proposals": [
            {"proposal": plain(proposal), "fates": [plain(fate) for fate in fates]} for proposal, fates in use.proposals
        ],
        "notes": [{"note": note.note, "reason": note.reason, "detail": note.detail} for note in use.notes],
    }
