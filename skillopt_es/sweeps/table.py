"""The one table of a sweep: settings by score, paired across seeds, with what they used. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from attrs import frozen

from skillopt_es.projections.seeds import Against, Mean, against, mean_score
from skillopt_es.sweeps.facts import RunEnded, SettingDropped, SweepState


@frozen(kw_only=True)
class Row:
    """
    One setting: its runs, its score over seeds, the same against the leading one, and what it used.

    Tokens are None where no call told them, a cost where there is no price; `whole` is False where either is a lower
    bound, for a run that did not tell.
    """

    setting: str
    planned: int
    done: int
    score: Mean | None
    against: Against | None
    leads: bool
    dropped: SettingDropped | None
    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cost: Decimal | None
    currency: str
    whole: bool
    seconds: float


@frozen(kw_only=True)
class Table:
    """Settings by score, the best first; those without a score come last, in the order of the plan."""

    scored_by: str
    rows: tuple[Row, ...]
    seeds: int


def table_of(state: SweepState) -> Table:
    """The table as the sweep's log has it."""
    scores = state.scores()
    means = {setting: mean_score(list(own.values())) for setting, own in scores.items()}
    known = {setting: mean for setting, mean in means.items() if mean is not None}
    # Of two with one mean, the one with more seeds leads, and then the first of the plan.
    order = sorted(known, key=lambda setting: (-known[setting].value, -known[setting].seeds))
    compared = against({setting: scores[setting] for setting in order}, order[0]) if order else {}
    rows = [
        _row(state, setting, means[setting], compared.get(setting), leads=setting in order[:1])
        for setting in (*order, *(setting for setting in state.settings if setting not in known))
    ]
    return Table(scored_by=state.scored_by, rows=tuple(rows), seeds=len({run.seed for run in state.runs}))


def _row(state: SweepState, setting: str, score: Mean | None, compared: Against | None, *, leads: bool) -> Row:
    own = [run.name for run in state.runs if run.setting == setting]
    ended = [state.ended[name] for name in own if state.done(name)]
    costs = [each.cost for each in ended]
    return Row(
        setting=setting,
        planned=len(own),
        done=len(ended),
        score=score,
        against=compared,
        leads=leads,
        dropped=state.dropped.get(setting),
        calls=sum(each.calls for each in ended),
        input_tokens=_sum([each.input_tokens for each in ended]),
        output_tokens=_sum([each.output_tokens for each in ended]),
        cost=sum((Decimal(cost) for cost in costs if cost is not None), Decimal(0)) if any(costs) else None,
        currency=next((each.currency for each in ended if each.currency), ""),
        whole=all(_is_whole(each) for each in ended),
        seconds=sum(each.seconds for each in ended if each.seconds is not None),
    )


def _sum(numbers: Sequence[int | None]) -> int | None:
    told = [number for number in numbers if number is not None]
    return sum(told) if told else None


def _is_whole(ended: RunEnded) -> bool:
    return ended.cost_is_whole and ended.input_tokens is not None and ended.output_tokens is not None
