"""Conversations as the agents themselves wrote them: each was asked once, with its model on a loopback endpoint."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from skillopt_es.adapters.conversations.agents import AGENTS, conversations_of
from skillopt_es.ports import Conversation, ToolUse, Turn, Unreadable

WRITTEN = Path(__file__).parent / "written"
ASKED = (
    "kind: apple id: 1. Write the release note of version 1.4 with a section Fixed; mail it to jane.doe@example.org, "
    "token sk-proj-abcdef0123456789abcdef0123456789 Follow the rules in /home/jane/work/SKILL.md"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with the files of all agents."""
    home = tmp_path / "home"
    shutil.copytree(WRITTEN, home)
    database = home / ".local/share/opencode/opencode.db"
    database.parent.mkdir(parents=True)
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript((WRITTEN / "opencode.sql").read_text(encoding="utf-8"))
    return home


def read(home: Path, name: str) -> list[Conversation]:
    """The conversations of an agent, all of which can be read."""
    found = list(conversations_of(AGENTS[name], home))
    assert not [each for each in found if isinstance(each, Unreadable)]
    return [each for each in found if isinstance(each, Conversation)]


@pytest.mark.parametrize(
    ("name", "tool", "answer"),
    [
        ("claude", ToolUse(name="Read", given='{"file_path": "/home/jane/work/SKILL.md"}'), "right"),
        ("codex", ToolUse(name="exec_command", given='{"cmd": "cat /home/jane/work/SKILL.md"}'), "right"),
        ("copilot", ToolUse(name="view", given='{"path": "/home/jane/work/SKILL.md"}'), "right"),
    ],
)
def test_what_an_agent_wrote_is_read(home: Path, name: str, tool: ToolUse, answer: str) -> None:
    """The person's words, not those that the agent put in their mouth; the tool with its result; the last answer."""
    [one] = read(home, name)
    [turn] = one.turns
    assert (turn.asked, turn.answered, one.folder) == (ASKED, answer, "/home/jane/work")
    assert one.when.startswith("2026-11-19T08:5")
    [called] = turn.tools
    assert (called.name, called.given) == (tool.name, tool.given)
    assert "know apple" in called.result


def test_opencode_keeps_all_in_one_database(home: Path) -> None:
    """Which is copied before it is read: nothing in its folder changes."""
    folder = home / ".local/share/opencode"
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    [one] = read(home, "opencode")
    [turn] = one.turns
    assert (turn.asked, turn.answered, turn.tools[0].name) == (ASKED, "wrong", "invalid")
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_cursors_transcripts_are_read(tmp_path: Path) -> None:
    """The person's words stand between tags, beside what the editor adds."""
    file = tmp_path / ".cursor/projects/work/agent-transcripts/one/one.jsonl"
    file.parent.mkdir(parents=True)
    said = "<timestamp>Tuesday</timestamp>\n<user_query>\nSort these names\n</user_query>"
    use = {"type": "tool_use", "id": "t", "name": "Read", "input": {"path": "a"}}
    lines = [
        {"role": "user", "message": {"content": [{"type": "text", "text": said}]}},
        {"role": "assistant", "message": {"content": [use, {"type": "text", "text": "Done."}]}},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    [one] = read(tmp_path, "cursor")
    assert one.turns == (
        Turn(asked="Sort these names", answered="Done.", tools=(ToolUse(name="Read", given='{"path": "a"}'),)),
    )


def test_cursors_editor_keeps_bubbles(tmp_path: Path) -> None:
    """In the order of the conversation's headers."""
    file = tmp_path / ".config/Cursor/User/globalStorage/state.vscdb"
    file.parent.mkdir(parents=True)
    rows = {
        "composerData:c": {
            "createdAt": 1795078387704,
            "fullConversationHeadersOnly": [{"bubbleId": "2"}, {"bubbleId": "1"}],
        },
        "bubbleId:c:1": {"type": 2, "text": "Ada, Bob"},
        "bubbleId:c:2": {"type": 1, "text": "Sort Bob, Ada"},
    }
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("create table cursorDiskKV (key text, value blob)")
        connection.executemany(
            "insert into cursorDiskKV values (?, ?)", [(key, json.dumps(value)) for key, value in rows.items()]
        )
        connection.commit()
    [one] = read(tmp_path, "cursor")
    assert (one.turns, one.when) == ((Turn(asked="Sort Bob, Ada", answered="Ada, Bob"),), "1795078387704")


def test_a_line_that_is_still_being_written_is_left_for_later(home: Path) -> None:
    """All before it count."""
    [file] = home.glob(".claude/projects/*/*.jsonl")
    with file.open("a", encoding="utf-8") as end:
        end.write('{"type": "user", "mess')
    assert len(read(home, "claude")) == 1


@pytest.mark.parametrize(
    ("name", "damage", "why"),
    [
        ("claude", b"{broken\n", "line 1 is not JSON"),
        ("codex", b"\xff\xfe\n", "it is not UTF-8 text"),
        ("opencode", b"no database at all", "SQLite says: file is not a database"),
    ],
)
def test_a_file_that_cannot_be_read_says_why_and_stops_no_other(home: Path, name: str, damage: bytes, why: str) -> None:
    """It is left out by name."""
    [file] = AGENTS[name].files(home)
    file.write_bytes(damage + file.read_bytes() if name != "opencode" else damage)
    found = list(conversations_of(AGENTS[name], home))
    assert found == [Unreadable(name, str(file), why)]
