"""Which item passed under which text: a map of items by step, those that turned first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import assert_never

from attrs import field, frozen

from skillopt_es.counting import counted
from skillopt_es.events.values import Measured, Outcome
from skillopt_es.presenting.palette import verdict_words
from skillopt_es.projections.item_results import Results
from skillopt_es.projections.lineage import Kind, Node
from skillopt_es.report.facts import Facts
from skillopt_es.report.html import Html, el, fold, join, note, section, text

_MOST_ITEMS = 300  # rows: browsers lay out larger tables slowly, and `skillopt-es item` shows any
_LONGEST = 18  # characters of an id that its column has room for
# A rate is a mean of floats: a full one may come out a little lower.
_FULL = 1 - 1e-9


@frozen(kw_only=True)
class Column:
    """The results under one text or in one step: what its head shows, says in full, and looks like."""

    head: str
    said: str
    kind: str
    results: Results
    rates: Mapping[str, float | None] = field(init=False)
    """Each item's share of draws that passed: asked for often, and a long run has hundreds of thousands."""

    @rates.default
    def _(self) -> Mapping[str, float | None]:
        return {item: pass_rate(outcomes) for item, outcomes in self.results.items()}


Named = Callable[[str], Html]
"""How the name of an item is shown."""


@frozen
class Shown:
    """The columns of a map that are shown, what leads to the others, and whether these have been asked for."""

    columns: Sequence[Column]
    others: Html | None = None
    asked: bool = False


Part = Callable[[str, Sequence[Column]], Shown]
"""What is shown of the map of validation or training items (`train`)."""


def items_section(facts: Facts, named: Named = text, part: Part = lambda _, columns: Shown(columns)) -> Html | None:
    """The maps of validation, training and test items; None where there is no result of a single item."""
    found = facts.results
    validation = list(_by_text(facts))
    train = [
        Column(head=str(step), said=f"batch of step {step}", kind="", results=found.train[step])
        for step in sorted(found.train)
    ]
    tests = list(_tests(facts))
    if not (validation or train or tests):
        return None
    parts = []
    if validation:
        caption = "Validation items under each text that was measured"
        parts.append(_map(caption, validation, named, part("validation", validation)))
    if tests:
        parts.append(
            fold("Test items under the texts that were tested", _map("Test items", tests, named, Shown(tests)))
        )
    if train:
        shown = part("train", train)
        drawn = _map("Training items by step", train, named, shown)
        parts.append(fold("Training items, in the steps that drew them", drawn, open_=shown.asked))
    return section(
        "Items by step",
        el("p", _legend(), class_="legend"),
        note("Items that turned come first, those that most texts fail before those that most pass."),
        *parts,
        name="items",
    )


def _by_text(facts: Facts) -> Iterator[Column]:
    for node in facts.tree.nodes:
        results = facts.results.validation.get(node.skill)
        if results:
            yield Column(head=_head(node), said=_said(node), kind="" if node.taken else "aside", results=results)


def _head(node: Node) -> str:
    return f"{_lead(node.kind)}{0 if node.kind == 'initial' else node.epoch if node.step is None else node.step}"


def _lead(kind: Kind) -> str:
    match kind:
        case "initial" | "candidate":
            return ""
        case "notes":
            return "n"
        case "guidance":
            return "e"
        case "struck":
            return "s"
        case unknown:
            assert_never(unknown)


def _said(node: Node) -> str:
    return f"{node.name}, {'initial' if node.kind == 'initial' else verdict_words(node.verdict)}"


def _tests(facts: Facts) -> Iterator[Column]:
    named = {"initial": facts.summary.initial, "best": facts.summary.best.skill, "final": facts.summary.current.skill}
    seen: dict[str, str] = {}
    for name, skill in named.items():
        seen[skill] = f"{seen[skill]}, {name}" if skill in seen else name
    for skill, name in seen.items():
        results = facts.results.test.get(skill)
        if results:
            yield Column(head=name, said=f"{name} skill", kind="", results=results)


def _map(caption: str, columns: Sequence[Column], named: Named, part: Shown) -> Html:
    """A table whose cells are colours and signs; its heads say the step. What passed is counted over all columns."""
    drawn = part.columns
    items = _in_order({item: None for column in columns for item in column.results}, columns)
    shown = items[:_MOST_ITEMS]
    heads = [
        el("th", el("abbr", column.head, title=column.said), scope="col", class_=column.kind or None)
        for column in drawn
    ]
    head = el("tr", el("th", "item", scope="col"), *heads, el("th", "passed", scope="col", class_="n"))
    rows = [_row(item, columns, drawn, named) for item in shown]
    totals = el(
        "tr", el("th", "% passed", scope="row"), *(el("td", _share(column.rates)) for column in drawn), el("td")
    )
    body = el(
        "table", el("caption", f"{caption}: {counted(len(items), 'item')}"), el("thead", head), el("tbody", *rows),
        el("tfoot", totals), class_="map",
    )  # fmt: skip
    rest = len(items) - len(shown)
    more = (
        note(f"{counted(rest, 'more item')} are left out; `skillopt-es explain --item ID` follows any one.")
        if rest
        else None
    )
    return join(
        [el("div", body, class_="scroll tall", tabindex=0, role="region", aria_label=caption), part.others, more]
    )


def _row(item: str, columns: Sequence[Column], drawn: Sequence[Column], named: Named) -> Html:
    cells = [_DRAWN[_kind(column.rates.get(item), column.results.get(item, ()))] for column in drawn]
    tried = [rate for column in columns if (rate := column.rates.get(item)) is not None]
    passed = f"{sum(rate >= _FULL for rate in tried)} of {len(tried)}"
    return el(
        "tr",
        el("th", named(item), scope="row", title=item if len(item) > _LONGEST else None),
        *cells,
        el("td", passed, class_="n"),
    )


def pass_rate(outcomes: Sequence[Outcome]) -> float | None:
    """The share of draws that were measured in which an item passed; None where it never was."""
    seen = [outcome.passed for outcome in outcomes if isinstance(outcome, Measured)]
    return sum(seen) / len(seen) if seen else None


_CELLS = {"p": "●", "f": "○", "h": "◐", "u": "?", "": ""}


# A map of a long run has hundreds of thousands of cells, and five different ones.
_DRAWN = {kind: el("td", sign, class_=kind or None) for kind, sign in _CELLS.items()}


def _kind(rate: float | None, outcomes: Sequence[Outcome]) -> str:
    """p: passed, f: failed, h: a part of it (of a point, or of the draws), u: not measured, nothing: not tried."""
    if rate is None:
        return "u" if outcomes else ""
    if rate >= _FULL:
        return "p"
    part = any(outcome.soft > 0 for outcome in outcomes if isinstance(outcome, Measured))
    return "h" if rate > 0 or part else "f"


def _legend() -> Html:
    keys = (("p", "passed"), ("h", "partly, or not in every draw"), ("f", "failed"), ("u", "not measured"))
    parts = [
        el("span", el("span", _CELLS[kind], class_=f"cell {kind}", aria_hidden="true"), words, class_="key")
        for kind, words in keys
    ]
    return join(
        [
            *parts,
            el(
                "span",
                "0: the initial skill; e2: guidance of epoch 2; n3: notes after step 3; s4: a line struck after "
                "step 4; a number with a line through it: refused",
                class_="key",
            ),
        ]
    )


def _in_order(items: Mapping[str, None], columns: Sequence[Column]) -> list[str]:
    """Items that turned, then those that always fail, then those that always pass; each by how often they pass."""

    def rank(item: str) -> tuple[int, float]:
        rates = [rate for column in columns if (rate := column.rates.get(item)) is not None]
        mean = sum(rates) / len(rates) if rates else 0.0
        return (0 if 0 < mean < 1 else 1 if mean == 0 else 2), mean

    return sorted(items, key=rank)


def _share(rates: Mapping[str, float | None]) -> str:
    known = [rate for rate in rates.values() if rate is not None]
    return f"{100 * sum(known) / len(known):.0f}" if known else ""
