"""
Scoring any skill on any split, outside a training run.

An evaluation has a folder with a log of its own. Its calls are journaled under `eval/<split>/item/<item>`, so one that
was interrupted goes on where it stopped, and a score that is recorded stays: nobody is asked again, not even for what
could not be measured. Answers are graded anew each time (a grader may have been fixed since); only results that the log
does not have yet are recorded, as another pass. A new draw of everything has slots of its own.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

from attrs import frozen

from skillopt_es.config import RoleConfig, RunConfig
from skillopt_es.config.places import recorded_place
from skillopt_es.engine.calls import LiveCalls
from skillopt_es.engine.evidence import Evidence
from skillopt_es.engine.fold import fold_log
from skillopt_es.engine.loop import Trainer
from skillopt_es.engine.perform import Ports
from skillopt_es.engine.purse import Purse
from skillopt_es.engine.rollout import RolloutPorts
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.tasks import Evaluation
from skillopt_es.errors import AwaitingAnswers, DataError
from skillopt_es.events.catalog import RunResumed, RunStarted, SealedTestOpened
from skillopt_es.events.log import EventLog
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.values import LostCall, SkillTree, Split, digest_of
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import ChatModel, Environment, Item, Splits
from skillopt_es.projections.seal import LOOK_TYPES, Looks, looks_in
from skillopt_es.sessions.accounts import check_bounded, has_budget, open_purse, spent_before
from skillopt_es.sessions.handoff import Desk
from skillopt_es.sessions.hiding import check_walls, hide_answers
from skillopt_es.sessions.matrix import check_target
from skillopt_es.sessions.recorded_scores import drawn_at, next_draw, standing_rows
from skillopt_es.sessions.scoring import Progress, Scoring, SplitResult
from skillopt_es.sessions.seal import Look, Seal, opened
from skillopt_es.sessions.session import Session
from skillopt_es.sessions.start import split_ids
from skillopt_es.sessions.started_calls import StartedCalls, lost_calls
from skillopt_es.version import software_version

# Keys under `env:` that change neither what is asked nor how it is graded.
_NOT_ASKED = {"workers", "skill_init", "seal_test"}

OWN_BUDGET = tuple(f"budget.{cap}=null" for cap in ("max_minutes", "max_calls", "max_tokens", "max_cost"))
"""A run's budget was for its training: what evaluates its skills has none, unless one is given."""


@frozen(kw_only=True)
class EvaluationRequest:
    """
    Which skill to score on what, and where that is recorded.

    No `splits` means every one that has items, but for those with sealed items where `leave_sealed` says so. `limit`
    takes the first items of each, 0 takes all. Each of several `draws` asks every item again, under slots of its own;
    `again` is one more draw than there are.
    """

    config: RunConfig
    skill: SkillTree
    notes: tuple[str, ...] = ()
    splits: tuple[Split, ...]
    leave_sealed: bool = False
    limit: int
    directory: Path
    stem: str
    seal: Seal | None = None
    draws: int = 1
    again: bool = False


@frozen
class Evaluated:
    """
    All results, the folder whose log holds them, and which look at sealed test items this was, if it was one.

    `left_out` are the splits that nobody asked for by name and that hold sealed items.
    """

    folder: Path
    results: tuple[SplitResult, ...]
    look: SealedTestOpened | None = None
    left_out: tuple[Split, ...] = ()


async def evaluate(request: EvaluationRequest, session: Session, progress: Progress) -> Evaluated:
    """The skill's results on each split that was asked for; what was answered is recorded, also when this raises."""
    async with AsyncExitStack() as stack:
        environment = session.world.environment(request.config)
        stack.push_async_callback(environment.aclose)
        splits = environment.load()
        left_out = _sealed_splits(splits, request)
        evaluations = _evaluations(splits, request, left_out)
        # Only the target: scoring needs no optimizer, nor its key.
        model = session.world.target(request.config)
        stack.push_async_callback(model.aclose)
        check_target(model, environment)
        check_bounded(request.config, {"target": model})
        folder = request.directory / evaluation_name(request, splits.digests)
        check_walls(environment, request.config, folder)
        noted = await hide_answers({"target": model}, request.config, folder, warn=session.warn)
        look = await _look(request, splits, evaluations, folder, session)
        writer = _open_writer(folder, session)
        stack.push_async_callback(asyncio.to_thread, writer.close)
        started = StartedCalls(folder)
        held = _Opened(environment, model, writer, folder, started, noted)
        stack.callback(started.close)
        work, evaluations = await _open_scoring(request, session, splits, held, evaluations, look)
        try:
            return Evaluated(folder, tuple(await work.results(evaluations, progress)), look, left_out)
        except AwaitingAnswers as waiting:
            waiting.hint = f"`skillopt-es handoff list {folder}` shows them; then repeat this command"
            raise


async def _look(
    request: EvaluationRequest, splits: Splits, evaluations: Sequence[Evaluation], folder: Path, session: Session
) -> SealedTestOpened | None:
    """The look at sealed items that this evaluation is, once it is recorded where it has to be; None for none."""
    asked = (item for evaluation in evaluations for item in evaluation.items)
    if request.seal is None or not request.seal.touched([item.id for item in splits.test], asked):
        return None
    own = Looks()
    if (folder / LOG_FILE).exists():
        with EventLog.open(folder) as log:
            own = looks_in(recorded.event for recorded in log.read(types=LOOK_TYPES))
    return await opened(request.seal, Look(folder.name, request.skill.hash, session.now), own)


def evaluation_name(request: EvaluationRequest, digests: Mapping[str, str]) -> str:
    """The folder's name: the same for all that asks the same model the same questions about the same skill."""
    target = request.config.target_model
    env = cast("Mapping[str, object]", request.config.resolved["env"])
    asked = {
        "target": [target.backend, target.model, target.base_url.strip().rstrip("/"), target.temperature],
        "more": [target.reasoning_effort, dict(target.extra_body), *_dialect(target)],
        "env": {key: value for key, value in env.items() if key not in _NOT_ASKED},
        "data": dict(digests),
        "seed": request.config.train.seed,
    }
    digest = digest_of(json.dumps(asked, sort_keys=True, default=str).encode())
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", request.stem).strip("-._") or "eval"
    return f"{stem[:40]}-{digest[:8]}-{request.skill.hash[:8]}"


def _dialect(target: RoleConfig) -> list[str]:
    """The settings beyond model and address that make another question of the same text; unset ones are none."""
    given = (target.thinking, target.protocol, target.api_version, target.region)
    return [value for value in given if value not in {"", "auto", "server_default"}]


def _items(splits: Splits) -> Mapping[Split, Sequence[Item]]:
    return {"train": splits.train, "val": splits.val, "test": splits.test}


def _sealed_splits(splits: Splits, request: EvaluationRequest) -> tuple[Split, ...]:
    """The splits that are left out because they hold sealed items, wherever other settings have put those."""
    seal = request.seal
    if seal is None or seal.opens or request.splits or not request.leave_sealed:
        return ()
    test = [item.id for item in splits.test]
    return tuple(split for split, items in _items(splits).items() if seal.touched(test, (item.id for item in items)))


def _evaluations(splits: Splits, request: EvaluationRequest, left_out: Sequence[Split]) -> list[Evaluation]:
    items = _items(splits)
    for split in request.splits:
        if not items[split]:
            raise DataError(f"the {split} split is empty: there is nothing to score", hint="choose another --split")
    chosen = request.splits or tuple(split for split in items if items[split] and split not in left_out)
    if not chosen:
        raise DataError("every split holds sealed items (env.seal_test)", hint="`--open-test` looks at them")
    return [
        _evaluation(split, draw, [item.id for item in items[split]], request)
        for split in chosen
        for draw in range(1, request.draws + 1)
    ]


def _evaluation(split: Split, draw: int, ids: Sequence[str], request: EvaluationRequest) -> Evaluation:
    first = tuple(ids[: request.limit] if request.limit else ids)
    seed = request.config.train.seed
    place = drawn_at(f"eval/{split}", draw)
    return Evaluation(place=place, purpose="test", split=split, items=first, skill=request.skill, seed=seed)


def _started(request: EvaluationRequest, splits: Splits, held: _Opened) -> RunStarted:
    return RunStarted(
        software=software_version(),
        config=request.config.resolved,
        folder=recorded_place(request.config.folder, held.folder),
        skill=request.skill,
        splits=split_ids(splits),
        steps_per_epoch=0,
        total_steps=0,
        notes=("an evaluation of one skill, not a training run", *request.notes, *held.noted),
    )


def _open_writer(folder: Path, session: Session) -> RunWriter:
    if (folder / LOG_FILE).exists():
        return RunWriter.open(folder, now=session.now, accept_loss=session.accept_loss)
    run_id = digest_of(f"{folder.name} {session.now().isoformat()}".encode())[:16]
    return RunWriter.create(folder, run_id=run_id, name=folder.name, now=session.now)


@frozen
class _Opened:
    """What an evaluation holds open."""

    environment: Environment
    model: ChatModel
    writer: RunWriter
    folder: Path
    started: StartedCalls
    noted: tuple[str, ...]


async def _open_scoring(
    request: EvaluationRequest,
    session: Session,
    splits: Splits,
    held: _Opened,
    evaluations: Sequence[Evaluation],
    look: SealedTestOpened | None,
) -> tuple[Scoring, list[Evaluation]]:
    """The evaluation's log, begun or gone on with, and which draws are meant."""
    writer = held.writer
    state, head = fold_log(writer.log.read())
    run = RunData(config=request.config, started=state.started or _started(request, splits, held))
    meant = [next_draw(state, writer.journal, each) if request.again else each for each in evaluations]
    lost = lost_calls(held.folder, writer.log, writer.journal)
    pays = has_budget(run.config) and not all(standing_rows(state, run, each) for each in meant)
    purse = _purse(run, held, lost, session) if pays else None

    def stopping() -> bool:
        return session.stopping() or bool(purse is not None and purse.reached)

    desk = Desk(held.folder)
    desk.clear()
    # What was asked in another way (a changed prompt) is asked again; what was asked the same way is not.
    calls = LiveCalls(
        {"target": held.model},
        writer.journal,
        writer,
        writer.log,
        workers={"target": request.config.env.workers},
        ask_again=True,
        in_flight=session.in_flight,
        stopping=stopping,
        leave=desk.leave,
        purse=purse,
    )
    executor = session.world.executor(stopping)
    items = {item.id: item for split in (splits.train, splits.val, splits.test) for item in split}
    rollouts = RolloutPorts(
        environment=held.environment, items=items, executor=executor, calls=calls, untrusted=splits.untrusted
    )
    trainer = Trainer(
        log=writer,
        head=head,
        state=state,
        run=run,
        ports=Ports(calls=calls, evidence=Evidence(writer.log, writer.journal), executor=executor, rollouts=rollouts),
        observers=session.observers,
        stopping=session.stopping,
    )
    if state.started is None:
        await trainer.append([run.started])
    elif state.status == "paused" or lost or purse is not None or writer.lost:
        await trainer.append([RunResumed(software=software_version(), lost=lost, accepted_loss=writer.lost)])
    if look is not None and look not in trainer.state.looks.opened:
        await trainer.append([look])
    await trainer.settled()  # whatever is paid for belongs to an evaluation that can be gone on with
    if purse is not None:
        held.started.open(writer.log, writer.journal)
    return Scoring(run, trainer, rollouts, writer, lambda: "" if purse is None else purse.reached), meant


def _purse(run: RunData, held: _Opened, lost: tuple[LostCall, ...], session: Session) -> Purse:
    """What the budget leaves after the sessions before; it holds for all that this evaluation has ever asked."""
    log, journal = held.writer.log, held.writer.journal
    before = spent_before(run.config, log, journal, lost)
    return open_purse(run.config, before, clock=session.clock, stopping=session.stopping, note=held.started.note)
