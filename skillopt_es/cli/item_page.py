"""One task through a whole run, as a page."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import print_json
from skillopt_es.cli.terminal import print_page
from skillopt_es.counting import counted
from skillopt_es.errors import NotInRun
from skillopt_es.events.catalog import EvidenceRetracted, RolloutCompleted
from skillopt_es.events.values import Failed, Json, Measured, Purpose
from skillopt_es.presenting.documents import fate_json, problem_json, proposal_json
from skillopt_es.presenting.event_lines import in_words
from skillopt_es.presenting.words import fate_words, proposal_words, short
from skillopt_es.projections.chains import Seen

if TYPE_CHECKING:
    from skillopt_es.events.catalog import Recorded
    from skillopt_es.projections.item_history import ItemHistory, Turned, Use
    from skillopt_es.runs.reading import Reading

_SPLITS: Mapping[Purpose, str] = {
    "train": "train",
    "selection": "validation",
    "slow_previous": "train",
    "slow_current": "train",
    "test": "test",
}


def split_of(item: str, reading: Reading) -> str:
    """The split that an item is in; raises NotInRun for an item that the run does not have."""
    from skillopt_es.projections.item_history import split_in

    splits = reading.started.splits
    if split := split_in(splits, item):
        return split
    for recorded in results_of(item, reading):  # an imported run may not know its splits
        assert isinstance(recorded.event, RolloutCompleted)
        return _SPLITS[recorded.event.purpose]
    known = (*splits.train, *splits.val, *splits.test)
    close = difflib.get_close_matches(item, known) or [each for each in known if item in each][:3]
    if not known:
        raise NotInRun(f"{reading.run.name} has no result of an item {item}", hint="nor does it know its items")
    hint = f"did you mean {', '.join(close)}?" if close else f"its items have ids such as {', '.join(known[:3])}"
    raise NotInRun(f"{reading.run.name} has no item {item}", hint=hint)


def results_of(item: str, reading: Reading) -> Iterator[Recorded]:
    """Its rollouts, found without reading those of other items."""
    for recorded in reading.read(types=("RolloutCompleted",), mentioning=item):
        if isinstance(recorded.event, RolloutCompleted) and recorded.event.item == item:
            yield recorded


def history_of(item: str, reading: Reading) -> ItemHistory:
    """Everything that the run recorded of an item."""
    from skillopt_es.projections.chains import CHAIN_TYPES
    from skillopt_es.projections.item_history import item_history

    others = reading.read(types=(*CHAIN_TYPES, "SkillScored", "SlowUpdateProposed"))
    records = sorted([*results_of(item, reading), *others], key=lambda recorded: recorded.seq)
    return item_history(item, (recorded for recorded in records if recorded.seq <= reading.until))


def show_item(item: str, reading: Reading, *, as_json: bool) -> None:
    """Prints the history of an item."""
    split = split_of(item, reading)
    history = history_of(item, reading)
    if as_json:
        print_json(
            {
                "run": reading.run.name,
                "problem": problem_json(reading),
                "item": item,
                "split": split,
                "results": [result_json(seen) for seen in history.results],
                "not_run": [
                    {"seq": seen.seq, "place": seen.event.place, "skill": seen.event.skill} for seen in history.left_out
                ],
                "uses": [use_json(use) for use in history.uses],
                "uses_unknown_in_steps": list(history.unknown),
                "turned": [_turned_json(turned) for turned in history.turned],
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


def unknown_words(steps: Sequence[int]) -> str:
    """What nobody knows of the steps whose analysts' trajectories are not recorded."""
    return f"which analysts of step {', '.join(map(str, steps))} saw it, and so what came of that"


def result_json(seen: Seen[RolloutCompleted]) -> Json:
    """One result for programs."""
    event, outcome = seen.event, seen.event.outcome
    measured = isinstance(outcome, Measured)
    kind = "measured" if measured else "failed" if isinstance(outcome, Failed) else "not_run"
    return {
        "seq": seen.seq,
        "place": event.place,
        "purpose": event.purpose,
        "skill": event.skill,
        "outcome": kind,
        "passed": outcome.passed if isinstance(outcome, Measured) else None,
        "hard": outcome.hard if isinstance(outcome, Measured) else None,
        "soft": outcome.soft if isinstance(outcome, Measured) else None,
        "failure": event.failure,
    }


def use_lines(use: Use) -> Iterator[str]:
    """What one analyst made of the item's trajectory."""
    event = use.patch.event
    yield f"  {event.patch}, event {use.patch.seq}, as a {event.kind}: {event.result}"
    for proposal, fates in use.proposals:
        yield f"    {proposal.id}: {proposal_words(proposal)}"
        yield from (f"      {fate_words(fate)}" for fate in fates)
    for note in use.notes:
        yield f"    note “{short(note.note)}”: {note.reason.replace('_', ' ')}, {note.detail}"


def use_json(use: Use) -> Json:
    """The same for programs."""
    return {
        "patch": use.patch.event.patch,
        "seq": use.patch.seq,
        "step": use.patch.event.step,
        "kind": use.patch.event.kind,
        "result": use.patch.event.result,
        "proposals": [
            {"proposal": proposal_json(proposal), "fates": [fate_json(fate) for fate in fates]}
            for proposal, fates in use.proposals
        ],
        "notes": [{"note": note.note, "reason": note.reason, "detail": note.detail} for note in use.notes],
    }


def _turned_words(turned: Turned) -> str:
    if turned.step is None:
        return f"event {turned.seq:<6} end of epoch {turned.epoch}: {turned.how} between its first and last skill"
    verdict = turned.action.replace("_", " ")
    return f"event {turned.seq:<6} gate of step {turned.step}: {turned.how} by the candidate; the verdict: {verdict}"


def _turned_json(turned: Turned) -> Json:
    return {
        "seq": turned.seq,
        "step": turned.step,
        "epoch": turned.epoch,
        "how": turned.how,
        "verdict": turned.action or None,
    }
