"""The plan of a search in numbers: for each kind of call how many there can be at least and at most."""

from __future__ import annotations

from math import ceil

from skillopt_es.algorithms.search.budget import calls_of_one, first_tries, gate_items, most_tries
from skillopt_es.algorithms.search.sample import first_items
from skillopt_es.engine.estimates import Part, Planned, kind_of_call, most_for_certificate, most_turns, rollouts_in
from skillopt_es.events.places import Place


def plan_of(run: Planned, steps: int, epochs: int) -> tuple[Part, ...]:
    """The parts of at most so many steps; with a budget of calls, as many as it pays for."""
    config = run.config
    validation, tests = len(first_items(run.started, config)), len(run.tested_items)
    size = min(config.train.batch_size, len(run.started.splits.train))
    questions = ceil(size / config.gradient.minibatch_size)
    step = calls_of_one(config) * (size + first_tries(size) + gate_items(config, validation)) + questions
    most = config.budget.max_calls
    if most is not None:
        steps = ceil(max(0, most - calls_of_one(config) * validation) / step)
    counts = {
        "baseline": (validation, validation, validation),
        "train": (size * steps, 0, size * steps),
        "screen": (size * steps, 0, most_tries(size) * steps),
        "gate": (validation * steps, 0, gate_items(config, validation) * steps),
        "certificate": (most_for_certificate(run), 0, most_for_certificate(run)),
        "test": (tests, 0 if most is not None else tests, 2 * tests),
    }
    parts = [*rollouts_in(run, counts, most_turns(run))]
    if steps:
        # Each round may ask about all that failed, and a step about what each edit of it was too narrow for.
        most_asked = (questions * config.search.rounds + size) * steps
        most_asked = most_asked if most is None else min(most_asked, most)
        asked = Part(kind="analyst", role="optimizer", units=steps, low=0, high=most_asked, at_once=questions)
        parts.insert(1, asked)
    return tuple(parts)


def kind_of(slot: str, stage: str) -> str:
    """The kind of a recorded call."""
    if stage != "rollout":
        return stage
    if Place(slot).stage == "screen":
        return "screen"
    return "train" if Place(slot).batch is not None else kind_of_call(slot, stage)
