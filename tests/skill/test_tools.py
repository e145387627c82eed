"""How a target opens skills: what it is answered, what counts as opened, and what an environment sees of it."""

from __future__ import annotations

import json

import pytest
from support.skills import folder, skill

from skillopt_es.events.values import SkillTree
from skillopt_es.ports import AgentStep, ChatReply, Message, StepKind, ToolCall
from skillopt_es.skill.tools import LIST, VIEW, Shelf, left_to, opened_by, opened_words, tool_named, understood

TREE = SkillTree(
    {
        **folder(money=skill("money", "Sums."), house=skill("house", more="always: true\n")).files,
        "money/references/codes.md": "EUR",
        "moneybox/SKILL.md": skill("moneybox", "Savings."),
    },
    main="",
)
ASKED = (Message("system", "s"), Message("user", "u"))


def wants(*calls: tuple[str, str]) -> ChatReply:
    """A reply that asks for tools."""
    return ChatReply(
        text="",
        finish="tools",
        tool_calls=tuple(ToolCall(f"c{number}", *call) for number, call in enumerate(calls)),
    )


def answers(shelf: Shelf, *calls: tuple[str, str]) -> list[dict[str, object]]:
    """What is said to some requests."""
    said, _ = shelf.answered(ASKED, wants(*calls), frozenset())
    return [json.loads(message.content) for message in said if message.role == "tool"]


def test_a_tool_is_known_with_and_without_its_servers_name() -> None:
    """As models are given it, and as servers call it."""
    for name in ("skill_view", "skills---skill_view", "mcp__skills__skill_view", "skills.skill_view", "a/skill_view"):
        assert tool_named(name) == "skill_view"
    assert [tool_named(name) for name in ("my_skill_view", "skill_views", "")] == ["", "", ""]


def test_a_skill_is_opened_without_its_frontmatter_and_its_files_one_by_one() -> None:
    """The files are named in the first answer."""
    shelf = Shelf(TREE)
    assert shelf.tools == (LIST, VIEW)
    [listed, one, codes] = answers(
        shelf,
        ("skills_list", '{"query": "sum"}'),
        ("skills---skill_view", '{"skill_id": "money"}'),
        ("skill_view", '{"skill_id": "money", "file_path": "references/codes.md"}'),
    )
    assert listed == {"skills": [{"skill_id": "money", "description": "Sums."}]}
    assert one == {"skill_id": "money", "content": "- a rule", "files": ["references/codes.md"]}
    assert codes["content"] == "EUR"
    answers(shelf, ("skill_view", '{"skill_id": "money"}'))
    assert shelf.viewed == ["money/SKILL.md", "money/references/codes.md"]
    assert shelf.injected == ("house/SKILL.md",)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("skill_view", "{", "the arguments are not JSON"),
        ("skill_view", "[1]", "the arguments are not a JSON object"),
        ("skill_view", "", "skill_id is missing"),
        ("skill_view", '{"skill_id": " "}', "skill_id is missing"),
        ("skill_view", '{"skill_id": 7}', "skill_id is missing"),
        ("skill_view", '{"skill_id": "dates"}', "there is no skill 'dates'; there are: house, money, moneybox"),
        ("skill_view", '{"skill_id": "money", "file_path": "../moneybox/SKILL.md"}', "money has no file"),
        ("skill_view", '{"skill_id": "../money"}', "there is no skill"),
        ("skill_manage", '{"action": "delete", "skill_id": "money"}', "there is no tool 'skill_manage'"),
    ],
)
def test_what_cannot_be_understood_is_answered_and_opens_nothing(name: str, arguments: str, said: str) -> None:
    """A sibling whose name begins alike is another skill."""
    shelf = Shelf(TREE)
    [found] = answers(shelf, (name, arguments))
    assert said in str(found["error"])
    assert (shelf.viewed, opened_words(shelf.viewed)) == ([], "[skill_view] opened no skill")


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "skill_view", "arguments": {"skill_id": "money"}}',
        '```json\n{"name": "money", "arguments": {"amount": 3}}\n```',
        '<tool_call>\n{"name": "skills---skill_view", "parameters": {"skill_id": "money"}}\n</tool_call>',
        '{"skill_id": "money"}',
        'skill_view("money")',
        "skills---skill_view(skill_id='money')",
    ],
)
def test_a_request_that_a_small_model_writes_as_its_whole_text_is_one(text: str) -> None:
    """The skill stands in the place of the list then, and no tools are offered: such a model would ask on."""
    shelf = Shelf(TREE)
    listed = (Message("system", f"Be brief.\n\n{shelf.shown.text}"), Message("user", "u"))
    reply = understood(ChatReply(text=text, finish="stop"), TREE)
    assert shelf.answered(listed, reply, frozenset()) == ([], True)
    assert shelf.viewed == ["money/SKILL.md"]
    [system, user] = shelf.with_opened(listed)
    assert system.content == "Be brief.\n\n### house\n- a rule\n\n### money/SKILL.md\n- a rule"
    assert user == listed[1]
    assert (shelf.offered, shelf.tools) == ((), (LIST, VIEW))
    assert shelf.answered(listed, reply, frozenset()) == ([], False)
    assert left_to(reply, frozenset()).text == text


def test_what_is_open_already_is_not_told_twice() -> None:
    """A target that asks for nothing else has to answer."""
    shelf = Shelf(TREE)
    answers(shelf, ("skill_view", '{"skill_id": "money"}'))
    assert not shelf.stuck
    [told] = answers(shelf, ("skill_view", '{"skill_id": "money"}'))
    assert (told["note"], shelf.stuck) == ("it is open already, see above; now answer", True)
    answers(shelf, ("skill_view", '{"skill_id": "money"}'), ("skills_list", "{}"))
    assert not shelf.stuck
    shelf.with_opened((Message("system", "another"), Message("user", "conversation")))
    [whole] = answers(shelf, ("skill_view", '{"skill_id": "money"}'))
    assert whole["content"] == "- a rule"


@pytest.mark.parametrize(
    "text",
    [
        "money",
        'I would call skill_view("money").',
        '{"name": "Anna", "arguments": {"skill_id": "money"}}',
        '{"name": "money", "town": "BONN"}',
        '{"name": ["money"]}',
        "[1]",
        "skill_view()",
        "skill_view('nothing')",
        "",
    ],
)
def test_any_other_text_is_an_answer(text: str) -> None:
    reply = ChatReply(text=text, finish="stop")
    assert understood(reply, TREE) is reply


def test_a_skill_that_is_asked_for_as_if_it_were_a_tool_is_opened() -> None:
    shelf = Shelf(TREE)
    [told] = answers(shelf, ("money", '{"amount": 3}'))
    assert (told["skill_id"], shelf.viewed) == ("money", ["money/SKILL.md"])


def test_what_was_opened_stands_where_it_was_opened_when_an_environment_asks_on() -> None:
    """It sees its own messages alone; where it begins anew, nothing is put back."""
    shelf = Shelf(TREE)
    said, goes_on = shelf.answered(ASKED, wants(("skill_view", '{"skill_id": "money"}')), frozenset())
    assert goes_on
    longer = [*ASKED, Message("assistant", "a"), Message("user", "check")]
    assert shelf.with_opened(longer) == [*ASKED, *said, *longer[2:]]
    assert shelf.with_opened([Message("user", "other")]) == [Message("user", "other")]


def test_a_reply_that_asks_for_both_is_shared() -> None:
    """The environment answers its own tools; the model later sees one reply with all answers."""
    shelf, own = Shelf(TREE), frozenset({"grep"})
    reply = wants(("skill_view", '{"skill_id": "money"}'), ("grep", "{}"))
    said, goes_on = shelf.answered(ASKED, reply, own)
    seen = left_to(reply, own)
    assert (goes_on, seen.finish, [call.name for call in seen.tool_calls]) == (False, "tools", ["grep"])
    found = Message("tool", "hit", tool_call_id="c1")
    told = shelf.with_opened([*ASKED, Message("assistant", "", tool_calls=seen.tool_calls), found])
    assert told == [*ASKED, *said, found]
    assert [each.tool_call_id for each in told if each.role == "tool"] == ["c0", "c1"]
    assert left_to(wants(("skill_view", "{}")), own).finish == "stop"


@pytest.mark.parametrize(
    ("kind", "text", "opened"),
    [
        ("command", "sed -n 1,200p .agents/skills/money/SKILL.md", ["money/SKILL.md"]),
        ("command", "cat .agents/skills/money/references/codes.md", ["money/references/codes.md"]),
        (
            "command",
            "cat /workspace/.agents/skills/*/SKILL.md",
            ["house/SKILL.md", "money/SKILL.md", "moneybox/SKILL.md"],
        ),
        ("command", "ls .agents/skills .agents/skills/money", []),
        ("command", "cat .agents/skills/dates/SKILL.md", []),
        ("tool", 'Skill {"skill": "money"}', ["money/SKILL.md"]),
        ("tool", 'Read {"file_path": "/workspace/.claude/skills/money/SKILL.md"}', ["money/SKILL.md"]),
        ("tool", 'skill {"skill":"moneybox"}', ["moneybox/SKILL.md"]),
        ("tool", 'view {"path": "/workspace/.github/skills/money/SKILL.md"}', ["money/SKILL.md"]),
        ("message", "I read .agents/skills/money/SKILL.md", []),
    ],
)
def test_what_an_agent_opened_is_read_from_what_it_did(kind: StepKind, text: str, opened: list[str]) -> None:
    """As Codex, Claude Code and Copilot say it; what failed, and what was only spoken of, opened nothing."""
    step = AgentStep(kind=kind, text=text, ok=True)
    assert opened_by(step, TREE) == opened
    assert opened_by(AgentStep(kind=kind, text=text, ok=False), TREE) == []


@pytest.mark.parametrize(
    ("said", "opened"),
    [
        (skill("money", "Sums."), ["money/SKILL.md"]),
        (f"EUR\n{skill('moneybox', 'Savings.')}", ["moneybox/SKILL.md"]),
        ("EUR", []),
        ("a rule", []),
    ],
)
def test_a_command_that_printed_a_skill_opened_it_wherever_it_ran(said: str, opened: list[str]) -> None:
    """Codex says nothing of the folder that a command ran in; what could be anybody's text opens nothing."""
    assert opened_by(AgentStep(kind="command", text="cat SKILL.md", output=said, ok=True), TREE) == opened
    named = AgentStep(kind="command", text="cat references/codes.md", output="EUR\n", ok=True)
    assert opened_by(named, TREE) == ["money/references/codes.md"]
    assert opened_by(AgentStep(kind="message", text="cat SKILL.md", output=said, ok=True), TREE) == []


def test_an_agent_with_skills_of_its_own_is_offered_no_tools() -> None:
    """It is told that they are there, under a name that no other folder has; what is always shown is shown."""
    shelf = Shelf(TREE, own=True)
    assert shelf.tools == ()
    told = shelf.shown.text
    assert "skill_view" not in told
    assert TREE.hash[:16] in told
    assert told.endswith("### house\n- a rule")
    shelf.note_opened([AgentStep(kind="tool", text='Skill {"skill": "money"}', ok=True)] * 2)
    assert shelf.viewed == ["money/SKILL.md"]
    assert Shelf(SkillTree({}, main=""), own=True).shown.text == ""
