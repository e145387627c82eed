"""What every page has: head, navigation, and a foot that says what the page is made of; and small parts of pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote, urlencode

from attrs import frozen
from starlette.responses import HTMLResponse

from skillopt_es.presenting.words import status_words
from skillopt_es.report.html import Child, Html, el, join, number
from skillopt_es.version import software_version

_MOST_ITEMS = 60  # a batch of the usual size (40) whole
STATUS = {"completed": "good", "scored": "good", "running": "info", "paused": "bad", "stopped": "bad", "new": "idle"}

_OF_RUN = {
    "": "Now",
    "scores": "Scores",
    "items": "Items",
    "skill": "Skill",
    "refused": "Refused",
    "cost": "Cost",
    "events": "Events",
    "config": "Config",
}


@frozen(kw_only=True)
class Visit:
    """For whom a page is made: what the forms of this session bring, or nothing where nothing may be changed."""

    form_token: str = ""
    directory: str = ""

    @property
    def may_act(self) -> bool:
        """Whether the page offers what acts."""
        return bool(self.form_token)


def address(*parts: str | int, **query: str | int | None) -> str:
    """A path of ours: each part is escaped, also its slashes; what is None is left out of the query."""
    path = "/" + "/".join(quote(str(part), safe="") for part in parts)
    asked = {name.rstrip("_"): value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(asked)}" if asked else path


def link(words: Child, *parts: str | int, class_: str | None = None, **query: str | int | None) -> Html:
    """A link to a page of ours."""
    return el("a", words, href=address(*parts, **query), class_=class_)


def page(
    title: str,
    *main: Child,
    visit: Visit | None,
    run: str = "",
    at: str | None = None,
    stream: str = "",
    status: int = 200,
) -> HTMLResponse:
    """
    A whole page; without a visit it is for somebody who is not signed in, and says nothing of this site.

    `run` has its own navigation, of which `at` is the page shown; `stream` is what keeps it fresh.
    """
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{title} · skillopt-es"),
        el("link", rel="stylesheet", href=f"/static/style.css?v={software_version()}"),
        el("script", src=f"/static/ui.js?v={software_version()}", defer=True),
    )
    body = el(
        "body",
        el("a", "Skip to the content", href="#main", class_="skip"),
        _top(visit),
        el("nav", *_links(run, at), aria_label=f"Pages of {run}") if run else None,
        el("main", *main, id="main", data_stream=stream or None, tabindex=-1),
        el("footer", el("p", _foot(visit))) if visit is not None else None,
        class_="ui",
    )
    return HTMLResponse(f"<!doctype html>\n{el('html', head, body, lang='en')}\n", status)


def _top(visit: Visit | None) -> Html:
    links = [] if visit is None else [link("Runs"), link("Compare", "compare")]
    links += [link("Start a run", "start")] if visit is not None and visit.may_act else []
    live = el("span", "", id="live", role="status", class_="live")
    return el("header", el("b", link("skillopt-es")), el("div", *links, class_="links"), live, class_="bar")


def _links(run: str, at: str | None) -> Iterable[Html]:
    for name, words in _OF_RUN.items():
        parts = ("run", run, name) if name else ("run", run)
        yield el("a", words, href=address(*parts), aria_current="page" if name == at else None)


def _foot(visit: Visit) -> str:
    how = "" if visit.may_act else " Nothing can be changed from here."
    return f"Read from the logs in {visit.directory}; no model was asked.{how}"


def part(name: str, *children: Child, class_: str | None = None) -> Html:
    """A part of a page that is exchanged for a fresh one while the page is open."""
    return el("div", *children, id=name, data_part=True, class_=class_)


def status_badge(status: str, *, damaged: bool = False) -> Html:
    """Where a run stands, at a glance."""
    words = status_words(status, damaged=damaged)
    return el("span", words, class_=f"badge {'bad' if damaged else STATUS.get(status, 'idle')}")


def tile(name: str, value: Child, more: Child = "", *, live: str = "") -> Html:
    """A number with what it is; a live one is written anew as it changes."""
    return el("div", el("dt", name), el("dd", el("b", value, data_now=live or None), el("small", more)))


def hidden(fields: Mapping[str, str]) -> list[Html]:
    """Fields of a form that nobody sees."""
    return [el("input", type="hidden", name=name, value=value) for name, value in fields.items()]


def choice(label: str, name: str, options: Mapping[str, str], chosen: str) -> Html:
    """A choice among a few, with its label."""
    rows = [el("option", words, value=value, selected=value == chosen) for value, words in options.items()]
    return el("label", el("span", label), el("select", *rows, name=name))


def filters(words: str, *fields: Child, action: str | None = None, live: str | None = None, **more: str) -> Html:
    """A form that asks for a page in another way; where it is live, its answer takes the place of that part."""
    button = el("button", words, type="submit")
    return el("form", *fields, button, method="get", action=action, class_="filters", data_live=live, **more)


def sparkline(values: Iterable[float | None], label: str) -> Html | None:
    """A line of what something was worth; None for fewer than two values."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    low, high = min(known), max(known)
    room = (high - low) or 1.0
    points = " ".join(
        f"{number(2 + 76 * at / (len(known) - 1))},{number(18 - 14 * (value - low) / room)}"
        for at, value in enumerate(known)
    )
    line = el("polyline", points=points, class_="current-line")
    return el("svg", el("title", label), line, viewBox="0 0 80 22", width=80, height=22, class_="spark", role="img")


def problem(*lines: Child) -> Html:
    """What is wrong, where it must be seen."""
    return el("div", *(el("p", line) for line in lines), class_="problem", role="alert")


def items_links(run: str, items: Sequence[str]) -> Html:
    """Items with links to their pages."""
    shown = [link(item, "run", run, "item", item=item) for item in items[:_MOST_ITEMS]]
    more = f" and {len(items) - _MOST_ITEMS} more" if len(items) > _MOST_ITEMS else ""
    return el("span", *(join([each, " "]) for each in shown), more, class_="items")
