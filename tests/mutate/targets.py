"""Which tests are asked about a module: those that run it in their own process, quickest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_TRAINING = "tests/training"
_GATE = (f"{_TRAINING}/test_gate_rules.py", f"{_TRAINING}/test_decisions.py", f"{_TRAINING}/test_gate_draws.py")

TARGETS: Mapping[str, Sequence[str]] = {
    "adapters/models/retry.py": ("tests/adapters/models/test_retry.py",),
    "events/journal.py": ("tests/events", f"{_TRAINING}/test_repeats.py", f"{_TRAINING}/test_ahead.py"),
    "skillopt_es/skill/alignment.py": ("tests/skill/test_alignment.py", "tests/skill/test_rewriting.py"),
    "skillopt_es/skill/ancestry.py": ("tests/skill/test_ancestry.py", f"{_TRAINING}/test_update_modes.py"),
    "skillopt_es/skill/appendix.py": ("tests/skill/test_appendix.py", f"{_TRAINING}/test_skill_aware.py"),
    "skillopt_es/skill/density.py": ("tests/skill/test_density.py", f"{_TRAINING}/test_decisions.py"),
    "skillopt_es/skill/edits.py": ("tests/skill/test_edits.py", f"{_TRAINING}/test_decisions.py"),
    "skillopt_es/skill/leaks.py": ("tests/skill/test_leaks.py", f"{_TRAINING}/test_leaks.py"),
    "skillopt_es/skill/regions.py": ("tests/skill",),
    "skillopt_es/skill/rewriting.py": ("tests/skill/test_rewriting.py", f"{_TRAINING}/test_update_modes.py"),
    "skillopt_es/skill/schedule.py": ("tests/skill/test_schedule.py",),
    "skillopt_es/training/budget.py": (f"{_TRAINING}/test_budget.py",),
    "skillopt_es/training/early_stop.py": (f"{_TRAINING}/test_early_stop.py", *_GATE),
    "skillopt_es/training/gate.py": _GATE,
    "skillopt_es/training/gate_compare.py": _GATE,
    "skillopt_es/training/gate_draws.py": (f"{_TRAINING}/test_gate_draws.py", *_GATE),
    "skillopt_es/training/gate_rules.py": _GATE,
    "skillopt_es/training/purse.py": (f"{_TRAINING}/test_budget.py",),
    "skillopt_es/training/sampling.py": (f"{_TRAINING}/test_sampling.py", f"{_TRAINING}/test_comparison.py"),
    "skillopt_es/training/scores.py": _GATE,
}
