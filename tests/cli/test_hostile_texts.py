"""What models, endpoints, items and skills say never reaches a terminal as it is, in any command that prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.hostile import ALL, KEY_NAME, TEXTS, Enemy, enemy_server, hostile_project, hostile_tasks, said_raw
from support.in_process import Cli, called
from support.on_terminal import CODES, on_terminal
from support.params import parametrized

from skillopt_es.presenting.escaping import shown, shown_inline, shown_json

ITEM = next(hostile_tasks())["id"]
VALIDATED = next(row["id"] for row in hostile_tasks() if row["split"] == "val")


@pytest.fixture(scope="module")
def enemy() -> Iterator[tuple[Enemy, str]]:
    """Both models, and where they are."""
    enemy = Enemy()
    with enemy_server(enemy) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_NAME, "sk-hostile-0123456789abcdef")
        yield enemy, server.base_url


@pytest.fixture(scope="module")
def trained(enemy: tuple[Enemy, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a complete run, a fork of it, an evaluation, and a run that waits for answers."""
    folder = tmp_path_factory.mktemp("hostile")
    config = hostile_project(folder, enemy[1])
    for words in (
        ("run", config, "--run", "h"),
        ("fork", "h", "--until", "step", "2", "--name", "fork"),
        ("eval", config, "--split", "val", "--skill", folder / "SKILL.md", "--dir", folder / "evals"),
        ("run", config, "--run", "asks", "--set", "model.target_backend=handoff"),
    ):
        where = () if words[0] == "eval" else ("--dir", folder / "runs")
        done = run_quietly(*words, *where)
        assert done in (0, 3), words
    return folder


def run_quietly(*words: object) -> int:
    """A command whose output is not looked at here; its exit code."""
    from skillopt_es.cli.main import main

    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


READING: list[tuple[str, ...]] = [
    ("status", "h"),
    ("status", "asks"),
    ("runs",),
    ("log", "h"),
    ("log", "h", "--type", "RolloutCompleted"),
    ("show", "h", "1"),
    ("show", "h", "3"),
    ("show", "h", "e1/s1/b0/failure-0"),
    ("explain", "h", "step 1"),
    ("explain", "h", "step 2"),
    ("explain", "h", "epoch 2"),
    ("explain", "h", "event 3"),
    ("explain", "h", "--item", VALIDATED),
    ("explain", "h", "--item", ITEM),
    ("blame", "h"),
    ("blame", "h", "--line", "1", "--line", "4"),
    ("diff", "h", "step 0", "step 1"),
    ("diff", "h", "fork"),
    ("why-not", "h"),
    ("retract", "h", "--item", ITEM),
    ("lineage", "h"),
    ("lineage", "h", "--format", "dot"),
    ("lineage", "h", "--format", "mermaid"),
    ("usage", "h", "--by", "place"),
    ("usage", "h", "--by", "improvement"),
    ("bisect", "h", "--item", VALIDATED),
    ("replay", "h"),
    ("replay", "h", "--check"),
    ("verify", "h"),
    ("compare", "h", "fork"),
    ("regate", "h", "--set", "evaluation.gate_metric=soft"),
    ("rescore", "h", "--set", "env.grader=exact"),
    pytest.param(("gate", "calibrate", "h"), marks=pytest.mark.slow),  # a second of simulation each time
    ("handoff", "list", "asks"),
    # what is asked for and not there is said, too
    ("explain", "h", "--item", "absent"),
    ("show", "h", ALL.replace("\x00", "")),
    ("status", f"h{ALL}"),
]


@pytest.mark.usefixtures("few_trials")
@parametrized("words", READING, ids=lambda words: shown_inline(" ".join(words))[:40], by_default=12)
def test_a_reading_command_prints_nothing_that_acts_on_a_terminal(
    words: tuple[str, ...], trained: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither plain nor in colours; the JSON document means what was recorded, and is as safe to look at."""
    cli = called(capsys)
    where = ("--dir", trained / "runs")
    plain = cli(*words, *where)
    assert not said_raw(plain.out + plain.err)
    assert plain.code in (0, 2), plain.err
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = cli(*words, *where)
    assert not said_raw(coloured.out + coloured.err, coloured=True)
    document = cli(*words, *where, "--json")
    assert not said_raw(document.out)
    for line in document.lines if words[0] == "log" else [document.out]:
        json.loads(line)


def test_json_and_files_stay_exact(trained: Path, cli: Cli, tmp_path: Path) -> None:
    """What is escaped for eyes is what it was for programs."""
    where = ("--dir", trained / "runs")
    shown_event = cli("show", "h", "1", *where, "--json").json
    recorded = shown_event["data"]["skill"]["files"]["SKILL.md"]
    assert all(TEXTS[name] in recorded for name in ("clipboard", "c1", "bidi", "unseen", "lines"))
    logged = [json.loads(line) for line in cli("log", "h", "--type", "RolloutCompleted", *where, "--json").lines]
    assert ITEM in {event["data"]["item"] for event in logged}
    assert cli("export", "h", tmp_path / "SKILL.md", *where).code == 0
    assert f"RULE {TEXTS['clipboard']}" in (tmp_path / "SKILL.md").read_bytes().decode()
    assert cli("report", "h", "--out", tmp_path / "page.html", *where).code == 0
    assert cli("report", "h", "--out", "-", *where).out == (tmp_path / "page.html").read_bytes().decode()
    assert cli("export", "h", "-", *where).out.encode() == (tmp_path / "SKILL.md").read_bytes()


def test_a_run_and_its_errors_print_nothing_that_acts_on_a_terminal(
    enemy: tuple[Enemy, str], tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress, the outcome, and what an endpoint that refuses says to `run`, `resume`, `eval` and `doctor`."""
    server, base_url = enemy
    config = hostile_project(tmp_path / "p", base_url)
    where = ("--dir", tmp_path / "runs")
    done = cli("run", config, "--run", "good", *where)
    assert done.code == 0
    assert not said_raw(done.out + done.err)
    assert not said_raw((cli("estimate", config, *where)).out)
    monkeypatch.setattr(server, "down", True)
    for words in (
        ("run", config, "--run", "bad", *where),
        ("resume", "bad", *where),
        ("status", "bad", *where),
        ("runs", *where),
        ("eval", config, "--split", "val", "--dir", tmp_path / "evals"),
        ("doctor", config),
        ("--debug", "resume", "bad", *where),
    ):
        done = cli(*words)
        assert words[0] == "runs" or "wrong key" in done.out + done.err, words
        assert not said_raw(done.out + done.err), words
        assert "\nrun         other" not in done.out + done.err, "a forged line"


def test_a_live_line_and_what_stays_above_it_are_safe(enemy: tuple[Enemy, str], tmp_path: Path) -> None:
    """A terminal gets the codes that move its cursor and colour its lines from us alone."""
    config = hostile_project(tmp_path / "p", enemy[1])
    environ = {KEY_NAME: "sk-hostile-0123456789abcdef", "LINES": "100"}
    shown_there = on_terminal("run", config, "--dir", tmp_path / "runs", **environ)
    assert "elapsed" in shown_there
    assert "\\x1b]52" in shown_there
    assert not said_raw(CODES.sub("", shown_there).replace("\r", ""))
    assert "\x1b[2J" not in shown_there, "only a cursor that moves within its lines is ours"
    assert "\x1b[8m" not in shown_there


def test_every_text_of_the_corpus_is_spelled_out() -> None:
    """And means the same in JSON."""
    for text in TEXTS.values():
        assert not said_raw(shown(text))
        assert json.loads(shown_json(json.dumps(text, ensure_ascii=False))) == text
    assert shown("née \U0001f468‍\U0001f469\tok\n") == "née \U0001f468‍\U0001f469\tok\n"
    assert shown_inline("two\nlines") == r"two\nlines"
