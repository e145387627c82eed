"""The pages of a site: each of them reads, for runs of every kind, and nothing leads out of the directory."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pytest
from attrs import asdict
from support.asking import Asking

from skillopt_es.engine.in_flight import Left
from skillopt_es.events.lock import RunLock
from skillopt_es.events.log import EventLog
from skillopt_es.runs.kept import OVERVIEW_FILE
from skillopt_es.runs.now import NOW_FILE, Now
from skillopt_es.sessions.forking import make_fork
from skillopt_es.ui import app

GOLDEN = Path(__file__).parent.parent / "golden"
PAGES = ("", "/scores", "/items", "/skill", "/cost", "/config", "/events", "/event/1", "/step/1", "/epoch/1")


@pytest.mark.parametrize("page", PAGES)
def test_every_page_of_a_run_reads(asking: Asking, page: str) -> None:
    """Without a script."""
    answer = asking.get(f"/run/demo{page}")
    assert answer.status_code == 200
    assert "<main" in answer.text
    assert 'aria-label="Pages of demo"' in answer.text


def test_the_list_has_each_run_with_its_score(asking: Asking) -> None:
    """And says where it stands."""
    text = asking.get("/").text
    assert 'href="/run/demo"' in text
    assert "completed" in text
    assert "1.0000" in text


@pytest.mark.parametrize(
    "path",
    [
        "/run/..%2f..%2fetc", "/run/%2fetc", "/run/demo%00", "/run/nope", "/run/demo/step/99",
        "/run/demo/epoch/99", "/run/demo/event/0", "/run/demo/event/99999999999999999999", "/run/demo/item?item=nope",
        "/run/demo/item", "/static/..%2fsafety.py", "/static/safety.py", "/nothing",
    ],
)  # fmt: skip
def test_what_is_not_there_is_said(asking: Asking, path: str) -> None:
    """No address leads anywhere else."""
    assert asking.get(path).status_code == 404


def test_an_item_shows_two_attempts_beside_each_other(asking: Asking) -> None:
    """With what the agent said and what the grader made of it."""
    text = asking.get("/run/demo/items").text
    item = text.partition("/item?item=")[2].partition('"')[0]
    page = asking.get(f"/run/demo/item?item={item}").text
    attempts = [part.partition('"')[0] for part in page.split('name="show" value="')[1:]]
    assert len(attempts) > 2
    beside = asking.get(f"/run/demo/item?item={item}&show={attempts[0]}&show={attempts[1]}").text
    assert beside.count('class="attempt"') == 2
    assert "<h4>agent</h4>" in beside


def test_two_versions_of_the_skill_are_compared(asking: Asking) -> None:
    """The first and the best one, unless others are chosen."""
    page = asking.get("/run/demo/skill").text
    before, after = (part.partition('"')[0] for part in page.split('<option value="')[1:3])
    changed = asking.get(f"/run/demo/skill?from={before}&to={after}").text
    assert "What changed:" in changed
    assert asking.get("/run/demo/skill?from=x&to=y").status_code == 200


def test_a_damaged_run_says_so_and_shows_the_rest(asking: Asking, demo_run: Path, tmp_path: Path) -> None:
    """One that cannot be read at all is still listed."""
    shutil.copytree(demo_run, tmp_path / "cut")
    shutil.copytree(demo_run, tmp_path / "gone")
    with (tmp_path / "cut" / "log.db").open("r+b") as log:
        log.truncate((tmp_path / "cut" / "log.db").stat().st_size - 8192)
    (tmp_path / "gone" / "log.db").write_bytes(b"no log at all")
    there = Asking(directory=tmp_path)
    listed = there.get("/").text
    assert "damaged" in listed
    assert "unreadable" in listed
    assert there.get("/run/cut").status_code == 200
    assert 'role="alert"' in there.get("/run/cut").text
    assert there.get("/run/gone").status_code == 400


def test_the_first_screen_says_whether_the_skill_is_better_and_how_to_take_it(asking: Asking) -> None:
    """By the test items; and the list has both scores."""
    front = asking.get("/run/demo").text
    said = front.partition('class="answer good"')[2].partition("</div>")[0]
    assert "The best skill is better than the first one." in said
    assert "more than noise" in said
    assert "skillopt-es export demo SKILL.md --dir " in said
    assert front.index('class="answer') < front.index('class="tiles"') < front.index('id="curve"')
    assert re.search(r"test, first → best</dt><dd><b>0\.\d+ → 0\.\d+</b><small>95 %: 0\.\d+ to 0\.\d+, 40 items", front)
    assert re.search(r"0\.\d{4} → 0\.\d{4}", asking.get("/").text)


def test_a_damaged_run_is_not_offered_what_it_would_refuse(demo_run: Path, tmp_path: Path) -> None:
    """A fork from before the damage alone."""
    shutil.copytree(demo_run, tmp_path / "cut")
    with (tmp_path / "cut" / "log.db").open("r+b") as log:
        log.truncate((tmp_path / "cut" / "log.db").stat().st_size - 8192)
    front = Asking(directory=tmp_path).get("/run/cut").text
    assert "A damaged log is not written to" in front
    assert 'action="/run/cut/fork"' in front
    assert 'action="/run/cut/resume"' not in front
    assert 'action="/run/cut/steer"' not in front


def test_a_run_says_who_writes_it_and_what_is_left_of_its_budget(demo_run: Path, tmp_path: Path) -> None:
    """As long as somebody does."""
    shutil.copytree(demo_run, tmp_path / "demo")
    left = Left(limit="calls", left="87", most="100", aside="4")
    (tmp_path / "demo" / NOW_FILE).write_text(json.dumps(asdict(Now(stage="rank", budget=(left,)))))
    there, writer = Asking(directory=tmp_path), f"process {os.getpid()} on "
    lock = RunLock(tmp_path / "demo", start="2026-01-01T00:00:00Z")
    try:
        assert writer in there.get("/").text
        page = there.get("/run/demo").text
        assert f"Written by {writer}" in page
        assert '<b data-now="left-calls">87</b><small>of 100; 4 set aside for open calls</small>' in page
    finally:
        lock.release()
    assert writer not in there.get("/").text + there.get("/run/demo").text


def test_every_page_of_an_imported_run_reads(tmp_path: Path) -> None:
    """And it says where it comes from; what an import does not know is left out."""
    shutil.copytree(GOLDEN / "0.1.0-imported" / "run", tmp_path / "imported")
    there = Asking(directory=tmp_path)
    front = there.get("/run/imported").text
    assert "Imported from results of" in front
    assert set(re.findall(r'href="/run/([^/"?]*)', front)) == {"imported"}  # its log has another name
    for page in (*PAGES, "/refused"):
        answer = there.get(f"/run/imported{page}")
        assert answer.status_code == 200 or (page == "/epoch/1" and "nothing is recorded" in answer.text), page


def test_a_run_with_a_changed_event_says_which_one_and_shows_what_is_whole(demo_run: Path, tmp_path: Path) -> None:
    """No page of it fails without a word."""
    shutil.copytree(demo_run, tmp_path / "changed")
    with closing(sqlite3.connect(tmp_path / "changed" / "log.db")) as log, log:
        for [name] in log.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            log.execute(f"drop trigger {name}")
        gates = log.execute("select seq from events where type = 'CandidateGated' order by seq").fetchall()
        [seq] = gates[2]
        log.execute("update events set data = data || ' ' where seq = ?", (seq,))
    (tmp_path / "changed" / OVERVIEW_FILE).unlink()
    there = Asking(directory=tmp_path)
    listed = there.get("/").text
    assert f"event {seq} (" in listed
    assert "unreadable" not in listed
    assert '<span class="badge bad">damaged</span>' in listed
    assert "2/" in listed  # what stands before the damage
    assert "changed" in there.get("/?state=damaged").text.partition("<tbody>")[2]
    front = there.get("/run/changed").text
    assert f"event {seq} (" in front.partition('role="alert"')[2].partition("</div>")[0]
    assert "/run/changed/step/1" in front
    for page in (*PAGES, "/refused"):
        answer = there.get(f"/run/changed{page}")
        assert answer.status_code == 200 or f"event {seq} (" in answer.text, page


def test_a_fork_leads_to_its_parent_and_every_page_of_it_reads(demo_run: Path, tmp_path: Path) -> None:
    """What came along is its own."""
    shutil.copytree(demo_run, tmp_path / "demo")
    with EventLog.open(demo_run) as log:
        seq = next(each.seq for each in log.read(types=("CandidateGated",)))
    make_fork(tmp_path / "demo", seq, tmp_path / "fork", now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    there = Asking(directory=tmp_path)
    assert re.search(rf'A fork of <a [^>]*href="/run/demo">demo</a> after event {seq}\.', there.get("/run/fork").text)
    assert all(f'href="/run/{name}"' in there.get("/").text for name in ("demo", "fork"))
    for page in (*PAGES, "/refused"):
        answer = there.get(f"/run/fork{page}")
        assert answer.status_code == 200 or (page == "/epoch/1" and "nothing is recorded" in answer.text), page


def test_an_empty_directory_says_how_to_begin(tmp_path: Path) -> None:
    """Also one that is not there yet."""
    assert "There is no run here yet" in Asking(directory=tmp_path / "none").get("/").text


def fails(*_: object) -> NoReturn:
    """Takes the place of what a page calls."""
    raise KeyError("<b>struck</b>")


def test_a_page_that_fails_keeps_its_frame_and_the_way_to_the_others(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what failed; the policy holds for it, too."""
    monkeypatch.setattr(app, "items_page", fails)
    answer = asking.get("/run/demo/items")
    assert answer.status_code == 500
    assert "This page could not be made" in answer.text
    assert "KeyError: &#39;&lt;b&gt;struck" in answer.text
    assert 'aria-label="Pages of demo"' in answer.text
    for path in ("/run/demo", "/run/demo/skill", "/"):
        assert f'href="{path}"' in answer.text
        assert asking.get(path).status_code == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert asking.get("/run/demo/items", signed_in=False).status_code == 401


def test_a_list_that_fails_is_a_page(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no run is asked for."""
    monkeypatch.setattr(app, "runs_list", fails)
    answer = asking.get("/")
    assert answer.status_code == 500
    assert '<header class="bar"' in answer.text


def test_a_method_that_a_page_does_not_take_is_a_page(asking: Asking) -> None:
    """With the way back."""
    answer = asking.post("/run/demo", {})
    assert answer.status_code == 405
    assert "All runs" in answer.text
