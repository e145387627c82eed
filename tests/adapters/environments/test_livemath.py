"""LiveMathematicianBench behaves as SkillOpt's does, where that was right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.environments import BLANK, Target, attempt, data_settings, open_on, open_rows

from skillopt_es.adapters.environments.livemath.choices import Choice, Choices, chosen, read_choices, shuffled
from skillopt_es.adapters.environments.text import answer_in
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.values import Failed, Json, Measured
from skillopt_es.ports import ChatReply, Episode

NAME = "livemathematicianbench"
FIVE = Choices(tuple(map(Choice, "ABCDE", ("one", "two", "three", "four", "five"))), "B")
ROW = {
    "id": "1",
    "question": "Which bound is sharp?",
    "choices": ["n", "n + 1", "2n"],
    "correct_choice": "B",
    "theorem": "Every such graph has at most n + 1 edges.",
    "sketch": "By induction.",
    "theorem_type": ["Upper bound", "Existence"],
}


def answered(folder: Path, *replies: str | ChatReply, **options: Any) -> tuple[Episode, Target]:
    environment, splits = open_rows(folder, NAME, [ROW], **{"shuffle_choices": False, **options})
    target = Target(replies)
    return attempt(environment, splits.train[0], target), target


@pytest.mark.parametrize(
    "reply",
    [
        "<answer>B</answer>",
        "<answer>b)</answer>",
        "<answer>B:</answer>",
        "<answer>B. two</answer>",
        "<answer>two</answer>",
    ],
)
def test_labels_are_read_as_the_original_reads_them(reply: str) -> None:
    """With the stricter reading and with the wider one."""
    assert chosen(answer_in(reply), FIVE, "skillopt") == "B"
    assert chosen(answer_in(reply), FIVE, "extended") == "B"


@pytest.mark.parametrize(
    ("said", "skillopt", "extended"),
    [
        ("(B)", "(B", "B"),
        ("**B**", "**B**", "B"),
        ("$B$", "$B$", "B"),
        (r"\boxed{B}", r"\BOXED{B}", "B"),
        ("Option B", "OPTION B", "B"),
        ("The correct answer is B.", "THE CORRECT ANSWER IS B", "B"),
        ("", "", ""),
        ("A theorem says so", "A", "A THEOREM SAYS SO"),
        ("F", "F", "F"),
    ],
)
def test_other_notations_count_only_in_the_extended_scoring(said: str, skillopt: str, extended: str) -> None:
    """The article A is a choice only for the original."""
    assert chosen(said, FIVE, "skillopt") == skillopt
    assert chosen(said, FIVE, "extended") == extended


@pytest.mark.parametrize(("seed", "order", "correct"), [(42, "BEDCA", "D"), (43, "AECBD", "C"), (1043, "ECADB", "B")])
def test_choices_are_shuffled_as_the_vectors_say(seed: int, order: str, correct: str) -> None:
    """By item and seed, whatever was shown before."""
    given = Choices(tuple(Choice(label, f"t{label}") for label in "ABCDE"), "C")
    shown = shuffled(given, item="202511:1", seed=seed)
    assert [choice.text for choice in shown.all] == [f"t{label}" for label in order]
    assert [choice.label for choice in shown.all] == list("ABCDE")
    assert (shown.correct, shown.text_of(shown.correct)) == (correct, "tC")


@pytest.mark.parametrize(
    ("given", "correct", "labels", "right"),
    [
        (["x", "y"], "b.", "AB", "y"),
        ([{"label": "a)", "text": "x"}, {"content": "y"}], {"label": "B"}, "AB", "y"),
        ({"B": "y", "A": "x"}, "B", "AB", "y"),
        (["x", " ", "y"], "C", "AC", "y"),
        ([{"label": "B", "text": "y"}], {"label": "A", "text": "x"}, "AB", "x"),
        ([str(n) for n in range(9)], "I", "ABCDEFGHI", "8"),
    ],
)
def test_choices_come_in_three_spellings(given: Json, correct: Json, labels: str, right: str) -> None:
    """Blank ones are dropped, and a right one that is missing is added where its text is known."""
    read = read_choices(given, correct)
    assert "".join(choice.label for choice in read.all) == labels
    assert read.text_of(read.correct) == right


@pytest.mark.parametrize(
    ("given", "correct", "why"),
    [
        ([], "A", "holds no text"),
        ("x", "A", "must be a list"),
        (["x"], None, "has no label"),
        (["x"], "B", "not among the choices"),
        ([{"label": "A", "text": "x"}, {"label": "a", "text": "y"}], "A", "a label twice"),
        ([str(n) for n in range(27)], "A", "more than 26"),
    ],
)
def test_choices_that_cannot_be_asked_say_why(given: Json, correct: Json, why: str) -> None:
    """One reason each."""
    with pytest.raises(ValueError, match=why):
        read_choices(given, correct)


def test_monthly_files_are_found_below_a_folder(tmp_path: Path) -> None:
    """Items are named by month and number; those that cannot be asked are left out with a note."""
    for month, rows in {"202511": 4, "202512": 3}.items():
        entries = [
            {"month": month, "no": number + 1, "theorem_type": "Bound", "mcq": {**ROW, "question": f"{month} {number}"}}
            for number in range(rows)
        ]
        entries += [{"month": month, "no": 99, "mcq": {"question": "?"}}]
        file = tmp_path / month / f"qa_{month}_final.json"
        file.parent.mkdir()
        file.write_text(json.dumps(entries))
    (tmp_path / "other.json").write_text("[]")
    environment = open_on(tmp_path, NAME, data_settings(data_path=str(tmp_path)))
    splits = environment.load()
    items = [item.id for split in (splits.train, splits.val, splits.test) for item in split]
    assert sorted(items) == [*(f"202511:{n}" for n in range(1, 5)), *(f"202512:{n}" for n in range(1, 4))]
    assert {item.task_type for item in splits.train} == {"Bound"}
    why = "`choices` must be a list, or an object of label: text"
    assert splits.notes == (f"left out 2 entries: 202511:99 ({why}), 202512:99 ({why})",)


def test_the_ratio_split_is_the_released_one(tmp_path: Path) -> None:
    """177 items at 2:1:7 and seed 42 come in the released order; the released val and test differ by one item."""
    for month, count in (("202511", 29), ("202512", 52), ("202601", 46), ("202602", 50)):
        entries = [{"month": month, "no": n, "mcq": ROW} for n in range(1, count + 1)]
        (tmp_path / f"qa_{month}_final.json").write_text(json.dumps(entries))
    data = data_settings(data_path=str(tmp_path), split_ratio="2:1:7")
    splits = open_on(tmp_path, NAME, data).load()
    assert [item.id for item in splits.train][:5] == ["202602:22", "202512:8", "202511:16", "202601:44", "202511:14"]
    assert (len(splits.train), len(splits.val), len(splits.test)) == (35, 18, 124)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("[]", "no entry that can be asked"),
        ('[{"no": 1, "mcq": {}}]', "no entry that can be asked"),
        ("[1]", "an entry must be an object"),
        ('[{"no": 1}, {"no": 1}]', "already used"),
        ('[{"no": 1, "mcq": 5}]', "no entry that can be asked"),
        ("{", "not JSON"),
    ],
)
def test_unusable_files_say_why(tmp_path: Path, content: str, why: str) -> None:
    """Naming the file."""
    (tmp_path / "qa_202511_final.json").write_text(content)
    with pytest.raises(DataError, match=why):
        open_on(tmp_path, NAME, data_settings(data_path=str(tmp_path))).load()


def test_a_folder_without_monthly_files_is_refused(tmp_path: Path) -> None:
    """Nothing is read by chance."""
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(DataError, match=r"no qa_\*_final.json"):
        open_on(tmp_path, NAME, data_settings(data_path=str(tmp_path))).load()


def test_the_prompt_shows_question_and_choices_and_what_is_asked_for(tmp_path: Path) -> None:
    """Theorem and sketch only when the config says so; gold has no mark."""
    _, target = answered(tmp_path, "<answer>B</answer>")
    user = target.asked[0][1].content
    assert user == "## Question\nWhich bound is sharp?\n\n## Choices\nA. n\nB. n + 1\nC. 2n"
    _, target = answered(tmp_path, "<answer>B</answer>", use_theorem=True, use_sketch=True)
    assert target.asked[0][1].content.endswith(
        "## Theorem\nEvery such graph has at most n + 1 edges.\n\n## Proof sketch\nBy induction."
    )
    environment, splits = open_rows(tmp_path, NAME, [ROW])
    attempt(environment, splits.train[0], bare := Target(["x"]), BLANK)
    assert "## Skill" not in bare.asked[0][0].content


def test_the_order_of_choices_follows_the_seed(tmp_path: Path) -> None:
    """The same seed shows the same order, and the right text stays right."""
    row = {**ROW, "choices": [f"c{n}" for n in range(8)], "correct_choice": "C"}
    environment, splits = open_rows(tmp_path, NAME, [row])
    shown = []
    for seed in (1, 1, 2):
        target = Target(["<answer>c2</answer>"])
        assert attempt(environment, splits.train[0], target, seed=seed).outcome == Measured(1, 1)
        shown.append(target.asked[0][1].content)
    assert shown[0] == shown[1] != shown[2]


@pytest.mark.parametrize(
    ("reply", "outcome", "failure"),
    [
        ("so <answer>B</answer>", Measured(1, 1), ""),
        ("B", Measured(1, 1), ""),
        ("<answer>C</answer>", Measured(0, 0), "wrong_choice"),
        ("<answer>E</answer>", Measured(0, 0), "format"),
        ("it grows", Measured(0, 0), "format"),
        ("", Measured(0, 0), "no_answer"),
        (ChatReply(text="", finish="refused"), Measured(0, 0), "refused"),
    ],
)
def test_failures_have_short_codes(tmp_path: Path, reply: str | ChatReply, outcome: Measured, failure: str) -> None:
    """The code groups failures across items; the detail names both labels."""
    episode, _ = answered(tmp_path, reply)
    assert (episode.outcome, episode.failure) == (outcome, failure)
    assert bool(episode.detail) == bool(failure)


def test_a_cut_reply_is_never_scored(tmp_path: Path) -> None:
    """What the token limit ended says nothing about the skill."""
    episode, _ = answered(tmp_path, ChatReply(text="<answer>B</answer>", finish="length"))
    assert isinstance(episode.outcome, Failed)


def test_a_missing_tag_is_asked_for_with_the_question_in_sight(tmp_path: Path) -> None:
    """More turns come only while there is no answer tag, and the whole conversation is sent."""
    episode, target = answered(tmp_path, "I think B", "<answer>B</answer>", "<answer>C</answer>", max_turns=3)
    assert (episode.outcome, episode.turns, len(target.asked)) == (Measured(1, 1), 2, 2)
    assert [message.role for message in target.asked[1]] == ["system", "user", "assistant", "user"]
    assert "Which bound is sharp?" in target.asked[1][1].content


def test_the_analyst_sees_what_was_chosen_and_what_is_right(tmp_path: Path) -> None:
    """The evaluation block ends the trajectory, and the type is the first theorem type."""
    episode, _ = answered(tmp_path, "<answer>C</answer>")
    assert episode.records[-1].text == (
        "[EVALUATION RESULT]\nQuestion: Which bound is sharp?\nChosen: C 2n\nCorrect: B n + 1\nExact Match: 0"
    )
    _, splits = open_rows(tmp_path, NAME, [ROW, {**ROW, "id": "2", "theorem_type": []}])
    assert [item.task_type for item in splits.train] == ["Upper bound", "math_mcq"]


def test_analysts_of_training_items_may_be_shown_theorem_and_sketch(tmp_path: Path) -> None:
    """Where the config says so; no target is, and nobody for what is scored."""
    scored = {**ROW, "id": "2", "split": "val"}
    for shown in (True, False):
        environment, splits = open_rows(tmp_path, NAME, [ROW, scored], show_reference=shown)
        for item, wanted in ((splits.train[0], shown), (splits.val[0], False)):
            target = Target(["<answer>A</answer>"])
            records = attempt(environment, item, target).records
            text = (
                "[HIDDEN REFERENCE]\nTheorem:\nEvery such graph has at most n + 1 edges.\nProof sketch:\nBy induction."
            )
            assert [each.text for each in records if "REFERENCE" in each.text] == [text] * wanted
            assert records[-1].text.startswith("[EVALUATION RESULT]")
            assert "induction" not in repr(target.asked)


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("shuffle_choices", "yes", "true or false"),
        ("scoring", "loose", "one of skillopt, extended"),
        ("max_turns", 0, "at least 1"),
    ],
)
def test_options_are_checked(tmp_path: Path, key: str, value: Any, allowed: str) -> None:
    """File, key, value and what is allowed."""
    with pytest.raises(ConfigError, match=f"env.{key}: must be .*{allowed}"):
        open_on(tmp_path, NAME, data_settings(), **{key: value})
