"""A run as the original's result folder: names and keys as its users' scripts expect them, and nothing overwritten."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path

import pytest
from support.audited import Audited
from support.command import command
from support.exchange import exported, read
from support.scripted import NOON, ScriptedEnvironment, ScriptedWorld, config

from skillopt_es.algorithms.classic.state import ClassicState
from skillopt_es.errors import NotInRun, OutputRefused
from skillopt_es.events.catalog import EditsRanked, Event
from skillopt_es.events.writer import RunWriter
from skillopt_es.sessions.session import read_state, start

# In the order in which the original writes them.
RECORD = [
    *("step", "epoch", "step_in_epoch", "timing", "tokens", "rollout_hard", "rollout_soft", "rollout_n"),
    *("accumulation_batches", "n_patches", "n_failure_patches", "n_success_patches", "n_edits_merged"),
    *("n_edits_ranked", "edit_budget", "lr_control_mode", "support_counts", "candidate_hash", "candidate_skill_len"),
    *("edit_apply_summary", "selection_hard", "selection_soft", "gate_metric", "candidate_gate_score", "action"),
    *("current_score", "best_score", "best_step", "current_origin", "best_origin", "skill_len", "wall_time_s"),
]
SUMMARY = [
    *("version", "config", "baseline_selection_hard", "best_selection_hard", "final_selection_hard"),
    *("final_selection_soft", "best_step", "current_origin", "best_origin", "total_steps", "total_accepts"),
    *("total_rejects", "total_skips", "epoch_stats", "baseline_test_hard", "baseline_test_soft", "test_hard"),
    *("test_soft", "final_test_hard", "final_test_soft", "test_delta_hard", "final_test_delta_hard"),
    *("total_wall_time_s", "token_summary"),
]
STATE = [
    *("last_completed_step", "current_skill_path", "current_score", "current_origin", "best_skill_path"),
    *("best_score", "best_step", "best_origin"),
]
STEP = {
    *("candidate_skill.md", "edit_apply_report.json", "merged_patch.json", "patches", "ranked_edits.json", "rollout"),
    *("selection_eval", "step_record.json", "trajectory_digest.json"),
}


@pytest.fixture(scope="module")
def out(demo_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's result folder."""
    return exported(demo_run, tmp_path_factory.mktemp("out") / "results")


def test_every_file_has_the_originals_name(out: Path) -> None:
    """The tree of a complete run."""
    assert {path.name for path in out.iterdir()} >= {
        *("config.json", "history.json", "runtime_state.json", "summary.json", "best_skill.md", "skills", "steps"),
        *("slow_update", "meta_skill", "selection_eval_baseline", "test_eval", "test_eval_baseline"),
    }
    assert {path.name for path in (out / "steps/step_0001").iterdir()} == STEP
    assert (out / "steps/step_0001/patches/minibatch_fail_000.json").exists()
    assert sorted(path.name for path in (out / "skills").iterdir()) == [f"skill_v{n:04d}.md" for n in range(13)]
    assert {path.name for path in (out / "slow_update/epoch_02").iterdir()} >= {
        *("candidate_skill.md", "comparison_pairs.json", "rollout_prev", "rollout_curr", "slow_result.json"),
    }
    assert (out / "meta_skill/epoch_02/meta_skill_result.json").exists()


def test_every_record_has_the_originals_keys(out: Path) -> None:
    """Scripts read by key, and some by order."""
    history, state, summary = (read(out / name) for name in ("history.json", "runtime_state.json", "summary.json"))
    assert next(list(row) for row in history if row["action"] == "accept_new_best") == RECORD
    assert list(state) == STATE
    assert list(summary) == SUMMARY
    assert read(out / "steps/step_0003/step_record.json") == history[2]
    skipped = next(row for row in history if row["action"] == "skip_no_patches")
    assert "n_edits_merged" not in skipped
    assert "current_origin" not in skipped
    assert list(summary["epoch_stats"][0]) == [
        *("epoch", "steps", "accepts", "rejects", "skips", "best_score_at_epoch_end", "current_score_at_epoch_end"),
    ]
    assert list(summary["token_summary"])[-1] == "_total"
    slow = read(out / "slow_update/epoch_02/slow_result.json")
    assert {"slow_update_content", "prev_hard", "curr_hard", "candidate_hash", "action", "time_s"} <= {*slow}


def test_numbers_are_those_of_the_run(out: Path, demo_run: Path) -> None:
    """Scores, texts and hashes are the log's."""
    state: ClassicState = read_state(demo_run)
    assert state.best is not None
    assert state.completed is not None
    assert state.completed.test_best is not None
    summary, history = read(out / "summary.json"), read(out / "history.json")
    assert summary["best_selection_hard"] == state.best.value
    assert summary["test_hard"] == state.completed.test_best.hard
    assert summary["total_accepts"] == state.counts.accepted
    assert summary["total_rejects"] == state.counts.rejected
    assert (out / "best_skill.md").read_text() == state.best.skill.text
    for row in history:
        if "candidate_hash" in row:
            text = (out / f"steps/step_{row['step']:04d}/candidate_skill.md").read_bytes()
            assert row["candidate_hash"] == hashlib.sha256(text).hexdigest()[:16]


def test_results_lie_beside_their_conversations(out: Path) -> None:
    """One line an item, and what was said in a folder of the item's name, with the prompts that it began with."""
    rows = read(out / "selection_eval_baseline/results.jsonl")
    assert {"id", "hard", "soft", "n_turns", "task_type", "predicted_answer", "question", "response"} <= {*rows[0]}
    said = out / f"selection_eval_baseline/predictions/{rows[0]['id']}"
    answer, *others = read(said / "conversation.json")
    assert answer == {"type": "message", "turn": 1, "content": rows[0]["response"]}
    assert {entry["role"] for entry in others} <= {"system"}
    assert rows[0]["question"] in (said / "target_user_prompt.txt").read_text()
    assert (said / "target_system_prompt.txt").exists()


def test_the_config_is_flat_and_has_no_key_of_anything(out: Path) -> None:
    """The original's own names, and ours with their section where it has none."""
    config_ = read(out / "config.json")
    assert config_["edit_budget"] == 2
    assert config_["env"] == "tasks"
    assert config_["samples_per_epoch"] == config_["train_size"] == 48
    assert config_["rollout.max_failed_share"] == 0.02
    assert "learning_rate" not in config_


def test_a_run_under_way_has_what_it_has(tmp_path: Path) -> None:
    """While its writer is at work, in a step: no record of the step, no summary, the state of the step before."""

    class Exporting:
        """Exports once, in the middle of the second step."""

        def planned(self, *_: object) -> None:
            """Nothing."""

        def called(self, *_: object) -> None:
            """Nothing."""

        def happened(self, _seq: int, event: Event, state: ClassicState) -> None:
            """The second step's patches are being merged."""
            if isinstance(event, EditsRanked) and event.step == 2:
                exported(tmp_path / "run", tmp_path / "out")

    world = ScriptedWorld(environment=ScriptedEnvironment(train=16, val=6, test=3))
    session = world.session(observers=(Exporting(),))
    asyncio.run(start(config(tmp_path, ["train.num_epochs=1"]), tmp_path / "run", session))
    folder = tmp_path / "out"
    assert [row["step"] for row in read(folder / "history.json")] == [1]
    assert read(folder / "runtime_state.json")["last_completed_step"] == 1
    assert (folder / "steps/step_0002/ranked_edits.json").exists()
    assert not (folder / "steps/step_0002/step_record.json").exists()
    assert not (folder / "summary.json").exists()
    exported(tmp_path / "run", folder)
    assert len(read(folder / "history.json")) == 4
    assert (folder / "summary.json").exists()


def test_what_was_not_measured_is_no_result(tmp_path: Path) -> None:
    """An item that the world did not answer has no line: a 0 would be a fact that never happened."""
    broken = ScriptedEnvironment(train=12, val=12, test=3, broken=lambda item: item == "t3")
    asyncio.run(start(config(tmp_path), tmp_path / "run", ScriptedWorld(environment=broken).session()))
    folder = exported(tmp_path / "run", tmp_path / "out")
    rows = [row for path in folder.glob("steps/*/rollout/results.jsonl") for row in read(path)]
    assert "t3" not in {row["id"] for row in rows}
    assert any(row["rollout_n"] == 3 for row in read(folder / "history.json"))


def test_only_an_earlier_export_is_replaced(audited: Audited, tmp_path: Path) -> None:
    """Anybody's results stay; what an earlier export wrote and this one does not is taken away."""
    run = audited("plain")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    with pytest.raises(OutputRefused, match="is not empty and was not written by an export"):
        exported(run, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
    with pytest.raises(OutputRefused, match="is a file"):
        exported(run, tmp_path / "mine/notes.txt")
    out = exported(run, tmp_path / "out")
    marker = read(out / ".skillopt-es-export.json")
    (out / "old.json").write_text("{}")
    (out / "theirs.json").write_text("{}")
    (out / ".skillopt-es-export.json").write_text(
        json.dumps({**marker, "files": [*marker["files"], "old.json", "../mine/notes.txt"]})
    )
    exported(run, out)
    assert not (out / "old.json").exists()
    assert (out / "theirs.json").exists()
    assert (tmp_path / "mine/notes.txt").exists()


def test_the_command_says_what_it_wrote(audited: Audited, tmp_path: Path) -> None:
    """`--out` or the last word; standard output is no folder; --at belongs to skills."""
    runs = audited("plain").parent
    done = command("export", "--format", "skillopt", "run", "--out", "res", "--dir", runs, cwd=tmp_path)
    assert done.code == 0
    assert done.out.startswith("res (")
    again = command("export", "--format", "skillopt", "run", "res", "--dir", runs, cwd=tmp_path)
    assert (again.code, again.out) == (0, done.out)
    refused = command("export", "--format", "skillopt", "run", "-", "--dir", runs, cwd=tmp_path)
    assert refused.code == 2
    assert "standard output" in refused.err
    assert command("export", "--format", "skillopt", "--dir", runs, cwd=tmp_path).code == 2


def test_a_log_that_has_not_begun_has_nothing_to_export(tmp_path: Path) -> None:
    """A run that stopped before its first event."""
    RunWriter.create(tmp_path / "empty", run_id="x", name="empty", now=lambda: NOON).close()
    with pytest.raises(NotInRun, match="has not begun"):
        exported(tmp_path / "empty", tmp_path / "out")
