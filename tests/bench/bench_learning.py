"""
How much a trainer learns per call: sealed test score of the text that would ship, over calls and over tokens.

    pip install gepa==0.1.4    # only for the comparison with it; nothing else here needs it
    python tests/bench/bench_learning.py [--worlds rules,flaky] [--algorithms classic,gepa] [--seeds 10] [--jobs 2]
                                         [--json FILE] [--svg FILE] [--ablate]

All algorithms get the same simulated target and optimizer, items and seeds (docs/learning.md says what the worlds are).
Each call of either counts; a test score is computed from the rules of the world and costs none. Tokens are
characters / 4 of what is sent and what comes back. No network, no waiting. Any name of `train.algorithm` is a
algorithm, and so is one with settings: `classic:optimizer.learning_rate=8:gradient.failure_only=true`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from multiprocessing import Pool
from pathlib import Path

from attrs import asdict, define, field

sys.path.insert(0, str(Path(__file__).resolve().parent))

from learning_curves import Curve, Moment, Outcome, summary, table
from learning_picture import picture
from worlds.language import Item, right_share
from worlds.made import EVERY, HELD_OUT, WORLDS, World
from worlds.optimizer import Optimizer
from worlds.target import Target

import skillopt_es as so
from skillopt_es.engine.algorithms import fold

PRESETS: Mapping[str, Mapping[str, object]] = {
    "classic": {},
    "safe": {"_base_": "safe"},
}
"""Algorithms of ours that are told by more than their name."""

ALONE = "search:search.examples=off"
LEVERS = (
    "search.rounds=1",
    "search.draw_again=false",
    "evaluation.gate_rule=not_worse",
    "search.together=0",
    "search.prune=false",
    "search.anew=0",
    "search.backlog=false",
    "search.beside=0",
    "search.first_batch=24",
    "search.first_gates=0",
)
ABLATED = ("search", ALONE, *(f"{ALONE}:{lever}" for lever in LEVERS))
"""The search, without worked examples (no target here can follow them), and then with one more of its levers off."""


@define
class Meter:
    """What was sent to the two models, and when another text became the one that would ship."""

    world: World
    calls: int = 0
    tokens: int = 0
    moments: list[Moment] = field(factory=list)
    _text: str | None = None

    def paid(self, *texts: str, calls: int = 1) -> None:
        """Calls with these texts, there and back."""
        self.calls += calls
        self.tokens += sum(map(len, texts)) // 4

    def ships(self, text: str) -> None:
        """This text is the best from now on."""
        if text != self._text:
            self._text = text
            self.moments.append(Moment(self.calls, self.tokens, self.world.score(text)))

    def curve(self, algorithm: str, seed: int) -> Curve:
        """All of it."""
        return Curve(algorithm, seed, tuple(self.moments), self.calls, self.tokens)


def grade(said: str, item: Mapping[str, object]) -> Mapping[str, object]:
    """The grade of an answer."""
    share = right_share(said, str(item["expected"]))
    return {"hard": int(share == 1), "soft": share}


def ours(algorithm: str, world: World, seed: int) -> Curve:
    """A run of the real engine, with functions as models."""
    target, optimizer = Target(world), Optimizer(world)
    sent: defaultdict[str, list[str]] = defaultdict(list)

    def follow(request: so.ChatRequest) -> str:
        skill, question = request.messages[0].content, request.messages[-1].content
        reply = target(skill, question)
        sent[request.slot].append(skill + question + reply)
        return reply

    def teach(request: so.ChatRequest) -> str:
        text = "\n\n".join(message.content for message in request.messages)
        reply = optimizer(text)
        sent[request.slot].append(text + reply)
        return reply

    name, *settings = algorithm.split(":")
    with tempfile.TemporaryDirectory() as folder:
        trained = so.train(
            _config(name, world, seed, Path(folder)),
            settings=settings,
            name="run",
            runs=folder,
            target=so.ChatFunction(follow),
            optimizer=teach,
            grader=grade,
        )
        return _as_logged(trained, sent, Meter(world)).curve(algorithm, seed)


def _as_logged(trained: so.Run, sent: dict[str, list[str]], meter: Meter) -> Meter:
    """
    A run in the order of its log: each call counts with the event that came of it.

    By the clock a few calls of what comes next are answered before an event is durable, and no two runs would be alike.
    """
    meter.ships(meter.world.start)
    state = None
    for recorded in trained.events():
        for call in getattr(recorded.event, "calls", ()):
            texts = sent.pop(call.slot, [])
            meter.paid(*texts, calls=len(texts))
        state = fold([recorded.event], state)
        if state.best is not None:
            meter.ships(state.best.skill.text)
    for texts in sent.values():  # in flight when the budget was reached
        meter.paid(*texts, calls=len(texts))
    return meter


def _config(algorithm: str, world: World, seed: int, folder: Path) -> dict[str, object]:
    """Defaults, and what a world needs: enough epochs that calls run out first, and the soft metric for soft scores."""
    rows = [_row(split, item) for split in ("train", "val") for item in getattr(world, split)]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (folder / "SKILL.md").write_text(world.start, encoding="utf-8")
    return {
        **PRESETS.get(algorithm, {}),
        "env": {
            "name": "tasks",
            "data_path": str(folder / "tasks.jsonl"),
            "skill_init": str(folder / "SKILL.md"),
            "split_mode": "field",
        },
        "train": {"seed": seed, "num_epochs": 40, **({} if algorithm in PRESETS else {"algorithm": algorithm})},
        "evaluation": {"eval_test": False, **({"gate_metric": "soft"} if world.soft else {})},
        "budget": {"max_calls": world.budgets[-1]},
    }


def _row(split: str, item: Item) -> dict[str, str]:
    row = {"id": item.id, "input": item.question, "expected": item.expected, "split": split}
    return {**row, "type": item.type} if item.type else row


def gepa(algorithm: str, world: World, seed: int) -> Curve:
    """A run of GEPA with its defaults, by its own adapter for a task with one system prompt."""
    from gepa import optimize
    from gepa.adapters.default_adapter.default_adapter import DefaultAdapter, EvaluationResult

    meter, target, optimizer = Meter(world), Target(world), Optimizer(world)
    meter.ships(world.start)

    def follow(messages: Sequence[Mapping[str, str]]) -> str:
        skill, question = messages[0]["content"], messages[-1]["content"]
        reply = target(skill, question)
        meter.paid(skill, question, reply)
        return reply

    def teach(prompt: str) -> str:
        reply = optimizer(prompt)
        meter.paid(prompt, reply)
        return reply

    def judge(data: Mapping[str, str], response: str) -> EvaluationResult:
        share, expected = right_share(response, data["answer"]), data["answer"]
        if share == 1:
            return EvaluationResult(share, f"The generated response is correct. It is the correct answer '{expected}'")
        return EvaluationResult(share, f"The generated response is incorrect. The correct answer is '{expected}'.")

    class Shipped:
        def on_valset_evaluated(self, event: Mapping[str, object]) -> None:
            if event["is_best_program"]:
                meter.ships(event["candidate"]["system_prompt"])

    class Silent:
        def log(self, message: str) -> None:
            pass

    optimize(
        seed_candidate={"system_prompt": world.start},
        trainset=[_datum(item) for item in world.train],
        valset=[_datum(item) for item in world.val],
        adapter=DefaultAdapter(model=follow, evaluator=judge),
        reflection_lm=teach,
        stop_callbacks=lambda state: meter.calls >= world.budgets[-1],
        callbacks=[Shipped()],
        logger=Silent(),
        seed=seed,
    )
    return meter.curve(algorithm, seed)


def _datum(item: Item) -> dict[str, object]:
    return {"input": item.question, "additional_context": {}, "answer": item.expected}


def run(job: tuple[str, str, int]) -> Curve:
    """One run: world, algorithm, seed."""
    world, algorithm, seed = job
    return (gepa if algorithm == "gepa" else ours)(algorithm, EVERY[world](seed), seed)


def measured(world: str, algorithms: Sequence[str], seeds: Sequence[int], mapped: Callable = map) -> Outcome:
    """A world under each algorithm, over all seeds; floor and ceiling are means over the same seeds."""
    jobs = [(world, algorithm, seed) for algorithm in algorithms for seed in seeds]
    curves: dict[str, list[Curve]] = {algorithm: [] for algorithm in algorithms}
    for curve in mapped(run, jobs):
        curves[curve.algorithm].append(curve)
    made = [EVERY[world](seed) for seed in seeds]
    return Outcome(
        world,
        floor=statistics.mean(each.floor for each in made),
        ceiling=statistics.mean(each.ceiling for each in made),
        plain=statistics.mean(each.plain for each in made),
        budgets=made[0].budgets,
        curves=curves,
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--worlds",
        default=",".join(WORLDS),
        help=f"with commas; by default {', '.join(WORLDS)}; held-out: {', '.join(HELD_OUT)}",
    )
    parser.add_argument(
        "--algorithms", default="classic,gepa", help="gepa, safe, or names of train.algorithm; NAME:key=value sets keys"
    )
    parser.add_argument("--ablate", action="store_true", help="the search, and each of its levers off")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")
    parser.add_argument("--json", type=Path, help="a file for all curves")
    parser.add_argument("--svg", type=Path, help="a file for the picture")
    return parser.parse_args()


def main() -> None:
    """Prints a table for each world."""
    options = _options()
    algorithms = list(ABLATED) if options.ablate else options.algorithms.split(",")
    if "gepa" in algorithms and find_spec("gepa") is None:
        print("gepa is not installed, so it is left out: pip install gepa==0.1.4\n")
        algorithms.remove("gepa")
    outcomes = []
    with Pool(options.jobs) as pool:
        for world in options.worlds.replace("held-out", ",".join(HELD_OUT)).split(","):
            outcome = measured(world, algorithms, range(1, options.seeds + 1), pool.imap)
            outcomes.append(outcome)
            known = f"floor {outcome.floor:.3f}, ceiling {outcome.ceiling:.3f}, plain {outcome.plain:.3f}"
            print(f"{world}: {known}; {options.seeds} seeds\n")
            print(table(outcome), end="\n\n", flush=True)
    if len(outcomes) > 1:
        print(summary(outcomes))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1), encoding="utf-8")
    if options.svg is not None:
        options.svg.write_text(picture(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main()
