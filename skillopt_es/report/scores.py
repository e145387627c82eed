"""The scores: each with its number of items, what one item is worth and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Iterator

from skillopt_es.audit.headlines import Difference, Headline, Headlines
from skillopt_es.counting import counted
from skillopt_es.projections.intervals import fewest_turned
from skillopt_es.report.html import Html, el, note, number, prose, row, section, table
from skillopt_es.report.words import chance, change, count, listed, score

_WIDTH, _HEIGHT, _EDGE = 180, 22, 6
_MOST_NAMES = 12


def scores_section(found: Headlines, looks: str = "") -> Html | None:
    """
    The table of scores and what can be said of their differences; None where nothing was measured.

    `looks` says how often the test items were looked at, where each look had to be recorded.
    """
    if not found.scores:
        return None
    soft = any(abs(each.hard - each.soft) > 1e-9 for each in found.scores)
    headers = [
        ("measured on", False),
        ("hard score", True),
        *([("soft score", True)] if soft else []),
        ("95 % interval", True),
        ("0 to 1", False),
        ("items", True),
        ("one item is", True),
        ("draws", True),
    ]
    rows = [_row(each, soft=soft) for each in found.scores]
    sentences = [*said(found), *([looks] if looks else [])]
    return section(
        "Scores",
        table("Scores of the texts that count", headers, rows, kind="scores"),
        el("ul", *(el("li", prose(each)) for each in sentences), class_="said"),
        note(
            "Intervals are Wilson's, over items. Differences are judged by the items that were measured under both "
            f"texts (exact sign test, which for passes and failures is McNemar's; 5 %): at least {fewest_turned()} "
            "items have to turn, all the same way, before a difference is more than noise."
        ),
        name="scores",
    )


def _row(each: Headline, *, soft: bool) -> Html:
    interval = each.interval
    lost = f" of {each.items + each.unmeasured}" if each.items is not None and each.unmeasured else ""
    fewest, most = each.draws
    cells: list[tuple[str | Html, bool]] = [
        (f"{'' if each.exact else '≤ '}{score(each.hard)}", True),
        *([(score(each.soft), True)] if soft else []),
        ("–" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}", True),
        (_whisker(each), False),
        (f"{count(each.items)}{lost}", True),
        (score(each.grid), True),
        ("–" if not most else str(most) if fewest == most else f"{fewest} to {most}", True),
    ]
    return row(f"{each.split}: {listed(list(each.names))}", cells)


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


def said(found: Headlines) -> Iterator[str]:
    """What the scores say, and what they do not, one sentence each."""
    for each in found.differences:
        yield _difference(each)
    if found.judged > 1 and any("best" in each.names for each in found.scores if each.split == "validation"):
        yield (
            f"The best was chosen as the highest of {counted(found.judged, 'text')} measured on validation, so its own "
            "validation score flatters it; only the test score does not."
        )
    if found.accepted:
        yield _accepted(found)
    yield from _missing(found)


def _difference(each: Difference) -> str:
    names = listed(list(each.after.names))
    lead = f"On {each.split}, {names} against {listed(list(each.before.names))}: {change(each.change)}"
    pair = each.paired
    if pair is None:
        return f"{lead}; the log has no results of single items, so whether that is more than noise cannot be told."
    turned = f"{len(pair.won)} won and {len(pair.lost)} lost of {counted(pair.items, 'item')}"
    if not pair.resolvable:
        return f"{lead}, {turned}: within noise, as anything would be with so few items."
    if pair.within_noise:
        return f"{lead}, {turned}: within noise ({chance(pair.probability)})."
    return f"{lead}, {turned}: more than noise ({chance(pair.probability)})."


def _accepted(found: Headlines) -> str:
    noise = [each for each in found.accepted if each.paired.within_noise]
    whole = counted(len(found.accepted), "accepted text")
    taken = "the text that it took the place of"
    if not noise:
        return f"Each of the {whole} won by more than noise against {taken}."
    if len(noise) == len(found.accepted):
        return f"None of the {whole} won by more than noise against {taken}; the gate's rule takes it all the same."
    names = [f"step {each.step}" if each.epoch is None else f"guidance of epoch {each.epoch}" for each in noise]
    rest = len(names) - _MOST_NAMES
    shown = listed(names if rest <= 0 else [*names[:_MOST_NAMES], f"{rest} more"])
    lead = f"Of {whole}, {len(noise)} won by no more than noise ({shown})"
    return f"{lead}, each against {taken}; the gate's rule takes it all the same."


def _missing(found: Headlines) -> Iterator[str]:
    if found.judged and not any(each.split == "test" for each in found.scores):
        yield "Nothing was measured on test items: what the best is worth on items that nobody chose by is not known."
    lost = [each for each in found.scores if each.unmeasured]
    if lost:
        yield "Items that could not be measured are in no score: where the table says “of”, some are left out."
    if any(not each.exact for each in found.scores):
        yield "A score with ≤ is an upper bound: not every item was run, for the verdict was certain without them."
