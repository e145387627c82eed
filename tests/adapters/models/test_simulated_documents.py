"""The simulated target before documents: it reads pages from their pixels, and bulletins with the tools it is given."""

from __future__ import annotations

import asyncio
import json
import struct
import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from support.chat import settings
from support.environments import data_settings, open_on
from support.pictures import JPEG, page

from skillopt_es.adapters.models.simulated import open_model
from skillopt_es.adapters.models.simulated.kinds import Rule
from skillopt_es.adapters.models.simulated.sight import GLYPHS, text_on
from skillopt_es.adapters.models.simulated.target import UNKNOWN
from skillopt_es.adapters.models.simulated.worlds import all_harmful, all_style, worlds
from skillopt_es.config.layers import demo_config
from skillopt_es.events.values import Measured, SkillTree
from skillopt_es.ports import ChatReply, ChatRequest, Image, Message, Tool

WORLDS = {name: worlds()[name] for name in ("docvqa", "officeqa")}
OPTIONS: dict[str, dict[str, Any]] = {
    "docvqa": {"data_root": "docvqa"},
    "officeqa": {"data_dirs": ["officeqa/docs"]},
}
PAGE = ["MEMORANDUM", "", "DATE: 3/12/1964", "CITY: KELVIK"]
WHOLE = page(PAGE)
PROMPT = "{}\n\nGive the final answer inside <answer> and </answer> tags."


def _target(messages: Sequence[Message], tools: Sequence[Tool] = (), max_tokens: int = 1000) -> ChatReply:
    model = open_model(settings("", role="target", backend="simulated"), {})
    request = ChatRequest(
        slot="s", stage="rollout", messages=tuple(messages), max_tokens=max_tokens, tools=tuple(tools)
    )
    return asyncio.run(model.complete(request))


# --- eyes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1, 2, 3, 7])
def test_every_letter_is_read_at_any_size(scale: int) -> None:
    """And no two look alike."""
    assert len(set(GLYPHS.values())) == len(GLYPHS)
    lines = ["".join(GLYPHS).strip(), "", "TOTAL: $ 1,204.50"]
    assert text_on(page(lines, scale=scale)).splitlines() == lines


def _png(*, width: int = 2, height: int = 2, form: tuple[int, ...] = (8, 0, 0, 0, 0), data: bytes = bytes(6)) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, *form))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "picture",
    [
        JPEG,
        b"",
        WHOLE[:40],
        WHOLE[:-200],
        _png(form=(8, 2, 0, 0, 0)),
        _png(data=b"\x01\0\0\x01\0\0"),
        _png(data=b"\0"),
        _png(width=0),
        _png(width=1 << 20, height=1 << 20),
        _png(data=b"\0\xff\xff" * 2),
    ],
    ids=["jpeg", "nothing", "no pixels", "cut", "colour", "filtered", "short", "no width", "huge", "white"],
)
def test_what_it_cannot_read_it_does_not_see(picture: bytes) -> None:
    """A photograph, a scan, a damaged file: no text, and no error."""
    assert text_on(picture) == ""


def test_an_answer_is_what_stands_on_the_page_that_was_sent() -> None:
    """The same question about other pixels has another answer; without a page it knows none."""

    def said(*images: Image) -> str:
        return _target([Message("user", PROMPT.format("Which city is the memorandum from?"), images=images)]).text

    assert "<answer>KELVIK</answer>" in said(Image("image/png", WHOLE))
    other = page([line.replace("KELVIK", "LUNFORD") for line in PAGE])
    assert "<answer>LUNFORD</answer>" in said(Image("image/png", other))
    assert said() == said(Image("image/jpeg", JPEG)) == UNKNOWN


# --- rules -----------------------------------------------------------------------------------------------------------


@cache
def _solved(name: str, skill: str) -> frozenset[str]:
    """The ids of a demo's validation items that the simulated target solves under a skill."""
    folder = demo_config(name).parent
    data = data_settings(split_mode="field", data_path=str(folder / name / "items.jsonl"))
    environment = open_on(folder, name, data, **OPTIONS[name])
    model = open_model(settings("", role="target", backend="simulated"), {})

    async def ask(
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        tools: Sequence[Tool] = (),
        tool_choice: str = "",
    ) -> ChatReply:
        request = ChatRequest(slot="s", stage="rollout", messages=tuple(messages), max_tokens=999, tools=tuple(tools))
        return await model.complete(request)

    async def all_of_them() -> frozenset[str]:
        tree = SkillTree({"SKILL.md": skill})
        found = {item.id: await environment.attempt(item, tree, ask, seed=1) for item in environment.load().val}
        solved = {name for name, each in found.items() if isinstance(each.outcome, Measured) and each.outcome.passed}
        kinds = {item.id: item.task_type for item in environment.load().val}
        return frozenset(f"{kinds[name]}/{name}" for name in solved)

    return asyncio.run(all_of_them())


RULES = [(name, rule) for name, world in WORLDS.items() for rule in world.style]


@pytest.mark.parametrize(("name", "rule"), RULES, ids=lambda part: part.name if isinstance(part, Rule) else part)
def test_each_rule_repairs_its_own_kind_and_no_other(name: str, rule: Rule) -> None:
    """Which without it is (nearly) always missed."""
    before, after = _solved(name, "# Skill"), _solved(name, f"# Skill\n- {rule.wording}")
    assert before < after
    assert len({each.partition("/")[0] for each in after - before}) == 1
    others = [f"- {each.wording}" for other, each in RULES if other != name]
    assert _solved(name, "\n".join(others)) == before


@pytest.mark.parametrize("name", WORLDS)
def test_all_rules_repair_nearly_everything_and_habits_spoil_it(name: str) -> None:
    """Lapses stay."""
    whole = "\n".join(f"- {rule.wording}" for rule in WORLDS[name].style)
    best = _solved(name, whole)
    assert len(best) > 2 * len(_solved(name, "# Skill"))
    for habit in WORLDS[name].habits:
        assert len(_solved(name, f"{whole}\n- {habit.rule.wording}")) < 0.9 * len(best)


def test_a_wording_says_its_own_rule_and_no_other_one() -> None:
    """Of all worlds."""
    every = (*all_style(), *all_harmful())
    for rule in every:
        assert [other.name for other in every if other.said_by(rule.wording)] == [rule.name]
    assert len({rule.name for rule in every}) == len(every)


# --- tools -----------------------------------------------------------------------------------------------------------

BULLETIN = """\
Outlays (in thousands of dollars)
| Item | Amount |
| Public works, March 1939 | 12,500 |
"""
ANSWERS = {
    "glob": "treasury_bulletin_1939_06.txt",
    "grep": "3: | Public works, March 1939 | 12,500 |",
    "read": BULLETIN,
}
QUESTION = (
    "## Question\nHow many millions of dollars were spent on public works in March 1939?\n\n"
    "## Candidate files\n- treasury_bulletin_1939_06.txt"
)
TOOLS = [Tool(name, name, {}) for name in ANSWERS]


@pytest.mark.parametrize(
    ("skill", "tools", "answer"),
    [
        ("# Skill", ["glob", "grep"], "12,500"),
        ("- Read the heading of a table and convert the figure.", ["glob", "grep", "read"], "12.5"),
    ],
)
def test_how_thoroughly_it_reads_follows_from_the_skill(skill: str, tools: list[str], answer: str) -> None:
    """One request at a time; the answer is made of what the tools said."""
    messages = [Message("system", f"## Skill\n{skill}"), Message("user", QUESTION)]
    asked = []
    reply = _target(messages, TOOLS)
    while reply.finish == "tools":
        [call] = reply.tool_calls
        asked.append(call.name)
        assert isinstance(json.loads(call.arguments), dict)
        said = Message("assistant", "", tool_calls=(call,))
        messages += [said, Message("tool", ANSWERS[call.name], tool_call_id=call.id)]
        reply = _target(messages, TOOLS)
    assert asked == tools
    assert f"<answer>{answer}</answer>" in reply.text


def test_without_tools_it_asks_for_none() -> None:
    """It then has found nothing."""
    reply = _target([Message("user", QUESTION)])
    assert (reply.finish, reply.tool_calls) == ("stop", ())
    assert "not found" in reply.text


def test_a_request_that_is_too_long_is_cut_like_any_reply() -> None:
    """And is none then."""
    reply = _target([Message("user", QUESTION)], TOOLS, max_tokens=1)
    assert (reply.finish, reply.tool_calls, reply.text) == ("length", (), "")
