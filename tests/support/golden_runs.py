"""
The small runs that golden logs are made of: each meets as much as it can of what its algorithm does.

Models answer from the request alone, and what is flaky is drawn by the place of the call: a run made anew is the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from skillopt_es.adapters.models.function import FunctionModel
from skillopt_es.config import RunConfig
from skillopt_es.config.layers import config_of
from skillopt_es.events.values import Role, SkillTree
from skillopt_es.interchange.folder import read_folder
from skillopt_es.interchange.imported_run import imported_run, write_run
from skillopt_es.ports import ChatModel, ChatReply, ChatRequest
from skillopt_es.sessions.evaluation import EvaluationRequest, evaluate
from skillopt_es.sessions.opening import open_environment
from skillopt_es.sessions.session import resume, start
from skillopt_es.sessions.wiring import Session, World
from support import skill_world
from support.original_runs import unpacked
from support.scripted import NOON, ScriptedEnvironment, ScriptedWorld, chance, config, unreachable
from support.skill_world import Answer


@frozen
class GoldenRun:
    """A run to be made: its config, with its data in a folder, and its sessions; the first starts it, others go on."""

    config: Callable[[Path], RunConfig]
    sessions: Sequence[Callable[[], Session]]


def _classic() -> GoldenRun:
    options = ["train.num_epochs=2", "train.accumulation=2", "optimizer.slow_update_gate_with_selection=true"]
    return GoldenRun(
        config=lambda folder: config(folder, options),
        sessions=[ScriptedWorld(environment=ScriptedEnvironment(train=16, val=6, test=3)).session],
    )


def _of_tasks(
    target: Answer,
    optimizer: Answer,
    rows: Sequence[Mapping[str, str]],
    settings: Mapping[str, Mapping[str, object]],
    *,
    outage: str,
) -> GoldenRun:
    """A run over these tasks; where its slots begin so, the optimizer is away until the run is resumed."""

    def configured(folder: Path) -> RunConfig:
        (folder / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        env = {"name": "tasks", "data_path": "tasks.jsonl", "split_mode": "field", "grader": "exact"}
        return config_of({"env": env, "model": {"target": "t", "optimizer": "o"}, **settings}, folder)

    def session(optimizer: Answer) -> Session:
        def model(config: RunConfig, role: Role) -> ChatModel:
            function = target if role == "target" else optimizer
            return FunctionModel(function=function, name=role, timeout_seconds=30, clock=lambda: 0.0)

        world = World(model=model, environment=open_environment)
        return Session(now=lambda: NOON, clock=lambda: 0.0, world=world)

    def away(request: ChatRequest) -> str | ChatReply:
        return unreachable(request) if request.slot.startswith(outage) else optimizer(request)

    return GoldenRun(config=configured, sessions=[lambda: session(away), lambda: session(optimizer)])


def _tasks(kinds: Sequence[str], right: Callable[[str, str], str], **many: int) -> list[dict[str, str]]:
    """So many tasks of each split, of all kinds in turn; `right` makes the accepted answer of a kind and a word."""
    rows = []
    for split, count in many.items():
        for number in range(count):
            kind, word = kinds[number % len(kinds)], f"{split}{number}"
            row = {"id": word, "split": split, "type": kind, "input": f"Task {kind} {word}"}
            rows.append({**row, "expected": right(kind, word)})
    return rows


# --- search ----------------------------------------------------------------------------------------------------------

_KINDS = tuple(f"kind{letter}" for letter in "abcdefghij")
_UNKNOWN = _KINDS[-2:]  # the optimizer has no rule for them; the target sees it by itself where it has examples
_FLAKY = ("train3", "train5", "train7", "train12", "train20", "train21", "val3", "val5")
_USELESS, _SILENT = 1, 6  # steps
_NARROW = {(2, "kinda"), (4, "kindd")}  # what is said in a step of a kind is for the failing tasks alone
_SPOILS = {(3, "kindg"): ("kindf", "kindh"), (4, "kindd"): ("kinda", "kindh")}  # and takes these kinds with it
_RULE = re.compile(r"RULE (\w+) (\w+)")
_KNOW = re.compile(r"KNOW (\w+) (\w+)")


def search_target(request: ChatRequest) -> str:
    """Knows what it is told of a word, and else follows the last rule of the kind; some words distract it."""
    text, asked = request.messages[0].content, request.messages[-1].content
    kind, word = asked.split()[-2:]
    if word in _FLAKY and chance(f"{request.slot} {word}") < 0.5:
        return f"{word} distracted"
    rules = dict(_RULE.findall(text))
    if "Worked examples" in text:
        rules |= {kind: kind[::-1] for kind in _UNKNOWN}
    return f"{word} {dict(_KNOW.findall(text)).get(word, rules.get(kind, 'none'))}"


def _failed(request: ChatRequest) -> dict[str, list[str]]:
    """The failing tasks of a question, by kind."""
    failed = request.messages[-1].content.partition("## Failed trajectories")[2]
    found: dict[str, list[str]] = {}
    for item, kind in re.findall(r"item: (\S+)\n.*?Task (kind\w)", failed, re.DOTALL):
        found.setdefault(kind, []).append(item)
    return found


def search_optimizer(request: ChatRequest) -> str:
    """Rules for three failing kinds at most; in some steps what it says is useless, too narrow or harmful."""
    step = int(re.findall(r"^e(\d+)", request.slot)[0])
    if step == _SILENT:
        return "I am at a loss."
    edits = []
    for kind, items in _failed(request).items():
        said = f"RULE {kind} {kind[::-1]}"
        if step == _USELESS or kind in _UNKNOWN:
            said = f"Think hard about {kind}."
        elif (step, kind) in _NARROW:
            said = "\n".join(f"KNOW {item} {kind[::-1]}" for item in items)
        elif step == _USELESS + 1:
            said = f"Mind {kind}.\n{said}"
        said += "".join(f"\nRULE {spoilt} x" for spoilt in _SPOILS.get((step, kind), ()))
        edits.append({"op": "append", "target": "", "content": said, "items": items, "hypothesis": "it has no rule"})
    return json.dumps({"reasoning": "seen", "edits": edits[:3]})


def _search() -> GoldenRun:
    rows = _tasks(_KINDS, lambda kind, word: f"{word} {kind[::-1]}", train=30, val=10, test=2)
    settings: Mapping[str, Mapping[str, object]] = {
        "train": {"algorithm": "search", "batch_size": 8, "patience": 3},
        "search": {"first_batch": 6, "rounds": 2, "first_gates": 4},
        "budget": {"max_calls": 260},
    }
    return _of_tasks(search_target, search_optimizer, rows, settings, outage="e4/")


# --- skills ----------------------------------------------------------------------------------------------------------

_PLAIN = "plain"
_TREES = ("apple", "birch", "cedar", "daisy", _PLAIN)
_SPEECHLESS = 4  # a step
_MANY = 10  # only training tasks have such numbers, and they fall for a description that promises everything


def skills_target(request: ChatRequest) -> str | ChatReply:
    """Opens what names its task's kind and follows the last rule there; plain tasks it solves with nothing open."""
    kind, word = next(each.content for each in request.messages if each.role == "user").split()[-2:]
    have, number = skill_world.opened(request), int(re.sub(r"\D", "", word))
    fitting = [
        name
        for name, said in skill_world.listed(request).items()
        if kind in said or ("everything" in said and number >= _MANY)
    ]
    if fitting and not have:
        return skill_world.view(*fitting)
    if kind == _PLAIN:
        return "distracted" if have else f"{word}-{kind[::-1]}"
    return f"{word}-{dict(_RULE.findall(' '.join(have.values()))).get(kind, 'none')}"


def _edit(op: str, skill: str, **more: str) -> dict[str, str]:
    return {"op": op, "skill": skill, "target": "", "content": "", **more}


def _change(kind: str, skills: Sequence[str], *into: Mapping[str, str]) -> dict[str, object]:
    return {"kind": kind, "skills": [*skills], "into": [{"content": "", **each} for each in into], "why": "it is time"}


_EDITS: Mapping[int, Sequence[Mapping[str, str]]] = {
    1: [
        skill_world.create("apple"),
        skill_world.create("birch"),
        {**skill_world.create("phrases"), "description": "Polite words for letters."},
    ],
    2: [skill_world.create("cedar", "wrong"), skill_world.create("daisy")],
    5: [
        _edit("replace", "cedar-tasks", target="wrong", content="radec"),
        _edit("append", "trees", content="Say it in one word."),
        _edit("replace", "trees", target="hcrib", content="spoilt"),
    ],
}
"""What is proposed in a step; what was not open in a question is left out of the answer."""
_CHANGES: Mapping[int, Sequence[Mapping[str, object]]] = {
    3: [
        _change(
            "merge",
            ["apple-tasks", "birch-tasks"],
            {"name": "trees", "description": "apple and birch.", "content": "RULE apple elppa\nRULE birch hcrib"},
        ),
        _change("retire", ["phrases-tasks"]),
    ],
    6: [
        _change("describe", ["daisy-tasks"], {"name": "daisy-tasks", "description": "daisy and everything."}),
        _change("retire", ["phrases-tasks"]),
    ],
    9: [
        _change(
            "split",
            ["trees"],
            {"name": "apples", "description": "apple.", "content": "RULE apple elppa"},
            {"name": "birches", "description": "birch.", "content": "RULE birch lost"},
        ),
        _change("rename", ["daisy-tasks"], {"name": "flowers", "description": ""}),
    ],
}
"""What is proposed for the folder as a whole at an epoch's end."""


def skills_optimizer(request: ChatRequest) -> str:
    """Says what there is to say in each step, and nothing in the others."""
    step = int(re.findall(r"/s(\d+)", request.slot)[0])
    if step == _SPEECHLESS:
        return "I am at a loss."
    if request.stage == "meta_skill":
        return json.dumps({"reasoning": "seen", "changes": _CHANGES.get(step, [])})
    return json.dumps({"reasoning": "seen", "edits": _EDITS.get(step, [])})


def _skills() -> GoldenRun:
    rows = _tasks(_TREES, lambda kind, word: f"{word}-{kind[::-1]}", train=15, val=_MANY, test=2)
    settings: Mapping[str, Mapping[str, object]] = {
        "train": {"algorithm": "skills", "num_epochs": 3, "batch_size": 8},
        "skills": {"retire_after": 10, "sentinels": 2},
    }
    return _of_tasks(skills_target, skills_optimizer, rows, settings, outage="e1/s2/")


# --- what no algorithm trains ---------------------------------------------------------------------------------------


async def _evaluation(scratch: Path, folder: Path) -> None:
    """A skill on all items of two splits."""
    world = ScriptedWorld(environment=ScriptedEnvironment(train=4, val=6, test=3))
    request = EvaluationRequest(
        config=config(scratch),
        skill=SkillTree({"SKILL.md": "# Skill\n"}),
        splits=("train", "val"),
        limit=0,
        directory=scratch / "evals",
        stem="run",
    )
    done = await evaluate(request, world.session(), lambda *_: None)
    done.folder.rename(folder)


async def _imported(scratch: Path, folder: Path) -> None:
    """A result folder that SkillOpt has written."""
    original = read_folder(unpacked(scratch, "2026-08-rewrite-soft"))
    write_run(imported_run(original), folder, now=lambda: NOON)


Maker = Callable[[Path, Path], Awaitable[object]]
"""Makes a run: what it reads lies in the first folder, and the second one becomes its own."""


def _training(run: GoldenRun) -> Maker:
    async def made(scratch: Path, folder: Path) -> None:
        first, *others = run.sessions
        await start(run.config(scratch), folder, first())
        for each in others:
            await resume(folder, each())

    return made


RUNS: Mapping[str, Maker] = {
    "classic": _training(_classic()),
    "search": _training(_search()),
    "skills": _training(_skills()),
    "evaluation": _evaluation,
    "imported": _imported,
}
