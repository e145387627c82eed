"""The first event of a run: config, data and skill, checked together before anything is paid for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from skillopt_es.config import RunConfig
from skillopt_es.config.places import recorded_place
from skillopt_es.counting import counted
from skillopt_es.engine.programs import program_named
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.values import SplitIds
from skillopt_es.gate.draws import too_little
from skillopt_es.ports import Splits
from skillopt_es.prompts import LATEST
from skillopt_es.sessions.skills import first_skill
from skillopt_es.version import software_version


def run_started(config: RunConfig, splits: Splits, folder: Path, *, guide: str = "") -> RunStarted:
    """What a new run in `folder` is to do; raises DataError or ConfigError for what cannot be trained."""
    for why in refusals(config, splits):
        raise why
    program = program_named(config.train.program)
    skill, notes = first_skill(config, folder=program.trains_folder)
    steps_per_epoch, total_steps = program.steps(config.train, len(splits.train))
    return RunStarted(
        software=software_version(),
        config=config.resolved,
        folder=recorded_place(config.folder, folder),
        skill=skill,
        splits=split_ids(splits),
        steps_per_epoch=steps_per_epoch,
        total_steps=total_steps,
        notes=(*notes, *splits.notes, *shared_notes(splits), *size_notes(config, len(splits.train))),
        guide=guide,
        program=program.name,
        prompts=LATEST,
    )


def refusals(config: RunConfig, splits: Splits) -> Iterator[SkillOptError]:
    """Why a run would not begin with these items, one reason after another; a run is refused for the first."""
    empty = [name for name, items in (("train", splits.train), ("validation", splits.val)) if not items]
    for name in empty:
        yield DataError(f"the {name} split is empty", hint="a run needs training and validation items")
    yield from _what_splits_share(config, _shared(splits))
    if empty:
        return  # the rest is about how many there are
    yield from _no_way_to_train(config)
    yield from _another_size(config, len(splits.train))
    yield from _too_few_to_judge(config, len(splits.val))
    yield from _nothing_to_trust(config)
    yield from _answers_that_differ(config)


def _no_way_to_train(config: RunConfig) -> Iterator[ConfigError]:
    """The program is not installed, or its runs begin in another way."""
    place, name = config.place("train.program"), config.train.program
    try:
        refusal = program_named(name, place).refuses.get("start")
    except ConfigError as error:
        yield error
        return
    if refusal is not None:
        yield ConfigError(f"{place}train.program is {name!r}, which {refusal.why}", hint=refusal.hint)


@frozen
class _Shared:
    """Ids in more than one split, and inputs in more than one split as `id (split) = id (split)`."""

    ids: tuple[str, ...]
    inputs: tuple[str, ...]


def _shared(splits: Splits) -> _Shared:
    """All that is shared, in the order of the data."""
    first_place: dict[str, str] = {}
    first_input: dict[str, tuple[str, str]] = {}
    ids: list[str] = []
    inputs: list[str] = []
    for name, items in (("train", splits.train), ("val", splits.val), ("test", splits.test)):
        for item in items:
            if first_place.setdefault(item.id, name) != name:
                ids.append(item.id)
            digest = splits.inputs.get(item.id)
            other, where = first_input.setdefault(digest, (item.id, name)) if digest else (item.id, name)
            if where != name:
                inputs.append(f"{item.id} ({name}) = {other} ({where})")
    return _Shared(tuple(ids), tuple(inputs))


def _what_splits_share(config: RunConfig, found: _Shared) -> Iterator[DataError]:
    if found.ids:
        yield DataError(
            f"{len(found.ids)} items are in two splits: first, {found.ids[0]}",
            hint="keep each in one split: a score must not use items that were trained on",
        )
    elif found.inputs and config.env.same_input == "refuse":
        yield DataError(
            _same_inputs(found),
            hint="remove one of each; or set env.same_input: warn, and scores count what was trained on",
        )


def shared_notes(splits: Splits) -> tuple[str, ...]:
    """Notes about tasks that two splits share under different ids, where that is allowed."""
    found = _shared(splits)
    return (f"{_same_inputs(found)}; scores count what was trained on",) if found.inputs else ()


def _same_inputs(found: _Shared) -> str:
    more = f" and {len(found.inputs) - 5} more" if len(found.inputs) > 5 else ""
    return f"the same input stands in two splits under different ids: {', '.join(found.inputs[:5])}{more}"


def _another_size(config: RunConfig, size: int) -> Iterator[ConfigError]:
    configured = config.train.train_size
    if configured and configured != size and not _fewer_than_released(config, size):
        yield ConfigError(
            f"{config.place('train.train_size')}train.train_size is {configured}, "
            f"but the train split has {counted(size, 'item')}",
            hint="set train.train_size to 0 to use all of them",
        )


def _fewer_than_released(config: RunConfig, size: int) -> bool:
    """Whether a file of the original names the size of a split that these items are not."""
    return config.released_size and config.train.train_size > size


def size_notes(config: RunConfig, size: int) -> tuple[str, ...]:
    """What is to be told where the original's own file says that there are more training items."""
    if not _fewer_than_released(config, size):
        return ()
    configured = f"{config.place('train.train_size')}train.train_size is {config.train.train_size}"
    said = f"{configured}, the size of the released split"
    return (f"{said}; this one has {counted(size, 'item')}, and that is what counts here (the original refuses it)",)


def _too_few_to_judge(config: RunConfig, validation_items: int) -> Iterator[ConfigError]:
    """The gate's rule cannot be carried by so few validation items."""
    why = too_little(config, validation_items)
    if why is None:
        return
    rule = why.key
    draws = ("evaluation.gate_draws",) if rule == "evaluation.gate_rule" else ()
    limit = ("evaluation.sel_env_num",) if config.evaluation.sel_env_num else ()
    split = ("env.split_ratio",) if config.env.split_mode == "ratio" else ("env.split_mode",)
    decided = ", ".join(f"{key} ({config.origin(key)})" for key in (rule, *draws, *limit, *split))
    yield ConfigError(f"{config.place(rule)}{why.message}", hint=f"what decides this: {decided}")


def _nothing_to_trust(config: RunConfig) -> Iterator[ConfigError]:
    if config.evaluation.no_untrusted_only and config.env.trust == "untrusted":
        yield ConfigError(
            f"{config.place('evaluation.no_untrusted_only')}evaluation.no_untrusted_only refuses whatever comes from "
            "untrusted attempts, and env.trust says that all of them are",
            hint="turn it off, or mark each untrusted item in its field `trust`",
        )


def _answers_that_differ(config: RunConfig) -> Iterator[ConfigError]:
    """Nobody repeats answers where each is a draw of its own."""
    if config.train.reuse == "identical" and 0 not in (
        config.target_model.temperature,
        config.optimizer_model.temperature,
    ):
        yield ConfigError(
            f"{config.place('train.reuse')}train.reuse is identical, but neither model is asked at temperature 0",
            hint="set model.temperature: 0, or leave train.reuse at never",
        )


def split_ids(splits: Splits) -> SplitIds:
    """The ids and digests of loaded splits, as recorded."""
    return SplitIds(
        train=tuple(item.id for item in splits.train),
        val=tuple(item.id for item in splits.val),
        test=tuple(item.id for item in splits.test),
        digests=splits.digests,
    )
