"""Places: what was made is read back, whatever an item is called; and nobody else writes or reads them."""

from __future__ import annotations

import ast
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.make_golden import GOLDEN

from skillopt_es.events import places
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.codec import decode, encode
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import BASELINE, DEEPEST, FINAL_BEST, FINAL_TEST, FINAL_VAL, STARTS_SQL, Place, evaluated
from skillopt_es.events.values import CallRef, Measured

COUNTS = st.integers(1, 10**6)
WORDS = st.from_regex(r"[a-z][a-z-]{2,9}", fullmatch=True).filter(lambda word: word != "item")
STEPS = st.builds(Place.of_step, COUNTS, COUNTS)
SITES = st.one_of(
    st.sampled_from([BASELINE, FINAL_VAL, FINAL_BEST, FINAL_TEST / "best", evaluated("val")]),
    STEPS.map(lambda at: at.gate) | STEPS.map(lambda at: at.current) | STEPS.map(lambda at: at.in_batch(0)),
    STEPS.map(lambda at: at.merges) | STEPS.map(lambda at: at / "rank"),
    st.builds(lambda epoch: Place.of_epoch(epoch).slow.previous, COUNTS),
    st.builds(lambda epoch: Place.of_epoch(epoch) / "meta", COUNTS),
    st.builds(Place, WORDS),
)


@given(SITES, st.integers(1, 40), st.text(min_size=1), st.integers(1, 40), st.booleans())
def test_a_slot_says_what_it_was_made_of(site: Place, draw: int, item: str, turn: int, again: bool) -> None:
    """Place, draw and item come back; an item's id may look like anything."""
    evaluation = site.drawn(draw)
    slot = evaluation.of_item(item).turn(turn)
    read = Place(str(slot.again if again else slot))
    assert (read.site, read.evaluation, read.repeat, read.item) == (site, evaluation, draw, item)
    assert (read.epoch, read.step, read.stage, read.batch) == (site.epoch, site.step, site.stage, site.batch)
    assert (site.site, site.evaluation, site.item, site.repeat) == (site, site, None, 1)


@given(COUNTS, COUNTS, st.integers(0, 99), st.sampled_from(["failure", "success"]), st.integers(0, 99))
def test_a_step_and_what_is_asked_in_it(epoch: int, step: int, batch: int, kind: str, index: int) -> None:
    """Its number, its batches, its analysts and merges."""
    at = Place.of_step(epoch, step)
    asked = at.in_batch(batch).analyst(kind, index)
    assert (asked.epoch, asked.step, asked.batch, asked.number) == (epoch, step, batch, index)
    assert asked.site == at.in_batch(batch)
    merge = at.merge(kind, 1, index)
    assert (merge.site, merge.step, merge.batch, merge.number) == (at.merges, step, None, index)
    assert at.holds(asked)
    assert at.holds(at)
    assert not at.holds(Place.of_step(epoch, int(f"{step}0")).gate)


@pytest.mark.parametrize(
    ("slot", "site", "epoch", "step"),
    [
        ("", "", None, None),
        ("baseline/i1", "baseline", None, None),
        ("baseline/a/b/c", "baseline", None, None),
        ("e1", "e1", 1, None),
        ("e1/s2", "e1/s2", 1, 2),
        ("e1/s2/b0/i1", "e1/s2/b0", 1, 2),
        ("e1/s2/b0/e9/s9/gate", "e1/s2/b0", 1, 2),
        ("e1/s2/b0/i1/turn-2/again", "e1/s2/b0", 1, 2),
        ("e1/s2/b0/failure-0", "e1/s2/b0", 1, 2),
        ("e1/s2/merge/failure-1-0", "e1/s2/merge", 1, 2),
        ("e1/s2/merge/final/again", "e1/s2/merge", 1, 2),
        ("e1/s2/rank", "e1/s2/rank", 1, 2),
        ("e10/s123/gate/i/1", "e10/s123/gate", 10, 123),
        ("e1/s2/current/best/repeat-2", "e1/s2/current", 1, 2),
        ("e2/slow", "e2/slow", 2, None),
        ("e2/slow/previous/s3/x", "e2/slow/previous", 2, None),
        ("e2/slow/advice/again", "e2/slow/advice", 2, None),
        ("e2/meta", "e2/meta", 2, None),
        ("final/val/i1", "final/val", None, None),
        ("final/test/best/i/1", "final/test/best", None, None),
        ("eval/val/i1", "eval/val", None, None),
        ("eval/test/repeat-2/3", "eval/test", None, None),
        ("search/round-3/gate", "search", None, None),
        ("e1st/s2/x", "e1st", None, None),
        ("doctor", "doctor", None, None),
    ],
)
def test_a_slot_is_read_from_the_left(slot: str, site: str, epoch: int | None, step: int | None) -> None:
    """An item's id may look like anything."""
    place = Place(slot)
    assert (place.site, place.epoch, place.step) == (site, epoch, step)


def test_a_place_is_the_text_in_the_log() -> None:
    """As a key, on the way into an event, and out of it."""
    place = Place.of_step(1, 2).gate.drawn(2)
    assert {place: 1}["e1/s2/gate/repeat-2"] == 1
    slot = place.of_item("a/b%2F")
    assert slot == "e1/s2/gate/repeat-2/item/a%2Fb%252F"
    event = RolloutCompleted(
        place=place, purpose="selection", item="a", skill="0" * 64, outcome=Measured(1.0, 1.0), task_type="", turns=1,
        calls=(CallRef(slot, "0" * 64),),
    )  # fmt: skip
    written = encode(event)
    assert decode(written.type, written.version, written.data, lambda _: "") == event


@pytest.mark.parametrize(
    "slot", ["", "a", "a/b", "a/b/c", "a/b/c/d", "a/b/c/d/e/f", "/a//b/c", "e1/s2/gate/repeat-2/item/x"]
)
def test_a_database_and_we_agree_on_where_a_slot_starts(slot: str) -> None:
    """Calls are added up by it in SQL."""
    with closing(sqlite3.connect(":memory:")) as database:
        (start,) = database.execute(f"select ({STARTS_SQL}) from (select ? as slot)", (slot,)).fetchone()
    assert start == Place(slot).starts(DEEPEST)


@pytest.mark.parametrize("part", ["", "a/b", "item"])
def test_a_part_that_would_be_read_as_something_else_is_refused(part: str) -> None:
    """No part is empty, has a slash or is the word that an item's id follows."""
    with pytest.raises(ValueError, match="cannot be a part of a place"):
        Place("search") / part


def test_the_draws_of_an_evaluation_have_a_name_of_their_own() -> None:
    """And answers can be graded again."""
    first = evaluated("val")
    second = first.drawn(2)
    assert (first.drawn(1), second, second.repeat, second.name) == ("eval/val", "eval/val/repeat-2", 2, "val")
    assert second.graded(3) == "eval/val/repeat-2/3"
    assert second.graded(3).is_grading_of(second)
    assert not second.is_grading_of(first)
    assert second.graded(3).repeat == 2


OWN = re.compile(r"(/told|/edit-\d+|/together|/gate|/should|/should-not|/none|/\d+)?")
"""What an algorithm has below a stage: a text drawn once more, a candidate of a screen, of a trigger set, of parts."""


@pytest.mark.parametrize("release", sorted(path.name for path in GOLDEN.iterdir() if path.is_dir()))
def test_the_places_of_released_logs_are_made_of_what_they_say(release: str, tmp_path: Path) -> None:
    """Each result's place from its step, stage and draw; the slots of its calls from place and item."""
    with EventLog.open(shutil.copytree(GOLDEN / release / "run", tmp_path / "run")) as log:
        rows = [each.event for each in log.read() if isinstance(each.event, RolloutCompleted)]
        slots = [Place(row.call.slot) for row in Journal(log.reader).read()]
    results = {Place(row.place).of_item(row.item) for row in rows if row.calls}  # what was imported has no calls
    attempts = {slot.evaluation.of_item(str(slot.item)) for slot in slots if slot.item is not None}
    assert attempts == results
    assert {slot for slot in slots if slot.item is not None} >= results
    for place in {*slots, *(Place(row.place) for row in rows)}:
        whole = Place.of_epoch(place.epoch) if place.epoch is not None else Place("")
        whole = whole if place.step is None or place.epoch is None else Place.of_step(place.epoch, place.step)
        made = Place(f"{whole}/{place.stage}".removeprefix("/"))
        assert made == place.site
        if place.item is not None:
            first = Place(place.evaluation.removesuffix(f"/repeat-{place.repeat}"))
            assert OWN.fullmatch(first.removeprefix(made))
            assert first.drawn(place.repeat).of_item(place.item).holds(place)
    assert all(row.purpose == "train" for row in rows if Place(row.place).batch is not None)
    assert all(Place(row.place).step is not None for row in rows if row.purpose == "train")


# --- nobody else writes or reads places ----------------------------------------------------------------------------

ROOT = Path(places.__file__).parents[1]
FOLDERS = ("events", "projections", "skillopt_es", "adapters")
COUNTED = r"(e|s|b|d|draw-|turn-)\{\}"
STAGES = "gate|current|standing|previous|told|slow|merge|meta|item|again"
WRITES = re.compile(rf"{COUNTED}(/|$)|.*/{COUNTED}(/|$)|(baseline|final|eval|doctor)/|\{{\}}/({STAGES})(/|$)")
READS = {"split", "rsplit", "partition", "rpartition", "startswith", "endswith", "removeprefix", "removesuffix"}
PIECES = re.compile(r"(final|eval|doctor)/(\w+/?)?|/item/")


def is_place(node: ast.expr) -> bool:
    """Whether an expression is called a place or a slot."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.removeprefix("_").rpartition("_")[2] in {"place", "slot"}


def composes(node: ast.AST) -> bool:
    """Whether a place is put together out of text here."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return is_place(node.left) and ast.unparse(node.right).startswith(("'/", "f'/"))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and PIECES.fullmatch(node.value) is not None
    if not isinstance(node, ast.JoinedStr):
        return False
    text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    first = node.values[0] if node.values else None
    return bool(WRITES.match(text)) or (
        isinstance(first, ast.FormattedValue) and is_place(first.value) and text.startswith("{}/")
    )


def takes_apart(node: ast.AST) -> bool:
    """Whether a place is looked into as text here."""
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[0], ast.In) and isinstance(node.left, ast.Constant) and is_place(node.comparators[0])
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in READS and is_place(called.value)


def elsewhere(source: str) -> Iterator[int]:
    """The lines of a module that write or read a place."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.expr) and (composes(node) or takes_apart(node)):
            yield node.lineno


def test_a_call_that_an_agent_makes_itself_is_told_from_its_attempt() -> None:
    """Also where an item is called like one."""
    attempt = Place("e1/s2/gate").of_item("own-0123456789abcdef")
    assert not attempt.is_own_call
    assert attempt.attempt is None
    for number in (1, 2):
        own = attempt.own_call("fedcba9876543210", number)
        assert own.is_own_call
        assert own.attempt == attempt
        assert (own.item, own.site, own.evaluation) == ("own-0123456789abcdef", "e1/s2/gate", "e1/s2/gate")
    assert not attempt.turn(2).is_own_call


def test_nobody_else_writes_or_reads_a_place() -> None:
    """What a place looks like is known to one module."""
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py") if file != Path(places.__file__)]
    assert len(files) > 300
    found = [f"{file.relative_to(ROOT)}:{line}" for file in files for line in elsewhere(file.read_text("utf-8"))]
    assert found == [], "use events/places.py"


@pytest.mark.parametrize(
    "source",
    [
        'f"e{epoch}/s{step}"',
        'f"e{epoch}"',
        'f"{at}/b{index}"',
        'f"{at}/gate"',
        'f"{place}/{item}"',
        'f"{event.place}/"',
        'f"final/test/{name}"',
        'place + "/reported"',
        'rows["final/val"]',
        'event.place.split("/")',
        'slot.partition("/item/")',
        "call.slot.startswith(first)",
        '"/slow/" in evidence.place',
    ],
)
def test_what_writes_or_reads_a_place_is_seen(source: str) -> None:
    """The test above would find each of these."""
    assert [*elsewhere(source)]
