"""
What a model makes of candidate tasks, as an algorithm: nothing is trained, and nothing is ever due by itself.

Its log holds the calls, so that each is paid for once, counted in a budget, and can be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from skillopt_es.engine.algorithm import Algorithm, Commands, Refusal, Stands, Words
from skillopt_es.engine.differences import CheckReport
from skillopt_es.events.catalog import Recorded, RunStarted

_NO_TRAINING = Refusal("has the calls of a harvest, and is no training run")


def check_harvest(started: RunStarted, others: Iterator[Recorded], folder: object) -> CheckReport:
    """Nothing is decided in such a log."""
    return CheckReport(events=1 + sum(1 for _ in others), decisions=0, rollouts=0, status="harvest")


HARVEST: Algorithm[None] = Algorithm(
    name="harvest",
    initial=lambda started: None,
    evolve={},
    next_work=lambda state, run: None,
    decisions={},
    words=Words(stands=lambda state: Stands(position="the calls of a harvest, no training run")),
    commands=Commands(
        under_way=lambda state: "",
        check=check_harvest,
        refuses={
            "start": Refusal("has no tasks to train on", hint="`skillopt-es harvest` makes some"),
            "resume": Refusal(_NO_TRAINING.why, hint="`skillopt-es harvest propose` continues it"),
            **dict.fromkeys(
                ("fork", "score", "calibrate", "regate", "rescore", "erase", "compare", "steps"), _NO_TRAINING
            ),
        },
    ),
)
