"""Several runs' scores laid over each other, over what they had used: one drawing, and its numbers as a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from skillopt_es.audit.spending_curve import Point, SpendingCurve
from skillopt_es.presenting.numbers import shown_seconds
from skillopt_es.report.html import DASH, Html, el, fold, join, number, row, score, table

_SIZES = {"wide": (920, 340), "narrow": (340, 260)}  # a small screen would make the words of a wide one too small
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 16, 14, 40  # room for the scores and for what the other axis counts
MOST_LINES = 8  # more have no colours that can be told apart
# The smallest that leaves at most six steps between the lowest and the highest score.
_TICKS = (0.02, 0.05, 0.1, 0.2, 0.5)


@frozen
class Axis:
    """What scores are drawn over."""

    words: str
    value: Callable[[Point], float | None]
    said: Callable[[float], str]


def _count(value: float) -> str:
    return f"{value:,.0f}"


AXES: Mapping[str, Axis] = {
    "cost": Axis("money", lambda point: point.cost, lambda value: f"{value:,.4g}"),
    "calls": Axis("calls", lambda point: point.calls, _count),
    "tokens": Axis("tokens", lambda point: point.tokens, _count),
    "time": Axis("time at work", lambda point: point.seconds, shown_seconds),
}


def usual_axis(curves: Sequence[SpendingCurve]) -> str:
    """Money where all of them have prices, else calls."""
    return "cost" if curves and all(curve.currency for curve in curves) else "calls"


def overlay(curves: Sequence[SpendingCurve], over: str, which: str) -> Html:
    """The drawing; `which` says whether the best or the current skill is drawn."""
    axis = AXES[over]
    lines = {curve.name: list(_line(curve, axis, which)) for curve in curves[:MOST_LINES]}
    known = {name: line for name, line in lines.items() if line}
    if not known:
        return el("p", f"Nothing is known of scores over {axis.words}.", class_="note")
    most = max(at for line in known.values() for at, _ in line) or 1.0
    values = [value for line in known.values() for _, value in line]
    tick = next(tick for tick in _TICKS if max(values) - min(values) <= 6 * tick or tick == _TICKS[-1])
    low = math.floor(min(values) / tick) * tick
    high = max(math.ceil(max(values) / tick) * tick, low + tick)
    names = [*known]
    title = f"The {which} skill's validation score over {axis.words}"
    drawn = []
    for kind, (width, height) in _SIZES.items():
        frame = _Frame(width=width, height=height, most=most, low=low, high=high, tick=tick)
        paths = [_path(frame, line, names.index(name), name) for name, line in known.items()]
        parts = (el("title", title), _grid(frame, axis), *paths)
        drawn.append(el("svg", *parts, viewBox=f"0 0 {width} {height}", role="img", class_=kind))
    keys = [el("span", _key(at), name, class_="key") for at, name in enumerate(names)]
    return join(
        [
            el("figure", *drawn, el("figcaption", el("span", *keys, class_="legend")), class_="curve overlay"),
            fold("The numbers", _numbers(curves, axis)),
        ]
    )


def _line(curve: SpendingCurve, axis: Axis, which: str) -> list[tuple[float, float]]:
    found = []
    for point in curve.points:
        at, value = axis.value(point), point.best if which == "best" else point.current
        if at is not None and value is not None:
            found.append((at, value))
    return found


@frozen(kw_only=True)
class _Frame:
    width: int
    height: int
    most: float
    low: float
    high: float
    tick: float

    def x(self, at: float) -> float:
        return _LEFT + (self.width - _LEFT - _RIGHT) * at / self.most

    def y(self, value: float) -> float:
        return self.height - _BOTTOM - (self.height - _TOP - _BOTTOM) * (value - self.low) / (self.high - self.low)


def _path(frame: _Frame, line: Sequence[tuple[float, float]], index: int, name: str) -> Html:
    """A value holds until the next one."""
    (at, value), *rest = line
    path = f"M{number(frame.x(at))} {number(frame.y(value))}"
    for at, value in rest:
        path += f"H{number(frame.x(at))}V{number(frame.y(value))}"
    end = el("circle", cx=number(frame.x(at)), cy=number(frame.y(value)), r=4, class_=f"end-{index}")
    return el("g", el("title", name), el("path", d=path, class_=f"line line-{index}"), end)


def _grid(frame: _Frame, axis: Axis) -> Html:
    parts = []
    for index in range(round((frame.high - frame.low) / frame.tick) + 1):
        value = frame.low + index * frame.tick
        y = number(frame.y(value))
        parts.append(el("path", d=f"M{_LEFT} {y}H{frame.width - _RIGHT}", class_="grid"))
        parts.append(el("text", f"{value:.2f}", x=_LEFT - 6, y=number(frame.y(value) + 4), class_="tick end"))
    for index in range(5):
        at = frame.most * index / 4
        kind = "tick mid" if 0 < index < 4 else "tick end" if index else "tick"
        parts.append(el("text", axis.said(at), x=number(frame.x(at)), y=frame.height - _BOTTOM + 18, class_=kind))
    parts.append(el("text", axis.words, x=frame.width - _RIGHT, y=frame.height - _BOTTOM + 34, class_="tick end"))
    return el("g", *parts, aria_hidden="true")


def _key(index: int) -> Html:
    line = el("path", d="M1 9H17", class_=f"line line-{index}")
    return el("svg", line, viewBox="0 0 18 18", width=18, height=18, aria_hidden="true")


def _numbers(curves: Sequence[SpendingCurve], axis: Axis) -> Html:
    rows = []
    for curve in curves[:MOST_LINES]:
        for point in curve.points:
            at = axis.value(point)
            rows.append(
                row(
                    curve.name,
                    DASH if at is None else axis.said(at),
                    score(point.current),
                    score(point.best),
                    f"{point.seq:,}",
                )
            )
    headers = ["run", f"#{axis.words}", "#current", "#best", "#event"]
    return table("Where scores changed", headers, rows)
