"""The picture of a learning bench: for each world the median score over calls, a line with a band an algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from learning_curves import Curve, Outcome, quartiles

WIDTH, HEIGHT, LEFT, TOP, GAP, ACROSS = 230, 150, 46, 34, 44, 5
POINTS = 100
COLOURS = {"classic": "#7f7f7f", "gepa": "#d95f02", "search": "#1b6ca8"}
MORE_COLOURS = ("#7570b3", "#66a61e", "#e7298a")


def picture(outcomes: Sequence[Outcome]) -> str:
    """All worlds side by side, as SVG."""
    algorithms = list(outcomes[0].curves)
    panels = "".join(_panel(outcome, at) for at, outcome in enumerate(outcomes))
    wide = LEFT + min(ACROSS, max(3, len(outcomes))) * (WIDTH + GAP)  # the legend needs three
    high = TOP + -(-len(outcomes) // ACROSS) * (HEIGHT + TOP + GAP) + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="11">'
        f'<rect width="{wide}" height="{high}" fill="#ffffff"/>{_legend(algorithms, high - 12)}{panels}</svg>\n'
    )


def colour(algorithm: str, algorithms: Sequence[str]) -> str:
    """Each algorithm's own; one that has none takes the next of the others."""
    strange = [name for name in algorithms if name not in COLOURS]
    return COLOURS.get(algorithm) or MORE_COLOURS[strange.index(algorithm) % len(MORE_COLOURS)]


def _legend(algorithms: Sequence[str], y: int) -> str:
    shown = []
    for at, algorithm in enumerate(algorithms):
        x, paint = LEFT + at * 110, colour(algorithm, algorithms)
        shown.append(f'<line x1="{x}" x2="{x + 22}" y1="{y - 4}" y2="{y - 4}" stroke="{paint}" stroke-width="2"/>')
        shown.append(f'<text x="{x + 28}" y="{y}" fill="#222222">{escape(algorithm)}</text>')
    said = "test score over calls: median and quartiles of seeds; dashed: the most that can be learned"
    shown.append(f'<text x="{LEFT + len(algorithms) * 110}" y="{y}" fill="#555555">{said}</text>')
    return "".join(shown)


def _panel(outcome: Outcome, at: int) -> str:
    """One world, in its place of the grid."""
    left = LEFT + at % ACROSS * (WIDTH + GAP)
    top = TOP + at // ACROSS * (HEIGHT + TOP + GAP)
    most = outcome.budgets[-1]
    lowest = 0.0 if outcome.floor < 0.5 else 0.6

    def x(calls: float) -> float:
        return left + WIDTH * calls / most

    def y(score: float) -> float:
        return top + HEIGHT * (1 - (max(score, lowest) - lowest) / (1 - lowest))

    algorithms = list(outcome.curves)
    lines = [_line(curves, most, x, y, colour(algorithm, algorithms)) for algorithm, curves in outcome.curves.items()]
    ceiling = y(outcome.ceiling)
    return (
        f'<text x="{left}" y="{top - 8}" font-weight="bold" fill="#222222">{escape(outcome.world)}</text>'
        f"{_axes(left, top, most, lowest)}"
        f'<line x1="{left}" x2="{left + WIDTH}" y1="{ceiling:.1f}" y2="{ceiling:.1f}" stroke="#999999" '
        f'stroke-dasharray="4 3"/>{"".join(lines)}'
    )


def _axes(left: int, top: int, most: int, lowest: float) -> str:
    foot = top + HEIGHT
    marks = [
        f'<path d="M{left} {top}V{foot}H{left + WIDTH}" fill="none" stroke="#888888"/>',
        *(
            f'<text x="{left - 6}" y="{foot - HEIGHT * share + 4:.0f}" text-anchor="end" fill="#555555">'
            f"{lowest + (1 - lowest) * share:.1f}</text>"
            for share in (0.0, 0.5, 1.0)
        ),
        *(
            f'<text x="{left + WIDTH * share:.0f}" y="{foot + 15}" text-anchor="middle" fill="#555555">'
            f"{most * share:.0f}</text>"
            for share in (0.0, 0.5, 1.0)
        ),
    ]
    return "".join(marks)


def _line(
    curves: Sequence[Curve], most: int, x: Callable[[float], float], y: Callable[[float], float], paint: str
) -> str:
    """The band between the quartiles, and the median over it."""
    calls = [most * at / POINTS for at in range(POINTS + 1)]
    found = [quartiles([curve.at_calls(at) for curve in curves]) for at in calls]
    low = [f"{x(at):.1f},{y(each[0]):.1f}" for at, each in zip(calls, found, strict=True)]
    middle = [f"{x(at):.1f},{y(each[1]):.1f}" for at, each in zip(calls, found, strict=True)]
    high = [f"{x(at):.1f},{y(each[2]):.1f}" for at, each in zip(calls, found, strict=True)]
    return (
        f'<polygon points="{" ".join([*low, *reversed(high)])}" fill="{paint}" opacity="0.18"/>'
        f'<polyline points="{" ".join(middle)}" fill="none" stroke="{paint}" stroke-width="2"/>'
    )
