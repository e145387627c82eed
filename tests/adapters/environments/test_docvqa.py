"""DocVQA behaves as SkillOpt's does, where that was right; it shows only images of the data."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from support.environments import BLANK, SKILL, Target, attempt, data_settings, open_on, open_rows, write_lines
from support.pictures import JPEG, page

from skillopt_es.adapters.environments.docvqa.evaluator import Scoring, anls, extract
from skillopt_es.adapters.environments.docvqa.items import accepted
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.values import Failed, Measured
from skillopt_es.ports import ChatReply, Environment, Episode, Splits

NAME = "docvqa"
ROW = {"id": "1", "question": "What is the total?", "answers": ["12/3/1998", "1,204.50"]}
BOTH: tuple[Scoring, ...] = ("skillopt", "extended")


def answered(folder: Path, *replies: str | ChatReply, **options: Any) -> tuple[Episode, Target]:
    environment, splits = open_rows(folder, NAME, [ROW], **options)
    target = Target(replies)
    return attempt(environment, splits.train[0], target), target


def write_csv(path: Path, columns: list[str], rows: list[list[str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


# Grading


@pytest.mark.parametrize("scoring", BOTH)
@pytest.mark.parametrize(
    ("reply", "answers", "score"),
    [
        ("abc", ["abd"], 0.666667),
        ("ab", ["ac"], 0.0),
        ("University of California", ["university of california"], 1.0),
        ("12/3/98", ["12/3/1998"], 0.777778),
        ("", [], 1.0),
        ("x", [], 0.0),
        ("", ["x"], 0.0),
        ("first\nlast line", ["Last  Line"], 1.0),
        ("<answer>a</answer> no: <ANSWER>b</Answer>", ["b"], 1.0),
        ("12/3/98", ["nothing like it", "12/3/1998"], 0.777778),
        ("x" * 100_000, ["y"], 0.0),
    ],
)
def test_answers_are_graded_as_the_vectors_say(reply: str, answers: list[str], score: float, scoring: Scoring) -> None:
    """The best of all accepted answers; half of the letters wrong is all wrong."""
    assert anls(extract(reply), answers, scoring) == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize(
    ("said", "skillopt"), [("Paris.", 5 / 6), ("“Paris”", 5 / 7), ("Ｐaris", 0.8), ("'Paris.'", 5 / 8)]
)
def test_the_extended_scoring_overlooks_print(said: str, skillopt: float) -> None:
    """Outer quotes, a full stop and wide letters; never another word."""
    assert anls(said, ["Paris"], "skillopt") == pytest.approx(skillopt)
    assert anls(said, ["Paris"], "extended") == 1.0
    assert anls("Paros", ["Paris"], "extended") == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("reply", "prediction"),
    [
        ("<answer> a </answer>", "a"),
        ("<answer>a<answer>b</answer>", "b"),
        ("<answer>a</answer>\nthen <answer>", "then <answer>"),
        ("one\n\ntwo\n \n", "two"),
        ("İİİ <answer>İa</answer>", "İa"),
        ("", ""),
    ],
)
def test_the_answer_stands_between_the_last_two_tags(reply: str, prediction: str) -> None:
    """Else it is the last line that is not blank."""
    assert extract(reply) == prediction


@pytest.mark.parametrize(
    ("reply", "failure", "hard", "soft"),
    [
        ("<answer>1,204.50</answer>", "", 1.0, 1.0),
        ("<answer>1,204.5</answer>", "near_miss", 0.0, 0.875),
        ("<answer>about a hundred</answer>", "wrong_answer", 0.0, 0.0),
        ("1,204.5", "format", 0.0, 0.875),
        ("1,204.50", "", 1.0, 1.0),
        ("<answer></answer>", "no_answer", 0.0, 0.0),
    ],
)
def test_every_miss_has_a_stable_code(tmp_path: Path, reply: str, failure: str, hard: float, soft: float) -> None:
    """Near misses too; the detail says what was expected."""
    episode, _ = answered(tmp_path, reply)
    assert episode.outcome == Measured(hard, soft)
    assert episode.failure == failure
    assert ("1,204.50" in episode.detail) == bool(failure)


# The conversation


def test_the_page_is_shown_and_readers_are_told_its_name(tmp_path: Path) -> None:
    """The bytes go to the target; the trajectory has the name and no bytes."""
    episode, target = answered(tmp_path, "I see.\n<answer>12/3/98</answer>")
    system, asked = target.asked[0]
    assert SKILL.text.strip() in system.content
    assert [(each.media_type, each.data, each.detail) for each in asked.images] == [("image/png", page(["42"]), "auto")]
    assert asked.content.startswith("What is the total?\n\n")
    assert [record.kind for record in episode.records] == ["system", "user", "reply", "feedback"]
    assert episode.records[1].text == f"{asked.content}\n\n[image] page.png"
    assert episode.records[-1].text == (
        "[EVALUATION RESULT]\nQuestion: What is the total?\nPredicted answer: '12/3/98'\n"
        "Gold answers: ['12/3/1998', '1,204.50']\nANLS: 0.7778"
    )


def test_a_blank_skill_has_no_heading(tmp_path: Path) -> None:
    """The system prompt is the same as if there were none."""
    environment, splits = open_rows(tmp_path, NAME, [ROW])
    target = Target(["<answer>x</answer>"])
    attempt(environment, splits.train[0], target, BLANK)
    assert "## Skill" not in target.asked[0][0].content


def test_a_reply_without_a_tag_is_asked_for_again(tmp_path: Path) -> None:
    """With the page still shown; a reply with one is final, the first too."""
    episode, target = answered(tmp_path, "12/3/98?", "<answer>12/3/1998</answer>", "never", max_turns=5)
    assert (episode.turns, episode.outcome) == (2, Measured(1.0, 1.0))
    assert [len(message.images) for message in target.asked[1]] == [0, 1, 0, 0]
    assert answered(tmp_path, "<answer>12/3/98</answer>", "never", max_turns=5)[0].turns == 1


def test_a_cut_or_refused_reply_is_not_graded(tmp_path: Path) -> None:
    """As in every environment."""
    cut = answered(tmp_path, ChatReply(text="<answer>1,204.50</answer>", finish="length"))[0]
    refused = answered(tmp_path, ChatReply(text="", finish="refused"))[0]
    assert isinstance(cut.outcome, Failed)
    assert (refused.outcome, refused.failure) == (Measured(0.0, 0.0), "refused")


@pytest.mark.parametrize(
    ("given", "detail", "needs"), [("auto", "auto", False), ("", "auto", False), ("high", "high", True)]
)
def test_the_detail_is_an_option(tmp_path: Path, given: str, detail: str, needs: bool) -> None:
    """What is not `auto` needs a model that can be told."""
    environment, splits = open_rows(tmp_path, NAME, [ROW], image_detail=given)
    target = Target(["<answer>x</answer>"])
    attempt(environment, splits.train[0], target)
    assert target.asked[0][1].images[0].detail == detail
    assert ("image_detail" in environment.requires) == needs  # type: ignore[attr-defined]
    assert environment.requires >= {"text", "images"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("option", [{"image_detail": "ultra"}, {"max_image_bytes": 0}, {"scoring": "strict"}])
def test_wrong_options_are_refused(tmp_path: Path, option: dict[str, Any]) -> None:
    """With the key."""
    with pytest.raises(ConfigError, match=f"env.{next(iter(option))}"):
        open_on(tmp_path, NAME, data_settings(), **option)


# The data


@pytest.mark.parametrize(
    ("cell", "answers"),
    [
        ("1,000", ("1,000",)),
        ("0.50", ("0.50",)),
        ("1e5", ("1e5",)),
        ("(1, 0)", ("(1, 0)",)),
        ("[1, 2]", ("[1, 2]",)),
        ("['1,000', \"it's\"]", ("1,000", "it's")),
        ('["0.50", " a "]', ("0.50", "a")),
        ("['a',\n 'b\\'c']", ("a", "b'c")),
        ("[illegible]", ("[illegible]",)),
        ("", ()),
        ("[]", ()),
    ],
)
def test_a_cell_of_answers_keeps_its_digits(cell: str, answers: tuple[str, ...]) -> None:
    """Lists of quoted texts are lists; all else is one answer as it stands."""
    assert accepted({"answer": cell}) == answers


def test_answers_come_in_several_spellings() -> None:
    """A list, one text, objects around them; numbers are refused, because their digits are gone."""
    assert accepted({"answers": ["a", {"text": "b"}]}) == ("a", "b")
    assert accepted({"answer": None, "ground_truth": "c"}) == ("c",)
    assert accepted({"answer": {"answers": ["d", "e"]}}) == ("d", "e")
    assert accepted({}) == ()
    with pytest.raises(ValueError, match="holds 1000, which is not text"):
        accepted({"answers": [1000]})
    for broken in ("['a' 'b']", r"['a\d']", "['a', 1]", '["a"'):
        with pytest.raises(ValueError, match="looks like a list"):
            accepted({"answer": broken})
    with pytest.raises(ValueError, match="is an object without"):
        accepted({"answers": {"best": "x"}})


def split_csv(folder: Path) -> None:
    """A data set as the original wants it: one CSV in each split, images beside the splits."""
    (folder / "images").mkdir()
    (folder / "images" / "a.png").write_bytes(page(["1"]))
    (folder / "images" / "b.jpg").write_bytes(JPEG)
    columns = ["", "questionId", "question", "answer", "topic", "image_path", "docId"]
    for number, split in enumerate(("train", "val", "test")):
        rows = [
            ["0", f"{number}1", "How many?", "1,000", "form|layout", "images/a.png", "7"],
            ["1", f"{number}2", "Whose?document_path: images/b.jpg", "['x', 'y']", "", "", "8"],
        ]
        write_csv(folder / split / "items.csv", columns, rows)


def test_the_original_s_folders_of_csv_files_are_read(tmp_path: Path) -> None:
    """Cells are text; paths start at the folder of the splits; the question may hold the path."""
    split_csv(tmp_path)
    environment = open_on(tmp_path, NAME, data_settings(split_mode="split_dir", split_dir=str(tmp_path)))
    first, second = environment.load().train
    assert (first.id, first.task_type, first.answers) == ("01", "form|layout", ("1,000",))  # type: ignore[attr-defined]
    assert (second.task_type, second.question) == ("docvqa", "Whose?")  # type: ignore[attr-defined]
    assert second.answers == ("x", "y")  # type: ignore[attr-defined]
    target = Target(["<answer>x</answer>"])
    assert attempt(environment, second, target).outcome == Measured(1.0, 1.0)
    assert target.asked[0][1].images[0].media_type == "image/jpeg"


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_ratio_mode_works(tmp_path: Path, suffix: str) -> None:
    """From CSV and from JSON, named by file or by folder."""
    (tmp_path / "p.png").write_bytes(page(["1"]))
    data = tmp_path / f"items.{suffix}"
    if suffix == "csv":
        write_csv(data, ["id", "question", "answer", "image_path"], [[str(n), "?", "1", "p.png"] for n in range(10)])
    else:
        write_lines(data, [{"id": n, "question": "?", "answers": ["1"], "image_path": "p.png"} for n in range(10)])
    for path in (data, tmp_path):
        settings = data_settings(split_mode="ratio", split_ratio="2:1:7", data_path=str(path))
        splits = open_on(tmp_path, NAME, settings).load()
        assert (len(splits.train), len(splits.val), len(splits.test)) == (2, 1, 7)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("id,question\n1,a,b\n", ":2: this row has 3 cells, but the header has 2 columns"),
        ("id,id\n1,2\n", ":1: the column 'id' is there twice"),
        ('id,question\n1,"a\nb"\n2,"c"d\n', ":4: not CSV"),
        ("id,question,image_path\n,?,p.png\n", ":2: this item has no `id`"),
        ("id,question,image_path\n1,?,p.png\n1,?,p.png\n", ":3: item '1': this id is already used at"),
        ("id,question,image_path\n1,,p.png\n", ":2: item '1': `question` is missing"),
        ("id,question\n1,?\n", ":2: item '1': `image_path` is missing"),
    ],
)
def test_broken_rows_are_refused_with_their_line(tmp_path: Path, text: str, what: str) -> None:
    """And what to do."""
    (tmp_path / "p.png").write_bytes(page(["1"]))
    (tmp_path / "items.csv").write_text(text, encoding="utf-8")
    environment = open_on(tmp_path, NAME, data_settings(data_path=str(tmp_path / "items.csv")))
    with pytest.raises(DataError) as caught:
        environment.load()
    assert what in str(caught.value)
    assert caught.value.hint


def loaded(folder: Path, image_path: Any, **options: Any) -> tuple[Environment, Splits]:
    return open_rows(folder, NAME, [{**ROW, "image_path": image_path}], **options)


@pytest.mark.parametrize(
    ("image_path", "what"),
    [
        ("/etc/passwd", "not named by a plain path"),
        ("../secret.png", "not named by a plain path"),
        ("a/../../secret.png", "not named by a plain path"),
        ("..\\secret.png", "not named by a plain path"),
        ("C:\\secret.png", "not named by a plain path"),
        ("link.png", "a link that points outside of the data"),
        ("none.png", "there is no image"),
        (".", "there is no image"),
        ("note.png", "neither a PNG nor a JPEG"),
        ("a\0b.png", "not named by a plain path"),
    ],
)
def test_only_images_of_the_data_are_sent(tmp_path: Path, image_path: str, what: str) -> None:
    """No other file of this machine reaches a provider, whatever an item says."""
    (tmp_path / "secret.png").write_bytes(page(["7"]))
    data = tmp_path / "data"
    data.mkdir()
    (data / "note.png").write_text("a password", encoding="utf-8")
    (data / "link.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(DataError, match=what) as caught:
        loaded(data, image_path)
    assert "env.data_root" in caught.value.hint


def test_a_large_image_is_refused(tmp_path: Path) -> None:
    """Before it is paid for; the limit is an option."""
    size = len(page(["42"]))
    loaded(tmp_path, "page.png", max_image_bytes=size)
    with pytest.raises(DataError, match=f"has more than {size - 1} bytes"):
        loaded(tmp_path, "page.png", max_image_bytes=size - 1)


@pytest.mark.parametrize("gone", [True, False])
def test_an_image_that_changed_is_no_score(tmp_path: Path, gone: bool) -> None:
    """The item is not measured, and nothing is asked; loaded anew, the data have another digest."""
    environment, splits = loaded(tmp_path, "page.png")
    (tmp_path / "page.png").unlink() if gone else (tmp_path / "page.png").write_bytes(page(["43"]))
    target = Target(["x"])
    episode = attempt(environment, splits.train[0], target)
    assert isinstance(episode.outcome, Failed)
    assert (episode.failure, target.asked) == ("data", [])
    assert str(tmp_path) not in repr(episode)
    if not gone:
        assert environment.load().digests != splits.digests


def test_several_pages_are_shown_in_their_order(tmp_path: Path) -> None:
    """From folders below the root that the config names."""
    (tmp_path / "scans" / "x").mkdir(parents=True)
    (tmp_path / "scans" / "x" / "1.png").write_bytes(page(["1"]))
    (tmp_path / "scans" / "2.jpg").write_bytes(JPEG)
    (tmp_path / "scans" / "page.png").write_bytes(page(["42"]))
    row = {**ROW, "image_paths": ["2.jpg", "x/1.png"]}
    environment, splits = open_rows(tmp_path, NAME, [row], data_root="scans")
    target = Target(["<answer>x</answer>"])
    episode = attempt(environment, splits.train[0], target)
    assert [image.data for image in target.asked[0][1].images] == [JPEG, page(["1"])]
    assert episode.records[1].text.endswith("\n\n[image] 2.jpg\n[image] 1.png")


def test_items_without_an_answer(tmp_path: Path) -> None:
    """As in the original an empty answer is right, with a note; `extended` leaves them out."""
    rows = [ROW, {**ROW, "id": "2", "answers": []}]
    environment, splits = open_rows(tmp_path, NAME, rows)
    assert attempt(environment, splits.train[1], Target([""])).outcome == Measured(1.0, 1.0)
    assert splits.notes == ("without an accepted answer, so that an empty one is right: 2",)
    _, kept = open_rows(tmp_path, NAME, rows, scoring="extended")
    assert [item.id for item in kept.train] == ["1"]
    assert kept.notes == ("left out for want of an answer: 2",)
