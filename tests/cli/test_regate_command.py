"""`regate` keeps apart what another rule decides, what it would perhaps decide, and what nobody can tell."""

from __future__ import annotations

from pathlib import Path

from support.in_process import Cli

from skillopt_es.gate.forks import GATE_KEYS

PAIRED = ("--set", "evaluation.gate_rule=paired")


def test_what_cannot_be_told_is_no_difference(demo_run: Path, cli: Cli) -> None:
    """A strict run has no second draws: of what won nobody knows whether it would win again; what lost, lost."""
    told = cli("regate", demo_run, *PAIRED, "--json").json
    unknown = [each for each in told["estimate"] if each["changed"] is None]
    assert (told["exact"], told["first_change"], told["parting"]) == ([], None, unknown[0]["seq"])
    assert {each["recorded"] for each in unknown} == {"accept_new_best"}
    assert not any(each["changed"] for each in told["estimate"])
    shown = cli("regate", demo_run, *PAIRED).out
    assert "EXACT: what this rule decides up to the first verdict that cannot be told\nnothing: " in shown
    assert f"0 of {len(told['estimate'])} estimated verdicts differ, {len(unknown)} cannot be told" in shown


def test_known_scores_are_shown_where_the_verdict_is_not_known(demo_run: Path, cli: Cli) -> None:
    """Those of the first draw, and of the text that would be current."""
    first = cli("regate", demo_run, *PAIRED, "--json").json["estimate"][0]
    assert (first["against"], first["value"], first["derived"]) == (0.15, 0.3, None)
    [row] = [line for line in cli("regate", demo_run, *PAIRED).lines if line.startswith("?  step 1 ")]
    assert row.split()[3:5] == ["0.1500", "0.3000"]


def test_a_verdict_that_changes_is_still_the_last_that_is_certain(demo_run: Path, cli: Cli) -> None:
    """With a hint that finds out."""
    shown = cli("regate", demo_run, "--set", "evaluation.use_gate=false").out
    assert "EXACT: what this rule decides up to the first changed verdict" in shown
    assert "\n*  step 3 " in shown
    assert "3 of 10 estimated verdicts differ\n" in shown
    assert "--until step 2 --set" in shown


def test_the_page_names_every_key_that_can_be_asked_about() -> None:
    """All of the rule."""
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    section = page.split("## What would another rule have decided?")[1].split("\n## ")[0]
    assert [key for key in GATE_KEYS if f"`{key}`" not in section and f"`evaluation.{key}`" not in section] == []
