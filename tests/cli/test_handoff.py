"""`handoff` as a person or an agent uses it: list, answer, resume; exit code 3 while it waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import command

CONFIG = """
model: {backend: simulated, target_backend: handoff, optimizer: o, target: me}
train: {num_epochs: 1, batch_size: 2}
env: {name: tasks, data_path: tasks.jsonl, split_ratio: "1:1:1", grader: exact, skill_init: ""}
optimizer: {use_slow_update: false, use_meta_skill: false}
"""


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    """A folder with a run that waits for its first answers."""
    (tmp_path / "config.yaml").write_text(CONFIG)
    rows = [f'{{"id": "t{number}", "input": "say {number}", "expected": "{number}"}}' for number in range(6)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(rows))
    done = command("run", "config.yaml", "--run", "mine", "--quiet", cwd=tmp_path)
    assert done.code == 3, done.err
    assert "2 questions wait for their answers" in done.err
    assert "skillopt-es handoff list" in done.err
    return tmp_path


def test_list_answer_resume(waiting: Path) -> None:
    """Until the run is complete; `status` says what comes next."""
    assert "next        skillopt-es handoff list mine" in command("status", "mine", cwd=waiting).out
    for _ in range(30):
        found = command("handoff", "list", "mine", "--json", cwd=waiting).json
        if not found["questions"]:
            break
        for question in found["questions"]:
            said = question["messages"][-1]["content"].split()[-1]
            (waiting / "answer.txt").write_text(said + "\n")
            done = command("handoff", "answer", "mine", question["key"], "answer.txt", cwd=waiting)
            assert done.code == 0, done.err
            assert question["key"] in done.out
        done = command("resume", "mine", "--quiet", cwd=waiting)
        assert done.code in (0, 3), done.err
    assert done.code == 0
    assert "completed" in done.out
    assert command("verify", "mine", cwd=waiting).code == 0
    assert command("replay", "mine", "--check", cwd=waiting).code == 0


def test_people_read_a_table_and_pipe_answers(waiting: Path) -> None:
    """Data on stdout, what to do next on stderr."""
    done = command("handoff", "list", cwd=waiting)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].split() == ["key", "role", "stage", "slot"]
    assert len(lines) == 3
    assert "handoff answer" in done.err
    key = lines[1].split()[0]
    done = command("handoff", "answer", key[:5], "-", cwd=waiting, stdin="3\n")
    assert done.code == 0, done.err
    assert "1 more waits" in done.out
    again = command("handoff", "answer", key[:5], "-", cwd=waiting, stdin="3\n")
    assert again.code == 2
    assert f"no question {key[:5]} waits in mine" in again.err


def test_mistakes_say_what_to_do(waiting: Path) -> None:
    """One sentence, exit code 2."""
    for words, said in (
        (["handoff", "answer", "only-one"], "name a KEY and a FILE"),
        (["handoff", "answer", "aaaa", "nowhere.txt"], "nowhere.txt: cannot be read"),
        (["handoff", "list", "other"], "other"),
    ):
        done = command(*words, cwd=waiting)
        assert done.code == 2
        assert said in done.err


def test_eval_waits_too(waiting: Path) -> None:
    """The same command goes on when the answers are there."""
    (waiting / "SKILL.md").write_text("- be short\n")
    words = ("eval", "config.yaml", "--skill", "SKILL.md", "--split", "val")
    done = command(*words, cwd=waiting)
    assert done.code == 3, done.err
    assert "2 questions wait" in done.err
    folder = done.err.split("handoff list ")[1].split("`")[0]
    for question in command("handoff", "list", folder, "--json", cwd=waiting).json["questions"]:
        said = question["messages"][-1]["content"].split()[-1]
        command("handoff", "answer", folder, question["key"], "-", cwd=waiting, stdin=said)
    done = command(*words, cwd=waiting)
    assert done.code == 0, done.err
    assert "1.0000" in done.out
