"""Everything that was proposed in a run and not taken, each with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from attrs import frozen

from skillopt_es.events.catalog import PatchProposed, Recorded, SlowUpdateApplied, SlowUpdateProposed
from skillopt_es.events.values import Draft, Edit, GateVerdict, Proposal
from skillopt_es.projections.chains import CHAIN_TYPES, Chain, ChainBuilder, Seen
from skillopt_es.projections.fates import Reason, fates_of, note_fates, reason_of, values_of
from skillopt_es.projections.state import proposals_in

NOT_TAKEN_TYPES = (*CHAIN_TYPES, "SlowUpdateProposed", "SlowUpdateApplied")
"""The events that tell what was not taken."""

Kind = Literal["edit", "suggestion", "draft", "note", "guidance", "reply"]
Why = Literal[Reason, "unusable", "failed"]

# From the end that came furthest to the one that came least far.
_FURTHEST: tuple[Reason, ...] = (
    "rejected", "indecisive", "not_judged", "not_applied", "ranked_out", "screened_out", "merged_away"
)  # fmt: skip


@frozen(kw_only=True)
class NotTaken:
    """
    One thing that was proposed; `path` says what it was merged into before it ended, on the way that led furthest.

    `ends` is how many ends it has: several where several merged edits go back to it. `assumed` where a merge on the
    way did not say which of its inputs it used: the proposal was matched by its wording. `earlier` is the step of an
    earlier refusal and its reason, where an answer was left out for that. Of the `items` that its `patch` is about, the
    `solved` ones were shown for comparison.
    """

    kind: Kind
    id: str
    seq: int
    epoch: int
    step: int | None
    reason: Why
    detail: str
    proposal: Proposal | None = None
    text: str = ""
    path: tuple[str, ...] = ()
    patch: str = ""
    items: tuple[str, ...] = ()
    solved: tuple[str, ...] = ()
    ends: int = 1
    assumed: bool = False
    earlier: str = ""


@frozen
class Refused:
    """Everything that was not taken, and by step the merges that did not say which proposals they used."""

    rows: tuple[NotTaken, ...]
    unsaid: Mapping[int, tuple[str, ...]]


def not_taken(records: Iterable[Recorded]) -> Refused:
    """All that was refused, dropped or could not be read, in the order of its making; open things are not in it."""
    builder = ChainBuilder()
    guided: dict[int, tuple[int, SlowUpdateProposed]] = {}
    rows: list[NotTaken] = []
    for recorded in records:
        builder.add(recorded)
        match recorded.event:
            case SlowUpdateProposed() as event:
                guided[event.epoch] = recorded.seq, event
                if event.result != "guidance":
                    rows.append(_guidance(recorded.seq, event, event.result, event.note))
            case SlowUpdateApplied(verdict=GateVerdict(action="reject" | "indecisive") as verdict) as event:
                why: Why = "rejected" if verdict.action == "reject" else "indecisive"
                rows.append(_guidance(*guided[event.epoch], why, values_of(verdict) + reason_of(verdict)))
    rows += [row for chain in builder.chains.values() for row in of_step(chain)]
    return Refused(
        rows=tuple(sorted(rows, key=lambda row: row.seq)),
        unsaid={chain.step: chain.unsaid for chain in builder.chains.values()},
    )


def of_step(chain: Chain) -> Iterator[NotTaken]:
    """What one step did not take."""
    for name, made in chain.patches.items():
        event = made.event
        if event.result in ("unusable", "failed"):
            yield NotTaken(kind="reply", id=name, seq=made.seq, epoch=chain.epoch, step=chain.step,
                           reason="failed" if event.result == "failed" else "unusable", detail=event.note,
                           patch=name, items=event.items)  # fmt: skip
        for proposal in proposals_in(event):
            yield from _of_proposal(chain, proposal, made)
    for fate in note_fates(chain):
        patch = chain.patches.get(fate.patch)
        if fate.reason in ("taken", "open") or patch is None:
            continue
        yield NotTaken(kind="note", id=fate.patch, seq=patch.seq, epoch=chain.epoch, step=chain.step,
                       reason=fate.reason, detail=fate.detail, text=fate.note, patch=fate.patch,
                       items=patch.event.items)  # fmt: skip


def _of_proposal(chain: Chain, proposal: Proposal, made: Seen[PatchProposed]) -> Iterator[NotTaken]:
    """A proposal with the end that came furthest, unless any of its ends is the skill or may become it."""
    fates = fates_of(chain, proposal.id)
    if any(fate.reason in ("taken", "open") for fate in fates):
        return
    furthest = min(fates, key=lambda fate: _FURTHEST.index(fate.reason))
    yield NotTaken(kind=_kind(proposal), id=proposal.id, seq=made.seq, epoch=chain.epoch, step=chain.step,
                   reason=furthest.reason, detail=furthest.detail, proposal=proposal, path=furthest.path,
                   patch=made.event.patch, items=made.event.items, ends=len(fates),
                   assumed=furthest.assumed)  # fmt: skip


def _kind(proposal: Proposal) -> Kind:
    if isinstance(proposal, Edit):
        return "edit"
    return "draft" if isinstance(proposal, Draft) else "suggestion"


def _guidance(seq: int, event: SlowUpdateProposed, why: Why, detail: str) -> NotTaken:
    items = tuple(pair.item for pair in event.pairs)
    return NotTaken(kind="guidance" if event.guidance else "reply", id=f"epoch {event.epoch}", seq=seq,
                    epoch=event.epoch, step=None, reason=why, detail=detail, text=event.guidance,
                    items=items)  # fmt: skip
