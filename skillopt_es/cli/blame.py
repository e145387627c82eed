"""`blame`: who wrote each line of a skill, what was behind it, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import evolve

from skillopt_es.cli.options import directory_option, json_option, moment_option, which_option
from skillopt_es.cli.printing import as_found, print_json, print_table
from skillopt_es.counting import counted
from skillopt_es.errors import NotInRun
from skillopt_es.events.errors import LogDamaged, RunNotFound
from skillopt_es.presenting.documents import plain, some_of
from skillopt_es.presenting.numbers import shown_amount
from skillopt_es.presenting.words import credit_words, names, proposal_words, unsaid_words

if TYPE_CHECKING:
    from skillopt_es.audit.blame import Attributed, Blame, BlamedLine, Cost, Maker
    from skillopt_es.deploy.facts import Which
    from skillopt_es.events.values import Json
    from skillopt_es.projections.prices import Prices
    from skillopt_es.projections.usage import UsageSums
    from skillopt_es.runs.lookup import Moment
    from skillopt_es.runs.reading import Reading

_MOST = 50
"""How many of the proposals behind a line are shown, those nearest to it."""


@click.command("blame")
@click.argument("words", nargs=-1, metavar="[RUN] [FILE]")
@which_option("best", "current")
@moment_option("--at", "at", "The skill as it was at the end of this step or epoch, or after this event.")
@click.option(
    "--line", "numbers", type=click.IntRange(min=1), multiple=True, metavar="N",
    help="Everything behind this line; may be repeated.",
)  # fmt: skip
@click.option(
    "--export", "exported", type=click.Path(path_type=Path), metavar="FOLDER",
    help="Ask about the skill in this exported or installed folder, by the line numbers of its files.",
)  # fmt: skip
@directory_option
@json_option
def blame_command(
    words: tuple[str, ...],
    which: Which,
    at: Moment | None,
    numbers: tuple[int, ...],
    exported: Path | None,
    directory: Path,
    as_json: bool,
) -> int:
    """
    Who wrote each line of a skill: the event, its step and epoch, and the line's share of the optimizer's tokens.

    A line belongs to the event that wrote its text as it stands. Tokens are those of the analysts, merges and
    selections that led to it; each call's are divided equally between the lines (blank ones aside) that it led to,
    at the time. RUN defaults to the newest, FILE to the skill's main file; --line and --json have edits, patches
    and items, too. Lines are counted in the skill as it was measured; an exported SKILL.md may begin with more
    frontmatter than that, and --export counts as it does.

    \b
    skillopt-es blame
    skillopt-es blame my-run --line 12
    skillopt-es blame my-run SKILL.md --which current --at step 12
    skillopt-es blame my-run --export ~/.claude/skills/my-skill --line 11
    """
    from skillopt_es.audit.blame import BLAME_TYPES, blame, blamed_lines, slots_behind
    from skillopt_es.deploy.check import exported_file
    from skillopt_es.projections.prices import recorded_prices
    from skillopt_es.projections.trust import untrusted_attempts
    from skillopt_es.runs.lookup import seq_of
    from skillopt_es.runs.reading import Reading

    if exported is not None and at is not None:
        raise click.UsageError("--export names a moment already: leave out --at")
    folder, file = _run_and_file(words, directory)
    with Reading.of(folder) as reading:
        there = None if exported is None else exported_file(exported, reading.log, file)
        until = None if at is None else seq_of(reading, at)
        if there is not None:
            which, until, file = there.which, there.until, there.measured_as
        found = blame(reading.read(types=BLAME_TYPES, until=1 if which == "initial" else until))
        if found is None:
            raise reading.problem or NotInRun(f"{reading.run.name} has no skill yet", hint="the run has not begun")
        text = found.current if which == "current" else found.best
        path = file or text.skill.main or _only(text.makers)
        if path not in text.makers:
            raise NotInRun(f"the skill has no file {path}", hint=f"it has {names(sorted(text.makers))}")
        prices = recorded_prices(recorded.event for recorded in reading.read(types=("RunStarted", "RunResumed")))
        untrusted = untrusted_attempts(reading.read(types=("RolloutCompleted",), mentioning="untrusted"))
        lines = blamed_lines(found, text, path, _usage(slots_behind(found), reading, prices), untrusted)
        if there is not None:
            lines = tuple(evolve(line, number=line.number + there.moved) for line in lines[there.replaced :])
        wanted = _chosen(lines, numbers, path)
        if as_json:
            print_json(_json(reading, text, path, prices.currency, wanted))
        elif numbers:
            unsaid = {merge for line in wanted for merge in line.behind.unsaid}
            if unsaid:
                click.echo(unsaid_words(len(unsaid)))
            for line in wanted:
                _print_line(line, found, prices.currency)
        else:
            then = f" at {at[0]} {at[1]}" if at else ""
            click.echo(f"{reading.run.name}: {path} of the {which} skill{then} ({text.skill.hash[:12]})")
            _print(lines, prices.currency)
        return as_found(reading)


def _run_and_file(words: Sequence[str], directory: Path) -> tuple[Path, str]:
    """The run's folder and the file; one word that is no run is a file of the newest one."""
    from skillopt_es.runs.folders import find_run

    if len(words) > 2:
        raise click.UsageError("blame takes a run and a file of its skill: blame [RUN] [FILE]")
    if len(words) == 1:
        try:
            return find_run(words[0], directory), ""
        except RunNotFound:
            if not Path(words[0]).suffix:
                raise
            return find_run(None, directory), words[0]
    return find_run(words[0] if words else None, directory), words[1] if words else ""


def _usage(slots: frozenset[str], reading: Reading, prices: Prices) -> dict[str, UsageSums]:
    """The cost of the calls of each slot, failed attempts too."""
    from skillopt_es.events.journal import Journal
    from skillopt_es.projections.usage import usage_of

    journal = Journal(reading.log.reader)
    usage = {}
    for slot in sorted(slots):
        try:
            usage[slot] = usage_of(journal.attempts(slot), prices).total
        except LogDamaged as error:  # its lines are told without it
            reading.meet(error)
    return usage


def _only(files: Mapping[str, object]) -> str:
    """The one file of a folder of skills; raises NotInRun where there are several, or none."""
    if len(files) == 1:
        return next(iter(files))
    raise NotInRun("which file of the folder of skills?", hint=f"it has {names(sorted(files)) if files else 'none'}")


def _chosen(lines: Sequence[BlamedLine], numbers: Sequence[int], path: str) -> Sequence[BlamedLine]:
    if not numbers:
        return lines
    by_number = {line.number: line for line in lines}
    for number in numbers:
        if number > max(by_number, default=0):
            raise NotInRun(f"{path} has no line {number}", hint=f"its last one is line {max(by_number, default=0)}")
        if number not in by_number:
            raise NotInRun(f"line {number} belongs to the frontmatter that the export wrote", hint="no event wrote it")
    return [by_number[number] for number in numbers]


def _print(lines: Sequence[BlamedLine], currency: str) -> None:
    """One row a line; a + behind a number says that it is a lower bound."""
    doubtful = any(line.behind.support != "trusted" for line in lines)
    rows = [
        (
            str(line.number),
            str(line.maker.seq),
            _written_by(line.maker),
            *([_support(line)] if doubtful else []),
            _tokens(line.behind.cost),
            *([_money(line.behind.cost)] if currency else []),
            f"| {line.text}",
        )
        for line in lines
    ]
    cost = [f"cost {currency}"] if currency else []
    headers = ("line", "event", "written by", *(["evidence"] if doubtful else []), "tokens", *cost, "| text")
    first = 4 if doubtful else 3
    print_table(headers, rows, right=(0, 1, *range(first, first + 1 + len(cost))))


def _support(line: BlamedLine) -> str:
    """What a line stands on, where that is not plainly trusted."""
    return {"trusted": "", "mixed": "mixed", "untrusted": "UNTRUSTED ONLY"}[line.behind.support]


def _written_by(maker: Maker) -> str:
    """The place without what its step says already."""
    return _place(maker) if maker.step is None or maker.kind == "unknown" else f"{maker.kind}, step {maker.step}"


def _place(maker: Maker) -> str:
    if maker.kind == "initial":
        return "initial"
    if maker.kind == "unknown":
        return "unknown" if maker.step is None else f"unknown, step {maker.step}"
    if maker.step is None:
        return f"guidance, epoch {maker.epoch}"
    return f"{maker.kind}, step {maker.step}, epoch {maker.epoch}"


def _tokens(cost: Cost) -> str:
    if not cost.calls:
        return ""
    if cost.tokens is None:
        return "?"
    return f"{cost.tokens:,.0f}{'+' if cost.silent else ''}"


def _money(cost: Cost) -> str:
    if not cost.calls:
        return ""
    return "?" if cost.money is None else shown_amount(cost.money, least=bool(cost.unpriced))


def _print_line(line: BlamedLine, found: Blame, currency: str) -> None:
    """One line with all that is behind it."""
    from skillopt_es.cli.explain_pages import verdict_words

    maker, behind = line.maker, line.behind
    click.echo(f"line {line.number}: {line.text}" if line.text.strip() else f"line {line.number} is empty")
    click.echo(f"  written by event {maker.seq}: {_place(maker)}")
    for proposal in behind.proposals[:_MOST]:
        role = "applied" if proposal.id in maker.proposals else "merged into it"
        click.echo(f"  {role}: {proposal.id}: {proposal_words(proposal)}")
    if len(behind.proposals) > _MOST:
        click.echo(f"  and {counted(len(behind.proposals) - _MOST, 'more proposal')}")
    if behind.unplaced:
        click.echo(f"  what {names(behind.unplaced)} came from is not recorded, and nothing is worded like it")
    if behind.patches:
        click.echo(f"  analysts: {names(behind.patches)}")
    if behind.items:
        click.echo(f"  items: {names(behind.items)}")
    if behind.support != "trusted":
        only = "only " if behind.support == "untrusted" else "also "
        click.echo(f"  evidence: {only}attempts whose texts nobody vouches for")
    for credit in behind.credits:
        click.echo(f"  tried alone: {credit_words(credit)}")
    gate = behind.gate
    if gate is not None and maker.step is not None:
        turned = "not compared" if gate.alone else _turned(gate.won, gate.lost)
        click.echo(f"  gate: {verdict_words(found.chains[maker.step])}; {turned}")
    if behind.cost.calls:
        money = f", {currency} {_money(behind.cost)}" if currency else ""
        said = f" ({behind.cost.silent} did not report theirs)" if behind.cost.silent else ""
        click.echo(f"  its share of {counted(behind.cost.calls, 'call')}: {_tokens(behind.cost)} tokens{money}{said}")


def _turned(won: Sequence[str], lost: Sequence[str]) -> str:
    return f"won {names(won) if won else 'none'}; lost {names(lost) if lost else 'none'}"


def _json(reading: Reading, text: Attributed, path: str, currency: str, lines: Sequence[BlamedLine]) -> Json:
    return {
        "run": reading.run.name,
        "problem": plain(reading.problem),
        "skill": text.skill.hash,
        "file": path,
        "currency": currency or None,
        "lines": [_line_json(line) for line in lines],
    }


def _line_json(line: BlamedLine) -> Json:
    maker, behind = line.maker, line.behind
    gate, cost = behind.gate, behind.cost
    return {
        "line": line.number,
        "text": line.text,
        "event": maker.seq,
        **some_of(maker, "kind", "step", "epoch", "proposals"),
        "behind": [plain(proposal) for proposal in behind.proposals[:_MOST]],
        "behind_left_out": max(0, len(behind.proposals) - _MOST),
        "matched_by_wording": bool(behind.unsaid),
        **some_of(behind, "unplaced", "patches", "items"),
        "evidence": behind.support,
        "credits": [plain(credit) for credit in behind.credits],
        "won": None if gate is None else list(gate.won),
        "lost": None if gate is None else list(gate.lost),
        "verdict": None if gate is None else gate.action,
        "calls": cost.calls,
        "input_tokens": cost.input,
        "output_tokens": cost.output,
        "unreported_calls": cost.silent,
        "cost": cost.money,
        "unpriced_calls": cost.unpriced,
    }
