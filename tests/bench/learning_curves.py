"""What learning runs came to: steps of a score over calls or tokens, their area and spread, tables, and a picture."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise

from attrs import frozen


@frozen
class Moment:
    """A text became the one that would ship, after so many calls and tokens; `score` is its sealed test score."""

    calls: int
    tokens: int
    score: float


@frozen
class Curve:
    """One run of one algorithm in one world."""

    algorithm: str
    seed: int
    moments: tuple[Moment, ...]
    calls: int
    """Calls in all; where they are fewer than it might have made, the algorithm ended by itself."""
    tokens: int

    def at_calls(self, calls: float) -> float:
        """The score after so many calls."""
        return [moment.score for moment in self.moments if moment.calls <= calls][-1]

    def at_tokens(self, tokens: float) -> float:
        """The score after so many tokens."""
        return [moment.score for moment in self.moments if moment.tokens <= tokens][-1]

    def area(self, calls: int) -> float:
        """The mean score over the first calls."""
        return _area([(moment.calls, moment.score) for moment in self.moments], calls)

    def changes(self) -> tuple[int, int, int]:
        """How many changes of the text raised its score, left it as it was, and lowered it."""
        turns = [after.score - before.score for before, after in pairwise(self.moments)]
        up, down = sum(turn > 0 for turn in turns), sum(turn < 0 for turn in turns)
        return up, len(turns) - up - down, down

    def token_area(self, tokens: int) -> float:
        """The mean score over the first tokens."""
        return _area([(moment.tokens, moment.score) for moment in self.moments], tokens)


def _area(steps: Sequence[tuple[int, float]], until: int) -> float:
    ends = [*[min(at, until) for at, _ in steps], until]
    return sum((after - at) * score for (at, after), (_, score) in zip(pairwise(ends), steps, strict=True)) / until


@frozen
class Outcome:
    """A world under each algorithm: what could be reached, and what was."""

    world: str
    floor: float
    ceiling: float
    plain: float
    budgets: tuple[int, ...]
    curves: Mapping[str, Sequence[Curve]]

    @property
    def most_tokens(self) -> int:
        """Tokens up to which all algorithms can be compared: what the one that took fewest has taken, in the middle."""
        return int(min(statistics.median(curve.tokens for curve in curves) for curves in self.curves.values()))


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def table(outcome: Outcome) -> str:
    """A world as a Markdown table: medians at each budget, the spread at the last, areas, and how the text changed."""
    heads = [f"{calls} calls" for calls in outcome.budgets]
    tokens = outcome.most_tokens
    areas = ["area, calls", f"area, {tokens // 1000}k tokens"]
    columns = [outcome.world, *heads, "quartiles at the end", *areas, "better, same, worse"]
    rows = [_row(columns), _row(["---"] * len(columns))]
    for algorithm, curves in outcome.curves.items():
        middles = [f"{quartiles([curve.at_calls(calls) for curve in curves])[1]:.3f}" for calls in outcome.budgets]
        low, _, high = quartiles([curve.at_calls(outcome.budgets[-1]) for curve in curves])
        area = statistics.mean(curve.area(outcome.budgets[-1]) for curve in curves) / outcome.ceiling
        by_tokens = statistics.mean(curve.token_area(tokens) for curve in curves) / outcome.ceiling
        turned = ", ".join(str(sum(counts)) for counts in zip(*(curve.changes() for curve in curves), strict=True))
        cells = [algorithm, *middles, f"{low:.2f} to {high:.2f}", f"{area:.3f}", f"{by_tokens:.3f}", turned]
        rows.append(_row(cells))
    return "\n".join(rows)


def summary(outcomes: Sequence[Outcome]) -> str:
    """All worlds together as a Markdown table, a row for each algorithm: mean areas, ends and losses."""
    rows = [_row(["all worlds", "area, calls", "at the end, of the ceiling", "calls", "same", "worse"])]
    rows.append(_row(["---"] * 6))
    learned = [outcome for outcome in outcomes if outcome.floor < outcome.ceiling]
    for algorithm in outcomes[0].curves:
        pairs = [(outcome, curve) for outcome in learned for curve in outcome.curves[algorithm]]
        area = statistics.mean(curve.area(outcome.budgets[-1]) / outcome.ceiling for outcome, curve in pairs)
        end = statistics.mean(curve.at_calls(outcome.budgets[-1]) / outcome.ceiling for outcome, curve in pairs)
        calls = statistics.mean(curve.calls for _, curve in pairs)
        turns = [curve.changes() for outcome in outcomes for curve in outcome.curves[algorithm]]
        same, worse = sum(turn[1] for turn in turns), sum(turn[2] for turn in turns)
        rows.append(_row([algorithm, f"{area:.3f}", f"{end:.3f}", f"{calls:.0f}", str(same), str(worse)]))
    return "\n".join(rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
