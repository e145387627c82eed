"""Result folders of the original, whole and damaged, as runs of ours; no number is made up."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command import command
from support.exchange import checked, gaps, imported, read
from support.logs import events_of
from support.original_folder import C2, GUIDED, V0, V1, V4, dump, killed, resumed, whole
from support.params import parametrized
from support.ready import PATIENCE

from skillopt_es.engine.algorithms import fold
from skillopt_es.errors import DataError
from skillopt_es.events.catalog import CandidateBuilt, CandidateGated, GapFound, SkillScored, StepImported, StepSkipped
from skillopt_es.events.values import Edit
from skillopt_es.interchange.flat_config import HIDDEN
from skillopt_es.interchange.folder import read_folder
from skillopt_es.interchange.imported_edits import with_origins
from skillopt_es.interchange.imported_run import imported_run
from skillopt_es.projections.summary import summarize
from skillopt_es.runs.folders import is_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A complete run of the original, whose slow update is forced."""
    return whole(tmp_path / "results")


def test_a_complete_run_is_followed_to_its_end(folder: Path, tmp_path: Path) -> None:
    """Skills, scores and counts of every step and epoch."""
    state = imported(folder, tmp_path / "run")
    assert state.status == "completed"
    assert state.counts.accepted == 2
    assert state.counts.rejected == 3
    assert state.counts.skipped == 1
    assert state.current is not None
    assert state.best is not None
    assert (state.current.skill.text, str(state.current.origin)) == (GUIDED, "slow_update_epoch_02")
    assert (state.best.skill.text, state.best.value, state.best.step) == (V4, 0.75, 4)
    assert state.algorithm.meta_skill == "short rules help"
    assert not state.gaps
    verdicts = [event.verdict.action for event in events_of(tmp_path / "run") if isinstance(event, CandidateGated)]
    assert verdicts == ["accept_new_best", "reject", "accept_new_best", "reject", "reject"]


def test_items_that_were_won_and_lost_are_told_from_the_results(folder: Path, tmp_path: Path) -> None:
    """Both skills' results are there, so it is known on which items they differ."""
    imported(folder, tmp_path / "run")
    first = next(event for event in events_of(tmp_path / "run") if isinstance(event, CandidateGated))
    assert (first.verdict.compared, first.verdict.won, first.verdict.lost) == (4, ("v1",), ())
    assert (first.verdict.current_value, first.verdict.candidate_value) == (0.25, 0.5)


def test_a_gated_slow_update_can_be_the_best(tmp_path: Path) -> None:
    """Its own evaluation is an event like any other."""
    state = imported(whole(tmp_path / "results", gated=True), tmp_path / "run")
    assert state.best is not None
    assert (state.best.skill.text, state.best.value, str(state.best.origin)) == (GUIDED, 1.0, "slow_update_epoch_02")
    assert not state.gaps


def test_what_follows_is_derived_again_and_what_does_not_is_counted(folder: Path, tmp_path: Path) -> None:
    """Verdicts from scores, scores from results, texts from edits by the original's own rules."""
    imported(folder, tmp_path / "run")
    report = checked(tmp_path / "run")
    assert report.ok
    assert report.rollouts == sum(len(read(path)) for path in folder.rglob("results.jsonl"))
    events = events_of(tmp_path / "run")
    scored, built = (sum(isinstance(each, kind) for each in events) for kind in (SkillScored, CandidateBuilt))
    gated = sum(isinstance(event, CandidateGated) for event in events)
    assert report.decisions == scored + built + gated + 3  # placeholder, guidance, end
    assert report.unchecked["proposals"] == 5
    assert report.unchecked["skipped steps"] == 1


def _history(folder: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    rows = read(folder / "history.json")
    change(rows)
    dump(folder / "history.json", rows)


def test_a_verdict_that_does_not_follow_is_found(folder: Path, tmp_path: Path) -> None:
    """The record says reject, the scores say accept."""
    _history(folder, lambda rows: rows[1].update(current_score=0.25))
    imported(folder, tmp_path / "run")
    report = checked(tmp_path / "run")
    assert report.mismatch is not None
    assert report.mismatch.event == "CandidateGated"
    assert "the verdict is reject, not accept" in str(report.mismatch)


def test_a_score_that_its_results_do_not_have_is_found(folder: Path, tmp_path: Path) -> None:
    """As when the original reuses another candidate's results after a crash."""
    rows = (folder / "steps/step_0002/selection_eval/results.jsonl").read_text().replace('"hard": 1', '"hard": 0')
    (folder / "steps/step_0002/selection_eval/results.jsonl").write_text(rows)
    imported(folder, tmp_path / "run")
    report = checked(tmp_path / "run")
    assert report.mismatch is not None
    assert report.mismatch.event == "SkillScored"


def test_a_text_that_the_edits_do_not_give_is_found(folder: Path, tmp_path: Path) -> None:
    """Somebody changed an edit afterwards."""
    for name in ("merged_patch.json", "ranked_edits.json", "patches/minibatch_fail_000.json"):
        path = folder / "steps/step_0001" / name
        path.write_text(path.read_text().replace("- two", "- three"))
    imported(folder, tmp_path / "run")
    report = checked(tmp_path / "run")
    assert report.mismatch is not None
    assert report.mismatch.event == "CandidateBuilt"


def test_a_key_in_a_config_stays_where_it_is(folder: Path, tmp_path: Path) -> None:
    """The original keeps some of its keys in clear text; none of them comes into a log."""
    state = imported(folder, tmp_path / "run")
    assert state.started is not None
    assert state.started.config["imported"]["azure_openai_api_key"] == HIDDEN  # type: ignore[index,call-overload]
    assert b"sk-very-secret" not in (tmp_path / "run/log.db").read_bytes()


# --- what is missing ------------------------------------------------------------------------------------------------


def test_rollouts_that_were_deleted_leave_unknown_counts(folder: Path, tmp_path: Path) -> None:
    """The recorded means stay; over how many items, and which, is unknown and not 0."""
    for path in folder.rglob("results.jsonl"):
        path.unlink()
    state = imported(folder, tmp_path / "run")
    events = events_of(tmp_path / "run")
    gate = next(event for event in events if isinstance(event, SkillScored) and event.place == "e1/s1/gate")
    assert (gate.score.hard, gate.score.measured, gate.score.unmeasured) == (0.5, None, None)
    first = next(event for event in events if isinstance(event, CandidateGated))
    assert (first.verdict.action, first.verdict.compared, first.verdict.current_value) == (
        "accept_new_best",
        None,
        None,
    )
    recorded = next(event for event in events if isinstance(event, StepImported))
    assert recorded.batches[0].items is None
    assert ("baseline", "what the initial skill measured") in gaps(state)
    assert ("e1/s1/b0", "the result of each training item") in gaps(state)
    assert checked(tmp_path / "run").unchecked["scores without results"] > 0


def test_edits_that_were_deleted_leave_counts_as_recorded(folder: Path, tmp_path: Path) -> None:
    """What the record counts is known, what only the files say is not."""
    for path in [*folder.glob("steps/*/merged_patch.json"), *folder.glob("steps/*/patches/*")]:
        path.unlink()
    state = imported(folder, tmp_path / "run")
    line = summarize(events_of(tmp_path / "run")).step_lines[0]
    assert (line.proposed, line.merged, line.chosen, line.applied) == (None, 2, 2, 2)
    assert ("e1/s1", "which edits were merged and chosen") in gaps(state)
    assert checked(tmp_path / "run").unchecked["candidates without their edits"] == 5


def test_a_candidates_text_is_found_by_its_hash(folder: Path, tmp_path: Path) -> None:
    """Accepted, it is the skill that was kept; rejected and nowhere else, it stays unknown with its verdict."""
    (folder / "steps/step_0001/candidate_skill.md").unlink()
    state = imported(folder, tmp_path / "run")
    assert not state.gaps
    (folder / "steps/step_0005/candidate_skill.md").unlink()
    (folder / "steps/step_0005/ranked_edits.json").unlink()
    state = imported(folder, tmp_path / "again")
    assert gaps(state) == {("e2/s5", "the candidate's text")}
    rejected = [event for event in events_of(tmp_path / "again") if isinstance(event, CandidateGated)][3]
    assert (rejected.step, rejected.verdict.action, rejected.candidate) == (5, "reject", "")


def test_a_step_without_any_file_is_a_gap(folder: Path, tmp_path: Path) -> None:
    """The skill after it is known from its file; how it came about is not."""
    shutil.rmtree(folder / "steps/step_0001")
    _history(folder, lambda rows: rows.pop(0))
    state = imported(folder, tmp_path / "run")
    assert gaps(state) == {("e1/s1", "the step")}
    after = next(event for event in events_of(tmp_path / "run") if isinstance(event, GapFound))
    assert after.skill is not None
    assert after.skill.text == V1
    assert state.counts.accepted == 1
    assert [line.verdict for line in summarize(events_of(tmp_path / "run")).step_lines][:2] == ["unknown", "reject"]


def test_a_skill_that_nothing_explains_is_a_gap(folder: Path, tmp_path: Path) -> None:
    """Such as the one after notes went into an appendix: the text is followed, its score is not known."""
    (folder / "skills/skill_v0002.md").write_text(f"{V1}\n- by hand\n")
    state = imported(folder, tmp_path / "run")
    assert ("e1/s2", "what changed the current skill") in gaps(state)
    changed = next(event for event in events_of(tmp_path / "run") if isinstance(event, GapFound))
    assert changed.skill is not None
    assert changed.skill.text.endswith("- by hand\n")


def test_broken_files_are_listed_and_the_others_used(folder: Path, tmp_path: Path) -> None:
    """History broken: the steps' own records; a broken result line: the others; a wrong value: unknown."""
    (folder / "history.json").write_text('[{"step": 1')
    (folder / "meta_skill/epoch_02/meta_skill_result.json").write_text("[]")
    rows = folder / "steps/step_0001/rollout/results.jsonl"
    rows.write_text(rows.read_text() + '{"id": "t1-9", "ha')
    record = read(folder / "steps/step_0003/step_record.json")
    dump(folder / "steps/step_0003/step_record.json", {**record, "rollout_n": "two", "wall_time_s": float("nan")})
    state = imported(folder, tmp_path / "run")
    assert state.counts.accepted == 2
    assert {(gap.what, gap.why.split(":")[0]) for gap in state.gaps} == {
        ("history.json", "not valid JSON"),
        ("meta_skill/epoch_02/meta_skill_result.json", "holds no object"),
        ("steps/step_0001/rollout/results.jsonl", "line 3 is not a JSON object"),
        ("steps/step_0003/step_record.json", "rollout_n is 'two', not a whole number"),
    }


def test_half_written_state_is_no_matter(folder: Path, tmp_path: Path) -> None:
    """The state file says nothing that the records do not."""
    (folder / "runtime_state.json").write_text('{"last_completed_step": 6, "curr')
    state = imported(folder, tmp_path / "run")
    assert state.steps_done == 6
    assert gaps(state) == {("folder", "runtime_state.json")}


def test_a_run_that_was_killed_stands_in_its_step(tmp_path: Path) -> None:
    """What was chosen is there, how it ended is not."""
    state = imported(killed(tmp_path / "results"), tmp_path / "run")
    assert state.status == "running"
    assert state.steps_done == 4
    assert state.algorithm.step is not None
    assert state.algorithm.step.number == 5
    assert state.algorithm.step.ranked is not None
    assert state.built is not None
    assert state.completed is None


def test_a_step_that_was_done_twice_counts_once(tmp_path: Path) -> None:
    """As after a crash between the history and the state."""
    folder = resumed(tmp_path / "results")
    assert [row["step"] for row in read(folder / "history.json")][:4] == [1, 2, 2, 3]
    state = imported(folder, tmp_path / "run")
    assert state.counts.rejected == 3
    assert gaps(state) == {("folder", "history.json")}


def test_a_skipped_step_keeps_the_originals_word(folder: Path, tmp_path: Path) -> None:
    """It does not tell whether there was nothing to fix or no analyst answered, so neither do we."""
    imported(folder, tmp_path / "run")
    skipped = next(event for event in events_of(tmp_path / "run") if isinstance(event, StepSkipped))
    assert skipped.reason == "skip_no_patches"


@parametrized("name", ["config.json", "history.json", "summary.json", "runtime_state.json"], by_default=2)
def test_no_damage_of_a_file_stops_an_import(folder: Path, name: str) -> None:
    """Whatever a file holds, there is a log that folds."""
    (folder / name).unlink()
    for content in ("", "[]", "null", '"x"', "{", "[1]", '{"step": {}}', "[" * 100_000, "\ud800"):
        state = fold(imported_run(read_folder(folder)).events)
        assert state.started is not None
        assert state.started.skill.text == V0
        (folder / name).write_bytes(content.encode(errors="surrogatepass"))


def test_a_step_of_an_absurd_number_is_no_step(folder: Path) -> None:
    """A slip in one number does not make a million steps that are missing."""
    (folder / "steps/step_999999999").mkdir()
    _history(folder, lambda rows: rows[5].update(step=10**12))
    run = imported_run(read_folder(folder))
    assert fold(run.events).steps_done == 6
    assert {gap.what for gap in fold(run.events).gaps} == {"history.json"}


def test_an_empty_step_folder_far_beyond_the_last_step_is_no_step(folder: Path) -> None:
    """Nor is each number up to it a step that is missing; one with something in it is."""
    (folder / "steps/step_100000").mkdir()
    (folder / "steps/step_0009").mkdir()
    assert list(read_folder(folder).steps) == [1, 2, 3, 4, 5, 6]
    (folder / "steps/step_0009/candidate_skill.md").write_text(C2)
    assert list(read_folder(folder).steps) == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def _with_number(path: Path, key: str, digits: str) -> None:
    """Puts a number into a file that no Python can write as one."""
    value = read(path)
    (value[1] if isinstance(value, list) else value)[key] = "@"
    path.write_text(json.dumps(value).replace('"@"', digits))


@pytest.mark.parametrize("key", ["rollout_hard", "rollout_n", "edit_budget"])
def test_a_number_of_hundreds_of_digits_is_told_and_unknown(folder: Path, tmp_path: Path, key: str) -> None:
    """It fits into no float and no table; the rest of the folder is read."""
    _with_number(folder / "history.json", key, "1" * 400)
    state = imported(folder, tmp_path / "run")
    assert state.status == "completed"
    [gap] = [gap for gap in state.gaps if gap.what == "history.json"]
    assert gap.why == f"{key} is {'1' * 60}, not a number of usual size"


@pytest.mark.parametrize("digits", ["1e999", "-1e999", "Infinity", "NaN"])
def test_a_setting_without_end_is_unknown(folder: Path, tmp_path: Path, digits: str) -> None:
    """As if it were null, and no reason to refuse the import."""
    _with_number(folder / "config.json", "batch_size", digits)
    assert imported(folder, tmp_path / "run").status == "completed"


def test_a_hash_that_no_text_has_is_told(folder: Path, tmp_path: Path) -> None:
    """A candidate file that is another text is not passed off as the candidate."""
    (folder / "steps/step_0002/candidate_skill.md").write_text(C2 + "more\n")
    state = imported(folder, tmp_path / "run")
    assert gaps(state) == {("e1/s2", "the candidate's text")}


# --- the command ----------------------------------------------------------------------------------------------------


def test_what_is_no_result_folder_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """A folder that is not there, of something else, or without a skill to start from."""
    with pytest.raises(DataError, match="no such folder"):
        read_folder(tmp_path / "nowhere")
    (tmp_path / "else").mkdir()
    with pytest.raises(DataError, match="is not a result folder of SkillOpt"):
        read_folder(tmp_path / "else")
    folder = whole(tmp_path / "results")
    (folder / "skills/skill_v0000.md").unlink()
    with pytest.raises(DataError, match=r"skill_v0000\.md: it is not there"):
        read_folder(folder)
    done = command("import", "nowhere", cwd=tmp_path)
    assert (done.code, done.out, done.err.splitlines()[0]) == (2, "", "error: nowhere: no such folder")
    assert not (tmp_path / "runs").exists()


def test_an_imported_run_can_be_read_and_not_resumed(folder: Path, tmp_path: Path) -> None:
    """Every reading command works; going on is refused in one sentence."""
    done = command("import", folder, "--out", "theirs", cwd=tmp_path)
    assert done.code == 0
    assert done.out.startswith("imported    theirs: ")
    status = command("status", "theirs", cwd=tmp_path)
    assert "imported from results of skillopt" in status.out
    assert "items that are not in the log" in status.out
    assert command("status", "--json", cwd=tmp_path).json["imported"] == "skillopt"
    assert "before step 5 of 6" in command("replay", "--until", "step", "4", cwd=tmp_path).out
    check = command("replay", "--check", "--json", cwd=tmp_path).json["check"]
    assert check["ok"]
    assert check["not_checkable"]["proposals"] == 5
    assert "GapFound" not in command("log", cwd=tmp_path).out
    assert V4.splitlines()[-1] in command("export", "-", cwd=tmp_path).out
    refused = command("resume", "theirs", cwd=tmp_path)
    assert refused.code == 2
    assert refused.err.splitlines()[0] == (
        "error: theirs was imported from results of skillopt: it can be read, but not continued"
    )
    assert command("import", folder, "--out", "theirs", cwd=tmp_path).code == 2
    assert command("verify", "theirs", cwd=tmp_path).code == 0


def test_usage_is_what_the_original_counted(folder: Path, tmp_path: Path) -> None:
    """By stage for the whole run, by step as recorded; other groups it does not have."""
    command("import", folder, "--out", "theirs", cwd=tmp_path)
    usage = command("usage", "--json", cwd=tmp_path).json
    assert usage["by_stage"]["analyst"] == {"calls": 9, "input_tokens": 2000, "output_tokens": 90}
    assert usage["by_step"]["4"] == {"calls": 1, "input_tokens": 400, "output_tokens": 10}
    assert usage["by_step"]["3"] == {"calls": None, "input_tokens": None, "output_tokens": None}
    assert command("usage", "--by", "role", cwd=tmp_path).code == 2
    summary = json.loads((folder / "summary.json").read_text())
    summary["token_summary"]["analyst"]["calls"] = 2  # as after a resume, which forgets what was before
    dump(folder / "summary.json", summary)
    command("import", folder, "--out", "later", cwd=tmp_path)
    assert "of the recorded steps only" in command("usage", "later", cwd=tmp_path).out


def test_an_input_that_no_merged_edit_repeats_may_be_in_any() -> None:
    """And one that is repeated word for word is in that one; both are assumed."""
    words = {"a#1": "one", "a#2": "two", "b#1": "one", "b#2": "three"}
    inputs = [Edit(id=name, op="append", content=said) for name, said in words.items()]
    merged = [Edit(id=f"m#{number}", op="append", content=said) for number, said in enumerate(("one", "new"), start=1)]
    found = with_origins(merged, inputs)
    assert [edit.origins for edit in found] == [("a#1", "b#1", "a#2", "b#2"), ("a#2", "b#2")]
    assert all(edit.origins_assumed for edit in found)
    [alone] = with_origins(merged[1:], inputs[:1])
    assert (alone.origins, alone.origins_assumed) == (("a#1",), True)
    [of_nothing] = with_origins(merged[1:], [])
    assert (of_nothing.origins, of_nothing.origins_assumed) == ((), False)


# --- what is not a plain file, and a writer that is killed ------------------------------------------------------------


@pytest.mark.parametrize("path", ["steps/step_0001/candidate_skill.md", "steps", "history.json"])
def test_no_link_is_followed(folder: Path, tmp_path: Path, path: str) -> None:
    """Neither to a file nor to a folder: what lies elsewhere on this machine is nobody's result."""
    elsewhere = tmp_path / "elsewhere"
    (folder / path).rename(elsewhere)
    (folder / path).symlink_to(elsewhere)
    done = command("import", folder, "--out", "theirs", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {folder / path} is a symbolic link, which an import does not follow\n")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("path", ["steps/step_0001/patches/minibatch_fail_000.json", "skills/skill_v0000.md"])
def test_a_pipe_is_refused_and_not_waited_for(folder: Path, tmp_path: Path, path: str) -> None:
    """Nobody would ever write to it."""
    (folder / path).unlink()
    os.mkfifo(folder / path)
    done = command("import", folder, cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {folder / path} is not a plain file\n")


KILLED_IN_THE_MIDDLE = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from attrs import evolve
from skillopt_es.interchange.folder import read_folder
from skillopt_es.interchange.imported_run import imported_run
from skillopt_es.interchange.imported_run import write_run

class Texts(tuple):
    def __iter__(self):
        os.kill(os.getpid(), signal.SIGKILL)

run = evolve(imported_run(read_folder(Path(sys.argv[1]))), texts=Texts())
write_run(run, Path(sys.argv[2]), now=lambda: datetime.now(UTC))
"""


def test_an_import_that_was_killed_can_be_done_again(folder: Path, tmp_path: Path) -> None:
    """Its log is whole or not there, and the name is not lost."""
    run = tmp_path / "runs" / "theirs"
    words = [sys.executable, "-c", KILLED_IN_THE_MIDDLE, str(folder), str(run)]
    assert subprocess.run(words, check=False, timeout=PATIENCE).returncode == -signal.SIGKILL
    assert (run / "log.db.new").exists()
    assert not is_run(run)
    assert command("import", folder, "--out", "theirs", cwd=tmp_path).code == 0
    assert sorted(path.name for path in run.iterdir() if not path.name.startswith("log.db-")) == [
        *("head.json", "lock", "log.db"),
    ]
    assert command("verify", "theirs", cwd=tmp_path).code == 0
