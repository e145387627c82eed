"""
Each line of a skill with what is behind it: proposals, patches, items, the verdict, and its share of the tokens.

A call's tokens are divided equally between the lines it led to: those that are not blank and were written, at the time,
into a text that was taken. Shares of all lines ever written thus add up to the calls that led to any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve, frozen

from skillopt_es.audit.blame import Attributed, Blame, Maker, advice_behind, calls_behind
from skillopt_es.events.catalog import SlowUpdateProposed
from skillopt_es.events.places import Place
from skillopt_es.events.values import GateVerdict, Proposal
from skillopt_es.projections.trust import Attempts, Support, attempts_of, label, patches_behind, support_of
from skillopt_es.projections.usage import UsageSums
from skillopt_es.skill.alignment import lines_of


@frozen(kw_only=True)
class Cost:
    """
    A share of some calls' tokens and money; None where nothing is known of any call behind it.

    `silent` counts the calls that did not report all their tokens, `unpriced` those that cost an unknown amount.
    """

    calls: int = 0
    input: float | None = None
    output: float | None = None
    silent: int = 0
    money: float | None = None
    unpriced: int = 0

    @property
    def tokens(self) -> float | None:
        """In and out together."""
        if self.input is None and self.output is None:
            return None
        return (self.input or 0.0) + (self.output or 0.0)


@frozen(kw_only=True)
class Behind:
    """
    What is behind all lines of one maker; the proposals are those it carried out and what was merged into them.

    `unsaid` are the merges on the way that did not say which of their inputs they used, `unplaced` the proposals that
    nothing which such a merge saw is worded like: of these all analysts and items count. `support` says whether a
    trusted attempt stands behind them, or only untrusted ones.
    """

    proposals: tuple[Proposal, ...]
    patches: tuple[str, ...]
    items: tuple[str, ...]
    gate: GateVerdict | None
    cost: Cost
    unsaid: tuple[str, ...] = ()
    unplaced: tuple[str, ...] = ()
    support: Support = "trusted"


@frozen(kw_only=True)
class BlamedLine:
    """One line, counted from 1, who wrote it, and what is behind it."""

    number: int
    text: str
    maker: Maker
    behind: Behind


def slots_behind(found: Blame) -> frozenset[str]:
    """The slots of all calls that led to any line that was ever written."""
    return frozenset(call.slot for maker in found.lines_written for call in calls_behind(found, maker))


def blamed_lines(
    found: Blame, text: Attributed, file: str, usage: Mapping[str, UsageSums], untrusted: Attempts = frozenset()
) -> tuple[BlamedLine, ...]:
    """Each line of a file of one of the texts; `usage` has what each slot's calls used."""
    makers = text.makers[file]
    lines_of_slot: dict[str, int] = {}
    for maker, lines in found.lines_written.items():
        for slot in dict.fromkeys(call.slot for call in calls_behind(found, maker)):
            lines_of_slot[slot] = lines_of_slot.get(slot, 0) + lines
    behind = {
        maker: evolve(_behind(found, maker, usage, lines_of_slot), support=_support(found, maker, untrusted))
        for maker in dict.fromkeys(makers)
    }
    nothing = Cost()
    rows = []
    for number, (line, maker) in enumerate(zip(lines_of(text.skill.files[file]), makers, strict=True), start=1):
        what = behind[maker]
        if not line.strip():
            what = evolve(what, cost=nothing)
        rows.append(BlamedLine(number=number, text=line, maker=maker, behind=what))
    return tuple(rows)


def _behind(found: Blame, maker: Maker, usage: Mapping[str, UsageSums], lines_of_slot: Mapping[str, int]) -> Behind:
    slots = dict.fromkeys(call.slot for call in calls_behind(found, maker))
    cost = _cost((usage[slot], lines_of_slot[slot]) for slot in slots if slot in usage and lines_of_slot.get(slot))
    chain = found.chains.get(maker.step) if maker.step is not None else None
    if chain is None:
        advice = advice_behind(found, maker)
        items = () if advice is None else tuple(pair.item for pair in advice.pairs)
        return Behind(proposals=(), patches=(), items=items, gate=None, cost=cost)
    names = dict.fromkeys(name for each in maker.proposals for name in chain.made_of(each))
    makers = {chain.maker_of[name] for name in names}
    patches = (*maker.patches, *(patch for name in maker.proposals for patch in chain.patches_behind(name)))
    patches = tuple(dict.fromkeys(patches))
    return Behind(
        proposals=tuple(evolve(chain.proposals[name], origins=chain.sources[name]) for name in names),
        patches=patches,
        items=chain.items_behind(patches),
        gate=chain.verdict,
        cost=cost,
        unsaid=tuple(merge for merge in chain.unsaid if merge in makers),
        unplaced=tuple(name for name in names if chain.unplaced(name)),
    )


def _support(found: Blame, maker: Maker, untrusted: Attempts) -> Support:
    """What a maker's lines stand on; where several proposals made them, the weakest of them counts."""
    if not untrusted:
        return "trusted"
    advice = advice_behind(found, maker)
    if advice is not None:
        return _of_advice(advice, untrusted)
    chain = found.chains.get(maker.step) if maker.step is not None else None
    if chain is None:
        return "trusted"
    groups = chain.groups.event.groups if chain.groups is not None else ()
    # Not by wording: as the gate looked at it, which goes by what is recorded.
    patches = [patches_behind(each, chain.proposals, chain.patches) for each in maker.proposals] or [maker.patches]
    each = [support_of(label(*attempt, untrusted) for attempt in attempts_of(one, groups)) for one in patches]
    return max(each, key=("trusted", "mixed", "untrusted").index)


def _of_advice(advice: SlowUpdateProposed, untrusted: Attempts) -> Support:
    """The pairs that were compared; one side that nobody vouches for makes a pair doubtful."""
    compared = Place.of_epoch(advice.epoch).slow
    seen = {item for place, item in untrusted if compared.holds(place)}
    return support_of("untrusted" if pair.item in seen else "trusted" for pair in advice.pairs)


def _cost(shares: Iterable[tuple[UsageSums, int]]) -> Cost:
    calls = silent = unpriced = 0
    into: float | None = None
    out: float | None = None
    money: float | None = None
    for usage, lines in shares:
        if not usage.calls:  # its answer was that of a call elsewhere
            continue
        calls += usage.calls
        silent += max(usage.input.silent, usage.output.silent)
        if usage.input.known is not None:
            into = (into or 0.0) + usage.input.known / lines
        if usage.output.known is not None:
            out = (out or 0.0) + usage.output.known / lines
        unpriced += usage.cost.unknown
        if usage.cost.known is not None:
            money = (money or 0.0) + float(usage.cost.known) / lines
    return Cost(calls=calls, input=into, output=out, silent=silent, money=money, unpriced=unpriced)
