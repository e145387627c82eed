"""The checks that every algorithm has to pass: for classic, and for that of docs/algorithms.md as it stands."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.command import command, environment
from support.in_process import called
from support.scripted import ScriptedEnvironment, ScriptedWorld, config

from skillopt_es.algorithms.classic.algorithm import CLASSIC
from skillopt_es.algorithms.classic.state import ClassicState
from skillopt_es.config import RunConfig, demo_config, load_config
from skillopt_es.engine import algorithms
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.events.catalog import Event
from skillopt_es.sessions.opening import open_environment
from skillopt_es.sessions.session import refusals
from skillopt_es.sessions.wiring import Session
from skillopt_es.testing.algorithms import ALGORITHM_CHECKS, AlgorithmCase

PAGE = Path(__file__).parent.parent.parent / "docs" / "algorithms.md"
SKILL = "- know apple\n- spoil apple\n- know birch\n- spoil birch\n- know cedar\n"


@pytest.fixture
def leave_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's algorithm as an installed package; the folder to put on the path."""
    site = tmp_path / "site"
    [code] = re.findall(r"```python\n(\"\"\"Random search.*?)```", PAGE.read_text(), re.DOTALL)
    [points] = re.findall(r"```toml\n(.*?leave_out.*?)```", PAGE.read_text(), re.DOTALL)
    (site / "leave_out-1.dist-info").mkdir(parents=True)
    (site / "leave_out-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: leave-out\nVersion: 1\n")
    group, value = re.findall(r"\"(.*?)\"", points)
    (site / "leave_out-1.dist-info" / "entry_points.txt").write_text(f"[{group}]\nleave_out = {value}\n")
    (site / "leave_out.py").write_text(code)
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "leave_out", raising=False)
    algorithms.installed_algorithm.cache_clear()
    return site


def small(algorithm: str, skill: str, *more: str, train: int = 2) -> AlgorithmCase:
    """A case of a few dozen events in the scripted world."""

    def configured(folder: Path, settings: Sequence[str]) -> RunConfig:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(skill)
        chosen = (f"train.algorithm={algorithm}", "env.skill_init=SKILL.md", "train.num_epochs=2", *more, *settings)
        return config(folder, chosen)

    def session() -> Session:
        return ScriptedWorld(environment=ScriptedEnvironment(train=train, val=3, test=2)).session()

    return AlgorithmCase(config=configured, session=session)


KILLED = "a_killed_run_goes_on_as_if_nothing_had_been"


def search(train: int, calls: int) -> AlgorithmCase:
    """A search that ends by its budget."""
    settings = ("train.batch_size=4", "gradient.minibatch_size=2", f"budget.max_calls={calls}")
    return small("search", "- know apple\n", *settings, train=train)


@pytest.mark.parametrize("name", ALGORITHM_CHECKS)
def test_the_algorithm_of_the_page_is_an_algorithm(name: str, leave_out: Path, tmp_path: Path) -> None:
    """Its two steps, with one line left out in each."""
    ALGORITHM_CHECKS[name](small("leave_out", SKILL), tmp_path)


# Killing after each event costs the square of a run's length: by default only that of the page is killed so, and
# classic in tests/engine/test_crashes.py.
SOME = [pytest.param(name, marks=pytest.mark.slow) if name == KILLED else name for name in ALGORITHM_CHECKS]


@pytest.mark.parametrize("name", SOME)
def test_classic_is_an_algorithm(name: str, tmp_path: Path) -> None:
    """A step an epoch, with guidance and a memory."""
    ALGORITHM_CHECKS[name](small("classic", "", "train.batch_size=2"), tmp_path)


@pytest.mark.parametrize("name", SOME)
def test_search_is_an_algorithm(name: str, tmp_path: Path) -> None:
    """Two questions a step, edits that the screen drops, a second look, verdicts, and an end by the budget."""
    ALGORITHM_CHECKS[name](search(6, 44 if name == KILLED else 60), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "name"),
    [("classic", KILLED), *product(("search", "classic"), [name for name in ALGORITHM_CHECKS if name != KILLED])],
)
def test_an_algorithm_with_a_certificate_is_one(algorithm: str, name: str, tmp_path: Path) -> None:
    """Batches that meet two texts, and one more at the end."""
    settings = ("train.batch_size=4", "evaluation.certificate=true", "train.num_epochs=1", "optimizer.learning_rate=1")
    # Calls that a kill loses on their way count as spent: what is not needed without a kill has to make up for them.
    more = ("budget.max_calls=80",) if algorithm == "search" else ()
    ALGORITHM_CHECKS[name](small(algorithm, "- know apple\n", *settings, *more, train=16), tmp_path)


TIMES = count()


def forgetful(state: ClassicState, config: RunConfig, evidence: RecordedTexts) -> Event:
    """A decision that is another one each time."""
    planned = CLASSIC.decisions["plan_epoch"](state, config, evidence)
    return evolve(planned, meta_skill=f"time {next(TIMES)}")


FORGETFUL = {"decisions": {**CLASSIC.decisions, "plan_epoch": forgetful}}


@pytest.mark.parametrize(
    ("check", "parts", "said"),
    [
        ("every_decision_follows_from_the_evidence", FORGETFUL, "it does not follow: .*meta_skill"),
        ("the_same_answers_give_the_same_log", FORGETFUL, "event 6 depends on how many calls are in flight"),
        ("a_killed_run_goes_on_as_if_nothing_had_been", FORGETFUL, "event 6 came out otherwise"),
        (
            "it_has_words_for_what_it_does",
            {"words": evolve(CLASSIC.words, doing=lambda task: "")},
            "AnalyseJob has no words",
        ),
        (
            "the_next_work_is_the_states_alone",
            {"commands": evolve(CLASSIC.commands, under_way=lambda state: "it is")},
            "a run that is over",
        ),
        (
            "a_run_comes_to_its_end",
            {"plan": evolve(CLASSIC.plan, steps=lambda train, items: (1, 9))},
            "steps of 9 were done",
        ),
    ],
)
def test_a_check_says_what_is_wrong(
    check: str, parts: dict[str, object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with an algorithm that breaks the rule."""
    monkeypatch.setattr("skillopt_es.algorithms.classic.algorithm.CLASSIC", evolve(CLASSIC, **parts))
    algorithms.installed_algorithm.cache_clear()
    try:
        with pytest.raises(AssertionError, match=said):
            ALGORITHM_CHECKS[check](small("classic", "", "train.batch_size=2"), tmp_path)
    finally:
        algorithms.installed_algorithm.cache_clear()


@pytest.mark.parametrize(("name", "hint"), [("hill_climb", "installed: "), ("clasic", "did you mean classic?")])
def test_an_algorithm_that_nobody_has_installed_is_refused(name: str, hint: str, tmp_path: Path) -> None:
    """Where it was written, with the nearest or those there are; not with those that begin no training."""
    file = tmp_path / "config.yaml"
    file.write_text(f"_base_: {demo_config()}\ntrain: {{algorithm: {name}}}\n")
    splits = open_environment(load_config(None)).load()
    [why] = refusals(load_config(file), splits)
    assert why.message.startswith(f"{file}: train.algorithm is '{name}', and no installed package")
    assert "classic" in why.hint
    assert why.hint.startswith(hint)
    assert not {"evaluation", "imported"} & set(re.findall(r"\w+", why.hint))


def test_what_the_command_says_of_the_demo_waits_until_it_has_begun(tmp_path: Path) -> None:
    """A run that is refused was no demo."""
    done = command("run", "--set", "train.algorithm=clasic", cwd=tmp_path)
    assert (done.code, done.err.splitlines()[0][:6]) == (2, "error:"), done.err


def test_the_checks_of_the_page_run_as_they_stand(tmp_path: Path) -> None:
    """With nothing but the reader's own config to add."""
    [code] = re.findall(r"```python\n((?:(?!```).)*AlgorithmCase.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {"my_small_config": lambda folder: demo_config()}
    exec(code, names)
    assert names["CASE"].algorithm(tmp_path) is CLASSIC
    assert names["test_it_is_an_algorithm"].pytestmark[0].args == ("name", ALGORITHM_CHECKS)


def test_the_command_trains_and_reads_it(
    leave_out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed package is all it takes; what reads runs reads this one, too."""
    env = environment(PYTHONPATH=str(leave_out))
    (tmp_path / "SKILL.md").write_text("# Front desk\n\nFind the value.\n\nBe brief.\n")
    (tmp_path / "config.yaml").write_text(
        "model: {backend: simulated, optimizer: o, target: t}\n"
        "train: {algorithm: leave_out, num_epochs: 3}\n"
        "env: {name: tasks, data_path: tasks.jsonl, split_mode: field, skill_init: SKILL.md}\n"
    )
    rows = [(split, number) for split in ("train", "val", "test") for number in range(2)]
    (tmp_path / "tasks.jsonl").write_text(
        "".join(
            f'{{"id": "{split}-{number}", "split": "{split}", "input": "Which value?", "expected": "7"}}\n'
            for split, number in rows
        )
    )
    done = command("run", "config.yaml", "--run", "mine", cwd=tmp_path, env=env)
    assert (done.code, "steps       0 accepted, 3 rejected, 0 skipped" in done.out) == (0, True), (done.out, done.err)
    monkeypatch.chdir(tmp_path)
    read = called(capsys)
    for words, wanted in (
        (("status", "mine"), "step 3 of 3"),
        (("replay", "mine", "--check"), "ok: 12 decisions derived again"),
        (("explain", "mine", "step", "2"), "step 2: reject"),
        (("lineage", "mine"), "step 1"),
        (("regate", "mine", "--set", "evaluation.gate_rule=paired"), "all 4 are as recorded"),
        (("log", "mine"), "CandidateBuilt"),
        (("estimate", "config.yaml"), "gate"),
        (("verify", "mine"), "mine"),
    ):
        said = read(*words)
        assert (said.code, wanted in said.out) == (0, True), (words, said.out, said.err)
