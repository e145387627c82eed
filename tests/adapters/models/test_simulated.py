"""The simulated models: pure functions of the request, obedient, fallible in a fixed way, readable by the trainer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from importlib import resources

import pytest
from support.chat import settings
from support.make_demo_tasks import make_tasks

from skillopt_es.adapters.models.simulated import open_model
from skillopt_es.adapters.models.simulated.forms import written
from skillopt_es.adapters.models.simulated.kinds import Rule
from skillopt_es.adapters.models.simulated.optimizer import WARNING
from skillopt_es.adapters.models.simulated.proposals import BREVITY
from skillopt_es.adapters.models.simulated.reminders import reminder, rules_named_in
from skillopt_es.adapters.models.simulated.worlds import house_style, topic_of, worlds
from skillopt_es.algorithms.optimizer import described
from skillopt_es.engine.trajectories import fenced
from skillopt_es.events.values import Edit, Role, Stage
from skillopt_es.ports import ChatReply, ChatRequest, Message, ModelSettings
from skillopt_es.prompts import system_prompt
from skillopt_es.replies.answers import read_epoch_text, read_ranking
from skillopt_es.replies.notes import ConsolidationReply, read_consolidation
from skillopt_es.replies.proposals import PatchReply, read_merge, read_patch

TASKS = make_tasks()
STYLE = house_style()
HARMFUL = worlds()["house"].harmful
ALL_RULES = "\n".join(f"- {rule.wording}" for rule in STYLE)
RECHECK = "<!-- SLOW_UPDATE_START -->\nBefore you answer, re-check every rule.\n<!-- SLOW_UPDATE_END -->"


def _settings(role: Role) -> ModelSettings:
    return settings("", role=role, backend="simulated")


def _ask(role: Role, stage: Stage, *messages: Message, max_tokens: int = 1000) -> ChatReply:
    request = ChatRequest(slot="s", stage=stage, messages=messages, max_tokens=max_tokens)
    return asyncio.run(open_model(_settings(role), {}).complete(request))


def _answers(skill: str, tasks: Sequence[dict[str, str]] = TASKS) -> list[str]:
    """What the target answers to each task under a skill."""
    model = open_model(_settings("target"), {})
    system = Message("system", f"## Skill\n{skill}")

    async def all_of_them() -> list[str]:
        requests = [
            ChatRequest(slot="s", stage="rollout", messages=(system, Message("user", task["input"])), max_tokens=1000)
            for task in tasks
        ]
        return [(await model.complete(request)).text for request in requests]

    return asyncio.run(all_of_them())


def _right(skill: str, tasks: Sequence[dict[str, str]] = TASKS) -> set[str]:
    pairs = zip(tasks, _answers(skill, tasks), strict=True)
    return {task["id"] for task, answer in pairs if answer == task["expected"]}


# --- the target ----------------------------------------------------------------------------------------------------


def test_without_rules_only_what_needs_no_rule_is_right() -> None:
    assert {name.split("-")[0] for name in _right("# Front desk")} == {"place"}


@pytest.mark.parametrize("rule", STYLE, ids=lambda rule: rule.name)
def test_each_rule_repairs_its_own_kind_and_no_other(rule: Rule) -> None:
    kinds = {name.split("-")[0] for name in _right(f"- {rule.wording}")} - {"place"}
    assert len(kinds) == 1


def test_all_rules_repair_nearly_everything_and_lapses_are_naive_answers() -> None:
    answers = _answers(ALL_RULES)
    wrong = [(task, answer) for task, answer in zip(TASKS, answers, strict=True) if answer != task["expected"]]
    assert 0 < len(wrong) < 0.2 * len(TASKS)
    for task, answer in wrong:
        asked = topic_of(task["input"])
        assert asked is not None
        assert answer == written(asked[0].naive, asked[1])


def test_guidance_to_recheck_helps_and_never_hurts() -> None:
    without, checking = _right(ALL_RULES), _right(f"{ALL_RULES}\n\n{RECHECK}")
    assert without < checking
    assert len(checking) > 0.95 * len(TASKS)


def test_guidance_counts_only_between_its_markers() -> None:
    assert len(_right(f"{ALL_RULES}\nBefore you answer, re-check every rule.")) < 0.95 * len(TASKS)


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("date", "Use the ISO format for every date."),
        ("date", "* All DATES look like this: yyyy-mm-dd, never otherwise"),
        ("money", "2. Prices: thousands separators, two decimals, then EUR"),
        ("name", "For names of people put the surname first, in capitals"),
        ("duration", "Convert any duration to min"),
        ("percent", "Shares are percentages with one decimal"),
        ("phone", "Every phone number starts with the country code"),
        ("time", "Use the 24-hour clock for times"),
        ("distance", "Miles become kilometers"),
        ("temperature", "Temperatures in Celsius"),
        ("list", "Sort lists alphabetically and join them with semicolons"),
    ],
)
def test_rules_are_obeyed_in_other_words(kind: str, line: str) -> None:
    tasks = [task for task in TASKS if task["type"] == kind]
    assert len(_right(line, tasks)) > len(tasks) / 2


@pytest.mark.parametrize("line", ["Do not write dates as YYYY-MM-DD.", "- Never use ISO for dates", "Mind the dates."])
def test_what_forbids_a_rule_or_only_mentions_it_is_no_rule(line: str) -> None:
    assert not _right(line, [task for task in TASKS if task["type"] == "date"])


@pytest.mark.parametrize("rule", HARMFUL, ids=lambda rule: rule.name)
def test_harmful_rules_are_obeyed_and_cost_points(rule: Rule) -> None:
    assert len(_right(f"{ALL_RULES}\n- {rule.wording}")) < 0.7 * len(_right(ALL_RULES))


def test_unknown_questions_get_an_answer_that_says_what_this_is() -> None:
    assert "simulated" in _ask("target", "rollout", Message("user", "What is the capital of Peru?")).text


def test_a_follow_up_is_about_the_question_before() -> None:
    task = TASKS[0]
    asked = (Message("system", "## Skill\n"), Message("user", task["input"]))
    again = (*asked, Message("assistant", "…"), Message("user", "Your reply was cut off. Answer again, and be brief."))
    assert _ask("target", "rollout", *again).text == _ask("target", "rollout", *asked).text


# --- both roles ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["target", "optimizer"])
def test_replies_say_that_they_are_simulated_and_count_tokens(role: Role) -> None:
    reply = _ask(role, "probe", Message("user", "12345678"))
    assert reply.model == f"simulated-{role}"
    assert reply.model in reply.text
    assert reply.usage.input == 2
    assert reply.usage.output == -(-len(reply.text) // 4)
    assert open_model(_settings(role), {}).identity == f"simulated {role}"


def test_the_same_request_has_the_same_reply() -> None:
    assert _answers(ALL_RULES) == _answers(ALL_RULES)
    assert _analyst(["date", "money"]) == _analyst(["date", "money"])


def test_a_reply_longer_than_allowed_is_cut() -> None:
    reply = _ask("target", "rollout", Message("user", TASKS[0]["input"]), max_tokens=1)
    assert (reply.finish, len(reply.text)) == ("length", 4)


# --- the optimizer -------------------------------------------------------------------------------------------------


def _trajectory(task: dict[str, str], *, passed: bool = False, got: str = "?") -> str:
    return fenced(
        "trajectory",
        f"item: {task['id']}\ntype: {task['type']}\nresult: {'PASS' if passed else 'FAIL'} (hard 0, soft 0.00)\n\n"
        f"[system] ## Skill\n(the skill document)\n[task] {task['input']}\n[agent] {got}\n"
        f"[evaluation] [EVALUATION RESULT]\nAnswer: {got!r}\nExpected: {json.dumps(task['expected'])}",
    )


def _some(kinds: Sequence[str], skip: int = 0) -> list[dict[str, str]]:
    """For each kind named the next task of it, after the first `skip`."""
    pools = {kind: [task for task in TASKS if task["type"] == kind][skip:] for kind in kinds}
    return [pools[kind].pop(0) for kind in kinds]


def _analyst_text(
    tasks: Sequence[dict[str, str]], *, skill: str, budget: int, extra: str = "", passed: bool = False
) -> str:
    blocks = "\n\n".join(_trajectory(task, passed=passed) for task in tasks)
    word = "Successful" if passed else "Failed"
    user = (
        f"## Current skill\n{fenced('skill', skill)}\n\n## Budget\nPropose at most {budget} edits.\n\n{extra}"
        f"## {word} trajectories ({len(tasks)})\n{blocks}"
    )
    prompt = system_prompt("analyst_success" if passed else "analyst_failure")
    return _ask("optimizer", "analyst", Message("system", prompt), Message("user", user)).text


def _analyst(
    kinds: Sequence[str], *, skill: str = "# Desk", budget: int = 4, extra: str = "", skip: int = 0
) -> PatchReply:
    text = _analyst_text(_some(kinds, skip), skill=skill, budget=budget, extra=extra)
    reply = read_patch(text, patch="p", kind="failure", support=len(kinds), most=budget)
    assert isinstance(reply, PatchReply)
    return reply


NOTES = f"## Your notes from earlier epochs\n- {WARNING}\n\n"
BY_NAME = {rule.name: rule for rule in STYLE}


def test_missing_rules_are_proposed_the_most_frequent_first() -> None:
    reply = _analyst(["date", "money", "money"], extra=NOTES)
    assert [edit.content[2:] for edit in reply.edits] == [BY_NAME["amounts"].wording, BY_NAME["dates"].wording]
    assert [(pattern.type, pattern.count) for pattern in reply.patterns] == [("money form", 2), ("date form", 1)]


def test_the_budget_is_kept() -> None:
    assert len(_analyst(["date", "money", "name"], budget=2, extra=NOTES).edits) == 2


def test_what_the_skill_says_already_is_not_proposed() -> None:
    reply = _analyst(["date", "money"], skill=ALL_RULES)
    assert reply.edits == ()
    assert len(reply.patterns) == 2


def test_a_grader_that_wants_another_form_is_not_answered_with_the_house_style() -> None:
    tasks = [{**task, "expected": "3.3.24"} for task in _some(["date"])]
    reply = read_patch(_analyst_text(tasks, skill="", budget=4), patch="p", kind="failure", support=1, most=4)
    assert isinstance(reply, PatchReply)
    assert reply.edits == ()


def test_sometimes_a_harmful_rule_is_proposed_until_the_notes_warn() -> None:
    def harmful(extra: str) -> int:
        replies = [_analyst(["date", "money"], skip=skip, extra=extra) for skip in range(12)]
        return sum(any(rule.said_by(edit.content) for rule in HARMFUL for edit in reply.edits) for reply in replies)

    assert 0 < harmful("") < 9
    assert harmful(NOTES) == 0


def test_what_was_rejected_in_this_epoch_is_not_proposed_again() -> None:
    refused = Edit(id="x", op="append", content=f"- {BY_NAME['dates'].wording}")
    seen = fenced("step 1", f"Rejected edits (score 0.5 -> 0.4):\n1. {described(refused)}")
    extra = f"{NOTES}## Earlier steps of this epoch\n\n{seen}\n\n"
    assert [edit.content for edit in _analyst(["date", "money"], extra=extra).edits] == [
        f"- {BY_NAME['amounts'].wording}"
    ]


def test_a_harmful_rule_in_the_skill_is_deleted() -> None:
    reply = _analyst(["date"], skill="# Desk\n* Use one word only.\n", extra=NOTES)
    assert (reply.edits[0].op, reply.edits[0].target) == ("delete", "* Use one word only.")


def test_successes_bring_few_edits() -> None:
    found = []
    for skip in range(12):
        text = _analyst_text(_some(["date", "money"], skip), skill="", budget=4, passed=True)
        reply = read_patch(text, patch="p", kind="success", support=2, most=4)
        assert isinstance(reply, PatchReply)
        found += [edit.content for edit in reply.edits]
    assert len(found) < 8
    assert set(found) <= {f"- {BREVITY.wording}"}


def test_merging_joins_what_says_the_same() -> None:
    contents = ["- Write dates as YYYY-MM-DD.", "- Be kind.", "* Dates: ISO", "- be  kind."]
    edits = {
        f"E{n}": Edit(id=f"p#{n}", op="append", content=text, support=n) for n, text in enumerate(contents, start=1)
    }
    rows = [
        {"label": label, "op": edit.op, "target": "", "content": edit.content, "support_count": edit.support}
        for label, edit in edits.items()
    ]
    groups = json.dumps(
        [{"from": "proposal 1", "edits": rows[:2]}, {"from": "proposal 2", "edits": rows[2:]}], indent=1
    )
    user = f"## Current skill\n{fenced('skill', 'x')}\n\n## Proposed edits: 2 proposals, merge level 1\n\n{groups}"
    text = _ask("optimizer", "merge", Message("system", system_prompt("merge_failure")), Message("user", user)).text
    reply = read_merge(text, merge="m", inputs=edits, source="failure")
    assert isinstance(reply, PatchReply)
    assert [(edit.origins, edit.support, edit.origins_assumed) for edit in reply.edits] == [
        (("p#2", "p#4"), 6, False),
        (("p#1", "p#3"), 4, False),
    ]


def test_ranking_goes_by_support() -> None:
    pool = [Edit(id=str(n), op="append", content="x", support=support) for n, support in enumerate((2, 5, 1, 5))]
    lines = "\n".join(f"[{n}] {described(edit)}  support={edit.support}" for n, edit in enumerate(pool))
    user = f"## Proposed edits (4, of which 3 can be applied)\n{lines}\n\nChoose the 3 most important ones, in order."
    reply = read_ranking(_ask("optimizer", "ranking", Message("user", user)).text, pool=4, budget=3)
    assert getattr(reply, "chosen", None) == (1, 3, 0)


def test_epoch_advice_tells_the_target_to_recheck_and_warns_the_optimizer() -> None:
    task = _some(["date"])[0]
    user = (
        f"## Skill at the end of the previous epoch\n{fenced('skill', '# Desk')}\n\n"
        f"## Skill now\n{fenced('skill', ALL_RULES)}\n\n## The same 1 tasks under both skills\n"
        f"before:\n{_trajectory(task)}\nnow:\n{_trajectory(task)}"
    )
    guidance = read_epoch_text(_ask("optimizer", "slow_update", Message("user", user)).text, key="slow_update_content")
    notes = read_epoch_text(_ask("optimizer", "meta_skill", Message("user", user)).text, key="meta_skill_content")
    block = RECHECK.replace("Before you answer, re-check every rule.", getattr(guidance, "content", ""))
    assert "dates" in block
    assert len(_right(f"{ALL_RULES}\n\n{block}")) > 0.95 * len(TASKS)
    assert WARNING in getattr(notes, "content", "")


# --- reminder notes ------------------------------------------------------------------------------------------------

ASKED = "## Budget\nPropose at most 4 edits. Write at most 3 reminder notes.\n\n"


def _appendix(*notes: str) -> str:
    return "\n".join(["<!-- APPENDIX_START -->", *(f"- {note}" for note in notes), "<!-- APPENDIX_END -->"])


def test_a_note_keeps_the_target_from_forgetting_its_own_rule_and_no_other() -> None:
    note = reminder([BY_NAME["dates"], BY_NAME["lists"]])
    without, reminded = _right(ALL_RULES), _right(f"{ALL_RULES}\n\n{_appendix(note)}")
    assert without < reminded
    assert {name.split("-")[0] for name in reminded - without} <= {"date", "list"}
    assert _right(f"# Desk\n{_appendix(note)}") == _right("# Desk")


def test_forgotten_rules_become_notes_and_missing_ones_edits() -> None:
    skill = f"# Desk\n- {BY_NAME['dates'].wording}\n"
    text = _analyst_text(_some(["date", "money"]), skill=skill, budget=4, extra=NOTES + ASKED)
    reply = read_patch(text, patch="p", kind="failure", support=2, most=4, most_notes=3)
    assert isinstance(reply, PatchReply)
    assert reply.notes == (reminder([BY_NAME["dates"]]),)
    assert [edit.content[2:] for edit in reply.edits] == [BY_NAME["amounts"].wording]
    assert {pattern.type: pattern.cause for pattern in reply.patterns} == {"date form": "lapse", "money form": "defect"}
    known = _analyst_text(_some(["date"]), skill=f"{skill}\n{_appendix(*reply.notes)}", budget=4, extra=NOTES + ASKED)
    assert json.loads(known)["appendix_notes"] == []
    assert "appendix_notes" not in json.loads(_analyst_text(_some(["date"]), skill=skill, budget=4))


def test_notes_are_consolidated_into_one_that_names_the_same_rules() -> None:
    notes = [reminder([BY_NAME[name]]) for name in ("dates", "lists", "phone numbers")]
    user = "## Reminder notes (3)\n" + "\n".join(f"{n}. {note}" for n, note in enumerate(notes, start=1))
    reply = read_consolidation(_ask("optimizer", "appendix", Message("user", user)).text, before=notes)
    assert isinstance(reply, ConsolidationReply)
    [note] = reply.notes
    assert {rule.name for rule in rules_named_in(note)} == {"dates", "lists", "phone numbers"}
    assert len(reminder(STYLE)) <= 300


# --- the demo's data -----------------------------------------------------------------------------------------------


def test_the_bundled_tasks_are_what_the_script_makes() -> None:
    bundled = (resources.files("skillopt_es.configs") / "demo" / "tasks.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line) for line in bundled.splitlines()] == TASKS


def test_every_bundled_task_is_understood() -> None:
    for task in TASKS:
        asked = topic_of(task["input"])
        assert asked is not None
        assert (asked[0].kind, written(asked[0].house, asked[1])) == (task["type"], task["expected"])


# --- scripts on workbooks ------------------------------------------------------------------------------------------

SHEET_TASKS = json.loads(
    (resources.files("skillopt_es.configs") / "demo" / "spreadsheetbench" / "dataset.json").read_text()
)
SHEET_RULES = [rule for rule in worlds()["house"].style if rule not in STYLE]


def _scripts(skill: str) -> dict[str, str]:
    """The script for each task on a workbook, under a skill."""
    tasks = [{"input": f"## Instruction\n{task['instruction']}"} for task in SHEET_TASKS]
    return dict(zip((task["id"] for task in SHEET_TASKS), _answers(skill, tasks), strict=True))


def test_every_workbook_task_gets_a_script_that_compiles() -> None:
    """Whatever the skill."""
    for skill in ("", "\n".join(f"- {rule.wording}" for rule in SHEET_RULES)):
        for name, script in _scripts(skill).items():
            assert script.startswith("```python\n"), name
            compile(script.removeprefix("```python\n").removesuffix("```"), name, "exec")


@pytest.mark.parametrize("rule", SHEET_RULES, ids=lambda rule: rule.name)
def test_each_script_rule_changes_the_scripts_of_its_own_kind(rule: Rule) -> None:
    """And of no other; rules of house style change none."""
    naive, told = _scripts(""), _scripts(f"- {rule.wording}")
    assert len({name.split("-")[0] for name in naive if naive[name] != told[name]}) == 1
    assert _scripts(ALL_RULES) == naive
    assert not _right(f"- {rule.wording}") - _right("")
