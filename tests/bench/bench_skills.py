"""
One long skill or several short ones: which form a trained folder has in the end, and what it is worth.

    python tests/bench/bench_skills.py [SEEDS]

In each world training begins with either form, and a manager who asks for the other one at each epoch's end. `best` is
the better form's score, which no run can exceed; `no gate` takes whatever is asked for. No network.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from worlds.folders import FORMS, WORLDS, Agent, World, folder, manager, score, tasks

import skillopt_es as so
from skillopt_es.skill.folders import entries_of

EPOCHS = 3  # with no gate an odd number of changes is taken


@frozen
class Outcome:
    """Scores on fresh tasks: of the folder at first and in the end, and of the better form."""

    start: float
    end: float
    best: float
    form: str


def trained(world: World, seed: int, form: str, *, gate: bool, where: Path) -> Outcome:
    """One run that begins with a form."""
    for name, (said, text) in folder(form).items():
        (where / "skills" / name).mkdir(parents=True)
        (where / "skills" / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {said}\n---\n\n{text}\n")
    rows = [
        {"id": task.id, "split": split, "type": task.parts[0], "input": task.asked, "expected": task.expected}
        for split, many in (("train", 12), ("val", 24), ("test", 1))
        for task in tasks(world, seed, split, many)
    ]
    (where / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    config = {
        "env": {
            "name": "tasks",
            "data_path": str(where / "tasks.jsonl"),
            "split_mode": "field",
            "skill_init": str(where / "skills"),
        },
        "train": {"algorithm": "skills", "num_epochs": EPOCHS, "batch_size": 12, "seed": seed},
        "evaluation": {"eval_test": False, "use_gate": gate},
    }
    agent = Agent(world, seed)
    run = so.train(
        config,
        name="r",
        runs=where,
        target=so.ChatFunction(agent),
        optimizer=manager,
        grader=lambda said, item: said == item["expected"],
    )
    tree = run.state().current.skill
    there = {each.id: (each.description, each.body) for each in entries_of(tree)}
    return Outcome(
        start=score(world, seed, folder(form)),
        end=score(world, seed, there),
        best=score(world, seed, folder(world.better)),
        form=FORMS[len(there) > 1],
    )


def main(seeds: int) -> None:
    """A table with a row for each world and form at first."""
    print("| the agent | at first | score | in the end | score | best | no gate |")
    print("| --- | --- | ---: | --- | ---: | ---: | ---: |")
    for world in WORLDS.values():
        for form in FORMS:
            found: dict[bool, list[Outcome]] = {}
            for gate in (True, False):
                for seed in range(1, seeds + 1):
                    with tempfile.TemporaryDirectory() as folder_:
                        found.setdefault(gate, []).append(trained(world, seed, form, gate=gate, where=Path(folder_)))

            def mean(rows: list[Outcome], what: str) -> str:
                return f"{sum(getattr(row, what) for row in rows) / len(rows):.2f}"

            forms = ", ".join(sorted({row.form for row in found[True]}))
            start, end, best = (mean(found[True], what) for what in ("start", "end", "best"))
            print(f"| {world.name} | {form} | {start} | {forms} | {end} | {best} | {mean(found[False], 'end')} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
