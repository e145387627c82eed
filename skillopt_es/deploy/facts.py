"""What a log says about one of its skills, as values: run, data, gate evidence, scores, place in the lineage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import frozen

from skillopt_es.events.values import Score, Split
from skillopt_es.projections.by_hand import HandCounts

Which = Literal["best", "current", "certified", "initial"]


@frozen(kw_only=True)
class EventRef:
    """One event of the log: its number, its type and its hash, which vouches for all that it says."""

    seq: int
    type: str
    hash: str


@frozen(kw_only=True)
class Fork:
    """Where a run was forked from another one."""

    run: str
    run_id: str
    seq: int


@frozen(kw_only=True)
class RunFacts:
    """
    The run; the digest is the SHA-256 of its settings in force as canonical JSON, one flat `section.key` each.

    `by_hand` is what people did to it beside its rules; None where they did nothing.
    """

    id: str
    name: str
    software: str
    config_digest: str
    models: Mapping[str, str]
    forked_from: tuple[Fork, ...] = ()
    by_hand: HandCounts | None = None


@frozen(kw_only=True)
class ChainHead:
    """The last event that these facts take into account, and the hash of the chain up to it."""

    seq: int
    hash: str


@frozen(kw_only=True)
class DataFacts:
    """One split: how many items it has, and the digest of its content; None where a log does not have it."""

    items: int
    digest: str | None


@frozen(kw_only=True)
class Gate:
    """A verdict on the skill: what was compared, by which metric, and how many items turned."""

    event: EventRef
    action: str
    metric: str
    candidate: Score | None
    candidate_value: float | None
    current: Score | None
    current_value: float | None
    best_value: float | None
    compared: int | None
    won: int | None
    lost: int | None
    known_from: str = ""
    stale_from: str = ""


@frozen(kw_only=True)
class Evaluation:
    """
    One evaluation of exactly this text; `n` is how many items were measured.

    A score that `decided` whether the text was taken flatters it; None in earlier exports, which did not say it.
    """

    event: EventRef
    place: str
    split: Split
    hard: float
    soft: float
    n: int | None
    unmeasured: int | None
    value: float | None
    decided: bool | None = None


@frozen(kw_only=True)
class Certified:
    """
    What the run has proved on items that nothing in it had met before, at an `error` in the whole run.

    `skill` is the certified text, which may be another than this one (`is_this`), and `event` the bet that it won: by
    how much it was ahead of the text `against`, at least and on average, on how many items.
    """

    error: float
    skill: str
    is_this: bool
    event: EventRef | None = None
    against: str = ""
    fresh_items: int = 0
    gain: float | None = None
    least: float | None = None


@frozen(kw_only=True)
class Made:
    """The text's place in the lineage: the event that made it, and the texts that led to it, the first one first."""

    event: EventRef
    recorded_at: str
    node: str
    kind: str
    parent: str
    ancestors: tuple[str, ...]
    promoted: EventRef | None = None


@frozen(kw_only=True)
class SkillFacts:
    """The skill as it was measured: the hash of its tree, and the digest of each of its files."""

    which: Which
    hash: str
    main: str
    files: Mapping[str, str]
    executable: tuple[str, ...] = ()


@frozen(kw_only=True)
class LinesFrom:
    """The lines of a measured file from `first` to `last`, counted from 1, and the event that wrote them all."""

    first: int
    last: int
    written_by: EventRef
    kind: str
    step: int | None = None
    epoch: int | None = None


@frozen(kw_only=True)
class Facts:
    """
    All that a log says about one of its skills; without a `gate`, `ungated` says why.

    `lines` are those of each file as it was measured; None for a text that nothing explains, and in earlier exports.
    `certificate` is None where the run was not asked for one.
    """

    run: RunFacts
    log: ChainHead
    data: Mapping[str, DataFacts]
    skill: SkillFacts
    made: Made
    gate: Gate | None
    ungated: str
    scores: tuple[Evaluation, ...] = ()
    lines: Mapping[str, tuple[LinesFrom, ...]] | None = None
    certificate: Certified | None = None
