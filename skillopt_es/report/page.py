"""
The whole page: one HTML file that asks for nothing, runs nothing, and holds all it shows.

Its policy allows the one style sheet that stands in it, by its hash, and nothing else: whatever a run's texts hold,
no browser will run, load or send anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from importlib import resources
from typing import get_args

from skillopt_es.audit.headlines import Headline, Headlines, headlines
from skillopt_es.counting import counted
from skillopt_es.presenting.certificates import certificate_lines
from skillopt_es.presenting.numbers import shown_cost, shown_seconds
from skillopt_es.presenting.words import by_hand_words, is_sealed, looks_words, progress_words
from skillopt_es.projections.lines import Outcome, outcome_of
from skillopt_es.projections.usage import UsageSums
from skillopt_es.report.curve import curve_section
from skillopt_es.report.facts import Facts
from skillopt_es.report.folder import folder_section
from skillopt_es.report.html import Html, el, join, moment, prose, score
from skillopt_es.report.items import items_section
from skillopt_es.report.lineage import tree_section
from skillopt_es.report.scores import scores_section
from skillopt_es.report.settings import config_section, environment_section
from skillopt_es.report.skill import skill_section
from skillopt_es.report.spending import spending_section
from skillopt_es.report.steps import steps_section
from skillopt_es.version import software_version

MARK = '<meta name="generator" content="skillopt-es '
"""What tells a page of ours from any other file."""

_NAV = {
    "scores": "Scores",
    "curve": "Curve",
    "folder": "Folder",
    "skill": "Skill",
    "lineage": "Lineage",
    "steps": "Steps",
    "items": "Items",
    "spending": "Cost",
    "environment": "Environment",
    "config": "Config",
}


def page(facts: Facts) -> str:
    """The page of a run; the same log gives the same page."""
    found = headlines_of(facts)
    sections = {
        "scores": scores_section(found, _looks(facts), certificate_lines(facts.summary.certificate)),
        "curve": None if facts.summary.is_evaluation else curve_section(facts),
        "folder": folder_section(facts),
        "skill": skill_section(facts),
        "lineage": None if facts.summary.is_evaluation else tree_section(facts),
        "steps": steps_section(facts),
        "items": items_section(facts),
        "spending": spending_section(facts),
        "environment": environment_section(facts),
        "config": config_section(facts),
    }
    there = {name: part for name, part in sections.items() if part is not None}
    links = [el("a", _NAV[name], href=f"#{name}") for name in there]
    body = el(
        "body",
        el("a", "Skip to the results", href="#main", class_="skip"),
        top(facts, found),
        el("nav", *links, aria_label="Sections"),
        el("main", *there.values(), id="main"),
        _footer(),
    )
    return f"<!doctype html>\n{el('html', _head(facts), body, lang='en')}\n"


def _looks(facts: Facts) -> str:
    """How often sealed test items were looked at; empty for a run without a seal."""
    looks = facts.summary.looks
    if not looks.opened and not (facts.started is not None and is_sealed(facts.started)):
        return ""
    return f"Seal of the test split: {looks_words(looks)}."


def headlines_of(facts: Facts) -> Headlines:
    """What can be said of the run's scores."""
    return headlines(facts.summary, facts.scored, facts.results, facts.chains, facts.tree)


def _head(facts: Facts) -> Html:
    style = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    generator = Html(f'{MARK}{join([software_version()])}">')
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        generator,
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="referrer", content="no-referrer"),
        el("title", f"{facts.name}: a run of skillopt-es"),
        el("style", Html(style)),
    )


def _footer() -> Html:
    return el(
        "footer",
        el(
            "p",
            prose(
                "Everything on this page was read from the run's log; no model was asked. `skillopt-es verify` checks "
                "that the log is what was written, `skillopt-es replay --check` that each decision follows from its "
                "evidence."
            ),
        ),
    )


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
        steps = progress_words(summary).capitalize()
        said.append(f"{steps}{f': {counts}' if counts else ''}. ")
    if summary.paused and facts.status == "paused":
        said.append(f"Paused: {summary.paused}. ")
    if summary.by_hand:
        said.append(f"Steered by hand: {by_hand_words(summary.by_hand)}. ")
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
    many, first_many = _items_of(best), _items_of(first)
    if first is best:
        what = f"{' and '.join(best.names)}{many}"
    else:
        what = f"initial → best{many}" if many == first_many else f"initial{first_many} → best{many}"
    return _tile(f"{split}: hard score", values, what)


def _items_of(scored: Headline) -> str:
    """Over how many items a score is; of how many, where these are not all."""
    if scored.items is None:
        return ""
    return (
        f", {scored.items} of {counted(scored.over.of, 'item')}"
        if scored.over
        else f", {counted(scored.items, 'item')}"
    )


def used(total: UsageSums, currency: str) -> list[Html]:
    """The cost of the calls, one tile a number; what nobody reported is not called 0."""
    if not total.calls:
        return []
    tiles = [_tile("calls", f"{total.calls:,}", f"{total.failed:,} failed" if total.failed else "none failed")]
    if total.input.known is not None or total.output.known is not None:
        more = "+" if total.input.silent or total.output.silent else ""
        tokens = total.input.reported + total.output.reported
        written = "the number written is unknown"
        if total.output.known is not None:
            written = f"{total.output.known:,} of them written"
        tiles.append(_tile("tokens", f"{tokens:,}{more}", written))
    if currency:
        tiles.append(_tile("cost", f"{currency} {shown_cost(total.cost)}", "by its recorded prices"))
    return tiles


def _tile(name: str, value: str, more: str) -> Html:
    return el("div", el("dt", name), el("dd", el("b", value), el("small", more)))
