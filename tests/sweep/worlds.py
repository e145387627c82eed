"""The kinds of run that are disturbed: all of the trainer's modes, small enough for hundreds of trials."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from attrs import frozen
from support.command import CLASSIC, Clerk

TESTS = Path(__file__).parents[1]
PROJECT = TESTS.parent / "configs" / "init"
FAULTS = "500:0.05,drop:0.03,cut:0.05,429:0.1"
SHORT = ("train.num_epochs=1", "env.limit=24")
answers = Clerk(PROJECT / "tasks.jsonl")  # the endpoint's handler, by its name


@frozen
class World:
    """A run of some kind: its config (none: the demo) and settings, and how it goes on after a pause by its budget."""

    name: str
    settings: Sequence[str]
    config: Path | None = None
    raised: Sequence[str] = ()

    def words(self, runs: Path) -> list[str]:
        """The command that starts it in this folder."""
        config = [str(self.config)] if self.config else []
        return ["run", *config, "--run", "run", "--dir", str(runs), "--quiet", *_sets(self.settings)]

    def resume(self, runs: Path, calls: int) -> list[str]:
        """The command that goes on with it, where so many calls are recorded: a budget lets it make some more."""
        raised = [setting.format(calls=calls * 3 // 2 + 60) for setting in self.raised]
        return ["resume", "run", "--dir", str(runs), "--quiet", *_sets(raised)]


def _sets(settings: Sequence[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


WORLDS: Mapping[str, World] = {
    world.name: world
    for world in (
        World("plain", SHORT),
        World("safe", (*SHORT, "evaluation.gate_rule=paired", "evaluation.gate_repeats=2",
                       "evaluation.early_stop=exact", "evaluation.fresh_score=true",
                       "optimizer.slow_update_gate_with_selection=true")),
        World("retest", (*SHORT, "evaluation.gate_rule=retest", "evaluation.early_stop=exact")),
        World("ahead", (*SHORT, "train.speculate=true", "train.reuse=identical", "model.temperature=0")),
        World("rewrite", (*SHORT, "optimizer.skill_update_mode=rewrite_from_suggestions",
                          "optimizer.use_skill_aware_reflection=true", "optimizer.use_slow_update=false")),
        World("budget", (*SHORT, "budget.max_calls=120"), raised=("budget.max_calls={calls}",)),
    )
}  # fmt: skip


@frozen
class Endpoint:
    """A model endpoint that fails now and then, in a process of its own."""

    process: subprocess.Popen[str]
    url: str

    def world(self, folder: Path) -> World:
        """The project of `init` on this endpoint, set to classic training."""
        project = yaml.safe_load((PROJECT / "config.yaml").read_text(encoding="utf-8"))
        config = {key: project[key] for key in ("_base_", "model", "env")} | yaml.safe_load(CLASSIC)
        config["model"] |= {"base_url": self.url}
        config["env"] |= {"grader": "exact", "data_path": str(PROJECT / "tasks.jsonl")}
        config["env"]["skill_init"] = str(PROJECT / "SKILL.md")
        file = folder / "faults.yaml"
        file.write_text(yaml.safe_dump(config), encoding="utf-8")
        return World("faults", ("train.num_epochs=1",), file)

    def close(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.communicate()


def endpoint() -> Endpoint:
    """Starts it."""
    words = ["-m", "support.model_server", "--handler", "sweep.worlds:answers", "--delay-ms", "3", "--faults", FAULTS]
    process = subprocess.Popen(
        [sys.executable, *words], cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return Endpoint(process, process.stdout.readline().strip())
