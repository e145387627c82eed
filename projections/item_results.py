"""The results of single items: by text and by step, one item through the whole run, and families of items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal

from attrs import field, frozen

from skillopt_es.events.catalog import (
    CandidateGated,
    CertificateWagered,
    EditsRanked,
    PatchProposed,
    Recorded,
    RolloutCompleted,
    SkillScored,
    SlowUpdateProposed,
    names_of,
)
from skillopt_es.events.places import Place
from skillopt_es.events.results import Result
from skillopt_es.events.values import GateVerdict, Outcome, Proposal, SplitIds
from skillopt_es.projections.chains import CHAIN_TYPES, ChainBuilder, Seen
from skillopt_es.projections.fates import Fate, NoteFate, fates_of, note_fates
from skillopt_es.projections.state import proposals_in

Results = Mapping[str, tuple[Outcome, ...]]
"""Every outcome of each item, by item, in the order in which they were recorded."""


@frozen(kw_only=True)
class ItemResults:
    """
    `validation` and `test` are by the hash of a skill, `train` is by step; `types` has each item's type of task.

    `at` has the validation and test results by the place at which they were evaluated.
    """

    validation: Mapping[str, Results]
    test: Mapping[str, Results]
    train: Mapping[int, Results]
    types: Mapping[str, str]
    at: Mapping[str, Mapping[str, Outcome]] = field(factory=dict)


def item_results(found: Iterable[Result]) -> ItemResults:
    """All of these results of single items, in their order."""
    validation: dict[str, dict[str, tuple[Outcome, ...]]] = {}
    test: dict[str, dict[str, tuple[Outcome, ...]]] = {}
    train: dict[int, dict[str, tuple[Outcome, ...]]] = {}
    types: dict[str, str] = {}
    at: dict[str, dict[str, Outcome]] = {}
    for result in found:
        item, purpose = result.item, result.purpose
        if purpose == "selection":
            of = validation.setdefault(result.skill, {})
        elif purpose == "test":
            of = test.setdefault(result.skill, {})
        elif purpose == "train" and (step := _step_of(result.place)) is not None:
            of = train.setdefault(step, {})
        else:
            continue
        types[item] = result.task_type
        if purpose != "train":
            at.setdefault(result.place, {})[item] = result.outcome
        of[item] = (*of.get(item, ()), result.outcome)
    return ItemResults(validation=validation, test=test, train=train, types=types, at=at)


@lru_cache(maxsize=1024)
def _step_of(place: str) -> int | None:
    """The step of a place; remembered, for many results in a row have the same."""
    return Place(place).step


def families_of(types: Mapping[str, str]) -> dict[str, str]:
    """
    The family of each item that has a type; no families where all have the same, or each its own.

    One family of all says nothing of what turns together: there is no other to tell it from.
    """
    typed = {item: kind for item, kind in types.items() if kind}
    kinds = set(typed.values())
    if len(kinds) == len(typed) or (len(kinds) == 1 and len(typed) == len(types)):
        return {}
    return typed


@frozen(kw_only=True)
class Use:
    """An analyst saw the item's trajectory: what it proposed, and what became of that."""

    patch: Seen[PatchProposed]
    proposals: tuple[tuple[Proposal, tuple[Fate, ...]], ...]
    notes: tuple[NoteFate, ...]


@frozen(kw_only=True)
class Turned:
    """The item came out otherwise than under the text before: at a gate or in an epoch's comparison."""

    seq: int
    step: int | None
    epoch: int
    how: Literal["won", "lost", "improved", "regressed"]
    action: str = ""


@frozen(kw_only=True)
class ItemHistory:
    """
    Everything that a run recorded of one item; `left_out` are the evaluations that ended before they reached it.

    `bets` are those in which it counted for the certificate. `unknown` are the steps that trained on it and do not say
    whether an analyst saw that.
    """

    item: str
    results: tuple[Seen[RolloutCompleted], ...]
    left_out: tuple[Seen[SkillScored], ...]
    uses: tuple[Use, ...]
    turned: tuple[Turned, ...]
    unknown: tuple[int, ...] = ()
    bets: tuple[Seen[CertificateWagered], ...] = ()


def split_in(splits: SplitIds, item: str) -> str:
    """The split that an item is in; empty where that is not recorded."""
    named = (("train", splits.train), ("validation", splits.val), ("test", splits.test))
    return next((name for name, items in named if item in items), "")


HISTORY_TYPES = (*CHAIN_TYPES, *names_of((RolloutCompleted, SkillScored, SlowUpdateProposed)))
"""The events that the histories of items are made of; of rollouts, an item's own are enough for its own."""


def item_history(item: str, records: Iterable[Recorded]) -> ItemHistory:
    """The history of an item; from all events, or those of HISTORY_TYPES."""
    builder = ChainBuilder()
    results: list[Seen[RolloutCompleted]] = []
    left_out: list[Seen[SkillScored]] = []
    turned: list[Turned] = []
    bets: list[Seen[CertificateWagered]] = []
    for recorded in records:
        builder.add(recorded)
        match recorded.event:
            case RolloutCompleted() as event if event.item == item:
                results.append(Seen(recorded.seq, event))
            case CertificateWagered() as event if item in event.by_item.gains:
                bets.append(Seen(recorded.seq, event))
            case SkillScored() as event if item in event.not_run:
                left_out.append(Seen(recorded.seq, event))
            case (CandidateGated(verdict=verdict) | EditsRanked(together=GateVerdict() as verdict)) as event if (
                item in (*verdict.won, *verdict.lost)
            ):
                turned.append(
                    Turned(seq=recorded.seq, step=event.step, epoch=builder.chains[event.step].epoch,
                           how="won" if item in verdict.won else "lost", action=verdict.action)
                )  # fmt: skip
            case SlowUpdateProposed() as event:
                turned += [
                    Turned(seq=recorded.seq, step=None, epoch=event.epoch, how=pair.category)
                    for pair in event.pairs
                    if pair.item == item and pair.category in ("improved", "regressed")
                ]
    return ItemHistory(
        item=item,
        results=tuple(results),
        left_out=tuple(left_out),
        uses=_uses(item, builder),
        turned=tuple(turned),
        unknown=_unknown(results, builder),
        bets=tuple(bets),
    )


def _unknown(results: Iterable[Seen[RolloutCompleted]], builder: ChainBuilder) -> tuple[int, ...]:
    steps = (Place(seen.event.place).step for seen in results if seen.event.purpose == "train")
    known = (builder.chains[step] for step in dict.fromkeys(steps) if step in builder.chains)
    return tuple(chain.step for chain in known if chain.analysts_unknown)


def _uses(item: str, builder: ChainBuilder) -> tuple[Use, ...]:
    uses = []
    for chain in builder.chains.values():
        for name, patch in chain.patches.items():
            if item not in patch.event.items:
                continue
            proposals = tuple((each, fates_of(chain, each.id)) for each in proposals_in(patch.event))
            notes = tuple(fate for fate in note_fates(chain) if fate.patch == name)
            uses.append(Use(patch=patch, proposals=proposals, notes=notes))
    return tuple(uses)
