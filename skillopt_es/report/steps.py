"""Step by step: one line each, and behind it the diff, the edits, the items that turned and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from skillopt_es.counting import counted
from skillopt_es.events.values import Edit, GateVerdict, Proposal, SkillTree
from skillopt_es.presenting.certificates import wager_words
from skillopt_es.presenting.event_lines import said_of
from skillopt_es.presenting.numbers import chance, shown_seconds, shown_usage
from skillopt_es.presenting.palette import step_verdict
from skillopt_es.presenting.words import names, proposal_words, short
from skillopt_es.projections.chains import Chain, EpochEnd
from skillopt_es.projections.intervals import sign_test
from skillopt_es.projections.lines import EpochLine, StepLine
from skillopt_es.report.facts import Facts
from skillopt_es.report.html import Child, Html, badge, count, el, fold, join, note, score, section
from skillopt_es.runs.state_diff import skill_diff

_MOST_ITEMS = 60  # a batch of the usual size (40) whole
_MOST_PATTERNS = 12  # the most frequent come first; those that one item alone shows are left to `explain`


def steps_section(facts: Facts) -> Html | None:
    """All steps that ended or are open, with the ends of epochs where they happened; None before the first one."""
    lines = facts.summary.lines
    told = {line.step for line in facts.summary.step_lines}
    open_ = [chain for number, chain in facts.chains.items() if number not in told]
    if not lines and not open_:
        return None
    parts = [_step(facts, line) if isinstance(line, StepLine) else _epoch(facts, line) for line in lines]
    waiting = [
        end
        for epoch, end in facts.ends.items()
        if epoch not in {line.epoch for line in lines if isinstance(line, EpochLine)}
    ]
    parts += [_open_step(facts, chain) for chain in open_]
    parts += [_epoch_fold(facts, end.epoch, badge(""), "", end) for end in waiting]
    return section(
        "Step by step",
        note("Each line opens. Scores are the gate's values of the current skill and of the candidate."),
        el("div", *(part for part in parts if part is not None), class_="steps"),
        name="steps",
    )


def _step(facts: Facts, line: StepLine) -> Html:
    chain = facts.chains.get(line.step)
    gate = chain.verdict if chain is not None else None
    most = "≤ " if line.bound else ""
    values = f"{score(line.current)} → {most}{score(line.candidate)}" if line.candidate is not None else ""
    turned = f"{len(gate.won)} won, {len(gate.lost)} lost" if gate is not None and (gate.won or gate.lost) else ""
    edits = f"{counted(line.applied, 'edit')} applied" if line.applied else ""
    head = _head(f"Step {line.step}", badge(step_verdict(line)), values, turned, edits)
    return fold(head, el("div", *step_body(facts, line, chain), id=f"step-{line.step}", class_="body"))


Items = Callable[[Sequence[str]], Child]
"""How items are shown that turned."""


def _plainly(items: Sequence[str]) -> Child:
    return names(items, _MOST_ITEMS)


def step_body(facts: Facts, line: StepLine | None, chain: Chain | None, items: Items = _plainly) -> list[Html]:
    """A step's numbers, if it is over, and what led to its end, as far as it is recorded."""
    numbers = [] if line is None else [_numbers(facts, line, chain)]
    return [*numbers, *([] if chain is None else _story(facts, chain, items))]


def _open_step(facts: Facts, chain: Chain) -> Html:
    head = _head(f"Step {chain.step}", badge(""), "", "", "")
    return fold(head, el("div", *step_body(facts, None, chain), id=f"step-{chain.step}", class_="body"))


def _head(name: str, verdict: Html, *facts: str) -> Html:
    return join([el("b", name), verdict, *(el("span", fact) for fact in facts if fact)])


def _pairs(rows: Sequence[tuple[str, Child]]) -> Html:
    return el("dl", *(el("div", el("dt", name), el("dd", said)) for name, said in rows if said), class_="facts")


def _numbers(facts: Facts, line: StepLine, chain: Chain | None) -> Html:
    train = "" if line.train is None else f"{score(line.train.hard)} hard on {count(line.train.measured)} items"
    proposals = (
        f"{count(line.proposed)} proposed, {count(line.merged)} after merging, {count(line.chosen)} chosen, "
        f"{count(line.applied)} applied"
    )
    rows: list[tuple[str, Child]] = [("training", train), ("edits", proposals)]
    if line.notes:
        rows.append(("reminder notes", counted(line.notes, "note")))
    if chain is not None and chain.verdict is not None:
        rows.append(("gate", _gate(chain.verdict)))
    if chain is not None and chain.wagered is not None:
        rows.append(("certificate", wager_words(chain.wagered.event)))
    if facts.spent is not None and line.step in facts.spent.usage.by_step:
        rows.append(("used", shown_usage(facts.spent.usage.by_step[line.step], facts.spent.currency)))
    if facts.durations is not None and line.step in facts.durations.by_step:
        rows.append(("time", shown_seconds(facts.durations.by_step[line.step])))
    return _pairs(rows)


def _gate(gate: GateVerdict) -> str:
    """The verdict's evidence, and how often chance alone would turn items so unevenly."""
    if gate.alone:
        return f"{gate.metric}; not compared: the text it was compared with was never measured"
    if gate.compared is None or gate.current_score is None:
        return f"{gate.metric}; how many items were compared is not known"
    by_chance = chance(sign_test(len(gate.won), len(gate.lost)))
    same = f"; this text had already been measured in {gate.known_from}" if gate.known_from else ""
    return f"{gate.metric} on {counted(gate.compared, 'item')}; {by_chance} if no other had been compared{same}"


def _story(facts: Facts, chain: Chain, items: Items) -> Iterator[Html]:
    yield from _seen(chain)
    yield from _edits(chain)
    if chain.verdict is not None:
        yield from _turned(chain.verdict, items)
    if chain.skipped is not None and chain.skipped.event.detail:
        yield note(said_of(chain.skipped.event))
    if chain.gap is not None:
        yield note(f"{chain.gap.event.what}: {chain.gap.event.why}")
    if chain.built is not None:
        built = chain.built.event
        yield diff_block(facts.skills.get(built.parent), built.candidate, "What the candidate changed")
    if chain.written is not None:
        written = chain.written.event
        yield diff_block(facts.skills.get(written.previous), written.skill, "Notes written after the verdict")


def _seen(chain: Chain) -> Iterator[Html]:
    """What the analysts said the failures have in common, joined by their words."""
    seen: Counter[tuple[str, str]] = Counter()
    for patch in chain.patches.values():
        for pattern in patch.event.patterns:
            seen[pattern.type, pattern.description] += 1 if pattern.count is None else pattern.count
    if not seen:
        return
    patterns = seen.most_common()
    rows = [
        el("li", el("b", kind), f" ×{number}: ", short(description, 300))
        for (kind, description), number in patterns[:_MOST_PATTERNS]
    ]
    yield el("h3", "What the analysts saw")
    yield el("ul", *rows)
    if len(patterns) > _MOST_PATTERNS:
        yield note(
            f"and {len(patterns) - _MOST_PATTERNS} more; `skillopt-es explain step {chain.step}` has all of them"
        )


def _edits(chain: Chain) -> Iterator[Html]:
    """The chosen edits and what became of each, with the evidence behind them."""
    if chain.built is None or not chain.built.event.reports:
        return
    rows = []
    for report in chain.built.event.reports:
        proposal = chain.proposals.get(report.edit)
        words = report.edit if proposal is None else proposal_words(proposal)
        items = chain.items_behind(chain.patches_behind(report.edit)) if proposal is not None else ()
        why = f": {report.note}" if report.note else ""
        behind = el("small", f" from {counted(len(items), 'trajectory')}") if items else None
        rows.append(el("li", el("b", f"{_status(report.status, proposal)}{why}"), " ", words, behind))
    yield el("h3", "Edits")
    yield el("ul", *rows)
    left = sum(not _chosen(chain, name) for name in (chain.ranked.event.pool if chain.ranked is not None else ()))
    if left:
        were = "was" if left == 1 else "were"
        yield note(f"{left} more {were} not chosen; `skillopt-es why-not --step {chain.step}` says why.")


def _status(status: str, proposal: Proposal | None) -> str:
    """What became of an edit, without saying twice what kind it was."""
    op = proposal.op if isinstance(proposal, Edit) else ""
    return "applied:" if status == f"applied_{op}" else f"{status.replace('_', ' ')}:"


def _chosen(chain: Chain, name: str) -> bool:
    return chain.ranked is not None and name in chain.ranked.event.chosen


def _turned(gate: GateVerdict, items: Items) -> Iterator[Html]:
    rows = [(f"{how} {len(turned)}", turned) for how, turned in (("won", gate.won), ("lost", gate.lost)) if turned]
    if rows:
        yield el("h3", "Items that turned")
        yield _pairs([(how, items(turned)) for how, turned in rows])


def _epoch(facts: Facts, line: EpochLine) -> Html | None:
    end = facts.ends.get(line.epoch)
    if end is None:
        return None
    values = f"{score(line.current)} → {score(line.candidate)}" if line.candidate is not None else ""
    verdict = badge(line.slow_update) if line.slow_update else el("span", "ended", class_="badge idle")
    return _epoch_fold(facts, line.epoch, verdict, values, end)


def _epoch_fold(facts: Facts, epoch: int, verdict: Html, values: str, end: EpochEnd) -> Html:
    head = _head(f"End of epoch {epoch}", verdict, values)
    return fold(head, el("div", *epoch_body(facts, end), id=f"epoch-{epoch}", class_="body"), class_="epoch")


def epoch_body(facts: Facts, end: EpochEnd) -> Iterator[Html]:
    """The comparison, the guidance and the meta skill."""
    proposed = end.proposed[-1].event if end.proposed else None
    if proposed is not None and proposed.pairs:
        kinds = Counter(pair.category.replace("_", " ") for pair in proposed.pairs)
        said = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
        yield _pairs(
            [("compared", f"{counted(len(proposed.pairs), 'task')} under the epoch's first and last skill: {said}")]
        )
    if proposed is not None and proposed.note:
        yield note(proposed.note)
    for applied in end.applied:
        event = applied.event
        if event.guidance:
            yield el("h3", "Guidance")
            yield el("blockquote", event.guidance)
        before = facts.skills.get(_parent_of(facts, applied.seq))
        after = facts.skills.get(event.candidate or event.skill.hash)
        if after is not None and event.verdict.action not in ("unchanged", "postponed", "no_content"):
            yield diff_block(before, after, "What the guidance changed")
    for meta in end.meta:
        if meta.event.content:
            yield el("h3", "The meta skill: the optimizer's notes for later epochs")
            yield el("blockquote", meta.event.content)


def _parent_of(facts: Facts, seq: int) -> str:
    """The text that a node of the lineage was made from."""
    node = next((node for node in facts.tree.nodes if node.seq == seq), None)
    parent = facts.tree.by_name.get(node.parent) if node is not None else None
    return "" if parent is None else parent.skill


_MOST_LINES = 1500  # a diff of more is a rewritten folder; `diff` shows it whole
_KINDS = {"+": "ins", "-": "del", "@": "hunk"}


def diff_block(before: SkillTree | None, after: SkillTree | None, what: str) -> Html:
    """What changed from one text to the other; says so where one is not in the log, or nothing did."""
    if before is None or after is None:
        return note("One of the two texts cannot be read from the log, so what changed cannot be shown.")
    lines = skill_diff(before, after)
    if not lines:
        return note("The text did not change.")
    if len(before.files) == len(after.files) == 1:
        lines = lines[2:]  # the names of the one file on both sides
    shown = lines[:_MOST_LINES]
    parts = [_run(kind, list(run)) for kind, run in groupby(shown, key=_kind)]
    left = len(lines) - len(shown)
    rest = (
        note(f"{counted(left, 'more line')} of this diff are left out; `skillopt-es diff` shows them.")
        if left
        else None
    )
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    gone = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    label = f"{what}: {counted(added, 'line')} added, {counted(gone, 'line')} removed"
    return join([el("h3", label), el("pre", *parts, class_="diff", tabindex=0, role="group", aria_label=label), rest])


def _kind(line: str) -> str:
    return "file" if line.startswith(("+++ ", "--- ")) else _KINDS.get(line[:1], "")


def _run(kind: str, lines: list[str]) -> Html:
    """Lines of one kind, each ending in a line break."""
    body = "".join(f"{line}\n" for line in lines)
    if kind in ("ins", "del"):
        return el(kind, body)
    return el("span", body, class_=kind) if kind else join([body])
