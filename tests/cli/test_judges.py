"""A judge in a run: its calls are journaled with the attempt, priced, planned and used again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.in_process import Cli

import skillopt_es as so
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.values import Failed, Json

CONFIG: Mapping[str, Json] = {
    "model": {"backend": "simulated", "optimizer": "o", "target": "t", "judge": "j"},
    "env": {"name": "tasks", "data_path": "tasks.jsonl", "grader": "judge", "rubric": {"right": "It is right."}},
    "train": {"num_epochs": 1, "batch_size": 4},
    "optimizer": {"use_slow_update": False, "use_meta_skill": False},
    "prices": {"unit": "USD per 1M tokens", "models": {name: {"input": 1, "output": 1} for name in "otj"}},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with twelve tasks, which is where the work is done."""
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"t{number}", "input": f"say {number}", "expected": str(number)} for number in range(12)]
    Path("tasks.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return tmp_path


def echo(request: so.ChatRequest) -> str:
    """A target that says the number for every other task."""
    number = request.messages[-1].content.split()[-1]
    return number if int(number) % 2 else "?"


def test_every_question_to_the_judge_is_in_the_journal(folder: Path, cli: Cli) -> None:
    """At a slot of its rollout, with its price; the run is replayed from the log alone."""
    planned = so.estimate(CONFIG)
    run = so.train(CONFIG, name="judged", target=so.ChatFunction(echo))
    usage = run.usage().usage
    judged, asked = usage.by_role["judge"], usage.by_role["target"]
    assert judged.calls == asked.calls
    assert judged.cost is not None
    assert judged.cost.amount > 0
    rollouts = [each.event for each in run.events(["RolloutCompleted"])]
    assert all(isinstance(each, RolloutCompleted) and len(each.calls) == 2 for each in rollouts)
    line = next(line for line in planned.lines if line.role == "judge")
    assert line.calls.low <= judged.calls <= line.calls.high
    assert cli("replay", "judged", "--check").code == 0


def test_an_outage_of_the_judge_is_no_score_and_the_target_is_not_asked_again(folder: Path) -> None:
    """The run pauses, and goes on with another judge call for the same answer."""
    asked: list[str] = []

    def target(request: so.ChatRequest) -> str:
        asked.append(request.slot)
        return echo(request)

    def absent(request: so.ChatRequest) -> str:
        raise RuntimeError("out for lunch")

    def strict(request: so.ChatRequest) -> str:
        given = json.loads(request.messages[1].content)
        return json.dumps({"reasoning": "", "points": {"right": 4 * (given["answer"] == given["reference"])}})

    paused = so.train(CONFIG, name="out", target=so.ChatFunction(target), judge=absent)
    assert paused.status == "paused"
    failed = [each.event for each in paused.events(["RolloutCompleted"])]
    assert failed
    assert all(isinstance(each, RolloutCompleted) and isinstance(each.outcome, Failed) for each in failed)
    done = so.resume("out", target=so.ChatFunction(target), judge=strict)
    assert done.status == "completed"
    assert len(asked) == len(set(asked))


def test_another_threshold_needs_no_question(folder: Path, cli: Cli) -> None:
    """Points are recorded; what they are worth can be asked afterwards. Another rubric is another question."""
    so.train(CONFIG, name="judged", target=so.ChatFunction(echo))
    assert cli("rescore", "judged", "--set", "env.pass_score=0.1").code == 0
    refused = cli("rescore", "judged", "--set", 'env.rubric={"else": "It is red."}')
    assert refused.code
    assert "the judge would have been asked something else" in refused.err


def test_a_judge_has_to_be_named(folder: Path) -> None:
    """Nobody else is asked in its place, and a budget of money needs its price."""
    with pytest.raises(so.SkillOptError, match="nothing says which model"):
        so.train(CONFIG, settings={"model.judge": ""}, target=so.ChatFunction(echo))
    with pytest.raises(so.SkillOptError, match="another has none"):
        so.train(CONFIG, settings={"model.judge": "another", "budget.max_cost": 1})


def test_doctor_grades_answers_before_anything_is_paid_for(folder: Path, cli: Cli) -> None:
    """The expected answer, none and a wrong one; a judge several times."""
    file = Path("config.yaml")
    file.write_text(json.dumps(CONFIG), encoding="utf-8")
    checks = cli("doctor", file, "--grade", "--json").json["checks"]
    [said] = [check["message"] for check in checks if check["name"] == "grade"]
    assert "none 0/0.00; wrong 0/0.00; expected answer 1/1.00" in said
    noise = [check["message"] for check in checks if check["name"] == "judge"][-1]
    assert "its noise is 0.000" in noise
    assert "2 answers, 3 times each, 6 calls" in noise


def test_doctor_says_what_is_wrong_with_a_grader(folder: Path, cli: Cli) -> None:
    """One that takes anything, one that takes not even the expected answer, and one that breaks."""
    for number, (body, status, says) in enumerate(
        [
            ("return 1", "warning", "wrong answer counts as solved"),
            ("return 0", "problem", "the expected answer is not always solved (0/0.00)"),
            ("return row['typo']", "problem", "KeyError: 'typo' (graders2.py:2, in grade)"),
        ]
    ):
        Path(f"graders{number}.py").write_text(f"def grade(row):\n    {body}\n", encoding="utf-8")
        env = {"name": "tasks", "data_path": "tasks.jsonl", "grader": f"python:graders{number}.py:grade"}
        Path("config.yaml").write_text(json.dumps({**CONFIG, "env": env}), encoding="utf-8")
        checks = cli("doctor", "config.yaml", "--grade", "--json").json["checks"]
        assert any(c["name"] == "grade" and c["status"] == status and says in c["message"] for c in checks), checks


def test_the_noise_of_a_judge_that_wavers_is_told(folder: Path, cli: Cli) -> None:
    """With the key that the gate reads; the demo's judge never wavers, so a program does."""
    program = "import json, random\ndice = random.Random(7)\ndef answer(task):\n    points = dice.choice([0, 4])\n"
    program += "    return json.dumps({'reasoning': '', 'points': {'right': points}})\n"
    Path("moody.py").write_text(program, encoding="utf-8")
    moody = {"backend": "simulated", "optimizer": "o", "target": "t", "judge_backend": "python:moody.py:answer"}
    config = {**CONFIG, "model": {**moody, "judge": "m"}, "prices": {}}
    Path("config.yaml").write_text(json.dumps(config), encoding="utf-8")
    checks = cli("doctor", "config.yaml", "--grade", "--json").json["checks"]
    last = [check for check in checks if check["name"] == "judge"][-1]
    assert last["status"] == "warning", checks
    assert "set evaluation.judge_noise: 0." in last["fix"]


def test_a_judge_that_nobody_can_read_is_asked_anew_when_the_run_is_resumed(folder: Path, cli: Cli) -> None:
    """At slots of their own: what it said before stays recorded, and the target is not asked again."""
    asked: list[str] = []

    def target(request: so.ChatRequest) -> str:
        asked.append(request.slot)
        return echo(request)

    def mumbling(request: so.ChatRequest) -> str:
        return "hm"

    def strict(request: so.ChatRequest) -> str:
        given = json.loads(request.messages[1].content)
        return json.dumps({"reasoning": "", "points": {"right": 4 * (given["answer"] == given["reference"])}})

    paused = so.train(CONFIG, name="hm", target=so.ChatFunction(target), judge=mumbling)
    assert paused.status == "paused"
    assert so.resume("hm", target=so.ChatFunction(target), judge=mumbling).status == "paused"
    done = so.resume("hm", target=so.ChatFunction(target), judge=strict)
    assert done.status == "completed"
    assert len(asked) == len(set(asked))
    rows = [each.event for each in done.events(["RolloutCompleted"])]
    first = [each for each in rows if isinstance(each, RolloutCompleted) and each.item == rows[0].item]  # type: ignore[attr-defined]
    judged = [[call.slot.rpartition("/")[2] for call in each.calls[1:]] for each in first[:3]]
    assert judged == [["judge-1", "judge-2"], ["judge-3", "judge-4"], ["judge-5"]]
    assert [each.failure for each in first[:2]] == ["unreadable"] * 2
    assert cli("replay", "hm", "--check").code == 0
    assert cli("rescore", "hm", "--set", "env.pass_score=0.1").code == 0


def test_a_run_goes_on_without_the_grades_that_nobody_can_read(folder: Path, cli: Cli) -> None:
    """Where the user says so; the pause tells how."""

    def sometimes(request: so.ChatRequest) -> str:
        return "hm" if "say 3" in request.messages[1].content else '{"points": {"right": 4}}'

    so.train(CONFIG, name="hm", target=so.ChatFunction(echo), judge=sometimes)
    paused = cli("status", "hm")
    assert "each resume asks it again" in paused.out + paused.err
    assert "rollout.max_failed_share=N" in paused.out + paused.err
    done = so.resume("hm", target=so.ChatFunction(echo), judge=sometimes, settings={"rollout.max_failed_share": 1})
    assert done.status == "completed"


def test_an_evaluation_asks_a_judge_anew_that_nobody_could_read(folder: Path) -> None:
    """As a training run does."""
    said = ["hm", '{"points": {"right": 4}}']
    Path("SKILL.md").write_text("Answer.", encoding="utf-8")

    def scored() -> int | None:
        found = so.evaluate(
            Path("SKILL.md"), CONFIG, splits=["val"], target=so.ChatFunction(echo), judge=lambda request: said[0]
        )
        score = found.results[0].score
        return None if score is None else score.measured

    assert scored() is None
    del said[0]
    assert scored() == 1
