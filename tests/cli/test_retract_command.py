"""`retract`: what it prints and refuses; and that every command that reads goes on after an erasure."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.in_process import Cli, called

from skillopt_es.events.writer import RunWriter

WORDS = "Contact for the order from Lyon: Ms Ruth Weiss"
"""What only the item name-02 of the demo says."""


@pytest.fixture
def runs(demo_run: Path, tmp_path: Path) -> Path:
    """A directory with a copy of the demo's run."""
    shutil.copytree(demo_run, tmp_path / "runs" / "demo")
    return tmp_path / "runs"


@pytest.fixture
def cli(runs: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process, over those runs."""
    run = called(capsys)
    return lambda *words: run(*words, "--dir", runs)


def test_it_lists_what_goes_back_to_an_item(cli: Cli) -> None:
    """Without touching anything."""
    done = cli("retract", "demo", "--item", "date-03")
    assert done.code == 0
    assert "patches of analysts that saw it: 3" in done.out
    assert "e1/s1/merge/failure-1-0#1: taken" in done.out
    assert "lines of the best skill: 2" in done.out
    found = cli("retract", "demo", "--item", "date-03", "--json").json
    assert found["accepted_steps"] == [1]
    assert {each["kind"] for each in found["derived"]} >= {"result", "patch", "merge", "proposal", "candidate"}
    assert [line["number"] for line in found["lines"] if line["which"] == "best"] == [7, 9]


def test_one_trajectory_is_named_by_its_event_or_its_slot(cli: Cli) -> None:
    """A digest names it where no other attempt at the item left the same; else it says which there are."""
    by_event = cli("retract", "demo", "--trajectory", "52", "--json").json
    assert (by_event["item"], by_event["place"]) == ("date-03", "e1/s1/b0")
    assert cli("retract", "demo", "--trajectory", "e1/s1/b0/item/date-03", "--json").json == by_event
    digest = cli("show", "demo", "52", "--json").json["data"]["trajectory"]
    several = cli("retract", "demo", "--trajectory", digest[:16])
    assert several.code == 2
    assert f"{digest[:16]} belongs to 3 results of demo: events 52, " in several.err


@pytest.mark.slow
def test_a_fork_without_the_item_goes_on(cli: Cli) -> None:
    """And every command says what it is."""
    made = cli(
        "retract", "demo", "--item", "name-02", "--apply", "--reason", "wrong label", "--by", "me", "--json"
    ).json
    assert (made["fork"]["run"], made["fork"]["steps"], made["fork"]["steps_to_do_again"]) == ("demo-retracted", 2, 10)
    assert cli("resume", "demo-retracted", "--quiet").code == 0
    assert cli("replay", "demo-retracted", "--check").code == 0
    assert cli("verify", "demo-retracted").code == 0
    assert "without     name-02: wrong label" in cli("status", "demo-retracted").out
    assert "without name-02" in cli("lineage", "demo-retracted").out
    assert cli("blame", "demo-retracted").code == 0
    assert "retracted: name-02, by me: wrong label" in cli("explain", "demo-retracted", "--item", "name-02").out
    assert cli("explain", "demo-retracted", "step", "3").code == 0
    assert "by me: wrong label" in cli("log", "demo-retracted", "--type", "EvidenceRetracted").out
    assert cli("retract", "demo-retracted", "--item", "name-02", "--json").json["derived"] == []


READING = (
    ("show", "175"), ("show", "e1/s3/b0/item/name-02"), ("show", "e1/s3/b0/success-0"),
    ("explain", "--item", "name-02"), ("explain", "step", "3"), ("explain", "175"), ("explain", "epoch", "2"),
    ("why-not",), ("blame",), ("lineage",),
    ("log",), ("log", "--type", "TextsErased"), ("status",), ("usage",), ("regate",), ("bisect", "--item", "name-02"),
    ("diff", "step", "2", "step", "3"), ("replay", "--until", "step", "3"), ("replay", "--check"), ("compare", "demo"),
    ("retract", "--item", "name-02"),
)  # fmt: skip


@pytest.mark.slow
def test_every_command_reads_on_after_an_erasure(cli: Cli, runs: Path, tmp_path: Path) -> None:
    """None fails, and none shows what is gone."""
    assert WORDS in cli("show", "demo", "e1/s3/b0/item/name-02").out
    done = cli("retract", "demo", "--item", "name-02", "--erase", "--reason", "asked for by its owner")
    assert "others that say parts of it" in done.out
    for name, *words in READING:
        for more in ((), ("--json",)):
            run = () if name == "compare" else ("demo",)
            shown = cli(name, *run, *words, *more)
            assert shown.code == 0, (name, shown.err)
            assert WORDS not in shown.out
    assert "(erased on 20" in cli("show", "demo", "175").out
    assert "asked for by its owner" in cli("verify", "demo").out
    assert cli("verify", "demo", "--json").json["erased"][0]["items"] == ["name-02"]
    for kind, out in (("jsonl", "events.jsonl"), ("sqlite", "run.db"), ("skillopt", "folder/"), ("skill", "best/")):
        assert cli("export", "demo", str(tmp_path / out), "--format", kind).code == 0, kind
    assert not any(WORDS.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.slow
def test_both_at_once_erase_from_the_run_and_the_fork(cli: Cli, runs: Path) -> None:
    """And say so of each."""
    done = cli("retract", "demo", "--item", "name-02", "--apply", "--erase", "--reason", "private", "--json").json
    assert [each["run"] for each in done["erased"]] == ["demo", "demo-retracted"]
    assert all(each["event"] for each in done["erased"])
    assert cli("resume", "demo-retracted", "--quiet").code == 0
    for run in ("demo", "demo-retracted"):
        assert cli("verify", run).code == 0
        assert cli("replay", run, "--check").code == 0


def test_names_in_a_file_are_looked_for_too(cli: Cli, tmp_path: Path) -> None:
    """They are in no argument list."""
    names = tmp_path / "names.txt"
    names.write_text("Lyon\n\n")
    done = cli("retract", "demo", "--item", "name-02", "--erase", "--also", str(names), "--reason", "private", "--json")
    assert done.json["erased"][0]["other_texts"] > 50
    assert "Lyon" not in cli("show", "demo", "e1/s1/b0/failure-0").out


@pytest.mark.parametrize(
    ("words", "says", "code"),
    [
        (["demo"], "--item ID or --trajectory T", 2),
        (["demo", "--item", "date-03", "--trajectory", "52"], "--item ID or --trajectory T", 2),
        (["demo", "--item", "date-033"], "did you mean date-03", 2),
        (["demo", "--trajectory", "999999"], "no trajectory 999999", 2),
        (["demo", "--trajectory", "1"], "no trajectory 1", 2),
        (["demo", "--trajectory", "e9/s9/b0/item/date-03"], "no trajectory", 2),
        (["nope", "--item", "date-03"], "no run nope", 2),
        (["demo", "--item", "date-03", "--apply"], "--reason", 2),
        (["demo", "--item", "date-03", "--erase"], "--reason", 2),
        (["demo", "--item", "date-03", "--name", "x"], "--apply", 2),
        (["demo", "--item", "date-03", "--also", "-"], "--erase", 2),
        (["demo", "--item", "date-03", "--apply", "--reason", "r", "--name", "demo"], "already", 2),
        (["demo", "--trajectory", "40", "--apply", "--reason", "r"], "validation", 2),
    ],
)
def test_bad_input_is_one_sentence(cli: Cli, words: list[str], says: str, code: int) -> None:
    """With its exit code, also for programs."""
    done = cli("retract", *words)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert cli("retract", *words, "--json").json["error"]["exit_code"] == code


def test_a_run_at_work_can_be_asked_but_not_erased_from(cli: Cli, runs: Path) -> None:
    """Its writer is named."""
    with RunWriter.open(runs / "demo", now=lambda: datetime.now(UTC)):
        assert cli("retract", "demo", "--item", "name-02").code == 0
        done = cli("retract", "demo", "--item", "name-02", "--erase", "--reason", "r")
    assert done.code == 1
    assert "has been writing" in done.err


def test_a_damaged_run_shows_what_can_be_read_and_is_not_touched(cli: Cli, runs: Path) -> None:
    """Neither forked nor erased from."""
    head = runs / "demo" / "head.json"
    said = json.loads(head.read_text())
    head.write_text(json.dumps({**said, "seq": said["seq"] + 5}))
    before = (runs / "demo" / "log.db").read_bytes()
    done = cli("retract", "demo", "--item", "name-02", "--erase", "--apply", "--reason", "r")
    assert done.code == 1
    assert "results: 7" in done.out
    assert "nothing was done" in done.err
    assert (runs / "demo" / "log.db").read_bytes() == before
    assert [path.name for path in runs.iterdir()] == ["demo"]
