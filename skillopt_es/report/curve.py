"""The score curve: what the current and the best skill were worth by step, and every candidate with its verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import frozen

from skillopt_es.presenting.words import metric_words
from skillopt_es.projections.intervals import Interval, wilson
from skillopt_es.projections.lineage import Lineage, Node
from skillopt_es.projections.lines import StepLine
from skillopt_es.report.facts import Facts
from skillopt_es.report.html import Html, el, note, number, score, section
from skillopt_es.report.lineage import legend, skip_mark, text_mark

_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 14, 40  # room for the scores and the steps' numbers


@frozen(kw_only=True)
class Mark:
    """A text at its place on the curve."""

    at: float
    node: Node
    value: float
    interval: Interval | None


@frozen(kw_only=True)
class Frame:
    """Where values and steps are in a drawing."""

    width: int
    height: int
    steps: float
    low: float
    high: float

    def x(self, at: float) -> float:
        """From step to place."""
        return _LEFT + (self.width - _LEFT - _RIGHT) * at / self.steps

    def y(self, value: float) -> float:
        """From value to place."""
        share = (value - self.low) / (self.high - self.low)
        return self.height - _BOTTOM - (self.height - _TOP - _BOTTOM) * share

    def point(self, at: float, value: float) -> str:
        """Both, as a path says it."""
        return f"{number(self.x(at))} {number(self.y(value))}"


def curve_section(facts: Facts) -> Html | None:
    """The curve, once for wide and once for narrow screens; None for a run without any value."""
    marks = marks_of(facts)
    if not marks:
        return None
    lines = facts.summary.step_lines
    steps = max([facts.summary.step, 1, *(mark.at for mark in marks)])
    taken = [mark for mark in marks if mark.node.taken]
    wide, narrow = _frame(marks, steps, 920, 320), _frame(marks, steps, 340, 260)
    return section(
        "Validation score by step",
        el(
            "figure",
            _drawing(wide, marks, lines, facts, "wide"),
            _drawing(narrow, marks, lines, facts, "narrow"),
            el("figcaption", legend([mark.node for mark in marks], lines, best_line=apart(taken, facts.tree))),
            class_="curve",
        ),
        note(
            f"Values: {metric_words(facts.summary.metric)} on validation items. The shaded band is the 95 % interval "
            "of the first skill's score. Texts that came after it were chosen on these items, so they have none here. "
            "Marks lead to the step they belong to."
        ),
        name="curve",
    )


def marks_of(facts: Facts) -> tuple[Mark, ...]:
    """The texts that have a value, in order; what is done after a step stands between it and the next."""
    found = []
    items = {event.skill: event.score.measured for event in facts.scored if event.purpose == "selection"}
    per_epoch = facts.started.steps_per_epoch if facts.started is not None else 1
    for node in facts.tree.nodes:
        value = node.value
        if value is None:
            continue
        measured = items.get(node.skill) if node.kind == "initial" else None  # the others were chosen on these items
        interval = wilson(value, measured) if measured and not node.bound else None
        found.append(Mark(at=_place(node, per_epoch), node=node, value=value, interval=interval))
    return tuple(found)


def _place(node: Node, per_epoch: int) -> float:
    if node.step is not None:
        return node.step + (0.25 if node.kind == "notes" else 0.0)
    return 0.0 if node.epoch is None else node.epoch * per_epoch + 0.5


def _frame(marks: Sequence[Mark], steps: float, width: int, height: int) -> Frame:
    """A scale that has room for the values and for how far they can be trusted, so that noise does not look large."""
    bands = [mark.interval for mark in marks if mark.interval is not None and mark.node.taken]
    values = [*(mark.value for mark in marks), *(band.low for band in bands), *(band.high for band in bands)]
    tick = _tick(min(values), max(values))
    low = math.floor(min(values) / tick) * tick
    high = math.ceil(max(values) / tick) * tick
    if high - low < tick:
        low, high = low - tick, high + tick
    if min(values) >= 0:
        low = max(0.0, low)
    return Frame(width=width, height=height, steps=steps, low=low, high=high)


def _tick(low: float, high: float) -> float:
    """The distance of grid lines that gives about five."""
    # Equal scores are no distance apart, and 0 has no logarithm.
    rough = max(high - low, 0.02) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    # A power of ten may come out a little too small: a step that just fits is still taken.
    return next(step * power for step in (1, 2, 5, 10) if step * power >= rough - 1e-12)


def _drawing(frame: Frame, marks: Sequence[Mark], lines: Sequence[StepLine], facts: Facts, kind: str) -> Html:
    taken = [mark for mark in marks if mark.node.taken]
    return el(
        "svg",
        el("title", f"Validation score of {facts.name} by step", id=f"curve-{kind}-title"),
        el("desc", _told(marks, facts.tree), id=f"curve-{kind}-desc"),
        _grid(frame, facts),
        _band(frame, taken),
        _line(frame, taken, "current-line"),
        _line(frame, bests(taken, facts.tree), "best-line") if apart(taken, facts.tree) else None,
        *(skip_mark(line, frame.x(line.step), frame.height - _BOTTOM) for line in lines if line.candidate is None),
        *(_placed(frame, mark, facts.tree) for mark in marks),
        class_=kind,
        viewBox=f"0 0 {frame.width} {frame.height}",
        role="group",
        aria_labelledby=f"curve-{kind}-title",
        aria_describedby=f"curve-{kind}-desc",
    )


def _told(marks: Sequence[Mark], tree: Lineage) -> str:
    first, last = marks[0], [mark for mark in marks if mark.node.taken][-1:]
    now = f", the current skill at {score(last[0].value)}" if last else ""
    best = tree.by_name.get(tree.best)
    reached = (
        "" if best is None or best.value is None else f"; the best is that of {best.name} with {score(best.value)}"
    )
    return f"Begins at {score(first.value)}{now}{reached}. The table of steps below has every number."


def _placed(frame: Frame, mark: Mark, tree: Lineage) -> Html:
    room = frame.x(1) - frame.x(0)
    size = min(4.5, max(2.2, 0.45 * room))
    return text_mark(mark.node, frame.x(mark.at), frame.y(mark.value), best=mark.node.name == tree.best, size=size)


def _grid(frame: Frame, facts: Facts) -> Html:
    tick = _tick(frame.low, frame.high)
    rows = round((frame.high - frame.low) / tick)
    right, bottom = frame.width - _RIGHT, frame.height - _BOTTOM
    parts = []
    for index in range(rows + 1):
        value = frame.low + index * tick
        y = frame.y(value)
        parts.append(el("path", d=f"M{_LEFT} {number(y)}H{right}", class_="grid"))
        words = f"{value:.2f}" if tick >= 0.01 else f"{value:.3f}"
        parts.append(el("text", words, x=_LEFT - 6, y=number(y + 4), class_="tick end"))
    per_epoch = facts.started.steps_per_epoch if facts.started is not None else 0
    for step in range(per_epoch, math.floor(frame.steps) if per_epoch else 0, max(1, per_epoch)):
        x = number(frame.x(step + 0.5))
        parts.append(el("path", d=f"M{x} {_TOP}V{bottom}", class_="epoch"))
    every = max(1, math.ceil(frame.steps / ((frame.width - _LEFT - _RIGHT) / 34)))
    parts += [
        el("text", str(step) if step else "start", x=number(frame.x(step)), y=bottom + 18, class_="tick mid")
        for step in range(0, math.floor(frame.steps) + 1, every)
    ]
    parts.append(el("text", "step", x=right, y=bottom + 34, class_="tick end"))
    return el("g", *parts, aria_hidden="true")


def _line(frame: Frame, marks: Sequence[Mark], kind: str) -> Html | None:
    """A value that holds until the next one: steps, not slopes, for nothing lies between two texts."""
    if not marks:
        return None
    path = f"M{frame.point(marks[0].at, marks[0].value)}"
    for mark in marks[1:]:
        path += f"H{number(frame.x(mark.at))}V{number(frame.y(mark.value))}"
    return el("path", d=f"{path}H{number(frame.x(frame.steps))}", class_=kind)


def bests(taken: Sequence[Mark], tree: Lineage) -> list[Mark]:
    """The marks at which the best became another one."""
    return [
        mark
        for mark in taken
        if mark.node.kind == "initial" or mark.node.verdict == "accept_new_best" or mark.node.name == tree.best
    ]


def apart(taken: Sequence[Mark], tree: Lineage) -> bool:
    """Whether the best was ever worth something else than the current one."""
    best: float | None = None
    better = {mark.node.name for mark in bests(taken, tree)}
    for mark in taken:
        best = mark.value if mark.node.name in better else best
        if best != mark.value:
            return True
    return False


def _band(frame: Frame, taken: Sequence[Mark]) -> Html | None:
    """The intervals of what is current, where it has one, clipped to the drawing."""
    parts = []
    ends = [*(mark.at for mark in taken[1:]), float(frame.steps)]
    for mark, end in zip(taken, ends, strict=True):
        if mark.interval is None or end <= mark.at:
            continue
        low, high = max(frame.low, mark.interval.low), min(frame.high, mark.interval.high)
        if high > low:
            left, right = number(frame.x(mark.at)), number(frame.x(end))
            parts.append(f"M{left} {number(frame.y(high))}H{right}V{number(frame.y(low))}H{left}z")
    return el("path", d="".join(parts), class_="band") if parts else None
