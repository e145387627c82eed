"""
Each coding agent's conversations: where its files lie below a home folder, and how one is read.

Claude Code, Codex, Copilot and OpenCode were read from what their releases of late 2026 wrote; Cursor, which cannot be
installed from a package registry, from public descriptions of its files.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from attrs import frozen

from skillopt_es.adapters.conversations.files import (
    CannotRead,
    Gathering,
    Record,
    as_text,
    inner,
    object_of,
    parts,
    read_only,
    records,
    said,
    word,
)
from skillopt_es.events.values import clean_text
from skillopt_es.ports import Conversation, Unreadable


@frozen
class Agent:
    """A coding agent: the files that its conversations are in, and how one file is read; a file may hold many."""

    name: str
    files: Callable[[Path], Iterator[Path]]
    read: Callable[[Path], Iterator[Conversation]]


def conversations_of(agent: Agent, home: Path) -> Iterator[Conversation | Unreadable]:
    """All conversations of an agent, oldest file first; a file that cannot be read says why and stops no other."""
    for file in sorted(agent.files(home)):
        try:
            yield from agent.read(file)
        except CannotRead as error:
            yield Unreadable(agent.name, str(file), str(error))


def _claude_code(file: Path) -> Iterator[Conversation]:
    """One JSON Lines file a conversation; what helpers of the agent said to each other (`isSidechain`) is left out."""
    lines = [each for each in records(file) if each.get("type") in ("user", "assistant")]
    turns = Gathering()
    for line in lines:
        if line.get("isSidechain") is True or line.get("isMeta") is True:
            continue
        message = inner(line, "message")
        _message(turns, word(message, "role"), message)
    first = lines[0] if lines else {}
    yield _conversation("claude", word(first, "sessionId") or file.stem, first, turns)


def _message(turns: Gathering, role: str, message: Record) -> None:
    """A message in Anthropic's form."""
    for part in parts(message.get("content")):
        match word(part, "type"):
            case "text" if role == "user":
                turns.person(_without_tags(word(part, "text")))
            case "text":
                turns.agent(word(part, "text").strip())
            case "tool_use":
                turns.called(word(part, "id"), word(part, "name"), as_text(part.get("input")))
            case "tool_result":
                turns.returned(word(part, "tool_use_id"), said(part.get("content")))
            case _:
                pass  # thinking, images


def _codex(file: Path) -> Iterator[Conversation]:
    """One JSON Lines file a conversation: what the model was sent and sent back (`response_item`)."""
    turns = Gathering()
    begun: Record = {}
    for line in records(file):
        item = inner(line, "payload")
        if line.get("type") == "session_meta":
            begun = item
        if line.get("type") != "response_item":
            continue
        match word(item, "type"), word(item, "role"):
            case "message", "user":
                turns.person(_without_tags(said(item.get("content"))))
            case "message", "assistant":
                turns.agent(said(item.get("content")))
            case (("function_call" | "custom_tool_call"), _):
                given = as_text(item.get("arguments", item.get("input")))
                turns.called(word(item, "call_id"), word(item, "name"), given)
            case (("function_call_output" | "custom_tool_call_output"), _):
                turns.returned(word(item, "call_id"), as_text(item.get("output")))
            case _:
                pass  # reasoning, what the developer said
    yield _conversation("codex", word(begun, "id") or file.stem, begun, turns)


def _copilot(file: Path) -> Iterator[Conversation]:
    """One folder a conversation, with its events as JSON Lines."""
    turns = Gathering()
    begun: Record = {}
    for line in records(file):
        data = inner(line, "data")
        match word(line, "type"):
            case "session.start":
                begun = {"cwd": word(inner(data, "context"), "cwd"), "timestamp": word(data, "startTime")}
            case "user.message":
                turns.person(word(data, "content").strip())
            case "assistant.message":
                turns.agent(word(data, "content").strip())
            case "tool.execution_start":
                turns.called(word(data, "toolCallId"), word(data, "toolName"), as_text(data.get("arguments")))
            case "tool.execution_complete":
                turns.returned(word(data, "toolCallId"), word(inner(data, "result"), "content"))
            case _:
                pass  # turns, usage, the system's text
    yield _conversation("copilot", file.parent.name, begun, turns)


def _opencode(file: Path) -> Iterator[Conversation]:
    """One database for all: sessions, their messages, and the messages' parts."""
    with read_only(file) as database:
        sessions = database.execute(
            "select id, directory, time_created from session where parent_id is null order by time_created, id"
        ).fetchall()
        for key, folder, created in sessions:
            turns = Gathering()
            rows = database.execute(
                "select message.data, part.data from message join part on part.message_id = message.id "
                "where message.session_id = ? order by message.time_created, message.id, part.id",
                (key,),
            )
            for message, part in rows:
                _part(turns, word(object_of(message), "role"), object_of(part))
            yield _conversation("opencode", str(key), {"cwd": str(folder), "timestamp": str(created)}, turns)


def _part(turns: Gathering, role: str, part: Record) -> None:
    """A part of a message of OpenCode; what it adds to a message by itself is `synthetic`."""
    kind = word(part, "type")
    if kind == "text" and part.get("synthetic") is not True:
        text = word(part, "text").strip()
        if role == "user":
            turns.person(text.strip('"').strip())
        else:
            turns.agent(text)
    elif kind == "tool":
        state = inner(part, "state")
        turns.called(word(part, "callID"), word(part, "tool"), as_text(state.get("input")))
        turns.returned(word(part, "callID"), as_text(state.get("output")))


def _cursor(file: Path) -> Iterator[Conversation]:
    """Transcripts of Cursor's agent, a JSON Lines file each; or the editor's database of all conversations."""
    if file.suffix == ".jsonl":
        turns = Gathering()
        for line in records(file):
            _message(turns, word(line, "role"), inner(line, "message"))
        yield _conversation("cursor", file.stem, {}, turns)
        return
    with read_only(file) as database:
        rows = database.execute("select key, value from cursorDiskKV where key like 'composerData:%' order by key")
        for key, value in rows.fetchall():
            name = str(key).partition(":")[2]
            yield _editor_conversation(name, object_of(value), dict(_bubbles(database, name)))


def _bubbles(database: sqlite3.Connection, name: str) -> Iterator[tuple[str, Record]]:
    begin = f"bubbleId:{name}:"
    for key, value in database.execute(
        "select key, value from cursorDiskKV where substr(key, 1, ?) = ?", (len(begin), begin)
    ):
        yield str(key)[len(begin) :], object_of(value)


def _editor_conversation(name: str, data: Record, bubbles: Mapping[str, Record]) -> Conversation:
    turns = Gathering()
    headers = parts(data.get("fullConversationHeadersOnly"))
    inline = parts(data.get("conversation"))
    for bubble in inline or [bubbles.get(word(each, "bubbleId"), {}) for each in headers]:
        tool = inner(bubble, "toolFormerData")
        if tool:
            key = word(tool, "toolCallId") or word(bubble, "bubbleId")
            turns.called(key, word(tool, "name"), as_text(tool.get("rawArgs", tool.get("params"))))
            turns.returned(key, as_text(tool.get("result")))
        if bubble.get("type") == 1:
            turns.person(word(bubble, "text").strip())
        else:
            turns.agent(word(bubble, "text").strip())
    created = data.get("createdAt")
    return _conversation("cursor", name, {"timestamp": "" if created is None else str(created)}, turns)


def _conversation(agent: str, key: str, begun: Record, turns: Gathering) -> Conversation:
    return Conversation(
        agent=agent,
        id=clean_text(key),
        folder=clean_text(word(begun, "cwd")),
        when=clean_text(word(begun, "timestamp")),
        turns=turns.done(),
    )


# Agents put their own words between tags into what a person said.
_OWN_WORDS = (
    "<environment_context>",
    "<user_instructions>",
    "<system-reminder>",
    "<local-command-",
    "<command-",
    "<skill>",
    "<turn_aborted>",
    "<timestamp>",
    "<attached_files>",
    "# AGENTS.md instructions",
)


def _without_tags(text: str) -> str:
    """What the person said; empty for what the agent put in their mouth."""
    text = text.strip()
    if (begin := text.find("<user_query>")) >= 0:
        return text[begin + len("<user_query>") :].partition("</user_query>")[0].strip()
    return "" if text.startswith(_OWN_WORDS) else text


def _under(*patterns: str) -> Callable[[Path], Iterator[Path]]:
    def found(home: Path) -> Iterator[Path]:
        for pattern in patterns:
            yield from home.glob(pattern)

    return found


AGENTS: Mapping[str, Agent] = {
    agent.name: agent
    for agent in (
        Agent("claude", _under(".claude/projects/*/*.jsonl"), _claude_code),
        Agent(
            "codex", _under(".codex/sessions/**/rollout-*.jsonl", ".codex/archived_sessions/rollout-*.jsonl"), _codex
        ),
        Agent("copilot", _under(".copilot/session-state/*/events.jsonl"), _copilot),
        Agent(
            "cursor",
            _under(
                ".cursor/projects/*/agent-transcripts/*.jsonl",
                ".cursor/projects/*/agent-transcripts/*/*.jsonl",
                ".config/Cursor/User/globalStorage/state.vscdb",
                "Library/Application Support/Cursor/User/globalStorage/state.vscdb",
            ),
            _cursor,
        ),
        Agent("opencode", _under(".local/share/opencode/opencode.db"), _opencode),
    )
}
