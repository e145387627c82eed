"""`eval` scores any skill on any split, pays for each answer once, and calls nothing a score that is none."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.command import RULES, Clerk, Done, command, edit, environment, project, start, unsealed
from support.event_runs import forge
from support.model_server import Answer, ModelServer
from support.ready import PATIENCE
from support.tamper import rewritten, seqs_of

from skillopt_es.events.catalog import RunResumed, SkillScored
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Score


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The config of a fresh project, of which two answers may not fail; its test items are not sealed."""
    return unsealed(project(tmp_path / "p"))


@pytest.fixture
def server(config: Path) -> Iterator[ModelServer]:
    """Its endpoint."""
    with ModelServer(Clerk(config.parent / "tasks.jsonl")) as up:
        edit(config, "https://api.openai.com/v1", up.base_url)
        yield up


def evaluate(config: Path, *words: str | Path, env: Mapping[str, str] | None = None) -> Done:
    """`eval` in the project's folder, as a program would call it."""
    return command("eval", config, *words, "--json", cwd=config.parent, env=env)


def the_split(done: Done) -> dict[str, Any]:
    """The one split of a result."""
    assert done.code == 0, done.err
    [split] = done.json["splits"]
    return dict(split)


def events(done: Done, config: Path) -> list[str]:
    """The names of the events that the evaluation's log holds."""
    with EventLog.open(config.parent / done.json["folder"]) as log:
        return [type(recorded.event).__name__ for recorded in log.read()]


def write_skill(folder: Path) -> Path:
    """A skill with the house rules."""
    file = folder / "better.md"
    file.write_text(f"# Triage\n\n{RULES}\n", encoding="utf-8")
    return file


def test_it_prints_scores_types_and_tokens(config: Path, server: ModelServer) -> None:
    """For people, on stdout."""
    done = command("eval", config, "--split", "test", cwd=config.parent)
    assert done.code == 0, done.err
    assert "test: hard 0.3750, soft 0.6875 (8 measured, 0 not measured)" in done.out
    assert "defect        2  0.5000  0.7500" in done.out
    assert "8 calls, 56 tokens in, 24 out (8 calls made now)" in done.out


def test_the_same_again_costs_nothing(config: Path, server: ModelServer) -> None:
    """No call, no event, the same score; also where the number of workers is another."""
    first = evaluate(config, "--split", "test")
    assert events(first, config) == ["RunStarted", *["RolloutCompleted"] * 8, "SkillScored"]
    again = evaluate(config, "--split", "test", "--set", "env.workers=1")
    assert len(server.requests) == 8
    assert the_split(again) == {**the_split(first), "calls_made_now": 0}
    assert events(again, config) == events(first, config)


def test_an_evaluation_whose_log_lost_its_end_goes_on_where_that_is_accepted(config: Path, server: ModelServer) -> None:
    """Else it is refused; the answers that the journal kept are not asked for again, and the loss is recorded."""
    first = evaluate(config, "--split", "val")
    folder, asked = config.parent / first.json["folder"], len(server.requests)
    forge(folder, "delete from events where seq > 5")
    refused = evaluate(config, "--split", "val")
    assert refused.code == 1
    assert "`--accept-loss`" in refused.json["error"]["hint"]
    again = evaluate(config, "--split", "val", "--accept-loss")
    assert the_split(again)["hard"] == the_split(first)["hard"]
    assert len(server.requests) == asked
    with EventLog.open(folder) as log:
        [resumed] = [row.event for row in log.read() if isinstance(row.event, RunResumed)]
    assert "missing after number 5" in resumed.accepted_loss


def test_any_skill_on_any_split(config: Path, server: ModelServer, tmp_path: Path) -> None:
    """Each skill has its own record; `all` pays only for what was not asked before."""
    skill = write_skill(tmp_path)
    assert the_split(evaluate(config, "--skill", skill, "--split", "val"))["hard"] == 1
    done = evaluate(config, "--skill", skill, "--split", "all")
    assert [(split["split"], split["hard"]) for split in done.json["splits"]] == [
        ("train", 1),
        ("val", 1),
        ("test", 1),
    ]
    assert [split["calls_made_now"] for split in done.json["splits"]] == [16, 0, 8]
    assert the_split(evaluate(config, "--split", "val"))["hard"] == 0.25


@pytest.mark.parametrize(
    ("name", "split"), [("valid_seen", "val"), ("selection", "val"), ("valid_unseen", "test"), ("train", "train")]
)
def test_old_names_of_splits_are_understood(config: Path, server: ModelServer, name: str, split: str) -> None:
    """And told by their new ones."""
    assert the_split(evaluate(config, "--split", name, "--limit", "1"))["split"] == split


def test_a_limit_takes_the_first_items(config: Path, server: ModelServer) -> None:
    """The rest is paid for when it is asked for."""
    few = evaluate(config, "--split", "test", "--limit", "3")
    assert the_split(few)["measured"] == 3
    assert the_split(evaluate(config, "--split", "test"))["calls_made_now"] == 5
    assert the_split(evaluate(config, "--split", "test", "--limit", "3"))["hard"] == the_split(few)["hard"]
    assert len(server.requests) == 8


def test_a_mended_grader_grades_the_recorded_answers(config: Path, server: ModelServer) -> None:
    """Without a call; the earlier grades stay in the log."""
    first = evaluate(config, "--split", "test")
    edit(config.parent / "grader.py", '"hard": int(not wrong)', '"hard": 1')
    again = evaluate(config, "--split", "test")
    assert (the_split(first)["hard"], the_split(again)["hard"]) == (0.375, 1)
    assert the_split(again)["calls_made_now"] == 0
    assert events(again, config).count("SkillScored") == 2
    edit(config.parent / "grader.py", '"hard": 1', '"hard": int(not wrong)')
    back = evaluate(config, "--split", "test")
    assert the_split(back)["hard"] == 0.375
    assert events(back, config) == events(again, config)


def test_a_changed_prompt_is_another_evaluation(config: Path, server: ModelServer) -> None:
    """So is another model: nothing recorded answers for it."""
    folders = [evaluate(config, "--split", "test").json["folder"]]
    for override in ("env.system=Be quick.", "model.target=gpt-4.1-nano", "model.temperature=0.5"):
        done = evaluate(config, "--split", "test", "--set", override)
        assert the_split(done)["calls_made_now"] == 8
        folders.append(done.json["folder"])
    assert len(set(folders)) == 4


def test_out_has_one_line_an_item(config: Path, server: ModelServer) -> None:
    """In the order of the data."""
    evaluate(config, "--split", "test", "--out", "rows.jsonl")
    rows = [json.loads(line) for line in (config.parent / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows][:3] == ["billing-06", "billing-07", "access-06"]
    assert rows[0] == {
        "split": "test",
        "id": "billing-06",
        "type": "billing",
        "outcome": "measured",
        "hard": 0,
        "soft": 0.5,
        "prediction": "BILLING P2",
        "failure": "near_miss",
        "detail": "got 'BILLING P2', expected \"BILLING P1\"; wrong priority: P2, not P1",
    }


def test_the_optimizer_is_not_needed(config: Path, server: ModelServer) -> None:
    """Neither its key nor its endpoint, nor its name; training needs one."""
    more = ["model.optimizer_api_key_env=NOT_SET", "model.optimizer_base_url=nonsense", "model.optimizer="]
    words = [word for each in more for word in ("--set", each)]
    done = evaluate(config, "--split", "test", *words)
    assert the_split(done)["measured"] == 8
    listed = command("runs", "--dir", "evals", "--json", cwd=config.parent)
    assert (listed.code, listed.json[0]["status"]) == (0, "scored")  # its log is read like any other
    refused = command("run", config, "--set", "model.optimizer=", cwd=config.parent)
    assert (refused.code, "model.optimizer is '', but must be the name of a model" in refused.err) == (2, True)


# --- runs ----------------------------------------------------------------------------------------------------------


def test_the_skills_of_a_run_are_scored_by_name(config: Path, server: ModelServer) -> None:
    """With the config that its log has recorded, and with changes to it."""
    folder = config.parent
    run = command("run", config, "--run", "mine", "--json", cwd=folder)
    assert run.json["test_best"]["hard"] == 1

    def scored(*words: str) -> dict[str, Any]:
        return the_split(command("eval", "--run", *words, "--split", "test", "--json", cwd=folder))

    assert scored("mine")["hard"] == 1
    assert scored("runs/mine", "--which", "initial")["hard"] == run.json["test_initial"]["hard"] == 0.375
    assert scored("mine", "--which", "current", "--set", "env.workers=2", "--limit", "1")["measured"] == 1
    assert command("eval", "--run", "other", "--split", "test", cwd=folder).code == 2
    both = command("eval", config, "--run", "mine", "--split", "test", cwd=folder)
    assert both.code == 2
    assert "not both" in both.err


def test_an_evaluation_is_not_resumed_as_a_run(config: Path, server: ModelServer) -> None:
    """It would be trained in the folder of its record."""
    evaluate(config, "--split", "test")
    done = command("resume", "--dir", "evals", cwd=config.parent)
    assert done.code == 2
    assert "is an evaluation" in done.err


# --- stops and failures --------------------------------------------------------------------------------------------


def slowly(clerk: Clerk) -> Callable[[Any, Mapping[str, str]], Answer]:
    """The clerk, taking its time for each mail."""
    return lambda body, headers: evolve(clerk(body, headers), delay=0.3)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_what_was_stopped_goes_on(config: Path, number: signal.Signals) -> None:
    """Of its answered calls none is made twice."""
    with ModelServer(slowly(Clerk(config.parent / "tasks.jsonl"))) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        edit(config, "workers: 8", "workers: 1")
        with start("eval", config, "--split", "test", cwd=config.parent) as child:
            assert server.wait_until(lambda up: len(up.requests) >= 3)
            child.send_signal(number)
            _, said = child.communicate(timeout=PATIENCE)
        before = len(server.requests)
        if number == signal.SIGINT:
            assert child.returncode == 130
            assert "the same command continues" in said
            assert before < 8
        done = evaluate(config, "--split", "test")
    assert the_split(done)["hard"] == 0.375
    in_flight = 2 if number == signal.SIGKILL else 0
    assert 8 <= len(server.requests) <= 8 + in_flight


def test_what_was_not_measured_is_no_score(config: Path) -> None:
    """One answer of eight is missing: exit 1, nothing but that one is asked again."""
    broken = True
    clerk = Clerk(config.parent / "tasks.jsonl")

    def sometimes(body: Any, headers: Mapping[str, str]) -> Answer:
        fails = broken and "None of us" in body["messages"][-1]["content"]
        return Answer(status=500, error={"message": "it broke"}) if fails else clerk(body, headers)

    with ModelServer(sometimes) as server:
        once = ("--set", "model.attempts=1")
        words = ("--split", "test", "--set", f"model.base_url={server.base_url}", *once, "--out", "rows.jsonl")
        done = evaluate(config, *words)
        assert done.code == 1
        assert "not a score" in done.err
        assert "1 of 8" in done.err
        assert done.json["splits"][0]["hard"] is None
        assert done.json["splits"][0]["unmeasured"] == 1
        rows = [json.loads(line) for line in (config.parent / "rows.jsonl").read_text().splitlines()]
        assert [row["id"] for row in rows if row["outcome"] == "failed"] == ["access-06"]
        asked = len(server.requests)
        assert evaluate(config, *words).code == 1
        tolerant = evaluate(config, *words, "--set", "rollout.max_failed_share=0.2")
        assert the_split(tolerant)["measured"] == 7
        broken = False
        assert the_split(evaluate(config, *words))["hard"] == 0.375
        assert len(server.requests) == asked + 3
        assert "paused" not in command("verify", done.json["folder"], cwd=config.parent).err


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(status=401, error={"message": "wrong key sk-house-0123456789abcdef"}), "OPENAI_API_KEY"),
        (Answer(status=404, error={"message": "no such model", "code": "model_not_found"}), "model.target"),
        (Answer(status=429, error={"message": "no credit", "code": "insufficient_quota"}), "credit"),
    ],
)
def test_an_endpoint_that_refuses_stops_it(config: Path, answer: Answer, says: str) -> None:
    """Exit 1, one sentence, the next step; the log says so and nothing is scored."""
    with ModelServer(lambda body, headers: answer) as server:
        done = command(
            "eval", config, "--split", "test", "--set", f"model.base_url={server.base_url}", cwd=config.parent
        )
    assert done.code == 1
    assert says in done.err
    assert len(done.err.strip().splitlines()) == 2
    assert not done.out
    [folder] = (config.parent / "evals").iterdir()
    with EventLog.open(folder) as log:
        assert [type(recorded.event).__name__ for recorded in log.read()] == ["RunStarted", "RunPaused"]


def test_an_endpoint_that_is_down_gives_no_score(config: Path) -> None:
    """Exit 1, naming where it was looked for."""
    quick = ("--set", "model.backoff_seconds=0.001", "--set", "model.attempts=2")
    done = evaluate(config, "--split", "test", "--set", "model.base_url=http://127.0.0.1:9/v1", *quick)
    assert done.code == 1
    assert "127.0.0.1:9" in done.err


# --- input that cannot be used -------------------------------------------------------------------------------------


def refused(config: Path, *words: str | Path) -> str:
    """The sentence and the next step that a command with useless input ends with; nothing was recorded."""
    done = command("eval", config, "--split", "test", *words, cwd=config.parent)
    assert done.code == 2, done.out
    assert not done.out
    assert not (config.parent / "evals").exists()
    return done.err


def test_wrong_words_are_refused(config: Path) -> None:
    """Keys, splits, numbers and folders."""
    assert "train.batch_size" in refused(config, "--set", "train.batchsize=3")
    assert "env.grader" in refused(config, "--set", "env.graders=exact")
    assert "train" in command("eval", config, "--split", "dev", cwd=config.parent).err
    assert "--limit" in refused(config, "--limit", "0")
    assert "no folder" in refused(config, "--out", "none/rows.jsonl")
    assert "no such config file" in refused(config.parent / "none.yaml")


def test_a_skill_that_cannot_be_read_is_refused(config: Path, tmp_path: Path) -> None:
    """Missing, a folder that is no skill, not UTF-8; the message speaks of --skill."""
    assert "no such file" in refused(config, "--skill", "none.md")
    assert "holds the config" in refused(config, "--skill", tmp_path)
    file = tmp_path / "latin.md"
    file.write_bytes("Prüfe".encode("latin-1"))
    assert "not UTF-8" in refused(config, "--skill", file)


def test_data_that_cannot_be_used_is_refused(config: Path) -> None:
    """Twice the same id, an empty split."""
    tasks = config.parent / "tasks.jsonl"
    lines = tasks.read_text(encoding="utf-8").splitlines(keepends=True)
    tasks.write_text("".join(lines + lines[:1]), encoding="utf-8")
    assert "billing-01" in refused(config)
    tasks.write_text("".join(line for line in lines if '"split": "test"' not in line), encoding="utf-8")
    assert "the test split is empty" in refused(config)


def test_a_key_that_is_not_set_is_named(config: Path) -> None:
    """Before anything is recorded."""
    env = environment()
    del env["OPENAI_API_KEY"]
    done = evaluate(config, "--split", "test", env=env)
    assert done.code == 2
    assert "OPENAI_API_KEY" in done.err
    assert not (config.parent / "evals").exists()


def test_all_leaves_out_a_split_that_is_empty(config: Path, server: ModelServer) -> None:
    """There may be no test items yet."""
    tasks = config.parent / "tasks.jsonl"
    lines = tasks.read_text(encoding="utf-8").splitlines(keepends=True)
    tasks.write_text("".join(line for line in lines if '"split": "test"' not in line), encoding="utf-8")
    assert [split["split"] for split in evaluate(config, "--split", "all").json["splits"]] == ["train", "val"]


def test_the_reading_commands_know_an_evaluation(config: Path, server: ModelServer) -> None:
    """`status`, `runs` and `replay` speak of scores, not of steps and of resuming; a check adds them up again."""
    scored = evaluate(config, "--split", "test")
    folder = scored.json["folder"]
    status = command("status", folder, cwd=config.parent)
    assert "evaluation  " in status.out
    assert "(scored)" in status.out
    assert "eval/test: hard 0.3750" in status.out
    assert "billing" in status.out
    assert "resume" not in status.out
    assert command("status", folder, "--json", cwd=config.parent).json["kind"] == "evaluation"
    [row] = command("runs", "--dir", "evals", cwd=config.parent).out.splitlines()[1:]
    assert "scored" in row
    replayed = command("replay", folder, "--check", cwd=config.parent)
    assert replayed.code == 0, replayed.err
    assert "1 score added up again from 8 rollouts" in replayed.out
    again = evaluate(config, "--split", "all")
    checked = command("replay", again.json["folder"], "--check", "--json", cwd=config.parent).json["check"]
    assert (checked["ok"], checked["decisions"], checked["rollouts"]) == (True, 3, 32)


def test_a_score_that_does_not_follow_is_found(config: Path, server: ModelServer) -> None:
    """In an evaluation as in a run."""
    folder = config.parent / evaluate(config, "--split", "test").json["folder"]
    [seq] = seqs_of(folder, SkillScored)
    better = Score(hard=1.0, soft=1.0, measured=8)
    lies = rewritten(folder, folder.with_name("lies"), seq, lambda event: evolve(event, score=better))  # type: ignore[call-arg]
    done = command("replay", lies, "--check", cwd=config.parent)
    assert done.code == 1
    assert f"event {seq} (SkillScored) does not follow from the evidence" in done.err
