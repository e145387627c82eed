"""
A worked example of two epochs under the preset `skillopt`, as the original trainer would decide it.

Every expected value is derived by hand from the published behaviour, not from this program's output:

    data      10 training items t0..t9 of the kinds a b c d e a b c d e; validation a b c d; test a b c e
    target    right when the skill knows the item's kind and no line spoils it
    sizes     batch 4, minibatch 2, merge batch 2, budget 4 falling to 2 by cosine over 6 steps: 4 4 3 2 2 2
    draws     an epoch's order from seed 42 + 1000 epoch; batch b has seed 42 + 1000 epoch + b + 1, which orders its
              failures; its successes have that seed + 1; the comparison of epoch 2 has seed 42 + 2 * 2000
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TypeVar

import pytest
import yaml
from attrs import frozen
from support.logs import events_of
from support.scripted import ScriptedEnvironment, ScriptedItem, ScriptedModel, ScriptedWorld, target_reply

from skillopt_es.algorithms.classic.state import ClassicState
from skillopt_es.audit.check import check
from skillopt_es.config import load_config
from skillopt_es.engine.algorithms import fold
from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    EpochPlanned,
    Event,
    MetaSkillWritten,
    MinibatchesPlanned,
    PatchesMerged,
    PatchProposed,
    RolloutCompleted,
    SkillScored,
    SlowUpdateApplied,
    SlowUpdateProposed,
    StepSkipped,
)
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import digest_of
from skillopt_es.ports import ChatRequest, Splits
from skillopt_es.sessions.session import start

E = TypeVar("E", bound=Event)
Run = tuple[list[Event], ClassicState, list[str]]

KINDS = {"a": "apple", "b": "birch", "c": "cedar", "d": "daisy", "e": "elder"}


def of_kinds(prefix: str, kinds: str) -> list[ScriptedItem]:
    """Items of these kinds, numbered."""
    return [ScriptedItem(f"{prefix}{number}", KINDS[kind]) for number, kind in enumerate(kinds)]


@frozen
class Example(ScriptedEnvironment):
    """The scripted environment over the example's items."""

    def load(self) -> Splits:
        """The splits."""
        splits = {"train": of_kinds("t", "abcdeabcde"), "val": of_kinds("v", "abcd"), "test": of_kinds("x", "abce")}
        digests = {name: digest_of(repr(rows).encode()) for name, rows in splits.items()}
        return Splits(splits["train"], splits["val"], splits["test"], digests)


CONFIG: dict[str, object] = {
    "_base_": "skillopt",
    "model": {"backend": "simulated", "optimizer": "o", "target": "t", "reasoning_effort": ""},
    "train": {"num_epochs": 2, "batch_size": 4, "accumulation": 1, "seed": 42},
    "gradient": {"minibatch_size": 2, "merge_batch_size": 2},
    "optimizer": {
        "learning_rate": 4,
        "min_learning_rate": 2,
        "lr_scheduler": "cosine",
        "slow_update_samples": 5,
        "use_slow_update": True,
        "use_meta_skill": True,
    },
    "evaluation": {"gate_metric": "hard"},
    "env": {"name": "tasks", "skill_init": "SKILL.md"},
}


def append(*lines: str) -> list[Mapping[str, object]]:
    """Edits that append these lines."""
    return [{"op": "append", "target": "", "content": f"- {line}"} for line in lines]


DELETE_SPOIL = {"op": "delete", "target": "- spoil birch", "content": ""}

# What the analysts propose, by the items they are shown in the order in which they are shown.
PATCHES: dict[str, list[Mapping[str, object]]] = {
    "t6 t9": append("know birch", "know elder"),
    "t4 t1": append("know elder", "know birch"),
    "t7 t0": append("spoil birch", "know apple"),
    "t5 t8": append("know apple", "know daisy"),
    "t2": append("spoil daisy"),
    "t3": append("be calm"),
    "t1 t6": [DELETE_SPOIL, *append("see birch", "watch birch")],
    "t9 t4": append("be brief"),
    "t2 t7": append("know cedar"),
    "t0 t8": [],
    "t3 t5": [],
}

# The skill after each step, written out.
START = "# Skill\n"
AFTER_1 = "# Skill\n\n- know birch\n\n- know elder\n"
AFTER_2 = f"{AFTER_1}\n- spoil birch\n\n- know apple\n\n- know daisy\n"
REFUSED_3 = f"{AFTER_2}\n- spoil daisy\n\n- be calm\n"
BLOCK = "<!-- SLOW_UPDATE_START -->\n<!-- SLOW_UPDATE_END -->\n"
END_OF_1 = f"{AFTER_2}\n{BLOCK}"
RULES_4 = "# Skill\n\n- know birch\n\n- know elder\n\n\n\n- know apple\n\n- know daisy\n\n- watch birch\n"
AFTER_4 = f"{RULES_4}\n{BLOCK}"
AFTER_5 = f"{RULES_4}\n- know cedar\n\n{BLOCK}"
# Replacing the block puts it last. (The original also folds blank lines in all of the text; here the rest stays.)
END_OF_2 = f"{RULES_4}\n- know cedar\n\n<!-- SLOW_UPDATE_START -->\n- look twice\n<!-- SLOW_UPDATE_END -->\n"


def optimizer(request: ChatRequest) -> str:
    """The example's optimizer: each answer is written down here."""
    user = request.messages[-1].content
    match request.stage:
        case "analyst":
            return json.dumps({"failure_summary": [], "patch": {"reasoning": "r", "edits": PATCHES[shown_in(user)]}})
        case "merge":
            groups = json.loads(user[user.index("\n[\n") :])
            merged: dict[tuple[str, str], dict[str, object]] = {}
            for proposed in (proposed for group in groups for proposed in group["edits"]):
                row = {"op": proposed["op"], "target": proposed["target"], "content": proposed["content"]}
                same = merged.setdefault((proposed["target"], proposed["content"]), {**row, "from": []})
                same["from"] = [*same["from"], proposed["label"]]  # type: ignore[misc]
            return json.dumps({"reasoning": "the same said once, in order", "edits": list(merged.values())})
        case "ranking":
            return json.dumps({"reasoning": "these", "selected_indices": [0, 2]})
        case "slow_update":
            return json.dumps({"reasoning": "r", "slow_update_content": " - look twice "})
        case "meta_skill":
            return json.dumps({"reasoning": "r", "meta_skill_content": "short rules work"})
    raise AssertionError(request.stage)


def shown_in(user: str) -> str:
    """The ids of the training items in a prompt, in order."""
    found = [line.removeprefix("item: ") for line in user.splitlines() if line.startswith("item: ")]
    return " ".join(found)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The example's events, its last state, and the optimizer's slots in the order of asking."""
    folder = tmp_path_factory.mktemp("parity")
    (folder / "SKILL.md").write_text(START)
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    asked = ScriptedModel("scripted optimizer", optimizer)
    world = ScriptedWorld(environment=Example(), target=ScriptedModel("scripted target", target_reply), optimizer=asked)
    asyncio.run(start(load_config(folder / "config.yaml"), folder / "run", world.session()))
    with EventLog.open(folder / "run") as log:
        report = asyncio.run(check(log, Journal(log.reader), folder / "run"))
    assert report.ok, report.mismatch
    events = events_of(folder / "run")
    return events, fold(events), asked.asked


def of(kind: type[E], events: list[Event]) -> list[E]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def test_the_baseline_is_measured_on_all_validation_items(run: Run) -> None:
    """Nothing is known, so nothing is right."""
    first = of(SkillScored, run[0])[0]
    assert (first.place, first.score.hard, first.score.measured, first.value) == ("baseline", 0.0, 4, 0.0)


def test_batches_are_drawn_as_the_original_draws_them(run: Run) -> None:
    """Consecutive slices of each epoch's order; the last batch is short."""
    drawn = [[(batch.seed, " ".join(batch.items)) for batch in event.batches] for event in of(EpochPlanned, run[0])]
    assert drawn == [
        [(1043, "t6 t4 t1 t9"), (1044, "t7 t8 t0 t5"), (1045, "t2 t3")],
        [(2043, "t1 t4 t6 t9"), (2044, "t8 t0 t7 t2"), (2045, "t3 t5")],
    ]


def test_minibatches_are_shuffled_failures_then_shuffled_successes(run: Run) -> None:
    """By the batch's seed, and by that seed and one."""
    groups = [
        [(group.kind[0], " ".join(group.items)) for group in event.groups] for event in of(MinibatchesPlanned, run[0])
    ]
    assert groups == [
        [("f", "t6 t9"), ("f", "t4 t1")],
        [("f", "t7 t0"), ("f", "t5 t8")],
        [("f", "t2"), ("s", "t3")],
        [("f", "t1 t6"), ("s", "t9 t4")],
        [("f", "t2 t7"), ("s", "t0 t8")],
        [("s", "t3 t5")],
    ]


def test_the_optimizer_is_asked_what_the_original_asks_and_nothing_twice(run: Run) -> None:
    """One patch needs no merge; a pool within the budget needs no ranking; the first epoch has no advice."""
    assert run[2] == [
        "e1/s1/b0/failure-0", "e1/s1/b0/failure-1", "e1/s1/merge/failure-1-0",
        "e1/s2/b0/failure-0", "e1/s2/b0/failure-1", "e1/s2/merge/failure-1-0",
        "e1/s3/b0/failure-0", "e1/s3/b0/success-0", "e1/s3/merge/final",
        "e2/s4/b0/failure-0", "e2/s4/b0/success-0", "e2/s4/merge/final", "e2/s4/rank",
        "e2/s5/b0/failure-0", "e2/s5/b0/success-0",
        "e2/s6/b0/success-0",
        "e2/slow/advice", "e2/meta",
    ]  # fmt: skip


def test_patches_and_merges_have_the_original_structure(run: Run) -> None:
    """Groups merge level by level; the final merge takes failures before successes."""
    assert [(each.items, len(each.edits)) for each in of(PatchProposed, run[0])] == [
        (tuple(shown.split()), len(edits)) for shown, edits in PATCHES.items()
    ]
    merges = [(each.group, each.level, [edit.content for edit in each.edits]) for each in of(PatchesMerged, run[0])]
    assert merges == [
        ("failure", 1, ["- know birch", "- know elder"]),
        ("failure", 1, ["- spoil birch", "- know apple", "- know daisy"]),
        ("final", 0, ["- spoil daisy", "- be calm"]),
        ("final", 0, ["", "- see birch", "- watch birch", "- be brief"]),
    ]


def test_budgets_fall_by_cosine_and_are_spent_in_ranked_order(run: Run) -> None:
    """4 4 3 2 2 (2); only the fourth step has more than it may apply."""
    ranked = of(EditsRanked, run[0])
    assert [(each.step, each.budget, len(each.pool), len(each.chosen)) for each in ranked] == [
        (1, 4, 2, 2), (2, 4, 3, 3), (3, 3, 2, 2), (4, 2, 4, 2), (5, 2, 1, 1),
    ]  # fmt: skip
    assert [ranked[3].pool.index(edit) for edit in ranked[3].chosen] == [0, 2]


def test_edits_give_these_very_texts(run: Run) -> None:
    """Appends go to the end, or before the protected block; a deleted line leaves its blank lines."""
    built = of(CandidateBuilt, run[0])
    assert [each.candidate.text for each in built] == [AFTER_1, AFTER_2, REFUSED_3, AFTER_4, AFTER_5]
    statuses = [[report.status for report in each.reports] for each in built]
    assert statuses[3] == ["applied_delete", "applied_append_before_protected_region"]
    assert statuses[0] == ["applied_append", "applied_append"]


def test_the_gate_takes_what_is_strictly_better(run: Run) -> None:
    """Right on v1 | v0 and v3, v1 spoiled | v0 | v0, v1, v3 | all."""
    verdicts = [
        (
            each.step,
            each.verdict.candidate_value,
            each.verdict.current_value,
            each.verdict.best_value,
            each.verdict.action,
        )
        for each in of(CandidateGated, run[0])
    ]
    assert verdicts == [
        (1, 0.25, 0.0, 0.0, "accept_new_best"),
        (2, 0.5, 0.25, 0.25, "accept_new_best"),
        (3, 0.25, 0.5, 0.5, "reject"),
        (4, 0.75, 0.5, 0.5, "accept_new_best"),
        (5, 1.0, 0.75, 0.75, "accept_new_best"),
    ]
    assert [each.step for each in of(StepSkipped, run[0])] == [6]


def test_the_score_from_before_the_block_stands_for_the_text_with_it(run: Run) -> None:
    """The original never measures the text that the placeholder changed; the event says whose score it used."""
    placeholder, forced = of(SlowUpdateApplied, run[0])
    assert (placeholder.verdict.action, placeholder.skill.text) == ("placeholder", END_OF_1)
    accepted = of(CandidateBuilt, run[0])[1].candidate
    assert placeholder.verdict.stale_from == accepted.hash == of(CandidateGated, run[0])[3].verdict.stale_from
    measured = {event.skill for event in of(SkillScored, run[0]) if event.purpose == "selection"}
    assert placeholder.skill.hash not in measured
    assert forced.verdict.stale_from == of(CandidateBuilt, run[0])[4].candidate.hash


def test_the_slow_update_compares_the_ends_of_two_epochs_and_is_forced(run: Run) -> None:
    """Five drawn tasks; the first epoch's last skill has the block and the spoiled birch."""
    proposed = of(SlowUpdateProposed, run[0])
    assert [(pair.item, pair.category) for pair in proposed[0].pairs] == [
        ("t6", "improved"),
        ("t7", "improved"),
        ("t5", "stable_success"),
        ("t3", "stable_success"),
        ("t4", "stable_success"),
    ]
    scores = {event.place: event.score.hard for event in of(SkillScored, run[0])}
    assert (scores["e2/slow/previous"], scores["e2/slow/current"]) == (0.6, 1.0)
    forced = of(SlowUpdateApplied, run[0])[1]
    assert (forced.verdict.action, forced.skill.text) == ("force_accept", END_OF_2)
    assert [event.result for event in of(MetaSkillWritten, run[0])] == ["first_epoch", "written"]


def test_the_end_measures_the_final_text_and_tests_three(run: Run) -> None:
    """The final text is as good as the best, so nothing is promoted."""
    events, state, _ = run
    scored = {event.place: (event.score.hard, event.score.measured) for event in of(SkillScored, events)}
    assert scored["final/val"] == (1.0, 4)
    assert [scored[f"final/test/{name}"] for name in ("initial", "best", "final")] == [(0.0, 4), (1.0, 4), (1.0, 4)]
    assert state.best is not None
    assert state.current is not None
    assert (state.best.skill.text, state.best.step, str(state.best.origin)) == (AFTER_5, 5, "step_0005")
    assert (state.current.skill.text, str(state.current.origin)) == (END_OF_2, "slow_update_epoch_02")
    counts = state.counts
    assert (counts.accepted, counts.rejected, counts.skipped) == (4, 1, 1)


def test_every_target_call_is_one_the_original_makes(run: Run) -> None:
    """4 baseline, 20 training, 5 x 4 gates, 2 x 5 comparison, 4 final validation, 3 x 4 tests."""
    assert sum(isinstance(event, RolloutCompleted) for event in run[0]) == 4 + 20 + 20 + 10 + 4 + 12
