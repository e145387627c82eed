"""Runs and forks beside each other: what differs in their settings first, then curves, outcomes and paired tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean

from attrs import frozen

from skillopt_es.audit.side_by_side import Side, against_first
from skillopt_es.audit.spending_curve import SpendingCurve
from skillopt_es.counting import counted
from skillopt_es.events.values import Json
from skillopt_es.presenting.sides import against_words, column, first_words, interval_words
from skillopt_es.presenting.words import items_words, listed
from skillopt_es.projections.intervals import Judged
from skillopt_es.report.html import DASH, Child, Html, el, join, note, prose, row, score, section, table
from skillopt_es.report.settings import shown
from skillopt_es.runs.run_settings import Settings, shareable
from skillopt_es.ui.overlay import AXES, overlay, usual_axis
from skillopt_es.ui.shell import choice, filters, hidden, link, part

MOST_RUNS = 8  # each is read whole while the page is waited for, and a drawing has eight lines at most
_SEEDS = frozenset({"train.seed", "env.split_seed"})


@frozen(kw_only=True)
class Compared:
    """One run: its outcome, its settings and its curve."""

    side: Side
    settings: Settings
    curve: SpendingCurve

    @property
    def name(self) -> str:
        """What it is called."""
        return self.side.name


def choosing(names: Sequence[str], chosen: Sequence[str]) -> Html:
    """The form in which runs are chosen."""
    boxes = [
        el("label", el("input", type="checkbox", name="run", value=name, checked=name in chosen), " ", name)
        for name in names
    ]
    return el(
        "form",
        el("fieldset", el("legend", f"Runs, at most {MOST_RUNS}"), el("div", *boxes, class_="boxes")),
        el("button", "Compare", type="submit"),
        method="get",
        action="/compare",
    )


def compare_page(names: Sequence[str], found: Sequence[Compared], query: Mapping[str, str]) -> list[Html]:
    """The form, and what the chosen runs have and have not in common."""
    chosen = [each.name for each in found]
    form = choosing(names, chosen)
    if not found:
        return [el("h1", "Compare runs"), form]
    over = query.get("over", "")
    over = over if over in AXES else usual_axis([each.curve for each in found])
    which = "current" if query.get("which") == "current" else "best"
    parts: list[Child] = [
        _differences(found),
        _tests(found),
        _curves(found, over, which),
        _outcomes(found),
    ]
    title = el("h1", "Compare ", join([listed(chosen)]))
    return [title, el("details", el("summary", "Other runs"), form), part("compared", *parts)]


def _differences(found: Sequence[Compared]) -> Html:
    """The settings that are not the same in all of them."""
    settings = [shareable(each.settings) for each in found]
    keys = sorted({key for each in settings for key in each})
    unlike = [key for key in keys if len({_said(each, key) for each in settings}) > 1]
    if len(found) < 2:
        return section("Settings", note("One run alone differs from nothing."), name="settings")
    if not unlike:
        return section("Settings that differ", note("All settings are the same."), name="settings")
    rows = [row(key, *(el("code", _said(each, key)) for each in settings)) for key in unlike]
    headers = ["key", *(each.name for each in found)]
    body = table(f"{counted(len(unlike), 'setting')} of {len(keys)}", headers, rows, kind="config")
    return section("Settings that differ", body, _repeats(found, unlike), name="settings")


def _said(settings: Mapping[str, Json], key: str) -> str:
    return shown(settings[key]) if key in settings else DASH


def _repeats(found: Sequence[Compared], unlike: Sequence[str]) -> Html | None:
    """Runs that differ by their seed alone, with the spread of their scores."""

    def alike(each: Compared) -> str:
        return repr([_said(each.settings, key) for key in unlike if key not in _SEEDS])

    said = []
    for _, members in groupby(sorted(found, key=alike), key=alike):
        group = list(members)
        scores = [each.side.test_best.hard for each in group if each.side.test_best is not None]
        if len(group) > 1 and scores:
            names = listed([each.name for each in group])
            spread = f"from {min(scores):.4f} to {max(scores):.4f}, mean {fmean(scores):.4f}"
            said.append(el("li", f"{names} repeat each other with another seed: best on test {spread}."))
    return el("ul", *said) if said else None


def _curves(found: Sequence[Compared], over: str, which: str) -> Html:
    form = filters(
        "Show",
        *(each for one in found for each in hidden({"run": one.name})),
        choice("Over", "over", {name: axis.words for name, axis in AXES.items()}, over),
        choice("Skill", "which", {"best": "the best so far", "current": "the current one"}, which),
        action="/compare",
        live="compared",
    )
    said = note(
        "Scores on validation items, which chose these skills: they flatter them. The numbers at which two runs differ "
        "by more than chance are those of the test items above."
    )
    drawn = overlay([each.curve for each in found], over, which)
    return section("Score over what was used", form, drawn, said, _parts(found), name="curves")


def _parts(found: Sequence[Compared]) -> Html | None:
    """Whose scores are over some of the validation items, so that their lines cannot be set against the others."""
    parts = {each.name: part for each in found if (part := each.side.over.get("best")) is not None}
    if not parts or len(found) < 2:
        return None
    said = "; ".join(f"{name}: {items_words(part, chosen=True)}" for name, part in parts.items())
    return note(f"A line over some of the validation items cannot be compared with one over all: {said}.")


def _outcomes(found: Sequence[Compared]) -> Html:
    columns = [column(each.side) for each in found]
    labels = [label for label in columns[0] if any(each[label] not in ("", "-") for each in columns)]
    rows = [row(label, *(each[label] for each in columns)) for label in labels]
    headers = ["what", *(f"#{each.name}" for each in found)]
    links = el("p", *(link(each.name, "run", each.name) for each in found), class_="links")
    metrics = {each.side.metric for each in found if each.side.metric is not None}
    rules = (
        note("The gates' values are by different rules and cannot be compared; hard and soft scores can.")
        if len(metrics) > 1
        else None
    )
    return section("Outcomes", table("Runs side by side", headers, rows), rules, links, name="outcomes")


def _tests(found: Sequence[Compared]) -> Html:
    """Each run's best skill on the test items, and each further one against the first run's, by the items of both."""
    sides = [each.side for each in found]
    typed = any(each.by_type is not None for each in sides)
    judgments = against_first(sides)
    rows = [row(each.name, *_score_cells(each, typed=typed), _against(each, judgments)) for each in sides]
    by_type = ["#by type"] if typed else []
    headers = ["best skill of", "#test", "#95 % interval", *by_type, f"against {sides[0].name}"]
    others = note(first_words(judgments.values())) if judgments else None
    body = table("On test items, which chose none of them", headers, rows, kind="tests")
    return section("Which is best", body, others, name="pairs")


def _score_cells(each: Side, *, typed: bool) -> list[Child]:
    tested = each.test_best
    measured = score(tested.hard) if tested is not None and tested.measured else DASH
    reaches = [each.interval, *([each.by_type] if typed else [])]
    return [measured, *(interval_words(reach) or DASH for reach in reaches)]


def _against(each: Side, judgments: Mapping[Path, Judged | None]) -> Child:
    """A run's best skill against the first run's; a dash for the first run itself."""
    return prose(against_words(judgments[each.folder])) if each.folder in judgments else DASH
