"""The lineage: which text came from which, with verdicts and evidence, along the line of texts that were current."""

from __future__ import annotations

from skillopt_es.projections.lineage import Lineage, Node
from skillopt_es.report.facts import Facts
from skillopt_es.report.html import Html, el, note, section, table
from skillopt_es.report.marks import anchor
from skillopt_es.report.words import DASH, badge, score

_MARKS = {"reject": "✕", "too_large": "✕", "indecisive": "~", "unchanged": "="}


def tree_section(facts: Facts) -> Html | None:
    """The texts in the order of their making; None where there is none."""
    tree = facts.tree
    if not tree.nodes:
        return None
    headers = [("line", False), ("text", False), ("verdict", False), ("score", True), ("won", True), ("lost", True),
               ("hash", False)]  # fmt: skip
    last = max(index for index, node in enumerate(tree.nodes) if node.taken)
    rows = [_row(node, tree, goes_on=index < last) for index, node in enumerate(tree.nodes)]
    forks = [
        note(f"Forked of {fork.parent} after event {fork.seq:,}; what was made up to there is that run's.")
        for fork in tree.forks
    ]
    return section(
        "Lineage",
        note("The line on the left is the current skill through the run; what was refused hangs beside it."),
        *forks,
        table("Every text of the run, in the order of their making", headers, rows, kind="tree"),
        name="lineage",
    )


def _row(node: Node, tree: Lineage, *, goes_on: bool) -> Html:
    best = node.name == tree.best
    kind = f"{'taken' if node.taken else 'aside'}{'' if goes_on else ' last'}{' root' if not node.parent else ''}"
    mark = ("★" if best else "●") if node.taken else _MARKS.get(node.verdict, "?")
    rail = el("td", el("span", mark, class_="best" if best else None, aria_hidden="true"), class_=f"rail {kind}")
    target = anchor(node)
    name: Html | str = el("a", node.name, href=f"#{target}") if target else node.name
    values = score(node.value) if node.against is None else f"{score(node.against)} → {score(node.value)}"
    judged = el("span", "initial", class_="badge idle") if node.kind == "initial" else badge(node.verdict)
    extra = [el("span", words, class_="more") for words in _more(node, best=best)]
    cells = el("td", judged, *extra), el("td", values, class_="n")
    turned = (
        el("td", str(len(items)) if node.won or node.lost else DASH, class_="n") for items in (node.won, node.lost)
    )
    return el("tr", rail, el("th", name, scope="row"), *cells, *turned, el("td", el("code", node.skill[:8])))


def _more(node: Node, *, best: bool) -> list[str]:
    said = [" the best"] if best else []
    said += [f" against the score of {node.stale_from[:8]}"] if node.stale_from else []
    said += [" promoted at the end"] if node.promoted else []
    return said
