"""The gate goes by what a judge prefers: which answers are compared, in which orders, and what follows from it."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from support.crashes import KillAt, in_child
from support.in_process import Cli
from support.logs import call_slots, decisions_of, events_of

import skillopt_es as so
from skillopt_es.events.catalog import AnswersCompared, CandidateGated, RolloutCompleted, SkillScored
from skillopt_es.events.values import Json, Measured

CONFIG: Mapping[str, Json] = {
    "model": {"backend": "simulated", "optimizer": "o", "target": "t", "judge": "j"},
    "env": {
        "name": "tasks",
        "data_path": "tasks.jsonl",
        "grader": "exact",
        "rubric": {"polite": "It is polite."},
        "split_mode": "field",
    },
    "train": {"num_epochs": 2, "batch_size": 4},
    "optimizer": {"use_slow_update": False, "use_meta_skill": False},
    "evaluation": {"compare_answers": True, "eval_test": False},
}
LINES = ("please", "thank you", "dear friend")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with twelve tasks that nobody ever solves: no grade tells one skill from another."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "id": f"t{number}",
            "input": f"say {number}",
            "expected": "none",
            "split": ("train", "val", "test")[number // 4],
        }
        for number in range(12)
    ]
    Path("tasks.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return tmp_path


def target(request: so.ChatRequest) -> str:
    """Says the number, and each nice word of the skill; of some tasks it always says the same."""
    number = request.messages[-1].content.split()[-1]
    assert request.skill is not None
    said = [word for word in LINES if word in request.skill.text]
    return number if number == "7" else " ".join((number, *said))


def optimizer(request: so.ChatRequest) -> str:
    """Adds the nice word that is not there yet."""
    text = request.messages[1].content
    word = next((word for word in LINES if word not in text.split("~~~~")[1]), "nothing")
    edit = {"op": "append", "target": "", "content": f"Say {word}."}
    return json.dumps({"failure_summary": [], "patch": {"reasoning": "", "edits": [edit]}})


def prefers(value: Callable[[str], int]) -> Callable[[so.ChatRequest], str]:
    """A judge by how much an answer is worth."""

    def judge(request: so.ChatRequest) -> str:
        given = json.loads(request.messages[1].content)
        first, second = value(given["first"]), value(given["second"])
        word = "first" if first > second else "second" if second > first else "equal"
        return json.dumps({"reasoning": "", "better": {"polite": word}})

    return judge


polite = prefers(lambda answer: sum(word in answer for word in LINES))
rude = prefers(lambda answer: -len(answer))


def trained(name: str, judge: Callable[[so.ChatRequest], str], **settings: Json) -> so.Run:
    """A run; `settings` are keys of the config."""
    given = {key.replace("__", "."): value for key, value in settings.items()}
    return so.train(CONFIG, name=name, target=so.ChatFunction(target), optimizer=optimizer, judge=judge, settings=given)


def compared(run: so.Run) -> list[AnswersCompared]:
    """All comparisons of a run."""
    return [each for each in events_of(run.folder) if isinstance(each, AnswersCompared)]


def verdicts(run: so.Run) -> list[CandidateGated]:
    """All verdicts of a run."""
    return [each for each in events_of(run.folder) if isinstance(each, CandidateGated)]


def test_a_candidate_wins_whose_answers_are_preferred(cli: Cli) -> None:
    """Though no grade tells the two apart; against the skill that is current then, which the log names."""
    run = trained("polite", polite)
    assert run.status == "completed"
    taken = [each for each in verdicts(run) if each.verdict.taken]
    assert [each.verdict.preferred for each in taken] == [0.875] * 2  # task 7 is answered alike: nobody is asked
    assert all(each.verdict.candidate_value == each.verdict.current_value == 0 for each in taken)
    pairs = compared(run)
    first, second = taken
    assert {each.current for each in pairs if each.candidate == second.candidate} == {first.candidate}
    assert {each.place for each in pairs} == {"e1/s1/gate/versus", "e2/s2/gate/versus"}
    replay = cli("replay", "polite", "--check")
    assert replay.code == 0
    assert "its answers preferred 0.8750" in cli("log", "polite", "--type", "CandidateGated").out


def test_the_other_way_round_it_is_refused() -> None:
    """The judge decides, not the order in which it reads."""
    run = trained("rude", rude)
    assert [each.verdict.action for each in verdicts(run)] == ["reject"] * 2
    assert verdicts(run)[0].verdict.preferred == 0.125
    assert len(verdicts(run)[0].verdict.lost) == 3
    always_first = trained("first", lambda request: '{"better": {"polite": "first"}}')
    assert {each.verdict.preferred for each in verdicts(always_first)} == {0.5}
    assert not any(each.verdict.taken for each in verdicts(always_first))


def test_a_comparison_names_its_answers_and_its_calls(cli: Cli) -> None:
    """Both calls are of attempts that are recorded; the judge's are journaled, and counted as its own."""
    run = trained("polite", polite)
    attempts = {
        each.calls[-1]: (each.item, each.skill) for each in events_of(run.folder) if isinstance(each, RolloutCompleted)
    }
    for each in compared(run):
        assert each.answer is not None
        assert each.other is not None
        assert attempts[each.answer] == (each.item, each.candidate)
        assert attempts[each.other] == (each.item, each.current)
        slots = [call.slot.rpartition("/")[2] for call in each.calls]
        assert slots in (["judge-1", "judge-2"], [])
    assert run.usage().usage.by_role["judge"].calls == sum(len(each.calls) for each in compared(run)) > 0
    planned = so.estimate(CONFIG)
    line = next(line for line in planned.lines if line.role == "judge")
    assert line.calls.low <= run.usage().usage.by_role["judge"].calls <= line.calls.high
    assert cli("verify", "polite").code == 0


@pytest.mark.parametrize("rule", ["paired"])
def test_rules_that_draw_again_compare_again(rule: str, cli: Cli) -> None:
    """The n-th draws of both, at places of their own."""
    run = trained(rule, polite, evaluation__gate_rule=rule, evaluation__gate_repeats=4)
    assert verdicts(run)[0].verdict.taken
    assert {"e1/s1/gate/versus", "e1/s1/gate/versus/repeat-2"} <= {each.place for each in compared(run)}
    assert cli("replay", rule, "--check").code == 0


def test_what_was_not_drawn_again_is_not_compared_again(cli: Cli) -> None:
    """A rule that draws again what turned has those answers compared alone."""

    def fickle(request: so.ChatRequest) -> str:
        return '{"better": {"polite": "equal"}}' if request.item == "t4" else polite(request)

    run = trained("retest", fickle, evaluation__gate_rule="retest", evaluation__gate_repeats=3)
    again = [each for each in compared(run) if each.place == "e1/s1/gate/versus/repeat-2"]
    assert {each.item for each in again} == {"t5", "t6"}
    assert verdicts(run)[0].verdict.taken
    assert verdicts(run)[0].verdict.preferred == 0.75
    assert cli("replay", "retest", "--check").code == 0


def test_another_rule_is_tried_on_what_was_compared(cli: Cli) -> None:
    """Without a call; where another text would be current, nobody has compared the two."""
    trained("polite", polite)
    same = cli("regate", "polite", "--set", "evaluation.no_regression=0", "--json")
    assert [each["derived"] for each in same.json["exact"]][:2] == ["accept_new_best"] * 2
    other = cli("regate", "polite", "--set", "evaluation.min_items=99", "--json")
    found = [*other.json["exact"], *other.json["estimate"]][:2]
    assert [each["derived"] for each in found] == ["indecisive", None]
    assert found[1]["why"] == "the answers of the two skills were never compared"


def test_a_judge_that_nobody_can_read_pauses_the_run_and_is_asked_anew(cli: Cli) -> None:
    """What was compared stays; the rest is asked at further slots."""

    first = compared(trained("whole", polite))[0].item

    def mumbling(request: so.ChatRequest) -> str:
        return "hm" if request.item == first else polite(request)

    paused = trained("hm", mumbling)
    assert paused.status == "paused"
    said = cli("status", "hm")
    assert "could not be compared" in said.out + said.err
    done = so.resume("hm", target=so.ChatFunction(target), optimizer=optimizer, judge=polite)
    assert done.status == "completed"
    assert [each.verdict.action for each in verdicts(done)] == [
        each.verdict.action for each in verdicts(so.open_run("whole"))
    ]
    again = [each for each in compared(done) if each.item == first][:2]
    assert [[call.slot.rpartition("/")[2] for call in each.calls] for each in again] == [
        ["judge-1", "judge-2"],
        ["judge-3", "judge-4"],
    ]
    assert cli("replay", "hm", "--check").code == 0


def test_a_run_killed_while_answers_are_compared_ends_as_an_undisturbed_one() -> None:
    """After an event, and after a call of the judge whose answer nobody has seen; no question is put twice."""
    whole = trained("whole", polite)
    first = next(seq for seq, each in enumerate(events_of(whole.folder), 1) if isinstance(each, AnswersCompared))
    slots = call_slots(whole.folder)
    fourth = [number for number, slot in enumerate(slots, 1) if "/versus/" in slot][3]
    for number, killer in enumerate((KillAt(event=first + 1), KillAt(call=fourth))):
        name = f"killed-{number}"

        def begin(name: str = name, killer: KillAt = killer) -> None:
            so.train(
                CONFIG,
                name=name,
                target=so.ChatFunction(target),
                optimizer=optimizer,
                judge=polite,
                watch=so.Watch(observers=(killer,)),
            )

        assert in_child(begin) == signal.SIGKILL
        done = so.resume(name, target=so.ChatFunction(target), optimizer=optimizer, judge=polite)
        assert decisions_of(done.folder) == decisions_of(whole.folder)
        assert sorted(call_slots(done.folder)) == sorted(slots)


def test_a_run_without_a_few_comparisons_goes_on(cli: Cli) -> None:
    """Where the user allows it; the items are left out, like those that were not measured."""

    def mumbling(request: so.ChatRequest) -> str:
        return "hm" if request.item == first else polite(request)

    first = compared(trained("whole", polite))[0].item
    run = trained("hm", mumbling, rollout__max_failed_share=0.5)
    assert run.status == "completed"
    assert verdicts(run)[0].verdict.compared == 3


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model.judge": ""}, "answers are compared by a judge, and nothing says which model that is"),
        ({"skillopt.follow": ["stale_scores"]}, "false where skillopt.follow names stale_scores"),
        ({"env.name": "searchqa", "env.grader": None, "env.rubric": None}, "searchqa"),
    ],
)
def test_what_cannot_be_compared_is_refused(settings: dict[str, Json], said: str) -> None:
    """Before anything is asked."""
    with pytest.raises(so.SkillOptError, match=said):
        so.train(CONFIG, settings=settings, target=so.ChatFunction(target))


def test_answers_that_were_not_there_lose(cli: Cli) -> None:
    """Without a question: an attempt that was late is worse than any answer."""
    calls: list[str] = []

    def late(request: so.ChatRequest) -> str:
        assert request.skill is not None
        if "please" not in request.skill.text:
            raise so.CallFailed("timeout", "too late")
        return target(request)

    def judge(request: so.ChatRequest) -> str:
        calls.append(request.slot)
        return polite(request)

    run = so.train(
        CONFIG,
        name="late",
        target=so.ChatFunction(late),
        optimizer=optimizer,
        judge=judge,
        settings={"rollout.max_unanswered_share": 1, "train.num_epochs": 1},
    )
    assert verdicts(run)[0].verdict.preferred == 1
    assert not calls
    assert all(each.outcome == Measured(1, 1) and each.answer and not each.other for each in compared(run))


def test_grades_are_what_everything_else_goes_by() -> None:
    """The score of a skill stays comparable with that of any other."""
    run = trained("polite", polite)
    scored = [each for each in events_of(run.folder) if isinstance(each, SkillScored)]
    assert {each.value for each in scored if each.purpose == "selection"} == {0.0}
