"""One document is a folder with one skill that is always shown: where both are told the same, both decide the same."""

from __future__ import annotations

import json
from pathlib import Path

from support.skill_world import KINDS

import skillopt_es as so
from skillopt_es.events.catalog import CandidateGated, RolloutCompleted
from skillopt_es.skill.folders import entries_of

RULES = "\n\n".join(f"RULE {kind} {'wrong' if kind in ('apple', 'daisy') else kind[::-1]}" for kind in KINDS)
HEAD = "---\nname: house\ndescription: For all.\nalways: true\n---\n\n"
EDITS = [
    {"op": "replace", "target": "RULE birch hcrib", "content": "RULE birch spoilt"},
    {"op": "replace", "target": "RULE apple wrong", "content": "RULE apple elppa"},
    {"op": "append", "content": "Be kind."},
    {"op": "replace", "target": "RULE daisy wrong", "content": "RULE daisy ysiad"},
]


def decided(folder: Path, algorithm: str, text: str) -> tuple[list[tuple[object, ...]], str, so.Run]:
    """A run of four steps, to each of which one edit is proposed: its verdicts, and the words that it ends with."""
    steps = iter(EDITS)
    given: dict[str, dict[str, str]] = {}

    def optimizer(request: so.ChatRequest) -> str:
        if request.stage != "analyst":
            return "{}"
        step = "/".join(request.slot.split("/")[:2])
        edits = [given[step] if step in given else given.setdefault(step, next(steps))]
        return json.dumps({"patch": {"edits": edits}, "edits": [{**each, "skill": "house"} for each in edits]})

    def target(request: so.ChatRequest) -> str:
        shown, (kind, word) = request.messages[0].content, request.messages[1].content.split()[-2:]
        rules = dict(line.split()[1:] for line in shown.splitlines() if line.startswith("RULE "))
        return f"{word}-{rules.get(kind, 'none')}"

    folder.mkdir(parents=True)
    rows = [
        {
            "id": f"{split}{n}",
            "split": split,
            "input": f"Task {KINDS[n % 4]} w{n}",
            "expected": f"w{n}-{KINDS[n % 4][::-1]}",
        }
        for split, many in (("train", 16), ("val", 8), ("test", 1))
        for n in range(many)
    ]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    place = folder / ("skills/house/SKILL.md" if algorithm == "skills" else "doc.md")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    config = {
        "env": {
            "name": "tasks",
            "data_path": str(folder / "tasks.jsonl"),
            "split_mode": "field",
            "grader": "exact",
            "skill_init": str(folder / "skills" if algorithm == "skills" else place),
        },
        "train": {"algorithm": algorithm, "num_epochs": 4, "batch_size": 16},
        "gradient": {"minibatch_size": 16, "failure_only": True},
        "optimizer": {"use_slow_update": False, "use_meta_skill": False},
        "skills": {"manage": False, "reflection_group_size": 16},
        "evaluation": {"eval_test": False},
    }
    run = so.train(config, name="r", runs=folder, target=so.ChatFunction(target), optimizer=optimizer)
    gated = [each.event for each in run.events(["CandidateGated"])]
    verdicts = [
        (
            each.verdict.action,
            each.verdict.won,
            each.verdict.lost,
            each.verdict.current_value,
            each.verdict.candidate_value,
        )
        for each in gated
        if isinstance(each, CandidateGated)
    ]
    best = run.skill("best")
    return verdicts, entries_of(best)[0].body if best.is_folder else best.text.strip(), run


def test_a_skill_that_is_always_shown_gets_a_documents_decisions(tmp_path: Path) -> None:
    """Refused, taken, refused as a tie, taken: for the same items, and with the same words in the end."""
    folder, text, run = decided(tmp_path / "folder", "skills", f"{HEAD}{RULES}\n")
    document, words, _ = decided(tmp_path / "document", "classic", f"{RULES}\n")
    assert folder == document
    assert [verdict[0] for verdict in folder] == ["reject", "accept_new_best", "reject", "accept_new_best"]
    assert text == words
    assert "RULE apple elppa" in text
    rows = [each.event for each in run.events(["RolloutCompleted"])]
    assert {row.injected for row in rows if isinstance(row, RolloutCompleted)} == {("house/SKILL.md",)}
