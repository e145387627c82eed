"""Worked examples: which items are shown, when, what becomes of them, and where they must not be."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import skillopt_es as so
from skillopt_es.algorithms.search.examples import MOST, MOST_CHARS, Example, chosen_of
from skillopt_es.events.catalog import CandidateGated, EditsRanked, EpochPlanned, Event, MinibatchesPlanned


def follower(request: so.ChatRequest) -> str:
    """Does what the examples do, and knows nothing else."""
    word = request.messages[-1].content.split()[-1]
    return f"<{word}>" if "<w" in request.messages[0].content else word


def deaf(request: so.ChatRequest) -> str:
    """Learns nothing from examples."""
    return request.messages[-1].content.split()[-1]


def silent(request: so.ChatRequest) -> str:
    """An optimizer without ideas."""
    return json.dumps({"reasoning": "", "edits": []})


def useless(request: so.ChatRequest) -> str:
    """An optimizer whose edits change nothing for the better."""
    return json.dumps({"reasoning": "", "edits": [{"op": "append", "target": "", "content": "Be careful."}]})


def unreadable(request: so.ChatRequest) -> str:
    """An optimizer that nobody can make sense of."""
    return "{"


def lucky(request: so.ChatRequest) -> str:
    """An optimizer whose every rule is for a single task."""
    [item, *_] = re.findall(r"^item: (\S+)$", request.messages[-1].content, re.MULTILINE)
    edit = {"op": "append", "target": "", "content": f"Mind {item}!", "items": [item]}
    return json.dumps({"reasoning": "", "edits": [edit]})


def boastful(request: so.ChatRequest) -> str:
    """An optimizer whose every rule is for a single task, and said to be for all that it was shown."""
    items = re.findall(r"^item: (\S+)$", request.messages[-1].content, re.MULTILINE)
    edit = {"op": "append", "target": "", "content": f"Mind {items[0]}!", "items": items}
    return json.dumps({"reasoning": "", "edits": [edit]})


def early(request: so.ChatRequest) -> str:
    """An optimizer who has a rule for each of some tasks in the first step, and none later."""
    items = re.findall(r"^item: (\S+)$", request.messages[-1].content, re.MULTILINE)
    early_on = request.slot.startswith("e1/") and "failure-2" not in request.slot
    rows = [{"op": "append", "target": "", "content": f"Mind {item}!", "items": [item]} for item in items[:3]]
    return json.dumps({"reasoning": "", "edits": rows if early_on else []})


def heedful(request: so.ChatRequest) -> str:
    """Follows a rule for its own task, and examples."""
    word = request.messages[-1].content.split()[-1]
    return f"<{word}>" if f"Mind {word[1:]}!" in request.messages[0].content else follower(request)


def trained(
    folder: Path, target: so.AnswerFunction = follower, optimizer: so.AnswerFunction = silent, **settings: object
) -> so.Run:
    """A search that nobody helps; one training item asks what a validation item asks."""
    rows = [
        {"id": f"{split}{number}", "split": split, "input": f"Task w{split}{number}", "expected": f"<w{split}{number}>"}
        for split, many in (("train", 20), ("val", 8), ("test", 2))
        for number in range(many)
    ]
    rows[0] |= {"input": "Task wval0", "expected": "<wval0>"}
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "SKILL.md").write_text("# Skill\n")
    config = {
        "env": {"name": "tasks", "data_path": str(folder / "tasks.jsonl"), "split_mode": "field"},
        "train": {"algorithm": "search"},
        "search": {"first_batch": 12},
        "evaluation": {"eval_test": False},
        "budget": {"max_calls": 90},
    }
    config["env"]["skill_init"] = str(folder / "SKILL.md")
    return so.train(
        config, name="run", runs=folder, settings=settings, target=so.ChatFunction(target), optimizer=optimizer
    )


def of_type(run: so.Run, kind: type[Event]) -> list[Event]:
    """The events of one type."""
    return [recorded.event for recorded in run.events([kind.__name__])]


def shown_in(run: so.Run) -> list[tuple[str, ...]]:
    """The items of each proposal of examples."""
    groups = [group for event in of_type(run, MinibatchesPlanned) for group in event.groups]
    return [group.items for group in groups if group.kind == "examples"]


def steps_that_show(run: so.Run) -> list[int]:
    """The steps in which examples were proposed."""
    return [
        event.step for event in of_type(run, MinibatchesPlanned) for group in event.groups if group.kind == "examples"
    ]


def test_examples_teach_where_nobody_has_a_rule(tmp_path: Path) -> None:
    """In the first step, for nothing else has helped: they pass screen and gate, and are in no later batch."""
    run = trained(tmp_path)
    [shown] = shown_in(run)
    assert len(shown) == MOST
    assert "train0" not in shown, "a validation item asks the same"
    text = run.skill("best").text
    assert all(f"Task: Task w{item}\nAnswer: <w{item}>" in text for item in shown)
    [verdict] = [event.verdict for event in of_type(run, CandidateGated)]
    assert verdict.taken
    later = [item for event in of_type(run, EpochPlanned)[1:] for batch in event.batches for item in batch.items]
    assert later
    assert not set(later) & set(shown)
    [credit] = of_type(run, EditsRanked)[-1].credits
    assert credit.fixed
    assert not set(credit.fixed) & set(shown), "what stands in the text is no evidence for it"


@pytest.mark.parametrize("optimizer", [useless, unreadable])
def test_examples_come_in_the_step_that_rules_left_empty(tmp_path: Path, optimizer: so.AnswerFunction) -> None:
    """Whatever the matter with the first answers, nothing is tried anew for examples."""
    run = trained(tmp_path, optimizer=optimizer)
    assert "Worked examples" in run.skill("best").text
    [first, *_] = of_type(run, CandidateGated)
    assert first.step == 1


def test_examples_do_not_wait_for_rules_that_fix_one_task_of_many(tmp_path: Path) -> None:
    """They are tried on tasks that no rule of the step has touched, and both are in the skill."""
    run = trained(tmp_path, heedful, lucky)
    [first, *_] = of_type(run, CandidateGated)
    assert first.step == 1
    text = run.skill("best").text
    assert "Mind train" in text
    assert "Worked examples" in text


def test_examples_do_not_wait_for_a_rule_that_is_only_said_to_be_for_many(tmp_path: Path) -> None:
    """It was tried on three of its tasks and fixed one, so its claim for the others does not count."""
    assert 1 in steps_that_show(trained(tmp_path, heedful, boastful))


def test_where_rules_have_won_nothing_examples_come_in_a_small_batch_too(tmp_path: Path) -> None:
    """As many as ever, of an earlier batch."""
    run = trained(tmp_path, heedful, early, **{"budget.max_calls": 64})
    first, second, *_ = of_type(run, EpochPlanned)
    assert len(second.batches[0].items) < MOST
    [shown] = shown_in(run)
    assert (steps_that_show(run), len(shown)) == ([2], MOST)
    assert set(shown) <= set(first.batches[0].items)
    assert "Worked examples" in run.skill("best").text


def test_examples_that_teach_the_form_are_kept_before_any_answer_is_right(tmp_path: Path) -> None:
    """On a hard task three tries may all fail; wrong answers that look right say that something was learned."""
    asked: list[str] = []

    def formal(request: so.ChatRequest) -> str:
        return "<wtrain?>" if "Worked examples" in request.messages[0].content else "nobody knows"

    def told(request: so.ChatRequest) -> str:
        asked.append(request.messages[-1].content)
        return silent(request)

    run = trained(tmp_path, formal, told)
    [credit, *_] = of_type(run, EditsRanked)[0].credits
    assert not credit.fixed
    assert credit.nearer > 0.5
    assert "wrong answers came nearer to right ones by" in of_type(run, EditsRanked)[0].reasoning
    assert "Worked examples" in run.skill("best").text
    assert "nearness: 0." in asked[0]


def test_what_no_example_shows_is_shown_when_it_is_the_last_that_fails(tmp_path: Path) -> None:
    """Nothing is left to try it on, so the gate judges."""

    def picky(request: so.ChatRequest) -> str:
        odd = request.messages[-1].content.split()[-1] in ("wtrain7", "wval7")
        shown = request.messages[0].content
        return follower(request) if not odd or "train7>" in shown else "seven"

    run = trained(tmp_path, picky, **{"train.seed": 2})
    first = shown_in(run)[0]
    assert "train7" not in first, "the seed is to miss it at first"
    assert "train7>" in run.skill("best").text
    [last] = of_type(run, EditsRanked)[-1].chosen
    assert "examples" in last
    assert of_type(run, CandidateGated)[-1].verdict.won == ("val7",)


def test_examples_that_do_not_help_cost_a_few_calls(tmp_path: Path) -> None:
    """The screen drops them, no gate is asked, and after two refusals nobody tries again."""
    run = trained(tmp_path, deaf)
    assert len(shown_in(run)) == 2
    assert not of_type(run, CandidateGated)
    assert "Worked examples" not in run.skill("best").text


@pytest.mark.parametrize("wish", ["off", False])
def test_answers_that_must_not_be_copied_are_not_shown(tmp_path: Path, wish: object) -> None:
    """By the config; YAML reads a plain `off` as false."""
    assert shown_in(trained(tmp_path, **{"search.examples": wish})) == []


def test_choice_covers_types_answers_and_unlike_tasks() -> None:
    """Each next one is of what is there least."""
    able = [
        Example("a1", "a", "one red box", "x"),
        Example("a2", "a", "one red bag", "x"),
        Example("a3", "a", "one red cup", "y"),
        Example("b1", "b", "one red box", "x"),
        Example("a4", "a", "seven far lands", "x"),
    ]
    assert [each.item for each in chosen_of(able, 4)] == ["a1", "b1", "a3", "a4"]


def test_what_is_too_long_is_left_out() -> None:
    """No item takes more than a quarter of the room, and all of them stay within it."""
    able = [Example(f"i{size}", "", "w" * size, "x") for size in (MOST_CHARS // 2, 1400, 1390, 1380, 1370, 1360)]
    chosen = chosen_of(able, MOST)
    assert len(chosen) == 4
    assert sum(len(each.text) for each in chosen) <= MOST_CHARS
