"""By what a run judges: said once, before it begins."""

from __future__ import annotations

from skillopt_es.config import RunConfig


def ground_rules(config: RunConfig) -> str:
    """What a candidate has to win by, and what becomes of guidance at an epoch's end."""
    return f"{_candidates(config)}; {_guidance(config)}."


def _candidates(config: RunConfig) -> str:
    evaluation = config.evaluation
    if not evaluation.use_gate:
        return "Every candidate is taken (evaluation.use_gate is false)"
    metric = evaluation.gate_metric
    share = f", {evaluation.gate_mixed_weight:g} of it soft" if metric == "mixed" else ""
    return (
        f"A candidate has to win by {metric} score{share} (gate_metric) and the {evaluation.gate_rule} rule (gate_rule)"
    )


def _guidance(config: RunConfig) -> str:
    if not config.optimizer.use_slow_update:
        return "there is no guidance at an epoch's end (use_slow_update is false)"
    gated = config.optimizer.slow_update_gate_with_selection
    how = "has to win, too" if gated else "is taken without a test"
    return f"guidance at an epoch's end {how} (slow_update_gate_with_selection: {str(gated).lower()})"
