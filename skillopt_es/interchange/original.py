"""What a result folder of the original says, as typed values; None for what it does not say."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from skillopt_es.events.values import FailurePattern, ImportedUsage, Json
from skillopt_es.events.values import Proposal as Proposed
from skillopt_es.interchange.fields import Fields, Problem, said_by


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

    text: str = field(metadata=said_by("new_skill", Fields.shown))
    changes: tuple[str, ...] = field(metadata=said_by("change_summary", Fields.texts))
    reasoning: str = field(metadata=said_by("reasoning", Fields.shown))


@frozen(kw_only=True)
class BatchRecord:
    """One entry of `accumulation_batches`."""

    seed: int | None = field(metadata=said_by("batch_seed", Fields.whole))
    size: int | None = field(metadata=said_by("n_envs", Fields.whole))
    hard: float | None = field(metadata=said_by("hard", Fields.number))
    soft: float | None = field(metadata=said_by("soft", Fields.number))
    failure_patches: int | None = field(metadata=said_by("n_failure_patches", Fields.whole))
    success_patches: int | None = field(metadata=said_by("n_success_patches", Fields.whole))


@frozen(kw_only=True)
class Decision:
    """The optimizer's own choice of the budget."""

    budget: int
    asked: int | None
    available: int | None = field(metadata=said_by("available_update_items", Fields.whole))
    fallback: bool
    reasoning: str = field(metadata=said_by("reasoning", Fields.shown))
    confidence: str = field(metadata=said_by("confidence", Fields.shown))
    risks: tuple[str, ...] = field(metadata=said_by("risk_notes", Fields.texts))


@frozen(kw_only=True)
class StepRecord:
    """One step of the history."""

    step: int
    epoch: int | None = field(metadata=said_by("epoch", Fields.whole))
    index: int | None = field(metadata=said_by("step_in_epoch", Fields.whole))
    action: str
    skip_reason: str = field(metadata=said_by("skip_reason", Fields.name))
    hard: float | None = field(metadata=said_by("rollout_hard", Fields.number))
    soft: float | None = field(metadata=said_by("rollout_soft", Fields.number))
    rollouts: int | None = field(metadata=said_by("rollout_n", Fields.whole))
    batches: tuple[BatchRecord, ...]
    patches: int | None = field(metadata=said_by("n_patches", Fields.whole))
    merged: int | None = field(metadata=said_by("n_edits_merged", Fields.whole))
    chosen: int | None = field(metadata=said_by("n_edits_ranked", Fields.whole))
    budget: int | None = field(metadata=said_by("edit_budget", Fields.whole))
    applied: int | None
    candidate_hash: str = field(metadata=said_by("candidate_hash", Fields.name))
    selection_hard: float | None = field(metadata=said_by("selection_hard", Fields.number))
    selection_soft: float | None = field(metadata=said_by("selection_soft", Fields.number))
    metric: str = field(metadata=said_by("gate_metric", Fields.name))
    value: float | None = field(metadata=said_by("candidate_gate_score", Fields.number))
    current: float | None = field(metadata=said_by("current_score", Fields.number))
    best: float | None = field(metadata=said_by("best_score", Fields.number))
    best_step: int | None = field(metadata=said_by("best_step", Fields.whole))
    seconds: Mapping[str, float]
    usage: Mapping[str, ImportedUsage]
    decision: Decision | None
    notes_consolidated: int | None = field(metadata=said_by("n_appendix_notes_consolidated", Fields.whole))


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

    action: str = field(metadata=said_by("action", Fields.name))
    guidance: str = field(metadata=said_by("slow_update_content", Fields.shown))
    reasoning: str = field(metadata=said_by("reasoning", Fields.shown))
    seconds: float | None = field(metadata=said_by("time_s", Fields.number))
    previous_hard: float | None = field(metadata=said_by("prev_hard", Fields.number))
    current_hard: float | None = field(metadata=said_by("curr_hard", Fields.number))
    candidate_hash: str = field(metadata=said_by("candidate_hash", Fields.name))
    hard: float | None = field(metadata=said_by("selection_hard", Fields.number))
    soft: float | None = field(metadata=said_by("selection_soft", Fields.number))


@frozen(kw_only=True)
class MetaResult:
    """What a `meta_skill_result.json` says."""

    action: str = field(metadata=said_by("action", Fields.name))
    content: str = field(metadata=said_by("meta_skill_content", Fields.shown))
    reasoning: str = field(metadata=said_by("reasoning", Fields.shown))
    seconds: float | None = field(metadata=said_by("time_s", Fields.number))


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

    baseline_hard: float | None = field(metadata=said_by("baseline_selection_hard", Fields.number))
    best_value: float | None = field(metadata=said_by("best_selection_hard", Fields.number))
    final_hard: float | None = field(metadata=said_by("final_selection_hard", Fields.number))
    final_soft: float | None = field(metadata=said_by("final_selection_soft", Fields.number))
    best_step: int | None = field(metadata=said_by("best_step", Fields.whole))
    best_origin: str = field(metadata=said_by("best_origin", Fields.name))
    current_origin: str = field(metadata=said_by("current_origin", Fields.name))
    tests: Mapping[str, tuple[float | None, float | None]]
    seconds: float | None = field(metadata=said_by("total_wall_time_s", Fields.number))
    usage: Mapping[str, ImportedUsage]


@frozen(kw_only=True)
class StateRecord:
    """What `runtime_state.json` says."""

    last_step: int | None = field(metadata=said_by("last_completed_step", Fields.whole))
    best_value: float | None = field(metadata=said_by("best_score", Fields.number))
    best_origin: str = field(metadata=said_by("best_origin", Fields.name))


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
