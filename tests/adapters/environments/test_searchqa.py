"""SearchQA behaves as SkillOpt's does, where that was right."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from support.environments import BLANK, SKILL, Target, attempt, data_settings, open_on, open_rows
from support.made_searchqa import made_searchqa, made_split_dir

from skillopt_es.adapters.environments.data import canonical_json
from skillopt_es.adapters.environments.searchqa.environment import gold_of, grade
from skillopt_es.adapters.environments.searchqa.prompt import truncate
from skillopt_es.adapters.environments.text import answer_in, normalise
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.values import Failed, Measured, digest_of
from skillopt_es.ports import ChatReply, Episode, Message

QUESTION = "Who was the 16th president of the US?"
ROW = {"id": "1", "question": QUESTION, "context": "[DOC] [TLE] Presidents ...", "answers": ["Abraham Lincoln"]}


def answered(folder: Path, reply: str | ChatReply, *more: str, **options: Any) -> tuple[Episode, Target]:
    environment, splits = open_rows(folder, "searchqa", [ROW], **options)
    target = Target([reply, *more])
    return attempt(environment, splits.train[0], target), target


@pytest.mark.parametrize(
    ("reply", "golds", "exact", "f1", "sub_em"),
    [
        ("<answer>The U.S.A.</answer>", ["usa"], True, 1, True),
        ("<answer></answer>", ["x"], False, 0, True),
        ("<answer>the</answer>", ["a"], True, 1, True),
        ("no tags\nParis", ["paris"], True, 1, True),
        ("<answer>Lincoln</answer>", ["Abraham Lincoln"], False, 0.6667, True),
        ("<answer>rock-and-roll</answer>", ["rock and roll"], False, 0, False),
        ("<answer>new york city</answer>", ["New York", "the city of New York"], False, 0.8571, True),
        ("<answer>Rome</answer>\n<ANSWER>\n Paris </answer> bye", ["paris"], True, 1, True),
        ("Paris\n \n", ["paris"], True, 1, True),
        ("<answer>a <answer>b</answer>", ["answerb"], True, 1, True),
    ],
)
def test_the_evaluator_matches_the_vectors(reply: str, golds: list[str], exact: bool, f1: float, sub_em: bool) -> None:
    """Extraction, exact match, F1 and containment are SkillOpt's."""
    result = grade(answer_in(reply), [gold_of(gold) for gold in golds])
    assert (result.exact, round(result.f1, 4), result.sub_em) == (exact, f1, sub_em)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Quick, Brown-Fox!", "quick brownfox"),
        ("An apple a day", "apple day"),
        ("It's", "its"),
        ("1,000.50", "100050"),
        ("“quoted”", "“quoted”"),
        ("a", ""),
    ],
)
def test_normalising_matches_the_vectors(text: str, normal: str) -> None:
    """Punctuation is deleted, articles go, Unicode quotes stay."""
    assert normalise(text) == normal


def test_truncation_matches_the_vectors() -> None:
    """Whole passages are kept, the first marker is lost, and nothing at all fits only into a hard cut."""
    context = "[DOC] [TLE] a" + "x" * 10 + " [DOC] b" + "y" * 20
    assert truncate(context, 25) == " [TLE] a" + "x" * 10 + " "
    assert truncate(context, 5).startswith("[DOC]\n")
    assert truncate(context, len(context)) == context
    assert truncate("[DOC] a [DOC] b [DOC] c", 15) == " a [DOC] b "


def test_the_prompts_hold_role_skill_rules_context_and_question(tmp_path: Path) -> None:
    """The skill stands between role and rules; a blank one leaves no heading."""
    _, target = answered(tmp_path, "<answer>x</answer>")
    system, user = target.asked[0]
    role, heading, skill_text, rules = (
        system.content.index(part) for part in ("You are an expert", "## Skill\n", "Answer briefly.", "## Task")
    )
    assert role < heading < skill_text < rules
    assert "<answer>" in system.content
    assert user == Message("user", f"## Context\n{ROW['context']}\n\n## Question\n{QUESTION}")
    assert target.limits == [512]
    environment, splits = open_rows(tmp_path, "searchqa", [ROW])
    attempt(environment, splits.train[0], bare := Target(["x"]), BLANK)
    assert "## Skill" not in bare.asked[0][0].content


def test_the_context_budget_is_an_option(tmp_path: Path) -> None:
    """A longer context is cut, 6000 characters being the default."""
    row = {**ROW, "context": "[DOC] " + "x" * 7000}
    for options, budget in (({}, 6000), ({"context_budget": 100}, 100)):
        environment, splits = open_rows(tmp_path, "searchqa", [row], **options)
        attempt(environment, splits.train[0], target := Target(["x"]))
        assert f"## Context\n{row['context'][:budget]}\n[" in target.asked[0][1].content


@pytest.mark.parametrize(
    ("reply", "outcome", "failure"),
    [
        ("<answer>abraham lincoln.</answer>", Measured(1, 1), ""),
        ("Abraham Lincoln", Measured(1, 1), ""),
        ("<answer>Lincoln</answer>", Measured(0, 2 / 3), "near_miss"),
        ("<answer>Kennedy</answer>", Measured(0, 0), "wrong_answer"),
        ("<answer>the</answer>", Measured(0, 0), "wrong_answer"),
        ("Lincoln, I think", Measured(0, 0.4), "format"),
        ("<answer> </answer>", Measured(0, 0), "no_answer"),
        ("", Measured(0, 0), "no_answer"),
        (ChatReply(text="", finish="refused"), Measured(0, 0), "refused"),
        (ChatReply(text="", finish="filtered"), Measured(0, 0), "refused"),
    ],
)
def test_failures_have_short_codes_without_gold(
    tmp_path: Path, reply: str | ChatReply, outcome: Measured, failure: str
) -> None:
    """Hard is exact match, soft is F1, and the code groups failures across items."""
    episode, _ = answered(tmp_path, reply)
    assert isinstance(episode.outcome, Measured)
    assert episode.outcome.hard == outcome.hard
    assert episode.outcome.soft == pytest.approx(outcome.soft)
    assert episode.failure == failure
    assert bool(episode.detail) == bool(failure)


def test_a_cut_reply_is_never_scored(tmp_path: Path) -> None:
    """What the token limit ended says nothing about the skill."""
    episode, _ = answered(tmp_path, ChatReply(text="<answer>Abraham Lincoln</answer>", finish="length"))
    assert isinstance(episode.outcome, Failed)
    assert episode.outcome.kind == "truncated"


def test_the_analyst_sees_prompts_reply_and_evaluation(tmp_path: Path) -> None:
    """The trajectory ends with the evaluation block, and task and type are set."""
    episode, _ = answered(tmp_path, "Well. <answer>Lincoln</answer>")
    assert [record.kind for record in episode.records] == ["system", "user", "reply", "feedback"]
    assert episode.records[-1].text == (
        f"[EVALUATION RESULT]\nQuestion: {QUESTION}\nPredicted answer: 'Lincoln'\n"
        "Gold answers: ['Abraham Lincoln']\nExact Match: 0\nF1: 0.6667"
    )
    assert (episode.task, episode.prediction, episode.turns) == (QUESTION, "Lincoln", 1)
    _, splits = open_rows(tmp_path, "searchqa", [ROW, {**ROW, "id": "2", "task_type": "jeopardy"}])
    assert [item.task_type for item in splits.train] == ["qa", "jeopardy"]


def test_a_second_turn_can_check_against_context_and_question(tmp_path: Path) -> None:
    """Later turns carry the whole conversation, and the last reply counts."""
    episode, target = answered(tmp_path, "<answer>Kennedy</answer>", "<answer>Abraham Lincoln</answer>", max_turns=5)
    assert (episode.turns, episode.outcome) == (2, Measured(1, 1))
    assert [message.role for message in target.asked[1]] == ["system", "user", "assistant", "user"]
    assert target.asked[1][:2] == target.asked[0]
    assert [record.kind for record in episode.records] == ["system", "user", "reply", "user", "reply", "feedback"]


def test_turns_end_at_the_limit(tmp_path: Path) -> None:
    """Without an answer tag the target is asked again until `max_turns`."""
    episode, target = answered(tmp_path, "hm", max_turns=3)
    assert (episode.turns, len(target.asked)) == (3, 3)


def test_a_refusal_ends_the_turns(tmp_path: Path) -> None:
    """Nobody is asked to check what was refused."""
    episode, _ = answered(tmp_path, ChatReply(text="", finish="refused"), max_turns=3)
    assert (episode.turns, episode.failure) == (1, "refused")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"answers": "Abraham Lincoln"}, "`answers` must be a list"),
        ({"answers": []}, "`answers` must be a list"),
        ({"answers": None}, "`answers` must be a list"),
        ({"answers": [1889]}, "`answers` must hold only text"),
        ({"question": ""}, "`question` is missing or blank"),
        ({"question": 3}, "`question` must be text"),
        ({"context": ["a"]}, "`context` must be text"),
        ({"task_type": 1}, "`task_type` must be text"),
    ],
)
def test_an_item_that_cannot_be_asked_or_graded_is_a_data_error(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    """The error names line, item and remedy."""
    with pytest.raises(DataError) as caught:
        open_rows(tmp_path, "searchqa", [{**ROW, **change}])
    assert "items.jsonl:1: item '1': " in str(caught.value)
    assert says in str(caught.value)
    assert caught.value.hint


def test_a_list_of_ids_is_told_of_what_makes_items_of_it(tmp_path: Path) -> None:
    """The original ships such lists; a question that is blank is no list of ids."""
    with pytest.raises(DataError) as caught:
        open_rows(tmp_path, "searchqa", [{"id": "1"}])
    assert "`skillopt-es data build searchqa`" in caught.value.hint
    with pytest.raises(DataError) as caught:
        open_rows(tmp_path, "searchqa", [{**ROW, "question": ""}])
    assert "data build" not in caught.value.hint


def test_missing_answers_are_a_data_error_and_a_missing_context_is_not(tmp_path: Path) -> None:
    """Without answers nothing can be graded; without context the question can still be asked."""
    with pytest.raises(DataError, match="`answers` is missing"):
        open_rows(tmp_path, "searchqa", [{"id": "1", "question": "?"}])
    open_rows(tmp_path, "searchqa", [{"id": "1", "question": "?", "answers": ["x"]}])


@pytest.mark.parametrize(("key", "value"), [("max_turns", 0), ("max_turns", 1.5), ("context_budget", "6000")])
def test_a_wrong_option_is_a_config_error(tmp_path: Path, key: str, value: Any) -> None:
    """Both options are whole numbers of at least 1."""
    with pytest.raises(ConfigError, match=f"^env.{key}: must be a whole number of at least 1"):
        open_on(tmp_path, "searchqa", data_settings(), **{key: value})


def test_made_items_are_the_same_everywhere_and_can_be_answered(tmp_path: Path) -> None:
    """The generator is deterministic, item by item, and its answers are in its contexts."""
    items = made_searchqa(20)
    assert items[:5] == made_searchqa(5)
    assert items != made_searchqa(20, seed=1)
    assert digest_of(canonical_json(items)) == "06801c868ddba4d144ed31cbb6cb04bda549925f33f2e15ec0a5b2b88fa7dedc"
    assert len({item["id"] for item in items}) == 20
    assert all(item["answers"][0] in item["context"] for item in items)
    assert all(1200 < len(item["context"]) < 2200 for item in items)
    folder = made_split_dir(tmp_path / "made")
    environment = open_on(tmp_path, "searchqa", data_settings(split_mode="split_dir", split_dir=str(folder)))
    splits = environment.load()
    assert (len(splits.train), len(splits.val), len(splits.test)) == (6, 3, 3)
    reply = f"<answer>{items[0]['answers'][0]}</answer>"
    assert attempt(environment, splits.train[0], Target([reply]), SKILL).outcome == Measured(1, 1)


def test_an_attempt_costs_little(tmp_path: Path) -> None:
    """Prompt and grade of one item are far from mattering (0.1 ms is the aim; a slow machine gets ten times that)."""
    folder = made_split_dir(tmp_path / "made", train=500)
    environment = open_on(tmp_path, "searchqa", data_settings(split_mode="split_dir", split_dir=str(folder)))
    items = environment.load().train
    target = Target(["Reasoning goes here, a few words of it. " * 10 + "<answer>Some Body</answer>"])

    async def all_of_them() -> float:
        start = time.process_time()
        for item in items:
            await environment.attempt(item, SKILL, target, seed=1)
        return time.process_time() - start

    assert asyncio.run(all_of_them()) / len(items) < 0.001
