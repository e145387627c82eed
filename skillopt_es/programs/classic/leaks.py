"""The leak guard of a decision: over the items whose trajectories the optimizer was shown for it."""

from __future__ import annotations

from collections.abc import Iterable

from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.trajectories import RecordedTexts, unpacked
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.values import SkillTree
from skillopt_es.programs.classic.state import ClassicState
from skillopt_es.skill.leaks import LeakGuard, Shown

_ITEMS_OWN = ("user", "tool", "feedback")  # what the agent said is its own, and the system prompt is everybody's


def guard_of_step(state: ClassicState, run: RunData, evidence: RecordedTexts) -> LeakGuard:
    """Over all items that the open step has tried."""
    assert state.program.step is not None
    assert state.program.step.groups is not None
    assert state.current is not None
    rows = [state.rollouts[group.place][item] for group in state.program.step.groups for item in group.items]
    return guard(rows, state.current.skill, run, evidence)


def guard(rows: Iterable[RolloutCompleted], skill: SkillTree, run: RunData, evidence: RecordedTexts) -> LeakGuard:
    """Over the items of these rollouts, for changes of this skill."""
    span = run.config.optimizer.leak_span
    shown: dict[str, Shown] = {}
    for row in rows if span else ():
        if row.trajectory:
            trajectory = unpacked(row, evidence)
            text = "\n".join(text for kind, text in trajectory.records if kind in _ITEMS_OWN)
            before = shown.get(row.item)
            whole = text if before is None else f"{before.text}\n{text}"
            shown[row.item] = Shown(item=row.item, question=trajectory.task, answers=trajectory.answers, text=whole)
    return LeakGuard(shown.values(), known="\n".join(skill.files.values()), span=span)
