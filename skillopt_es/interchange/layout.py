"""How the original names the files of a result folder; the same names for writing and for reading."""

from __future__ import annotations

import hashlib
import re

CONFIG = "config.json"
HISTORY = "history.json"
STATE = "runtime_state.json"
SUMMARY = "summary.json"
EVALUATION = "eval_summary.json"
BEST = "best_skill.md"
LR_HISTORY = "lr_history.jsonl"
BASELINE_FOLDER = "selection_eval_baseline"
FINAL_FOLDER = "final_selection_eval"
TESTS = {"initial": "test_eval_baseline", "best": "test_eval", "final": "test_eval_final"}
ROWS = "results.jsonl"
CONVERSATION = "conversation.json"
PROMPTS = {"system": "target_system_prompt.txt", "user": "target_user_prompt.txt"}
"""Beside a conversation: the messages that it began with."""
KINDS = {"failure": "fail", "success": "succ"}
STAGES = {"appendix": "appendix_consolidate", "learning_rate": "lr_autonomous"}
"""Our stages that the original has another label for."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def skill_file(step: int) -> str:
    """The skill that was current at the end of a step."""
    return f"skills/skill_v{step:04d}.md"


def step_folder(step: int) -> str:
    """All that belongs to a step."""
    return f"steps/step_{step:04d}"


def batch_folder(step: int, batch: int, batches: int) -> str:
    """One training batch of a step; the step's own folder when it has one batch."""
    return step_folder(step) if batches == 1 else f"{step_folder(step)}/batch_{batch}"


def slow_folder(epoch: int) -> str:
    """All that belongs to an epoch's slow update."""
    return f"slow_update/epoch_{epoch:02d}"


def meta_folder(epoch: int) -> str:
    """All that belongs to an epoch's meta skill."""
    return f"meta_skill/epoch_{epoch:02d}"


def meta_file(epoch: int) -> str:
    """What came of an epoch's meta skill."""
    return f"{meta_folder(epoch)}/meta_skill_result.json"


def skill_hash(text: str) -> str:
    """How the original names a skill text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def safe_name(item: str) -> str:
    """An item's id as the original makes it a folder's name."""
    return _UNSAFE.sub("_", item).strip("_")[:80].strip(".") or "item"
