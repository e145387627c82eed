"""The skill as it came out, line by line with who wrote it; what is behind a line shows beside it on hover or focus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from skillopt_es.audit.blame import Attributed, Blame, BlamedLine, Cost, Maker, blamed_lines
from skillopt_es.counting import counted
from skillopt_es.presenting.numbers import shown_amount
from skillopt_es.presenting.palette import verdict_words
from skillopt_es.presenting.words import names
from skillopt_es.projections.chains import Chain
from skillopt_es.report.facts import Facts
from skillopt_es.report.html import DASH, Html, el, fold, join, note, row, section, table

_MOST_ITEMS = 8  # they stand in a cell next to a line of the skill


Leads = Callable[[Maker], str]
"""Where the mark beside a line leads; empty for nowhere."""


def skill_section(facts: Facts, leads: Leads | None = None) -> Html | None:
    """The best skill, and the current one where it is another; None where the log has no skill."""
    leads = leads or _target
    found = facts.blame
    if found is None:
        return None
    same = found.current.skill.hash == found.best.skill.hash
    parts: list[Html] = list(_text(facts, found, found.best, "best", leads))
    if not same:
        other = fold(
            f"The skill that is current at the end is another one ({found.current.skill.hash[:12]})",
            *_text(facts, found, found.current, "current", leads),
        )
        parts.append(other)
    return section(
        "The skill, and who wrote each line",
        note(
            "Point at a part, or move to it with Tab, to see what is behind it; the mark beside it leads to its step."
        ),
        *parts,
        name="skill",
    )


def _text(facts: Facts, found: Blame, text: Attributed, which: str, leads: Leads) -> Iterable[Html]:
    """Each file of a text, the main one first, and its makers as a table."""
    files = sorted(text.skill.files, key=lambda file: (file != text.skill.main, file))
    for at, file in enumerate(files):
        lines = blamed_lines(found, text, file, facts.line_usage, facts.untrusted)
        title = f"{file} of the {which} skill"
        head = el("h3", title, " ", el("small", text.skill.hash[:12]))
        blocks = join(_block(facts, found, block, f"behind-{which}-{at}", leads) for block in _blocks(lines))
        yield head
        yield el("div", blocks, class_="skill", role="group", aria_label=title) if lines else note("an empty file")
        if lines:
            yield fold(f"Who wrote {file}, as a table", _makers(facts, found, lines, title))


def _blocks(lines: Sequence[BlamedLine]) -> list[list[BlamedLine]]:
    """Lines that follow each other and have one maker; a blank line goes with what stands before it."""
    blocks: list[list[BlamedLine]] = []
    for line in lines:
        if blocks and (not line.text.strip() or line.maker == blocks[-1][0].maker):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


def _block(facts: Facts, found: Blame, lines: Sequence[BlamedLine], text: str, leads: Leads) -> Html:
    maker = lines[0].maker
    target = leads(maker)
    card = f"{text}-{lines[0].number}"
    if target:
        mark = el("a", short_place(maker), href=target, aria_describedby=card)
    else:
        mark = el("span", short_place(maker), tabindex=0, role="note", aria_describedby=card)
    return el(
        "div",
        el("div", mark, _card(facts, found, lines[0], card), class_="who"),
        el("div", *(el("div", line.text, class_="l") for line in lines), class_="code"),
        class_=f"block {maker.kind}",
    )


def _target(maker: Maker) -> str:
    if maker.step is not None:
        return f"#step-{maker.step}"
    return f"#epoch-{maker.epoch}" if maker.epoch is not None else ""


def short_place(maker: Maker) -> str:
    """Where a line was written, in two words."""
    if maker.kind == "initial":
        return "initial"
    if maker.step is not None:
        return f"step {maker.step}"
    return f"epoch {maker.epoch}" if maker.epoch is not None else "unknown"


def place(maker: Maker) -> str:
    """What wrote a line, and where."""
    said = {"initial": "there from the beginning", "unknown": "not known"}.get(maker.kind)
    if said is not None:
        return said
    where = f"step {maker.step}, epoch {maker.epoch}" if maker.step is not None else f"epoch {maker.epoch}"
    return f"{maker.kind} of {where}"


def _card(facts: Facts, found: Blame, line: BlamedLine, name: str) -> Html:
    """What is behind a block, beside it."""
    maker, behind = line.maker, line.behind
    rows = [("written by", f"{place(maker)} (event {maker.seq})")]
    chain = found.chains.get(maker.step) if maker.step is not None else None
    if chain is not None:
        rows.append(("verdict", _verdict(chain)))
    if behind.gate is not None and not behind.gate.alone:
        rows += [("won", _items(behind.gate.won)), ("lost", _items(behind.gate.lost))]
    if behind.items:
        rows.append(("evidence", f"{counted(len(behind.items), 'trajectory')}: {_items(behind.items)}"))
    if behind.support != "trusted":
        rows.append(("trust", "nobody vouches for any of it" if behind.support == "untrusted" else "mixed"))
    if behind.cost.calls:
        rows.append(("a line cost", cost_words(behind.cost, facts)))
    pairs = [part for name, said in rows for part in (el("dt", name), el("dd", said))]
    return el("dl", *pairs, class_="card", id=name)


def _verdict(chain: Chain) -> str:
    if chain.verdict is not None:
        return verdict_words(chain.verdict.action)
    return verdict_words(chain.skipped.event.reason) if chain.skipped is not None else "not over"


def _items(items: Sequence[str]) -> str:
    return names(items, _MOST_ITEMS) if items else "none"


def cost_words(cost: Cost, facts: Facts) -> str:
    """A line's share of the tokens and, where prices are known, of the money; a + marks a lower bound."""
    if not cost.calls:
        return DASH
    tokens = "? tokens" if cost.tokens is None else f"{cost.tokens:,.0f}{'+' if cost.silent else ''} tokens"
    if facts.spent is None or not facts.spent.currency or cost.money is None:
        return tokens
    return f"{tokens}, {facts.spent.currency} {shown_amount(cost.money, least=bool(cost.unpriced))}"


def _makers(facts: Facts, found: Blame, lines: Sequence[BlamedLine], title: str) -> Html:
    """One row for each part that has one maker, with its lines."""
    headers = "lines | written by | #event | verdict | #won | #lost | #trajectories | #each line cost"
    rows = []
    for block in _blocks(lines):
        maker, behind = block[0].maker, block[0].behind
        chain = found.chains.get(maker.step) if maker.step is not None else None
        gate = behind.gate
        first, last = block[0].number, block[-1].number
        rows.append(
            row(
                str(first) if first == last else f"{first} to {last}",
                place(maker),
                f"{maker.seq:,}",
                DASH if chain is None else _verdict(chain),
                DASH if gate is None or gate.alone else str(len(gate.won)),
                DASH if gate is None or gate.alone else str(len(gate.lost)),
                str(len(behind.items)) if behind.items else DASH,
                cost_words(behind.cost, facts),
            )
        )
    return table(f"What wrote the lines of {title}", headers, rows)
