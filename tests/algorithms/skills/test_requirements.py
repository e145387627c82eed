"""
The requirements on training several skills, by number: each has tests that show it, or a line why it cannot occur.

Tests of this file are those that no other file has; the table names all of them, and is checked against what is there.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from support import skill_world as world
from support.skill_world import KINDS, managing, of_type, teacher, trained
from support.skills import skill

import skillopt_es as so
from skillopt_es.algorithms.skills import grouping
from skillopt_es.algorithms.skills.state import Skills
from skillopt_es.config import load_config
from skillopt_es.config.original import read_layer
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    EpochPlanned,
    MinibatchesPlanned,
    PatchProposed,
    RolloutCompleted,
    SkillScored,
    StepSkipped,
)
from skillopt_es.events.values import Failed, Measured
from skillopt_es.ports import CallFailed
from skillopt_es.skill.folders import ids_of

ROOT = Path(__file__).parent.parent.parent
HERE, SKILLS, TOOLS = "algorithms/skills/test_requirements", "algorithms/skills/test_skills", "skill/test_tools"
KIT = f"{SKILLS}::test_skills_is_an_algorithm"
TESTS: Mapping[int, tuple[str, ...]] = {
    1: (f"{HERE}::test_every_item_has_one_typed_outcome_whatever_fails", KIT),
    3: (f"{HERE}::test_every_item_has_one_typed_outcome_whatever_fails",),
    4: (f"{SKILLS}::test_a_question_that_nobody_answers_gives_its_attempts_back", KIT),
    5: (KIT,),
    6: (f"{HERE}::test_a_folder_that_is_tried_is_the_one_that_is_recorded",),
    7: (f"{TOOLS}::test_a_tool_is_known_with_and_without_its_servers_name",),
    8: (f"{TOOLS}::test_what_cannot_be_understood_is_answered_and_opens_nothing",),
    9: (f"{TOOLS}::test_a_skill_is_opened_without_its_frontmatter_and_its_files_one_by_one",),
    10: (f"{HERE}::test_the_key_has_an_order_of_its_own_and_may_be_empty",),
    11: (
        f"{HERE}::test_what_is_always_shown_is_recorded_and_is_no_part_of_the_key",
        f"{HERE}::test_a_setting_decides_whether_what_is_always_shown_joins_the_key",
    ),
    12: (f"{HERE}::test_a_folder_that_is_tried_is_the_one_that_is_recorded",),
    13: (f"{SKILLS}::test_attempts_are_grouped_by_what_they_opened_and_shown_once",),
    14: (f"{SKILLS}::test_attempts_are_grouped_by_what_they_opened_and_shown_once", KIT),
    15: (f"{HERE}::test_what_waits_too_long_is_dropped_in_an_event",),
    16: (f"{SKILLS}::test_attempts_are_grouped_by_what_they_opened_and_shown_once",),
    17: (f"{SKILLS}::test_attempts_are_grouped_by_what_they_opened_and_shown_once", KIT),
    18: (
        f"{SKILLS}::test_a_question_that_nobody_answers_gives_its_attempts_back",
        f"{HERE}::test_an_attempt_is_shown_three_times_at_most",
    ),
    19: (f"{HERE}::test_a_question_is_bounded_and_has_all_that_it_needs",),
    21: ("adapters/environments/test_searchqa::test_the_evaluator_matches_the_vectors",),
    22: (f"{HERE}::test_a_question_is_bounded_and_has_all_that_it_needs",),
    23: (f"{SKILLS}::test_a_refused_update_is_told_when_the_same_skills_are_asked_about_again",),
    24: (f"{SKILLS}::test_a_refused_update_is_told_when_the_same_skills_are_asked_about_again",),
    25: (f"{SKILLS}::test_a_refused_update_is_told_when_the_same_skills_are_asked_about_again",),
    26: (f"{HERE}::test_a_tie_is_decided_by_the_rule_that_is_configured",),
    27: (
        f"{HERE}::test_what_changes_nothing_is_not_validated",
        "algorithms/skills/test_parts::test_what_helps_stays_where_another_change_of_the_same_step_harms",
    ),
    28: (f"{HERE}::test_what_changes_nothing_is_not_validated",),
    29: (f"{HERE}::test_a_folder_that_was_measured_is_not_measured_again",),
    30: (
        f"{HERE}::test_the_folder_is_managed_once_an_epoch_or_not_at_all",
        f"{HERE}::test_who_manages_the_folder_is_told_what_each_skill_was_good_for",
        f"{SKILLS}::test_skills_are_merged_and_renamed_and_a_line_is_known_as_its_first_makers",
    ),
    31: (f"{HERE}::test_what_waits_and_what_was_refused_goes_along_with_a_name",),
    32: (
        f"{HERE}::test_a_key_that_there_is_not_is_an_error",
        f"{HERE}::test_a_deprecated_name_counts_with_a_warning",
    ),
    34: (f"{HERE}::test_each_epoch_has_every_item_once_in_an_order_of_its_own",),
    35: (f"{HERE}::test_each_epoch_has_every_item_once_in_an_order_of_its_own",),
    36: (f"{HERE}::test_validation_items_are_never_shown_to_the_optimizer",),
    37: (
        "skill/test_changes::test_what_cannot_be_done_is_skipped_and_said",
        f"{TOOLS}::test_what_cannot_be_understood_is_answered_and_opens_nothing",
    ),
    38: (f"{TOOLS}::test_what_cannot_be_understood_is_answered_and_opens_nothing",),
    39: (
        "skill/test_folders::test_what_agents_could_not_load_is_said_in_a_sentence",
        f"{SKILLS}::test_what_agents_could_not_load_is_left_out_and_the_rest_is_tried",
    ),
    42: (KIT,),
    43: ("algorithms/skills/test_one_document::test_a_skill_that_is_always_shown_gets_a_documents_decisions",),
    44: (
        "audit/test_skill_table::test_the_table_tells_who_opened_what_and_what_came_of_it",
        f"{SKILLS}::test_a_useless_skill_goes_when_it_is_asked_for_twice_and_can_come_back",
    ),
    45: ("algorithms/skills/test_demo::test_it_ends_with_a_skill_for_each_kind",),
}
CANNOT_OCCUR: Mapping[int, str] = {
    2: "a failed rollout is no skill's failure: it is `Failed`, counts for nobody, and too many pause the run",
    20: "a message's content is text from the wire on (`ports.Message`); one that only asks for tools has an empty one",
    33: "environments are Protocols that mypy checks, and `skillopt_es.testing.environments` checks any of them",
    40: "a skill's scripts are texts that can be opened; nothing in training runs them",
    41: "one call may take as long as its deadline, and others go on: the engine's, for any algorithm",
}


def test_every_requirement_has_its_tests_or_a_reason() -> None:
    """No number is left out, and no test is named that is not there."""
    assert sorted([*TESTS, *CANNOT_OCCUR]) == list(range(1, 46))
    for name in {name for names in TESTS.values() for name in names}:
        file, _, function = name.partition("::")
        tree = ast.parse((ROOT / f"{file}.py").read_text())
        assert function in {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}, name


BOTH = {kind: skill(f"{kind}-tasks", f"{kind}.", f"RULE {kind} {kind[::-1]}") for kind in ("apple", "birch")}
TREES = {f"{kind}-tasks": text for kind, text in BOTH.items()}


def test_every_item_has_one_typed_outcome_whatever_fails(tmp_path: Path) -> None:
    """In the order of the batch; what failed says how, and waits for no question."""

    def failing(request: so.ChatRequest) -> str | so.ChatReply:
        if request.messages[-1].content.endswith(" w1"):
            raise CallFailed("server", "boom")
        return world.target(request)

    run = trained(tmp_path, agent=failing, **{"rollout.max_failed_share": 0.9})
    [first] = [event for event in of_type(run, EpochPlanned) if event.epoch == 1]
    rows = [event for event in of_type(run, RolloutCompleted) if event.place == "e1/s1/b0"]
    assert [row.item for row in rows] == list(first.batches[0].items)
    broken = [row for event in [of_type(run, RolloutCompleted)] for row in event if row.item == "train1"]
    assert broken
    assert all(isinstance(row.outcome, Failed) and row.outcome.kind == "server" for row in broken)
    shown = {item for event in of_type(run, MinibatchesPlanned) for group in event.groups for item in group.items}
    assert shown
    assert "train1" not in shown


def test_a_folder_that_is_tried_is_the_one_that_is_recorded(tmp_path: Path) -> None:
    """Each attempt names the folder by its hash, and what it opened; a folder is a value that nobody can change."""
    run = trained(tmp_path, skills=TREES, kinds=("apple", "birch"))
    start = run.skill("initial")
    rows = [event for event in of_type(run, RolloutCompleted) if event.place == "baseline"]
    assert {row.skill for row in rows} == {start.hash}
    assert {row.viewed for row in rows} == {("apple-tasks/SKILL.md",), ("birch-tasks/SKILL.md",)}
    with pytest.raises(AttributeError):
        start.files = {}  # type: ignore[misc]


def test_the_key_has_an_order_of_its_own_and_may_be_empty(tmp_path: Path) -> None:
    """Whatever was opened first; and what opened nothing can create."""

    def backwards(request: so.ChatRequest) -> str | so.ChatReply:
        first = request.tools and not world.opened(request) and "apple" in request.messages[1].content
        return world.view("birch-tasks", "apple-tasks") if first else world.target(request)

    run = trained(tmp_path, agent=backwards, skills=TREES, kinds=("apple", "cedar"))
    keys = {group.viewed for event in of_type(run, MinibatchesPlanned) for group in event.groups}
    assert keys == {(), ("apple-tasks", "birch-tasks"), ("cedar-tasks",)}
    assert "cedar-tasks" in ids_of(run.skill("best"))


def test_what_is_always_shown_is_recorded_and_is_no_part_of_the_key(tmp_path: Path) -> None:
    """It was not chosen."""
    house = skill("house", "For all.", "RULE apple elppa", more="always: true\n")
    run = trained(tmp_path, skills={"house": house}, kinds=("apple",))
    rows = of_type(run, RolloutCompleted)
    assert {(row.viewed, row.injected) for row in rows} == {((), ("house/SKILL.md",))}
    assert {row.outcome for row in rows} == {Measured(1.0, 1.0)}


@pytest.mark.parametrize("joins", [False, True])
def test_a_setting_decides_whether_what_is_always_shown_joins_the_key(tmp_path: Path, joins: bool) -> None:
    """Attempts are grouped by it then, and whoever is asked sees it as one of the skills that were open."""
    house = skill("house", "For all.", "RULE apple wrong", more="always: true\n")
    settings = {"skills.always_in_key": True} if joins else {}
    run = trained(tmp_path, skills={"house": house}, kinds=("apple",), **settings)
    groups = [group for event in of_type(run, MinibatchesPlanned) for group in event.groups if group.items]
    assert groups
    assert {group.viewed for group in groups} == {("house",) if joins else ()}
    assert {row.viewed for row in of_type(run, RolloutCompleted) if row.place == "e1/s1/b0"} == {()}


def test_what_is_always_shown_can_be_corrected(tmp_path: Path) -> None:
    """By whoever is asked about attempts that opened nothing; it meets all items, for all of them see it."""

    def fixing(request: so.ChatRequest) -> str:
        row = {"op": "replace", "skill": "house", "target": "wrong", "content": "elppa"}
        return json.dumps({"edits": [row], "changes": []})

    house = skill("house", "For all.", "RULE apple wrong", more="always: true\n")
    run = trained(tmp_path, optimizer=fixing, skills={"house": house}, kinds=("apple",), **{"skills.sentinels": 1})
    assert "RULE apple elppa" in run.skill("best").files["house/SKILL.md"]
    assert not any(event.carried for event in of_type(run, SkillScored))


def test_what_waits_too_long_is_dropped_in_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest first, so that what waits is bounded."""
    monkeypatch.setattr(grouping, "MOST_WAITING", 3)
    settings = {"skills.reflection_trigger_size": 9, "skills.reflection_group_size": 9}
    run = trained(tmp_path, optimizer=managing(), **settings)
    dropped = [event.dropped for event in of_type(run, MinibatchesPlanned) if event.dropped]
    assert len(dropped[0]) == 5
    assert {each.place for each in dropped[0]} == {"e1/s1/b0"}
    state = run.state()
    assert isinstance(state.algorithm, Skills)
    assert len(state.algorithm.waiting) <= 3


def test_a_question_is_bounded_and_has_all_that_it_needs(tmp_path: Path) -> None:
    """The skills that were open in full, the others by name, the budget; long attempts lose their middle."""
    asked: list[so.ChatRequest] = []

    def noting(request: so.ChatRequest) -> str:
        asked.append(request)
        return '{"edits": [], "changes": []}'

    def talkative(request: so.ChatRequest) -> str | so.ChatReply:
        said = world.target(request)
        return f"{'word ' * 2000}{said}" if isinstance(said, str) else said

    wrong = {**TREES, "apple-tasks": skill("apple-tasks", "apple.", "RULE apple wrong")}
    settings = {"gradient.max_trajectory_chars": 400, "optimizer.learning_rate": 3}
    trained(tmp_path, agent=talkative, optimizer=noting, skills=wrong, kinds=("apple",), **settings)
    text = asked[0].messages[-1].content
    assert "RULE apple wrong" in text
    assert "RULE birch hcrib" not in text
    assert "- birch-tasks: birch." in text
    assert "At most 3 edits." in text
    assert "characters cut …]" in text
    assert text.count("~~~~ trajectory") == 4
    assert len(text) < 4 * 1000 + 2000


def test_a_tie_is_decided_by_the_rule_that_is_configured(tmp_path: Path) -> None:
    """`strict` refuses it, `not_worse` takes it; the best changes only for a higher score, at the end too."""

    def polite(request: so.ChatRequest) -> str:
        return json.dumps({"edits": [{"op": "append", "skill": "apple-tasks", "content": "Be kind."}], "changes": []})

    taken = {}
    for rule in ("strict", "not_worse"):
        settings = {"evaluation.gate_rule": rule, "train.num_epochs": 1}
        run = trained(tmp_path / rule, optimizer=polite, skills=TREES, kinds=("apple",), **settings)
        verdict = of_type(run, CandidateGated)[0].verdict
        taken[rule] = verdict.taken
        assert ("Be kind." in run.skill("current").files["apple-tasks/SKILL.md"]) == taken[rule]
        assert "Be kind." not in run.skill("best").files["apple-tasks/SKILL.md"]
        assert not verdict.new_best
        assert verdict.action == ("accept" if taken[rule] else "reject")
    assert taken == {"strict": False, "not_worse": True}


def test_what_changes_nothing_is_not_validated(tmp_path: Path) -> None:
    """Edits of two groups are one candidate; where none of them can be applied, no item is tried."""

    def nothing(request: so.ChatRequest) -> str:
        row = {"op": "delete", "skill": "", "target": "what is not there"}
        return json.dumps({"edits": [row], "changes": []})

    run = trained(tmp_path, optimizer=nothing, skills=TREES, kinds=("apple", "birch"), **{"optimizer.ask_again": False})
    [built, *_] = of_type(run, CandidateBuilt)
    assert len(built.reports) == 2
    assert built.candidate.hash == built.parent
    assert of_type(run, StepSkipped)[0].reason == "unchanged"
    assert {event.place for event in of_type(run, SkillScored) if event.purpose == "selection"} == {"baseline"}


def test_a_folder_that_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    """A name that comes back brings its score along."""
    run = trained(
        tmp_path,
        optimizer=managing(
            {"kind": "rename", "skills": ["apple-tasks"], "into": [{"name": "fruit"}], "why": "a"},
            {"kind": "rename", "skills": ["fruit"], "into": [{"name": "apple-tasks"}], "why": "b"},
        ),
        skills=TREES,
        kinds=("apple", "birch"),
    )
    gated = of_type(run, CandidateGated)
    assert [event.verdict.taken for event in gated] == [True, True]
    assert gated[1].verdict.known_from == "baseline"
    assert len([event for event in of_type(run, SkillScored) if event.purpose == "selection"]) == 2


def test_the_folder_is_managed_once_an_epoch_or_not_at_all(tmp_path: Path) -> None:
    """After the last batch; with `skills.manage` off it costs nothing."""
    for on in (True, False):
        run = trained(tmp_path / str(on), **{"skills.manage": on})
        asked = [event.patch for event in of_type(run, PatchProposed) if event.patch.endswith("manage")]
        assert asked == (["e1/s3/manage", "e2/s6/manage"] if on else [])
    assert [event.detail for event in of_type(run, StepSkipped)].count("skills.manage is off") == 2


def test_who_manages_the_folder_is_told_what_each_skill_was_good_for(tmp_path: Path) -> None:
    """How often it was opened, alone too, what came of that, how long it is; and what became of earlier edits."""
    asked: list[str] = []

    def noting(request: so.ChatRequest) -> str:
        if request.stage == "meta_skill":
            asked.append(request.messages[-1].content)
            return '{"changes": []}'
        return json.dumps({"edits": [{"op": "append", "skill": "apple-tasks", "content": "Never mind."}]})

    idle = {"idle": skill("idle", "Nothing.")}
    trained(tmp_path, optimizer=noting, skills={**TREES, **idle}, kinds=("apple",), train=8)
    first, second = asked
    opened = "- apple-tasks: opened 8 (8 passed), alone 8 (8 passed), not opened 0 (0 passed)"
    assert f"{opened}, {len(TREES['apple-tasks'])} characters" in first
    assert "- apple: 8 (8 passed); opened apple-tasks 8 (8 passed)" in first
    assert "not opened for 2 epochs" in next(line for line in second.splitlines() if line.startswith("- idle: opened"))
    assert "- step 1, refused: [append]  file='apple-tasks/SKILL.md'" in first
    assert "At most 2 changes." in first


def test_what_was_tried_before_a_skill_was_there_did_not_pass_it_by(tmp_path: Path) -> None:
    """Who manages the folder would retire, or describe anew, what nobody could have opened yet."""
    asked: list[str] = []

    def noting(request: so.ChatRequest) -> str:
        if request.stage == "meta_skill":
            asked.append(request.messages[-1].content)
            return '{"changes": []}'
        return teacher(request)

    trained(tmp_path, optimizer=noting, kinds=("apple",))
    assert "- apple: 16 (8 passed); opened nothing 8 (0 passed), apple-tasks 8 (8 passed)" in asked[0]
    assert "- apple-tasks: opened 8 (8 passed), alone 8 (8 passed), not opened 0 (0 passed)" in asked[0]


def test_a_skill_that_several_answers_make_at_once_is_told_as_refused_once_or_not_at_all(tmp_path: Path) -> None:
    """Once where it was refused, though the others would fill what is remembered; not at all where it was taken."""

    def never(request: so.ChatRequest) -> str:
        return "nothing"

    def never_birch(request: so.ChatRequest) -> str | so.ChatReply:
        return "nothing" if "birch" in request.messages[-1].content else world.target(request)

    for agent, times in ((never, 1), (never_birch, 0)):
        asked: list[str] = []

        def noting(request: so.ChatRequest, asked: list[str] = asked) -> str:
            asked.append(request.messages[-1].content)
            return world.teacher(request)

        settings = {"train.num_epochs": 1, "skills.reflection_group_size": 2}
        run = trained(tmp_path / str(times), agent=agent, optimizer=noting, kinds=("apple", "birch"), **settings)
        [built, *_] = of_type(run, CandidateBuilt)
        assert [report.status for report in built.reports].count("skipped_file_exists") > 3
        later = [text for text in asked[4:] if "with no skill open" in text]
        assert {text.count("step 1: [create]  file='apple-tasks/SKILL.md'") for text in later} == {times}
        assert not any("SKILL.md already" in text for text in later)


def test_an_attempt_is_shown_three_times_at_most(tmp_path: Path) -> None:
    """Where the question about it goes unanswered each time; the other questions of its steps are answered."""

    def flaky(request: so.ChatRequest) -> str:
        if request.stage != "meta_skill" and "opened no skill" in request.messages[-1].content:
            raise CallFailed("transport", "down")
        return '{"edits": [], "changes": []}'

    wrong = {"apple-tasks": skill("apple-tasks", "apple.", "RULE apple wrong")}
    run = trained(tmp_path, optimizer=flaky, skills=wrong, kinds=("apple", "birch"), train=8, **{"train.num_epochs": 6})
    shown: dict[tuple[str, str], int] = {}
    for event in of_type(run, MinibatchesPlanned):
        for attempt in (each for group in event.groups if not group.viewed for each in group.attempts):
            shown[attempt] = shown.get(attempt, 0) + 1
    assert max(shown.values()) == 3


def test_what_waits_and_what_was_refused_goes_along_with_a_name(tmp_path: Path) -> None:
    """After a rename the skill is known by its new name in both."""

    def renaming(request: so.ChatRequest) -> str:
        if request.stage == "meta_skill":
            changes = [{"kind": "rename", "skills": ["apple-tasks"], "into": [{"name": "fruit"}], "why": "a"}]
            return json.dumps({"changes": changes if "apple-tasks" in request.messages[-1].content else []})
        return json.dumps({"edits": [{"op": "append", "skill": "", "content": "Never mind."}]})

    settings = {"skills.reflection_trigger_size": 3, "train.num_epochs": 1}
    run = trained(tmp_path, optimizer=renaming, skills=TREES, kinds=("apple",), train=15, **settings)
    algorithm = run.state().algorithm
    assert isinstance(algorithm, Skills)
    assert ids_of(run.skill("current")) == ("birch-tasks", "fruit")
    assert set(algorithm.refused) == {("fruit",)}
    assert {each.key for each in algorithm.waiting} <= {("fruit",)}


def test_a_key_that_there_is_not_is_an_error(tmp_path: Path) -> None:
    """With the one that is meant; what counts is recorded with the run."""
    with pytest.raises(ConfigError, match="rejected_update_buffer") as refused:
        load_config(None, ["skills.rejected_update_buffer=2"])
    assert "rejected_update_buffer_size" in f"{refused.value.message} {refused.value.hint}"
    run = trained(tmp_path, **{"skills.max_rejected_update_buffer_size": 5})
    started = run.state().started
    assert started is not None
    recorded = started.config["skills"]
    assert isinstance(recorded, dict)
    assert recorded["max_rejected_update_buffer_size"] == 5


def test_a_deprecated_name_counts_with_a_warning(tmp_path: Path) -> None:
    """In a file as with `--set`; where both are given, the right name counts."""
    old, right = "skills.rejected_update_buffer_size", "skills.max_rejected_update_buffer_size"
    found = load_config(None, [f"{old}=2"])
    assert found.skills.max_rejected_update_buffer_size == 2
    assert list(found.notices) == [f"--set: {old} is deprecated and counts as {right}, which is its name"]
    both = read_layer({"skills": {"rejected_update_buffer_size": 2, "max_rejected_update_buffer_size": 4}}, "a file")
    assert both.tree == {"skills": {"max_rejected_update_buffer_size": 4}}
    assert list(both.notices) == [old]
    run = trained(tmp_path / "run", **{old: 5})
    started = run.state().started
    assert started is not None
    recorded = started.config["skills"]
    assert isinstance(recorded, dict)
    assert recorded["max_rejected_update_buffer_size"] == 5
    assert "rejected_update_buffer_size" not in recorded


def test_each_epoch_has_every_item_once_in_an_order_of_its_own(tmp_path: Path) -> None:
    """The last batch may be short; validation items stay in their order."""
    run = trained(tmp_path, train=11)
    orders = [[item for batch in event.batches for item in batch.items] for event in of_type(run, EpochPlanned)]
    assert [len(batch.items) for event in of_type(run, EpochPlanned) for batch in event.batches] == [8, 3, 8, 3]
    assert orders[0] != orders[1]
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(f"train{n}" for n in range(11)))}
    baseline = [event.item for event in of_type(run, RolloutCompleted) if event.place == "baseline"]
    assert baseline == [f"val{n}" for n in range(2 * len(KINDS))]


def test_validation_items_are_never_shown_to_the_optimizer(tmp_path: Path) -> None:
    """Not in a group, and not in what waits."""
    run = trained(tmp_path)
    shown = {item for event in of_type(run, MinibatchesPlanned) for group in event.groups for item in group.items}
    algorithm = run.state().algorithm
    assert isinstance(algorithm, Skills)
    waiting = {each.attempt.item for each in algorithm.waiting}
    assert all(item.startswith("train") for item in shown | waiting)
