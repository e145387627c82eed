"""The pages of `explain`: a step from trajectories to verdict, the end of an epoch, one task through the whole run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, repeat
from typing import TYPE_CHECKING

import click
from attrs import evolve

from skillopt_es.cli.printing import print_json
from skillopt_es.cli.terminal import print_page
from skillopt_es.counting import counted
from skillopt_es.events.catalog import (
    CertificateWagered,
    EditsRanked,
    Event,
    EvidenceRetracted,
    MetaSkillWritten,
    PatchesMerged,
    PatchProposed,
    SlowUpdateApplied,
    SlowUpdateProposed,
)
from skillopt_es.events.values import Credit, Edit
from skillopt_es.presenting.documents import plain, result_json, use_json
from skillopt_es.presenting.event_lines import in_words
from skillopt_es.presenting.numbers import change
from skillopt_es.presenting.words import (
    credit_words,
    fate_words,
    names,
    proposal_words,
    short,
    shown_words,
    unsaid_words,
)
from skillopt_es.projections.chains import Chain, EpochEnd, Seen
from skillopt_es.projections.fates import effect_words, is_removal, note_fates, why_untried
from skillopt_es.projections.state import proposals_in
from skillopt_es.runs.items import history_of, split_of

if TYPE_CHECKING:
    from skillopt_es.audit.tried import Tried
    from skillopt_es.projections.item_results import Turned, Use
    from skillopt_es.runs.reading import Reading


_MOST = 150
"""How many groups are shown, and how many proposals of analysts and of merges."""

_EPOCH_TEXTS: Mapping[type[Event], str] = {
    SlowUpdateProposed: "guidance",
    SlowUpdateApplied: "verdict",
    MetaSkillWritten: "meta skill",
}


def step_page(chain: Chain, tried: Tried, solved: Mapping[str, Collection[str]]) -> Iterator[str]:
    """A step for people, in the order in which one thing led to the next; `solved` has the tasks shown as such."""
    if chain.unsaid:
        yield unsaid_words(len(chain.unsaid))
    yield from _certificate(chain)
    yield from _trajectories(chain, solved)
    yield from _analysts(chain, tried.earlier)
    yield from _notes(chain)
    yield from _merges(chain)
    yield from _parts(tried)
    yield from _ranking(chain, tried.errors)
    yield from _candidate(chain)
    yield from _triggers(tried)
    yield from _verdict(chain)
    yield from _widened(chain)


def _certificate(chain: Chain) -> Iterator[str]:
    """What the step's fresh items said of the current skill and the certified one."""
    if chain.wagered is None:
        return
    event, gains = chain.wagered.event, chain.wagered.event.by_item.gains
    yield f"certificate, event {chain.wagered.seq}: {in_words(event)}"
    turned = (
        ("won", [each for each in gains if gains[each] > 0]),
        ("lost", [each for each in gains if gains[each] < 0]),
    )
    yield from (f"  {how}: {names(items)}" for how, items in turned if items)


def _trajectories(chain: Chain, solved: Mapping[str, Collection[str]]) -> Iterator[str]:
    if chain.groups is None:
        return
    yield f"trajectories, grouped by event {chain.groups.seq}"
    groups = chain.groups.event.groups
    for group in groups[:_MOST]:
        what = shown_words(group.kind, group.items, solved.get(group.id, ())) if group.items else "the whole folder"
        opened = f" (opened {', '.join(group.viewed)})" if group.viewed else ""
        yield f"  {group.id}  {what}{opened}"
    if len(groups) > _MOST:
        yield f"  and {counted(len(groups) - _MOST, 'more group')}, which --json lists"


def _analysts(chain: Chain, earlier: Mapping[str, str]) -> Iterator[str]:
    if chain.patches:
        yield "analysts"
    whole = _listed_whole(chain.patches)
    for name, made in chain.patches.items():
        event = made.event
        reply = event.note if event.result in ("unusable", "failed") else short(event.reasoning)
        yield f"  {name}  event {made.seq}: {event.result}{f'; {reply}' if reply else ''}"
        if earlier.get(name):
            yield f"        left out: an edit that was refused in {earlier[name]}"
        yield from _listed(chain, made, whole=name in whole)


Made = Seen[PatchProposed] | Seen[PatchesMerged]


def _listed_whole(made: Mapping[str, Made]) -> frozenset[str]:
    """Whose proposals are listed: so many of these, in order, that a page of many analysts can still be read."""
    sizes = accumulate(len(proposals_in(each.event)) for each in made.values())
    return frozenset(name for name, so_far in zip(made, sizes, strict=True) if so_far <= _MOST)


def _listed(chain: Chain, made: Made, *, whole: bool) -> Iterator[str]:
    proposals = proposals_in(made.event)
    if not whole and proposals:
        yield f"    {counted(len(proposals), 'proposal')}, which --json lists"
    for proposal in proposals if whole else ():
        into = chain.merged_into.get(proposal.id, ())
        yield f"    {proposal.id.rpartition('#')[2]:>2}  {proposal_words(proposal)}"
        if isinstance(made.event, PatchesMerged):
            yield f"        from {names(chain.sources[proposal.id]) or 'what is not recorded'}"
        if into:
            yield f"        merged into {names(into)}"


def _notes(chain: Chain) -> Iterator[str]:
    fates = note_fates(chain)
    if fates and chain.extended is not None:
        yield f"reminder notes, event {chain.extended.seq}"
    for fate in fates:
        yield f"  {fate.reason.replace('_', ' ')}: “{short(fate.note)}” of {fate.patch}; {fate.detail}"


def _merges(chain: Chain) -> Iterator[str]:
    if chain.merges:
        yield "merges"
    whole = _listed_whole({name: chain.merges[name] for name in reversed([*chain.merges])})  # the last ones decide
    for name, made in chain.merges.items():
        event = made.event
        joined = f"; joined as they were, {event.fallback}" if event.fallback else ""
        reply = f"; {short(event.reasoning)}" if event.reasoning else ""
        yield f"  {name}  event {made.seq}: from {names(event.inputs)}{joined}{reply}"
        yield from _listed(chain, made, whole=name in whole)
        dropped = [
            proposal.id
            for source in event.inputs
            if source in chain.patches or source in chain.merges
            for proposal in proposals_in((chain.merges.get(source) or chain.patches[source]).event)
            if proposal.id not in chain.merged_into
        ]
        if dropped:
            yield f"        merged away: {names(dropped)}"


def _ranking(chain: Chain, errors: Mapping[str, float]) -> Iterator[str]:
    if chain.learning_rate is not None:
        yield f"learning rate, event {chain.learning_rate.seq}: {in_words(chain.learning_rate.event)}"
    if chain.ranked is None:
        return
    event = chain.ranked.event
    why = event.fallback or short(event.reasoning)
    if event.together is not None:
        why = (
            f"refused together, won {names(event.together.won) or 'none'}, lost {names(event.together.lost) or 'none'}"
        )
    budget = "" if event.budget is None else f", budget {event.budget}"
    if event.credits:
        yield from _screened(chain, chain.ranked.seq, event)
        return
    said = f"{len(event.chosen)} of {len(event.pool)}{budget}{f'; {why}' if why else ''}"
    yield f"ranking, event {chain.ranked.seq}: {said}"
    for name in event.chosen:
        yield f"  chosen      {name}"
    ranked_out = [name for name in event.pool if name not in event.chosen]
    yield from (f"  ranked out  {name}" for name in ranked_out[:_MOST])
    if len(ranked_out) > _MOST:
        yield f"  and {len(ranked_out) - _MOST} more ranked out"
    for each in event.effects:
        sure = f" (standard error {errors[each.edits[0]]:.2f})" if each.edits[0] in errors else ""
        yield f"  {', '.join(each.edits)}: {effect_words(each)}{sure}"
    if chain.rewritten is not None:
        yield f"rewrite, event {chain.rewritten.seq}: {in_words(chain.rewritten.event)}"


def _screened(chain: Chain, seq: int, event: EditsRanked) -> Iterator[str]:
    """What each edit has earned alone, those that stay first."""
    yield f"screen, event {seq}: {len(event.chosen)} of {len(event.pool)} are kept"
    for kept in (True, False):
        for each in event.credits:
            if (each.edit in event.chosen) is kept:
                yield f"  {'kept   ' if kept else 'dropped'}  {each.edit}: {_earned(chain, each)}"


def _earned(chain: Chain, credit: Credit) -> str:
    """In words; of a line that is tried without, whether a task needs it."""
    why, edit = why_untried(chain, credit), chain.proposals.get(credit.edit)
    if why:
        return f"never tried: {why}"
    if not is_removal(chain, credit.edit) or not isinstance(edit, Edit):
        return credit_words(credit)
    return f"needed by {names(credit.broke)}" if credit.broke else f"of no use to {names(edit.claims)}"


def _parts(tried: Tried) -> Iterator[str]:
    """Items under parts of the candidate that was refused as a whole."""
    if tried.parts:
        yield f"parts of the candidate, tried on {counted(len(tried.parts), 'item')}"
    for each in tried.parts[:_MOST]:
        came = "not measured" if each.hard is None else f"hard {each.hard:.4f}"
        yield f"  {each.item}: {came} with {', '.join(each.edits)} alone"


_SAID = {"should": "should open it, or what it became", "should-not": "should not open it", "none": "needs no skill"}


def _triggers(tried: Tried) -> Iterator[str]:
    """The training items that say what should open which skill; those for whose sake it was refused are marked."""
    if tried.triggers:
        yield f"trigger set, {counted(len(tried.triggers), 'training item')} that passed before"
    for each in tried.triggers:
        came = "not measured" if each.passed is None else "passed" if each.passed else "failed"
        moved = f"opened {names(each.before) or 'nothing'}, then {names(each.after) or 'nothing'}; {came}"
        yield f"  {each.item} {_SAID[each.kind]}: {moved}{'; refused for it' if each.decided else ''}"


def _candidate(chain: Chain) -> Iterator[str]:
    if chain.built is None:
        return
    event = chain.built.event
    yield f"candidate {event.candidate.hash[:12]} from {event.parent[:12]}, event {chain.built.seq}"
    for report in event.reports:
        note = f", {report.note}" if report.note else ""
        yield f"  {report.status}{note}: {report.edit}"
        if report.edit in chain.proposals:
            yield f"    {proposal_words(chain.proposals[report.edit])}"
    if event.rewrite is not None:
        kept = sum(run.length for run in event.rewrite.kept)
        repairs = "".join(f", {each.part} {each.action.replace('_', ' ')}" for each in event.rewrite.repairs)
        yield f"  a whole new text that keeps {counted(kept, 'line')}{repairs}"
    if event.notes:
        yield f"  {counted(event.notes, 'note')} added"


def _verdict(chain: Chain) -> Iterator[str]:
    if chain.gated is not None:
        gate = chain.gated.event.verdict
        yield f"gate, event {chain.gated.seq}: {in_words(chain.gated.event)}"
        yield from (f"  {how}: {names(items)}" for how, items in (("won", gate.won), ("lost", gate.lost)) if items)
        if gate.retested:
            both = [item for item in gate.retested if item not in (*gate.won, *gate.lost)]
            yield f"  turned, and drawn again under both texts: {names(gate.retested)}"
            yield from [f"  of these came out both ways: {names(both)}"] if both else []
        if gate.known_from:
            yield f"  the candidate's text had been measured in {gate.known_from}"
    if chain.skipped is not None:
        ended = chain.skipped.event
        if ended.reason == "no_edit_chosen" and chain.ranked is not None:
            ended = evolve(ended, detail="")  # the screen says it above
        yield f"skipped, event {chain.skipped.seq}: {in_words(ended)}"
    if chain.written is not None:
        yield f"notes, event {chain.written.seq}: {in_words(chain.written.event)}"
    if chain.gap is not None:
        yield f"unknown, event {chain.gap.seq}: {in_words(chain.gap.event)}"
    if chain.gated is None and chain.skipped is None and chain.gap is None:
        yield "no verdict yet"


def _widened(chain: Chain) -> Iterator[str]:
    """The texts that met further validation items after the step."""
    for seen in chain.widened:
        event, score = seen.event, seen.event.score
        new = (score.measured or 0) + (score.unmeasured or 0) - len(event.carried)
        now = f"hard {score.hard:.4f} over {counted(score.measured or 0, 'item')} now"
        yield f"wider, event {seen.seq}: skill {event.skill[:8]} met {counted(new, 'more validation item')}; {now}"


def verdict_words(chain: Chain) -> str:
    """The verdict on a step in a word or two."""
    if chain.verdict is not None:
        return chain.verdict.action.replace("_", " ")
    if chain.skipped is not None:
        return f"skipped, {chain.skipped.event.reason.replace('_', ' ')}"
    return "not over" if chain.gap is None else "end unknown"


def epoch_page(end: EpochEnd) -> Iterator[str]:
    """The end of an epoch for people."""
    if end.drawn is not None:
        drawn = end.drawn.event
        yield f"compared, event {end.drawn.seq}: {drawn.previous[:12]} and {drawn.current[:12]} on {names(drawn.items)}"
    for seen in end.extended:
        yield f"  and, event {seen.seq}: {names(seen.event.items)}"
    if end.proposed:
        for category in ("improved", "regressed", "persistent_fail", "stable_success"):
            items = [pair.item for pair in end.proposed[0].event.pairs if pair.category == category]
            if items:
                yield f"  {category.replace('_', ' ')}: {names(items)}"
    for said in end.events:
        if type(said.event) in _EPOCH_TEXTS:
            yield f"{_EPOCH_TEXTS[type(said.event)]}, event {said.seq}: {in_words(said.event)}"


def show_item(item: str, reading: Reading, *, as_json: bool) -> None:
    """Prints the history of an item."""
    split = split_of(item, reading)
    history = history_of(item, reading)
    if as_json:
        print_json(
            {
                "run": reading.run.name,
                "problem": plain(reading.problem),
                "item": item,
                "split": split,
                "results": [result_json(seen) for seen in history.results],
                "not_run": [
                    {"seq": seen.seq, "place": seen.event.place, "skill": seen.event.skill} for seen in history.left_out
                ],
                "uses": [use_json(use) for use in history.uses],
                "uses_unknown_in_steps": list(history.unknown),
                "bets": [
                    {"seq": seen.seq, "place": seen.event.place, "gain": seen.event.by_item.gains[item]}
                    for seen in history.bets
                ],
                "turned": [plain(turned) for turned in history.turned],
            }
        )
        return
    click.echo(f"{reading.run.name}: item {item} of the {split} split, {counted(len(history.results), 'result')}")
    for seen in history.results:
        click.echo(f"  event {seen.seq:<6} skill {seen.event.skill[:8]}  {in_words(seen.event)}")
    for left in history.left_out:
        click.echo(f"  event {left.seq:<6} skill {left.event.skill[:8]}  {left.event.place}: not run, it could not win")
    for recorded in reading.read(types=("EvidenceRetracted",), mentioning=item):
        if isinstance(recorded.event, EvidenceRetracted) and item in recorded.event.items:
            click.echo(f"  event {recorded.seq:<6} retracted: {in_words(recorded.event)}")
    if history.unknown:
        click.echo(f"not recorded: {unknown_words(history.unknown)}")
    if history.uses or not history.unknown:
        click.echo("analysts that saw it" if history.uses else "no analyst saw it")
    for use in history.uses:
        print_page(use_lines(use))
    click.echo("where it turned" if history.turned else "it turned at no gate and in no comparison")
    for turned in history.turned:
        click.echo(f"  {_turned_words(turned)}")
    print_page(map(_bet_words, history.bets, repeat(item)))


def _bet_words(seen: Seen[CertificateWagered], item: str) -> str:
    """What an item said of the current skill and the certified one, when nothing had met it before."""
    wager = seen.event
    texts = f"{wager.challenger[:8]} against certified {wager.certified[:8]}"
    return f"fresh at {wager.place}, event {seen.seq}: {change(wager.by_item.gains[item])} for {texts}"


def unknown_words(steps: Sequence[int]) -> str:
    """What nobody knows of the steps whose analysts' trajectories are not recorded."""
    return f"which analysts of step {', '.join(map(str, steps))} saw it, and so what came of that"


def use_lines(use: Use) -> Iterator[str]:
    """What one analyst made of the item's trajectory."""
    event = use.patch.event
    as_what = "an example" if event.kind == "examples" else f"a {event.kind}"
    yield f"  {event.patch}, event {use.patch.seq}, as {as_what}: {event.result}"
    for proposal, fates in use.proposals:
        yield f"    {proposal.id}: {proposal_words(proposal)}"
        yield from (f"      {fate_words(fate)}" for fate in fates)
    for note in use.notes:
        yield f"    note “{short(note.note)}”: {note.reason.replace('_', ' ')}, {note.detail}"


def _turned_words(turned: Turned) -> str:
    if turned.step is None:
        return f"event {turned.seq:<6} end of epoch {turned.epoch}: {turned.how} between its first and last skill"
    verdict = turned.action.replace("_", " ")
    return f"event {turned.seq:<6} gate of step {turned.step}: {turned.how} by the candidate; the verdict: {verdict}"
