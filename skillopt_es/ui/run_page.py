"""A run's first page: what it is doing now, its curve, what happened last, and its steps."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from skillopt_es.audit.headlines import Headline
from skillopt_es.counting import counted
from skillopt_es.engine.in_flight import Left
from skillopt_es.events.catalog import Recorded
from skillopt_es.presenting.claims import Answer, answer
from skillopt_es.presenting.event_lines import in_words
from skillopt_es.presenting.numbers import shown_cost, shown_seconds
from skillopt_es.presenting.palette import step_verdict
from skillopt_es.presenting.words import by_hand_words, metric_words, part_words, progress_words
from skillopt_es.projections.lines import EpochLine, StepLine
from skillopt_es.report.curve import curve_section
from skillopt_es.report.facts import Facts
from skillopt_es.report.html import DASH, Html, Row, badge, count, el, moment, note, prose, row, score, section, table
from skillopt_es.report.page import headlines_of
from skillopt_es.runs.folders import dir_option
from skillopt_es.runs.now import Now
from skillopt_es.ui.shell import link, part, problem, status_badge, tile

LATEST = 12
"""How many of the last happenings are shown."""
_MOST_STEPS = 60  # the last ones: the page is sent again with each step of a running run


def run_head(facts: Facts, writer: str) -> Html:
    """Name, status, who is writing it, and why it stands still, if it does."""
    summary = facts.summary
    said = [f"{progress_words(summary).capitalize()}."]
    if summary.is_evaluation:
        said = ["An evaluation of one skill."]
    if facts.status == "paused":
        said.append(f"Paused: {summary.paused}.")
    if facts.status == "stopped" and facts.problems:
        said.append(f"Nobody is writing it. What is shown ends with event {facts.read:,} of {facts.end:,}.")
    elif facts.status == "stopped":
        said.append("Nobody is writing it: its process ended before the run did.")
    if summary.imported is not None:
        said.append(f"Imported from results of {summary.imported.source}.")
    if writer:
        said.append(f"Written by {writer}.")
    fork = None
    if summary.forked is not None:
        parent = link(summary.forked.parent, "run", summary.forked.parent)
        fork = el("span", " A fork of ", parent, f" after event {summary.forked.seq:,}.")
    return el(
        "div",
        el("h1", el("bdi", facts.name), " ", status_badge(facts.status, damaged=bool(facts.problems))),
        el("p", " ".join(said), fork, class_="lead"),
        *([problem(*(prose(each) for each in facts.problems))] if facts.problems else []),
    )


_TONES = {"better": "good", "worse": "bad", "noise": "idle", "unknown": "idle", "same": "idle"}


def answer_part(facts: Facts, folder: Path) -> Html:
    """Whether the skill is worth taking, as far as anything was measured that did not choose it; and how to take it."""
    found = None if facts.summary.is_evaluation else answer(headlines_of(facts))
    if found is None and facts.summary.completed is not None and not facts.summary.is_evaluation:
        found = Answer("unknown", "Whether the best skill is better on other items is not known.", _UNTESTED)
    if found is None:
        return part("answer")
    out = "SKILL.md" if facts.started is None or not facts.started.skill.is_folder else "skills/"
    export = f"skillopt-es export {shlex.quote(facts.name)} {out}{dir_option(folder.parent)}"
    takes = el(
        "p",
        link("The skill", "run", facts.name, "skill"),
        link("All scores", "run", facts.name, "scores"),
        None if found.kind == "worse" else el("span", "Take it with ", el("code", export)),
        class_="links",
    )
    said = el("p", el("b", found.words), f" {found.why}")
    hand = facts.summary.by_hand
    steered = el("p", f"Steered by hand: {by_hand_words(hand)}.") if hand else None
    return part("answer", el("div", said, steered, takes, class_=f"answer {_TONES[found.kind]}"))


_UNTESTED = "Nothing was measured on test items, and its score on validation items flatters it: they chose it."


def _scores(facts: Facts) -> Iterator[Html]:
    """The first and the best skill on the test items; of an evaluation its skill, on each split."""
    found = headlines_of(facts).scores
    if facts.summary.is_evaluation:
        yield from (tile(each.split, score(each.hard), _reach(each)) for each in found)
        return
    tests = {name: each for each in found if each.split == "test" for name in each.names}
    best, first = tests.get("best"), tests.get("initial")
    if best is not None and (first is None or first is best):
        yield tile("test", score(best.hard), _reach(best))
    elif best is not None and first is not None:
        yield tile("test, first → best", f"{score(first.hard)} → {score(best.hard)}", _reach(best))
    summary = facts.summary
    for name, held in (("current", summary.current), ("best", summary.best)):
        over = part_words(summary.over(held.skill), chosen=summary.was_chosen(held.skill)).strip()
        metric = f"{summary.metric} " if summary.metric else ""
        yield tile(f"{name} on validation, {metric}score", score(held.value), over, live=name)


def _reach(each: Headline) -> str:
    interval = "" if each.interval is None else f"95 %: {each.interval.low:.3f} to {each.interval.high:.3f}, "
    return f"{interval}{'' if each.items is None else counted(each.items, 'item')}"


def now_part(facts: Facts, now: Now | None) -> Html:
    """The numbers that people watch; of a run at work, those of its own terminal."""
    tiles = list(_scores(facts))
    if now is not None:
        waits = f"{counted(now.waiting, 'call')} waiting, {now.failed:,} failed"
        tiles += [
            tile("stage", now.stage or "planning", f"{now.done:,} of {now.total:,}", live="stage"),
            tile("calls in flight", f"{now.in_flight:,}", waits, live="in_flight"),
            tile("tokens of this session", _tokens(now), live="tokens"),
            tile("elapsed", shown_seconds(now.elapsed), _left(now), live="elapsed"),
            *(tile(f"{each.limit} left", each.left, _of_most(each), live=f"left-{each.limit}") for each in now.budget),
        ]
    if facts.spent is not None and facts.spent.usage.total.calls:
        total = facts.spent.usage.total
        tiles.append(tile("calls", f"{total.calls:,}", f"{total.failed:,} failed"))
        if facts.spent.currency:
            tiles.append(tile("cost", f"{facts.spent.currency} {shown_cost(total.cost)}", "by its recorded prices"))
    return part("now", el("dl", *tiles, class_="tiles"), *([_bar(now)] if now is not None else []))


def _of_most(left: Left) -> str:
    aside = f"; {left.aside} set aside for open calls" if left.aside else ""
    return f"of {left.most}{aside}"


def _tokens(now: Now) -> str:
    return f"{now.tokens:,}{'' if now.all_reported else '+'}"


def _left(now: Now) -> str:
    return "" if now.left is None else f"about {shown_seconds(now.left)} left"


def now_words(now: Now | None) -> dict[str, str]:
    """The same numbers for an open page, by the names of their tiles."""
    if now is None:
        return {}
    budget = {f"left-{each.limit}": each.left for each in now.budget}
    more = {f"left-{each.limit}-more": _of_most(each) for each in now.budget}
    return {
        **budget,
        **more,
        "stage": now.stage or "planning",
        "stage-more": f"{now.done:,} of {now.total:,}",
        "in_flight": f"{now.in_flight:,}",
        "in_flight-more": f"{counted(now.waiting, 'call')} waiting, {now.failed:,} failed",
        "tokens": _tokens(now),
        "elapsed": shown_seconds(now.elapsed),
        "elapsed-more": _left(now),
        "done": str(now.done),
        "total": str(max(1, now.total)),
    }


def _bar(now: Now) -> Html:
    said = f"{now.done} of {now.total}"
    return el("progress", said, value=now.done, max=max(1, now.total), id="progress", aria_label="This stage")


def curve_part(facts: Facts) -> Html:
    """Validation scores by step; the marks lead to the steps' pages."""
    drawn = None if facts.summary.is_evaluation else curve_section(facts)
    more = el("p", link("Over calls, tokens, money or time, and beside other runs", "compare", run=facts.name))
    return part("curve-part", drawn, more if drawn is not None else None)


def latest_part(records: Sequence[Recorded]) -> Html:
    """What happened last, the newest first; an open page adds to it."""
    rows = [happening(recorded) for recorded in reversed(records)]
    body = el("ol", *rows, id="happened", class_="happened", data_most=4 * LATEST, tabindex=0,
              aria_labelledby="latest-title")  # fmt: skip
    return el("section", el("h2", "What happened last", id="latest-title"), body, aria_labelledby="latest-title")


def happening(recorded: Recorded) -> Html:
    """One event in a line."""
    kind = type(recorded.event).__name__
    return el(
        "li",
        el("span", f"{recorded.seq:,}", class_="seq"),
        el("time", recorded.recorded_at[11:19], datetime=recorded.recorded_at),
        el("b", kind),
        el("span", in_words(recorded.event)),
        data_seq=recorded.seq,
    )


def steps_part(facts: Facts) -> Html:
    """The steps, the newest first, each with its verdict; they lead to their pages."""
    lines = facts.summary.lines
    if not lines:
        return part("steps-part")
    headers = "step | verdict | #current | #candidate | #best | #train"
    shown = lines[-_MOST_STEPS:]
    rows = [
        _step_row(facts, line) if isinstance(line, StepLine) else _epoch_row(facts, line) for line in reversed(shown)
    ]
    left = len(lines) - len(shown)
    more = note(f"The first {left:,} are left out here; `skillopt-es status` has all of them.") if left else None
    body = table("Steps and ends of epochs, the newest first", headers, rows, kind="steps")
    said = note(
        f"Current, candidate and best: {metric_words(facts.summary.metric)} on validation. Train: hard score of the "
        "tasks drawn for the step; where only tasks that fail are drawn, it may fall while the skill gets better."
    )
    return part("steps-part", section("Steps", body, said, more, name="steps"))


def _step_row(facts: Facts, line: StepLine) -> Row:
    name = link(f"step {line.step}", "run", facts.name, "step", line.step)
    most = "≤ " if line.bound else ""
    return row(
        name,
        badge(step_verdict(line)),
        score(line.current),
        DASH if line.candidate is None else f"{most}{score(line.candidate)}",
        score(line.best),
        DASH if line.train is None else f"{score(line.train.hard)} of {count(line.train.measured)}",
        id=f"step-{line.step}",
    )


def _epoch_row(facts: Facts, line: EpochLine) -> Row:
    name = link(f"end of epoch {line.epoch}", "run", facts.name, "epoch", line.epoch)
    return row(
        name,
        badge(line.slow_update) if line.slow_update else "ended",
        score(line.current),
        score(line.candidate),
        score(line.best),
        DASH,
        id=f"epoch-{line.epoch}",
        class_="epoch",
    )


def events_page(records: Sequence[Recorded], facts: Facts, after: int) -> Iterator[Html]:
    """A page of the log's events, in their order."""
    rows = [
        row(
            link(f"{recorded.seq:,}", "run", facts.name, "event", recorded.seq),
            moment(recorded.recorded_at),
            type(recorded.event).__name__,
            in_words(recorded.event),
        )
        for recorded in records
    ]
    yield el("h1", f"Events of {facts.name}")
    headers = "#event | recorded | type | says"
    yield table(f"Events {after + 1:,} to {after + len(rows):,} of {facts.end:,}", headers, rows, kind="events")
    parts = []
    if after:
        parts.append(link("Earlier", "run", facts.name, "events", after=max(0, after - 200)))
    if records and records[-1].seq < facts.end:
        parts.append(link("Later", "run", facts.name, "events", after=records[-1].seq))
    yield el("p", *parts, class_="links")
