"""Items are divided the same way everywhere, and a split that cannot be used says how to mend it."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as checked
from hypothesis import strategies as st
from support.environments import data_settings, write_lines

from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.adapters.environments.splits import load_splits, ratio_counts
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.ports import Item, Splits


class Plain:
    """An item that is only its id."""

    def __init__(self, raw: RawItem) -> None:
        self.id = raw.id
        self.task_type = ""


def loaded(**changes: Any) -> Splits:
    return load_splits(data_settings(**changes), Plain)


def typed(path: Path, split_ratio: str = "2:1:7", **changes: Any) -> Splits:
    """The splits where types count."""
    settings = data_settings(data_path=str(path), split_ratio=split_ratio, **changes)
    return load_splits(settings, Typed, kind=lambda raw: raw.fields["type"])


def kinds_in(path: Path, **changes: Any) -> list[Counter[str]]:
    """How many items of each type are in train, val and test."""
    splits = typed(path, **changes)
    return [Counter(item.task_type for item in items) for items in (splits.train, splits.val, splits.test)]


class Typed(Plain):
    """One with a type."""

    def __init__(self, raw: RawItem) -> None:
        super().__init__(raw)
        self.task_type = raw.fields["type"]


def ids(items: Sequence[Item]) -> list[str]:
    return [item.id for item in items]


def rows(names: str, **more: object) -> list[dict[str, object]]:
    return [{"id": name, **more} for name in names]


def split_dir(folder: Path, **splits: str) -> Path:
    for split, names in splits.items():
        (folder / split).mkdir(parents=True)
        (folder / split / "items.json").write_text(json.dumps(rows(names)))
    return folder


def test_ratio_matches_the_vector(tmp_path: Path) -> None:
    """Ten items under seed 42 and 2:1:7 fall as they do in SkillOpt."""
    path = write_lines(tmp_path / "i.jsonl", rows("abcdefghij"))
    splits = loaded(data_path=str(path), split_ratio="2:1:7")
    assert "".join(ids(splits.train)) == "hd"
    assert "".join(ids(splits.val)) == "c"
    assert "".join(ids(splits.test)) == "ifgjeab"


def test_an_empty_ratio_is_two_one_seven(tmp_path: Path) -> None:
    """The default ratio is SkillOpt's."""
    path = write_lines(tmp_path / "i.jsonl", rows("abcdefghij"))
    assert ids(loaded(data_path=str(path), split_ratio="").train) == ["h", "d"]


def test_seed_zero_is_a_seed(tmp_path: Path) -> None:
    """Zero shuffles by seed zero instead of falling back to another one."""
    path = write_lines(tmp_path / "i.jsonl", rows("abcdefghij"))
    expected = list("abcdefghij")
    random.Random(0).shuffle(expected)
    splits = loaded(data_path=str(path), split_seed=0)
    assert [*ids(splits.train), *ids(splits.val), *ids(splits.test)] == expected


def test_each_type_is_in_each_split(tmp_path: Path) -> None:
    """Sixty tasks of eight kinds, one of them rare: by chance alone it would often be missing among 15."""
    kinds = [f"k{n % 7}" for n in range(56)] + ["rare"] * 4
    path = write_lines(tmp_path / "i.jsonl", [{"id": f"i{n}", "type": kind} for n, kind in enumerate(kinds)])
    for seed in range(20):
        train, val, test = kinds_in(path, split_ratio="2:1:1", split_seed=seed)
        assert [sum(each.values()) for each in (train, val, test)] == [30, 15, 15]
        for kind in set(kinds):
            assert train[kind] >= 1
            assert val[kind] >= 1
            assert test[kind] >= 1
        assert all(abs(train[f"k{n}"] - 4) <= 1 and abs(test[f"k{n}"] - 2) <= 1 for n in range(7))


def test_where_a_split_is_too_small_for_all_types_the_largest_are_in_it(tmp_path: Path) -> None:
    """One validation item for each of six types, of eight; a type of two items may be missing."""
    kinds = [f"k{n}" for n in range(8) for _ in range(9 - n)]
    path = write_lines(tmp_path / "i.jsonl", [{"id": f"i{n}", "type": kind} for n, kind in enumerate(kinds)])
    train, val, test = kinds_in(path, split_ratio="2:1:7")
    assert [sum(each.values()) for each in (train, val, test)] == list(ratio_counts(len(kinds), "2:1:7"))
    assert set(val) == {"k0", "k1", "k2", "k3"}
    assert {f"k{n}" for n in range(7)} <= set(train) & set(test)


@given(
    st.lists(st.sampled_from(["", "a", "b", "c", "d"]), min_size=5, max_size=60),
    st.sampled_from(["2:1:7", "1:1:1", "5:3:1"]),
)
@checked(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_types_change_the_size_of_no_split(tmp_path: Path, kinds: list[str], ratio: str) -> None:
    """Each item is in one split, and each split is as large as without types."""
    path = write_lines(tmp_path / "i.jsonl", [{"id": f"i{n}", "type": kind} for n, kind in enumerate(kinds)])
    train, val, test = ratio_counts(len(kinds), ratio)
    if not train or not val:
        return
    found = kinds_in(path, split_ratio=ratio)
    assert [sum(each.values()) for each in found] == [train, val, test]
    assert sum(found, Counter()) == Counter(kinds)


@pytest.mark.parametrize("kind", ["", "one"])
def test_without_types_items_fall_as_they_always_did(tmp_path: Path, kind: str) -> None:
    """None, or the same for all."""
    path = write_lines(tmp_path / "i.jsonl", rows("abcdefghij", type=kind))
    splits = load_splits(
        data_settings(data_path=str(path), split_ratio="2:1:7"), Typed, kind=lambda raw: raw.fields["type"]
    )
    assert (ids(splits.train), ids(splits.val), "".join(ids(splits.test))) == (["h", "d"], ["c"], "ifgjeab")


def test_types_that_are_rare_do_not_count(tmp_path: Path) -> None:
    """Each item of a type of its own: as if there were none."""
    path = write_lines(tmp_path / "i.jsonl", [{"id": name, "type": f"of {name}"} for name in "abcdefghij"])
    splits = load_splits(
        data_settings(data_path=str(path), split_ratio="2:1:7"), Typed, kind=lambda raw: raw.fields["type"]
    )
    assert (ids(splits.train), ids(splits.val)) == (["h", "d"], ["c"])


@pytest.mark.parametrize(
    ("total", "ratio", "counts"),
    [
        (1, "2:1:7", (0, 0, 1)),
        (2, "2:1:7", (1, 0, 1)),
        (3, "2:1:7", (1, 0, 2)),
        (5, "2:1:7", (1, 0, 4)),
        (10, "2:1:7", (2, 1, 7)),
        (177, "2:1:7", (35, 18, 124)),
        (400, "2:1:7", (80, 40, 280)),
        (4, "1:1:1", (2, 1, 1)),
        (0, "1:1:1", (0, 0, 0)),
        (1, "1:1:1", (1, 0, 0)),
    ],
)
def test_ratio_counts_are_by_largest_remainder(total: int, ratio: str, counts: tuple[int, int, int]) -> None:
    """The counts are SkillOpt's and always add up."""
    assert ratio_counts(total, ratio) == counts


@pytest.mark.parametrize("ratio", ["1:1", "1:1:1:1", "a:b:c", "0:1:1", "-1:1:1", "1.5:1:1", "::", "2 1 7"])
def test_a_ratio_is_three_positive_whole_numbers(tmp_path: Path, ratio: str) -> None:
    """Anything else is a config error that names the key."""
    path = write_lines(tmp_path / "i.jsonl", rows("abc"))
    with pytest.raises(ConfigError, match=r"env\.split_ratio"):
        loaded(data_path=str(path), split_ratio=ratio)


def test_nothing_is_written(tmp_path: Path) -> None:
    """Splitting leaves the data folder as it was."""
    path = write_lines(tmp_path / "i.jsonl", rows("abcdef"))
    loaded(data_path=str(path))
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_with_one_file_stands_for_the_file(tmp_path: Path) -> None:
    """`data_path` may name the folder when there is no doubt which file is meant."""
    write_lines(tmp_path / "i.jsonl", rows("abcdef"))
    (tmp_path / ".hidden.json").write_text("[]")
    assert len(loaded(data_path=str(tmp_path)).train) == 2


def test_a_folder_in_doubt_is_refused(tmp_path: Path) -> None:
    """Two files, none, or ready-made splits: each error says what to set."""
    with pytest.raises(DataError, match=r"is a folder, not a file.*none"):
        loaded(data_path=str(tmp_path))
    write_lines(tmp_path / "a.jsonl", rows("abc"))
    write_lines(tmp_path / "b.json", rows("a"))
    with pytest.raises(DataError, match=r"a\.jsonl, b\.json"):
        loaded(data_path=str(tmp_path))
    folder = split_dir(tmp_path / "s", train="a", val="b", test="c")
    with pytest.raises(DataError, match="split already") as caught:
        loaded(data_path=str(folder))
    assert "split_dir" in caught.value.hint


def test_split_folders_are_read_in_file_order(tmp_path: Path) -> None:
    """Each folder gives its alphabetically first file, and ignored ones are noted."""
    folder = split_dir(tmp_path, train="cab", val="x", test="zy")
    write_lines(folder / "train" / "a.jsonl", rows("qp"))
    splits = loaded(split_mode="split_dir", split_dir=str(folder))
    assert (ids(splits.train), ids(splits.val), ids(splits.test)) == (["q", "p"], ["x"], ["z", "y"])
    assert splits.notes == ("train: read a.jsonl, ignored items.json",)


def test_split_files_are_read(tmp_path: Path) -> None:
    """Mode `file` reads train, val and test as .jsonl or .json."""
    write_lines(tmp_path / "train.jsonl", rows("ba"))
    (tmp_path / "val.json").write_text(json.dumps(rows("c")))
    write_lines(tmp_path / "test.jsonl", rows("d"))
    splits = loaded(split_mode="file", split_dir=str(tmp_path))
    assert (ids(splits.train), ids(splits.val), ids(splits.test), splits.notes) == (["b", "a"], ["c"], ["d"], ())


def test_two_files_for_one_split_are_refused(tmp_path: Path) -> None:
    """It is not guessed which of train.json and train.jsonl is meant."""
    write_lines(tmp_path / "train.jsonl", rows("a"))
    write_lines(tmp_path / "train.json", rows("a"))
    with pytest.raises(DataError, match=r"both train\.jsonl and train\.json"):
        loaded(split_mode="file", split_dir=str(tmp_path))


@pytest.mark.parametrize("key", ["", "part"])
def test_items_may_name_their_split(tmp_path: Path, key: str) -> None:
    """The field's values are train, val and test or SkillOpt's older names."""
    names = ["train", "training", "val", "validation", "dev", "valid_seen", "selection", "test", "valid_unseen"]
    path = write_lines(tmp_path / "i.jsonl", [{"id": name, key or "split": name} for name in names])
    splits = loaded(split_mode="field", split_field=key, data_path=str(path))
    assert (ids(splits.train), ids(splits.val), ids(splits.test)) == (names[:2], names[2:7], names[7:])


def test_an_unknown_split_value_is_refused_with_the_nearest(tmp_path: Path) -> None:
    """A typo never lands silently in val."""
    path = write_lines(tmp_path / "i.jsonl", [{"id": "a", "split": "train"}, {"id": "b", "split": "tset"}])
    with pytest.raises(DataError, match=r"i\.jsonl:2: item 'b': unknown split 'tset'") as caught:
        loaded(split_mode="field", data_path=str(path))
    assert "'test'" in caught.value.hint


@pytest.mark.parametrize("value", [None, 3, ["train"]])
def test_a_split_value_must_be_a_name(tmp_path: Path, value: object) -> None:
    """Other JSON in the field is refused."""
    path = write_lines(tmp_path / "i.jsonl", [{"id": "a", "split": value}])
    with pytest.raises(DataError, match="unknown split"):
        loaded(split_mode="field", data_path=str(path))


def test_an_item_without_its_split_is_refused(tmp_path: Path) -> None:
    """The missing field is named."""
    path = write_lines(tmp_path / "i.jsonl", rows("a"))
    with pytest.raises(DataError, match="no `split` field"):
        loaded(split_mode="field", data_path=str(path))


@pytest.mark.parametrize(
    ("splits", "empty"),
    [({"train": "", "val": "b", "test": "c"}, "train"), ({"train": "a", "val": "", "test": "c"}, "val")],
)
def test_training_needs_train_and_val(tmp_path: Path, splits: dict[str, str], empty: str) -> None:
    """An empty split that training needs is an error with the sizes."""
    folder = split_dir(tmp_path, **splits)
    with pytest.raises(DataError, match=f"the {empty} split is empty") as caught:
        loaded(split_mode="split_dir", split_dir=str(folder))
    assert caught.value.hint


def test_a_ratio_that_leaves_val_empty_says_so(tmp_path: Path) -> None:
    """Five items at 2:1:7 give no val item, which would score 0 for ever."""
    path = write_lines(tmp_path / "i.jsonl", rows("abcde"))
    with pytest.raises(DataError, match=r"the val split is empty \(train 1, val 0, test 4\)") as caught:
        loaded(data_path=str(path), split_ratio="2:1:7")
    assert "env.split_ratio" in caught.value.hint


@pytest.mark.parametrize("made", ["none", "folder", "empty"])
def test_an_empty_test_split_is_noted(tmp_path: Path, made: str) -> None:
    """Training works without test items, and the note says what is lost."""
    folder = split_dir(tmp_path, train="a", val="b", **({"test": ""} if made == "empty" else {}))
    if made == "folder":
        (folder / "test").mkdir()
    splits = loaded(split_mode="split_dir", split_dir=str(folder))
    assert splits.test == []
    assert splits.notes == ("the test split is empty: there will be no test score",)


def test_a_missing_val_folder_is_refused_with_what_is_there(tmp_path: Path) -> None:
    """The hint lists the folder, so that a wrong name is seen."""
    folder = split_dir(tmp_path, train="a", valid="b", test="c")
    with pytest.raises(DataError, match="val: no such folder") as caught:
        loaded(split_mode="split_dir", split_dir=str(folder))
    assert "test, train, valid" in caught.value.hint


@pytest.mark.parametrize("mode", ["split_dir", "file"])
def test_split_dir_must_be_a_folder(tmp_path: Path, mode: str) -> None:
    """Unset, missing and not a folder are three different sentences."""
    with pytest.raises(ConfigError, match=r"env\.split_dir is not set"):
        loaded(split_mode=mode)
    with pytest.raises(DataError, match="does not exist"):
        loaded(split_mode=mode, split_dir=str(tmp_path / "none"))
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="is a file, not a folder"):
        loaded(split_mode=mode, split_dir=str(tmp_path / "file"))


@pytest.mark.parametrize("mode", ["ratio", "field"])
def test_data_path_must_be_set(mode: str) -> None:
    """The key that is missing is named."""
    with pytest.raises(ConfigError, match=r"env\.data_path is not set"):
        loaded(split_mode=mode)


def test_an_item_in_two_splits_is_refused(tmp_path: Path) -> None:
    """What was trained on must not be scored, and both places are named."""
    folder = split_dir(tmp_path, train="ab", val="cb", test="d")
    with pytest.raises(DataError, match=r"item 'b': also in the train split \(.*train.items\.json:1\)"):
        loaded(split_mode="split_dir", split_dir=str(folder))


def test_limit_keeps_the_first_of_each_split(tmp_path: Path) -> None:
    """The limit is for each split, after dividing."""
    folder = split_dir(tmp_path, train="abc", val="de", test="fghi")
    splits = loaded(split_mode="split_dir", split_dir=str(folder), limit=2)
    assert (ids(splits.train), ids(splits.val), ids(splits.test)) == (["a", "b"], ["d", "e"], ["f", "g"])


def test_digests_name_the_content_not_its_spelling(tmp_path: Path) -> None:
    """Key order and spacing do not change a digest; a value, an order or another split do."""
    one = write_lines(tmp_path / "one.jsonl", [{"id": name, "x": 1} for name in "abc"])
    two = tmp_path / "two.json"
    two.write_text(json.dumps([{"x": 1, "id": name} for name in "abc"], indent=3))
    other = write_lines(tmp_path / "other.jsonl", [{"id": name, "x": 2} for name in "abc"])
    first, second, third = (loaded(data_path=str(path)).digests for path in (one, two, other))
    assert first == second
    assert set(first) == {"train", "val", "test"}
    assert not set(first.values()) & set(third.values())


def test_an_item_says_whether_its_text_is_trusted(tmp_path: Path) -> None:
    """In a field of its own; anything but the two words is refused with the line."""
    items = [*rows("ab", trust="untrusted"), *rows("cde")]
    path = write_lines(tmp_path / "i.jsonl", items)
    assert loaded(data_path=str(path), split_ratio="1:1:1").untrusted == {"a", "b"}
    path = write_lines(tmp_path / "i.jsonl", [*items, {"id": "f", "trust": "maybe"}])
    with pytest.raises(DataError, match=r"i.jsonl:6: item 'f': `trust` is 'maybe'"):
        loaded(data_path=str(path), split_ratio="1:1:1")


def test_equal_inputs_have_equal_digests(tmp_path: Path) -> None:
    """Whatever their names, kinds and answers; an item without an input has none."""
    items = [
        {"id": "a", "input": "2+2", "expected": "4", "type": "sum"},
        {"id": "b", "input": "2+2", "expected": "four"},
        {"id": "c", "input": "2+3", "expected": "5"},
        {"id": "d"},
    ]
    inputs = loaded(data_path=str(write_lines(tmp_path / "i.jsonl", items)), split_ratio="2:1:1").inputs
    assert inputs["a"] == inputs["b"] != inputs["c"]
    assert "d" not in inputs
