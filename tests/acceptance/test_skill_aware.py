"""Reminder notes as a user meets them: the demo with skill-aware reflection on, in the installed command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.desk import Desk, Done

from skillopt_es.adapters.models.simulated.worlds import house_style
from skillopt_es.config import load_config

KEYS = {
    "use_skill_aware_reflection": "true",
    "use_slow_update": "false",  # its guidance would keep the target from forgetting
    "skill_aware_consolidate_threshold": "2",
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Desk, dict[str, Done]]:
    """The demo in both orders, from a skill that has all rules already."""
    desk = Desk(tmp_path_factory.mktemp("notes"))
    demo = load_config(None)
    tasks = demo.path(demo.env.data_path)
    (desk.folder / "SKILL.md").write_text("# Desk\n\n" + "".join(f"- {rule.wording}\n" for rule in house_style()))
    (desk.folder / "config.yaml").write_text(json.dumps({**demo.resolved, "env": _env(demo.resolved["env"], tasks)}))
    done = {}
    for order in ("measured", "after_verdict"):
        follow = "[]" if order == "measured" else "[notes_after_verdict]"
        settings = [f"skillopt.follow={follow}", *(f"optimizer.{key}={value}" for key, value in KEYS.items())]
        sets = [word for setting in settings for word in ("--set", setting)]
        done[order] = desk.run("run", "config.yaml", "--run", order, *sets)
    return desk, done


def _env(recorded: object, tasks: Path) -> dict[str, object]:
    assert isinstance(recorded, dict)
    return {**recorded, "data_path": str(tasks), "skill_init": "SKILL.md"}


@pytest.mark.slow
@pytest.mark.parametrize("order", ["measured", "after_verdict"])
def test_a_forgetful_target_is_reminded(order: str, trained: tuple[Desk, dict[str, Done]]) -> None:
    """The run ends, says what it did with notes, and every decision and byte is right."""
    desk, done = trained
    assert (done[order].code, done[order].complaints) == (0, [])
    assert "notes new" in done[order].err
    assert desk.run("replay", order, "--check").code == 0
    assert desk.run("verify", order).code == 0


@pytest.mark.slow
def test_notes_that_help_are_in_the_best_skill(trained: tuple[Desk, dict[str, Done]]) -> None:
    """In their block at its end, taken by the gate."""
    desk, _ = trained
    best = (desk.folder / "runs" / "measured" / "best" / "SKILL.md").read_text()
    assert best.rstrip().endswith("<!-- APPENDIX_END -->")
    assert "- Before you answer, check the rule" in best
    status = desk.run("status", "measured", "--json").json
    assert any(line["notes"] and line["verdict"] == "accept_new_best" for line in status["lines"] if "notes" in line)
    assert status["best"]["value"] > status["evaluations"][0]["value"]


def test_the_commands_speak_of_notes(trained: tuple[Desk, dict[str, Done]]) -> None:
    """In a line each, in the table of steps, and whole."""
    desk, done = trained
    assert " notes " in desk.run("status", "measured").out
    lines = desk.run("log", "measured", "--type", "AppendixExtended").out.splitlines()
    assert all("new" in line and ("with the candidate" in line or "stays as it is" in line) for line in lines)
    assert "status: added" in desk.run("show", "measured", lines[0].split()[0]).out
    assert "is not measured" in desk.run("log", "after_verdict", "--type", "AppendixWritten").out
    assert "after the verdict, skill" in done["after_verdict"].err
    assert "appendix" in desk.run("usage", "measured").out + desk.run("usage", "after_verdict").out


def test_a_key_that_is_wrong_is_named(trained: tuple[Desk, dict[str, Done]]) -> None:
    """With what is allowed, before anything is asked."""
    desk, _ = trained
    done = desk.run("run", "config.yaml", "--set", "skillopt.follow=[notes_later]")
    assert done.code == 2
    assert "skillopt.follow" in done.err
    assert "notes_after_verdict" in done.err
