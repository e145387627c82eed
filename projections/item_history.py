"""One task through a whole run: its results, the analysts that saw them, what came of that, and where it turned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from attrs import frozen

from skillopt_es.events.catalog import (
    CandidateGated,
    PatchProposed,
    Recorded,
    RolloutCompleted,
    SkillScored,
    SlowUpdateProposed,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import Proposal, SplitIds
from skillopt_es.projections.chains import ChainBuilder, Seen
from skillopt_es.projections.fates import Fate, NoteFate, fates_of, note_fates
from skillopt_es.projections.state import proposals_in


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
    Everything that a run recorded of one item; `left_out` are the evaluations that ended before they came to it.

    `unknown` are the steps that trained on it and do not say whether an analyst saw that.
    """

    item: str
    results: tuple[Seen[RolloutCompleted], ...]
    left_out: tuple[Seen[SkillScored], ...]
    uses: tuple[Use, ...]
    turned: tuple[Turned, ...]
    unknown: tuple[int, ...] = ()


def split_in(splits: SplitIds, item: str) -> str:
    """The split that an item is in; empty where that is not recorded."""
    named = (("train", splits.train), ("validation", splits.val), ("test", splits.test))
    return next((name for name, items in named if item in items), "")


def item_history(item: str, records: Iterable[Recorded]) -> ItemHistory:
    """The history of an item; from all events, or CHAIN_TYPES, its rollouts, all scores and SlowUpdateProposed."""
    builder = ChainBuilder()
    results: list[Seen[RolloutCompleted]] = []
    left_out: list[Seen[SkillScored]] = []
    turned: list[Turned] = []
    for recorded in records:
        builder.add(recorded)
        match recorded.event:
            case RolloutCompleted() as event if event.item == item:
                results.append(Seen(recorded.seq, event))
            case SkillScored() as event if item in event.not_run:
                left_out.append(Seen(recorded.seq, event))
            case CandidateGated(verdict=verdict) as event if item in (*verdict.won, *verdict.lost):
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
