"""Folders read as one skill or as several, what is refused before anything is paid for, and a folder that is scored."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.scripted import config
from support.skills import skill

import skillopt_es as so
from skillopt_es.deploy.files import write_skill
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.log import EventLog
from skillopt_es.events.plain import is_executable
from skillopt_es.events.values import FileContent, SkillTree
from skillopt_es.ports import ALONE, AgentStep, Course, ToolCall
from skillopt_es.sessions.checks import check_skill
from skillopt_es.sessions.skills import first_skill, load_skill


def loaded(folder: Path, at: str = "skills") -> tuple[SkillTree, tuple[str, ...]]:
    """What a config's skill_init names."""
    return load_skill(config(folder, [f"env.skill_init={at}"]))


def written(folder: Path, **files: str) -> Path:
    """A folder with skills in it."""
    for name, text in files.items():
        (folder / "skills" / name).mkdir(parents=True, exist_ok=True)
        (folder / "skills" / name / "SKILL.md").write_text(text, newline="")
    return folder / "skills"


def test_a_folder_with_a_skill_file_is_one_skill_and_any_other_one_of_several(tmp_path: Path) -> None:
    """With all files but those that are no part of a skill."""
    root = written(tmp_path, money=skill("money").replace("\n", "\r\n"), dates=skill("dates"))
    (root / "money" / "references").mkdir()
    (root / "money" / "references" / "codes.md").write_text("EUR\n")
    for name in ("PROVENANCE.json", "old.pyc"):
        (root / "money" / name).write_bytes(b"\xff")
    (root / "README.md").write_text("Ours.")
    tree, notes = loaded(tmp_path)
    assert (tree.main, [*tree.files]) == ("", ["dates/SKILL.md", "money/SKILL.md", "money/references/codes.md"])
    assert notes == ("README.md belongs to no skill, and was left out", "money/SKILL.md: line ends were made \\n")
    one, _ = loaded(tmp_path, "skills/money")
    assert (one.main, [*one.files]) == ("SKILL.md", ["SKILL.md", "references/codes.md"])


def test_a_mark_of_the_byte_order_is_no_part_of_a_skill(tmp_path: Path) -> None:
    """Some editors write it before the frontmatter, where agents and people do not see it."""
    written(tmp_path, money="\ufeff" + skill("money"))
    tree, notes = loaded(tmp_path)
    assert tree.files == {"money/SKILL.md": skill("money")}
    assert notes == ("money/SKILL.md: the mark of its byte order was left out",)


def test_what_is_neither_always_shown_nor_not_is_told(tmp_path: Path) -> None:
    """`always: "true"` is a text."""
    written(tmp_path, money=skill("money", more='always: "true"\n'), dates=skill("dates", more="always: true\n"))
    _, notes = loaded(tmp_path)
    assert notes == (
        "money/SKILL.md says always: 'true', which is neither true nor false: it is listed as the others are",
    )


def test_doctor_warns_of_a_list_that_agents_cut(tmp_path: Path) -> None:
    """What stands at its end would never be opened."""
    written(tmp_path, **{f"s{n}": skill(f"s{n}", "d" * 1000) for n in range(9)})
    settings = ["env.skill_init=skills", "train.algorithm=skills"]
    check = check_skill(config(tmp_path, settings))
    assert (check.status, "names and descriptions have 9," in check.message) == ("warning", True)
    (tmp_path / "skills" / "s8" / "SKILL.md").unlink()
    (tmp_path / "skills" / "s8").rmdir()
    (tmp_path / "skills" / "s7" / "SKILL.md").write_text(skill("s7"))
    assert check_skill(config(tmp_path, settings)).status == "ok"


def test_one_skill_and_several_are_not_taken_for_each_other(tmp_path: Path) -> None:
    """An algorithm trains the one or the other, and says which."""
    written(tmp_path, money=skill("money"))
    several, one = (config(tmp_path, [f"env.skill_init={at}"]) for at in ("skills", "skills/money"))
    with pytest.raises(ConfigError, match=r"is a folder of skills, and train.algorithm 'classic' trains"):
        first_skill(several, folder=False)
    with pytest.raises(ConfigError, match=r"env.skill_init is one skill, and train.algorithm"):
        first_skill(one, folder=True)
    assert first_skill(config(tmp_path), folder=True)[0] == SkillTree({}, main="")


def test_files_that_are_not_text_are_carried_as_they_are_and_scripts_may_be_run(tmp_path: Path) -> None:
    """Neither is shown to an optimizer; what is hidden is left out, for it may hold a key."""
    root = written(tmp_path, money=skill("money"))
    for name, content in {
        "logo.png": b"\x89PNG\xff",
        "zero.txt": b"a\x00b",
        "run.sh": b"#!/bin/sh\n",
        ".env": b"KEY=sk-1",
    }.items():
        (root / "money" / name).write_bytes(content)
    (root / "money" / "run.sh").chmod(0o700)
    tree, notes = loaded(tmp_path)
    assert sorted(tree.files) == ["money/SKILL.md", "money/run.sh"]
    assert (sorted(tree.assets), tree.executable) == (["money/logo.png", "money/zero.txt"], ("money/run.sh",))
    assert tree.contents["money/logo.png"] == FileContent(b"\x89PNG\xff")
    assert notes == ("money/.env is hidden, and was left out",)
    assert "sk-1" not in str(tree)
    paths = write_skill(tmp_path / "out", tree)
    assert {path.name: path.read_bytes() for path in paths} == {
        each.name: each.read_bytes() for each in (root / "money").iterdir() if each.name != ".env"
    }
    assert [path.name for path in paths if is_executable(path)] == ["run.sh"]
    (root / "money" / "run.sh").chmod(0o600)
    assert loaded(tmp_path)[0].hash != tree.hash


def test_what_is_not_text_is_bounded_together(tmp_path: Path) -> None:
    """A log holds it."""
    root = written(tmp_path, money=skill("money"))
    for number in range(6):
        (root / "money" / f"{number}.bin").write_bytes(b"\xff" * 1_900_000)
    with pytest.raises(DataError, match="10,000,000 bytes at most together"):
        loaded(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("money/SKILL.md", b"- no frontmatter", "money/SKILL.md has no frontmatter"),
        ("money/SKILL.md", b"\x89PNG\xff", "SKILL.md: not text"),
        ("money/large.png", b"\xff" * 2_000_001, "has 2,000,000 bytes at most"),
        ("price/logo.png", b"\xff", "price has no SKILL.md"),
        ("money/long.md", b"x" * 400_001, "has 100,000 characters at most"),
        ("Money/SKILL.md", skill("Money").encode(), "'Money' is not a name for a skill"),
        ("price/SKILL.md", skill("money").encode(), "says that its name is 'money', and its folder is called price"),
    ],
)
def test_what_agents_could_not_load_is_refused(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    """In a sentence that names the file."""
    root = written(tmp_path, money=skill("money"))
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_bytes(content)
    with pytest.raises(DataError, match="skills") as refused:
        loaded(tmp_path)
    assert said in refused.value.message


def test_links_and_numbers_are_refused(tmp_path: Path) -> None:
    """What leads out of the folder is not read, and 300 skills are not read to the end."""
    root = written(tmp_path, money=skill("money"))
    (tmp_path / "secret.md").write_text("secret")
    (root / "money" / "link.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(DataError, match=r"link.md: this link leads out of"):
        loaded(tmp_path)
    (root / "money" / "link.md").unlink()
    (root / "other").symlink_to(root / "money")
    with pytest.raises(DataError, match="other: a link to a folder"):
        loaded(tmp_path)
    (root / "other").unlink()
    (root / "money" / "link.md").symlink_to(root / "money" / "nothing.md")
    with pytest.raises(DataError, match=r"link.md: not a file that can be read"):
        loaded(tmp_path)
    (root / "money" / "link.md").unlink()
    os.mkfifo(root / "money" / "pipe.md")
    with pytest.raises(DataError, match=r"pipe.md: not a file that can be read"):  # nobody waits for its writer
        loaded(tmp_path)
    (root / "money" / "pipe.md").unlink()
    written(tmp_path, **{f"s{number}": skill(f"s{number}") for number in range(300)})
    with pytest.raises(DataError, match="there are more than 100 skills"):
        loaded(tmp_path)


def opener(request: so.ChatRequest) -> str | so.ChatReply:
    """Opens the skill whose name is in the task, and says what it says."""
    assert "- Secret" not in request.messages[0].content
    opened = [json.loads(each.content) for each in request.messages if each.role == "tool"]
    task = next(each.content for each in request.messages if each.role == "user")
    if not opened and request.tools:
        arguments = json.dumps({"skill_id": task.split()[-1]})
        return so.ChatReply(text="", finish="tools", tool_calls=(ToolCall("1", "skills---skill_view", arguments),))
    return str(opened[-1].get("content", "nothing")) if opened else "nothing"


def test_a_folder_is_scored_with_what_the_target_opens(tmp_path: Path) -> None:
    """The log has which files each attempt opened; where nothing fits, nothing is opened."""
    root = written(tmp_path, money=skill("money", body="- Secret money"), dates=skill("dates", body="- Secret dates"))
    rows = [
        {"id": kind, "split": split, "input": f"Look up {kind}", "expected": f"- Secret {kind}"}
        for split, kind in (("train", "money"), ("val", "dates"), ("test", "names"))
    ]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    env = {"name": "tasks", "data_path": str(tmp_path / "tasks.jsonl"), "split_mode": "field"}
    found = so.evaluate(root, {"env": env, "model": {"optimizer": "o"}}, evals=tmp_path, target=so.ChatFunction(opener))
    with EventLog.open(found.folder) as log:
        events = [each.event for each in log.read() if isinstance(each.event, RolloutCompleted)]
    told = {event.item: (event.viewed, event.outcome) for event in events}
    assert {item: viewed for item, (viewed, _) in told.items()} == {
        "money": ("money/SKILL.md",),
        "dates": ("dates/SKILL.md",),
        "names": (),
    }
    assert [outcome.hard for _, outcome in told.values()] == [1.0, 1.0, 0.0]


class Agent:
    """A coding agent, as the trainer sees one: it opens skills in its own way, and says what it did."""

    identity = "agent"
    provides = frozenset({"text", "skills"})

    async def complete(self, request: so.ChatRequest, course: Course = ALONE) -> so.ChatReply:
        """Reads the skill that the task names, if there is one."""
        assert not request.tools
        assert request.skill is not None
        name = request.messages[-1].content.split()[-1]
        text = request.skill.files.get(f"{name}/SKILL.md", "")
        step = AgentStep(kind="command", text=f"cat .agents/skills/{name}/SKILL.md", output=text, ok=bool(text))
        return so.ChatReply(text=text.splitlines()[-1] if text else "nothing", finish="stop", steps=(step,))

    async def aclose(self) -> None:
        """Nothing to give back."""


def test_what_an_agent_opens_is_read_from_what_it_did(tmp_path: Path) -> None:
    """The same record as of a model with tools; a model with neither is refused."""
    root = written(tmp_path, money=skill("money", body="- Secret money"))
    rows = [
        {"id": kind, "split": split, "input": f"Look up {kind}", "expected": f"- Secret {kind}"}
        for split, kind in (("train", "money"), ("val", "dates"))
    ]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    env = {"name": "tasks", "data_path": str(tmp_path / "tasks.jsonl"), "split_mode": "field"}
    given = {"env": env, "model": {"optimizer": "o"}}
    found = so.evaluate(root, given, evals=tmp_path, target=Agent())
    with EventLog.open(found.folder) as log:
        events = [each.event for each in log.read() if isinstance(each.event, RolloutCompleted)]
    assert {event.item: event.viewed for event in events} == {"money": ("money/SKILL.md",), "dates": ()}
    mute = Agent()
    mute.provides = frozenset({"text"})
    with pytest.raises(ConfigError, match=r"is opened with tools, and the target model \(agent\) offers no messages"):
        so.evaluate(root, given, evals=tmp_path / "other", target=mute)


def test_where_a_skill_has_several_files_an_edit_says_which(tmp_path: Path) -> None:
    """The question shows each file, its schema asks for the name, and the line lands there."""
    root = written(tmp_path, money=skill("money"))
    (root / "money" / "references").mkdir()
    (root / "money" / "references" / "codes.md").write_text("# Codes\n")
    rows = [{"id": s, "split": s, "input": f"Pay {s}", "expected": f"{s} EUR"} for s in ("train", "val", "test")]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked: list[so.ChatRequest] = []

    def target(request: so.ChatRequest) -> str:
        money = "USE EUR" in request.messages[0].content
        return request.messages[-1].content.split()[-1] + (" EUR" if money else "")

    def teacher(request: so.ChatRequest) -> str:
        asked.append(request)
        edit = {"op": "append", "file": "references/codes.md", "target": "", "content": "USE EUR"}
        return json.dumps({"patch": {"edits": [edit]}, "failure_summary": []})

    env = {"name": "tasks", "data_path": str(tmp_path / "tasks.jsonl"), "split_mode": "field"}
    given = {"env": {**env, "skill_init": str(root / "money")}, "train": {"num_epochs": 1, "batch_size": 1}}
    run = so.train(given, name="r", runs=tmp_path, target=so.ChatFunction(target), optimizer=teacher)
    assert run.skill("best").files["references/codes.md"] == "# Codes\n\nUSE EUR\n"
    analyst = asked[0]
    assert '"file"' in json.dumps(analyst.schema)
    assert "An edit names its own in `file`" in analyst.messages[-1].content


def test_a_skill_that_no_agent_could_read_is_refused(tmp_path: Path) -> None:
    """One that is far too large, before it is read; and one that is no text."""
    for name in ("large.md", "zero.md"):
        (tmp_path / name).write_text("# Skill\n")
    os.truncate(tmp_path / "large.md", 2**30)
    with pytest.raises(DataError, match="has more than 10,000,000 bytes"):
        loaded(tmp_path, "large.md")
    (tmp_path / "zero.md").write_bytes(b"# Skill\n\x00\n")
    with pytest.raises(DataError, match="not text"):
        loaded(tmp_path, "zero.md")


def test_a_skill_that_is_a_link_has_the_links_name(tmp_path: Path) -> None:
    """The config names that one; what it leads to may be another file tomorrow."""
    (tmp_path / "orig.md").write_text("# Skill\n")
    (tmp_path / "SKILL.md").symlink_to("orig.md")
    assert loaded(tmp_path, "SKILL.md")[0] == SkillTree(files={"SKILL.md": "# Skill\n"}, main="SKILL.md")
