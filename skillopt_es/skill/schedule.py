"""The textual learning rate: how many edits a step may apply. It decays by step number, also over skipped steps."""

from __future__ import annotations

import math
from typing import Literal

Scheduler = Literal["constant", "linear", "cosine", "uncapped"]
UNCAPPED = 999  # SkillOpt's own number for no cap: its files and records have it


def edit_budget(scheduler: Scheduler, *, highest: int, lowest: int, step: int, total_steps: int) -> int:
    """The budget of a step (1-based); a run of one step has the highest."""
    if scheduler == "uncapped":
        return UNCAPPED
    if scheduler == "constant" or total_steps <= 1:
        return highest
    progress = min(step, total_steps) / total_steps
    if scheduler == "linear":
        return max(lowest, round(highest + (lowest - highest) * progress))
    return max(lowest, round(lowest + 0.5 * (highest - lowest) * (1 + math.cos(math.pi * progress))))
