"""
Scoring any skill on any split, outside a training run.

An evaluation has a folder with a log of its own. Its calls are journaled under `eval/<split>/item/<item>`, so one that
was interrupted goes on where it stopped, and a score that is recorded stays: nobody is asked again, not even for what
could not be measured. Answers are graded anew each time (a grader may have been fixed since); only results that the log
does not have yet are recorded, as another pass. A new draw of everything has slots of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from attrs import frozen

from skillopt_es.algorithms.evaluation.algorithm import EVALUATION
from skillopt_es.algorithms.evaluation.scoring import Progress, Scoring, SplitResult, next_draw, standing_rows
from skillopt_es.config import RoleConfig, RunConfig
from skillopt_es.config.places import recorded_place
from skillopt_es.engine.algorithm import Deed
from skillopt_es.engine.algorithms import check_allowed, fold_log
from skillopt_es.engine.algorithms import evolve as evolved
from skillopt_es.engine.run_config import config_of_run, validation_items
from skillopt_es.engine.work import Evaluation
from skillopt_es.errors import AwaitingAnswers, DataError
from skillopt_es.events.catalog import Event, RunResumed, RunStarted, SealedTestOpened
from skillopt_es.events.errors import RunNotFound
from skillopt_es.events.places import evaluated
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.values import Role, SkillTree, Split, digest_of
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import Item, Splits
from skillopt_es.projections.seal import LOOK_TYPES, Looks, looks_in
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.reading import Reading
from skillopt_es.sessions.accounts import has_budget, lost_calls
from skillopt_es.sessions.seal import Look, Seal, opened
from skillopt_es.sessions.session import closing, open_or_create, read_state, split_ids
from skillopt_es.sessions.wiring import OpenWorld, Session, Stage, open_data, open_work, open_world
from skillopt_es.version import software_version

# Keys under `env:` that change neither what is asked nor how it is graded.
_NOT_ASKED = {"workers", "skill_init", "seal_test"}

ASKED_ROLES: tuple[Role, ...] = ("target",)
"""Who is asked: scoring needs no optimizer, nor its name or key."""

OWN_BUDGET = tuple(f"budget.{cap}=null" for cap in ("max_minutes", "max_calls", "max_tokens", "max_cost"))
"""A run's budget was for its training: what evaluates its skills has none, unless one is given."""


@frozen(kw_only=True)
class ScorableRun:
    """A run whose skills can be scored, with the settings that resuming it has changed: an endpoint may have moved."""

    folder: Path
    config: RunConfig
    state: AnyState

    @property
    def validation_items(self) -> tuple[str, ...]:
        """The validation items that a skill's score is of."""
        return validation_items(self.state.started, self.config)

    def skill(self, which: str) -> SkillTree:
        """The skill that is best, current, certified or initial."""
        return self.state.started.skill if which == "initial" else self.state.standings[which].skill


def scorable_run(folder: Path, deed: Deed = "score") -> ScorableRun:
    """The run in a folder; raises RunNotFound for one that has not begun, ConfigError where its algorithm refuses."""
    state = read_state(folder)
    if state is None:
        raise RunNotFound(f"{folder.name} stopped before it began, so it has no skill to score")
    check_allowed(deed, state.started, folder.name)
    return ScorableRun(folder=folder, config=config_of_run(state.started, folder, state.overrides), state=state)


@frozen(kw_only=True)
class EvaluationRequest:
    """
    Which skill to score on what, and where that is recorded.

    No `splits` means every one that has items, but for those with sealed items where `leave_sealed` says so. `limit`
    takes the first items of each, 0 takes all. Each of several `repeats` asks every item again, under slots of its own;
    `again` is one more repeat than there are.
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
    repeats: int = 1
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
    async with open_data(request.config, session.world) as data:
        left_out = _sealed_splits(data.splits, request)
        evaluations = _evaluations(data.splits, request, left_out)
        folder = request.directory / evaluation_name(request, data.splits.digests)
        async with open_world(data, request.skill, folder, session, ASKED_ROLES) as world:
            look = await _look(request, data.splits, evaluations, folder, session)
            async with closing(open_or_create(folder, session)) as writer:
                stage, meant = _stage(request, world, writer, evaluations, look)
                try:
                    async with open_work(writer, stage, world, session) as work:
                        results = await Scoring(stage.config, work).results(meant, progress)
                except AwaitingAnswers as waiting:
                    waiting.hint = f"`skillopt-es handoff list {folder}` shows them; then repeat this command"
                    raise
    return Evaluated(folder, tuple(results), look, left_out)


async def _look(
    request: EvaluationRequest, splits: Splits, evaluations: Sequence[Evaluation], folder: Path, session: Session
) -> SealedTestOpened | None:
    """The look at sealed items that this evaluation is, once it is recorded where it has to be; None for none."""
    asked = (item for evaluation in evaluations for item in evaluation.items)
    if request.seal is None or not request.seal.touched([item.id for item in splits.test], asked):
        return None
    own = Looks()
    if (folder / LOG_FILE).exists():
        with Reading.of(folder) as reading:
            own = looks_in(recorded.event for recorded in reading.read(types=LOOK_TYPES))
            if not session.accept_loss:
                reading.check()
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
        "limit_chosen": request.config.limit_chosen,  # it decides what a reply that is cut there counts as
    }
    judge = request.config.judge_model
    if judge.model:
        asked["judge"] = [judge.backend, judge.model, judge.base_url.strip().rstrip("/"), judge.temperature]
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
        for draw in range(1, request.repeats + 1)
    ]


def _evaluation(split: Split, draw: int, ids: Sequence[str], request: EvaluationRequest) -> Evaluation:
    first = tuple(ids[: request.limit] if request.limit else ids)
    seed = request.config.train.seed
    place = evaluated(split).drawn(draw)
    return Evaluation(place=place, purpose="test", split=split, items=first, skill=request.skill, seed=seed)


def _started(request: EvaluationRequest, world: OpenWorld, folder: Path) -> RunStarted:
    return RunStarted(
        software=software_version(),
        config=request.config.resolved,
        folder=recorded_place(request.config.folder, folder),
        skill=request.skill,
        splits=split_ids(world.data.splits),
        steps_per_epoch=0,
        total_steps=0,
        notes=("an evaluation of one skill, not a training run", *request.notes, *world.notes),
        algorithm=EVALUATION.name,
        limit_chosen=request.config.limit_chosen,
    )


def _stage(
    request: EvaluationRequest,
    world: OpenWorld,
    writer: RunWriter,
    evaluations: Sequence[Evaluation],
    look: SealedTestOpened | None,
) -> tuple[Stage, list[Evaluation]]:
    """Where the evaluation begins or continues its log, and which draws are meant."""
    folder = writer.log.path.parent
    before, head = fold_log(writer.log.read())
    state = evolved(None, _started(request, world, folder)) if before is None else before
    meant = [next_draw(state, writer.journal, each) if request.again else each for each in evaluations]
    lost = lost_calls(folder, writer.log, writer.journal)
    # Where every score stands nobody is asked, so a budget that is used up does not matter.
    pays = has_budget(request.config) and not all(standing_rows(state, request.config, each) for each in meant)
    opening: list[tuple[Event, AnyState]] = []
    if before is None:
        opening.append((state.started, state))
    elif state.status == "paused" or lost or pays or writer.lost:
        resumed = RunResumed(software=software_version(), lost=lost, accepted_loss=writer.lost)
        state = evolved(state, resumed)
        opening.append((resumed, state))
    if look is not None and look not in state.looks.opened:
        state = evolved(state, look)
        opening.append((look, state))
    # What was asked in another way (a changed prompt) is asked again; what was asked the same way is not.
    stage = Stage(
        config=request.config,
        state=state,
        head=head,
        opening=opening,
        lost=lost,
        pays=pays,
        repeats=False,
        ask_again=True,
    )
    return stage, meant
