"""The tree of skills says what the state says, at every moment of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.params import parametrized
from support.scripted import ScriptedWorld, config

from skillopt_es.cli.lineage import dot, drawing, mermaid
from skillopt_es.engine.algorithms import fold
from skillopt_es.events.catalog import Recorded
from skillopt_es.events.log import EventLog
from skillopt_es.projections.lineage import TYPES, Lineage, lineage
from skillopt_es.sessions.session import start

SETTINGS = {
    "gated": ["optimizer.slow_update_gate_with_selection=true"],
    "forced": ["optimizer.slow_update_gate_with_selection=false"],
    "no gate": ["evaluation.use_gate=false"],
    "stale": ["skillopt.follow=[stale_scores]"],
    "notes after the verdict": ["optimizer.use_skill_aware_reflection=true", "skillopt.follow=[notes_after_verdict]"],
}


def records_of(folder: Path, *overrides: str) -> list[Recorded]:
    """The events of a scripted run."""
    asyncio.run(start(config(folder, overrides), folder / "run", ScriptedWorld().session()))
    with EventLog.open(folder / "run") as log:
        return list(log.read())


@parametrized("name", SETTINGS, by_default=2)
def test_current_and_best_are_those_of_the_state_after_every_event(name: str, tmp_path: Path) -> None:
    """The tree is another reading of the same events."""
    records = records_of(tmp_path, *SETTINGS[name])
    told = [record for record in records if type(record.event).__name__ in TYPES]
    for count in range(1, len(told) + 1):
        tree = lineage(told[:count])
        state = fold(record.event for record in records[: told[count - 1].seq])
        assert state.current is not None
        assert state.best is not None
        skills = {node.name: node.skill for node in tree.nodes}
        assert skills[tree.current] == state.current.skill.hash
        assert skills[tree.best] == state.best.skill.hash


@parametrized("name", SETTINGS, by_default=2)
def test_parents_are_the_texts_that_were_current(name: str, tmp_path: Path) -> None:
    """Every node but the first has one, made before it and taken."""
    tree = lineage(records_of(tmp_path, *SETTINGS[name]))
    known = {node.name: node for node in tree.nodes}
    assert tree.nodes[0].name == "start"
    for node in tree.nodes[1:]:
        assert known[node.parent].taken
        assert known[node.parent].seq < node.seq
    refused = {node.name for node in tree.nodes if not node.taken}
    assert refused.isdisjoint(node.parent for node in tree.nodes)


def test_refused_texts_say_what_they_lost(tmp_path: Path) -> None:
    """With the items that turned and both values."""
    tree = lineage(records_of(tmp_path))
    refused = [node for node in tree.nodes if node.verdict == "reject"]
    assert refused
    for node in refused:
        assert node.value is not None
        assert node.against is not None
        assert node.value <= node.against
        assert len(node.won) <= len(node.lost)


def test_a_run_that_has_just_begun_has_a_tree(tmp_path: Path) -> None:
    """One text that nobody has measured."""
    tree = lineage(records_of(tmp_path)[:1])
    assert drawing("new", tree).splitlines()[0] == "new: 1 text, the best is that of start"
    assert "initial" in drawing("new", tree)


def test_drawings_have_every_text_once(tmp_path: Path) -> None:
    """In the terminal, for Graphviz and for Mermaid; the best one stands out."""
    tree: Lineage = lineage(records_of(tmp_path))
    lines = drawing("r", tree).splitlines()[1:]
    for line, node in zip(lines, tree.nodes, strict=True):
        assert f" {node.name} " in line
        assert node.skill[:8] in line
    assert sum(line.startswith("★") for line in lines) == 1
    graph = dot('a "quoted" run', tree)
    assert graph.startswith('digraph "a \\"quoted\\" run" {')
    assert graph.count("->") >= len(tree.nodes) - 1
    assert graph.count("style=bold") == 1
    chart = mermaid("r", tree)
    assert chart.count('["') == len(tree.nodes)
    assert len([line for line in chart.splitlines() if " --> " in line or " -.-> " in line]) == len(tree.nodes) - 1
