"""
The runs of the corpus: every demo, way of training, update mode, gate rule and kind of pause that is in use.

A case is a row of commands in one folder. They need no key and no network, and all models answer from the request
alone. So a case that is made again has the same events, byte for byte, but for the time at which each was recorded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import field, frozen
from support.original_runs import unpacked


@frozen
class Said:
    """A command, and the code with which it has to end."""

    words: Sequence[str]
    code: int = 0


@frozen
class Killed:
    """A command that is killed (SIGKILL, or Ctrl-C where `gently`) once its run has so many events."""

    words: Sequence[str]
    run: str
    events: int
    gently: bool = False


Step = Said | Killed


@frozen
class Case:
    """A row of commands, the files that they find, and the runs that they leave (names in runs/, or patterns)."""

    name: str
    steps: Sequence[Step]
    runs: Sequence[str] = ()
    files: Mapping[str, str] = field(factory=dict)
    original: str = ""  # one of SkillOpt's own folders, put in `original/`
    killed: bool = False  # where it stops is chance, so its pauses and resumptions differ each time

    @property
    def left(self) -> Sequence[str]:
        """The runs that it leaves: the one of its name, if nothing else is said."""
        return self.runs or (self.name,)


def _run(name: str, *settings: str, demo: str = "", code: int = 0, more: Sequence[str] = ()) -> Said:
    """`run` of the demo, or of another one, with these settings."""
    chosen = ["--demo", demo] if demo else []
    return Said(["run", *chosen, "--name", name, "--quiet", *_set(settings), *more], code)


def _set(settings: Sequence[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def _resume(name: str, *more: str, code: int = 0) -> Said:
    return Said(["resume", name, "--quiet", *more], code)


SEARCH = ("train.algorithm=search", "budget.max_calls=300")
SHORT = ("train.num_epochs=1",)
LINE = "You answer questions about short notes from the offices of a company."

_TASKS = [
    {
        "id": f"{split}-{number}",
        "input": f"{word} {split} {number}",
        "expected": f"{number}",
        "split": split,
        "type": word,
    }
    for split, count in (("train", 12), ("val", 6), ("test", 4))
    for number in range(count)
    for word in ["odd" if number % 2 else "even"]
]
_AGENTS = '''\
"""Agents for the corpus: what they answer depends on the task and the skill alone."""


BEFORE = "# Counting\\n\\nRead the task.\\n"


def right(task):
    return task.task.split()[-1] if len(task.skill.text) > len(BEFORE) else task.task


def silent(task):
    return ""


def broken(task):
    raise RuntimeError("out of order")
'''
_OWN = """\
model:
  backend: simulated
  target_backend: python:agents.py:{agent}
  optimizer: simulated-optimizer
env:
  name: tasks
  grader: exact
  data_path: tasks.jsonl
  split_mode: field
  skill_init: SKILL.md
train:
  num_epochs: 1
  batch_size: 6
"""


_AWAY = (
    "model.optimizer_backend=openai",
    "model.optimizer_base_url=http://127.0.0.1:9/v1",
    "model.optimizer_attempts=1",
)  # where no server listens


def _own(name: str, agent: str, *settings: str, code: int = 0, base: str = "") -> Case:
    above = f"_base_: {base}\n" if base else ""
    files = {
        "tasks.jsonl": "".join(json.dumps(task) + "\n" for task in _TASKS),
        "agents.py": _AGENTS,
        "SKILL.md": "# Counting\n\nRead the task.\n",
        f"{name}.yaml": above + _OWN.format(agent=agent),
    }
    return Case(name, [Said(["run", f"{name}.yaml", "--name", name, "--quiet", *_set(settings)], code)], files=files)


def _demo(name: str, *settings: str, demo: str = "") -> Case:
    return Case(name, [_run(name, *settings, demo=demo)])


def _stopped(name: str, events: int, *settings: str, gently: bool = False) -> Case:
    words = ["run", "--name", name, "--quiet", *_set(settings)]
    return Case(name, [Killed(words, name, events, gently), _resume(name)], killed=True)


_SOFT = "evaluation.gate_metric=soft"
_DATE = ("--item", "date-03")

CASES: Sequence[Case] = (
    # the demos
    _demo("demo"),
    _demo("demo-search", *SEARCH),
    _demo("demo-skills", demo="skills"),
    *(
        _demo(name, *SHORT, demo=name)
        for name in ("searchqa", "livemathematicianbench", "officeqa", "docvqa", "alfworld", "spreadsheetbench")
    ),
    # update modes and other ways of classic
    _demo("rewrite", "optimizer.skill_update_mode=rewrite_from_suggestions", *SHORT),
    _demo("full-rewrite", "optimizer.skill_update_mode=full_rewrite_minibatch", *SHORT),
    _demo("autonomous", "optimizer.lr_control_mode=autonomous", "train.num_epochs=2"),
    _demo("unscheduled", "optimizer.lr_control_mode=none", "train.accumulation=2", *SHORT),
    _demo("notes", "optimizer.use_skill_aware_reflection=true", "train.num_epochs=2"),
    _demo("speculating", "train.speculate=true", "train.num_epochs=2"),
    _demo("reusing", "train.reuse=identical", "model.temperature=0", "train.num_epochs=2"),
    _demo("ungated", "evaluation.use_gate=false", "train.num_epochs=2"),
    _own("skillopt", "right", "model.target_reasoning_effort=", base="skillopt"),
    _own("safe", "right", base="safe"),
    # gate rules
    _demo("retest", "evaluation.gate_rule=retest", "evaluation.gate_repeats=4", "train.num_epochs=2"),
    _demo("paired", "evaluation.gate_rule=paired", "evaluation.gate_repeats=3", *SHORT),
    _demo("not-worse", "evaluation.gate_rule=not_worse", *SHORT),
    _demo("soft", "evaluation.gate_metric=soft", *SHORT),
    _demo("certificate", "evaluation.certificate=true", "train.num_epochs=2"),
    _demo("sealed", "env.seal_test=true", "evaluation.fresh_score=true", *SHORT),
    # ways of search
    _demo("text", *SEARCH, "search.reply=text"),
    _demo("examples", *SEARCH, "search.examples=on"),
    _demo("search-strict", *SEARCH, "evaluation.gate_rule=strict", "evaluation.gate_metric=mixed"),
    # forks, orders, evidence that is taken out
    Case(
        "forked",
        [
            _run("forked-from", "train.num_epochs=2"),
            Said(
                [
                    "fork",
                    "forked-from",
                    "--until",
                    "step",
                    "3",
                    *_set(["evaluation.gate_metric=soft"]),
                    "--name",
                    "forked",
                ]
            ),
            _resume("forked"),
        ],
        ["forked"],
    ),
    Case(
        "retracted",
        [
            _run("retracted-from", *SEARCH),
            Said(["retract", "retracted-from", *_DATE, "--apply", "--reason", "wrong", "--name", "retracted"]),
            _resume("retracted"),
        ],
        ["retracted"],
    ),
    Case(
        "erased",
        [
            _run("erased", *SHORT),
            Said(["retract", "erased", *_DATE, "--erase", "--reason", "private", "--by", "corpus"]),
        ],
    ),
    Case(
        "steered",
        [
            _run("steered", "train.num_epochs=2", more=["--max-calls", "150"], code=3),
            *(
                Said(["steer", "steered", *order, "--why", "corpus", "--by", "corpus", "--wait", "0"])
                for order in (
                    ["hint", "Look at the units."],
                    ["pin", LINE],
                    ["retract", "date-03"],
                    ["budget", "--max-calls", "2000"],
                )
            ),
            _resume("steered"),
        ],
    ),
    Case(
        "continued",
        [
            _run("continued-from", *SHORT),
            Said(["continue", "continued-from", "--set", "train.num_epochs=1", "--name", "continued", "--quiet"]),
        ],
        ["continued"],
    ),
    Case(
        "evaluated",
        [
            _run("evaluated-from", *SHORT),
            Said(["eval", "--run", "evaluated-from", "--split", "val", "--out", "evaluated.jsonl"]),
        ],
        ["evals/evaluated-from-*"],
    ),
    # SkillOpt's own folders
    *(
        Case(f"imported-{name}", [Said(["import", f"original/{name}", "--name", f"imported-{name}"])], original=name)
        for name in ("0.2.0-gated-slow-changed-three-epochs", "2026-08-rewrite-soft")
    ),
    # pauses, and kills
    Case("budget", [_run("budget", more=["--max-calls", "200"], code=3), _resume("budget", "--max-calls", "2000")]),
    Case("handoff", [_run("handoff", "model.target_backend=handoff", *SHORT, code=3)]),
    Case("optimizer-away", [_run("optimizer-away", *_AWAY, code=1)]),
    _stopped("killed", 120),
    _stopped("killed-search", 150, *SEARCH),
    _stopped("interrupted", 120, gently=True),
    _own("own-agent", "right"),
    _own("unanswered", "silent", code=1),
    _own("unmeasured", "broken", code=1),
)
"""Each has its own folder of files, and all share one folder of runs."""


def files_of(case: Case, folder: Path) -> None:
    """Writes what the case's commands find."""
    if case.original:
        unpacked(folder / "original", case.original)
    for name, text in case.files.items():
        (folder / name).write_text(text, encoding="utf-8")
