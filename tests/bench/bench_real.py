"""
What trainers learn with a real model: test score of eight small tasks after so many calls (docs/real-model.md).

    python tests/bench/bench_real.py --endpoint http://127.0.0.1:8080/v1 [--model NAME] [--tasks login,policy]
                                     [--algorithms search,classic,gepa] [--calls 150] [--seed 1] [--cache FILE]

The endpoint speaks OpenAI's chat completions; it is target and optimizer of all algorithms, at temperature 0. Each call
of either counts, whether the cache answers it or not; the scores on validation and test are made afterwards and count
for nobody. `gepa` wants `pip install gepa==0.1.4`. NAME:key=value sets keys of an algorithm of ours.
`alone` is `search` with an optimizer that never has an idea: what it reaches by itself.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

from attrs import define, field

sys.path.insert(0, str(Path(__file__).resolve().parent))

from real_tasks.made import MAKERS, START, Task, made
from real_tasks.office import OFFICE

import skillopt_es as so

MOST_TOKENS = {"target": 120, "optimizer": 700}


@define
class Model:
    """An endpoint with a cache: at temperature 0 the same request has the same answer, now and in the next run."""

    endpoint: str
    name: str
    cache: Path
    calls: int = 0
    _lock: Lock = field(factory=Lock)

    def __attrs_post_init__(self) -> None:
        with sqlite3.connect(self.cache) as file:
            file.execute("CREATE TABLE IF NOT EXISTS said (asked TEXT PRIMARY KEY, answer TEXT)")

    def __call__(
        self, role: str, messages: Sequence[Mapping[str, str]], schema: Mapping[str, object] | None = None
    ) -> str:
        """The answer; one more call."""
        with self._lock:
            self.calls += 1
        body: dict[str, object] = {
            "model": self.name,
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": MOST_TOKENS[role],
        }
        if schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
        asked = sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        with sqlite3.connect(self.cache, timeout=60) as file:
            found = file.execute("SELECT answer FROM said WHERE asked = ?", (asked,)).fetchone()
        if found is not None:
            return str(found[0])
        answer = self._sent(body)
        with sqlite3.connect(self.cache, timeout=60) as file:
            file.execute("INSERT OR REPLACE INTO said VALUES (?, ?)", (asked, answer))
        return answer

    def _sent(self, body: Mapping[str, object]) -> str:
        request = urllib.request.Request(
            f"{self.endpoint.rstrip('/')}/chat/completions",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=3_600) as response:
            return str(json.load(response)["choices"][0]["message"]["content"] or "")


def follow(model: Model, skill: str, messages: Sequence[tuple[str, str]]) -> str:
    """The target's answer under a skill."""
    return model("target", [{"role": "system", "content": skill}, *({"role": r, "content": t} for r, t in messages)])


def ours(algorithm: str, task: Task, model: Model, options: argparse.Namespace) -> str:
    """The skill that a run of the real engine ships."""
    name, *settings = algorithm.split(":")
    alone = name == "alone"

    def target(request: so.ChatRequest) -> str:
        return model("target", [{"role": each.role, "content": each.content} for each in request.messages])

    def optimizer(request: so.ChatRequest) -> str:
        if alone:
            model.calls += 1
            return json.dumps({"reasoning": "", "edits": []})
        told = [{"role": each.role, "content": each.content} for each in request.messages]
        return model("optimizer", told, request.schema)

    def grader(answer: str, item: Mapping[str, object]) -> Mapping[str, object]:
        hard, soft = task.grade(answer, str(item["expected"]))
        return {"hard": int(hard), "soft": soft}

    with tempfile.TemporaryDirectory() as made_here:
        folder = (
            Path(made_here) if options.keep is None else options.keep / f"{task.name}-{algorithm.replace(':', '-')}"
        )
        folder.mkdir(parents=True, exist_ok=True)
        rows = [
            {
                "id": row.id,
                "split": row.split,
                "expected": row.expected,
                "messages": [{"role": role, "content": text} for role, text in row.messages],
            }
            for row in task.rows
        ]
        (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        (folder / "SKILL.md").write_text(START + "\n", encoding="utf-8")
        config = {
            "env": {
                "name": "tasks",
                "data_path": str(folder / "tasks.jsonl"),
                "skill_init": str(folder / "SKILL.md"),
                "split_mode": "field",
                "workers": 2,
            },
            "train": {"algorithm": "search" if alone else name, "seed": options.seed, "num_epochs": 40},
            "evaluation": {"eval_test": False, **({"gate_metric": "soft"} if task.soft else {})},
            "budget": {"max_calls": options.calls},
            "model": {"timeout_seconds": 3_600.0},  # a crowded machine is no failure of a model
        }
        run = so.train(
            config,
            settings=settings,
            name="run",
            runs=folder,
            target=so.ChatFunction(target),
            optimizer=optimizer,
            grader=grader,
        )
        return run.skill("best").text


def gepa(task: Task, model: Model, options: argparse.Namespace) -> str:
    """The prompt that GEPA ends with, by its defaults and its own adapter for a task with one system prompt."""
    from gepa import optimize
    from gepa.adapters.default_adapter.default_adapter import DefaultAdapter, EvaluationResult

    def target(messages: Sequence[Mapping[str, str]]) -> str:
        asked = json.loads(messages[-1]["content"]) if task.name == "episode" else None
        told = [(role, text) for role, text in asked] if asked else [("user", messages[-1]["content"])]
        return follow(model, messages[0]["content"], told)

    def judge(data: Mapping[str, str], response: str) -> EvaluationResult:
        hard, soft = task.grade(response, data["answer"])
        said = "correct. It is" if hard else "incorrect. The correct answer is"
        return EvaluationResult(soft, f"The generated response is {said} '{data['answer']}'.")

    class Silent:
        def log(self, message: str) -> None:
            pass

    def data(split: str) -> list[dict[str, object]]:
        asked = {
            row.id: json.dumps(row.messages) if task.name == "episode" else row.messages[0][1]
            for row in task.split(split)
        }
        return [{"input": asked[row.id], "additional_context": {}, "answer": row.expected} for row in task.split(split)]

    found = optimize(
        seed_candidate={"system_prompt": START},
        trainset=data("train"),
        valset=data("val"),
        adapter=DefaultAdapter(model=target, evaluator=judge),
        reflection_lm=lambda prompt: model("optimizer", [{"role": "user", "content": prompt}]),
        stop_callbacks=lambda state: model.calls >= options.calls,
        logger=Silent(),
        seed=options.seed,
    )
    best: Mapping[str, str] = found.best_candidate
    return best["system_prompt"]


def pasted(task: Task, model: Model, options: argparse.Namespace) -> str:
    """Six training items with their answers below the starting line: what costs no call at all."""
    shown = [f"{row.messages[-1][1]}\n{row.expected}" for row in task.split("train")[:6]]
    return "\n\n".join([START, "Examples:", *shown])


def scored(task: Task, model: Model, skill: str, split: str) -> float:
    """The mean hard score of a skill on a split; soft where the task is."""
    rows = task.split(split)
    grades = [task.grade(follow(model, skill, row.messages), row.expected) for row in rows]
    return sum(soft if task.soft else hard for hard, soft in grades) / len(rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", required=True, help="the address that ends in /v1")
    parser.add_argument("--model", default="model")
    parser.add_argument(
        "--tasks",
        default=",".join(MAKERS),
        help=f"with commas; by default {', '.join(MAKERS)}; office: {', '.join(OFFICE)}",
    )
    parser.add_argument(
        "--algorithms", default="search,classic,gepa", help="gepa, pasted, start, or names of train.algorithm"
    )
    parser.add_argument("--calls", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "bench-real.sqlite")
    parser.add_argument("--keep", type=Path, help="a folder in which runs and skills stay")
    parser.add_argument("--json", type=Path, help="a file for all results")
    return parser.parse_args()


def measured(algorithm: str, task: Task, options: argparse.Namespace) -> dict[str, object]:
    """One cell of the table."""
    began, model = time.monotonic(), Model(options.endpoint, options.model, options.cache)
    if algorithm == "start":
        skill = START
    elif algorithm == "pasted":
        skill = pasted(task, model, options)
    else:
        skill = gepa(task, model, options) if algorithm == "gepa" else ours(algorithm, task, model, options)
    calls = model.calls
    return {
        "task": task.name,
        "nature": task.nature,
        "algorithm": algorithm,
        "calls": calls,
        "validation": scored(task, model, skill, "val"),
        "test": scored(task, model, skill, "test"),
        "seconds": round(time.monotonic() - began),
        "skill": skill,
    }


def main() -> None:
    """Prints a line for each cell as it comes, then the means."""
    options = _options()
    algorithms = options.algorithms.split(",")
    if "gepa" in algorithms and find_spec("gepa") is None:
        print("gepa is not installed, so it is left out: pip install gepa==0.1.4\n")
        algorithms.remove("gepa")
    print("| task | algorithm | calls | validation | test |\n| --- | --- | --- | --- | --- |", flush=True)
    cells = []
    for name in options.tasks.replace("office", ",".join(OFFICE)).split(","):
        for algorithm in algorithms:
            cell = measured(algorithm, made(name, makers={**MAKERS, **OFFICE}), options)
            cells.append(cell)
            told = f"{cell['validation']:.2f} | {cell['test']:.2f}"
            print(f"| {cell['task']} | {algorithm} | {cell['calls']} | {told} |", flush=True)
            if options.json is not None:
                options.json.write_text(json.dumps(cells, indent=1), encoding="utf-8")
    print()
    for algorithm in algorithms:
        tests = [float(str(cell["test"])) for cell in cells if cell["algorithm"] == algorithm]
        print(f"{algorithm}: mean test {sum(tests) / len(tests):.2f} over {len(tests)} tasks")


if __name__ == "__main__":
    main()
