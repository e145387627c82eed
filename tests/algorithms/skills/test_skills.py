"""Whole runs over a folder of skills: what is kept, what is refused, and what the checks of any algorithm find."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support import skill_world as world
from support.skill_world import create, managing, of_type, trained
from support.skills import skill

import skillopt_es as so
from skillopt_es.adapters.models.function import FunctionModel
from skillopt_es.config import RunConfig
from skillopt_es.config.layers import config_of
from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    MinibatchesPlanned,
    PatchProposed,
    RolloutCompleted,
    StepSkipped,
)
from skillopt_es.events.values import Role
from skillopt_es.ports import CallFailed, ChatModel
from skillopt_es.sessions.opening import open_environment
from skillopt_es.sessions.wiring import Session, World
from skillopt_es.skill.alignment import lines_of
from skillopt_es.skill.folders import ids_of, listing_of
from skillopt_es.testing.algorithms import ALGORITHM_CHECKS, AlgorithmCase


def small(folder: Path, settings: Sequence[str]) -> RunConfig:
    """A run of a few dozen events: creations, a merge and a retirement, a refused edit."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "id": f"{split}{n}",
            "split": split,
            "type": kind,
            "input": f"Task {kind} w{n}",
            "expected": f"w{n}-{kind[::-1]}",
        }
        for split, many in (("train", 4), ("val", 2), ("test", 1))
        for n, kind in zip(range(many), world.KINDS[:2] * 2, strict=False)
    ]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    tree = {
        "model": {"target": "t", "optimizer": "o"},
        "env": {"name": "tasks", "data_path": "tasks.jsonl", "split_mode": "field", "grader": "exact"},
        "train": {"algorithm": "skills", "num_epochs": 2, "batch_size": 4},
        "skills": {"retire_after": 0},
    }
    return config_of(tree, folder, settings)


def manager(request: so.ChatRequest) -> str:
    """Creates what fails, twice over; merges, retires and rewrites at the ends of epochs."""
    if request.stage != "meta_skill":
        edits = [create(kind) for kind in world.failed_kinds(request)]
        edits += [{"op": "append", "skill": "", "content": "Never answer."}]
        return json.dumps({"edits": edits})
    merged = {
        "name": "all-tasks",
        "description": "apple and birch tasks.",
        "content": "RULE apple elppa\nRULE birch hcrib",
    }
    there = re.findall(r"^- ([a-z-]+): opened", request.messages[-1].content, re.MULTILINE)
    if len(there) > 1:
        return json.dumps({"changes": [{"kind": "merge", "skills": there, "into": [merged], "why": "one is enough"}]})
    return json.dumps({"changes": [{"kind": "retire", "skills": there, "into": [], "why": "try it"}]})


def session() -> Session:
    """The world's two agents."""

    def model(config: RunConfig, role: Role) -> ChatModel:
        function = world.target if role == "target" else manager
        return FunctionModel(function=function, name=role, timeout_seconds=30)

    day = datetime(2026, 1, 1, tzinfo=UTC)
    return Session(now=lambda: day, clock=time.monotonic, world=World(model=model, environment=open_environment))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if "killed" in name else name for name in ALGORITHM_CHECKS],
)
def test_skills_is_an_algorithm(name: str, tmp_path: Path) -> None:
    """Creations, refused edits, a merge and a skill that is to be retired."""
    ALGORITHM_CHECKS[name](AlgorithmCase(config=small, session=session), tmp_path)


def test_a_folder_grows_from_nothing_and_each_skill_is_opened_for_its_kind(tmp_path: Path) -> None:
    """No skill at first; then one for each kind, and no task opens two."""
    run = trained(tmp_path)
    best = run.skill("best")
    assert ids_of(best) == tuple(f"{kind}-tasks" for kind in world.KINDS)
    last = [event for event in of_type(run, RolloutCompleted) if event.place == "e2/s5/b0"]
    assert {event.viewed for event in last} == {(f"{event.task_type}-tasks/SKILL.md",) for event in last}
    assert {event.outcome.hard for event in last} == {1.0}


def test_a_target_that_writes_its_requests_as_text_learns_as_well(tmp_path: Path) -> None:
    """As small models do, with the skill's name in the place of the tool's; it is then shown what it asked for."""

    def writing(request: so.ChatRequest) -> str | so.ChatReply:
        said = world.target(request)
        if isinstance(said, str):
            return said
        assert len(request.messages) == 2
        name = json.loads(said.tool_calls[0].arguments)["skill_id"]
        return f"```json\n{json.dumps({'name': name, 'arguments': {'task': 'mine'}})}\n```"

    run = trained(tmp_path, agent=writing)
    assert ids_of(run.skill("best")) == tuple(f"{kind}-tasks" for kind in world.KINDS)
    last = [event for event in of_type(run, RolloutCompleted) if event.place == "e2/s5/b0"]
    assert {(event.viewed, event.outcome.hard) for event in last} == {
        ((f"{event.task_type}-tasks/SKILL.md",), 1.0) for event in last
    }


def test_attempts_are_grouped_by_what_they_opened_and_shown_once(tmp_path: Path) -> None:
    """Failures first; what is too little waits, also for a later step; nothing is in two groups."""
    run = trained(
        tmp_path, skills={"apple-tasks": skill("apple-tasks", "apple")}, **{"skills.reflection_trigger_size": 3}
    )
    planned = of_type(run, MinibatchesPlanned)
    groups = [group for event in planned for group in event.groups]
    attempts = [attempt for group in groups for attempt in group.attempts]
    assert len(attempts) == len(set(attempts))
    opened = {(event.place, event.item): event for event in of_type(run, RolloutCompleted)}
    for group in groups:
        assert {tuple(path.split("/")[0] for path in opened[attempt].viewed) for attempt in group.attempts} <= {
            group.viewed
        }
        assert not group.items or 3 <= len(group.items) <= 4
    assert any(group.earlier for group in groups)
    for event in planned:
        kinds = [group.kind for group in event.groups]
        assert kinds == sorted(kinds)


def test_a_refused_update_is_told_when_the_same_skills_are_asked_about_again(tmp_path: Path) -> None:
    """With the reason, the newest first, and no more than the ring holds."""
    asked: list[str] = []

    def stubborn(request: so.ChatRequest) -> str:
        asked.append(request.messages[-1].content)
        if request.stage == "meta_skill":
            return '{"changes": []}'
        number = len(asked)
        return json.dumps({"edits": [{"op": "append", "skill": "apple-tasks", "content": f"Idea {number}"}]})

    apple = skill("apple-tasks", "apple", "RULE apple wrong")
    run = trained(
        tmp_path,
        optimizer=stubborn,
        skills={"apple-tasks": apple},
        kinds=("apple",),
        **{"train.num_epochs": 4, "skills.max_rejected_update_buffer_size": 2},
    )
    assert {event.verdict.action for event in of_type(run, CandidateGated)} == {"reject"}
    questions = [text for text in asked if "with apple-tasks open" in text]
    assert "refused" not in questions[0]
    told = [re.findall(r"Idea (\d+)", text.partition("## Updates that were refused")[2]) for text in questions]
    assert max(map(len, told)) == 2
    assert all(numbers == sorted(numbers, key=int, reverse=True) for numbers in told)
    assert run.skill("current").files == {"apple-tasks/SKILL.md": apple}


BOTH = {
    "apple-tasks": skill("apple-tasks", "apple.", "RULE apple elppa\n\nBe kind."),
    "birch-tasks": skill("birch-tasks", "birch.", "RULE birch hcrib"),
}


def test_skills_are_merged_and_renamed_and_a_line_is_known_as_its_first_makers(tmp_path: Path) -> None:
    """Blame follows lines into another skill, and so does a diff."""
    text = "RULE birch hcrib\n\nRULE apple elppa\n\nA new line."
    merged = {"name": "trees", "description": "apple and birch.", "content": text}
    run = trained(
        tmp_path,
        optimizer=managing(
            {"kind": "merge", "skills": [*BOTH], "into": [merged], "why": "one"},
            {"kind": "rename", "skills": ["trees"], "into": [{"name": "Wood Tasks"}], "why": "clearer"},
        ),
        skills=BOTH,
        kinds=("apple", "birch"),
    )
    assert ids_of(run.skill("current")) == ("wood-tasks",)
    best, path = run.blame().current, "wood-tasks/SKILL.md"
    makers = dict(zip(lines_of(best.skill.files[path]), best.makers[path], strict=True))
    assert makers["RULE birch hcrib"].kind == makers["RULE apple elppa"].kind == "initial"
    assert (makers["A new line."].kind, makers["A new line."].step) == ("edit", 3)
    assert makers["name: wood-tasks"].step == 6
    assert {event.verdict.rule for event in of_type(run, CandidateGated)} == {"not_worse"}


def test_a_useless_skill_goes_when_it_is_asked_for_twice_and_can_come_back(tmp_path: Path) -> None:
    """Not at once, and not for ever."""
    retire = {"kind": "retire", "skills": ["idle"], "into": [], "why": "nobody opens it"}
    idle = skill("idle", "Nothing.", "Nothing.")
    run = trained(
        tmp_path,
        optimizer=managing(retire, retire, {"kind": "restore", "skills": ["idle"], "into": [], "why": "after all"}),
        skills={**BOTH, "idle": idle},
        kinds=("apple", "birch"),
        **{"train.num_epochs": 3},
    )
    built = of_type(run, CandidateBuilt)
    assert [[report.status for report in event.reports] for event in built] == [
        ["skipped_too_early"],
        ["applied_retire"],
        ["applied_create"],
    ]
    assert "the first time" in built[0].reports[0].note
    assert ids_of(built[1].candidate) == ("apple-tasks", "birch-tasks")
    assert run.skill("current").files["idle/SKILL.md"] == idle


def test_a_split_comes_whole_or_not_at_all(tmp_path: Path) -> None:
    """Each part has a name of its own; the gate refuses one that loses a task."""
    both = skill("trees", "apple and birch.", "RULE apple elppa\n\nRULE birch hcrib")
    parts = [
        {"name": f"{kind}-tasks", "description": f"{kind}.", "content": f"RULE {kind} {kind[::-1]}"}
        for kind in ("apple", "birch")
    ]
    half = {**parts[1], "content": "RULE birch nothing"}
    run = trained(
        tmp_path,
        optimizer=managing(
            {"kind": "split", "skills": ["trees"], "into": [parts[0], half], "why": "two things"},
            {"kind": "split", "skills": ["trees"], "into": parts, "why": "two things"},
        ),
        skills={"trees": both},
        kinds=("apple", "birch"),
    )
    assert [event.verdict.action for event in of_type(run, CandidateGated)] == ["reject", "accept"]
    assert listing_of(run.skill("current")) == "- apple-tasks: apple.\n- birch-tasks: birch."


def test_a_folder_that_grows_beyond_its_bounds_is_refused_untried(tmp_path: Path) -> None:
    """Nothing is paid for, and the reason is told."""
    run = trained(tmp_path, **{"skills.most_skills": 2})
    skipped = [event for event in of_type(run, StepSkipped) if event.reason == "too_large"]
    assert skipped[0].detail == "4 skills, and skills.most_skills is 2"
    assert not of_type(run, CandidateGated)
    assert ids_of(run.skill("best")) == ()


def test_what_agents_could_not_load_is_left_out_and_the_rest_is_tried(tmp_path: Path) -> None:
    """A name with a path in it, a description that is missing, frontmatter that is deleted."""

    def careless(request: so.ChatRequest) -> str:
        if request.stage == "meta_skill":
            return '{"changes": []}'
        return json.dumps(
            {
                "edits": [
                    {"op": "create", "skill": "../../etc", "description": "x", "content": "RULE apple elppa"},
                    {"op": "create", "skill": "nameless", "content": "RULE apple elppa"},
                    {"op": "delete", "skill": "apple-tasks", "target": "name: apple-tasks\n"},
                    {
                        "op": "replace",
                        "skill": "apple-tasks",
                        "target": "RULE apple wrong",
                        "content": "RULE apple elppa",
                    },
                ]
            }
        )

    apple = skill("apple-tasks", "apple", "RULE apple wrong")
    run = trained(tmp_path, optimizer=careless, skills={"apple-tasks": apple}, kinds=("apple",))
    best = run.skill("best")
    assert "RULE apple elppa" in best.files["apple-tasks/SKILL.md"]
    assert set(ids_of(best)) <= {"apple-tasks", "etc"}
    statuses = {report.status for report in of_type(run, CandidateBuilt)[0].reports}
    assert "skipped_format" in statuses


def test_a_question_that_nobody_answers_gives_its_attempts_back(tmp_path: Path) -> None:
    """They are shown again later, twice at most; the other questions of the step count."""
    failures = [0]

    def flaky(request: so.ChatRequest) -> str:
        if request.stage == "meta_skill":
            return '{"changes": []}'
        if request.slot == "e1/s1/b0/failure-1":
            failures[0] += 1
            raise CallFailed("transport", "down")
        return '{"edits": []}'

    run = trained(tmp_path, optimizer=flaky, train=8, **{"train.num_epochs": 2})
    patches = {event.patch: event for event in of_type(run, PatchProposed)}
    assert patches["e1/s1/b0/failure-1"].result == "failed"
    lost = set(patches["e1/s1/b0/failure-1"].items)
    later = [group for event in of_type(run, MinibatchesPlanned)[1:] for group in event.groups]
    again = {each.item for group in later for each in group.earlier if each.place == "e1/s1/b0"}
    assert again == lost


def test_several_short_skills_beat_one_that_is_too_long_and_splitting_what_belongs_together_does_not(
    tmp_path: Path,
) -> None:
    """The target cannot take in very much at once; and where two rules are needed at a time, it opens one skill."""
    filler = " ".join(["word"] * 200)
    long = skill("trees", "apple and birch.", f"RULE apple elppa\n\n{filler}\n\nRULE birch hcrib\n\n{filler}")
    parts = [
        {"name": f"{kind}-tasks", "description": f"{kind}.", "content": f"RULE {kind} {kind[::-1]}\n\n{filler}"}
        for kind in ("apple", "birch")
    ]
    split = {"kind": "split", "skills": ["trees"], "into": parts, "why": "too long"}
    run = trained(tmp_path / "long", optimizer=managing(split), skills={"trees": long}, kinds=("apple", "birch"))
    [gated] = of_type(run, CandidateGated)
    assert (gated.verdict.current_value, gated.verdict.candidate_value) == (0.0, 1.0)
    # Here only the first part says for which kind it is, so that the other rule is never read.
    hidden = [parts[0], {**parts[1], "description": "More of the same."}]
    short = skill("trees", "apple and birch.", "RULE apple elppa\n\nRULE birch hcrib")
    split = {"kind": "split", "skills": ["trees"], "into": hidden, "why": "tidy"}
    run = trained(tmp_path / "short", optimizer=managing(split), skills={"trees": short}, kinds=("apple", "birch"))
    [gated] = of_type(run, CandidateGated)
    assert (gated.verdict.action, ids_of(run.skill("best"))) == ("reject", ("trees",))
