"""The scores: each with its number of items, what one item is worth and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Iterable

from skillopt_es.audit.headlines import Headline, Headlines
from skillopt_es.presenting.claims import said
from skillopt_es.presenting.words import listed
from skillopt_es.projections.intervals import Interval, fewest_turned
from skillopt_es.report.html import DASH, Html, Row, count, el, note, number, prose, row, score, section, table

_BY_TYPE = (
    ". The test by type says whether tasks of other types would do the same; it needs at least "
    f"{fewest_turned()} types that could turn"
)
_WIDTH, _HEIGHT, _EDGE = 180, 22, 6  # a drawing as high as a line of its table


def scores_section(found: Headlines, looks: str = "", certificate: Iterable[str] = ()) -> Html | None:
    """
    The table of scores and what can be said of their differences; None where nothing was measured.

    `looks` says how often the test items were looked at, where each look had to be recorded; `certificate` what is
    certified.
    """
    if not found.scores:
        return None
    # What floats leave of equal means is no difference.
    soft = any(abs(each.hard - each.soft) > 1e-9 for each in found.scores)
    typed = any(each.by_family is not None for each in found.scores)
    scores = f"#hard score{' | #soft score' if soft else ''} | #95 % interval{' | #by type' if typed else ''}"
    headers = f"measured on | {scores} | 0 to 1 | #items | #one item is | #repeats"
    rows = [_row(each, soft=soft, typed=typed) for each in found.scores]
    sentences = [*said(found), *(f"Certified: {each}." for each in certificate), *([looks] if looks else [])]
    return section(
        "Scores",
        table("Scores of the texts that count", headers, rows, kind="scores"),
        el("ul", *(el("li", prose(each)) for each in sentences), class_="said"),
        note(
            "Intervals are Wilson's, over items as if each had been drawn by itself"
            f"{', and over types of tasks as if those had been drawn' if typed else ''}; they say nothing of tasks of "
            "another kind. Texts that were chosen on validation items have none there. Differences are judged by the "
            "items that turned, in as many repeats of both texts (exact sign test, which for passes and failures is "
            f"McNemar's; 5 %): at least {fewest_turned()} items have to turn, all the same way, before a difference is "
            f"more than noise{_BY_TYPE if typed else ''}."
        ),
        name="scores",
    )


def _row(each: Headline, *, soft: bool, typed: bool) -> Row:
    interval = each.interval
    lost = f" of {each.items + each.unmeasured}" if each.items is not None and each.unmeasured else ""
    lost = lost if each.over is None else f" of {each.over.of}"
    fewest, most = each.draws
    return row(
        f"{each.split}: {listed(list(each.names))}",
        f"{'' if each.exact else '≤ '}{score(each.hard)}",
        *([score(each.soft)] if soft else []),
        _interval(interval),
        *([_interval(each.by_family)] if typed else []),
        _whisker(each),
        f"{count(each.items)}{lost}",
        score(each.grid),
        "–" if not most else str(most) if fewest == most else f"{fewest} to {most}",
    )


def _interval(interval: Interval | None) -> str:
    return DASH if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"


def _whisker(each: Headline) -> Html:
    """The interval and the score on a line from 0 to 1; the numbers stand beside it."""
    wide, middle = _WIDTH - 2 * _EDGE, _HEIGHT / 2

    def at(value: float) -> str:
        return number(_EDGE + wide * min(1.0, max(0.0, value)))

    marks = [el("path", d=f"M{_EDGE} {middle}H{_EDGE + wide}", class_="axis")]
    marks += [el("path", d=f"M{at(tick)} {middle - 3}v6", class_="axis") for tick in (0.0, 0.5, 1.0)]
    if each.interval is not None:
        low, high = at(each.interval.low), at(each.interval.high)
        marks.append(el("path", d=f"M{low} {middle}H{high}M{low} {middle - 4}v8M{high} {middle - 4}v8", class_="reach"))
    marks.append(el("circle", cx=at(each.hard), cy=middle, r=4, class_="dot"))
    return el("svg", *marks, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", width=_WIDTH, height=_HEIGHT, aria_hidden="true")
