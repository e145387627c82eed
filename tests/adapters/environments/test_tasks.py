"""A task is put as its author wrote it, with the skill in the system message, and its episode tells what happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.environments import BLANK, SKILL, Target, attempt, data_settings, grade_one, open_on, open_rows

from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.values import Failed, Measured, SkillTree
from skillopt_es.ports import ChatReply, FinishReason, Message, told_agents


def put(folder: Path, row: dict[str, Any], skill: SkillTree = SKILL, **options: Any) -> list[Message]:
    """What the target is asked."""
    environment, splits = open_rows(folder, "tasks", [{"id": "1", "expected": "gold-value", **row}], **options)
    target = Target(["x"])
    attempt(environment, splits.train[0], target, skill)
    assert target.limits == [512]
    return target.asked[0]


def test_the_skill_is_the_system_message_and_the_input_the_user_message(tmp_path: Path) -> None:
    """The stripped skill stands under its heading."""
    assert put(tmp_path, {"input": " What? "}) == [
        Message("system", "## Skill\n# Skill\n\nAnswer briefly."),
        Message("user", " What? "),
    ]


def test_the_configured_line_comes_first(tmp_path: Path) -> None:
    """`system` is put before the skill."""
    assert put(tmp_path, {"input": "?"}, system="Be kind.")[0].content.startswith("Be kind.\n\n## Skill\n")


def test_a_blank_skill_leaves_no_trace(tmp_path: Path) -> None:
    """Without skill and line there is no system message at all."""
    assert put(tmp_path, {"input": "?"}, BLANK) == [Message("user", "?")]
    assert put(tmp_path, {"input": "?"}, BLANK, system="Be kind.")[0] == Message("system", "Be kind.")


def test_all_files_of_a_skill_tree_are_shown(tmp_path: Path) -> None:
    """A chat target cannot open files, so further ones stand under their paths."""
    tree = SkillTree({"SKILL.md": "main", "z.md": "last", "refs/a.md": "first", "empty.md": " "})
    assert put(tmp_path, {"input": "?"}, tree)[0].content == (
        "## Skill\nmain\n\n### refs/a.md\nfirst\n\n### z.md\nlast"
    )


def test_an_items_own_messages_are_kept(tmp_path: Path) -> None:
    """The skill joins the item's own system message; the rest stays as it is."""
    messages = [
        {"role": "system", "content": "You are a clerk."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "What?"},
    ]
    asked = put(tmp_path, {"messages": messages}, system="Be kind.")
    assert asked[0].content == "Be kind.\n\nYou are a clerk.\n\n## Skill\n# Skill\n\nAnswer briefly."
    assert [(each.role, each.content) for each in asked[1:]] == [
        ("user", "Hello"),
        ("assistant", "Yes?"),
        ("user", "What?"),
    ]


def test_gold_never_reaches_the_target(tmp_path: Path) -> None:
    """No message holds what is expected."""
    asked = put(tmp_path, {"input": "?", "choices": ["secret-choice"], "note": "gold-note"})
    assert not any(word in each.content for each in asked for word in ("gold", "secret"))


def test_the_analyst_sees_everything(tmp_path: Path) -> None:
    """The trajectory holds prompts, reply, and a feedback with gold and grade."""
    episode = grade_one(tmp_path, {"expected": ["gold", "or"], "grader": "f1", "type": "quiz"}, "some gold")
    assert [record.kind for record in episode.records] == ["system", "user", "reply", "feedback"]
    assert episode.records[2].text == "some gold"
    assert episode.records[3].text == ("[EVALUATION RESULT]\nExpected: gold\nExpected as well: or\nGrader: f1")
    assert (episode.prediction, episode.failure, episode.turns) == ("some gold", "near_miss", 1)
    assert episode.detail == 'got \'some gold\', expected ["gold", "or"]'


def test_the_type_groups_scores(tmp_path: Path) -> None:
    """`type` is the task type, empty by default."""
    _, splits = open_rows(tmp_path, "tasks", [{"id": "1", "input": "?", "expected": "x", "type": "quiz"}])
    assert (splits.train[0].task_type, splits.val[0].task_type) == ("quiz", "")


def test_a_long_input_is_shortened_in_the_task_only(tmp_path: Path) -> None:
    """Lists show 500 characters, the target sees all."""
    episode = grade_one(tmp_path, {"input": "w" * 2000, "expected": "x"}, "x")
    assert episode.task == "w" * 499 + "…"
    assert episode.records[1].text == "w" * 2000


@pytest.mark.parametrize(
    ("reply", "failure", "prediction"),
    [
        ("Hm. <answer>x</answer>", "", "x"),
        ("<ANSWER> x </Answer>", "", "x"),
        ("<answer>y</answer> no: <answer>x</answer>", "", "x"),
        ("<answer>x</answer> no: <answer>y</answer>", "wrong_answer", "y"),
        ("x", "", "x"),
        ("it is x", "format", "it is x"),
        ("<answer>x", "format", "<answer>x"),
        ("<answer> </answer>", "no_answer", ""),
        (" \n", "no_answer", ""),
    ],
)
def test_the_last_answer_tag_is_graded(tmp_path: Path, reply: str, failure: str, prediction: str) -> None:
    """Without a tag the whole reply is graded, and when that is wrong the form is to blame."""
    episode = grade_one(tmp_path, {"expected": "x"}, reply, answer_tag="answer")
    assert (episode.failure, episode.prediction) == (failure, prediction)
    assert episode.outcome == (Measured(0, 0) if failure else Measured(1, 1))


@pytest.mark.parametrize("finish", ["refused", "filtered"])
def test_a_refusal_measures_zero(tmp_path: Path, finish: FinishReason) -> None:
    """The world did answer, only not with an answer."""
    episode = grade_one(tmp_path, {"expected": "x"}, ChatReply(text="I cannot", finish=finish))
    assert (episode.outcome, episode.failure) == (Measured(0, 0), "refused")
    assert [record.kind for record in episode.records] == ["system", "user", "reply", "feedback"]


def test_a_cut_reply_is_never_scored(tmp_path: Path) -> None:
    """What the token limit ended says nothing about the skill."""
    episode = grade_one(tmp_path, {"expected": "x"}, ChatReply(text="x", finish="length"))
    assert isinstance(episode.outcome, Failed)
    assert episode.outcome.kind == "truncated"


USER = {"role": "user", "content": "?"}


@pytest.mark.parametrize(
    ("fields", "says", "hint"),
    [
        ({}, "`input` is missing", 'add "input"'),
        ({"question": "?"}, "`input` is missing", "rename `question` to `input`"),
        ({"input": " "}, "`input` must be text that is not blank", "input"),
        ({"input": ["?"]}, "`input` must be text that is not blank", "input"),
        ({"input": "?", "messages": [USER]}, "both `input` and `messages`", "one of them"),
        ({"messages": []}, "must be a list of messages", "role"),
        ({"messages": "?"}, "must be a list of messages", "role"),
        ({"messages": [{"role": "tool", "content": "?"}]}, "a message must have a `role`", "role"),
        ({"messages": [{"role": "user", "content": [{"text": "?"}]}]}, "text as `content`", "role"),
        ({"messages": [USER, {"role": "assistant", "content": "!"}]}, "must have the role user", "end with"),
        ({"messages": [{"role": "system", "content": "!"}]}, "must have the role user", "end with"),
        ({"input": "?", "type": 3}, "`type` must be text", "type"),
    ],
)
def test_an_item_that_cannot_be_put_is_a_data_error(
    tmp_path: Path, fields: dict[str, Any], says: str, hint: str
) -> None:
    """The error names line, item and remedy."""
    with pytest.raises(DataError) as caught:
        open_rows(tmp_path, "tasks", [{"id": "1", "expected": "x", **fields}])
    assert "items.jsonl:1: item '1': " in str(caught.value)
    assert says in str(caught.value)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("answer_tag", "<answer>", "name of a tag"),
        ("answer_tag", 3, "name of a tag"),
        ("system", ["x"], "must be text"),
        ("timeout", 0, "above 0"),
        ("timeout", "30", "above 0"),
        ("timeout", True, "above 0"),
        ("tolerance", "much", "must be a number"),
        ("choices", "ab", "must be a list"),
    ],
)
def test_a_wrong_option_is_a_config_error(tmp_path: Path, key: str, value: Any, says: str) -> None:
    """The error names the key, what is allowed and what was given."""
    with pytest.raises(ConfigError, match=f"^env.{key}: .*{says}") as caught:
        open_on(tmp_path, "tasks", data_settings(), **{key: value})
    assert repr(value) in str(caught.value)


def test_an_empty_option_is_its_default(tmp_path: Path) -> None:
    """A key that is left empty in YAML changes nothing."""
    assert grade_one(tmp_path, {"expected": "x"}, "x", system=None, grader=None).outcome == Measured(1, 1)


def test_an_agent_is_told_the_named_fields_alone(tmp_path: Path) -> None:
    """Any other may hold the answer."""
    row = {"id": "1", "input": "?", "expected": "x", "language": "de", "solution": "x", "choices": ["x", "y"]}
    _, splits = open_rows(tmp_path, "tasks", [row], agent_fields=["language", "choices"])
    assert told_agents(splits.train[0]) == {"language": "de", "choices": ["x", "y"]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"agent_fields": ["language", "expected"]}, "an agent must not see what it is graded by"),
        ({"agent_fields": "language", "compare_with": "language", "grader": "judge"}, "env.compare_with"),
    ],
    ids=["expected", "compared"],
)
def test_what_an_answer_is_graded_by_is_told_no_agent(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    """Named by mistake or not."""
    with pytest.raises(ConfigError) as caught:
        open_rows(tmp_path, "tasks", [{"id": "1", "input": "?", "expected": "x", "language": "de"}], **options)
    assert said in f"{caught.value} {caught.value.hint}"


def test_a_field_that_no_item_has_is_a_misspelt_one(tmp_path: Path) -> None:
    """It would be missed in silence."""
    row = {"id": "1", "input": "?", "expected": "x", "language": "de"}
    with pytest.raises(DataError, match="no item has a field 'langage'"):
        open_rows(tmp_path, "tasks", [row], agent_fields=["language", "langage"])
