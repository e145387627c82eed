"""An evaluation as the original's evaluation command leaves it: all results in one folder, with their means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from skillopt_es.engine.fold import fold
from skillopt_es.engine.scores import mean_score
from skillopt_es.errors import NotInRun
from skillopt_es.events.catalog import RunStarted, SkillScored
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import Place
from skillopt_es.events.values import Split
from skillopt_es.interchange.layout import EVALUATION
from skillopt_es.interchange.rollout_files import File, Rollouts, dumped
from skillopt_es.projections.state import AnyState

_SPLITS: Mapping[Split, str] = {"train": "train", "val": "valid_seen", "test": "valid_unseen"}


def evaluation_files(log: EventLog, out: Path, rollouts: Rollouts) -> Iterator[File]:
    """The files of every split's score, which is that of its first draw; raises NotInRun where there is none yet."""
    state = fold(recorded.event for recorded in log.read())
    assert state.started is not None
    scored = _standing(state)
    if not scored:
        raise NotInRun(f"{log.run.name} has no score to export", hint="the same `skillopt-es eval` goes on with it")
    rows = [row for each in scored.values() for row in state.rollouts[each.place].values()]
    skill = Path("skills") / state.started.skill.main
    score = mean_score([row.outcome for row in rows])
    yield from rollouts.files("", rows)
    yield from _skill(state.started)
    summary = {
        "skill": str(out / skill),
        "split": "all" if len(scored) > 1 else _SPLITS[next(iter(scored))],
        "n_items": score.measured,
        "hard": score.hard,
        "soft": score.soft,
    }
    yield EVALUATION, dumped({**summary})


def _skill(started: RunStarted) -> Iterator[File]:
    for path, text in started.skill.files.items():
        yield f"skills/{path}", text


def _standing(state: AnyState) -> dict[Split, SkillScored]:
    """Each split's newest score of its first draw, in the order of the splits."""
    first = {each.split: each for each in state.scored.values() if Place(each.place).draw == 1}
    return {split: first[split] for split in _SPLITS if split in first}
