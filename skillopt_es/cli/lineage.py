"""`lineage`: the tree of skills of a run, drawn, or for programs and other drawing tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import directory_option, json_option, run_argument
from skillopt_es.cli.printing import print_json
from skillopt_es.cli.terminal import print_hanging, say
from skillopt_es.counting import counted
from skillopt_es.presenting.documents import by_hand_json, plain, some_of
from skillopt_es.presenting.numbers import shown_value
from skillopt_es.presenting.palette import verdict_words
from skillopt_es.presenting.words import by_hand_words

if TYPE_CHECKING:
    from skillopt_es.projections.lineage import Lineage, Node

_MARKS = {
    "": "?",
    "reject": "x",
    "too_large": "x",
    "untrusted_only": "x",
    "no_edit_chosen": "x",
    "indecisive": "~",
    "unchanged": "=",
}
_HASH = 8  # digits: two skills begin alike once in 4 billion pairs


@click.command("lineage")
@run_argument
@click.option(
    "--format", "form", type=click.Choice(["text", "dot", "mermaid"]), default="text", show_default=True,
    help="text: a drawing for the terminal; dot: Graphviz; mermaid: for Markdown.",
)  # fmt: skip
@directory_option
@json_option
def lineage_command(run: str | None, form: str, directory: Path, as_json: bool) -> int:
    """
    Which skill came from which, how each was judged, and which is the best. RUN defaults to the newest.

    The line on the left is the current skill through the run; refused texts hang beside it.
    """
    from skillopt_es.cli.printing import as_found
    from skillopt_es.errors import NotInRun
    from skillopt_es.projections.by_hand import BY_HAND_TYPES, by_hand
    from skillopt_es.projections.lineage import TYPES, lineage
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.reading import Reading
    from skillopt_es.runs.run_settings import SETTING_TYPES, settings_in, text_of

    with Reading.of(find_run(run, directory)) as reading:
        found, name = lineage(reading.read(types=TYPES)), reading.run.name
        hand = by_hand(recorded.event for recorded in reading.read(types=BY_HAND_TYPES))
        metric = text_of(settings_in(reading.read(types=SETTING_TYPES)), "evaluation.gate_metric")
        if not found.nodes:
            raise reading.problem or NotInRun(f"{name} has not begun: it has no skill yet")
        if as_json:
            print_json(
                {
                    "run": name,
                    "gate_metric": metric or None,
                    **some_of(found, "current", "best"),
                    "by_hand": by_hand_json(hand),
                    "forks": [plain(fork) for fork in found.forks],
                    "nodes": [plain(node) for node in found.nodes],
                    "problem": plain(reading.problem),
                }
            )
        else:
            _print(_FORMS[form](name, found), form)
            if hand and form == "text":
                print_hanging(f"steered by hand: {by_hand_words(hand)}", hang=2)
            if form == "text" and metric:
                print_hanging(f"values: {metric} score on validation", hang=2, tone="faint")
        return as_found(reading)


def _print(text: str, form: str) -> None:
    """The drawing for eyes; what is for other tools as it is."""
    for line in text.splitlines():
        if form == "text":
            print_hanging(line, hang=16, tone="strong" if line.startswith("★") else "plain")
        else:
            say(line)


def drawing(run: str, found: Lineage) -> str:
    """The tree as a line of texts that were current, with the others beside it."""
    last = max(index for index, node in enumerate(found.nodes) if node.taken)
    rows = [
        (_rail(node, node.name == found.best, index < last), node.name, *_facts(node))
        for index, node in enumerate(found.nodes)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(
        [f"{run}: {counted(len(found.nodes), 'text')}, the best is that of {found.best}{_origin(found)}", *lines]
    )


def _origin(found: Lineage) -> str:
    """Which run a fork came from, and what it shares with it."""
    if not found.forks:
        return ""
    fork = found.forks[-1]
    shared = [node.name for node in found.nodes if node.seq <= fork.seq]
    without = f", without {', '.join(fork.without)}" if fork.without else ""
    return f"; forked from {fork.parent} at event {fork.seq:,}, which it shares up to {shared[-1]}{without}"


def dot(run: str, found: Lineage) -> str:
    """Graphviz: accepted texts are boxes, refused ones dashed, the best one is bold."""
    lines = [f"digraph {_quoted(run)} {{", "  rankdir=TB;", '  node [shape=box, fontname="sans-serif"];']
    names = _numbered(found)
    for node in found.nodes:
        style = "bold" if node.name == found.best else "solid" if node.taken else "dashed"
        label = f"{node.name}\\n{_judged(node)}"
        lines.append(f"  {names[node.name]} [label={_quoted(label)}, style={style}];")
    lines += [f"  {names[node.parent]} -> {names[node.name]};" for node in found.nodes if node.parent]
    return "\n".join([*lines, "}"])


def mermaid(run: str, found: Lineage) -> str:
    """A Mermaid flow chart, as GitHub and many editors draw it."""
    names = _numbered(found)
    lines = [f"%% {run}", "flowchart TD"]
    for node in found.nodes:
        text = f"{node.name}<br/>{_judged(node)}".replace('"', "'")
        lines.append(f'  {names[node.name]}["{text}"]')
    lines += [
        f"  {names[node.parent]} {'-->' if node.taken else '-.->'} {names[node.name]}"
        for node in found.nodes
        if node.parent
    ]
    return "\n".join([*lines, f"  style {names[found.best]} stroke-width:4px"])


def _rail(node: Node, best: bool, goes_on: bool) -> str:
    if node.taken:
        return "★" if best else "●"
    return f"{'├' if goes_on else '└'}─{_MARKS[node.verdict]}"


def _facts(node: Node) -> tuple[str, str, str, str, str]:
    """The verdict, the values, the items that turned, the start of its hash, and what else is to know."""
    own = f"at most {shown_value(node.value)}" if node.bound else shown_value(node.value)
    values = own if node.against is None else f"{shown_value(node.against)} -> {own}"
    turned = f"+{len(node.won)} -{len(node.lost)}" if node.won or node.lost else ""
    more = [f"against the score of {node.stale_from[:_HASH]}"] if node.stale_from else []
    more += [f"{node.reason.replace('_', ' ')}, {counted(node.repeats, 'repeat')}"] if node.reason else []
    more += ["promoted at the end"] if node.promoted else []
    verdict = "initial" if node.kind == "initial" else verdict_words(node.verdict)
    return verdict, values, turned, node.skill[:_HASH], ", ".join(more)


def _judged(node: Node) -> str:
    return "  ".join(part for part in _facts(node) if part)


def _numbered(found: Lineage) -> Mapping[str, str]:
    return {node.name: f"n{number}" for number, node in enumerate(found.nodes)}


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


_FORMS: Mapping[str, Callable[[str, Lineage], str]] = {"text": drawing, "dot": dot, "mermaid": mermaid}
