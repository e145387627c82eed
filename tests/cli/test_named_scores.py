"""Every score of validation tasks says which score it is, over which tasks, and whether these have chosen the skill."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from support.in_process import Cli

import skillopt_es as so
from skillopt_es.runs.overview import overviews

SEARCH = {"train.algorithm": "search", "evaluation.gate_metric": "mixed"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two searches that decide by the mixed score, one of which ends while its verdicts take twelve tasks."""
    directory = tmp_path_factory.mktemp("named") / "runs"
    for name, calls in (("few", 300), ("all", 700)):
        so.train(settings={**SEARCH, "budget.max_calls": calls}, name=name, runs=directory)
    return directory


def line(out: str, label: str) -> str:
    """The rest of the line that begins with a word."""
    [found] = [each for each in out.splitlines() if each.startswith(f"{label} ")]
    return found.removeprefix(label).strip()


def test_run_and_status_show_the_score_that_decides(cli: Cli, runs: Path) -> None:
    """The same numbers in both, with the metric's name; the values are those that the log has for the two skills."""
    [found] = [each for each in overviews(runs) if each.folder.name == "few"]
    baseline, best = found.summary.baseline, found.summary.best
    first = f"{baseline.value:.4f} over 12 of 40 items"
    last = f"{best.value:.4f} over 12 of 40 items, chosen on these"
    told = "(chosen by this score; the test tells more)"
    assert line(cli("resume", "few", "--dir", runs).out, "validation") == f"mixed score: {first} -> {last} {told}"
    current = f"current {found.summary.current.value:.4f}"
    status = cli("status", "few", "--dir", runs).out
    assert line(status, "validation") == f"mixed score: initial {first}, {current}, best {last} {told}"
    assert "current, candidate, best: mixed score on validation" in status
    assert re.search(r"train: hard score of the tasks drawn for the step; .* it may fall while the skill", status)


def test_an_arrow_between_different_tasks_says_so(cli: Cli, runs: Path) -> None:
    """The first skill was tried on twelve, the best one in the end on all."""
    known = line(cli("resume", "all", "--dir", runs).out, "validation")
    assert re.fullmatch(
        r"mixed score: 0\.\d{4} over 12 of 40 items -> 0\.\d{4} over all 40 items "
        r"\(not the same items; chosen by this score; the test tells more\)",
        known,
    )
    assert "over all 40 items" in line(cli("status", "all", "--dir", runs).out, "validation")


def test_lists_and_trees_name_the_metric(cli: Cli, runs: Path, demo_run: Path) -> None:
    """Once where it is the same for all runs, else in a column."""
    alike = cli("runs", "--dir", runs).out
    assert "current and best: mixed score on validation; test: hard score of the best" in alike
    assert "12 of 40 items, chosen on these" in alike
    assert cli("lineage", "few", "--dir", runs).out.endswith("values: mixed score on validation\n")
    assert cli("lineage", "few", "--dir", runs, "--json").json["gate_metric"] == "mixed"
    found = {each["run"]: each for each in cli("runs", "--dir", runs, "--json").json}
    assert {each["gate_metric"] for each in found.values()} == {"mixed"}
    assert (found["few"]["best"]["chosen_on_these_items"], found["all"]["best"]["over_items"]) == (True, None)
    (runs / "demo").symlink_to(demo_run)
    try:
        table = cli("runs", "--dir", runs).lines
    finally:
        (runs / "demo").unlink()
    assert table[0].split()[5] == "metric"
    assert {each.split()[0]: each.split()[5] for each in table[1:4]} == {"few": "mixed", "all": "mixed", "demo": "hard"}


def test_states_and_what_differs_between_them_name_the_metric(cli: Cli, runs: Path) -> None:
    """And say where the two ends of an arrow are over different numbers of tasks."""
    assert re.search(
        r"^best +0\.\d{4} mixed over 12 of 40 items  ", cli("replay", "few", "--dir", runs).out, re.MULTILINE
    )
    assert re.search(r"^best +0\.\d{4} mixed  [0-9a-f]{12}  ", cli("replay", "all", "--dir", runs).out, re.MULTILINE)
    unlike = cli("diff", "all", "initial", "best", "--dir", runs)
    assert re.search(r"mixed score 0\.\d{4} over 12 items -> 0\.\d{4} over 40 \(not the same items\); won ", unlike.out)
    alike = cli("diff", "few", "initial", "best", "--dir", runs)
    assert re.search(r"mixed score 0\.\d{4} -> 0\.\d{4}; won ", alike.out)
    document = cli("diff", "all", "initial", "best", "--dir", runs, "--json").json["scores"]["best"]
    assert (document["gate_metrics"], document["items"]) == (["mixed", "mixed"], [12, 40])
    gained = cli("usage", "few", "--by", "improvement", "--dir", runs).out
    assert re.search(r"points on the gate \(mixed score 0\.\d{4} -> 0\.\d{4}\)", gained)


def test_a_forks_other_metric_is_the_one_that_is_named(cli: Cli, runs: Path) -> None:
    """Its values are by that metric, too."""
    made = cli("fork", "few", "--until", "step", "2", "--set", "evaluation.gate_metric=soft", "--name", "soft",
               "--dir", runs)  # fmt: skip
    assert made.code == 0
    assert line(cli("status", "soft", "--dir", runs).out, "validation").startswith("soft score: initial ")


@pytest.mark.slow
@pytest.mark.usefixtures("few_trials")
def test_status_says_that_the_gate_of_a_search_is_not_what_decides(cli: Cli, runs: Path) -> None:
    """Nearly everything passes it, because edits have won before."""
    said = "An edit has to win on training tasks first. So"
    assert f"{said} this is not what decides here." in cli("status", "all", "--dir", runs).out
    calibrated = cli("gate", "calibrate", "all", "--dir", runs).out
    assert f"{said} what the rule accepts of candidates that change nothing is not what decides here." in calibrated


# --- the test ------------------------------------------------------------------------------------------------------

KINDS = [f"kind{n}" for n in range(7)]


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with tasks of seven types, two of which pass from the start, and one edit that solves the others."""
    folder = tmp_path_factory.mktemp("typed")
    rows = [
        {"id": f"{split}{n}", "input": f"{KINDS[n % 7]}: {split}{n}", "expected": "right", "split": split,
         "type": KINDS[n % 7]}
        for split, size in (("train", 14), ("val", 21), ("test", 15))
        for n in range(size)
    ]  # fmt: skip
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "SKILL.md").write_text("# Skill\n")

    def follow(request: so.ChatRequest) -> str:
        solved = "The rule." in request.messages[0].content or request.messages[-1].content[:5] in ("kind5", "kind6")
        return "right" if solved else "wrong"

    def teach(request: so.ChatRequest) -> str:
        edit = {"op": "append", "target": "", "content": "The rule.", "from": [], "items": []}
        return json.dumps({"reasoning": "", "edits": [edit], "patch": {"edits": [edit]}})

    so.train(
        {
            "env": {"name": "tasks", "data_path": str(folder / "tasks.jsonl"), "split_mode": "field",
                    "skill_init": str(folder / "SKILL.md")},
            "train": {"num_epochs": 1, "batch_size": 14},
        },
        name="typed", runs=folder / "runs", target=so.ChatFunction(follow), optimizer=so.ChatFunction(teach),
        grader=lambda said, item: said == item["expected"],
    )  # fmt: skip
    return folder / "runs"


def test_eleven_won_and_none_lost_is_better_on_tasks_of_these_types(cli: Cli, typed: Path) -> None:
    """Only five types could turn, so nothing can be said of others; in the same words wherever it is said."""
    better = "11 won and 0 lost of 15 items: better on tasks of these types (p = 0.00098). "
    why = "Every type that could win did (5 of 5); so few types cannot tell about other types"
    for words in (("resume",), ("status",)):
        out = cli(*words, "typed", "--dir", typed).out.replace("\N{NO-BREAK SPACE}", " ")
        assert f"best against initial: {better}{why}" in out
        assert "within noise" not in out
    document = cli("report", "typed", "--dir", typed, "--json").json
    test = next(each for each in document["differences"] if "best" in each["after"])
    assert (test["claim"], test["within_noise"]) == ("few_types", False)
    assert (test["types_that_could_turn"], test["types_that_turned"]) == (5, 5)
    assert f"{better}{why}." in document["said"][0].replace("\N{NO-BREAK SPACE}", " ")
    status = cli("status", "typed", "--dir", typed, "--json").json["test_difference"]
    assert status["claim"] == "few_types"
    assert status == cli("resume", "typed", "--dir", typed, "--json").json["test_difference"]


def test_compared_runs_have_intervals_and_a_test(cli: Cli, typed: Path, demo_run: Path, tmp_path: Path) -> None:
    """By item and by type, as the page has them; runs of other tasks cannot be compared by theirs."""
    twin = shutil.copytree(typed / "typed", tmp_path / "twin")
    out = cli("compare", typed / "typed", twin).out
    assert re.search(r"^test best, 95 % +0\.796 to 1\.000", out, re.MULTILINE)
    assert re.search(r"^95 % by type ", out, re.MULTILINE)
    assert "On test, best of twin against best of typed: no difference, 0 won and 0 lost of 15 items: within" in out
    first, other = cli("compare", typed / "typed", twin, typed / "typed", "--json").json
    assert (first["against_first"], other["against_first"]["claim"]) == (None, "noise")
    assert other["against_first"]["probability"] == 1.0
    _, unlike = cli("compare", typed / "typed", demo_run, "--json").json
    assert unlike["against_first"] is None
