"""The head of the page: which run this is, how it stands, what came of it, and what cannot be read."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from skillopt_es.audit.headlines import Headline, Headlines
from skillopt_es.counting import counted
from skillopt_es.presenting.numbers import shown_cost, shown_seconds
from skillopt_es.projections.lines import Outcome, outcome_of
from skillopt_es.projections.usage import Usage
from skillopt_es.report.facts import Facts
from skillopt_es.report.html import Html, el, prose
from skillopt_es.report.words import moment, score

_STATUS = {"completed": "good", "scored": "good", "running": "info", "paused": "bad", "stopped": "bad", "new": "idle"}


def top(facts: Facts, found: Headlines) -> Html:
    """Name, status, one sentence, the numbers people look for first."""
    kind = "evaluation" if facts.summary.is_evaluation else "training run"
    whole = facts.read == facts.end
    said = facts.status if whole else "readable in part"
    status = el("span", said, class_=f"badge {_STATUS[facts.status] if whole else 'bad'}")
    return el(
        "header",
        el("p", f"skillopt-es · {kind}", class_="kicker"),
        el("h1", el("bdi", facts.name), " ", status),
        el("p", *_story(facts), class_="lead"),
        *_problems(facts),
        el("dl", *_numbers(facts, found), class_="tiles"),
    )


def _story(facts: Facts) -> list[str | Html]:
    summary = facts.summary
    said: list[str | Html] = []
    if not summary.is_evaluation and facts.started is not None:
        verdicts = Counter(outcome_of(line.verdict) for line in summary.step_lines)
        counts = ", ".join(f"{verdicts[each]} {each}" for each in get_args(Outcome) if verdicts[each])
        steps = f"Step {summary.step} of {summary.steps}, epoch {summary.epoch} of {summary.epochs}"
        said.append(f"{steps}{f': {counts}' if counts else ''}. ")
    if summary.paused and facts.status == "paused":
        said.append(f"Paused: {summary.paused}. ")
    if summary.forked is not None:
        said.append(f"A fork of {summary.forked.parent} after event {summary.forked.seq:,}. ")
    if summary.imported is not None:
        said.append(f"Imported from results of {summary.imported.source}. ")
    return [*said, f"As of event {facts.read:,}, ", el("span", f"{moment(facts.written)}.", class_="whole")]


def _problems(facts: Facts) -> list[Html]:
    if not facts.problems:
        return []
    ends = f" What is shown ends with event {facts.read:,} of {facts.end:,}." if facts.read < facts.end else ""
    lines = [el("li", prose(problem)) for problem in facts.problems]
    title = el("strong", f"This log cannot be read in full.{ends}")
    return [el("div", title, el("ul", *lines), class_="problem", role="note", aria_label="What cannot be read")]


def _numbers(facts: Facts, found: Headlines) -> list[Html]:
    tiles = []
    for split in ("test", "validation", "train"):
        scores = [each for each in found.scores if each.split == split]
        if scores:
            tiles.append(_score_tile(split, scores))
    if facts.spent is not None:
        tiles += used(facts.spent.usage.total, facts.spent.currency)
    if facts.durations is not None and facts.durations.total:
        tiles.append(_tile("time", shown_seconds(facts.durations.total), "without pauses"))
    return tiles


def _score_tile(split: str, scores: list[Headline]) -> Html:
    first = next((each for each in scores if "initial" in each.names), scores[0])
    best = next((each for each in scores if "best" in each.names), scores[-1])
    values = score(best.hard) if first is best else f"{score(first.hard)} → {score(best.hard)}"
    items = "" if best.items is None else f", {counted(best.items, 'item')}"
    what = f"{' and '.join(best.names)}" if first is best else "initial → best"
    return _tile(f"{split} score", values, f"{what}{items}")


def used(total: Usage, currency: str) -> list[Html]:
    """What the calls came to, one tile a number; what nobody reported is not called 0."""
    if not total.calls:
        return []
    tiles = [_tile("calls", f"{total.calls:,}", f"{total.failed:,} failed" if total.failed else "none failed")]
    if total.input.known is not None or total.output.known is not None:
        more = "+" if total.input.silent or total.output.silent else ""
        tokens = total.input.reported + total.output.reported
        written = "nobody said how many were written"
        if total.output.known is not None:
            written = f"{total.output.known:,} of them written"
        tiles.append(_tile("tokens", f"{tokens:,}{more}", written))
    if currency:
        tiles.append(_tile("cost", f"{currency} {shown_cost(total.cost)}", "by its recorded prices"))
    return tiles


def _tile(name: str, value: str, more: str) -> Html:
    return el("div", el("dt", name), el("dd", el("b", value), el("small", more)))
