"""Splits are built from made-up downloads: in the lists' order, whole, or not at all."""

from __future__ import annotations

import io
import json
import tarfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.downloads import MADE, livemath_months, searchqa_rows, tiny_png

from skillopt_es.adapters.benchmarks.build import Built, build
from skillopt_es.adapters.benchmarks.check import check_folder
from skillopt_es.adapters.benchmarks.id_lists import released_ids, released_names
from skillopt_es.adapters.benchmarks.livemath import MONTHS
from skillopt_es.adapters.benchmarks.registry import BENCHMARKS
from skillopt_es.adapters.benchmarks.spreadsheetbench import unpacked
from skillopt_es.adapters.benchmarks.tables import lines_of, table_rows, texts_of
from skillopt_es.errors import DataError, OutputRefused

NAMES = sorted(BENCHMARKS)


def make(name: str, home: Path) -> Built:
    source, ids = MADE[name](home)
    return again(name, home, source, ids)


def again(name: str, home: Path, source: Path, ids: Path | None) -> Built:
    return build(BENCHMARKS[name], source=source, out=home / "out", ids=ids, software="skillopt-es 1")


def rows(home: Path, split: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((home / "out" / split / "items.json").read_bytes())
    return found


@pytest.mark.parametrize("name", NAMES)
def test_splits_are_built_in_the_order_of_the_lists(tmp_path: Path, name: str) -> None:
    """With what the check then finds whole; nothing in it depends on where it was built."""
    built = make(name, tmp_path)
    assert built.counts == {"train": 3, "val": 1, "test": 2}
    listed = tmp_path / "up" / "data" / BENCHMARKS[name].id_folder
    for split in ("train", "val", "test"):
        ids = [row["id"] for row in json.loads((listed / split / "items.json").read_bytes())]
        assert [row["id"] for row in rows(tmp_path, split)] == ids
    checked = check_folder(tmp_path / "out")
    assert (checked.benchmark, checked.problems) == (name, ())
    manifest = (tmp_path / "out" / "split_manifest.json").read_text()
    assert str(tmp_path) not in manifest
    assert all(len(each["sha256"]) == 64 for each in json.loads(manifest)["inputs"])
    assert {path.name for path in tmp_path.iterdir()} == {"downloads", "up", "out"}


@pytest.mark.parametrize("name", NAMES)
def test_folders_may_be_named_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """And through a link."""
    source, _ = MADE[name](tmp_path)
    (tmp_path / "link").symlink_to(source)
    monkeypatch.chdir(tmp_path)
    for number, given in enumerate((Path("downloads"), Path("link"))):
        built = build(BENCHMARKS[name], source=given, out=Path(f"out{number}"), ids=Path("up"), software="")
        assert built.counts == {"train": 3, "val": 1, "test": 2}


@pytest.mark.parametrize("name", NAMES)
def test_the_same_downloads_give_the_same_bytes(tmp_path: Path, name: str) -> None:
    """In any folder."""
    every = []
    for home in (tmp_path / "a", tmp_path / "b"):
        home.mkdir()
        make(name, home)
        out = home / "out"
        every.append({str(file.relative_to(out)): file.read_bytes() for file in out.rglob("*") if file.is_file()})
    assert every[0] == every[1]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_missing_is_named_and_nothing_written(tmp_path: Path, name: str) -> None:
    """How many of which split, and the first ids."""
    source, ids = MADE[name](tmp_path)
    file = ids / "data" / BENCHMARKS[name].id_folder / "test" / "items.json"
    listed = json.loads(file.read_bytes())
    gone = {"id": "gone", **{key: "900" for key in ("questionId", "uid") if key in listed[0]}}
    file.write_text(json.dumps([listed[0], {**gone, **({"gamefile": "no/such"} if "gamefile" in listed[0] else {})}]))
    with pytest.raises(
        DataError, match=r"1 wanted items are not in the data \(0 of 3 train, 0 of 1 val, 1 of 2 test\)"
    ) as no:
        again(name, tmp_path, source, ids)
    assert "gone" in no.value.message
    assert {path.name for path in tmp_path.iterdir()} == {"downloads", "up"}


def test_an_id_in_two_splits_is_refused(tmp_path: Path) -> None:
    """What was trained on must not be scored."""
    source, ids = MADE["searchqa"](tmp_path)
    folder = ids / "data" / "searchqa_id_split"
    (folder / "val" / "items.json").write_bytes((folder / "train" / "items.json").read_bytes())
    with pytest.raises(DataError, match="3 ids are in two splits: "):
        again("searchqa", tmp_path, source, ids)


def test_a_row_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    """With both places."""
    source, ids = MADE["searchqa"](tmp_path)
    (source / "copy.jsonl").write_bytes((source / "train.jsonl").read_bytes())
    with pytest.raises(DataError, match=r"train.jsonl:1: key \w+ is already at .*copy.jsonl:1"):
        again("searchqa", tmp_path, source, ids)


def test_a_missing_field_is_named_with_its_place(tmp_path: Path) -> None:
    """File and line."""
    source, ids = MADE["searchqa"](tmp_path)
    row = searchqa_rows()[1]
    del row["context"]
    (source / "train.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match=r"train.jsonl:1: `context` is missing or blank"):
        again("searchqa", tmp_path, source, ids)


def test_lists_that_were_cut_are_noticed(tmp_path: Path) -> None:
    """Their manifest counts others; another size than the released one is a note."""
    source, ids = MADE["searchqa"](tmp_path)
    assert "the released ones 400/200/1400" in again("searchqa", tmp_path, source, ids).notes[0]
    file = ids / "data" / "searchqa_id_split" / "train" / "items.json"
    file.write_text(json.dumps(json.loads(file.read_bytes())[:2]))
    with pytest.raises(OutputRefused, match="is there already"):
        again("searchqa", tmp_path, source, ids)
    with pytest.raises(DataError, match="counts 3 train ids, but its list has 2"):
        build(BENCHMARKS["searchqa"], source=source, out=tmp_path / "other", ids=ids, software="")


@pytest.mark.parametrize("name", ["docvqa", "searchqa"])
def test_without_lists_it_says_where_they_are(tmp_path: Path, name: str) -> None:
    """Those that are not part of this software."""
    with pytest.raises(DataError, match="is a list of ids") as refused:
        again(name, tmp_path, tmp_path, None)
    assert BENCHMARKS[name].id_folder in refused.value.hint


@pytest.mark.parametrize(("name", "first"), [("officeqa", "UID0002"), ("spreadsheetbench", "32438")])
def test_some_lists_of_ids_are_part_of_this_software(tmp_path: Path, name: str, first: str) -> None:
    """As large as released, no id twice; what a download lacks of them is named."""
    divided = released_ids(name)
    assert tuple(len(divided[split]) for split in ("train", "val", "test")) == BENCHMARKS[name].sizes
    ids = [item.id for split in divided.values() for item in split]
    assert (ids[0], len(set(ids))) == (first, len(ids))
    source, _ = MADE[name](tmp_path)
    with pytest.raises(DataError, match=r"wanted items are not in the data \(\d+ of \d+ train"):
        again(name, tmp_path, source, None)
    assert not (tmp_path / "out").exists()


def test_released_workbooks_are_of_the_kinds_that_were_counted() -> None:
    """An id with a dash is a task on whole sheets: 27 of 80, 11 of 40 and 87 of 280."""
    divided = released_ids("spreadsheetbench")
    assert [sum("-" in item.id for item in divided[split]) for split in ("train", "val", "test")] == [27, 11, 87]


def _games(root: Path, paths: Iterable[str], **more: object) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(json.dumps({"pddl_domain": "d", "grammar": "g", "pddl_problem": "p", **more}))


def test_the_released_games_need_no_list(tmp_path: Path) -> None:
    """Those to train on are listed; the tests are all games of unknown rooms, in their order."""
    root = tmp_path / "downloads"
    _games(root, [path for paths in released_names("alfworld").values() for path in paths])
    unseen = [f"json_2.1.1/valid_unseen/pick_and_place_simple-Mug-{number:03}/t/game.tw-pddl" for number in range(134)]
    _games(root, unseen[::-1])
    _games(root, ["json_2.1.1/valid_unseen/pick_two_obj_and_place-X/t/game.tw-pddl"], solvable=False)
    _games(root, ["json_2.1.1/valid_unseen/pick_and_place_with_movable_recep-X/t/game.tw-pddl"])
    assert again("alfworld", tmp_path, root, None).counts == {"train": 39, "val": 18, "test": 134}
    assert [row["gamefile"] for row in rows(tmp_path, "test")] == unseen
    assert rows(tmp_path, "test")[7]["id"] == "test:0007"
    kinds = Counter(row["task_type"] for row in rows(tmp_path, "train"))
    assert kinds == {
        "pick_clean_then_place_in_recep": 9,
        "pick_and_place_simple": 7,
        "pick_heat_then_place_in_recep": 7,
        "pick_cool_then_place_in_recep": 6,
        "look_at_obj_in_light": 5,
        "pick_two_obj_and_place": 5,
    }
    (root / unseen[0]).unlink()
    with pytest.raises(DataError, match=r"tests on all 134 games in json_2\.1\.1/valid_unseen, and 133 are there"):
        build(BENCHMARKS["alfworld"], source=root, out=tmp_path / "other", ids=None, software="")


def test_the_released_split_of_livemath_follows_from_its_seed(tmp_path: Path) -> None:
    """The first ids of the draw, and the one that was moved to the end."""
    source = livemath_months(tmp_path / "downloads", MONTHS)
    assert again("livemathematicianbench", tmp_path, source, None).counts == {"train": 35, "val": 17, "test": 125}
    first = [row["id"] for row in rows(tmp_path, "train")[:5]]
    assert first == ["202602:22", "202512:8", "202511:16", "202601:44", "202511:14"]
    assert rows(tmp_path, "test")[-1]["id"] == "202512:46"
    assert (
        tuple(map(len, (rows(tmp_path, split) for split in ("train", "val", "test"))))
        == BENCHMARKS["livemathematicianbench"].sizes
    )


def test_a_month_that_is_not_whole_gives_no_released_split(tmp_path: Path) -> None:
    """It names what is there of it."""
    source = livemath_months(tmp_path / "downloads", {**MONTHS, "202601": 45})
    with pytest.raises(DataError, match=r"needs four months, whole \(202601: 45 of 46\)"):
        again("livemathematicianbench", tmp_path, source, None)


def test_documents_keep_their_answers_and_images(tmp_path: Path) -> None:
    """Digits survive, and the image lies in the new folder under a relative name."""
    make("docvqa", tmp_path)
    row = rows(tmp_path, "val")[0]
    assert row["answers"] == ["1,000", "it's 0.50"]
    assert (tmp_path / "out" / row["image_path"]).read_bytes() == tiny_png(2)
    (tmp_path / "out" / row["image_path"]).unlink()
    assert check_folder(tmp_path / "out").problems == (
        f"{row['image_path']} is missing",
        "the `image_path` of 1 items is not in the folder: q102",
    )


def test_a_changed_item_is_noticed(tmp_path: Path) -> None:
    """By the digest in the manifest."""
    make("officeqa", tmp_path)
    assert [row["source_files"] for row in rows(tmp_path, "test")] == [["a.txt", "b.txt"]] * 2
    file = tmp_path / "out" / "val" / "items.json"
    file.write_text(file.read_text().replace("1,234.5", "1,234.6"))
    assert check_folder(tmp_path / "out").problems == ("val/items.json is not what was built",)


def test_a_misnamed_workbook_is_a_note_and_a_missing_one_an_error(tmp_path: Path) -> None:
    """The pairs are what a task is graded by."""
    assert "13: 1_99_golden.xlsx has another id" in make("spreadsheetbench", tmp_path).notes
    (tmp_path / "downloads" / "verified" / "spreadsheet" / "14" / "1_14_answer.xlsx").unlink()
    with pytest.raises(DataError, match=r"1 tasks have no pair of workbooks: 14 \(a workbook lacks its expected one\)"):
        build(BENCHMARKS["spreadsheetbench"], source=tmp_path / "downloads", out=tmp_path / "2", ids=tmp_path / "up",
              software="")  # fmt: skip


def test_an_item_cannot_name_a_file_outside(tmp_path: Path) -> None:
    """Neither in what was downloaded, nor in what is checked."""
    source, ids = MADE["spreadsheetbench"](tmp_path)
    records = source / "verified" / "dataset.json"
    records.write_text(records.read_text().replace('"spreadsheet/14"', '"../../secret"'))
    with pytest.raises(DataError, match="item '14': `spreadsheet_path` points outside of the data"):
        again("spreadsheetbench", tmp_path, source, ids)
    (tmp_path / "other").mkdir()
    make("docvqa", tmp_path / "other")
    (tmp_path / "other" / "secret.png").write_bytes(tiny_png(1))
    file = tmp_path / "other" / "out" / "val" / "items.json"
    file.write_text(json.dumps([{**json.loads(file.read_bytes())[0], "image_path": "../secret.png"}]))
    assert "the `image_path` of 1 items is not in the folder: q102" in check_folder(tmp_path / "other" / "out").problems


def test_an_archive_is_read_as_it_is(tmp_path: Path) -> None:
    """The same items as from the folder that it holds."""
    source, ids = MADE["spreadsheetbench"](tmp_path)
    archive = tmp_path / "packed.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(source / "verified", "verified")
    again("spreadsheetbench", tmp_path, archive, ids)
    assert (tmp_path / "out" / "spreadsheet" / "12" / "golden.xlsx").read_bytes() == b"workbook golden"
    assert check_folder(tmp_path / "out").problems == ()


@pytest.mark.parametrize(("member", "kind"), [("../x", "file"), ("/x", "file"), ("a", "symlink"), ("a", "hardlink")])
def test_a_hostile_archive_writes_nothing(tmp_path: Path, member: str, kind: str) -> None:
    """No link, and no way out."""
    info = tarfile.TarInfo(member)
    info.type = {"file": tarfile.REGTYPE, "symlink": tarfile.SYMTYPE, "hardlink": tarfile.LNKTYPE}[kind]
    info.linkname = "" if kind == "file" else "/etc/passwd"
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as tar:
        tar.addfile(info, io.BytesIO(b""))
    (tmp_path / "into").mkdir()
    with pytest.raises(DataError, match="is a link or points outside of the archive"):
        unpacked(tmp_path / "bad.tar.gz", tmp_path / "into")
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["bad.tar.gz", "into"]


def test_a_game_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    """And one outside of the data root is refused."""
    source, ids = MADE["alfworld"](tmp_path)
    (source / "json_2.1.1" / "train" / "pick_and_place-3" / "game.tw-pddl").write_text('{"grammar": "g"}')
    with pytest.raises(DataError, match=r"1 games cannot be loaded: train:0003 \(no pddl_domain, pddl_problem\)"):
        again("alfworld", tmp_path, source, ids)
    file = ids / "data" / "alfworld_path_split" / "val" / "items.json"
    file.write_text(json.dumps([{"id": "x", "gamefile": "../../etc/passwd"}]))
    with pytest.raises(DataError, match="`gamefile` points outside of the data"):
        again("alfworld", tmp_path, source, ids)


def test_parquet_gives_the_same_rows_as_json_lines(tmp_path: Path) -> None:
    """Where pyarrow is installed."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(searchqa_rows()), tmp_path / "rows.parquet")
    assert [row for _, row in table_rows(tmp_path / "rows.parquet")] == searchqa_rows()


def test_without_pyarrow_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or what to use in its place."""
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="needs pyarrow") as refused:
        next(table_rows(tmp_path / "rows.parquet"))
    assert "pip install '.[materialize]'" in refused.value.hint


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        (["a", "b"], ["a", "b"]),
        ('["1,000", "x"]', ["1,000", "x"]),
        ("['1,000', \"it's\"]", ["1,000", "it's"]),
        ("['a' 'b']", None),
        ("1,000", None),
        ("0.50", None),
        ("[1, 2]", None),
        ("[]", None),
        ("[__import__('os')]", None),
        ("", None),
        (7, None),
    ],
)
def test_a_list_in_a_cell_is_read_whole_or_not_at_all(cell: object, texts: list[str] | None) -> None:
    """No number out of a text, no two texts in one, no code."""
    assert texts_of(cell) == texts


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("a.txt\r\nb.txt", ["a.txt", "b.txt"]),
        ("a.txt,b.txt", ["a.txt", "b.txt"]),
        ("a", ["a"]),
        ("", []),
        (None, []),
        (["a ", ""], ["a"]),
    ],
)
def test_names_in_a_cell_are_told_apart(cell: object, names: list[str]) -> None:
    """By lines or commas, whatever their ending."""
    assert lines_of(cell) == names
