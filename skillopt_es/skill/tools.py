"""
How a target opens skills: the tools that it is offered, the answers that it gets, and what it has opened.

The trainer answers these tools itself, between the environment and the model. An environment sees only the replies that
ask for none of them, so it needs no code for skills; what was opened is put back before the next question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from attrs import define, evolve, field, frozen

from skillopt_es.events.values import Json, SkillTree
from skillopt_es.ports import AgentStep, ChatReply, Message, Tool, ToolCall
from skillopt_es.skill.folders import (
    SKILL_FILE,
    always_shown,
    entries_of,
    entry_of,
    ids_of,
    index_of,
    listing_of,
    main_file,
    skill_of,
)

MOST_ROUNDS = 6
"""How often in a row a target may ask for skills before it has to answer."""

_STRING: Mapping[str, Json] = {"type": "string"}
LIST = Tool(
    name="skills_list",
    description="Lists your skills with their descriptions, or those of them that have all the words of `query`.",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}, "required": []},
)
VIEW = Tool(
    name="skill_view",
    description="Opens a skill: how tasks of its kind are done. With `file_path` it opens one of its other files.",
    parameters={
        "type": "object",
        "properties": {"skill_id": {"type": "string"}, "file_path": {"type": "string"}},
        "required": ["skill_id"],
    },
)
# A server's name may stand before a tool's: skills---skill_view, mcp__skills__skill_view, skills.skill_view.
_NAME = re.compile(r"(?:.*(?:-{3}|__|[./:]))?(skills_list|skill_view)", re.DOTALL)


def tool_named(name: str) -> str:
    """Which of the two tools a name means, with or without a server's name before it; empty for any other."""
    found = _NAME.fullmatch(name.strip())
    return found[1] if found else ""


# What small models put around a call that they write as text.
_WRAPPED = re.compile(r"(?:```\w*|<tool_call>)\s*(.*?)\s*(?:```|</tool_call>)", re.DOTALL)
_SPOKEN = re.compile(r"[\w./:-]*\bskill_view\(\s*(?:skill_id\s*=\s*)?[\"'`]?([a-z0-9-]+)[\"'`]?\s*\)")


def understood(reply: ChatReply, tree: SkillTree) -> ChatReply:
    """
    The reply with the request for a skill that its whole text is, where it asks by no tool: small models write it so.

    `{"name": "skill_view", "arguments": {…}}`, fenced or not, with a skill's own name in place of the tool's, or
    `skill_view("name")`. A text that is anything else besides is an answer.
    """
    if reply.tool_calls:
        return reply
    text = reply.text.strip()
    wrapped, spoken = _WRAPPED.fullmatch(text), _SPOKEN.fullmatch(text)
    call = _spoken(spoken[1]) if spoken else _written(wrapped[1] if wrapped else text, tree)
    if call is None or not _answer(tree, call).viewed:
        return reply
    return evolve(reply, finish="tools", tool_calls=(call,))


_WRITTEN = "written"  # the id of a request that was written as text


def _spoken(skill: str) -> ToolCall:
    return ToolCall(_WRITTEN, VIEW.name, json.dumps({"skill_id": skill}))


def _written(text: str, tree: SkillTree) -> ToolCall | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not set(found) <= {"name", "arguments", "parameters", "skill_id", "file_path"}:
        return None
    given, name = found.get("arguments", found.get("parameters", found)), found.get("name")
    if isinstance(name, str) and name in ids_of(tree):
        return _spoken(name)
    if not isinstance(given, dict) or not (tool_named(name) if isinstance(name, str) else "skill_id" in given):
        return None
    return ToolCall(_WRITTEN, name if isinstance(name, str) else VIEW.name, json.dumps(given))


@frozen
class _ToolAnswer:
    """What a tool answers, and the file that was opened by it."""

    said: Mapping[str, Json]
    viewed: str = ""

    @property
    def text(self) -> str:
        """The answer as the model reads it."""
        return json.dumps(self.said, ensure_ascii=False)

    def again(self) -> _ToolAnswer:
        """The answer in its place where the file is open above."""
        return _ToolAnswer(
            {"skill_id": skill_of(self.viewed), "note": "it is open already, see above; now answer"}, self.viewed
        )


_LAID = (
    "You have skills in the folder of your skills: short documents that say how tasks of one kind are to be done. Read "
    "their names and descriptions first. If one fits the task, open it before you answer, and follow it. Open only "
    "what fits. (The folder is {folder}.)"
)
# How a path below an agent's folder of skills looks in a command or a request for a file; `*` stands for all skills.
_PATH = re.compile(r"\bskills/([a-z0-9*-]+)/([\w./*-]+)")
# How agents that have a tool for skills ask for one.
_ASKED = re.compile(r"\A[Ss]kill\b.*?\"(?:skill|name|command)\": *\"/?(?:[\w-]+:)?([a-z0-9-]+)")


def opened_by(step: AgentStep, tree: SkillTree) -> list[str]:
    """The files of a folder of skills that a step of an agent opened; what failed opened nothing."""
    if step.ok is False or step.kind not in ("command", "tool"):
        return []
    asked = [(name, SKILL_FILE) for name in _ASKED.findall(step.text)]
    wanted = [(name, SKILL_FILE if "*" in file else file) for name, file in (*_PATH.findall(step.text), *asked)]
    paths = [f"{skill}/{file}" for name, file in wanted for skill in (ids_of(tree) if name == "*" else (name,))]
    return [path for path in dict.fromkeys((*paths, *_printed(step, tree))) if path in tree.files]


def _printed(step: AgentStep, tree: SkillTree) -> list[str]:
    """The files that a command printed whole: one that ran in a skill's own folder need not name it."""
    if step.kind != "command":
        return []
    # A SKILL.md has its name in it. Of another file the text alone could be anybody's.
    return [
        path
        for path, text in sorted(tree.files.items())
        if text.strip() in step.output
        and (path == main_file(skill_of(path)) or path.rpartition("/")[2] in step.text)
        and text.strip()
    ]


def _error(why: str) -> _ToolAnswer:
    return _ToolAnswer({"error": why})


def _answer(tree: SkillTree, call: ToolCall) -> _ToolAnswer:
    """The answer to one request; what cannot be understood is answered by what is wrong with it."""
    tool = tool_named(call.name)
    if call.name in ids_of(tree):  # some models take a skill for a tool
        return _opened(tree, {"skill_id": call.name})
    if not tool:
        return _error(f"there is no tool {call.name!r}; there are skills_list and skill_view")
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return _error("the arguments are not JSON")
    if not isinstance(given, dict):
        return _error("the arguments are not a JSON object")
    return _listed(tree, given) if tool == LIST.name else _opened(tree, given)


def _listed(tree: SkillTree, given: Mapping[str, Json]) -> _ToolAnswer:
    query = given.get("query")
    words = query.casefold().split() if isinstance(query, str) else []
    rows: list[Json] = [
        {"skill_id": each.id, "description": each.description}
        for each in entries_of(tree)
        if all(word in f"{each.id} {each.description}".casefold() for word in words)
    ]
    return _ToolAnswer({"skills": rows})


def _opened(tree: SkillTree, given: Mapping[str, Json]) -> _ToolAnswer:
    skill, file = given.get("skill_id"), given.get("file_path")
    if not isinstance(skill, str) or not skill.strip():
        return _error("skill_id is missing: it is the name of a skill")
    skill = skill.strip()
    if skill not in ids_of(tree):
        return _error(f"there is no skill {skill!r}; there are: {', '.join(ids_of(tree))}")
    named = file.strip() if isinstance(file, str) else ""
    # Some models name a file from the folder of all skills on.
    path = named if named.startswith(f"{skill}/") else f"{skill}/{named}"
    if not named or path == main_file(skill):
        entry = entry_of(tree, skill)
        others: list[Json] = [each.partition("/")[2] for each in entry.others]
        said: dict[str, Json] = {"skill_id": skill, "content": entry.body}
        return _ToolAnswer(said | ({"files": others} if others else {}), main_file(skill))
    if path not in tree.files:
        return _error(f"{skill} has no file {named!r}")
    return _ToolAnswer({"skill_id": skill, "file_path": path.partition("/")[2], "content": tree.files[path]}, path)


@frozen
class _Visit:
    """
    What was asked of the skills and answered, after so many of the environment's own messages.

    Where the target asked for tools of the environment in the same reply, that reply is the environment's next message.
    """

    before: tuple[Message, ...]
    messages: tuple[Message, ...]
    instead: bool = False
    opened: tuple[str, ...] = ()


@define
class Shelf:
    """
    The skills of one attempt, and what the target has opened of them.

    A target that has its `own` way to skills is offered no tools: what it opened is read from what it did. For one that
    writes its request as text, what it asks for is `laid` open in the place of the list, and it is offered no tools any
    more: it would continue to ask for them. `stuck` is one that asks only for what is open before it.
    """

    tree: SkillTree
    own: bool = False
    visits: list[_Visit] = field(factory=list)
    viewed: list[str] = field(factory=list)
    laid: dict[str, str] = field(factory=dict)
    stuck: bool = False

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the target is offered; nothing where there is nothing to open."""
        return (LIST, VIEW) if listing_of(self.tree) and not self.own else ()

    @property
    def offered(self) -> tuple[Tool, ...]:
        """Those that stand in the next question."""
        return () if self.laid else self.tools

    @property
    def injected(self) -> tuple[str, ...]:
        """The files that it is shown without asking."""
        return always_shown(self.tree)

    @property
    def shown(self) -> SkillTree:
        """What an environment puts before the target: the names and descriptions, as if they were one document."""
        return SkillTree(files={"SKILL.md": self._laid() if self.own else index_of(self.tree)})

    def _laid(self) -> str:
        """What is said to an agent that finds the skills in its folder; it names them all, for a request has to."""
        shown = [f"### {each.id}\n{each.body}" for each in entries_of(self.tree) if each.always]
        return "\n\n".join([*([_LAID.format(folder=self.tree.hash[:16])] if self.tree.files else []), *shown])

    def note_opened(self, steps: Sequence[AgentStep]) -> None:
        """Takes note of what an agent has opened on its way."""
        for path in (path for step in steps for path in opened_by(step, self.tree)):
            if path not in self.viewed:
                self.viewed.append(path)

    def with_opened(self, messages: Sequence[Message]) -> list[Message]:
        """The environment's messages with what was opened before, where it was opened, or in the place of the list."""
        if self.laid:
            always = [f"### {each.id}\n{each.body}" for each in entries_of(self.tree) if each.always]
            texts = "\n\n".join([*always, *(f"### {path}\n{text}" for path, text in self.laid.items())])
            index = index_of(self.tree)
            return [evolve(each, content=each.content.replace(index, texts)) for each in messages]
        self.visits = [each for each in self.visits if tuple(messages[: len(each.before)]) == each.before]
        whole = list(messages)
        # From the last to the first, so that places do not shift.
        for visit in reversed(self.visits):
            at = len(visit.before)
            whole[at : at + visit.instead] = visit.messages
        return whole

    def answered(self, own: Sequence[Message], reply: ChatReply, theirs: frozenset[str]) -> tuple[list[Message], bool]:
        """
        What follows a reply that asks for skills, and whether the target is asked again; nothing for another reply.

        `theirs` are the names of the environment's own tools, which it answers itself.
        """
        calls = [call for call in reply.tool_calls if call.name not in theirs]
        if reply.finish != "tools" or not calls:
            return [], False
        mixed, here = len(calls) < len(reply.tool_calls), {path for visit in self.visits for path in visit.opened}
        answers = [(call, _answer(self.tree, call)) for call in calls]
        if calls[0].id == _WRITTEN:
            return [], self._lay(answers[0][1])
        self.stuck = all(answer.viewed in here for _, answer in answers)
        given = [(call, answer.again() if answer.viewed in here else answer) for call, answer in answers]
        tools = [Message("tool", each.text, tool_call_id=call.id) for call, each in given]
        said = [Message("assistant", reply.text, tool_calls=reply.tool_calls), *tools]
        opened = tuple(answer.viewed for _, answer in answers if answer.viewed)
        self.viewed += [path for path in dict.fromkeys(opened) if path not in self.viewed]
        last = self.visits[-1] if self.visits else None
        if last is not None and not last.instead and last.before == tuple(own):
            opened, messages = (*last.opened, *opened), (*last.messages, *said)
            self.visits[-1] = evolve(last, messages=messages, instead=mixed, opened=opened)
        else:
            self.visits.append(_Visit(tuple(own), tuple(said), instead=mixed, opened=opened))
        return said, not mixed

    def _lay(self, answer: _ToolAnswer) -> bool:
        """Whether what was asked for in writing is laid open now; a request for what is so already is an answer."""
        if answer.viewed in self.laid:
            return False
        self.laid[answer.viewed] = str(answer.said["content"])
        if answer.viewed not in self.viewed:
            self.viewed.append(answer.viewed)
        return True


def left_to(reply: ChatReply, theirs: frozenset[str]) -> ChatReply:
    """The reply as the environment sees it: without what was asked of the skills."""
    calls = tuple(call for call in reply.tool_calls if call.name in theirs)
    if reply.finish != "tools" or len(calls) == len(reply.tool_calls):
        return reply
    return evolve(reply, tool_calls=calls, finish="tools" if calls else "stop")


def opened_words(viewed: Sequence[str]) -> str:
    """What a trajectory says of the skills that were opened; not their text, which its reader has."""
    names = [skill_of(path) if path == main_file(skill_of(path)) else path for path in viewed]
    return f"[skill_view] opened {', '.join(names)}" if names else "[skill_view] opened no skill"
