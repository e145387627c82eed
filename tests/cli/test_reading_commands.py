"""The commands that read a run: what they print, for people and for programs, and that they change nothing."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from support.audited import Audited
from support.event_runs import forge
from support.in_process import Cli, Done
from support.logs import events_of
from support.ready import PATIENCE
from support.scripted import NOON, ScriptedEnvironment, ScriptedWorld, config
from support.tamper import cut_off, other_verdict, rewritten, seqs_of

from skillopt_es.events.catalog import (
    CandidateGated,
    EpochCompleted,
    PatchProposed,
    RunCompleted,
    StepSkipped,
    TextsErased,
)
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import SkillTree
from skillopt_es.events.writer import RunWriter
from skillopt_es.sessions.session import read_state, start


@pytest.fixture
def runs(demo_run: Path) -> Path:
    """The directory that holds the demo's run and no other."""
    return demo_run.parent


def field(done: Done, name: str) -> str:
    """The rest of the line that begins with a word."""
    [line] = [line for line in done.lines if line.startswith(f"{name} ")]
    return line.removeprefix(name).strip()


# --- replay --------------------------------------------------------------------------------------------------------


def test_replay_rebuilds_the_end_of_a_step(cli: Cli, demo_run: Path) -> None:
    """The state after the event that ended it, by folding those before."""
    [seq] = seqs_of(demo_run, CandidateGated, lambda event: event.step == 7)
    state = read_state(demo_run, until=seq)
    assert state.current is not None
    done = cli("replay", demo_run, "--until", "step", 7)
    assert (done.code, done.err) == (0, "")
    assert field(done, "run") == f"demo after event {seq:,} of {len(events_of(demo_run)):,}"
    assert field(done, "position") == "epoch 2 of 3, before step 8 of 12"
    assert state.current.skill.hash[:12] in field(done, "current")


@pytest.mark.parametrize("step", [10, 12])
def test_a_step_may_end_with_a_skip(cli: Cli, demo_run: Path, step: int) -> None:
    """Whatever ended it."""
    [seq] = [
        *seqs_of(demo_run, CandidateGated, lambda e: e.step == step),
        *seqs_of(demo_run, StepSkipped, lambda e: e.step == step),
    ]
    document = cli("replay", demo_run, "--until", "step", step, "--json").json
    assert (document["seq"], document["steps_done"]) == (seq, step)


def test_replay_knows_epochs_and_single_events(cli: Cli, demo_run: Path) -> None:
    """The other two kinds of moment."""
    [seq] = seqs_of(demo_run, EpochCompleted, lambda event: event.epoch == 2)
    epoch = cli("replay", demo_run, "--until", "epoch", 2, "--json").json
    assert (epoch["seq"], epoch["epochs_done"], epoch["open_step"]) == (seq, 2, None)
    assert cli("replay", demo_run, "--until", "seq", seq, "--json").json == epoch
    assert cli("replay", demo_run, "--until", "seq", 1, "--json").json["current"]["origin"] == "initial_skill"


def test_without_a_moment_it_is_now(cli: Cli, runs: Path) -> None:
    """The newest run's last event."""
    done = cli("replay", "--dir", runs)
    assert field(done, "status") == "completed"
    assert field(done, "position") == "complete after 12 steps"


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        (("step", 13), "has no step 13: it is a run of 12 steps"),
        (("epoch", 4), "has no epoch 4: it is a run of 3 epochs"),
        (("seq", 99999), "has no event 99999"),
        (("step", 0), "0 is not in the range"),
        (("step", "x"), "'x' is not a valid whole number"),
        (("day", 1), "'day' is not one of"),
    ],
)
def test_a_moment_that_is_not_there_is_refused(cli: Cli, demo_run: Path, moment: tuple[str, object], said: str) -> None:
    """In a sentence, as wrong usage."""
    done = cli("replay", demo_run, "--until", *moment)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_moment_to_come_says_how_far_the_run_is(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """Which step ended last."""
    [seq] = seqs_of(demo_run, CandidateGated, lambda event: event.step == 5)
    cut = cut_off(demo_run, tmp_path / "cut", seq)
    done = cli("replay", cut, "--until", "step", 6)
    assert done.code == 2
    assert "cut has not reached the end of step 6: the last step that ended is 5 of 12" in done.err
    young = cut_off(demo_run, tmp_path / "young", 3)
    assert "no epoch of its 3 has ended" in cli("replay", young, "--until", "epoch", 1).err


def test_replay_check_derives_every_decision(cli: Cli, demo_run: Path) -> None:
    """And says how many."""
    done = cli("replay", demo_run, "--check")
    assert done.code == 0
    assert field(done, "check").startswith("ok: 142 decisions derived again")
    assert cli("replay", demo_run, "--check", "--json").json["check"]["ok"] is True
    assert cli("replay", demo_run, "--check", "--until", "step", 3, "--json").json["check"]["decisions"] < 142


def test_replay_check_names_the_event_that_does_not_follow(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """A log that is whole, in which a verdict was turned."""
    [seq] = seqs_of(demo_run, CandidateGated, lambda event: event.step == 3)
    lie = rewritten(demo_run, tmp_path / "lie", seq, lambda event: other_verdict(event, action="accept"))
    assert cli("verify", lie).code == 0
    done = cli("replay", lie, "--check")
    assert done.code == 1
    assert f"event {seq} (CandidateGated)" in done.err
    assert "verdict.action is 'accept', but follows as 'reject'" in done.err
    as_json = cli("replay", lie, "--check", "--json")
    assert as_json.code == 1
    assert as_json.json["check"]["mismatch"]["differences"] == [
        {"field": "verdict.action", "recorded": "'accept'", "derived": "'reject'"}
    ]


def test_replay_check_lists_what_differs_in_many_runs(cli: Cli, audited: Audited, tmp_path: Path) -> None:
    """A folder stands for all runs in it; each event that would be another one has a line, with its step."""
    plain = audited("plain")
    gates = seqs_of(plain, CandidateGated)[:2]
    lie = tmp_path / "runs" / "deep" / "lie"
    once = rewritten(plain, tmp_path / "once", gates[0], lambda event: other_verdict(event, won=("nobody",)))
    rewritten(once, lie, gates[1], lambda event: other_verdict(event, won=("nobody",)))
    shutil.copytree(plain, tmp_path / "runs" / "honest")
    (tmp_path / "runs" / "empty").mkdir()
    (tmp_path / "runs" / "empty" / "log.db").write_bytes(b"")
    done = cli("replay", "--check", tmp_path / "runs")
    assert done.code == 1
    deep, *rows, honest, summary = [line for line in done.lines if "unreadable" not in line]
    assert deep.startswith(f"differs     {lie}: 2 events would be others; ")
    assert [row.strip().partition(": verdict.won")[0] for row in rows] == [
        f"event {seq} (CandidateGated), step {step}" for step, seq in enumerate(gates, 1)
    ]
    assert [row.endswith("(after the first difference)") for row in rows] == [False, True]
    assert honest.startswith("ok          ")
    assert summary == "3 runs, 2 with a difference"
    assert f"unreadable  {tmp_path / 'runs' / 'empty'}: " in done.out
    found = cli("replay", "--check", tmp_path / "runs", "--json").json
    assert [row["check"]["ok"] for row in found] == [False, False, True]
    assert [each["follow_up"] for each in found[0]["check"]["mismatches"]] == [False, True]
    assert cli("replay", "--check", plain, tmp_path / "runs" / "honest").code == 0
    alone = cli("replay", "--check", lie)
    assert alone.code == 1
    assert f"event {gates[1]} (CandidateGated), step 2" in alone.out
    assert cli("replay", plain, tmp_path / "runs" / "honest").code == 2
    assert cli("replay", "--check", tmp_path / "nothing").code == 2


def test_replay_writes_the_moment_to_a_folder(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """Both skills and the state, the same bytes each time."""
    words = ("replay", demo_run, "--until", "step", 3, "--out", tmp_path / "then")
    assert cli(*words).code == 0
    first = {path: path.read_bytes() for path in (tmp_path / "then").rglob("*") if path.is_file()}
    assert cli(*words).code == 0
    assert {str(path.relative_to(tmp_path / "then")) for path in first} == {
        "current/SKILL.md",
        "best/SKILL.md",
        "state.json",
    }
    assert all(path.read_bytes() == content for path, content in first.items())
    state = json.loads((tmp_path / "then" / "state.json").read_bytes())
    text = (tmp_path / "then" / "current" / "SKILL.md").read_text(encoding="utf-8")
    assert SkillTree({"SKILL.md": text}).hash == state["current"]["hash"]


# --- log and show --------------------------------------------------------------------------------------------------


def test_log_is_one_line_an_event(cli: Cli, demo_run: Path) -> None:
    """Number, time, type and a few words, never broken."""
    events = events_of(demo_run)
    done = cli("log", demo_run)
    assert len(done.lines) == len(events)
    for number, (line, event) in enumerate(zip(done.lines, events, strict=True), start=1):
        assert line.split()[0] == str(number)
        assert line.split()[3] == type(event).__name__
        assert len(line) < 160


def test_log_chooses(cli: Cli, demo_run: Path) -> None:
    """By type in any spelling, from a number on, and the last few, which are of that type."""
    gated = cli("log", demo_run, "--type", "candidategated", "--type", "StepSkipped", "--last", 3).lines
    assert [line.split()[3] for line in gated] == ["StepSkipped", "StepSkipped", "CandidateGated"]
    end = len(events_of(demo_run))
    assert [line.split()[0] for line in cli("log", demo_run, "--after", end - 2).lines] == [str(end - 1), str(end)]
    assert cli("log", demo_run, "--after", end).out == ""
    wrong = cli("log", demo_run, "--type", "Gated")
    assert wrong.code == 2
    assert "did you mean CandidateGated?" in wrong.err


def test_log_as_json_is_one_whole_event_a_line(cli: Cli, demo_run: Path) -> None:
    """With its hash and its texts in their places."""
    with EventLog.open(demo_run) as log:
        recorded = list(log.read())
    rows = [json.loads(line) for line in cli("log", demo_run, "--json").lines]
    assert [(row["seq"], row["hash"]) for row in rows] == [(each.seq, each.hash) for each in recorded]
    assert rows[0]["data"]["skill"]["files"]["SKILL.md"].startswith("# Front desk")


def test_follow_ends_with_the_run(cli: Cli, demo_run: Path) -> None:
    """A complete run has nothing more to come."""
    assert len(cli("log", demo_run, "--last", 2, "--follow").lines) == 2
    assert cli("log", demo_run, "--after", 99999, "--follow").out == ""
    assert len(cli("log", demo_run, "--type", "RunStarted", "--follow").lines) == 1


def test_follow_ends_where_a_command_recorded_something_after_the_end(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """The run is complete all the same."""
    run = cut_off(demo_run, tmp_path / "erased", len(events_of(demo_run)))
    with closing(RunWriter.open(run, now=lambda: NOON)) as writer:
        gone = TextsErased(items=("i",), reason="asked", by="me", texts=(), events=())
        asyncio.run(writer.append([gone], expected=writer.log.head().seq))
    assert len(cli("log", run, "--last", 2, "--follow").lines) == 2


def follow(run: Path, *words: str) -> subprocess.Popen[str]:
    """`log --follow` in a process of its own."""
    command = [str(Path(sys.executable).parent / "skillopt-es"), "log", str(run), "--follow", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_follow_sees_what_is_appended_and_stops_after_the_last_event(demo_run: Path, tmp_path: Path) -> None:
    """Also when that one is not of the type that is asked for."""
    events = events_of(demo_run)
    cut = cut_off(demo_run, tmp_path / "cut", len(events) - 3)
    with follow(cut, "--last", "1", "--type", "SkillScored") as process:
        assert process.stdout is not None
        before = process.stdout.readline()
        with RunWriter.open(cut, now=lambda: NOON) as writer:
            asyncio.run(writer.append(events[-3:], expected=len(events) - 3))
        after, err = process.communicate(timeout=PATIENCE)
    assert "SkillScored" in before
    assert [line.split()[3] for line in after.splitlines()] == ["SkillScored", "SkillScored"]
    assert (process.returncode, err) == (0, "")


def test_follow_waits_for_a_run_that_is_not_there_yet(demo_run: Path, tmp_path: Path) -> None:
    """It says so, and shows the run from its first event on."""
    with follow(tmp_path / "soon") as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert process.stderr.readline() == f"waiting for run {tmp_path / 'soon'} in runs\n"
        cut_off(demo_run, tmp_path / "soon", 3)
        assert "RunStarted" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)


def test_ctrl_c_ends_following(demo_run: Path, tmp_path: Path) -> None:
    """With the exit code of an interrupt and no traceback."""
    cut = cut_off(demo_run, tmp_path / "cut", 10)
    with follow(cut, "--last", "1") as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in err


def test_show_prints_an_event_whole(cli: Cli, demo_run: Path) -> None:
    """By its number; a rollout with its trajectory."""
    seq = seqs_of(demo_run, PatchProposed, lambda event: bool(event.edits))[0]
    done = cli("show", demo_run, seq)
    assert done.lines[0].startswith(f"event {seq}: PatchProposed")
    assert "edits:\n  - id: e1/s1/b0/failure-0#1\n    op: append\n" in done.out
    rollout = cli("show", demo_run, 2).out
    assert "--- reply" in rollout
    assert "[EVALUATION RESULT]" in rollout


def test_show_prints_a_call_whole(cli: Cli, demo_run: Path) -> None:
    """By its slot or its digest: every message and the answer."""
    slot = "e1/s1/b0/failure-0"
    done = cli("show", demo_run, slot)
    assert done.lines[0].startswith(f"call {slot}, attempt 1: answered")
    for part in ("--- system", "--- user", "--- answer (stop)", "## Failed trajectories", '"edits"'):
        assert part in done.out
    [call] = cli("show", demo_run, slot, "--json").json
    assert [message["role"] for message in call["messages"]] == ["system", "user"]
    assert cli("show", demo_run, call["digest"][:16]).out == done.out


def test_show_prints_a_skill(cli: Cli, demo_run: Path) -> None:
    """By the beginning of its hash, as `status` and `log` print it."""
    best = read_state(demo_run).best
    assert best is not None
    done = cli("show", demo_run, best.skill.hash[:8])
    assert done.out.endswith(best.skill.text)
    assert cli("show", demo_run, best.skill.hash[:8].upper(), "--json").json["files"] == dict(best.skill.files)


def test_show_says_what_it_does_not_find(cli: Cli, demo_run: Path) -> None:
    """And what could be asked for."""
    for what in ("999999", "e9/s9/rank", "ffffffffffff", "../etc"):
        done = cli("show", demo_run, what)
        assert (done.code, done.out) == (2, "")
        assert f"has no event, call or skill {what}" in done.err
    assert cli("show", "a", "b", "c").code == 2


# --- runs, status, usage, verify -----------------------------------------------------------------------------------


@pytest.fixture
def several(demo_run: Path, tmp_path: Path) -> Path:
    """A directory with a complete run, one that was killed, one that paused, one that never began and a damaged one."""
    runs = tmp_path / "runs"
    shutil.copytree(demo_run, runs / "done")
    [seq] = seqs_of(demo_run, CandidateGated, lambda event: event.step == 5)
    cut_off(demo_run, runs / "killed", seq + 4)
    broken = ScriptedWorld(environment=ScriptedEnvironment(broken=lambda item: item in {"v1", "v5"}))
    asyncio.run(start(config(tmp_path), runs / "paused", broken.session()))
    RunWriter.create(runs / "new", run_id="new", name="new", now=lambda: NOON).close()
    cut_off(demo_run, runs / "damaged", 50)
    forge(runs / "damaged", "update events set data = replace(data, 'batches', 'botches') where seq = 43")
    (runs / "no-run").mkdir()
    return runs


def test_runs_lists_them_all(cli: Cli, several: Path) -> None:
    """With where each one stands; a damaged one with what is wrong, not instead of the others."""
    done = cli("runs", "--dir", several)
    assert done.code == 0
    rows = {line.split()[0]: line.split()[1:] for line in done.lines[1:6]}
    assert rows["done"][:6] == ["completed", "12/12", "1.0000", "1.0000", "0.9750", "938"]
    assert rows["killed"][:3] == ["stopped", "5/12", "0.7000"]
    assert rows["paused"][:2] == ["paused", "0/9"]
    assert any(line.startswith("paused: paused, 2 of 12 items") for line in done.lines)
    assert rows["new"][0] == "new"
    assert rows["damaged"][:2] == ["damaged", "0/12"]
    assert any(line.startswith("damaged: event 43 (EpochPlanned) was changed") for line in done.lines)
    found = cli("runs", "--dir", several, "--json").json
    assert [row["run"] for row in found if row["problem"]] == ["damaged"]
    statuses = {row["run"]: row["status"] for row in found}
    assert statuses == {
        "done": "completed",
        "killed": "stopped",
        "paused": "paused",
        "new": "new",
        "damaged": "stopped",
    }


def test_runs_of_an_empty_directory(cli: Cli, tmp_path: Path) -> None:
    """Nothing on stdout, a hint on stderr; for programs an empty list."""
    done = cli("runs", "--dir", tmp_path)
    assert (done.code, done.out) == (0, "")
    assert f"`skillopt-es run --dir {tmp_path}` starts one" in done.err
    assert cli("runs", "--dir", tmp_path, "--json").json == []


def test_a_live_writer_makes_a_run_running(cli: Cli, several: Path) -> None:
    """Told by the lock file: a process of this machine that lives."""
    run = several / "killed"
    with RunWriter.open(run, now=lambda: NOON):
        assert field(cli("status", run), "run") == "killed (running)"
        assert "log killed --follow" in field(cli("status", run), "next")
    assert field(cli("status", run), "run") == "killed (stopped)"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    holder = {"host": socket.gethostname(), "pid": gone.pid, "start": "x"}
    (run / "lock").write_text(json.dumps(holder), encoding="utf-8")
    assert field(cli("status", run), "run") == "killed (stopped)"
    (run / "lock").write_text(json.dumps({**holder, "pid": os.getpid()}), encoding="utf-8")
    assert field(cli("status", run), "run") == "killed (running)"


def test_status_has_a_line_a_step(cli: Cli, demo_run: Path, runs: Path) -> None:
    """And one an epoch, what was scored, and the next command."""
    done = cli("status", "--dir", runs)
    chosen = " (chosen by this score; the test tells more)"
    assert field(done, "validation") == f"hard score: initial 0.1500, current 1.0000, best 1.0000{chosen}"
    assert field(done, "test") == "initial 0.1500, best 0.9750, final 0.9750 (hard score)"
    assert field(done, "next") == f"skillopt-es export demo SKILL.md --dir {runs}"
    table = done.lines[done.lines.index("") + 2 :]
    assert table[0].split() == ["1", "1", "0.0833", "4/4/2/2", "0.1500", "0.3000", "accept", "new", "best", "0.3000"]
    assert sum("slow update" in line for line in done.lines) == 3
    document = cli("status", demo_run, "--json").json
    assert len(document["lines"]) == 15
    assert document["completed"]["test_best"]["hard"] == 0.975


def test_test_scores_are_shown_by_type_of_task(cli: Cli, demo_run: Path) -> None:
    """In `status`, `show` and as JSON, for the initial, the best and the final skill."""
    head = cli("replay", demo_run, "--json").json["head"]
    for done in (cli("status", demo_run), cli("show", demo_run, head)):
        [place] = [line.split() for line in done.lines if line.startswith("place ")]
        assert place == ["place", "6", "1.0000", "1.0000", "1.0000"]
        [phone] = [line.split() for line in done.lines if line.startswith("phone ")]
        assert phone == ["phone", "3", "0.0000", "0.6667", "0.6667"]
    status, shown = cli("status", demo_run, "--json").json, cli("show", demo_run, head, "--json").json
    assert shown["tests"] == status["tests"]
    for name, score in status["tests"].items():
        assert score["hard"] == shown["data"][f"test_{name}"]["hard"]
        assert sum(each["measured"] for each in score["by_type"].values()) == score["measured"] == 40
    baseline = cli("log", demo_run, "--type", "SkillScored").lines[0].split()[0]
    assert [line.split()[0] for line in cli("show", demo_run, baseline).lines if line.startswith("place ")] == ["place"]


@pytest.mark.parametrize(
    ("run", "after"), [("killed", "resume killed"), ("paused", "resume paused"), ("new", "run CONFIG --name new")]
)
def test_status_says_what_to_type_next(cli: Cli, several: Path, run: str, after: str) -> None:
    """A run that is not done goes on; a paused one says why it stopped."""
    done = cli("status", run, "--dir", several)
    assert done.code == 0
    assert after in field(done, "next")
    assert ("2 of 12 items at baseline could not be measured" in field(done, "run")) == (run == "paused")


def test_usage_adds_up(cli: Cli, demo_run: Path) -> None:
    """Whatever it is grouped by."""
    for by in ("stage", "role", "step", "epoch", "place"):
        done = cli("usage", demo_run, "--by", by)
        rows = [[int(cell.replace(",", "")) for cell in line.split()[1:6]] for line in done.lines[1:]]
        *groups, total = rows
        assert [sum(column) for column in zip(*groups, strict=True)] == total
        assert done.lines[-1].split()[-2:] == ["-", "-"]
    document = cli("usage", demo_run, "--json").json
    assert document["total"]["calls"] == 938
    assert document["total"]["reasoning_tokens"] is None
    assert document["by_step"]["12"]["calls"] == 56


def test_usage_of_a_run_without_calls(cli: Cli, several: Path) -> None:
    """A total of nothing."""
    assert cli("usage", "new", "--dir", several).lines[1].split()[:2] == ["total", "0"]


def test_verify_tells_whole_from_damaged(cli: Cli, several: Path, demo_run: Path) -> None:
    """By exit code, in words and as JSON."""
    good, bad = cli("verify", demo_run), cli("verify", several / "damaged")
    assert (good.code, bad.code) == (0, 1)
    assert good.out.startswith("demo: ok; 1,023 events, 938 calls")
    assert "event 43: event 43 (EpochPlanned) was changed after it was recorded" in bad.out
    assert cli("verify", demo_run, "--json").json["ok"] is True
    damaged = cli("verify", several / "damaged", "--json")
    assert damaged.code == 1
    assert damaged.json["problems"][0]["seq"] == 43


def test_reading_a_damaged_log_is_an_error_with_a_next_step(cli: Cli, several: Path) -> None:
    """Not a traceback."""
    for words in (("log",), ("replay",), ("export", "out"), ("show", "45"), ("status",)):
        name, *more = words
        done = cli(name, several / "damaged", *more)
        if done.code:
            assert (done.code, "event 43" in done.err, "verify" in done.err) == (1, True, True)


# --- export --------------------------------------------------------------------------------------------------------


def test_export_writes_the_best_skill_as_it_is(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """Byte for byte, to a file or to stdout, below its frontmatter into a folder; never over something by accident."""
    best = read_state(demo_run).best
    assert best is not None
    text = best.skill.text
    file = tmp_path / "deep" / "MY.md"
    assert cli("export", demo_run, file).out == f"{file}\n"
    assert file.read_bytes() == text.encode()
    refused = cli("export", demo_run, file)
    assert (refused.code, refused.out) == (2, "")
    assert "exists already" in refused.err
    assert cli("export", demo_run, file, "--force").code == 0
    assert cli("export", demo_run, f"{tmp_path}/new/").lines[0] == str(tmp_path / "new" / "SKILL.md")
    assert (tmp_path / "new" / "SKILL.md").read_bytes().endswith(b"\n---\n" + text.encode())
    assert cli("export", demo_run, "-").out == text


def test_export_writes_any_skill_of_any_moment(cli: Cli, demo_run: Path) -> None:
    """The one of that time."""
    initial = cli("export", demo_run, "-", "--which", "initial").out
    assert initial == events_of(demo_run)[0].skill.text  # type: ignore[attr-defined]
    assert cli("export", demo_run, "-", "--at", "seq", 1).out == initial
    early = cli("export", demo_run, "-", "--which", "current", "--at", "step", 3).out
    assert len(initial) < len(early) < len(cli("export", demo_run, "-").out)
    assert cli("export", demo_run, "-", "--at", "step", 99).code == 2


def test_export_of_events_is_byte_stable(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """One whole event a line, the same bytes each time, also from a copy."""
    shutil.copytree(demo_run, tmp_path / "copy")
    for number, run in enumerate((demo_run, demo_run, tmp_path / "copy")):
        assert cli("export", run, tmp_path / f"{number}.jsonl", "--format", "jsonl").code == 0
    content = (tmp_path / "0.jsonl").read_bytes()
    assert content == (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()
    assert len(content.splitlines()) == len(events_of(demo_run))
    assert cli("export", demo_run, "-", "--format", "jsonl").out.encode() == content


def test_export_of_tables(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """A database that any client reads."""
    assert cli("export", demo_run, tmp_path / "run.db", "--format", "sqlite").code == 0
    with closing(sqlite3.connect(tmp_path / "run.db")) as tables:
        assert tables.execute("select count(*) from steps").fetchone() == (12,)
    assert cli("export", demo_run, "-", "--format", "sqlite").code == 2
    assert cli("export", demo_run, tmp_path / "x.db", "--format", "sqlite", "--which", "current").code == 2


def test_export_to_where_nothing_can_be_written(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """One sentence, and no draft left behind."""
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for form in ("skill", "jsonl", "sqlite"):
        done = cli("export", demo_run, tmp_path / "file" / "out", "--format", form)
        assert (done.code, done.out) == (2, "")
        assert "cannot be written" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("form", ["skill", "jsonl", "sqlite", "skillopt", "datasette", "otel"])
def test_export_over_a_run_is_refused(
    form: str, cli: Cli, demo_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever forgot where to write is told what to type, and no file gets a run's name by accident."""
    shutil.copytree(demo_run, tmp_path / "runs" / "mine")
    monkeypatch.chdir(tmp_path)
    words = [("--out", "mine"), ("mine", "--out", "mine"), ("--out", "runs/mine")]
    for more in [*words, *([] if form == "otel" else [("mine",), ("mine", "mine"), ("runs/mine",)])]:
        done = cli("export", *more, "--format", form)
        assert (done.code, done.out) == (2, ""), more
        assert "is a run, not a place to write to" in done.err
        assert "`skillopt-es export" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


@pytest.mark.parametrize("second", ["second", "runs/second"])
def test_who_forgets_where_to_write_several_runs_is_told_with_all_of_them(
    second: str, cli: Cli, demo_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one was no place, but a run like the others."""
    for name in ("mine", "second"):
        shutil.copytree(demo_run, tmp_path / "runs" / name)
    monkeypatch.chdir(tmp_path)
    assert (
        f"`skillopt-es export mine {second} run.db --format sqlite`"
        in cli("export", "mine", second, "--format", "sqlite").err
    )
    said = cli("export", "mine", "--out", second, "--format", "sqlite").err
    assert "`skillopt-es export mine run.db --format sqlite`" in said


def test_a_folder_may_have_a_runs_name(
    cli: Cli, demo_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If that is said plainly."""
    shutil.copytree(demo_run, tmp_path / "runs" / "mine")
    monkeypatch.chdir(tmp_path)
    assert cli("export", "mine", "./mine").code == 0
    assert (tmp_path / "mine" / "SKILL.md").is_file()


def test_runs_marks_a_run_without_its_tail(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """As `status` does; the others stay as they are."""
    shutil.copytree(demo_run, tmp_path / "runs" / "whole")
    shutil.copytree(demo_run, tmp_path / "runs" / "cut")
    last = len(events_of(demo_run))
    forge(tmp_path / "runs" / "cut", f"delete from events where seq > {last - 9}")
    said = f"the log ends at event {last - 9}, but head.json says that there were {last}"
    done = cli("runs", "--dir", tmp_path / "runs")
    assert "cut    damaged" in done.out
    assert done.out.count("damaged") == 1
    assert done.lines[-1] == f"cut: {said}"
    problems = {row["run"]: row["problem"] for row in cli("runs", "--dir", tmp_path / "runs", "--json").json}
    assert problems == {"whole": None, "cut": said}


# --- all of them ---------------------------------------------------------------------------------------------------

READING = [
    ("replay", "--check"),
    ("log",),
    ("log", "--json"),
    ("show", "5"),
    ("show", "e1/s1/rank"),
    ("status",),
    ("usage",),
    ("verify",),
    ("export", "-"),
]


def test_reading_changes_nothing(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """No file of ours is written, made or removed, but what only saves time."""
    run = tmp_path / "runs" / "copy"
    shutil.copytree(demo_run, run)
    disposable = ("-shm", "-wal", "overview.json")  # the first two are SQLite's, for a while

    def look() -> dict[Path, tuple[bytes, int]]:
        files = [path for path in run.rglob("*") if not path.name.endswith(disposable)]
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    before = look()
    for name, *words in READING:
        first, *rest = words or [""]
        done = cli(name, run, *([first, *rest] if first else []))
        assert done.code == 0, done.err
    assert cli("runs", "--dir", run.parent).code == 0
    assert look() == before


def test_reading_a_run_does_not_make_it_the_newest(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """The newest is the one that was written last."""
    for name in ("older", "newer"):
        cut_off(demo_run, tmp_path / name, 3)
        time.sleep(0.02)
    assert len(cli("log", tmp_path / "older").lines) == 3
    assert field(cli("replay", "--dir", tmp_path), "run").startswith("newer")
    assert [line.split()[0] for line in cli("runs", "--dir", tmp_path).lines[1:3]] == ["older", "newer"]


def test_a_run_that_is_not_there(cli: Cli, runs: Path) -> None:
    """Every command says so in the same words."""
    for name, *words in READING:
        done = cli(name, "nobody", *words, "--dir", runs)
        assert done.code == 2
        assert "there is no run nobody" in (done.json["error"]["message"] if "--json" in words else done.err)
        assert done.out == "" or "--json" in words


def test_the_end_of_the_run_is_read_while_it_is_written(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """Readers and the writer do not wait for each other."""
    events = events_of(demo_run)
    cut = cut_off(demo_run, tmp_path / "cut", len(events) - 1)
    with RunWriter.open(cut, now=lambda: NOON) as writer:
        assert isinstance(events[-1], RunCompleted)
        asyncio.run(writer.append(events[-1:], expected=len(events) - 1))
        assert cli("replay", cut, "--check", "--json").json["status"] == "completed"
        assert cli("export", cut, tmp_path / "t.db", "--format", "sqlite").code == 0
