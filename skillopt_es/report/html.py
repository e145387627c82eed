"""
Markup from small functions: every text is escaped on its way in, and only what these functions made is markup.

What a run says is not to be trusted: a skill may hold tags, and characters that cannot be seen or that turn the line
around. Those are shown by their number, so that a reader sees what a model would read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from skillopt_es.presenting.palette import tone_of, verdict_words

_CODE = re.compile(r"`([^`\n]+)`")
_VOID = frozenset({"br", "col", "hr", "input", "link", "meta"})
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_SPECIAL = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
# Controls, marks that hide or turn what is read, and halves of characters, which no page can hold.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


class Html(str):
    """Markup that may go into a page as it is; of what a run says, only this module makes it."""

    __slots__ = ()


Child = str | Html | None
Value = str | int | float | bool | None


def text(raw: str) -> Html:
    """A text as it may stand between tags and in an attribute; what cannot be seen is named."""
    return Html(_UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", raw).translate(_SPECIAL))


def el(name: str, /, *children: Child, **attributes: Value) -> Html:
    """
    An element: `el("a", "see", href="#x", class_="y")`; children that are not markup are escaped.

    A trailing underscore of an attribute is dropped, others become dashes; None and False leave it out.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} names no element")
    opening = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Html(opening if name in _VOID else f"{opening}{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Html:
    """Several children, one after the other."""
    return Html("".join(child if isinstance(child, Html) else text(child) for child in children if child is not None))


def _attribute(key: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    said = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f' {name}="{text(said)}"'


def number(value: float) -> str:
    """A length or a place in a drawing, short."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def section(title: str, *children: Child, name: str) -> Html:
    """A part of the page that has a heading and can be linked to."""
    heading = el("h2", title, id=f"{name}-title")
    return el("section", heading, *children, id=name, aria_labelledby=f"{name}-title")


@frozen
class Row:
    """A row of a table: what it is about, and its cells."""

    first: Child
    cells: Sequence[Child]
    attributes: Mapping[str, Value]


def row(first: Child, *cells: Child, **attributes: Value) -> Row:
    """What a row is about, its cells, and attributes of the whole row."""
    return Row(first, cells, attributes)


def table(caption: str, headers: str | Sequence[str], rows: Iterable[Row | Html], *, kind: str = "") -> Html:
    """
    A table in a region that scrolls by itself: `table("Steps", "step | #best", rows)`.

    Where a header begins with `#`, its column holds numbers.
    """
    columns = headers.split(" | ") if isinstance(headers, str) else headers
    kinds = ["n" if each.startswith("#") else None for each in columns]
    head = (el("th", each.lstrip("#"), scope="col", class_=kind) for each, kind in zip(columns, kinds, strict=True))
    body = (each if isinstance(each, Html) else _row(each, kinds[1:]) for each in rows)
    inner = el("table", el("caption", caption), el("thead", el("tr", *head)), el("tbody", *body), class_=kind or None)
    return el("div", inner, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _row(each: Row, kinds: Sequence[str | None]) -> Html:
    rest = (el("td", cell, class_=kind) for cell, kind in zip(each.cells, kinds, strict=True))
    return el("tr", el("th", each.first, scope="row"), *rest, **each.attributes)


def fold(summary: Child, *children: Child, open_: bool = False, **attributes: Value) -> Html:
    """What is shown when it is asked for."""
    return el("details", el("summary", summary), *children, open=open_, **attributes)


def prose(words: str) -> Html:
    """A sentence in which what stands between backticks is code."""
    return join(el("code", part) if at % 2 else part for at, part in enumerate(_CODE.split(words)))


def note(words: str) -> Html:
    """A sentence beside the facts."""
    return el("p", prose(words), class_="note")


_BADGES = {"good": "good", "bad": "bad"}
DASH = "–"


def badge(verdict: str) -> Html:
    """A verdict that is seen at a glance; its words say it, its colour only repeats them."""
    words = verdict_words(verdict)
    return el("span", words, class_=f"badge {_BADGES.get(tone_of(words), 'idle')}")


def score(value: float | None) -> str:
    """A score; a dash for one that was not measured."""
    return DASH if value is None else f"{value:.4f}"


def count(number: int | None) -> str:
    """How many; a dash for what is not known."""
    return DASH if number is None else f"{number:,}"


def moment(recorded_at: str) -> str:
    """When something was recorded."""
    return f"{recorded_at[:19].replace('T', ' ')} UTC"
