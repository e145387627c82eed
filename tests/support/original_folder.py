"""
Result folders of the original trainer, written by hand after its description: two epochs of three steps.

Nothing here knows how we write such a folder. Texts follow the original's rules for edits, which are not quite ours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

START = "<!-- SLOW_UPDATE_START -->"
END = "<!-- SLOW_UPDATE_END -->"
V0 = "# Skill\n\n- one\n"
# The original leaves no blank line of its own behind an insertion.
V1 = "# Skill\n\n- one\n\n- one and a half\n\n- two\n"
C2 = f"{V1.rstrip()}\n\n- worse\n"
V3_END = f"{V1.rstrip()}\n\n{START}\n{END}\n"
V4 = f"{V1.rstrip()}\n\n- four\n\n{START}\n{END}\n"
C5 = f"{V1.rstrip()}\n\n{START}\n{END}\n"
C6 = V4.replace("- two", "- deux")
GUIDED = f"{V1.rstrip()}\n\n- four\n\n{START}\ntake care\n{END}\n"

Record = dict[str, Any]


def sha(text: str) -> str:
    """How the original names a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def dump(path: Path, value: object) -> None:
    """A JSON file as the original writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), encoding="utf-8")


def write(path: Path, text: str) -> None:
    """A text file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def results(folder: Path, prefix: str, passed: Sequence[bool]) -> None:
    """One evaluation: its rows, and a conversation beside each."""
    rows = []
    for number, right in enumerate(passed):
        item = f"{prefix}{number}"
        soft = 1.0 if right else 0.5
        row: Record = {"id": item, "question": "1+1?", "em": float(right), "f1": soft, "sub_em": float(right)}
        row |= {"hard": int(right), "soft": soft, "predicted_answer": "2" if right else 3, "gold_answers": ["2"]}
        reason = "" if right else "wrong: 3 instead of 2"
        row |= {"response": "2", "fail_reason": reason, "agent_ok": True, "n_turns": 1, "task_type": "sum"}
        rows.append(row)
        talk = [{"type": "message", "turn": 1, "content": "2"}, {"role": "system", "content": "[EVALUATION RESULT]"}]
        dump(folder / "predictions" / item / "conversation.json", talk)
        write(folder / "predictions" / item / "target_system_prompt.txt", "skill")
        write(folder / "predictions" / item / "target_user_prompt.txt", "1+1?")
    write(folder / "results.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def passes(count: int, of: int = 4) -> list[bool]:
    """The first so many of the items pass."""
    return [number < count for number in range(of)]


CONFIG: Record = {
    "model_backend": "azure_openai",
    "optimizer_model": "gpt-5.5",
    "target_model": "gpt-5.5",
    "optimizer_backend": "openai_chat",
    "target_backend": "openai_chat",
    "azure_openai_api_key": "sk-very-secret-0123456789",
    "num_epochs": 2,
    "train_size": 6,
    "batch_size": 2,
    "accumulation": 1,
    "seed": 42,
    "steps_per_epoch": 3,
    "batches_per_epoch": 3,
    "samples_per_epoch": 6,
    "edit_budget": 4,
    "min_edit_budget": 2,
    "lr_scheduler": "constant",
    "lr_control_mode": "fixed",
    "skill_update_mode": "patch",
    "use_slow_update": True,
    "slow_update_samples": 2,
    "slow_update_gate_with_selection": False,
    "longitudinal_pair_policy": "mixed",
    "use_meta_skill": True,
    "use_gate": True,
    "sel_env_num": 0,
    "test_env_num": 0,
    "eval_test": True,
    "env": "searchqa",
    "skill_init": "/data/skills/SKILL.md",
    "out_root": "/data/out",
}


def edit(op: str, content: str, target: str = "", **more: object) -> Record:
    """One edit as a model writes it."""
    said = {} if op == "delete" and not content else {"content": content}
    return {"op": op, **({"target": target} if target else {}), **said, **more}


def by_kind(row: Record) -> Record:
    """A test's summary for SearchQA: the original finds no item of the kind that it knows."""
    return {"qa": {"total": 0, "hard_acc": 0.0}, "overall": row, "other": row}


class Folder:
    """A result folder in the making."""

    def __init__(self, root: Path, *, gated: bool = False) -> None:
        self.root = root
        self.gated = gated
        self.history: list[Record] = []
        dump(root / "config.json", {**CONFIG, "slow_update_gate_with_selection": gated})
        self.skill(0, V0)

    def skill(self, step: int, text: str) -> None:
        """The skill that was kept after a step."""
        write(self.root / f"skills/skill_v{step:04d}.md", text)

    def baseline(self) -> None:
        """The initial skill's own evaluation."""
        results(self.root / "selection_eval_baseline", "v", passes(1))

    def step_folder(self, step: int) -> Path:
        """A step's folder."""
        return self.root / f"steps/step_{step:04d}"

    def rollout(self, step: int, right: int) -> Record:
        """A step's training rollouts, and what its record says of them."""
        results(self.step_folder(step) / "rollout", f"t{step}-", passes(right, 2))
        soft = (right + 0.5 * (2 - right)) / 2
        batch = {"batch_idx": 0, "batch_seed": 1042 + step, "n_envs": 2, "hard": right / 2, "soft": soft}
        return {
            "step": step,
            "epoch": 1 + (step - 1) // 3,
            "step_in_epoch": (step - 1) % 3,
            "timing": {"rollout_s": 1.5, "reflect_s": 0.4},
            "tokens": {},
            "rollout_hard": right / 2,
            "rollout_soft": soft,
            "rollout_n": 2,
            "accumulation_batches": [{**batch, "n_failure_patches": 0, "n_success_patches": 0}],
            "n_patches": 0,
            "n_failure_patches": 0,
            "n_success_patches": 0,
        }

    def propose(self, step: int, edits: Sequence[Record]) -> None:
        """One analyst's patch, which is the whole pool and chosen whole."""
        folder = self.step_folder(step)
        summary = [{"failure_type": "wrong", "count": 1, "description": "adds badly"}]
        body = {"reasoning": "see the failures", "edits": list(edits)}
        reply = {"batch_size": 1, "failure_summary": summary, "patch": body, "source_type": "failure"}
        dump(folder / "patches/minibatch_fail_000.json", reply)
        marked = [{**each, "source_type": "failure", "support_count": 1} for each in edits]
        dump(folder / "merged_patch.json", {"reasoning": "see the failures", "edits": marked})
        dump(folder / "ranked_edits.json", {"reasoning": "see the failures", "edits": marked})

    def gate(
        self,
        record: Record,
        edits: Sequence[Record],
        *,
        candidate: str,
        kept: str,
        passed: int,
        action: str,
        scores: tuple[float, float, int],
    ) -> None:
        """A step that reached the gate, with all of its files."""
        step, folder = record["step"], self.step_folder(record["step"])
        self.propose(step, edits)
        write(folder / "candidate_skill.md", candidate)
        statuses = {"append": "applied_append", "insert_after": "applied_insert_after", "replace": "applied_replace"}
        statuses["delete"] = "applied_delete"
        report = [
            {"op": each["op"], "target": each.get("target", ""), "content_preview": each.get("content", "")}
            for each in edits
        ]
        rows = [{**row, "index": number, "status": statuses[row["op"]]} for number, row in enumerate(report, start=1)]
        dump(folder / "edit_apply_report.json", rows)
        results(folder / "selection_eval", "v", passes(passed))
        current, best, best_step = scores
        dump(folder / "trajectory_digest.json", {"step": step, "action": action, "n_total": 2, "n_fail": 1})
        self.skill(step, kept)
        record["accumulation_batches"][0]["n_failure_patches"] = 1
        record |= {"n_patches": 1, "n_failure_patches": 1}
        record["tokens"] = {"analyst": {"calls": 1, "prompt_tokens": 100 * step, "completion_tokens": 10}}
        self.close(
            record
            | {
                "n_edits_merged": len(edits),
                "n_edits_ranked": len(edits),
                "edit_budget": 4,
                "lr_control_mode": "fixed",
                "support_counts": [1] * len(edits),
                "candidate_hash": sha(candidate),
                "candidate_skill_len": len(candidate),
                "edit_apply_summary": {"total": len(edits), "applied": len(edits), "skipped": 0, "errors": 0},
                "selection_hard": passed / 4,
                "selection_soft": (passed + 0.5 * (4 - passed)) / 4,
                "gate_metric": "hard",
                "candidate_gate_score": passed / 4,
                "action": action,
                "current_score": current,
                "best_score": best,
                "best_step": best_step,
                "current_origin": f"step_{best_step:04d}",
                "best_origin": f"step_{best_step:04d}",
                "skill_len": len(kept),
                "wall_time_s": 2.5,
            }
        )

    def close(self, record: Record) -> None:
        """The record goes into the history and the step's folder."""
        self.history.append(record)
        dump(self.root / "history.json", self.history)
        dump(self.step_folder(record["step"]) / "step_record.json", record)

    def first_epoch(self) -> None:
        """Accepted, rejected, nothing to fix; then the placeholder."""
        self.baseline()
        edits = [edit("append", "- two"), edit("insert_after", "- one and a half", "- one")]
        first = self.rollout(1, 1)
        self.gate(first, edits, candidate=V1, kept=V1, passed=2, action="accept_new_best", scores=(0.5, 0.5, 1))
        second = self.rollout(2, 1)
        worse = [edit("append", "- worse")]
        self.gate(second, worse, candidate=C2, kept=V1, passed=2, action="reject", scores=(0.5, 0.5, 1))
        skipped = {"action": "skip_no_patches", "current_score": 0.5, "best_score": 0.5, "best_step": 1}
        self.close(self.rollout(3, 2) | skipped | {"skill_len": len(V1), "wall_time_s": 1.0})
        self.skill(3, V3_END)
        dump(self.root / "slow_update/epoch_01/slow_result.json", {"action": "inject_placeholder", "epoch": 1})
        dump(self.root / "meta_skill/epoch_01/meta_skill_result.json", {"action": "skip_first_epoch", "epoch": 1})

    def second_epoch(self) -> None:
        """Accepted and twice rejected; then guidance and a memory."""
        fourth = self.rollout(4, 1)
        four = [edit("append", "- four")]
        self.gate(fourth, four, candidate=V4, kept=V4, passed=3, action="accept_new_best", scores=(0.75, 0.75, 4))
        fifth = self.rollout(5, 1)
        gone = [edit("delete", "", "\n\n- four")]
        self.gate(fifth, gone, candidate=C5, kept=V4, passed=2, action="reject", scores=(0.75, 0.75, 4))
        sixth = self.rollout(6, 1)
        deux = [edit("replace", "- deux", "- two")]
        self.gate(sixth, deux, candidate=C6, kept=V4, passed=3, action="reject", scores=(0.75, 0.75, 4))
        self.advice()

    def advice(self) -> None:
        """The comparison, the guidance, forced or gated, and the memory."""
        folder = self.root / "slow_update/epoch_02"
        results(folder / "rollout_prev", "t", passes(0, 2))
        results(folder / "rollout_curr", "t", passes(1, 2))
        side = {"hard": 0, "soft": 0.5, "predicted_answer": "3", "fail_reason": "wrong: 3 instead of 2"}
        good = {"hard": 1, "soft": 1.0, "predicted_answer": "2", "fail_reason": ""}
        pairs = [
            {"id": "t0", "task": "1+1?", "category": "improved", "prev": side, "curr": good},
            {"id": "t1", "task": "1+1?", "category": "persistent_fail", "prev": side, "curr": side},
        ]
        dump(folder / "comparison_pairs.json", pairs)
        write(folder / "candidate_skill.md", GUIDED)
        result: Record = {
            "reasoning": "one still fails",
            "slow_update_content": "take care",
            "time_s": 3.2,
            "prev_hard": 0.0,
            "curr_hard": 0.5,
            "candidate_hash": sha(GUIDED),
            "update_origin": "slow_update_momentum",
            "update_target": "mend what fails",
        }
        if self.gated:
            results(folder / "selection_eval", "v", passes(4))
            result |= {"selection_hard": 1.0, "selection_soft": 1.0, "action": "accept_new_best"}
        else:
            result["action"] = "force_accept"
        dump(folder / "slow_result.json", result)
        self.skill(6, GUIDED)
        memory = {"reasoning": "short", "meta_skill_content": "short rules help", "time_s": 1.1}
        dump(self.root / "meta_skill/epoch_02/meta_skill_result.json", {**memory, "action": "write_meta_skill"})

    def state(self, step: int, text: str, *, score: float, current: str, best: str, best_step: int) -> None:
        """The runtime state and the best skill."""
        write(self.root / "best_skill.md", text)
        state = {
            "last_completed_step": step,
            "current_skill_path": f"/data/out/skills/skill_v{step:04d}.md",
            "current_score": score,
            "current_origin": current,
            "best_skill_path": "/data/out/best_skill.md",
            "best_score": score,
            "best_step": best_step,
            "best_origin": best,
        }
        dump(self.root / "runtime_state.json", state)

    def finish(self, *, baseline: float | None = 0.25) -> None:
        """The final evaluation, the tests and the summary."""
        best = GUIDED if self.gated else V4
        score = 1.0 if self.gated else 0.75
        guided = "slow_update_epoch_02"
        origin, step = (guided, 6) if self.gated else ("step_0004", 4)
        self.state(6, best, score=score, current=guided, best=origin, best_step=step)
        if not self.gated:
            results(self.root / "final_selection_eval", "v", passes(3))
        tests = {"test_eval_baseline": 1, "test_eval": 3}
        for name, passed in tests.items():
            results(self.root / name, "x", passes(passed))
            row = {"total": 4, "hard_acc": passed / 4}
            dump(self.root / name / "summary.json", by_kind(row))
        if not self.gated:
            results(self.root / "test_eval_final", "x", passes(3))
        row = {"total": 4, "hard_acc": 0.75}
        dump(self.root / "test_eval_final/summary.json", by_kind(row))
        dump(self.root / "summary.json", self._summary(score, baseline))

    def _summary(self, score: float, baseline: float | None) -> Record:
        epochs = [{"epoch": 1, "steps": [1, 2, 3], "accepts": 1, "rejects": 1, "skips": 1}]
        usage = {"calls": 9, "prompt_tokens": 2000, "completion_tokens": 90, "total_tokens": 2090}
        return {
            "version": "skillopt-0.1.0",
            "config": CONFIG,
            "baseline_selection_hard": baseline,
            "best_selection_hard": score,
            "final_selection_hard": score if self.gated else 0.75,
            "final_selection_soft": None if self.gated else 0.875,
            "best_step": 6 if self.gated else 4,
            "current_origin": "slow_update_epoch_02",
            "best_origin": "slow_update_epoch_02" if self.gated else "step_0004",
            "total_steps": len(self.history),
            "total_accepts": 2,
            "total_rejects": 3,
            "total_skips": 1,
            "epoch_stats": epochs,
            "baseline_test_hard": 0.25,
            "baseline_test_soft": 0.625,
            "test_hard": 0.75,
            "test_soft": 0.875,
            "final_test_hard": 0.75,
            "final_test_soft": 0.875,
            "test_delta_hard": 0.5,
            "final_test_delta_hard": 0.5,
            "total_wall_time_s": 33.3,
            "token_summary": {"analyst": usage, "_total": usage},
        }


def whole(root: Path, *, gated: bool = False) -> Path:
    """A run that came to its end."""
    folder = Folder(root, gated=gated)
    folder.first_epoch()
    folder.second_epoch()
    folder.finish()
    return root


def resumed(root: Path) -> Path:
    """A run that died between history and state and was resumed: a step twice, no baseline in the summary."""
    folder = Folder(root)
    folder.first_epoch()
    folder.history.append({**folder.history[1], "wall_time_s": 9.9})
    folder.history.append(folder.history.pop(2))
    folder.second_epoch()
    folder.finish(baseline=None)
    return root


def killed(root: Path) -> Path:
    """A run that was killed in step 5, after its edits were chosen and before the gate."""
    folder = Folder(root)
    folder.first_epoch()
    fourth = folder.rollout(4, 1)
    four = [edit("append", "- four")]
    folder.gate(fourth, four, candidate=V4, kept=V4, passed=3, action="accept_new_best", scores=(0.75, 0.75, 4))
    folder.state(4, V4, score=0.75, current="step_0004", best="step_0004", best_step=4)
    folder.rollout(5, 1)
    folder.propose(5, [edit("append", "- five")])
    write(root / "steps/step_0005/candidate_skill.md", V4.replace("- four\n", "- four\n\n- five\n"))
    return root
