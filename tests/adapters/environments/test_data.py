"""Items come out of every usual file form, and a broken file is named with its line and the way out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from skillopt_es.adapters.environments.data import read_items
from skillopt_es.errors import DataError

A = '{"id": "a", "n": 1}'
B = '{"id": "b", "n": 2}'


def written(folder: Path, content: str | bytes, name: str = "items.json") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        f"[{A}, {B}]",
        f"[\n  {A},\n  {B}\n]\n",
        f'{{"data": [{A}, {B}], "version": 3}}',
        f'{{"first": {A}, "second": {B}}}',
        f"{A}\n{B}\n",
        f"{A}\r\n\r\n{B}\r\n",
        f"\ufeff{A}\n\n   \n{B}",
        f"\ufeff[{A},{B}]",
    ],
)
@pytest.mark.parametrize("name", ["items.json", "items.jsonl"])
def test_every_form_gives_the_same_items_in_file_order(tmp_path: Path, content: str, name: str) -> None:
    """Arrays, objects, `data` lists and lines hold the same two items, with a byte order mark or CRLF."""
    items = read_items(written(tmp_path, content, name))
    assert [(item.id, item.fields["n"]) for item in items] == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("name", ["items.json", "items.jsonl"])
def test_one_line_of_json_lines_is_one_item(tmp_path: Path, name: str) -> None:
    """A single object with an id is an item, not a container of items."""
    items = read_items(written(tmp_path, '{"id": "a", "data": [1], "x": {"id": "no"}}\n', name))
    assert [item.id for item in items] == ["a"]


def test_items_know_their_line(tmp_path: Path) -> None:
    """The place is file and line in arrays, objects and lines."""
    array = read_items(written(tmp_path, f"[\n{A},\n\n{B}]"))
    lines = read_items(written(tmp_path, f"{A}\n\n{B}\n", "l.jsonl"))
    keyed = read_items(written(tmp_path, f'{{"data":\n[{A},\n{B}]}}', "k.json"))
    assert [item.where.rpartition(":")[2] for item in (*array, *lines, *keyed)] == ["2", "4", "1", "3", "2", "3"]
    assert array[0].where.startswith(str(tmp_path / "items.json"))


def test_whole_numbers_become_text_ids(tmp_path: Path) -> None:
    """Ids are compared as text, whatever they were written as."""
    assert [item.id for item in read_items(written(tmp_path, '[{"id": 7}, {"id": "8"}]'))] == ["7", "8"]


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "a/b", "CON", "a:b", "x" * 5000, "ü🙂", "a\nb", " a "])
def test_a_hostile_id_is_only_a_name(tmp_path: Path, name: str) -> None:
    """Separators and odd characters are kept as they are, and nothing is made on disk."""
    items = read_items(written(tmp_path, json.dumps([{"id": name}])))
    assert items[0].id == name
    assert [path.name for path in tmp_path.iterdir()] == ["items.json"]


def test_unicode_line_separators_do_not_end_a_line(tmp_path: Path) -> None:
    """U+2028 inside a JSON string belongs to the string."""
    items = read_items(written(tmp_path, '{"id": "a", "t": "x\u2028y"}\n{"id": "b"}', "i.jsonl"))
    assert items[0].fields["t"] == "x\u2028y"


def test_half_a_surrogate_pair_is_replaced(tmp_path: Path) -> None:
    """Text that no encoder accepts becomes text that one does, and good pairs stay."""
    items = read_items(written(tmp_path, r'[{"id": "a", "t": "x\ud83d", "u": "\ud83d\ude42", "k\udc00": 1}]'))
    assert items[0].fields == {"id": "a", "t": "x\ufffd", "u": "🙂", "k\ufffd": 1}


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (f"[{A},\n{A}]", 2, "id 'a' is already used on line 1"),
        (f'{A}\n{{"id": 1}}\n{{"id": "1"}}', 3, "id '1' is already used on line 2"),
        ('[{"id": "a"},\n{"n": 1}]', 2, "no `id`"),
        ('{"question": "x"}', 1, "neither an item (no `id`)"),
        ('{"id": ""}\n{"id": "b"}', 1, "id of this item is empty"),
        ('[{"id": "  "}]', 1, "id of this item is empty"),
        ('[{"id": null}]', 1, "not null"),
        ('[{"id": true}]', 1, "not true"),
        ('[{"id": 1.5}]', 1, "not a number"),
        ('[{"id": ["a"]}]', 1, "not a list"),
        ("[1, 2]", 1, "must be an object, not a number"),
        (f"{A}\n[1]", 2, "must be an object, not a list"),
        (b'[{"id": "a"},\n{"id": "\xe9"}]', 2, "not UTF-8 (byte 0xe9)"),
        (f"[{A}\n{B}]", 2, "expected `,` or `]`"),
        (f"[{A},\n]", 1, "a comma before `]`"),
        (f"[{A},", 1, "not JSON"),
        (f"[{A}]\n[{B}]", 2, "more text after the array"),
        (f"{A}\n{{oops\n", 2, "not JSON"),
        (f"{A}\n{B} {B}\n", 2, "more text after the object"),
        ('{"data": [\n{"id": "a"},\n{"id": }]}', 3, "not JSON"),
        ("id,question\n1,what", 1, "expected `[` or `{`"),
        ('[{"id": "a", "x": NaN}]', 1, "NaN is not JSON"),
        ('[{"id": "a", "x": 1e999}]', 1, "1e999 is too large"),
        ('[{"id": ' + "9" * 5000 + "}]", 1, "not JSON"),
        ('[{"id": "a", "x": ' + "[" * 100_000, 1, "nested too deeply"),
        ("{}", 1, "neither an item"),
    ],
)
def test_a_broken_file_names_line_and_remedy(tmp_path: Path, content: str | bytes, line: int, says: str) -> None:
    """Each error starts with file:line, says what is wrong and carries a hint."""
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read_items(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert says in str(caught.value)
    assert caught.value.hint


def test_a_broken_first_line_of_json_lines_is_named(tmp_path: Path) -> None:
    """In a .jsonl file the error is on the broken line itself, not where the parser gave up."""
    path = written(tmp_path, '{"id": "a"\n{"id": "b"}\n', "items.jsonl")
    with pytest.raises(DataError, match=r"items\.jsonl:1: not JSON"):
        read_items(path)


@pytest.mark.parametrize("content", ["", " \n\r\n", "\ufeff"])
def test_an_empty_file_is_an_error(tmp_path: Path, content: str) -> None:
    """A file without any item text says that it is empty."""
    with pytest.raises(DataError, match="is empty"):
        read_items(written(tmp_path, content))


def test_utf_16_is_not_utf_8(tmp_path: Path) -> None:
    """What some spreadsheets write is refused with the way out."""
    with pytest.raises(DataError, match="not UTF-8") as caught:
        read_items(written(tmp_path, A.encode("utf-16")))
    assert caught.value.hint == "save the file as UTF-8"


def test_missing_files_and_folders_are_errors(tmp_path: Path) -> None:
    """A path to nothing and a path to a folder each get their own sentence."""
    with pytest.raises(DataError, match="there is no file"):
        read_items(tmp_path / "none.json")
    with pytest.raises(DataError, match="is a folder, not a file"):
        read_items(tmp_path)


def test_a_file_that_memory_would_not_hold_is_not_read(tmp_path: Path) -> None:
    """A gigabyte of nothing, for instance."""
    os.truncate(written(tmp_path, A), 2**30)
    with pytest.raises(DataError, match="has more than 500,000,000 bytes"):
        read_items(tmp_path / "items.json")
