"""A step: what its analysts saw and said, what became of each proposal, what was chosen and why, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from skillopt_es.counting import counted
from skillopt_es.errors import NotInRun
from skillopt_es.events.catalog import PatchesMerged, PatchProposed
from skillopt_es.presenting.event_lines import in_words
from skillopt_es.presenting.palette import step_verdict
from skillopt_es.presenting.words import fate_words, proposal_words, short, source_words, unsaid_words
from skillopt_es.projections.chains import Chain, Seen
from skillopt_es.projections.fates import fates_of, note_fates
from skillopt_es.projections.state import proposals_in
from skillopt_es.report.facts import Facts
from skillopt_es.report.html import Child, Html, badge, el, fold, join, note, row, section, table
from skillopt_es.report.steps import epoch_body, step_body
from skillopt_es.ui.shell import items_links, link, part

_MOST = 150  # more minibatches than a usual step has; each fold holds all that an analyst said


def step_page(facts: Facts, number: int) -> list[Html]:
    """The page of a step; raises NotInRun for one that the run has not."""
    chain = facts.chains.get(number)
    line = next((each for each in facts.summary.step_lines if each.step == number), None)
    if chain is None and line is None:
        raise _not_there(facts, f"{facts.name} has no step {number} yet", f"it is at step {facts.summary.step}")
    verdict = badge(step_verdict(line) if line is not None else "")
    parts: list[Child] = [
        el("h1", f"Step {number} of ", link(facts.name, "run", facts.name), " ", verdict),
        el("p", in_words(chain.gated.event), class_="lead") if chain is not None and chain.gated is not None else None,
        el("p", *_neighbours(facts, number), class_="links"),
        el(
            "section",
            el("h2", "In short"),
            *step_body(facts, line, chain, lambda items: items_links(facts.name, items)),
            class_="body flat",
        ),
    ]
    if chain is not None:
        parts += _story(facts, chain)
    return [part("step", *parts)]


def _not_there(facts: Facts, what: str, hint: str) -> NotInRun:
    """That it is not there, as far as the log can be read."""
    if facts.problems:
        hint = f"the log can be read to event {facts.read:,} only: {facts.problems[0]}"
    return NotInRun(what, hint=hint)


def _neighbours(facts: Facts, number: int) -> Iterator[Html]:
    known = {*facts.chains, *(line.step for line in facts.summary.step_lines)}
    for other, words in ((number - 1, "The step before"), (number + 1, "The next step")):
        if other in known:
            yield link(words, "run", facts.name, "step", other)


def _story(facts: Facts, chain: Chain) -> Iterator[Html]:
    if chain.unsaid:
        yield note(unsaid_words(len(chain.unsaid)))
    if chain.patches:
        folds = [_made(facts, chain, name, made) for name, made in [*chain.patches.items()][:_MOST]]
        yield section("What each analyst said", el("div", *folds, class_="steps"), name="analysts")
    if chain.merges:
        folds = [_made(facts, chain, name, made) for name, made in [*chain.merges.items()][:_MOST]]
        yield section("Merges", el("div", *folds, class_="steps"), name="merges")
    chosen = _chosen(chain)
    if chosen is not None:
        yield chosen
    notes = note_fates(chain)
    if notes:
        lines = [el("li", el("b", each.reason.replace("_", " ")), f": “{each.note}” ({each.detail})") for each in notes]
        yield section("Reminder notes", el("ul", *lines), name="notes")


def _made(facts: Facts, chain: Chain, name: str, made: Seen[PatchProposed] | Seen[PatchesMerged]) -> Html:
    """One analyst's or merge's words and proposals, with what became of each."""
    event = made.event
    proposals = proposals_in(event)
    said = [el("blockquote", event.reasoning)] if event.reasoning else []
    head: list[Child] = [el("b", name.rpartition("/")[2])]
    if isinstance(event, PatchProposed):
        came = counted(len(proposals), "proposal") if proposals else event.result.replace("_", " ")
        solved = facts.solved.get(event.patch, frozenset())
        told = [item for item in event.items if item not in solved]
        head.append(el("span", f"{came} from {source_words(event.kind, len(told))}"))
        said.append(el("p", "Saw ", items_links(facts.name, told)))
        if solved:
            beside = [item for item in event.items if item in solved]
            said.append(el("p", "Saw solved, for comparison: ", items_links(facts.name, beside)))
        if event.note:
            said.append(note(event.note))
    else:
        head.append(el("span", counted(len(proposals), "proposal")))
        said.append(note(f"From {', '.join(event.inputs)}." + (f" {event.fallback}" if event.fallback else "")))
    rows = [
        el("li", proposal_words(each), *(el("small", f" {fate_words(fate)}") for fate in fates_of(chain, each.id)))
        for each in proposals[:_MOST]
    ]
    return fold(join(head), el("div", *said, el("ul", *rows), class_="body"))


def _chosen(chain: Chain) -> Html | None:
    """What was chosen out of the pool, and what was not."""
    if chain.ranked is None:
        return None
    event = chain.ranked.event
    why = event.fallback or event.reasoning
    rows = [
        row(
            name.rpartition("/")[2],
            el("b", "chosen") if name in event.chosen else "not chosen",
            proposal_words(chain.proposals[name]) if name in chain.proposals else name,
        )
        for name in [*event.chosen, *(each for each in event.pool if each not in event.chosen)][:_MOST]
    ]
    headers = "proposal | fate | wants"
    budget = "" if event.budget is None else f", with room for {event.budget}"
    return section(
        "What was chosen",
        note(f"{len(event.chosen)} of {len(event.pool)}{budget}.{f' {short(why, 600)}' if why else ''}"),
        table("The pool of the ranking", headers, rows),
        name="chosen",
    )


def epoch_page(facts: Facts, number: int) -> list[Html]:
    """The end of an epoch: its comparison, guidance and meta skill; raises NotInRun where there is none."""
    end = facts.ends.get(number)
    if end is None:
        raise _not_there(facts, f"nothing is recorded of the end of epoch {number} of {facts.name}", "")
    pairs = Counter(pair.category for proposed in end.proposed for pair in proposed.event.pairs)
    head = el("h1", f"End of epoch {number} of ", link(facts.name, "run", facts.name))
    counts = note(", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in pairs.items())) if pairs else None
    return [
        part(
            "epoch",
            head,
            counts,
            el("section", el("h2", "What came of it"), *epoch_body(facts, end), class_="body flat"),
        )
    ]
