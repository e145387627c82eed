"""`gate calibrate` tells what recorded repeats say of a gate, draws on request, and says when nothing is known."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.flaky import flaky_world
from support.in_process import Cli
from support.logs import events_of
from support.scripted import config

from skillopt_es.audit.calibrating import calibrated, draw, subject
from skillopt_es.events.catalog import RolloutCompleted, SkillScored
from skillopt_es.gate.calibration import Calibration
from skillopt_es.sessions.evaluation import Evaluated
from skillopt_es.sessions.session import start

ONCE = ("train.num_epochs=1", "optimizer.use_slow_update=false", "evaluation.eval_test=false")
AGAIN = (*ONCE, "evaluation.gate_rule=paired")


def trained(folder: Path, *settings: str) -> Path:
    """A run over items of which some flip."""
    asyncio.run(start(config(folder, settings), folder / "run", flaky_world().session()))
    return folder / "run"


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose gate drew again."""
    return trained(tmp_path_factory.mktemp("repeated"), *AGAIN)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one draw a text, over training items that never come round again."""
    return trained(tmp_path_factory.mktemp("strict"), *ONCE, "train.batch_size=12")


@pytest.mark.slow
@pytest.mark.usefixtures("few_trials")
def test_what_was_drawn_again_tells_how_items_flip(repeated: Path, cli: Cli) -> None:
    """Without a call; the run's own rule first, with what the others would do."""
    done = cli("gate", "calibrate", repeated, "--json")
    assert done.code == 0
    told = done.json
    assert (told["calibrated"], told["source"]) == (True, "validation")
    assert 0.02 < told["flip_rate"] < 0.5
    own, *others = told["rules"]
    assert (own["own"], own["evaluation.gate_rule"], own["evaluation.gate_repeats"]) == (True, "paired", 2)
    assert {rule["evaluation.gate_rule"] for rule in others} == {"strict", "paired", "retest"}
    strictest = next(rule for rule in others if rule["evaluation.gate_rule"] == "strict")
    assert own["null_accepts"] < strictest["null_accepts"]
    assert len(told["items"]) == 20
    shown = cli("gate", "calibrate", repeated).out
    assert "paired, 1 error, 2 draws" in shown
    assert "recommended: " in shown


@pytest.mark.usefixtures("few_trials")
def test_status_shows_it_beside_the_verdicts(repeated: Path, strict: Path, cli: Cli) -> None:
    """Where it is known."""
    shown = cli("status", repeated)
    assert "gate        accepts a candidate that changes nothing in " in shown.out
    assert "            accepts one that turns 10% of the results for no gain in " in shown.out
    told = cli("status", repeated, "--json").json
    assert 0 < told["null_accepts"] <= told["null_accepts_most"] < 0.5
    assert 0 < told["churn_accepts"] < 0.5
    assert "gate  " not in cli("status", strict).out
    assert cli("status", strict, "--json").json["null_accepts"] is None


def test_without_repeats_it_says_what_to_type(strict: Path, cli: Cli) -> None:
    """And claims nothing."""
    done = cli("gate", "calibrate", strict)
    assert done.code == 0
    assert "no item was tried twice under one text" in done.lines[0]
    assert f"skillopt-es gate calibrate {strict} --repeats 4   (tries 20 validation items 4 times)" in done.lines[1]
    told = cli("gate", "calibrate", strict, "--json").json
    assert (told["calibrated"], "--repeats" in told["next"]) == (False, True)


@pytest.mark.slow
@pytest.mark.usefixtures("few_trials")
def test_fresh_draws_are_an_evaluation(strict: Path, tmp_path: Path) -> None:
    """Each item asked anew in each draw, recorded; asked for again, nothing is."""
    of = subject(strict, tmp_path / "evals")
    world = flaky_world()

    def drawn(count: int) -> Evaluated:
        return asyncio.run(draw(of, "best", count, world.session(), lambda split, done, total: None))

    evaluated = drawn(3)
    assert len(world.target.asked) == 60
    assert drawn(3).folder == evaluated.folder
    assert len(world.target.asked) == 60
    drawn(4)
    assert len(world.target.asked) == 80
    scored = [event.place for event in events_of(evaluated.folder) if isinstance(event, SkillScored)]
    assert scored == ["eval/val", "eval/val/repeat-2", "eval/val/repeat-3", "eval/val/repeat-4"]
    found = calibrated(of, "best")
    assert isinstance(found, Calibration)
    assert (found.source, found.skill) == ("validation", of.skill("best").hash)
    assert {each.tried for each in found.items.values()} >= {5}  # the four, and the gate's own
    assert found.flips.rate > 0


@pytest.mark.usefixtures("few_trials")
def test_the_command_draws_from_the_target_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """The demo's never flips; the log of the draws can be checked."""
    monkeypatch.chdir(tmp_path)
    quick = ("train.num_epochs=1", "env.limit=5", "optimizer.use_slow_update=false", "evaluation.eval_test=false")
    assert cli("run", "--run", "demo", *(word for each in quick for word in ("--set", each))).code == 0
    done = cli("gate", "calibrate", "demo", "--repeats", "2", "--json")
    assert done.code == 0
    assert done.json["flip_rate"] == 0
    assert done.json["flip_interval"] == [0, pytest.approx(0.4345, abs=1e-4)]  # five items say little
    assert done.json["recommended"]["evaluation.gate_rule"] != "strict"
    rows = [event for event in events_of(tmp_path / done.json["recorded"]) if isinstance(event, RolloutCompleted)]
    assert len(rows) == 10
    assert cli("replay", done.json["recorded"], "--check").code == 0


def test_what_has_no_gate_is_refused(repeated: Path, tmp_path: Path, cli: Cli) -> None:
    """An evaluation, a run that is not there, a draw that would be no repeat."""
    of = subject(repeated, tmp_path / "evals")
    session = flaky_world().session()
    folder = asyncio.run(draw(of, "initial", 2, session, lambda split, done, total: None)).folder
    assert "is an evaluation" in cli("gate", "calibrate", folder).err
    assert cli("gate", "calibrate", "nothing").code == 2
    assert cli("gate", "calibrate", repeated, "--repeats", "1").code == 2
