"""Making a fork: a run of its own that begins with what another one has done, and may go on by other settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from attrs import frozen

from skillopt_es.config import RunConfig, any_overrides
from skillopt_es.engine.algorithms import algorithm_at, check_allowed, evolve, fold
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.errors import ConfigError, NotInRun
from skillopt_es.events.anchor import ANCHOR_FILE
from skillopt_es.events.catalog import Event, RunForked, skills_in
from skillopt_es.events.create import ForkPoint
from skillopt_es.events.errors import LogDamaged, RunExists
from skillopt_es.events.lock import LOCK_FILE
from skillopt_es.events.log import RunInfo
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.tail import TAIL_FILE
from skillopt_es.events.values import Setting, SkillTree, digest_of
from skillopt_es.events.verify import verify
from skillopt_es.events.writer import RunWriter
from skillopt_es.gate.forks import contradiction, gate_values
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.lookup import seq_of
from skillopt_es.runs.reading import whole_log
from skillopt_es.version import software_version


@frozen
class Fork:
    """A fork that was made, and the state in which it begins."""

    folder: Path
    opening: RunForked
    state: AnyState


def make_fork(
    parent: Path,
    seq: int,
    folder: Path,
    *,
    overrides: Sequence[str] = (),
    then: Sequence[Event] = (),
    now: Callable[[], datetime],
) -> Fork:
    """
    A fork of the run in `parent` after event `seq`, whole or not at all; nobody is asked anything yet.

    It stands beside its parent, because a run's relative paths are seen from its folder. The parent may be running.
    `then` are events that the fork has from its beginning, after that which says whose fork it is.
    """
    if (folder / LOG_FILE).exists():
        raise RunExists(f"there is already a run at {folder}", hint="`--name` gives the fork another name")
    shared, texts, info = _shared(parent, seq)
    state = _forkable(shared, parent, seq)
    before = config_of_run(state.started, parent, state.overrides)
    changed = any_overrides(overrides)
    config = config_of_run(state.started, parent, {**state.overrides, **changed})
    why = contradiction(state, before, config, algorithm_at(state).commands)
    if why:
        what = f"{', '.join(f'--set {key}' for key in changed)} cannot change after event {seq} of {parent.name}"
        raise ConfigError(f"{what}: {why}", hint=_hint(parent, seq, before, config))
    values = gate_values(state, texts, before.evaluation, config)
    made: list[RunForked] = []

    def opening(calls: int) -> Sequence[Event]:
        event = RunForked(
            software=software_version(),
            parent=parent.name,
            parent_id=info.run_id,
            seq=seq,
            inherited=calls,
            values=values,
            overrides=tuple(Setting(key, value) for key, value in changed.items()),
        )
        made.append(event)
        return (event, *then)

    run_id = digest_of(f"{folder.name} {now().isoformat()} {info.run_id} {seq}".encode())[:16]
    point = ForkPoint(parent, seq, opening)
    RunWriter.create(folder, run_id=run_id, name=folder.name, now=now, fork=point).close()
    _check_copy(parent, folder)
    return Fork(folder, made[0], fold((made[0], *then), state))


def _check_copy(parent: Path, folder: Path) -> None:
    """Removes a fork again that took over what `verify` rejects: no call is paid for on a damaged log."""
    report = verify(folder)
    if report.ok:
        return
    for name in (LOG_FILE, f"{LOG_FILE}-wal", f"{LOG_FILE}-shm", ANCHOR_FILE, TAIL_FILE, LOCK_FILE):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):  # other files may have been there before
        folder.rmdir()
    raise LogDamaged(f"{parent.name} is damaged, and so would the fork be: {report.problems[0]}")


def _shared(parent: Path, seq: int) -> tuple[AnyState | None, dict[str, SkillTree], RunInfo]:
    """What both runs have in common: the state, all texts by hash, and whose it is."""
    state: AnyState | None = None
    texts: dict[str, SkillTree] = {}
    with whole_log(parent, seq) as log:
        for recorded in log.read(until=seq):
            state = evolve(state, recorded.event)
            texts.update({skill.hash: skill for skill in skills_in(recorded.event)})
        return state, texts, log.run


def _forkable(state: AnyState | None, parent: Path, seq: int) -> AnyState:
    """The state of a run that has begun; raises NotInRun or ConfigError for what cannot go on another way."""
    if state is None:
        raise NotInRun(f"{parent.name} stopped before it began: there is nothing to fork")
    check_allowed("fork", state.started, parent.name)
    if state.completed is not None:
        raise ConfigError(
            f"{parent.name} is complete at event {seq}: nothing is left to do differently",
            hint=f"fork it earlier, such as at --until step {max(1, state.steps_done - 1)}",
        )
    return state


def _hint(parent: Path, seq: int, old: RunConfig, new: RunConfig) -> str:
    """What to do instead: the last moment before `seq` at which the change is allowed, if there is one."""
    state: AnyState | None = None
    allowed, done = list[int](), 0
    with whole_log(parent, seq) as log:
        for recorded in log.read(until=seq):
            state = evolve(state, recorded.event)
            commands = algorithm_at(state).commands
            if not commands.under_way(state) and not contradiction(state, old, new, commands):
                allowed.append(recorded.seq)
                done = state.steps_done
        if not allowed:
            return "a new run can change it"
        at_step = done and seq_of(log, ("step", done)) in allowed
    return f"`--until {f'step {done}' if at_step else f'seq {allowed[-1]}'}` is the last moment before"
