"""Whole searches in a small world of hidden rules: what is kept and dropped, where it ends, and what it learns."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import pytest
from attrs import evolve as replace
from support.command import command
from support.make_golden import GOLDEN

import skillopt_es as so
from skillopt_es.algorithms.search.folding import gated, retracted
from skillopt_es.engine.algorithms import fold
from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    EpochPlanned,
    Event,
    EvidenceRetracted,
    MinibatchesPlanned,
    PatchProposed,
    RolloutCompleted,
    RunCompleted,
    SkillScored,
    StepSkipped,
    TrainingStopped,
)
from skillopt_es.events.values import Failed

KINDS = [f"kind{number:02d}" for number in range(12)]
RULE = re.compile(r"RULE (\w+) (\w+)")


def rules_in(skill: str) -> dict[str, str]:
    """What a skill says of each kind; the last word counts."""
    return dict(RULE.findall(skill))


def agent(request: so.ChatRequest) -> str:
    """Follows the rule of a task's kind, if there is one."""
    kind, word = request.messages[-1].content.split()[-2:]
    return f"{word}-{rules_in(request.messages[0].content).get(kind, 'none')}"


def failed_in(request: so.ChatRequest) -> dict[str, list[str]]:
    """The failing tasks of a question by kind."""
    failed = request.messages[-1].content.partition("## Failed trajectories")[2]
    found: dict[str, list[str]] = {}
    for item, kind in re.findall(r"item: (\S+)\n.*?Task (kind\d+)", failed, re.DOTALL):
        found.setdefault(kind, []).append(item)
    return found


def teacher(*, claims: bool) -> Callable[[so.ChatRequest], str]:
    """Finds the rule of each kind but every third, of which it says something useless."""

    def answer(request: so.ChatRequest) -> str:
        edits = []
        for at, (kind, items) in enumerate(sorted(failed_in(request).items())):
            content = f"Think hard about {kind}." if at % 3 == 2 else f"RULE {kind} {kind[::-1]}"
            row = {"op": "append", "target": "", "content": content, "from": []}
            edits.append({**row, "items": items, "hypothesis": "it has no rule"} if claims else row)
        return json.dumps({"reasoning": "seen", "edits": edits, "patch": {"edits": edits}})

    return answer


def grader(answer: str, item: dict[str, str]) -> bool:
    """By the word."""
    return answer == item["expected"]


def searched(
    folder: Path,
    *,
    algorithm: str = "search",
    teach: Callable[[so.ChatRequest], str] | None = None,
    agent: Callable[[so.ChatRequest], str] = agent,
    untrusted: Collection[str] = (),
    skill: Mapping[str, str] | None = None,
    **settings: object,
) -> so.Run:
    """A run in the world, with an optimizer that says what it claims unless there is another."""
    rows = []
    for split, many in (("train", 24), ("val", 12), ("test", 2)):
        for number in range(many):
            kind, word = KINDS[number % 12], f"w{split[1]}{number}"
            task = {"id": f"{split}{number}", "split": split, "input": f"Task {kind} {word}", "type": kind}
            label = {"trust": "untrusted"} if kind in untrusted else {}
            rows.append({**task, **label, "expected": f"{word}-{kind[::-1]}"})
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "skill").mkdir()
    for name, text in ({"SKILL.md": "# Skill\n"} if skill is None else skill).items():
        (folder / "skill" / name).write_text(text)
    config = {
        "env": {"name": "tasks", "data_path": str(folder / "tasks.jsonl"), "split_mode": "field"},
        "train": {"algorithm": algorithm, "num_epochs": 9, "batch_size": 8},
        "evaluation": {"eval_test": False},
        "search": {"examples": "off"},  # they have tests of their own
    }
    config["env"]["skill_init"] = str(folder / "skill" / "SKILL.md" if skill is None else folder / "skill")
    optimizer = teacher(claims=True) if teach is None else teach
    return so.train(
        config,
        name=algorithm,
        runs=folder,
        settings=settings,
        target=so.ChatFunction(agent),
        optimizer=optimizer,
        grader=grader,
    )


def of_type(run: so.Run, kind: type[Event]) -> list[Event]:
    """The events of one type."""
    return [recorded.event for recorded in run.events([kind.__name__])]


def test_what_earned_nothing_is_dropped_before_the_gate(tmp_path: Path) -> None:
    """Useless edits stay out of the skill, and the others of the same answer get in."""
    run = searched(tmp_path, **{"budget.max_calls": 120})
    text = run.skill("best").text
    assert "Think hard" not in text
    assert len(rules_in(text)) > 6
    first = of_type(run, EditsRanked)[0]
    assert len(first.chosen) < len(first.pool)
    assert "fixed nothing" in first.reasoning
    gated = of_type(run, CandidateGated)
    assert {event.verdict.rule for event in gated} == {"not_worse_retest"}
    assert all(event.verdict.taken for event in gated)


def test_an_answer_without_claims_is_credited_by_what_it_speaks_of(tmp_path: Path) -> None:
    """Not every optimizer does what it is asked."""
    run = searched(tmp_path, teach=teacher(claims=False), **{"budget.max_calls": 120})
    edits = of_type(run, PatchProposed)[0].edits
    assert all(edit.claims and edit.claims_assumed for edit in edits)
    assert "Think hard" not in run.skill("best").text


def test_an_edit_that_spoils_everything_takes_no_other_with_it(tmp_path: Path) -> None:
    """Each is tried alone, so that the good ones of the same answer are known as such."""

    def spoiling(request: so.ChatRequest) -> str:
        good = [{"op": "append", "content": f"RULE {kind} {kind[::-1]}"} for kind in failed_in(request)]
        return json.dumps({"edits": [*good, {"op": "append", "content": " ".join(f"RULE {k} x" for k in KINDS)}]})

    run = searched(tmp_path, teach=spoiling, **{"budget.max_calls": 150})
    rules = rules_in(run.skill("best").text)
    assert len(rules) > 6
    assert "x" not in rules.values()


def test_it_ends_within_its_calls_and_is_complete(tmp_path: Path) -> None:
    """The best for so many calls; `total_steps` is no bound then."""
    for most in (60, 90):
        folder = tmp_path / str(most)
        folder.mkdir()
        run = searched(folder, **{"budget.max_calls": most})
        [stopped] = of_type(run, TrainingStopped)
        assert (run.status, stopped.reason, stopped.limit) == ("completed", "budget", float(most))
        assert run.usage().usage.total.calls <= most


@pytest.mark.slow
def test_without_a_gate_it_does_not_pause_in_its_final_test(tmp_path: Path) -> None:
    """The final text may not be the best one, and is tested, too."""
    free = ("--set", "train.algorithm=search", "--set", "evaluation.use_gate=false", "--set", "train.seed=3")
    said = command("run", "--run", "free", *free, "--set", "budget.max_calls=320", cwd=tmp_path)
    assert (said.code, "paused" in said.err) == (0, False)
    run = so.open_run(tmp_path / "runs" / "free")
    [completed] = of_type(run, RunCompleted)
    assert completed.final != completed.best
    assert "the calls that were left do not pay for it" in said.out
    enough = command("run", "--run", "enough", *free, "--set", "budget.max_calls=360", cwd=tmp_path)
    assert (enough.code, "test        initial" in enough.out) == (0, True)


def test_it_ends_where_nothing_is_left_to_fix(tmp_path: Path) -> None:
    """Every training item passes under the text that ships."""
    run = searched(tmp_path)
    [stopped] = of_type(run, TrainingStopped)
    assert stopped.reason == "no_progress"
    assert run.summary().best.value == 1.0


def test_later_batches_are_of_items_that_are_not_solved(tmp_path: Path) -> None:
    """First those that no batch had."""
    run = searched(tmp_path)
    batches = [event.batches[0].items for event in of_type(run, EpochPlanned)]
    assert not set(batches[0]) & set(batches[1])
    assert len(batches[0]) == 8


def test_a_step_without_a_verdict_has_cost_no_validation(tmp_path: Path) -> None:
    """A candidate of which nothing is left after the screen does not meet the gate."""

    def useless(request: so.ChatRequest) -> str:
        edits = [{"op": "append", "content": f"Mind {kind}."} for kind in failed_in(request)]
        return json.dumps({"edits": edits})

    never = searched(tmp_path, teach=useless, **{"train.patience": 2})
    assert [event.reason for event in of_type(never, StepSkipped)] == ["no_edit_chosen"] * 2
    assert not of_type(never, CandidateGated)
    assert {event.candidate.hash for event in of_type(never, CandidateBuilt)}
    assert of_type(never, TrainingStopped)[0].reason == "patience"
    places = {place for recorded in never.events(["RolloutCompleted"]) if (place := recorded.event.place)}
    assert not any(place.endswith("gate") for place in places)


def test_it_learns_more_than_classic_from_the_same_calls(tmp_path: Path) -> None:
    """The same world, models and items."""
    values = {}
    for algorithm in ("search", "classic"):
        (tmp_path / algorithm).mkdir()
        run = searched(tmp_path / algorithm, algorithm=algorithm, **{"budget.max_calls": 110})
        values[algorithm] = run.summary().best.value
    assert values["search"] >= 0.75
    assert values["search"] >= values["classic"] + 0.1


def test_what_is_not_fixed_is_asked_about_again_in_the_same_step(tmp_path: Path) -> None:
    """With what was kept in the skill, what was dropped among the refused, and no task tried anew for it."""
    asked: list[str] = []

    def one_at_a_time(request: so.ChatRequest) -> str:
        asked.append(request.messages[-1].content)
        kinds = sorted(failed_in(request))
        said = [f"RULE {kinds[0]} {kinds[0][::-1]}", *(f"RULE {kind} wrong" for kind in kinds[1:2])]
        return json.dumps({"edits": [{"op": "append", "content": content} for content in said]})

    run = searched(tmp_path, teach=one_at_a_time, **{"budget.max_calls": 70, "search.rounds": 2})
    first, second = of_type(run, MinibatchesPlanned)[:2]
    assert (first.step, second.step) == (1, 1)
    assert not {group.id for group in first.groups} & {group.id for group in second.groups}
    assert {group.place for group in second.groups} == {"e1/s1/b0"}
    [credited] = [event for event in of_type(run, EditsRanked) if event.step == 1]
    assert len(credited.chosen) > len(first.groups)
    later = asked[len(first.groups)]
    assert "RULE kind" in later.partition("## Failed trajectories")[0].partition("refused before")[0]
    assert "wrong" in later.partition("refused before")[2]


def test_a_target_that_never_varies_is_drawn_again_a_few_times_in_all(tmp_path: Path) -> None:
    """And not at all where that is switched off."""

    def further(run: so.Run) -> int:
        return sum(credit.again for event in of_type(run, EditsRanked) for credit in event.credits)

    run = searched(tmp_path)
    assert 0 < further(run) <= 8
    assert not any(credit.varied for event in of_type(run, EditsRanked) for credit in event.credits)
    (tmp_path / "off").mkdir()
    off = searched(tmp_path / "off", **{"search.draw_again": False})
    assert further(off) == 0
    assert off.summary().best.value == run.summary().best.value == 1.0


def test_luck_earns_no_credit(tmp_path: Path) -> None:
    """A target that answers by the toss of a coin takes next to none of the edits that do nothing."""

    def tossing(request: so.ChatRequest) -> str:
        seen[request.messages[0].content, request.messages[-1].content] += 1
        times = seen[request.messages[0].content, request.messages[-1].content]
        kind, word = request.messages[-1].content.split()[-2:]
        heads = random.Random(f"{request.messages[0].content} {word} {times}").random() < 0.3
        return f"{word}-{kind[::-1] if heads else 'none'}"

    def useless(request: so.ChatRequest) -> str:
        rows = failed_in(request).items()
        told = request.messages[-1].content.count("Mind")  # what was refused is not tried again
        edits = [{"op": "append", "content": f"Mind {kind} {told}.", "items": items} for kind, items in rows]
        return json.dumps({"edits": edits})

    seen: Counter[tuple[str, str]] = Counter()
    run = searched(tmp_path, agent=tossing, teach=useless, **{"train.patience": 6})
    proposed = sum(len(event.pool) for event in of_type(run, EditsRanked))
    taken = run.skill("best").text.count("Mind")
    assert proposed > 10
    assert taken <= 0.05 * proposed
    assert any(credit.varied for event in of_type(run, EditsRanked) for credit in event.credits)


def test_another_edit_is_asked_for_where_one_fixes_its_own_task_and_no_other_of_its_type(tmp_path: Path) -> None:
    """The validation tasks of the type tell; the question has the edit among the refused."""
    asked: list[str] = []

    def knowing(request: so.ChatRequest) -> str:
        kind, word = request.messages[-1].content.split()[-2:]
        skill = request.messages[0].content
        known = dict(re.findall(r"KNOW (\w+) (\w+)", skill))
        return f"{word}-{known.get(word, rules_in(skill).get(kind, 'none'))}"

    def memorizing(request: so.ChatRequest) -> str:
        asked.append(request.messages[-1].content)
        edits = []
        for kind, items in sorted(failed_in(request).items()):
            content = f"KNOW wr{items[0][5:]} {kind[::-1]}"
            if kind != "kind00" or content in request.messages[-1].content:
                content = f"RULE {kind} {kind[::-1]}"
            edits.append({"op": "append", "content": content, "items": items[:1]})
        return json.dumps({"edits": edits})

    run = searched(tmp_path, agent=knowing, teach=memorizing)
    kept = {event.step: event.chosen for event in of_type(run, EditsRanked)}
    anew = [group for event in of_type(run, MinibatchesPlanned) for group in event.groups if "anew" in group.id]
    assert anew
    assert any("no other task of their type" in question for question in asked)
    text = run.skill("best").text
    assert "RULE kind00" in text
    assert "KNOW" not in text
    assert any("anew" in name for chosen in kept.values() for name in chosen)
    (tmp_path / "off").mkdir()
    off = searched(tmp_path / "off", agent=knowing, teach=memorizing, **{"search.anew": 0})
    assert not any("anew" in group.id for event in of_type(off, MinibatchesPlanned) for group in event.groups)


def spoiler(spoilt: list[str]) -> Callable[[so.ChatRequest], str]:
    """Finds every rule, and says something wrong of all other kinds beside one of them, once it has found some."""

    def spoiling_later(request: so.ChatRequest) -> str:
        kinds = failed_in(request)
        edits = [{"op": "append", "content": f"RULE {kind} {kind[::-1]}", "items": its} for kind, its in kinds.items()]
        known = rules_in(request.messages[-1].content.partition("## ")[2])
        if len(known) > 4 and not spoilt:
            first, *_ = edits
            spoilt.append("".join(f"\nRULE {kind} x" for kind in known if kind not in kinds))
            edits[0] = {**first, "content": first["content"] + spoilt[0]}
        return json.dumps({"edits": edits})

    return spoiling_later


def test_good_edits_of_a_refused_candidate_are_tried_again_without_the_one_under_suspicion(tmp_path: Path) -> None:
    """Nobody is asked for them again; what lost on validation tells which edit is left out."""

    spoilt: list[str] = []
    run = searched(tmp_path, teach=spoiler(spoilt), **{"gradient.minibatch_size": 20, "search.together": 0})
    refused = [event.step for event in of_type(run, CandidateGated) if not event.verdict.taken]
    assert refused
    again = [event for event in of_type(run, PatchProposed) if "saved" in event.patch]
    assert again
    assert not any(event.calls for event in again)
    assert all(" x" not in edit.content for event in again for edit in event.edits)
    assert again[0].edits[0].content in run.skill("best").text


def test_a_task_that_is_tried_under_one_text_twice_tells_whether_the_target_varies(tmp_path: Path) -> None:
    """Later batches have tasks of earlier ones, and nothing was taken in between: no draw is made for it."""
    asked: Counter[str] = Counter()

    def alternating(request: so.ChatRequest) -> str:
        kind, word = request.messages[-1].content.split()[-2:]
        asked[word] += 1
        return f"{word}-{kind[::-1] if asked[word] % 2 == 0 and word.startswith('wr') else 'none'}"

    def silent(request: so.ChatRequest) -> str:
        return json.dumps({"edits": []})

    run = searched(tmp_path, agent=alternating, teach=silent, **{"train.patience": 6})
    search = fold([recorded.event for recorded in run.events()]).algorithm
    assert search.again == search.varied > 0
    assert len(search.fickle) == search.varied


def test_what_was_retracted_is_neither_known_nor_shown_again(tmp_path: Path) -> None:
    """Not beside other tasks, and not for another edit in the place of one."""
    run = searched(tmp_path, **{"budget.max_calls": 90})
    state = fold([recorded.event for recorded in run.events()])
    item = next(item for each in state.algorithm.kept for item in each.items)
    after = retracted(state, EvidenceRetracted(items=(item,), reason="wrong", by="me")).algorithm
    assert item in state.algorithm.at
    assert item not in after.at
    assert item not in after.known
    assert len(after.kept) == len(state.algorithm.kept)
    assert not any(item in each.items for each in after.kept)


def test_a_result_that_was_retracted_at_one_place_leaves_what_is_known_from_another(tmp_path: Path) -> None:
    """What an item came to before stays, with its text and its place; the three are known together, or none is."""
    run = searched(tmp_path, **{"budget.max_calls": 90})
    state = fold([recorded.event for recorded in run.events()])
    item, place = next(iter(state.algorithm.at.items()))
    elsewhere = EvidenceRetracted(items=(item,), reason="wrong", by="me", place=f"{place}/repeat-9")
    assert retracted(state, elsewhere).algorithm.known == state.algorithm.known
    here = retracted(state, EvidenceRetracted(items=(item,), reason="wrong", by="me", place=place)).algorithm
    assert not {item} & {*here.known, *here.under, *here.at}
    assert here.drawn == state.algorithm.drawn


@pytest.mark.parametrize("form", ["text", "json"])
def test_questions_count_for_the_form_that_they_asked_for(tmp_path: Path, form: str) -> None:
    """Where the config names the form, too: a fork that leaves it open goes by these counts."""
    run = searched(tmp_path, **{"budget.max_calls": 60, "search.reply": form})
    forms = fold([recorded.event for recorded in run.events()]).algorithm.forms
    asked = [event for event in of_type(run, PatchProposed) if event.calls]
    assert asked
    assert {name: each.asked for name, each in forms.items()} == {form: len(asked)}


def test_a_kept_edit_is_there_while_all_its_lines_stand_as_it_wrote_them(tmp_path: Path) -> None:
    """A longer line with its words is another line, and other lines of the same step change nothing."""
    run = searched(tmp_path, **{"budget.max_calls": 90})
    events = [recorded.event for recorded in run.events()]
    taken = [at for at, event in enumerate(events) if isinstance(event, CandidateGated) and event.verdict.taken]
    before = fold(events[: taken[1]])
    [old, *others] = before.algorithm.kept
    assert old.lines == (old.edit.content.strip(),)
    longer = before.built.candidate.text.replace(old.lines[0], f"{old.lines[0]} and more")
    changed = replace(before, built=replace(before.built, candidate=before.built.candidate.with_text(longer)))
    after, as_it_was = gated(changed, events[taken[1]]).algorithm, gated(before, events[taken[1]]).algorithm
    assert as_it_was.kept == (old, *after.kept)
    assert set(others) < set(after.kept)
    assert [each.edit for each in after.tried if each not in as_it_was.tried] == [old.edit]


def test_of_two_edits_of_one_word_that_one_is_kept_which_found_it(tmp_path: Path) -> None:
    """What it changed is its line, whole; the other one is not in the skill."""

    def correcting(request: so.ChatRequest) -> str:
        edits = [
            {"op": "replace", "target": "all wrong", "content": f"{kind} {kind[::-1]}", "items": items}
            for kind, items in failed_in(request).items()
            if "RULE all wrong" in request.messages[-1].content
        ]
        return json.dumps({"edits": edits[:1]})

    skill = {"SKILL.md": "# Skill\n- RULE all wrong, they say.\n"}
    run = searched(tmp_path, teach=correcting, skill=skill, **{"budget.max_calls": 60, "search.prune": False})
    built = of_type(run, CandidateBuilt)[-1]
    assert [report.status for report in built.reports] == ["applied_replace", "skipped_replace_target_not_found"]
    [kept] = fold([recorded.event for recorded in run.events()]).algorithm.kept
    assert kept.edit.id == built.reports[0].edit
    assert kept.lines == (f"- RULE {kept.edit.content}, they say.",)


def test_blame_says_what_an_edit_has_earned(tmp_path: Path) -> None:
    """The tasks that it fixed alone, and how many tries it took to know."""
    run = searched(tmp_path, **{"budget.max_calls": 90})
    said = command("blame", "search", "--line", "3", "--dir", ".", cwd=tmp_path)
    assert re.search(r"tried alone: fixed train.* \(\d+ tr(y|ies)", said.out), said
    told = json.loads(command("blame", "search", "--line", "3", "--dir", ".", "--json", cwd=tmp_path).out)
    [line] = told["lines"]
    [credit] = line["credits"]
    assert credit["fixed"]
    assert set(credit["fixed"]) <= set(line["items"])
    assert "RULE" in line["text"]
    assert run.status == "completed"
    assert "alone it fixed nothing" in command("why-not", "search", "--dir", ".", cwd=tmp_path).out


def test_of_an_edit_that_was_never_tried_nobody_says_that_it_fixed_nothing(tmp_path: Path) -> None:
    """A step has only so many tries, and an edit that says what is there already has nothing to be tried."""

    def talkative(request: so.ChatRequest) -> str:
        kind = min(failed_in(request))
        words = ("please", "always", "at last", "again", "now")
        said = [f"RULE {kind} {kind[::-1]}", *(f"Be careful, {word}." for word in words)]
        return json.dumps({"edits": [{"op": "append", "content": content} for content in said]})

    run = searched(tmp_path, teach=talkative, **{"budget.max_calls": 80})
    ranked = of_type(run, EditsRanked)
    untried = [each.edit for event in ranked for each in event.credits if not each.tries]
    assert untried
    page = command("why-not", "search", "--dir", ".", "--last", "999", cwd=tmp_path).out.splitlines()
    told = [page[at + 1].strip() for at, line in enumerate(page) if set(untried) & set(line.split())]
    assert set(told) == {"it was never tried: its step had no tries left for it"}
    assert len(told) == len(untried)
    explained = command("explain", "search", "step", "1", "--dir", ".", cwd=tmp_path).out
    assert f"dropped  {untried[0]}: never tried: its step had no tries left for it" in explained


def test_an_answer_that_was_refused_before_is_told_with_the_step_and_the_reason(tmp_path: Path) -> None:
    """As far as the log has them: an edit of the same step's first round, of an earlier step, or one that was taken."""

    def stubborn(request: so.ChatRequest) -> str:
        kinds = sorted(failed_in(request))
        said = [f"RULE {kind} {kind[::-1]}" for kind in kinds if kind != "kind03"] or ["Think about kind03."]
        return json.dumps({"edits": [{"op": "append", "content": content} for content in said[:1]]})

    run = searched(tmp_path, teach=stubborn, **{"train.patience": 3})
    again = [event for event in of_type(run, PatchProposed) if event.result == "unusable" and "before" in event.note]
    assert again
    rows = json.loads(command("why-not", "search", "--dir", ".", "--json", cwd=tmp_path).out)["not_taken"]
    earlier = {row["id"]: row["earlier"] for row in rows if row["kind"] == "reply"}
    page = command("why-not", "search", "--dir", ".", cwd=tmp_path).out
    for event in again:
        step = int(earlier[event.patch].partition(":")[0].removeprefix("step "))
        assert step <= event.step
        assert earlier[event.patch] == f"step {step}: alone it fixed nothing"
        assert f"refused in {earlier[event.patch]}" in page
        explained = command("explain", "search", "step", str(event.step), "--dir", ".", cwd=tmp_path).out
        assert f"refused in {earlier[event.patch]}" in explained


def test_more_calls_on_resume_make_the_search_longer(tmp_path: Path) -> None:
    """The end is planned by the limit that is in force."""

    def down(request: so.ChatRequest) -> str:
        raise so.BackendError("the endpoint is down")

    first = searched(tmp_path, teach=down, **{"budget.max_calls": 60})
    assert first.status == "paused"
    more = so.resume(
        tmp_path / "search",
        settings={"budget.max_calls": 120},
        target=so.ChatFunction(agent),
        optimizer=teacher(claims=True),
        grader=grader,
    )
    [stopped] = of_type(more, TrainingStopped)
    assert (more.status, stopped.limit) == ("completed", 120.0)
    assert 70 < more.usage().usage.total.calls <= 120


def test_what_ends_by_its_calls_is_shown_so(tmp_path: Path) -> None:
    """No number of steps is told that nobody has planned; each edit of a step has what it earned."""
    shutil.copytree(GOLDEN / "0.1.0-search" / "run", tmp_path / "runs" / "r")
    told = command("status", "r", cwd=tmp_path).out
    assert re.search(r"^progress +step 12, stopped by patience", told, re.MULTILINE)
    step = command("explain", "r", "step", "5", cwd=tmp_path).out
    assert "step 5: accept new best; events" in step
    assert "screened out: e1/s1/b0/failure-0#1" in command("why-not", "r", cwd=tmp_path).out
    assert re.search(r"screen, event \d+: \d+ of \d+ are kept", step)
    assert re.search(r"  kept +e5/s5/b0/pruning-0#1: of no use to train1$", step, re.MULTILINE)
    idle = command("explain", "r", "step", "9", cwd=tmp_path).out
    assert re.search(r"  dropped +e9/s9/b0/failure-0#2: never tried: it changes nothing$", idle, re.MULTILINE)
    assert "it ended after step 12" in command("explain", "r", "step", "13", cwd=tmp_path).err


def test_a_task_that_fails_for_good_does_not_stop_it(tmp_path: Path) -> None:
    """It is tried alone now and then, and nothing could ever be measured there; the next resume would meet it again."""

    def blocked(request: so.ChatRequest) -> str:
        word = request.messages[-1].content.split()[-1]
        if word in ("wr1", "wr2", "wr3") and len(rules_in(request.messages[0].content)) > 3:
            raise ValueError("the filter blocks it")
        return agent(request)

    run = searched(tmp_path, agent=blocked, **{"rollout.max_failed_share_train": 0.9})
    assert run.status == "completed"
    tried = [event for event in of_type(run, RolloutCompleted) if isinstance(event.outcome, Failed)]
    scored = [event for event in of_type(run, SkillScored) if event.score.measured == 0]
    assert {event.outcome.kind for event in tried if isinstance(event.outcome, Failed)} == {"crash"}
    assert scored
    assert len(rules_in(run.skill("best").text)) > 6


def test_a_result_that_was_retracted_is_not_made_again(tmp_path: Path) -> None:
    """The fork begins before the step that had it, and leaves it out there; elsewhere its task may be tried."""
    run = searched(tmp_path, **{"budget.max_calls": 120})
    bad = next(each for each in run.events(["RolloutCompleted"]) if each.event.place == "e2/s2/b0")
    words = (
        "retract",
        "search",
        "--trajectory",
        str(bad.seq),
        "--apply",
        "--reason",
        "a broken tool",
        "--name",
        "again",
    )
    assert command(*words, "--dir", ".", cwd=tmp_path).code == 0
    again = so.resume(tmp_path / "again", target=so.ChatFunction(agent), optimizer=teacher(claims=True), grader=grader)
    tried = of_type(again, RolloutCompleted)
    assert again.status == "completed"
    assert [event.place for event in tried if event.item == bad.event.item] != []
    assert not [event for event in tried if (event.place, event.item) == ("e2/s2/b0", bad.event.item)]
