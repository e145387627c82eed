"""Export, import, export again: the same files, and the same state where it is known."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import evolve
from support.exchange import checked, differences, exported, gaps, imported, read
from support.forgetful import AFTER_VERDICT, KNOWS_SOME, ON, forgetful_world
from support.original_folder import killed, resumed, whole
from support.params import parametrized
from support.scripted import ScriptedEnvironment, ScriptedWorld, config, ticking
from support.scripted_modes import MODES, SKILL, rewriting_world

from skillopt_es.cli.export import MARKER
from skillopt_es.runs.snapshot import snapshot
from skillopt_es.sessions.session import read_state, start

# What an import cannot know, or what says where a folder lies.
NAMED = {
    f"{MARKER}:run",
    f"{MARKER}:run_id",
    "config.json:out_root",
    "summary.json:out_root",
    "runtime_state.json:best_skill_path",
    "runtime_state.json:current_skill_path",
    # An analyst's trajectories are not in a result folder; a number in its reply is only its own word for them.
    *(f"minibatch_{kind}_00{number}.json:batch_size" for kind in ("fail", "succ") for number in range(8)),
}
ANSWERS = {
    f"{name}:raw_response" for name in ("history.json", "step_record.json", "lr_decision.json", "lr_history.jsonl")
}
"""What the optimizer said when it chose a learning rate is a call's text, and an import has no calls."""


def comparable(run: Path) -> dict[str, object]:
    """A state without what an import cannot have: counts of what was not measured, and names of merges."""
    plain = snapshot(read_state(run))
    for gone in ("imported", "unknown", "counts"):
        plain.pop(gone, None)
    return _without_unmeasured(plain)  # type: ignore[return-value]


def _without_unmeasured(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_unmeasured(each) for key, each in value.items() if key != "unmeasured"}
    if isinstance(value, list):
        return [_without_unmeasured(each) for each in value]
    return value


@pytest.mark.slow
def test_the_demo_comes_back_as_it_was(demo_run: Path, tmp_path: Path) -> None:
    """A complete run: every file but where it lies, and the whole state."""
    first = exported(demo_run, tmp_path / "first")
    state = imported(first, tmp_path / "again")
    second = exported(tmp_path / "again", tmp_path / "second")
    assert differences(first, second) <= NAMED
    assert not state.gaps
    assert comparable(tmp_path / "again") == comparable(demo_run)
    assert checked(tmp_path / "again").ok


@parametrized(
    "options",
    [
        ["optimizer.slow_update_gate_with_selection=true", "train.accumulation=2"],
        ["optimizer.lr_control_mode=autonomous", "evaluation.gate_metric=soft"],
        ["evaluation.use_gate=false", "optimizer.use_meta_skill=false", "optimizer.longitudinal_pair_policy=changed"],
        ["evaluation.gate_metric=mixed", "optimizer.use_slow_update=false", "evaluation.eval_test=false"],
    ],
    ids=["gated and accumulated", "autonomous and soft", "forced", "mixed without slow update and tests"],
    by_default=1,
)
def test_a_scripted_run_comes_back_as_it_was(tmp_path: Path, options: Sequence[str]) -> None:
    """The same over the modes of the trainer."""
    world = ScriptedWorld(environment=ScriptedEnvironment(train=16, val=6, test=3))
    run = tmp_path / "run"
    session = world.session()
    asyncio.run(start(config(tmp_path, options), run, session))
    first = exported(run, tmp_path / "first")
    state = imported(first, tmp_path / "again")
    second = exported(tmp_path / "again", tmp_path / "second")
    assert differences(first, second) <= NAMED | ANSWERS
    assert not state.gaps
    assert comparable(tmp_path / "again") == comparable(run)
    assert checked(tmp_path / "again").ok


def test_times_come_back_as_they_were(tmp_path: Path) -> None:
    """Durations are taken from the log's own times, and kept by an import."""
    world = ScriptedWorld(environment=ScriptedEnvironment(train=16, val=6, test=3))
    run = tmp_path / "run"
    asyncio.run(start(config(tmp_path, ["train.num_epochs=2"]), run, evolve(world.session(), now=ticking())))
    first = exported(run, tmp_path / "first")
    imported(first, tmp_path / "again")
    assert differences(first, exported(tmp_path / "again", tmp_path / "second")) <= NAMED


# What our export of a folder of the original has otherwise than the original itself.
ORIGINALS = {
    *NAMED - {f"{MARKER}:run", f"{MARKER}:run_id"},
    MARKER,
    "config.json:azure_openai_api_key",
    "summary.json:azure_openai_api_key",
    "summary.json:epoch_stats",  # the hand-written ones are not whole
    "slow_result.json:update_target",  # a sentence of the original that we have in our own words
    "results.jsonl:task_description",  # ours, for every environment
    "results.jsonl:predicted_answer",  # text
    *(f"trajectory_digest.json:{key}" for key in ("failure_patterns", "rejected_edits", "score_before", "score_after")),
    "minibatch_fail_000.json:count",
}


@pytest.mark.parametrize("gated", [False, True], ids=["forced", "gated"])
def test_a_folder_of_the_original_comes_back(tmp_path: Path, gated: bool) -> None:
    """Its history, skills, state and summary say the same as before."""
    folder = whole(tmp_path / "original", gated=gated)
    state = imported(folder, tmp_path / "run")
    found = differences(folder, exported(tmp_path / "run", tmp_path / "out"))
    others = {"summary.json:slow_update_gate_with_selection"} if gated else set()
    assert found <= ORIGINALS | others
    assert not state.gaps


def test_what_a_resume_wrote_twice_comes_back_once(tmp_path: Path) -> None:
    """A step that is in the history twice is one step."""
    folder = resumed(tmp_path / "original")
    state = imported(folder, tmp_path / "run")
    assert gaps(state) == {("folder", "history.json")}
    found = differences(folder, exported(tmp_path / "run", tmp_path / "out"))
    twice = {"history.json:", "step_record.json:wall_time_s", "summary.json:total_steps"}
    assert found <= ORIGINALS | twice | {"summary.json:baseline_selection_hard"}


def test_a_run_that_was_killed_comes_back_as_far_as_it_came(tmp_path: Path) -> None:
    """The step under way has its files and no record."""
    folder = killed(tmp_path / "original")
    state = imported(folder, tmp_path / "run")
    assert gaps(state) == {("e2/s5", "how the step ended")}
    out = exported(tmp_path / "run", tmp_path / "out")
    assert differences(folder, out) <= ORIGINALS
    assert (out / "steps/step_0005/candidate_skill.md").exists()
    assert not (out / "steps/step_0005/step_record.json").exists()
    assert not (out / "summary.json").exists()


@pytest.mark.slow
@parametrized(
    "options",
    [[], ["optimizer.skill_aware_consolidate_threshold=2"], [AFTER_VERDICT, "optimizer.use_slow_update=false"]],
    ids=["measured", "consolidated", "after the verdict"],
    by_default=1,
)
def test_reminder_notes_come_back(tmp_path: Path, options: Sequence[str]) -> None:
    """The notes of every analyst, the appendix after them, and the text that they went into."""
    (tmp_path / "SKILL.md").write_text(KNOWS_SOME)
    settings = config(tmp_path, [ON, "env.skill_init=SKILL.md", "train.num_epochs=2", *options])
    run = tmp_path / "run"
    asyncio.run(start(settings, run, forgetful_world().session()))
    first = exported(run, tmp_path / "first")
    assert list(first.glob("steps/*/appendix_notes.json"))
    state = imported(first, tmp_path / "again")
    assert differences(first, exported(tmp_path / "again", tmp_path / "second")) <= NAMED
    assert not state.gaps
    assert comparable(tmp_path / "again") == comparable(run)
    assert checked(tmp_path / "again").ok


@pytest.mark.slow
@parametrized("mode", MODES, by_default=1)
def test_rewritten_skills_come_back(tmp_path: Path, mode: str) -> None:
    """Suggestions, drafts and what was written of them; we repair its protected parts, the original does not."""
    (tmp_path / "SKILL.md").write_text(SKILL)
    settings = config(tmp_path, [f"optimizer.skill_update_mode={mode}", "env.skill_init=SKILL.md"])
    run = tmp_path / "run"
    asyncio.run(start(settings, run, rewriting_world().session()))
    first = exported(run, tmp_path / "first")
    whole_texts = "rewrite_result.json" if mode == "rewrite_from_suggestions" else "full_rewrite_result.json"
    assert list(first.glob(f"steps/*/{whole_texts}"))
    assert not list(first.glob("steps/*/edit_apply_report.json"))
    state = imported(first, tmp_path / "again")
    assert differences(first, exported(tmp_path / "again", tmp_path / "second")) <= NAMED
    assert not state.gaps
    report = checked(tmp_path / "again")
    assert report.ok, report.mismatch
    assert not {what for what in report.unchecked if what.startswith("candidates")}


@pytest.mark.slow
def test_items_that_were_compared_on_top_come_back(tmp_path: Path) -> None:
    """They have folders of their own, and the pairs that the policy leaves out are in a file of all."""
    options = ["optimizer.longitudinal_pair_policy=10_01", "optimizer.slow_update_samples=6", "train.num_epochs=2"]
    world = ScriptedWorld(environment=ScriptedEnvironment(train=12))
    run = tmp_path / "run"
    asyncio.run(start(config(tmp_path, options), run, world.session()))
    first = exported(run, tmp_path / "first")
    folder = first / "slow_update/epoch_02"
    on_top = {path.parent.name for path in folder.glob("rollout_curr/topup/*/results.jsonl")}
    every, kept = (read(folder / f"comparison_pairs{name}.json") for name in ("_all", ""))
    assert len(read(folder / "rollout_curr/results.jsonl")) == 6
    assert on_top == {row["id"] for row in every[6:]} != set()
    assert [row for row in every if row["category"] in ("improved", "regressed")][:6] == kept
    imported(first, tmp_path / "again")
    assert differences(first, exported(tmp_path / "again", tmp_path / "second")) <= NAMED
    assert comparable(tmp_path / "again") == comparable(run)
