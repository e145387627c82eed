"""The functions of the door take the same things, in the same shape, and say so."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import skillopt_es as so
from skillopt_es.door.given import Handed
from skillopt_es.door.offered import in_python
from skillopt_es.door.work import Watched
from skillopt_es.events.values import Json

NAMES = ("train", "train_on", "resume", "evaluate")
CONFIG: Mapping[str, Json] = {
    "env": {"grader": "exact"},
    "train": {"num_epochs": 1, "batch_size": 4},
    "optimizer": {"use_slow_update": False, "use_meta_skill": False},
}
TASKS = [{"id": f"t{number}", "input": f"say {number}", "expected": str(number)} for number in range(12)]


def knows(task: so.AgentTask) -> str:
    """A target that says the number once the skill asks for numbers."""
    return task.task.split()[-1] if "number" in task.skill.text else "?"


def teaches(request: so.ChatRequest) -> str:
    """An optimizer that has one idea."""
    edit = {"op": "append", "content": "Say the number."}
    return json.dumps({"reasoning": "numbers are missing", "edits": [edit], "patch": {"edits": [edit]}})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the work is done."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def parameters(name: str) -> list[inspect.Parameter]:
    """What a function takes."""
    return list(inspect.signature(getattr(so, name)).parameters.values())


def takes(name: str) -> dict[str, object]:
    """The parameters that are handed over, with their types."""
    return {each.name: each.annotation for each in parameters(name) if each.name in Watched.__annotations__}


# --- what the functions take ----------------------------------------------------------------------------------------


def test_all_functions_take_the_same_things() -> None:
    """A parameter that one of them has and another lacks could not be passed on."""
    assert [takes(name) for name in NAMES] == [takes("train")] * len(NAMES)
    assert list(takes("train")) == list(Watched.__annotations__)
    assert list(takes("estimate")) == list(Handed.__annotations__)
    assert takes("estimate").items() <= takes("train").items()


@pytest.mark.parametrize("name", [*NAMES, "estimate"])
def test_a_twin_takes_what_its_function_takes(name: str) -> None:
    """And says the same of itself; one waits, the other is awaited."""
    own, twin = getattr(so, name), getattr(so, f"a{name}")
    assert parameters(name) == parameters(f"a{name}")
    assert inspect.getdoc(own) == inspect.getdoc(twin)
    assert (own.__name__, twin.__name__) == (name, f"a{name}")
    assert inspect.iscoroutinefunction(twin)
    assert not inspect.iscoroutinefunction(own)


@pytest.mark.parametrize("name", [*NAMES, "estimate"])
def test_the_help_names_every_argument_and_no_object(name: str) -> None:
    """A signature with an address in memory cannot be read."""
    text = str(inspect.signature(getattr(so, name)))
    assert "<" not in text
    assert "'Target" not in text
    assert "target: Target | None = None" in text
    described = inspect.getdoc(getattr(so, name)) or ""
    assert [each.name for each in parameters(name) if each.name not in described] == []


@pytest.mark.parametrize("name", [*NAMES, "estimate"])
def test_an_unknown_argument_is_refused(name: str) -> None:
    """As any function does."""
    with pytest.raises(TypeError, match="'tsaks'"):
        getattr(so, name)("own", tsaks=[])
    with pytest.raises(TypeError, match="'tsaks'"):
        asyncio.run(getattr(so, f"a{name}")("own", tsaks=[]))


@pytest.mark.slow
def test_a_script_of_a_user_is_typed(folder: Path) -> None:
    """With `mypy --strict`: the right one passes, and a wrong argument is found."""
    root = Path(__file__).parents[2]
    package = folder / "links" / "skillopt_es"
    package.mkdir(parents=True)
    parts = [
        *(root / "skillopt_es").iterdir(),
        *(root / name for name in ("events", "projections", "adapters", "configs")),
    ]
    for part in parts:
        (package / part.name).symlink_to(part)
    script = folder / "script.py"
    script.write_text(
        "import skillopt_es as so\n"
        "def agent(task: so.AgentTask) -> str:\n"
        "    return task.task\n"
        "run: so.Run = so.train({}, tasks=[{'id': 'a'}], target=agent, progress=False, watch=so.Watch())\n"
        "score: so.Score | None = so.evaluate(run, run=run, splits=['test'], target=agent).results[0].score\n"
        "async def main() -> so.Run:\n"
        "    return await so.aresume(run, target=agent)\n"
        "so.train(target=3)\n"
        "so.train(tsaks=[])\n",
        encoding="utf-8",
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), str(script)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MYPYPATH": str(folder / "links")},
    )
    own = [line for line in checked.stdout.splitlines() if line.startswith("script.py:")]
    assert [line.split(":")[1] for line in own] == ["8", "9"], checked.stdout


# --- tasks in memory ------------------------------------------------------------------------------------------------


def test_tasks_in_memory_are_kept_with_the_runs(folder: Path) -> None:
    """The run can be resumed, estimated, scored and continued without them, and the same tasks are kept once."""
    handed: dict[str, Any] = {"target": knows, "optimizer": teaches}
    assert so.estimate(CONFIG, tasks=TASKS, **handed).calls.low > 0
    assert not (folder / "runs").exists()  # an estimate leaves nothing behind
    seen = 0

    def first_calls(task: so.AgentTask) -> str:
        nonlocal seen
        seen += 1
        return knows(task)

    with pytest.raises(so.Interrupted):
        so.train(
            CONFIG,
            name="own",
            tasks=TASKS,
            target=first_calls,
            optimizer=teaches,
            watch=so.Watch(stopping=lambda: seen > 0),
        )
    run = so.resume("own", target=first_calls, optimizer=teaches)
    assert run.status == "completed"
    again = so.train(CONFIG, name="again", tasks=TASKS, **handed)
    [kept] = (folder / "runs" / "_tasks").iterdir()
    assert [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()] == TASKS
    assert run.state().started.splits == again.state().started.splits  # type: ignore[union-attr]
    kept.unlink()
    with pytest.raises(so.DataError, match="there is no file"):
        so.evaluate(again, target=knows)
    assert so.train_on(again, tasks=TASKS, judge=teaches, **handed).status == "completed"  # they are put back
    assert kept.exists()
    with pytest.raises(so.DataError, match="not those the run started with"):
        so.train_on(again, tasks=TASKS[1:], **handed)
    assert [result.score for result in so.evaluate(again, target=knows).results if result.split == "test"] == [
        again.test_score()
    ]


def test_tasks_may_be_split_already(folder: Path) -> None:
    """Each list is a split of its own."""
    splits = {"train": TASKS[:4], "val": TASKS[4:8], "test": TASKS[8:]}
    run = so.train(CONFIG, name="own", tasks=splits, target=knows, optimizer=teaches)
    started = run.state().started
    assert started is not None
    assert {name: list(getattr(started.splits, name)) for name in splits} == {
        name: [task["id"] for task in tasks] for name, tasks in splits.items()
    }


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ([{"input": "x"}], r"tasks\[0\] has no `id`"),
        ([{"id": "a"}, 3], r"tasks\[1\] is 3, but must be a dict"),
        ([{"id": "a", "when": object()}], r"tasks\[0\] is not JSON"),
        ("tasks.jsonl", "must be a list of dicts"),
        ([], "tasks is empty"),
        ({"train": [], "dev": []}, "tasks has a split 'dev'"),
    ],
)
def test_what_is_no_list_of_tasks_is_refused(tasks: Any, said: str) -> None:
    """Before anything is asked, with the place in the list."""
    with pytest.raises(so.DataError, match=said):
        so.train(CONFIG, tasks=tasks, target=knows, optimizer=teaches)


@pytest.mark.parametrize(
    ("config", "handed"),
    [(CONFIG, {"target": 3}), (CONFIG, {"grader": "exact"}), ({**CONFIG, "train": {"num_epoch": 1}}, {})],
)
def test_a_call_that_is_rejected_keeps_no_tasks(folder: Path, config: dict[str, Any], handed: dict[str, Any]) -> None:
    """Neither for a wrong argument nor for a wrong config."""
    with pytest.raises(so.ConfigError):
        so.train(config, tasks=TASKS, **{"target": knows, "optimizer": teaches, **handed})
    assert not (folder / "runs").exists()


def test_few_validation_tasks_are_a_warning(folder: Path) -> None:
    """A script has no `doctor` that says it."""
    heard: list[str] = []
    so.train(CONFIG, tasks=TASKS, target=knows, optimizer=teaches, name="few", watch=so.Watch(warn=heard.append))
    assert [said for said in heard if "fewer than 20 show large gains and losses only" in said]


# --- scoring --------------------------------------------------------------------------------------------------------


def test_functions_are_scored_without_an_optimizer() -> None:
    """An evaluation asks the target alone."""
    run = so.train(CONFIG, name="own", tasks=TASKS, target=knows, optimizer=teaches)
    [result] = so.evaluate(run.skill(), CONFIG, tasks=TASKS, splits=["test"], target=knows).results
    assert result.score == run.test_score()


def test_a_skill_is_scored_on_the_tasks_of_its_run() -> None:
    """A run alone is its best skill; without tasks nothing can be scored."""
    run = so.train(CONFIG, name="own", tasks=TASKS, target=knows, optimizer=teaches)
    for found in (
        so.evaluate(run, target=knows),
        so.evaluate(run=run, target=knows),
        so.evaluate(run="own", target=knows),
    ):
        assert [result.score for result in found.results if result.split == "test"] == [run.test_score()]
    [initial] = so.evaluate(run.skill("initial"), run=run, splits=["test"], target=knows).results
    assert initial.score == run.test_score("initial")
    with pytest.raises(so.ConfigError, match="nothing says on which tasks") as refused:
        so.evaluate(run.skill(), target=knows)
    assert "`run=`" in refused.value.hint
    with pytest.raises(so.ConfigError, match="both `config` and `run`"):
        so.evaluate(run.skill(), CONFIG, run=run, target=knows)


def test_what_could_not_be_measured_has_no_score() -> None:
    """And says why."""

    def absent(task: so.AgentTask) -> str:
        raise OSError("no network")

    [result] = so.evaluate(None, CONFIG, tasks=TASKS, splits=["test"], target=absent).results
    assert result.score is None
    assert (result.measured, result.unmeasured) == (0, len(result.rows))
    assert "could not be measured" in result.problem


@pytest.mark.parametrize("wrong", [3, ["x"], {}])
def test_what_is_no_skill_and_no_run_is_refused(wrong: Any) -> None:
    """With an error of ours."""
    with pytest.raises(so.ConfigError, match="must be a SkillTree, a Run or"):
        so.evaluate(wrong, CONFIG, tasks=TASKS, target=knows)
    with pytest.raises(so.ConfigError, match="must be a Run, its folder or its name"):
        so.resume(wrong)


# --- one shape for a function ---------------------------------------------------------------------------------------


def test_a_function_gets_the_same_wherever_it_is_named(folder: Path) -> None:
    """Handed over or named in a config, an agent gets one `AgentTask` and may return its steps."""
    (folder / "agents.py").write_text(
        "def answer(task):\n"
        "    step = {'tool': 'split', 'input': task.task, 'output': task.instructions}\n"
        "    return {'answer': task.task.split()[-1], 'steps': [step], 'usage': {'input': 3, 'output': 1}}\n",
        encoding="utf-8",
    )
    names: dict[str, Callable[[so.AgentTask], object]] = {}
    exec((folder / "agents.py").read_text(encoding="utf-8"), names)
    named = {**CONFIG, "model": {"target_backend": "python:agents.py:answer"}}
    ways: list[dict[str, Any]] = [{"config": named}, {"config": CONFIG, "target": names["answer"]}]
    evaluated = [so.evaluate(tasks=TASKS, splits=["test"], **way).results[0] for way in ways]
    first, second = ({row.item: (row.outcome, row.trajectory) for row in each.rows} for each in evaluated)
    assert first == second  # the same steps have the same digest
    assert evaluated[0].usage.input.known == 3 * len(first)


def test_a_function_may_be_asked_as_a_chat_model() -> None:
    """By another name: it gets every message of a request."""

    def model(request: so.ChatRequest) -> str:
        return request.messages[-1].content.split()[-1] if "number" in request.messages[0].content else "?"

    run = so.train(CONFIG, name="own", tasks=TASKS, target=so.ChatFunction(model, name="mine"), optimizer=teaches)
    assert run.status == "completed"
    started = run.state().started
    assert started is not None
    assert "mine" in json.dumps(started.config["model"])
    with pytest.raises(so.ConfigError, match="function is 3"):
        so.ChatFunction(3)  # type: ignore[arg-type]


# --- words ----------------------------------------------------------------------------------------------------------


def test_errors_say_what_to_pass() -> None:
    """A caller from Python has no options; what is typed in a terminal stays a command."""
    with pytest.raises(so.ConfigError) as refused:
        so.train(CONFIG, tasks=TASKS)
    assert "--set" not in refused.value.hint
    assert 'settings={"model.optimizer": "NAME"}' in refused.value.hint
    with pytest.raises(so.ConfigError, match="`name=` a b: a run's name"):
        so.train(CONFIG, name="a b", tasks=TASKS, target=knows, optimizer=teaches)
    assert in_python("or `--set train.train_size=20`") == 'or settings={"train.train_size": 20}'
    command = "`skillopt-es continue own --set train.num_epochs=…` trains on"
    assert in_python(command) == command
