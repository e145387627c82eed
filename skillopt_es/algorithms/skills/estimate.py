"""The plan of a folder's training in numbers: for each kind of call how many there can be at least and at most."""

from __future__ import annotations

from skillopt_es.engine.estimates import Part, Planned, kind_of_call, most_draws, most_turns, rollouts_in
from skillopt_es.events.places import Place
from skillopt_es.skill.tools import MOST_ROUNDS


def plan_of(run: Planned, steps: int, epochs: int) -> tuple[Part, ...]:
    """The parts of so many steps; an attempt asks once and may open skills before it answers."""
    config = run.config
    validation, tests, items = len(run.validation_items), len(run.tested_items), len(run.started.splits.train)
    triggers = 3 * config.skills.triggers if config.evaluation.use_gate else 0
    counts = {
        "baseline": (validation, validation, validation),
        "train": (items * epochs, 0, items * epochs),
        # What is refused as a whole may be tried in part, and a part of it judged once more (`parts.py`).
        "gate": (validation * steps, 0, 2 * (validation * most_draws(config) + triggers) * steps),
        "test": (tests, tests, 3 * tests),
    }
    asked = items * epochs // max(1, config.skills.reflection_trigger_size)
    manages = Part(kind="meta_skill", role="optimizer", units=epochs, low=0, high=epochs)
    return (
        *rollouts_in(run, counts, most_turns(run) * (1 + MOST_ROUNDS)),
        Part(kind="analyst", role="optimizer", units=steps, low=0, high=asked),
        *([manages] if config.skills.manage else []),
    )


def kind_of(slot: str, stage: str) -> str:
    """The kind of a recorded call."""
    return "train" if stage == "rollout" and Place(slot).batch is not None else kind_of_call(slot, stage)
