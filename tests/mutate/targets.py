"""Which tests are asked about a module: those that run it in their own process; whole runs are trained for few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

TARGETS: Mapping[str, Sequence[str]] = {
    "adapters/models/retry.py": ("tests/adapters/models/test_retry.py",),
    "events/journal.py": ("tests/events/test_journal.py", "tests/events/test_log.py"),
    "skillopt_es/replies/proposals.py": (
        "tests/replies/test_proposals.py",
        "tests/replies/test_notes.py",
        "tests/algorithms/search/test_asking.py",
    ),
    "skillopt_es/skill/alignment.py": ("tests/skill/test_alignment.py", "tests/skill/test_ancestry.py"),
    "skillopt_es/skill/appendix.py": ("tests/skill/test_appendix.py",),
    "skillopt_es/skill/density.py": ("tests/skill/test_density.py",),
    "skillopt_es/skill/edits.py": ("tests/skill/test_edits.py", "tests/skill/test_gaps.py"),
    "skillopt_es/skill/gaps.py": ("tests/skill/test_gaps.py", "tests/skill/test_edits.py"),
    "skillopt_es/skill/leaks.py": ("tests/skill/test_leaks.py",),
    "skillopt_es/skill/regions.py": ("tests/skill/test_regions.py", "tests/skill/test_edits.py"),
    "skillopt_es/skill/rewriting.py": ("tests/skill/test_rewriting.py",),
    "skillopt_es/skill/schedule.py": ("tests/skill/test_schedule.py",),
    "skillopt_es/gate/noise.py": ("tests/gate/test_compare.py", "tests/gate/test_rules.py"),
    "skillopt_es/gate/early_stop.py": ("tests/gate/test_early_stop.py",),
    "skillopt_es/gate/verdicts.py": (
        "tests/gate/test_draw_tasks.py",
        "tests/gate/test_early_stop.py",
        "tests/gate/test_verdicts.py",
    ),
    "skillopt_es/gate/rules.py": (
        "tests/gate/test_rules.py",
        "tests/gate/test_compare.py",
        "tests/gate/test_early_stop.py",
    ),
    "skillopt_es/engine/budget.py": ("tests/engine/test_budget_sums.py", "tests/engine/test_purse.py"),
    "skillopt_es/engine/draws.py": ("tests/engine/test_sampling.py", "tests/algorithms/classic/test_comparison.py"),
    "skillopt_es/engine/evaluations.py": ("tests/engine/test_scores.py",),
}
