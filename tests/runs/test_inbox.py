"""Orders as files, until somebody has followed or refused them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from skillopt_es.errors import SkillOptError
from skillopt_es.runs.inbox import INBOX, Inbox, leave


def test_orders_wait_in_the_order_in_which_they_were_given(tmp_path: Path) -> None:
    """Until they are followed; then no file is left."""
    inbox = Inbox(tmp_path)
    first = leave(tmp_path, "hint", by="anna", why="seen it", text="dates are ISO")
    second = leave(tmp_path, "budget", by="anna", why="cheap", settings={"budget.max_calls": 7})
    assert list(inbox.waiting()) == [first, second]
    assert inbox.outcome(first.name) is None
    for asked in (first, second):
        inbox.followed(asked.name)
        assert inbox.outcome(asked.name) == ""
    assert not (tmp_path / INBOX).exists()


def test_a_refusal_is_told_once_with_its_reason(tmp_path: Path) -> None:
    """The order does not wait any more."""
    inbox, asked = Inbox(tmp_path), leave(tmp_path, "pin", by="anna", why="x", text="- one")
    inbox.refused(asked.name, "no such line")
    assert not inbox.waiting()
    assert inbox.outcome(asked.name) == "no such line"
    assert inbox.outcome(asked.name) == ""


def test_orders_that_nobody_followed_are_told_in_words(tmp_path: Path) -> None:
    """What waits, and what was refused as long as nobody who asked has been told."""
    inbox = Inbox(tmp_path)
    assert list(inbox.not_followed()) == []
    pin = leave(tmp_path, "pin", by="anna", why="x", text="- one\n\x1b[31m")
    leave(tmp_path, "budget", by="ben", why="x", settings={"budget.max_calls": 7})
    inbox.refused(pin.name, "no such line")
    (tmp_path / INBOX / "nonsense.json").write_text("[]")
    assert list(inbox.not_followed()) == [
        "pin (- one \x1b[31m), ordered by anna, was refused: no such line",
        "budget (max_calls 7), ordered by ben, waits",
        "an order waits",
    ]
    inbox.outcome(pin.name)
    assert not any("refused" in words for words in inbox.not_followed())


def test_a_reason_that_is_being_written_is_not_told_yet(tmp_path: Path) -> None:
    """Only when the order is gone its reason is whole."""
    inbox, asked = Inbox(tmp_path), leave(tmp_path, "pin", by="anna", why="x", text="- one")
    (tmp_path / INBOX / f"{asked.name}.refused").touch()
    assert inbox.outcome(asked.name) is None
    inbox.refused(asked.name, "no such line")
    assert inbox.outcome(asked.name) == "no such line"


def test_a_pause_is_seen_within_a_moment_and_asking_costs_nothing(tmp_path: Path) -> None:
    """Between two looks the folder is not read."""
    now = [0.0]
    inbox = Inbox(tmp_path, lambda: now[0])
    assert not inbox.pausing()
    leave(tmp_path, "pause", by="anna", why="lunch")
    assert not inbox.pausing()
    now[0] = 1.0
    assert inbox.pausing()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "nonsense", '{"order": "fly", "by": "a", "why": "b"}', '{"order": "hint", "by": 1, "why": "b"}',
     '{"order": "hint", "by": "a", "why": "b", "more": 1}', '{"order": "hint"}', "[" * 100_000],
)  # fmt: skip
def test_what_is_no_order_is_refused_and_nobody_stumbles(tmp_path: Path, text: str) -> None:
    """Whatever somebody has put there."""
    (tmp_path / INBOX).mkdir()
    (tmp_path / INBOX / "1-00000000.json").write_text(text)
    inbox = Inbox(tmp_path)
    assert not inbox.waiting()
    assert inbox.outcome("1-00000000") == "this file is not an order"


def test_files_of_other_kinds_are_no_orders(tmp_path: Path) -> None:
    """A link, a pipe, a name that leads elsewhere, one that is far too long."""
    real = json.dumps({"order": "hint", "by": "a", "why": "b", "text": "c"})
    (tmp_path / INBOX).mkdir()
    (tmp_path / "elsewhere.json").write_text(real)
    (tmp_path / INBOX / "2-00000000.json").symlink_to(tmp_path / "elsewhere.json")
    os.mkfifo(tmp_path / INBOX / "3-00000000.json")
    (tmp_path / INBOX / "hint.json").write_text(real)
    (tmp_path / INBOX / "4-00000000.json").write_text(real + " " * 100_000)
    assert not Inbox(tmp_path).waiting()
    assert (tmp_path / "elsewhere.json").read_text() == real


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A file stands where the inbox would be."""
    (tmp_path / INBOX).write_text("")
    with pytest.raises(SkillOptError):
        leave(tmp_path, "hint", by="a", why="b", text="c")
