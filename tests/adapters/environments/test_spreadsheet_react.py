"""SpreadsheetBench with tools: the target explores the workbook, and what it leaves in solution.py is graded."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from support.environments import CONFINED, SKILL, data_settings, open_on
from support.params import parametrized
from support.spreadsheets import SALES, record, sales, sales_with, workbook, write_records, write_task

from skillopt_es.adapters.environments.spreadsheetbench.react import MOST_OUTPUT
from skillopt_es.events.values import Failed, Measured
from skillopt_es.ports import ChatReply, Episode, Message, Tool, ToolCall

SOLUTION = """\
INPUT_PATH, OUTPUT_PATH = "input.xlsx", "output.xlsx"
import openpyxl
book = openpyxl.load_workbook(INPUT_PATH)
book.worksheets[0]["D2"] = book.worksheets[0]["B2"].value + book.worksheets[0]["B6"].value
book.save(OUTPUT_PATH)
"""


DONE = ChatReply(text="done", finish="stop")


@define
class Agent:
    """Asks for the tools of its script, one list of requests a turn, then says that it is done."""

    script: Sequence[Sequence[tuple[str, Any]]]
    last: ChatReply = DONE
    asked: list[list[Message]] = field(factory=list)
    offered: list[str] = field(factory=list)

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        tools: Sequence[Tool] = (),
        tool_choice: str = "",
    ) -> ChatReply:
        self.asked.append(list(messages))
        self.offered = [tool.name for tool in tools]
        turn = len(self.asked) - 1
        if turn >= len(self.script):
            return self.last
        calls = [
            ToolCall(f"call-{turn}-{place}", name, given if isinstance(given, str) else json.dumps(given))
            for place, (name, given) in enumerate(self.script[turn])
        ]
        return ChatReply(text="", finish="tools", tool_calls=tuple(calls))


def write(path: str, content: str) -> tuple[str, Any]:
    return "write_file", {"path": path, "content": content}


def bash(command: str) -> tuple[str, Any]:
    return "bash", {"cmd": command}


def tried(root: Path, agent: Agent, **options: Any) -> Episode:
    """The episode of an item with two workbooks."""
    second = {**SALES, "Sales": {**SALES["Sales"], "B2": 10}}
    gold = {**SALES, "Sales": {**SALES["Sales"], "B2": 10, "D2": 13}}
    pairs = [(sales(), sales_with(D2=4.2)), (workbook(second), workbook(gold))]
    for name in ("train", "val", "test"):
        write_task(root, name, pairs)
    path = write_records(root, [record(name, split=name) for name in ("train", "val", "test")])
    data = data_settings(split_mode="field", split_field="split", data_path=str(path))
    options = {"mode": "react", "sandbox": "confined" if CONFINED else "unconfined", **options}
    environment = open_on(root, "spreadsheetbench", data, **options)
    [item] = environment.load().train
    return asyncio.run(environment.attempt(item, SKILL, agent, seed=1))


def test_what_is_in_solution_py_is_graded_on_every_workbook(tmp_path: Path) -> None:
    """Whatever was run before; several requests of one reply are answered in order."""
    look = "python -c \"import openpyxl; print(openpyxl.load_workbook('input.xlsx').sheetnames)\""
    agent = Agent([[bash(look)], [write("solution.py", SOLUTION), bash("python3 solution.py")]])
    episode = tried(tmp_path, agent)
    assert (episode.outcome, episode.turns, agent.offered) == (Measured(1, 1), 3, ["bash", "write_file"])
    said = [message.content for message in agent.asked[-1] if message.role == "tool"]
    assert said == [
        "['Sales', 'Other sheet']\n(output.xlsx is not there)",
        f"Wrote {len(SOLUTION)} bytes to solution.py.",
        "(output.xlsx is there)",
    ]
    assert [record.kind for record in episode.records] == ["system", "user", *["tool"] * 6, "reply", "feedback"]
    assert "solution.py" in episode.records[0].text


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (write("../x.py", ""), "is not a file in the work folder"),
        (write("/etc/x", ""), "is not a file in the work folder"),
        (write("input.xlsx", ""), "cannot be written"),
        (write("big", "x" * 2_000_000), "too much"),
        (bash("rm -rf /"), "Only Python can be run"),
        (bash("python -c 'open"), "cannot be read: No closing quotation"),
        (bash(""), "Only Python can be run"),
        (("bash", {"command": "python x"}), "needs the texts cmd"),
        (("bash", ["python"]), "needs the texts cmd"),
        (("bash", "{not json"), "are not JSON"),
        (("delete", {}), "There is no tool 'delete'"),
    ],
)
def test_a_request_that_makes_no_sense_is_answered(call: tuple[str, Any], answer: str) -> None:
    """In a sentence, and nothing is started."""
    from skillopt_es.adapters.environments.spreadsheetbench.react import Desk
    from skillopt_es.adapters.sandboxes.opening import new_sandbox

    name, given = call
    desk = Desk(sandbox=new_sandbox("confined"), given=b"", seconds=1)
    asked = ToolCall("1", name, given if isinstance(given, str) else json.dumps(given))
    assert answer in asyncio.run(desk.use(asked))
    assert desk.files == {}


def test_commands_show_no_place_of_this_machine_and_end(tmp_path: Path) -> None:
    """Tracebacks, addresses, much output, a file that was written before, and the input that each command gets anew."""
    noisy = f"print('x' * {3 * MOST_OUTPUT})\nopen('input.xlsx', 'w')\nimport openpyxl\nopenpyxl.load_workbook('no')"
    size = bash('python -c \'print(len(open("input.xlsx", "rb").read()))\'')
    script = [
        [write("noisy.py", noisy), bash("python noisy.py")],
        [write("quiet.py", "print(object())\nimport nothing")],
        [bash("python quiet.py"), size],
    ]
    agent = Agent(script)
    episode = tried(tmp_path, agent)
    said = [message.content for message in agent.asked[-1] if message.role == "tool"]
    assert len(said[1]) < MOST_OUTPUT + 100
    assert "characters left out" in said[1]
    assert 'File "/sandbox/quiet.py", line 2' in said[3]
    assert "<object object at 0x…>" in said[3]
    assert "(exit code 1)" in said[3]
    assert said[4].startswith(str(len(sales())))
    assert sys.prefix not in repr(episode)
    assert (episode.failure, episode.detail) == ("no_answer", "there is no script")


@parametrized(
    ("script", "turns", "outcome"),
    [([[write("solution.py", SOLUTION)], [bash("python -V")], [bash("python -V")]], 2, Measured(1, 1)),
     ([[bash("python -V")]] * 3, 2, Measured(0, 0))], by_default=1)  # fmt: skip
def test_turns_have_an_end(tmp_path: Path, script: Any, turns: int, outcome: Measured) -> None:
    """What is there then is graded."""
    agent = Agent(script)
    episode = tried(tmp_path, agent, max_turns=2)
    assert (episode.turns, len(agent.asked), episode.outcome) == (turns, turns, outcome)


def test_a_cut_reply_is_not_measured(tmp_path: Path) -> None:
    """As in the other modes."""
    agent = Agent([[write("solution.py", SOLUTION)]], last=ChatReply(text="", finish="length"))
    assert isinstance(tried(tmp_path, agent).outcome, Failed)


def test_the_mode_needs_a_target_with_tools(tmp_path: Path) -> None:
    """Which is found out before the first event."""
    needs = [open_on(tmp_path, "spreadsheetbench", data_settings(), mode=mode).requires for mode in ("react", "single")]  # type: ignore[attr-defined]
    assert needs == [{"text", "tools"}, {"text"}]
