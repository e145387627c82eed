"""What a result folder of the original says, as typed values; None for what it does not say."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from skillopt_es.events.values import FailurePattern, ImportedUsage, Json
from skillopt_es.events.values import Proposal as Proposed
from skillopt_es.interchange.fields import Problem


@frozen(kw_only=True)
class Result:
    """One line of a `results.jsonl`, with the conversation beside it."""

    item: str
    hard: float
    soft: float
    task_type: str
    turns: int | None
    reason: str
    prediction: str
    task: str
    answers: tuple[str, ...]
    conversation: tuple[tuple[str, str], ...] | None


@frozen(kw_only=True)
class Change:
    """One proposed edit, suggestion or draft, as yet without an id; `said` is None for one of an unknown kind."""

    said: Proposed | None
    support: int | None
    source: str
    level: int | None


@frozen(kw_only=True)
class Proposal:
    """One file of an analyst, or a merge."""

    name: str
    kind: str
    changes: tuple[Change, ...]
    reasoning: str
    patterns: tuple[FailurePattern, ...]
    indices: tuple[int, ...] | None = None
    ranking: str = ""
    notes: tuple[str, ...] = ()


@frozen(kw_only=True)
class RewriteResult:
    """A whole skill that the optimizer wrote from suggestions."""

    text: str
    changes: tuple[str, ...]
    reasoning: str


@frozen(kw_only=True)
class BatchRecord:
    """One entry of `accumulation_batches`."""

    seed: int | None
    size: int | None
    hard: float | None
    soft: float | None
    failure_patches: int | None
    success_patches: int | None


@frozen(kw_only=True)
class Decision:
    """The optimizer's own choice of the budget."""

    budget: int
    asked: int | None
    available: int | None
    fallback: bool
    reasoning: str
    confidence: str
    risks: tuple[str, ...]


@frozen(kw_only=True)
class StepRecord:
    """One step of the history."""

    step: int
    epoch: int | None
    index: int | None
    action: str
    skip_reason: str
    hard: float | None
    soft: float | None
    rollouts: int | None
    batches: tuple[BatchRecord, ...]
    patches: int | None
    merged: int | None
    chosen: int | None
    budget: int | None
    applied: int | None
    candidate_hash: str
    selection_hard: float | None
    selection_soft: float | None
    metric: str
    value: float | None
    current: float | None
    best: float | None
    best_step: int | None
    seconds: Mapping[str, float]
    usage: Mapping[str, ImportedUsage]
    decision: Decision | None
    notes_consolidated: int | None


@frozen(kw_only=True)
class OriginalStep:
    """One step's folder and its record."""

    number: int
    record: StepRecord | None
    rollouts: tuple[tuple[Result, ...] | None, ...]
    proposals: tuple[tuple[Proposal, ...], ...]
    merged: Proposal | None
    ranked: Proposal | None
    decision: Decision | None
    rewrite: RewriteResult | None
    candidate: str | None
    report: tuple[tuple[int | None, str], ...] | None
    selection: tuple[Result, ...] | None
    standing: tuple[Result, ...] | None
    digest_before: float | None
    failed: tuple[str, ...] | None
    notes: tuple[str, ...] | None
    skill: str | None

    @property
    def begun(self) -> bool:
        """Whether anything at all is there of it."""
        return self.record is not None or any(rows is not None for rows in self.rollouts) or self.candidate is not None


@frozen(kw_only=True)
class SlowResult:
    """What a `slow_result.json` says."""

    action: str
    guidance: str
    reasoning: str
    seconds: float | None
    previous_hard: float | None
    current_hard: float | None
    candidate_hash: str
    hard: float | None
    soft: float | None


@frozen(kw_only=True)
class MetaResult:
    """What a `meta_skill_result.json` says."""

    action: str
    content: str
    reasoning: str
    seconds: float | None


@frozen(kw_only=True)
class Epoch:
    """One epoch's end."""

    number: int
    slow: SlowResult | None
    pairs: tuple[tuple[str, str], ...] | None
    candidate: str | None
    previous: tuple[Result, ...] | None
    current: tuple[Result, ...] | None
    further: tuple[str, ...]
    selection: tuple[Result, ...] | None
    standing: tuple[Result, ...] | None
    meta: MetaResult | None


@frozen(kw_only=True)
class TestRecord:
    """One evaluation on the test split: its results, and the table of kinds (count, accuracy)."""

    rows: tuple[Result, ...] | None
    table: Mapping[str, tuple[int | None, float | None]]


@frozen(kw_only=True)
class SummaryRecord:
    """What `summary.json` says that nothing else does."""

    baseline_hard: float | None
    best_value: float | None
    final_hard: float | None
    final_soft: float | None
    best_step: int | None
    best_origin: str
    current_origin: str
    tests: Mapping[str, tuple[float | None, float | None]]
    seconds: float | None
    usage: Mapping[str, ImportedUsage]


@frozen(kw_only=True)
class StateRecord:
    """What `runtime_state.json` says."""

    last_step: int | None
    best_value: float | None
    best_origin: str


@frozen(kw_only=True)
class Original:
    """A whole result folder."""

    folder: str
    config: Mapping[str, Json]
    steps: Mapping[int, OriginalStep]
    epochs: Mapping[int, Epoch]
    initial: str
    best: str | None
    baseline: tuple[Result, ...] | None
    final: tuple[Result, ...] | None
    tests: Mapping[str, TestRecord]
    summary: SummaryRecord | None
    state: StateRecord | None
    problems: tuple[Problem, ...]
