"""
The whole page: one HTML file that asks for nothing, runs nothing, and holds all it shows.

Its policy allows the one style sheet that stands in it, by its hash, and nothing else: whatever a run's texts hold,
no browser will run, load or send anything.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from skillopt_es.audit.headlines import Headlines, headlines
from skillopt_es.presenting.words import is_sealed, looks_words
from skillopt_es.report.curve import curve_section
from skillopt_es.report.facts import Facts
from skillopt_es.report.html import Html, el, join, prose
from skillopt_es.report.items import items_section
from skillopt_es.report.scores import scores_section
from skillopt_es.report.settings import config_section, environment_section
from skillopt_es.report.skill import skill_section
from skillopt_es.report.spending import spending_section
from skillopt_es.report.steps import steps_section
from skillopt_es.report.top import top
from skillopt_es.report.tree import tree_section
from skillopt_es.version import software_version

MARK = '<meta name="generator" content="skillopt-es '
"""What tells a page of ours from any other file."""

_NAV = {
    "scores": "Scores",
    "curve": "Curve",
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
        "scores": scores_section(found, _looks(facts)),
        "curve": None if facts.summary.is_evaluation else curve_section(facts),
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
    style = _style()
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


def _style() -> str:
    return resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")


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
