"""
An estimate: calls, tokens, money and time of a run as ranges, each with what it rests on.

What the plan says for certain is not estimated. The rest comes from earlier runs of the set-up: calls a unit of the
plan, tokens and time a call. Without any, the plan's bounds stand, and tokens and time are assumptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from attrs import evolve, frozen

from skillopt_es.config.backends import is_own_agent
from skillopt_es.counting import counted
from skillopt_es.engine.algorithms import algorithm_of
from skillopt_es.engine.estimates import Part, Planned, with_judge
from skillopt_es.estimating.history import Calls, PastRun
from skillopt_es.events.values import Role
from skillopt_es.projections.prices import Price, Prices, cost_of, prices_in

# How far from what was measured another draw of the same set-up may lie: as means do, less with more steps.
_SPREAD, _LEAST_SPREAD = 1.5, 0.1
_CHARACTERS_A_TOKEN = 4  # of English, by OpenAI's rule of thumb; code and other scripts have fewer
# Assumed where nothing was measured: tokens of a task, of a target's answer and of an optimizer's, seconds a call.
_TASK, _ANSWER, _EPOCH_TEXT, _SECONDS = (100, 3000), (20, 1500), (150, 2500), (1.0, 20.0)

# A judge reads the task, what is looked for and an answer, and says little.
_TO_JUDGE, _JUDGED = (300, 4000), (30, 300)


@frozen(kw_only=True)
class Range:
    """From, to, and what is expected."""

    low: float
    expected: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(low=self.low + other.low, expected=self.expected + other.expected, high=self.high + other.high)

    def __mul__(self, other: Range) -> Range:
        return Range(low=self.low * other.low, expected=self.expected * other.expected, high=self.high * other.high)


NONE = Range(low=0, expected=0, high=0)


@frozen(kw_only=True)
class Line:
    """One kind of call; without a price `cost` is None. `basis` says what its numbers rest on."""

    kind: str
    role: Role
    calls: Range
    input_tokens: Range
    output_tokens: Range
    cost: Range | None
    basis: str


@frozen(kw_only=True)
class Estimate:
    """
    A whole run before it begins; `runs` are the earlier ones that it rests on.

    `within` are the calls by which its algorithm plans its end, where it does: so many it makes at most in all.
    """

    lines: tuple[Line, ...]
    calls: Range
    input_tokens: Range
    output_tokens: Range
    cost: Range | None
    currency: str
    seconds: Range
    time_basis: str
    steps: int
    epochs: int
    within: int | None
    runs: tuple[str, ...]
    notes: tuple[str, ...]


def estimate_of(run: Planned, past: Sequence[PastRun]) -> Estimate:
    """The estimate of a run."""
    steps, epochs, algorithm = run.started.total_steps, run.config.train.num_epochs, algorithm_of(run.started)
    parts = with_judge(algorithm.plan.parts(run, steps, epochs), run)
    prices = prices_in(run.config.resolved)
    lines = tuple(_line(part, run, past, prices) for part in parts)
    within = run.config.budget.max_calls if algorithm.plan.by_calls else None
    lines = _fitted(lines, within)
    costs = [line.cost for line in lines]
    seconds, time_basis = _time(parts, lines, past)
    return Estimate(
        lines=lines,
        calls=_in_all([(line.calls, line.calls) for line in lines], within),
        input_tokens=_in_all([(line.calls, line.input_tokens) for line in lines], within),
        output_tokens=_in_all([(line.calls, line.output_tokens) for line in lines], within),
        cost=None if None in costs else _in_all([(line.calls, line.cost or NONE) for line in lines], within),
        currency=prices.currency,
        seconds=seconds,
        time_basis=time_basis,
        steps=steps,
        epochs=epochs,
        within=within,
        runs=tuple(each.name for each in past),
        notes=(*_notes(run, past), *_pauses(run, lines, within)),
    )


def _fitted(lines: tuple[Line, ...], within: int | None) -> tuple[Line, ...]:
    """The lines with what is expected of each lowered, so that together they make no more calls than there are."""
    expected, least = (sum(getattr(line.calls, name) for line in lines) for name in ("expected", "low"))
    if within is None or expected <= within or least > within:
        return lines
    share = (within - least) / (expected - least)
    wanted = [line.calls.low + (line.calls.expected - line.calls.low) * share for line in lines]
    whole = [int(calls) for calls in wanted]
    # The largest remainders get what rounding leaves, so that the table adds up.
    order = sorted(range(len(lines)), key=lambda at: wanted[at] - whole[at], reverse=True)
    for at in order[: within - sum(whole)]:
        whole[at] += 1
    return tuple(_lowered(line, calls) for line, calls in zip(lines, whole, strict=True))


def _lowered(line: Line, calls: int) -> Line:
    """A line of which only so many calls are expected; its bounds stay, for other lines may need less."""
    part = calls / line.calls.expected if line.calls.expected else 1.0

    def less(taken: Range) -> Range:
        return evolve(taken, expected=max(taken.low, taken.expected * part))

    return evolve(
        line,
        calls=evolve(line.calls, expected=calls),
        input_tokens=less(line.input_tokens),
        output_tokens=less(line.output_tokens),
        cost=None if line.cost is None else less(line.cost),
    )


def _in_all(lines: Sequence[tuple[Range, Range]], within: int | None) -> Range:
    """The sum of what lines take, each beside its calls; where all have only so many calls, the dearest come first."""
    found = _sum([taken for _, taken in lines])
    if within is None:
        return found
    expected, left, high = sum(calls.expected for calls, _ in lines), float(within), 0.0
    for calls, taken in sorted(lines, key=lambda line: -line[1].high / max(1.0, line[0].high)):
        paid = min(left, calls.high)
        left, high = left - paid, high + taken.high * paid / max(1.0, calls.high)
    share = min(1.0, within / expected) if expected else 1.0
    return Range(low=min(found.low, high), expected=min(found.expected * share, high), high=high)


def _sum(ranges: Sequence[Range]) -> Range:
    return sum(ranges, NONE)


def _line(part: Part, run: Planned, past: Sequence[PastRun], prices: Prices) -> Line:
    calls, counted = _calls(part, past)
    tokens_in, tokens_out, cached, measured = _tokens(part, run, past)
    price = prices.by_role.get(part.role)
    inputs, outputs = calls * tokens_in, calls * tokens_out
    return Line(
        kind=part.kind,
        role=part.role,
        calls=calls,
        input_tokens=inputs,
        output_tokens=outputs,
        cost=None if price is None else _cost(price, inputs, outputs, cached),
        basis=f"{counted}; {measured}",
    )


def _calls(part: Part, past: Sequence[PastRun]) -> tuple[Range, str]:
    """How many calls of a kind, and where the number is from."""
    if part.exact:
        return Range(low=part.low, expected=part.high, high=part.high), "the plan"
    rates = _rates(part.kind, past)
    if not rates:
        middle = (part.low + part.high) / 2
        return Range(low=part.low, expected=middle, high=part.high), "between the plan's bounds"
    expected = part.units * sum(rates) / len(rates)
    steps = sum(each.steps for each in past if each.complete)
    spread = max(_LEAST_SPREAD, _SPREAD / sqrt(max(1, steps)))
    low, high = part.units * min(rates) * (1 - spread), part.units * max(rates) * (1 + spread)
    bounded = Range(
        low=max(part.low, low),
        expected=max(part.low, expected),
        high=max(part.low, expected, min(part.high, high)),
    )
    return bounded, f"calls in proportion to {_counted(len(rates))}"


def _rates(kind: str, past: Sequence[PastRun]) -> list[float]:
    """Calls a unit of each complete run that had such units."""
    found = []
    for each in past:
        part = each.parts.get(kind)
        if each.complete and part is not None and part.units:
            found.append(each.calls.get(kind, Calls()).count / part.units)
    return found


def _tokens(part: Part, run: Planned, past: Sequence[PastRun]) -> tuple[Range, Range, float | None, str]:
    """Tokens in and out a call, the share of cached ones, and where the numbers are from."""
    for kinds in ((part.kind,), _ALIKE[part.role]):
        means = [mean for each in past if (mean := _mean([each.calls[kind] for kind in kinds if kind in each.calls]))]
        if means:
            ins, outs, cached = zip(*means, strict=True)
            which = "" if kinds == (part.kind,) else f" other calls of the {part.role} in"
            words = f"tokens measured in{which} {_counted(len(means))}"
            return _around(ins), _around(outs), sum(cached) / len(cached), words
    skill = len(run.started.skill.text) // _CHARACTERS_A_TOKEN
    if part.role == "judge":
        return _between(*_TO_JUDGE), _between(*_JUDGED), None, "tokens assumed"
    if part.role == "target":
        task, answer = _TASK, _ANSWER
    else:
        gradient = run.config.gradient
        shown = gradient.minibatch_size * gradient.max_trajectory_chars // _CHARACTERS_A_TOKEN
        task, answer = (_TASK[1] // 3, max(_TASK[1], shown)), _EPOCH_TEXT
    most = run.config.env.max_completion_tokens if part.role == "target" else run.config.optimizer.max_completion_tokens
    said = (min(answer[0], most), min(answer[1], most))
    return _between(skill + task[0], skill + task[1]), _between(*said), None, "tokens assumed"


_ALIKE: dict[Role, tuple[str, ...]] = {
    "target": ("baseline", "train", "gate", "comparison", "slow_gate", "final", "test"),
    "judge": ("judge",),
    "optimizer": ("analyst", "merge", "ranking", "slow_update", "meta_skill"),
}


def _mean(kinds: Sequence[Calls]) -> tuple[float, float, float] | None:
    """Tokens in and out a call, and the share of cached ones; None where nothing was reported."""
    reported = sum(calls.reported for calls in kinds)
    if not reported:
        return None
    inputs = sum(calls.input for calls in kinds)
    cached = sum(calls.cached for calls in kinds)
    return inputs / reported, sum(calls.output for calls in kinds) / reported, cached / inputs if inputs else 0.0


def _around(means: Sequence[float]) -> Range:
    """What was measured, with a little room; a skill grows, and another draw has other items."""
    return Range(low=min(means) * 0.9, expected=sum(means) / len(means), high=max(means) * 1.1)


def _between(low: float, high: float) -> Range:
    return Range(low=low, expected=(low + high) / 2, high=high)


def _cost(price: Price, inputs: Range, outputs: Range, cached: float | None) -> Range:
    def at(tokens_in: float, tokens_out: float) -> float:
        known = None if cached is None else round(tokens_in * cached)
        # Not known is taken as none cached: with None this would be the least that it can cost.
        amount = cost_of(price, input=round(tokens_in), output=round(tokens_out), cached=known or 0)
        return float(amount.amount)

    return Range(
        low=at(inputs.low, outputs.low),
        expected=at(inputs.expected, outputs.expected),
        high=at(inputs.high, outputs.high),
    )


def _time(parts: Sequence[Part], lines: Sequence[Line], past: Sequence[PastRun]) -> tuple[Range, str]:
    """Wall time: that of earlier runs, by how much more or fewer rounds of calls this one has."""
    here = {line.kind: line.calls for line in lines}
    scaled = []
    for each in past:
        rounds = sum(each.calls[kind].count / part.at_once for kind, part in each.parts.items() if kind in each.calls)
        if each.complete and rounds and each.seconds > 0:
            scaled.append((each.seconds / rounds, each))
    seconds_a_round = [pace for pace, _ in scaled]
    rounds_here = _sum(
        [
            Range(
                low=here[part.kind].low / part.at_once,
                expected=here[part.kind].expected / part.at_once,
                high=here[part.kind].high / part.at_once,
            )
            for part in parts
        ]
    )
    if seconds_a_round:
        return rounds_here * _around(seconds_a_round), f"the pace of {_counted(len(scaled))}"
    return rounds_here * _between(*_SECONDS), f"{_SECONDS[0]:g} to {_SECONDS[1]:g} seconds a call assumed"


def _counted(runs: int) -> str:
    return counted(runs, "earlier run")


def _pauses(run: Planned, lines: Sequence[Line], within: int | None) -> list[str]:
    """The limits of the budget that the run is expected to reach."""
    budget = run.config.budget
    costs = [line.cost.expected for line in lines if line.cost is not None]
    expected = {
        "max_calls": (budget.max_calls if within is None else None, sum(line.calls.expected for line in lines)),
        "max_tokens": (
            budget.max_tokens,
            sum(line.input_tokens.expected + line.output_tokens.expected for line in lines),
        ),
        "max_cost": (budget.max_cost, sum(costs)),
    }
    return [
        f"budget.{name} is {limit:,}, and about {number:,.4g} is expected: the run would pause on its way"
        for name, (limit, number) in expected.items()
        if limit is not None and number > limit
    ]


def _notes(run: Planned, past: Sequence[PastRun]) -> tuple[str, ...]:
    train, notes = run.config.train, []
    if not past:
        notes.append("no earlier run of these models and this data: tokens and time are assumptions, not measurements")
    elif not any(each.complete for each in past):
        notes.append("no earlier run of this set-up is complete: how many calls there are is between the plan's bounds")
    target = run.config.target_model
    if is_own_agent(target.backend):
        spent = f"its calls of {target.model} come on top" if target.gateway else "what it spends inside is not known"
        notes.append(f"the target is an agent of your own, of which each attempt is one call here: {spent}")
    if train.patience is not None or train.target_score is not None:
        notes.append("a stop rule may end the run earlier: this is for all its steps")
    if run.config.evaluation.eval_test and not run.started.splits.test:
        notes.append("there are no test items: nothing is tested at the end")
    return tuple(notes)
