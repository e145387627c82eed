"""The scores: each with its number of items, what one item is worth and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Iterator

from skillopt_es.audit.headlines import Difference, Headline, Headlines
from skillopt_es.counting import counted
from skillopt_es.projections.intervals import Interval, Paired, fewest_turned
from skillopt_es.report.html import (
    DASH,
    Html,
    chance,
    change,
    count,
    el,
    listed,
    note,
    number,
    prose,
    row,
    score,
    section,
    table,
)

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
    typed = any(each.by_family is not None for each in found.scores)
    headers = [
        ("measured on", False),
        ("hard score", True),
        *([("soft score", True)] if soft else []),
        ("95 % interval", True),
        *([("by type", True)] if typed else []),
        ("0 to 1", False),
        ("items", True),
        ("one item is", True),
        ("draws", True),
    ]
    rows = [_row(each, soft=soft, typed=typed) for each in found.scores]
    sentences = [*said(found), *([looks] if looks else [])]
    return section(
        "Scores",
        table("Scores of the texts that count", headers, rows, kind="scores"),
        el("ul", *(el("li", prose(each)) for each in sentences), class_="said"),
        note(
            "Intervals are Wilson's, over items as if each had been drawn by itself"
            f"{', and over types of tasks as if those had been drawn' if typed else ''}; they say nothing of tasks of "
            "another kind. Texts that were chosen on validation items have none there. Differences are judged by the "
            "items that turned, in as many draws of both texts (exact sign test, which for passes and failures is "
            f"McNemar's; 5 %): at least {fewest_turned()} items have to turn, all the same way, before a difference is "
            f"more than noise{', and those of at least as many types' if typed else ''}."
        ),
        name="scores",
    )


def _row(each: Headline, *, soft: bool, typed: bool) -> Html:
    interval = each.interval
    lost = f" of {each.items + each.unmeasured}" if each.items is not None and each.unmeasured else ""
    fewest, most = each.draws
    cells: list[tuple[str | Html, bool]] = [
        (f"{'' if each.exact else '≤ '}{score(each.hard)}", True),
        *([(score(each.soft), True)] if soft else []),
        (_interval(interval), True),
        *([(_interval(each.by_family), True)] if typed else []),
        (_whisker(each), False),
        (f"{count(each.items)}{lost}", True),
        (score(each.grid), True),
        ("–" if not most else str(most) if fewest == most else f"{fewest} to {most}", True),
    ]
    return row(f"{each.split}: {listed(list(each.names))}", cells)


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


def said(found: Headlines) -> Iterator[str]:
    """What the scores say, and what they do not, one sentence each."""
    for each in found.differences:
        yield _difference(each, found.judged)
    if found.judged > 1 and any("best" in each.names for each in found.scores if each.split == "validation"):
        yield (
            f"The best was chosen as the highest of {counted(found.judged, 'text')} measured on validation, so its own "
            "validation score flatters it; only the test score does not."
        )
    if found.accepted:
        yield _accepted(found)
    yield from _missing(found)


def _difference(each: Difference, judged: int) -> str:
    names = listed(list(each.after.names))
    lead = f"On {each.split}, {names} against {listed(list(each.before.names))}: {change(each.change)}"
    pair = each.paired
    if pair is None:
        return f"{lead}; the log has no results of single items, so whether that is more than noise cannot be told."
    turned = f"{len(pair.won)} won and {len(pair.lost)} lost of {counted(pair.items, 'item')}"
    if each.after.chosen and not pair.within_noise:
        among = f"among {counted(judged, 'text')}" if judged > 1 else "by a gate"
        return f"{lead}, {turned}. These items chose it {among}, so no test of chance on them says anything of it."
    return f"{lead}, {turned}: {noise_words(pair)}."


def noise_words(pair: Paired) -> str:
    """Whether chance alone explains a difference, and by which count."""
    if not pair.resolvable:
        return "within noise, as anything would be with so few items"
    together = pair.by_family
    if together is None:
        return f"{'within' if pair.within_noise else 'more than'} noise ({chance(pair.probability)})"
    both = f"{chance(pair.probability)} by item, {chance(together)} by type"
    if pair.within_noise is None:
        few = f"with {counted(pair.kinds, 'type')} of tasks it cannot be told whether more than a few types turned"
        return f"more than noise if each item turns by itself, but {few} ({both})"
    return f"{'within' if pair.within_noise else 'more than'} noise ({both})"


def _accepted(found: Headlines) -> str:
    noise = [each for each in found.accepted if each.paired.within_noise]
    by = "noise, counted by type," if any(each.paired.families for each in noise) else "noise"
    whole = counted(len(found.accepted), "accepted text")
    taken = "its predecessor" if len(found.accepted) == 1 else "the text before it"
    if not noise:
        some = "The" if len(found.accepted) == 1 else "Each of the"
        many = (
            f"The gate compared {counted(found.judged, 'text')} on the same items, so this is no test of any of them."
        )
        return f"{some} {whole} turned more items against {taken} than chance does in one comparison. {many}"
    if len(noise) == len(found.accepted):
        none = "The accepted text won by no" if len(noise) == 1 else f"None of the {whole} won by"
        return f"{none} more than {by} against {taken}; the gate's rule takes it all the same."
    names = [f"step {each.step}" if each.epoch is None else f"guidance of epoch {each.epoch}" for each in noise]
    rest = len(names) - _MOST_NAMES
    shown = listed(names if rest <= 0 else [*names[:_MOST_NAMES], f"{rest} more"])
    lead = f"Of {whole}, {len(noise)} won by no more than {by.rstrip(',')} ({shown})"
    return f"{lead}, each against {taken}; the gate's rule takes it all the same."


def _missing(found: Headlines) -> Iterator[str]:
    if found.judged and not any(each.split == "test" for each in found.scores):
        yield "Nothing was measured on test items: what the best is worth on items that nobody chose by is not known."
    lost = [each for each in found.scores if each.unmeasured]
    if lost:
        yield "Items that could not be measured are in no score: where the table says “of”, some are left out."
    if any(not each.exact for each in found.scores):
        yield "A score with ≤ is an upper bound: not every item was run, for the verdict was certain without them."
