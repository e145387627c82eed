"""What the page does: nothing that the command would not do, and only for those who may."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from starlette.requests import Request
from support.asking import Asking, Rules
from support.scripted import ScriptedWorld, config

from skillopt_es.runs.inbox import Inbox
from skillopt_es.sessions.session import resume, start
from skillopt_es.ui import acting, config_files, starting
from skillopt_es.ui.acting import Acts
from skillopt_es.ui.safety import Refused
from skillopt_es.ui.site import Site
from skillopt_es.ui.start_page import keys, settings_of, start_page
from skillopt_es.ui.starting import Starter


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asking:
    """Somebody who asks over a directory with a run that was stopped early, from an empty folder."""
    calls = iter(range(1000))
    session = ScriptedWorld().session(stopping=lambda: next(calls) > 20)
    with pytest.raises(Exception, match="stopped as asked"):
        asyncio.run(start(config(tmp_path), tmp_path / "runs" / "run", session))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return Asking(directory=tmp_path / "runs")


def test_an_order_waits_in_the_inbox_with_who_and_why(there: Asking) -> None:
    """And the page says what becomes of it."""
    fields = {"order": "hint", "text": "ferns are plants", "why": "seen it", "by": "anna"}
    answer = there.post("/run/run/steer", fields)
    assert answer.status_code == 303
    said = there.get(answer.headers["location"].partition("#")[0]).text
    assert "hint: left. It is followed when the run goes on" in said
    # The page asks for itself again at each event, and the answer takes the place of the old parts.
    again = there.get(answer.headers["location"].partition("#")[0]).text
    assert "hint: left." in again
    assert "hint: left." not in there.get("/run/run").text
    [asked] = Inbox(there.directory / "run").waiting()
    assert (asked.order, asked.text, asked.why, asked.by) == ("hint", "ferns are plants", "seen it", "anna")


def test_an_item_is_left_out_from_its_own_page(there: Asking) -> None:
    """Only where that can be ordered, and only by those who may."""
    page = there.get("/run/run/item?item=v3").text
    assert "Leave this item out" in page
    read_only = Asking(directory=there.directory, rules=Rules(host="127.0.0.1", port=8765, read_only=True))
    assert "Leave this item out" not in read_only.get("/run/run/item?item=v3").text
    answer = there.post("/run/run/steer", {"order": "retract", "text": "v3", "why": "wrong label"})
    assert answer.status_code == 303
    assert [asked.text for asked in Inbox(there.directory / "run").waiting()] == ["v3"]
    refused = there.post("/run/run/steer", {"order": "retract", "text": "<b>v99</b>", "why": "x"})
    assert "no item &lt;b&gt;v99" in refused.text
    asyncio.run(resume(there.directory / "run", ScriptedWorld().session()))
    assert re.search(r"<b>Left out</b> by \w+: wrong label", there.get("/run/run/item?item=v3").text)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"order": "fly", "why": "x"}, "that is no order"),
        ({"order": "hint", "why": "x"}, "needs a text"),
        ({"order": "hint", "text": "a", "why": ""}, "who gives it and why"),
        ({"order": "pause", "why": "x"}, "nobody is working"),
        ({"order": "budget", "why": "x", "max_calls": "many"}, "is no number"),
        ({"order": "pin", "text": "nowhere", "why": "x"}, "no such line"),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_nothing(there: Asking, fields: dict[str, str], why: str) -> None:
    """In the words of the command."""
    answer = there.post("/run/run/steer", fields)
    assert answer.status_code in (400, 403)
    assert why in answer.text
    assert not (there.directory / "run" / "inbox").exists()


def test_a_form_without_its_token_does_nothing(there: Asking) -> None:
    """Nor one that is too long, or none at all."""
    for path in ("/run/run/steer", "/run/run/resume", "/run/run/fork", "/start", "/start/check"):
        assert there.post(path, {"form_token": "wrong"}).status_code == 403
        assert "not of this session" in there.post(path, {"form_token": ""}).text
    assert there.post("/run/run/steer", {"why": "x" * 300_000}).status_code == 403
    assert there.get("/run/run/steer").status_code == 405


def test_a_fork_is_made_by_the_command_s_own_function(there: Asking) -> None:
    """At a moment, under a name, with other settings; what is wrong is said."""
    fields = {"until": "seq", "number": "1", "name": "other", "settings": "evaluation.gate_metric=soft"}
    answer = there.post("/run/run/fork", fields)
    assert answer.headers.get("location") == "/run/other"
    assert "A fork of" in there.get("/run/other").text
    assert there.post("/run/run/fork", {"name": "../out"}).status_code == 400
    for moment in ({"until": "step", "number": ""}, {"until": "epoch", "number": "two"}, {"until": "", "number": "2"}):
        answer = there.post("/run/run/fork", {**moment, "name": "not-from-now"})
        assert answer.status_code == 403
        assert 'href="/run/run"' in answer.text
        assert not (there.directory / "not-from-now").exists()
    assert there.post("/run/run/fork", {"until": "step", "number": "99"}).status_code == 404


class Begun:
    """Takes the place of processes; remembers how they were begun."""

    words: list[Sequence[str]] = []  # noqa: RUF012 -- of one test

    def __init__(self, words: Sequence[str], **_: object) -> None:
        self.words.append(words[3:])

    def poll(self) -> int:
        """It is over at once, and was not well."""
        return 2


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The words of the commands that the page begins."""
    monkeypatch.setattr(starting.subprocess, "Popen", Begun)
    monkeypatch.setattr(starting.subprocess, "run", lambda words, **_: subprocess.CompletedProcess(words, 0, "{}", ""))
    Begun.words = []
    return Begun.words


def test_a_run_is_begun_by_the_command_with_a_word_for_each_argument(there: Asking, begun: list[Sequence[str]]) -> None:
    """Whatever stands in a field, no shell reads it, and it stays one argument."""
    fields = {
        "config": "demo: demo",
        "name": "mine",
        "train.seed": "7; rm -rf /",
        "more": "env.grader=exact\n\n--dir=/elsewhere",
    }
    answer = there.post("/start", fields)
    assert answer.headers["location"] == "/started/mine"
    settings = ["--set=train.seed=7; rm -rf /", "--set=env.grader=exact", "--set=--dir=/elsewhere"]
    place = f"--dir={there.directory}"
    assert begun == [["run", "--demo=demo", *settings, place, "--run=mine", "--quiet"]]
    there.post("/run/run/resume", {})
    assert begun[-1] == ["resume", place, "--quiet", "--", "run"]


@pytest.mark.parametrize("path", ["/start", "/start/check"])
def test_what_the_form_does_not_have_is_refused(there: Asking, begun: list[Sequence[str]], path: str) -> None:
    """A run that began without it would not be the one that was asked for. Each refusal says what is wrong."""
    given = {"config": "demo: demo", "name": "mine"}
    for more, why in (
        ({"unknown.key": "x"}, "unknown.key"),
        ({"train.sed": "7"}, "is no key of the form"),
        ({"train.seed": "7\0"}, "train.seed has a NUL character"),
        ({"train.seed": "7" * 5000}, "train.seed is too long"),
    ):
        answer = there.post(path, {**given, **more})
        assert answer.status_code in (400, 403)
        assert why in answer.text
    assert begun == []


def test_a_form_that_did_not_work_keeps_what_was_filled_in(there: Asking, begun: list[Sequence[str]]) -> None:
    """At once, and after its command came to nothing."""
    fields = {"config": "demo: demo", "name": "run", "train.seed": "4711", "more": "env.grader=exact"}
    answer = there.post("/start", fields)
    assert answer.status_code == 400
    assert "there is a run run already" in answer.text
    assert 'value="4711"' in answer.text
    assert "env.grader=exact" in answer.text
    site = Site(there.directory, there.rules)
    acts = Acts(site)
    acts.starter.begin(("run", "--demo=demo"), "mine", {**fields, "name": "mine"})
    asked = Request({"type": "http", "method": "GET", "query_string": b"as=mine", "headers": []})
    assert b'value="4711"' in acts.form(asked).body
    assert begun


def test_a_mistake_stays_in_the_form_with_its_error_at_the_top_and_at_its_field(there: Asking) -> None:
    """The command itself finds it, before a run is begun."""
    answer = there.post(
        "/start", {"config": "demo: demo", "name": "mine", "train.seed": "4711", "train.num_epochs": "zero"}
    )
    assert answer.status_code == 400
    top = answer.text.partition('role="alert"')[2].partition("<form")[0]
    assert "must be a whole number" in top
    assert 'href="#field-train.num_epochs"' in top
    assert re.search(r'<input name="train.num_epochs" value="zero"[^>]* aria-invalid="true"', answer.text)
    assert answer.text.count("aria-invalid") == 1
    assert 'value="4711"' in answer.text
    assert not (there.directory / "mine").exists()


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("train.seed is 'x', but must be a whole number", True),
        ("--set: unknown key train.seed.", True),
        ("train.seeds is not known", False),
        ("my.train.seed is not known", False),
        ("train.seed.x is not known", False),
    ],
)
def test_only_the_field_that_an_error_names_is_marked(message: str, named: bool) -> None:
    """Not one whose name is a part of another."""
    main = start_page(["demo: demo"], "demo: demo", {}, {}, "token", Refused(message))
    assert ('aria-invalid="true"' in "".join(filter(None, main))) is named


def test_a_check_that_says_nothing_does_not_keep_a_run_from_starting(
    there: Asking, begun: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run says what is wrong once it has begun."""

    def late(words: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
        raise subprocess.TimeoutExpired(words, 90)

    monkeypatch.setattr(starting.subprocess, "run", late)
    assert "no estimate within 90 seconds" in there.post("/start/check", {"config": "demo: demo"}).text
    assert there.post("/start", {"config": "demo: demo", "name": "mine"}).headers["location"] == "/started/mine"
    assert len(begun) == 1


def test_a_start_that_died_says_so_and_leads_back(there: Asking, begun: list[Sequence[str]]) -> None:
    """With what the command has said, and the form as it was."""
    assert there.post("/start", {"config": "demo: demo", "name": "mine", "train.seed": "4711"}).status_code == 303
    answer = there.get("/started/mine")
    assert "mine did not start" in answer.text
    assert 'role="alert"' in answer.text
    assert "refresh" not in answer.headers
    assert 'href="/start?as=mine"' in answer.text
    assert 'value="4711"' in there.get("/start?as=mine").text
    assert begun


def test_a_run_is_continued_while_the_command_that_paused_it_is_on_its_way_out(
    there: Asking, begun: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever presses a button that is there is not told to come back later."""
    looks = iter([True, True, False, False, False])
    monkeypatch.setattr(acting, "is_written", lambda folder: next(looks))
    monkeypatch.setattr(acting, "_LOOK_EVERY", 0)
    assert there.post("/run/run/resume", {}).status_code == 303
    assert len(begun) == 1


def test_why_a_run_was_not_continued_stands_on_its_page(there: Asking, begun: list[Sequence[str]]) -> None:
    """The command has said it to nobody else."""
    assert there.post("/run/run/resume", {}).headers["location"] == "/started/run"
    folder, site = there.directory / "run", Site(there.directory, there.rules)
    acts = Acts(site)
    assert acts.came_to_nothing(folder) is None
    process = acts.starter.resume(folder)
    os.write(process.said, b"<b>the key is not set</b>")
    assert "could not be continued" in str(acts.came_to_nothing(folder))
    assert "&lt;b&gt;the key is not set" in str(acts.came_to_nothing(folder))
    assert len(begun) == 2


def test_orders_that_wait_or_were_refused_stand_on_the_page(there: Asking) -> None:
    """For everybody, not only for whoever gave them."""
    there.post("/run/run/steer", {"order": "hint", "text": "<b>ferns</b>", "why": "seen it", "by": "anna"})
    budget = {"order": "budget", "max_calls": "0.5e", "why": "x"}
    assert there.post("/run/run/steer", budget).status_code == 403
    assert "hint (&lt;b&gt;ferns&lt;/b&gt;), ordered by anna, waits" in there.get("/run/run").text
    inbox = Inbox(there.directory / "run")
    inbox.refused(inbox.waiting()[0].name, "<i>no</i>")
    assert "ordered by anna, was refused: &lt;i&gt;no&lt;/i&gt;" in there.get("/run/run").text
    assert there.post("/run/run/steer", {"order": "budget", "max_minutes": "inf", "why": "x"}).status_code == 400


@pytest.mark.parametrize(
    "fields",
    [
        {"config": "file: /etc/passwd"},
        {"config": "file: ../config.yaml"},
        {"config": "again: nope"},
        {"config": "demo: --help"},
        {"config": "demo: demo", "name": "../out"},
        {"config": "demo: demo", "name": "run"},
        {"config": "demo: demo", "train.seed": "7" * 5000},
    ],
)
def test_only_what_was_offered_is_begun(there: Asking, begun: list[Sequence[str]], fields: dict[str, str]) -> None:
    """Under a name that leads nowhere else, and that no run has."""
    assert there.post("/start", fields).status_code in (400, 403)
    assert not begun


def test_what_is_offered_are_demos_files_here_and_runs(there: Asking) -> None:
    """By names of ours."""
    Path("mine.yaml").write_text("train: {seed: 1}")
    found = Starter(there.directory).offered().configs
    assert found["demo: demo"] == ("--demo=demo",)
    assert found["file: mine.yaml"] == ("./mine.yaml",)
    assert found["again: run"] == ("--again=run",)


ORIGINAL = """
_base_: ../_base_/default.yaml
env: {name: searchqa}
"""


def test_configs_in_subfolders_are_offered_and_nothing_of_other_tools(there: Asking) -> None:
    """As a checkout of the original has them; runs, hidden folders, environments and packages are left alone."""
    offered = ("configs/_base_/default.yaml", "configs/searchqa/default.yaml", "a/b/c/deep.yml", "flat.json")
    left_out = (
        ".github/workflows/ci.yaml", "node_modules/x/config.yaml", "venv/config.yaml", ".venv/config.yaml",
        "runs/one/config.yaml", "docker-compose.yaml", "tasks.json", "1/2/3/4/5/6/7/config.yaml",
    )  # fmt: skip
    for name in (*offered, *left_out):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(ORIGINAL if name.endswith("ml") else '{"train": {"seed": 1}}')
    Path("configs/_base_/default.yaml").write_text("train:\n  seed: 1\n")
    Path("docker-compose.yaml").write_text("services: {}\n")
    Path("tasks.json").write_text('[{"env": 1}]')
    Path("venv/pyvenv.cfg").write_text("")
    Path("runs/one/log.db").write_text("")
    os.mkfifo("pipe.yaml")
    Path("round").symlink_to(".")
    found = Starter(there.directory).offered()
    assert {name for name in found.configs if name.startswith("file: ")} == {f"file: {name}" for name in offered}
    assert found.configs["file: configs/searchqa/default.yaml"] == ("./configs/searchqa/default.yaml",)
    assert not found.cut


def test_a_folder_with_too_many_configs_says_that_some_are_left_out(
    there: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The near ones are there."""
    Path("near.yaml").write_text("train: {seed: 1}")
    Path("far").mkdir()
    for number in range(5):
        Path(f"far/{number}.yaml").write_text("train: {seed: 1}")
    for bound, most in (("_MOST_FILES", 3), ("_MOST_FOLDERS", 1), ("_MOST_ENTRIES", 3)):
        with monkeypatch.context() as only:
            only.setattr(config_files, bound, most)
            found = Starter(there.directory).offered()
            assert found.cut, bound
            assert "file: near.yaml" in found.configs
            assert "too many files" in there.get("/start").text
    assert "too many files" not in there.get("/start").text


def test_the_form_has_every_key_with_its_remark_and_the_chosen_config_s_values(asking: Asking) -> None:
    """Only for those who may begin runs."""
    read_only = Asking(directory=asking.directory, rules=Rules(host="127.0.0.1", port=8765, read_only=True))
    assert read_only.get("/start").status_code == 403
    text = asking.get("/start?config=again%3A+demo").text
    names = set(re.findall(r'name="([a-z]+\.[a-z_]+)"', text))
    assert names == set(keys())
    assert "passes over the training items" in text
    assert 'name="train.seed" value="" placeholder="47"' in text
    assert settings_of({"train.seed": " 7 ", "train.num_epochs": "", "more": "a=b\n"}) == ("train.seed=7", "a=b")


def test_a_check_is_the_command_s_own_estimate(there: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or its error, with what to do about it."""
    said = {"out": '{"epochs": 1, "steps": 4, "calls": {"low": 5, "expected": 7, "high": 9}, "notes": ["a note"]}'}

    def run(words: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert "--dry-run" in words
        return subprocess.CompletedProcess(words, 0, said["out"], "")

    monkeypatch.setattr(starting.subprocess, "run", run)
    text = there.post("/start/check", {"config": "demo: demo", "train.seed": "7"}).text
    assert '<th scope="row">calls</th><td class="n">5</td>' in text
    assert 'value="7"' in text
    said["out"] = '{"error": {"message": "train.seed must be a whole number", "hint": "such as 7", "exit_code": 2}}'
    assert "train.seed must be a whole number" in there.post("/start/check", {"config": "demo: demo"}).text
    said["out"] = "nonsense"
    assert "nothing that can be read" in there.post("/start/check", {"config": "demo: demo"}).text
