"""What is kept to save time is never believed where it may be wrong, and can be deleted at any time."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from support.audited import trained
from support.event_runs import forge
from support.scripted import NOON
from support.tamper import cut_off

from skillopt_es.events.catalog import RunResumed
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import digest_of
from skillopt_es.events.verify import verify
from skillopt_es.events.writer import RunWriter
from skillopt_es.projections.usage import usage_of
from skillopt_es.runs import overview as overview_module
from skillopt_es.runs.kept import keep_sums, kept_sums, with_later
from skillopt_es.runs.overview import Overview, overviews, spent, with_kept

Change = Callable[[Path], object]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained("plain", tmp_path_factory.mktemp("plain"))


@pytest.fixture
def run(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run at rest whose sums are kept although it is short."""
    monkeypatch.setattr(overview_module, "WORTH_IT", 1)
    return Path(shutil.copytree(whole, tmp_path / "runs" / "run", ignore=shutil.ignore_patterns("log.db-*")))


def journal_length(run: Path) -> int:
    with EventLog.open(run) as log:
        return len(Journal(log.reader))


def by_each_call(run: Path) -> object:
    """The usage, from every call itself."""
    with EventLog.open(run) as log:
        return usage_of(Journal(log.reader).read())


def test_kept_sums_are_those_of_the_calls(run: Path) -> None:
    """The first time they are added up, the second time they are there."""
    fresh = spent(run).usage
    assert (run / "usage.json").exists()
    assert fresh == spent(run).usage == by_each_call(run)


def of_other_calls(run: Path) -> None:
    kept = (run / "usage.json").read_text().splitlines()[0]
    text = kept.replace('"calls": ', '"calls": 1')
    (run / "usage.json").write_text(f"{text}\n{digest_of(text.encode())}\n")


def of_another_format(run: Path) -> None:
    text = (run / "usage.json").read_text().splitlines()[0].replace('"format": 1', '"format": 0')
    (run / "usage.json").write_text(f"{text}\n{digest_of(text.encode())}\n")


def odd_rows(run: Path) -> None:
    text = (run / "usage.json").read_text().splitlines()[0].replace('"rollout"', "7")
    (run / "usage.json").write_text(f"{text}\n{digest_of(text.encode())}\n")


@pytest.mark.parametrize(
    "change",
    [
        lambda run: (run / "usage.json").unlink(),
        lambda run: (run / "usage.json").write_bytes(b""),
        lambda run: (run / "usage.json").write_bytes(b"[]\n\n\xff"),
        lambda run: (run / "usage.json").write_bytes((run / "usage.json").read_bytes()[:-90]),
        lambda run: (run / "usage.json").write_text((run / "usage.json").read_text().replace(" 1", " 2", 1)),
        of_other_calls,
        of_another_format,
        odd_rows,
    ],
    ids=["deleted", "empty", "garbled", "cut", "changed", "of other calls", "of another format", "odd rows"],
)
def test_sums_that_are_not_what_was_kept_are_not_used(run: Path, change: Change) -> None:
    """Deleted, empty, cut, changed, of another journal or of another version: all is added up anew."""
    spent(run)
    change(run)
    assert spent(run).usage == by_each_call(run)


def test_forged_sums_are_named(run: Path) -> None:
    """What looks right is believed to save time, but not by who checks; honest ones are no problem."""
    honest = spent(run).usage
    with EventLog.open(run) as log:
        kept = kept_sums(run, log, 0)
        assert with_kept(verify(run), run).ok
        keep_sums(run, evolve(kept, sums=tuple(evolve(each, calls=1) for each in kept.sums)))
    assert spent(run).usage != honest
    report = with_kept(verify(run), run)
    assert (report.ok, [problem.where for problem in report.problems]) == (False, ["usage.json"])
    (run / "usage.json").unlink()
    assert with_kept(verify(run), run).ok


def test_a_forged_overview_is_named(run: Path) -> None:
    """The same for what a list of runs shows."""
    [first] = overviews(run.parent)
    assert with_kept(verify(run), run).ok
    text = (run / "overview.json").read_text().splitlines()[0].replace('"calls": ', '"calls": 7')
    (run / "overview.json").write_text(f"{text}\n{digest_of(text.encode())}\n")
    assert overviews(run.parent) != [first]
    report = with_kept(verify(run), run)
    assert (report.ok, [problem.where for problem in report.problems]) == (False, ["overview.json"])


def test_sums_of_a_shorter_journal_are_gone_on_with(run: Path, tmp_path: Path) -> None:
    """The calls after those that were added up are added; of a log that lost some nothing is believed."""
    half = journal_length(run) // 2
    with EventLog.open(run) as log:
        kept = with_later(kept_sums(run, log, 0), log, half)
        keep_sums(run, kept)
        assert kept_sums(run, log, 0) == kept
    assert spent(run).usage == by_each_call(run)
    other = cut_off(run, tmp_path / "other", 20)
    shutil.copy(run / "usage.json", other / "usage.json")
    with EventLog.open(other) as log:
        assert kept_sums(other, log, 0).calls == 0


def test_what_was_kept_is_what_was_recorded(run: Path) -> None:
    """A call that is changed afterwards changes no sum; one that is changed before is not added."""
    before = spent(run).usage
    forge(run, "update calls set output_tokens = 9999 where n = 5")
    assert spent(run).usage == before


def test_an_overview_is_read_again_when_its_run_has_changed(run: Path) -> None:
    """Also when the file has the same length."""
    [first] = overviews(run.parent)
    assert overviews(run.parent) == [first]
    assert isinstance(first, Overview)
    with RunWriter.open(run, now=lambda: NOON) as writer:
        asyncio.run(writer.append([RunResumed(software="x")], expected=first.events))
        [during] = overviews(run.parent)
        assert isinstance(during, Overview)
        assert (during.events, during.status) == (first.events + 1, "running")
    [after] = overviews(run.parent)
    assert after == evolve(during, status="stopped")


@pytest.mark.parametrize(
    "content",
    [None, b"", b"{}", b"[]\n", b'{"format": [1, "x"]}\n', b"\xff"],
    ids=["changed", "empty", "no lines", "a list", "no digest", "no text"],
)
def test_an_overview_that_is_not_what_was_kept_is_not_used(run: Path, content: bytes | None) -> None:
    """It is rebuilt."""
    [first] = overviews(run.parent)
    file = run / "overview.json"
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"completed", b"abandoned") if content is None else content)
    assert overviews(run.parent) == [first]
    assert file.read_bytes() == whole


def test_a_kept_overview_goes_with_a_copy(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log is not read."""
    [first] = overviews(run.parent)
    assert isinstance(first, Overview)
    shutil.copytree(run, run.parent.parent / "elsewhere" / "copy")
    monkeypatch.setattr(overview_module, "overview", None)
    assert overviews(run.parent.parent / "elsewhere") == [
        evolve(first, folder=run.parent.parent / "elsewhere" / "copy")
    ]


def test_a_log_that_was_changed_since_is_read(run: Path) -> None:
    """Also in place, with nothing else than its time to tell."""
    overviews(run.parent)
    forge(run, "update events set data = replace(data, 'e', 'E') where type = 'RunStarted'")
    [found] = overviews(run.parent)
    assert not isinstance(found, Overview) or found.problem


def test_nothing_is_kept_of_a_run_that_was_broken_off(run: Path) -> None:
    """What its writer would have noted last is not there."""
    (run / "tail").write_bytes(b"")
    overviews(run.parent)
    assert not (run / "overview.json").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_where_nothing_can_be_kept_all_is_read(run: Path) -> None:
    """A folder that cannot be written costs time only."""
    for folder in (run, run.parent):
        folder.chmod(0o555)
    assert spent(run).usage == by_each_call(run)
    assert len(overviews(run.parent)) == 1
