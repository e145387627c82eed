"""The lineage as a tree, and its marks on the score curve: a shape for each verdict, a link to its story."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_es.presenting.palette import verdict_words
from skillopt_es.projections.lineage import Lineage, Node
from skillopt_es.projections.lines import StepLine
from skillopt_es.report.facts import Facts
from skillopt_es.report.html import DASH, Html, badge, el, note, number, score, section, table

_STAR = "l2.5 5.3 5.8 .8-4.2 4.1 1 5.8-5.1-2.8-5.1 2.8 1-5.8-4.2-4.1 5.8-.8z"


def skip_mark(line: StepLine, x: float, axis: float) -> Html:
    """A step that ended without a candidate, on the axis."""
    tip = el("title", f"Step {line.step}: {verdict_words(line.verdict)}")
    return el("path", tip, d=f"M{number(x)} {number(axis - 5)}v10", class_="skip-mark")


def text_mark(node: Node, x: float, y: float, *, best: bool, size: float) -> Html:
    """A text that was measured, at its place; `size` is half of a mark's width."""
    tip = f"{_named(node)}: {_judged(node)}, {_values(node)}{', the best' if best else ''}"
    shape = _shape(node, x, y, best=best, size=size)
    link = f"#{anchor(node)}" if anchor(node) else None
    drawn = (el("title", tip), shape)
    return el("a", *drawn, href=link, aria_label=tip) if link else el("g", *drawn)


def _shape(node: Node, x: float, y: float, *, best: bool, size: float) -> Html:
    at, up, half, whole = number(x), number(y), number(size), number(2 * size)
    if best:
        return el("path", d=f"M{at} {number(y - 8.5)}{_STAR}", class_="star")
    if node.verdict == "reject":
        return el(
            "path",
            d=f"M{number(x - size)} {number(y - size)}l{whole} {whole}m0 -{whole}l-{whole} {whole}",
            class_="rejected",
        )
    if node.kind == "guidance":
        reach = number(size * 1.3)
        path = f"M{at} {number(y - size * 1.3)}l{reach} {reach}l-{reach} {reach}l-{reach} -{reach}z"
        return el("path", d=path, class_="guided")
    if node.kind == "initial" or node.verdict == "force_accept":
        return el("circle", cx=at, cy=up, r=half, class_="ungated")
    if not node.taken:
        return el("circle", cx=at, cy=up, r=half, class_="open")
    return el("circle", cx=at, cy=up, r=half, class_="accepted")


def anchor(node: Node) -> str:
    """Where on the page a text's story is told; nothing for the initial one."""
    if node.step is not None:
        return f"step-{node.step}"
    return "" if node.epoch is None else f"epoch-{node.epoch}"


def _named(node: Node) -> str:
    return {"initial": "Initial skill", "guidance": f"Guidance of epoch {node.epoch}"}.get(
        node.kind, node.name[:1].upper() + node.name[1:]
    )


def _judged(node: Node) -> str:
    return "measured" if node.kind == "initial" else verdict_words(node.verdict)


def _values(node: Node) -> str:
    own = f"≤ {score(node.value)}" if node.bound else score(node.value)
    return own if node.against is None else f"{score(node.against)} → {own}"


def legend(nodes: Sequence[Node], lines: Sequence[StepLine], *, best_line: bool) -> Html:
    """Only what the drawing has."""
    there = (
        (True, el("path", d="M1 9H17", class_="current-line"), "current skill"),
        (best_line,
         el("path", d="M1 9H17", class_="best-line"), "best so far"),
        (True, el("path", d=f"M9 .5{_STAR}", class_="star"), "the best"),
        (any(n.taken and n.kind == "candidate" and n.verdict != "force_accept" for n in nodes),
         el("circle", cx=9, cy=9, r=4.5, class_="accepted"), "accepted"),
        (any(n.verdict == "reject" for n in nodes),
         el("path", d="M4.5 4.5l9 9m0 -9l-9 9", class_="rejected"), "rejected"),
        (any(n.kind == "initial" or n.verdict == "force_accept" for n in nodes),
         el("circle", cx=9, cy=9, r=4.5, class_="ungated"), "measured, no gate"),
        (any(n.kind == "guidance" and n.taken for n in nodes),
         el("path", d="M9 3l6 6l-6 6l-6 -6z", class_="guided"), "guidance"),
        (any(line.candidate is None for line in lines),
         el("path", d="M9 4v10", class_="skip-mark"), "no candidate"),
    )  # fmt: skip
    keys = [
        el("span", el("svg", drawn, viewBox="0 0 18 18", width=18, height=18, aria_hidden="true"), words, class_="key")
        for shown, drawn, words in there
        if shown
    ]
    return el("span", *keys, class_="legend")


_MARKS = {"reject": "✕", "too_large": "✕", "indecisive": "~", "unchanged": "="}


def tree_section(facts: Facts) -> Html | None:
    """The texts in the order of their making; None where there is none."""
    tree = facts.tree
    if not tree.nodes:
        return None
    headers = "line | text | verdict | #score | #won | #lost | hash"
    last = max(index for index, node in enumerate(tree.nodes) if node.taken)
    rows = [_row(node, tree, goes_on=index < last) for index, node in enumerate(tree.nodes)]
    forks = [
        note(f"Forked from {fork.parent} after event {fork.seq:,}; everything up to there belongs to that run.")
        for fork in tree.forks
    ]
    return section(
        "Lineage",
        note("The line on the left is the current skill through the run; refused texts hang beside it."),
        *forks,
        table("Every text of the run, in the order they were made", headers, rows, kind="tree"),
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
