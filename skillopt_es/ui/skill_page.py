"""The skill with who wrote each line, and any two versions of it compared."""

from __future__ import annotations

from collections.abc import Mapping

from skillopt_es.audit.blame import Maker
from skillopt_es.presenting.palette import verdict_words
from skillopt_es.report.facts import Facts
from skillopt_es.report.folder import folder_section
from skillopt_es.report.html import Html, el, note, section
from skillopt_es.report.lineage import tree_section
from skillopt_es.report.skill import skill_section
from skillopt_es.report.steps import diff_block
from skillopt_es.ui.shell import address, choice, filters, link, part


def skill_page(facts: Facts, query: Mapping[str, str]) -> list[Html]:
    """What each skill of a folder was good for; two versions compared, if asked for; the makers; the lineage."""

    def leads(maker: Maker) -> str:
        if maker.step is not None:
            return address("run", facts.name, "step", maker.step)
        return "" if maker.epoch is None else address("run", facts.name, "epoch", maker.epoch)

    asked = "to" in query
    parts = [
        el("h1", "Skill of ", link(facts.name, "run", facts.name)),
        folder_section(facts),
        *([_compared(facts, query)] if asked else []),
        skill_section(facts, leads) or note("The log has no skill yet."),
        *([] if asked else [_compared(facts, query)]),
        tree_section(facts),
    ]
    return [part("skill-page", *parts)]


def versions(facts: Facts) -> dict[str, str]:
    """Every text of the run by its hash, and what it is called."""
    found: dict[str, str] = {}
    for node in facts.tree.nodes:
        judged = "initial" if node.kind == "initial" else verdict_words(node.verdict)
        best = ", the best" if node.name == facts.tree.best else ""
        found.setdefault(node.skill, f"{node.name}: {judged}{best}")
    return {skill: words for skill, words in found.items() if skill in facts.skills}


def _compared(facts: Facts, query: Mapping[str, str]) -> Html | None:
    known = versions(facts)
    if len(known) < 2:
        return None
    initial = next(iter(known))
    best = next((node.skill for node in facts.tree.nodes if node.name == facts.tree.best), initial)
    before, after = query.get("from", initial), query.get("to", best)
    form = filters("Compare", choice("From", "from", known, before), choice("To", "to", known, after))
    changed = diff_block(facts.skills.get(before), facts.skills.get(after), "What changed") if "to" in query else None
    return section("Two versions compared", form, changed, name="compared")
