"""Training on: a new run that begins with a run's best skill, and with what its optimizer had learned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import evolve, frozen

from skillopt_es.config import RunConfig, any_overrides
from skillopt_es.engine.algorithm import HandsOn
from skillopt_es.engine.algorithms import check_allowed, fold_log
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.values import Learned, SkillTree
from skillopt_es.runs.reading import whole_log


@frozen(kw_only=True)
class Before:
    """A run that is continued: its config as it is to be now, its best skill, and what it hands on."""

    config: RunConfig
    skill: SkillTree
    learned: Learned
    started: RunStarted


def read_before(folder: Path, overrides: Sequence[str]) -> Before:
    """What there is to continue from; raises ConfigError where nothing was measured yet, or it cannot be trained on."""
    with whole_log(folder) as log:
        state, seq = fold_log(log.read())
        run_id = log.run.run_id
    if state is None:
        raise ConfigError(
            f"{folder.name} has no best skill yet", hint=f"`skillopt-es resume {folder.name}` goes on with it"
        )
    started = state.started
    check_allowed("resume", started, folder.name)
    changed = {**state.overrides, **any_overrides(overrides)}
    learned = Learned(run=folder.name, run_id=run_id, seq=seq)
    if isinstance(state.algorithm, HandsOn):
        learned = state.algorithm.hands_on(learned)
    config = config_of_run(started, folder, changed)
    chosen = started.limit_chosen or "env.max_completion_tokens" in changed
    return Before(config=evolve(config, limit_chosen=chosen), skill=state.best.skill, learned=learned, started=started)


def note_of(before: Before) -> str:
    """What the new run says of where it comes from."""
    learned = before.learned
    handed = [f"{len(learned.tried)} tries of its last epoch"] if learned.tried else []
    handed += ["the optimizer's notes"] if learned.meta_skill else []
    with_it = f", with {' and '.join(handed)}" if handed else ""
    return f"continues {learned.run} from its best skill (event {learned.seq}){with_it}"
