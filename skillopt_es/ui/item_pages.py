"""Items by candidates, one item through the run, and its attempts side by side with the grader's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from skillopt_es.counting import counted
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.trajectories import Trajectory, unpacked
from skillopt_es.errors import NotInRun
from skillopt_es.events.catalog import Recorded, RolloutCompleted
from skillopt_es.events.errors import LogError
from skillopt_es.events.journal import Journal
from skillopt_es.events.values import Failed, Measured
from skillopt_es.presenting.event_lines import in_words
from skillopt_es.presenting.words import fate_words, proposal_words
from skillopt_es.projections.item_results import ItemHistory
from skillopt_es.report.facts import Facts
from skillopt_es.report.html import Child, Html, badge, el, note, row, section, table
from skillopt_es.report.items import Column, Shown, items_section
from skillopt_es.runs.items import history_of, split_of
from skillopt_es.runs.reading import Reading
from skillopt_es.ui.shell import address, hidden, link, part

_TITLES = {"user": "task", "reply": "agent", "feedback": "grader"}  # others are called what they are
_MOST_CHARS = 40_000  # of one record: a page must stay readable, and `show` has the rest
_MOST_ATTEMPTS = 400  # the last ones: each is a row with two buttons
_MOST_COLUMNS = 60  # of a map: more are too many to look at, and slow for a browser


def items_page(facts: Facts, query: Mapping[str, str]) -> list[Html]:
    """The heat map, of a long run a part of its columns; each item leads to its page."""

    def part_of(name: str, columns: Sequence[Column]) -> Shown:
        return window(facts.name, name, columns, query.get(name, ""))

    found = items_section(facts, lambda item: link(item, "run", facts.name, "item", item=item), part_of)
    return [part("items", el("h1", "Items of ", link(facts.name, "run", facts.name)), found or note("No results yet."))]


def window(run: str, name: str, columns: Sequence[Column], asked: str) -> Shown:
    """The last columns, or those that end with number `asked`; always the first one, with which the others compare."""
    count = len(columns)
    if count <= _MOST_COLUMNS:
        return Shown(columns)
    end = min(max(int(asked), _MOST_COLUMNS), count) if asked.isdecimal() and len(asked) < 9 else count
    start = end - _MOST_COLUMNS
    first = columns[:1] if start else ()
    ways = [("Earlier", start)] if start else []
    ways += [("Later", end + _MOST_COLUMNS)] if end < count else []
    links = [el("a", words, href=address("run", run, "items", **{name: to})) for words, to in ways]
    said = f"Columns {start + 1} to {end} of {count}{', after the first one' if first else ''}."
    return Shown((*first, *columns[start:end]), el("p", el("span", said), *links, class_="links"), asked=bool(asked))


@frozen(kw_only=True)
class Attempt:
    """One result of an item with its trajectory; `why` says why that cannot be shown."""

    seq: int
    event: RolloutCompleted
    trajectory: Trajectory | None
    why: str = ""


def attempt_of(reading: Reading, seq: int) -> Attempt:
    """The attempt that an event records; raises NotInRun for one that is no attempt."""
    recorded = next(iter(reading.read(after=seq - 1, until=seq)), None) if seq > 0 else None
    if recorded is None or not isinstance(recorded.event, RolloutCompleted):
        raise NotInRun(f"event {seq} of {reading.run.name} is no attempt at an item")
    event = recorded.event
    if not event.trajectory:
        return Attempt(seq=seq, event=event, trajectory=None, why="No trajectory was recorded.")
    try:
        read = unpacked(event, RecordedTexts(reading.log, Journal(reading.log.reader)))
    except LogError as error:
        return Attempt(seq=seq, event=event, trajectory=None, why=f"It cannot be read: {error}")
    return Attempt(seq=seq, event=event, trajectory=read)


def item_page(reading: Reading, name: str, item: str, shown: Sequence[int], retracted: Html | None) -> list[Html]:
    """
    Everything of one item; the attempts whose events are in `shown` stand side by side, else the last one.

    `retracted` says that it is left out, or lets somebody do that.
    """
    split = split_of(item, reading)
    history = history_of(item, reading)
    seqs = [seen.seq for seen in history.results]
    chosen = [seq for seq in shown if seq in seqs][:2] or seqs[-1:]
    head = el("h1", el("bdi", item), " ", el("small", f"{split} item of "), link(name, "run", name))
    beside = [_attempt(attempt_of(reading, seq), name) for seq in chosen]
    parts: list[Child] = [
        head,
        retracted,
        _attempts(history, name, chosen),
        section("What it did", el("div", *beside, class_=f"beside of-{len(beside)}"), name="attempts-beside"),
        *_uses(history, name),
    ]
    return [part("item", *parts)]


def _attempts(history: ItemHistory, run: str, chosen: Sequence[int]) -> Html:
    """All attempts in a table in which two can be picked."""
    results = history.results[-_MOST_ATTEMPTS:]
    rows = []
    for seen in results:
        event, picked = seen.event, seen.seq in chosen
        box = el(
            "input", type="checkbox", name="show", value=seen.seq, checked=picked,
            aria_label=f"show the attempt of event {seen.seq}",
        )  # fmt: skip
        rows.append(
            row(
                box,
                link(event.place, "run", run, "item", item=history.item, show=seen.seq),
                _result(event),
                event.failure or "",
                el("code", event.skill[:8]),
            )
        )
    headers = "show | where | result | failure | skill"
    left = len(history.results) - len(results)
    return el(
        "form",
        *hidden({"item": history.item}),
        table(f"{counted(len(history.results), 'attempt')}", headers, rows),
        note(f"The first {left:,} are left out.") if left else None,
        note("`e2/s5/gate`: the gate of step 5, in epoch 2; `b0`: a batch of training; `slow`: the end of an epoch."),
        el("button", "Show two side by side", type="submit"),
        method="get",
    )


def _result(event: RolloutCompleted) -> Html:
    match event.outcome:
        case Measured(hard, soft):
            kind = "passed" if event.outcome.passed else "failed"
            return el("span", badge(kind), f" {hard:g} hard, {soft:.2f} soft")
        case Failed(kind, message):
            return el("span", badge("not measured"), f" {kind}: {message}")
        case _:
            return badge("not run")


def _attempt(attempt: Attempt, run: str) -> Html:
    """One trajectory, with the grader's words at its end."""
    event = attempt.event
    head = [
        el("h3", link(f"event {attempt.seq:,}", "run", run, "event", attempt.seq), f" at {event.place}"),
        el("p", _result(event)),
    ]
    if event.failure or event.detail:
        head.append(el("p", el("b", event.failure or "detail"), f" {event.detail}", class_="grader"))
    if event.prediction:
        head.append(el("p", "Answered ", el("code", event.prediction)))
    if event.trust == "untrusted":
        head.append(note("Nobody vouches for the texts that it saw."))
    if attempt.trajectory is None:
        return el("article", *head, note(attempt.why), class_="attempt")
    records = [_record(kind, said) for kind, said in attempt.trajectory.records]
    return el("article", *head, *records, class_="attempt")


def _record(kind: str, said: str) -> Html:
    cut = len(said) > _MOST_CHARS
    more = note(f"{len(said) - _MOST_CHARS:,} more characters; `skillopt-es show` has them.") if cut else None
    body = el("pre", said[:_MOST_CHARS], tabindex=0, role="group", aria_label=_TITLES.get(kind, kind))
    return el("div", el("h4", _TITLES.get(kind, kind)), body, more, class_=f"record {kind}")


def _uses(history: ItemHistory, run: str) -> Iterator[Html]:
    """What analysts made of it, and where it turned."""
    if history.turned:
        rows = [
            row(
                link(f"step {turned.step}", "run", run, "step", turned.step)
                if turned.step is not None
                else link(f"end of epoch {turned.epoch}", "run", run, "epoch", turned.epoch),
                turned.how,
                badge(turned.action) if turned.action else "",
            )
            for turned in history.turned
        ]
        yield section(
            "Where it turned",
            table("Gates and comparisons", "where | how | the verdict", rows),
            name="turned",
        )
    if history.uses:
        parts = [
            el(
                "li",
                link(use.patch.event.patch, "run", run, "step", use.patch.event.step),
                f" as a {use.patch.event.kind}: {use.patch.event.result}",
                el(
                    "ul",
                    *(
                        el("li", proposal_words(each), *(el("small", f" {fate_words(fate)}") for fate in fates))
                        for each, fates in use.proposals
                    ),
                ),
            )
            for use in history.uses
        ]
        yield section("Analysts that saw it", el("ul", *parts), name="uses")


def event_page(name: str, recorded: Recorded, payload: str) -> list[Html]:
    """One event, whole."""
    event = recorded.event
    more = None
    if isinstance(event, RolloutCompleted):
        more = el("p", link("The attempt", "run", name, "item", item=event.item, show=recorded.seq))
    facts: Mapping[str, str] = {
        "recorded": recorded.recorded_at,
        "hash": recorded.hash,
        "follows": recorded.prev_hash,
    }
    pairs = [part for key, value in facts.items() for part in (el("dt", key), el("dd", el("code", value)))]
    return [
        el("h1", f"Event {recorded.seq:,} of ", link(name, "run", name)),
        el("p", el("b", type(event).__name__), f": {in_words(event)}"),
        more or el("p"),
        el("dl", *pairs, class_="pairs"),
        el("pre", payload, class_="payload", tabindex=0, role="group", aria_label="The event as JSON"),
    ]
