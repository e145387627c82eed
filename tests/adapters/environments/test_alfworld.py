"""ALFWorld: commands, prompts, games in the built-in household, and what becomes of a game that breaks."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support import appendix_world
from support.alfworld_planner import plan
from support.environments import BLANK, SKILL, Target, attempt, data_settings, open_on, write_lines

from skillopt_es.adapters.environments.alfworld.commands import BuiltinWorld, do
from skillopt_es.adapters.environments.alfworld.episode import Projection, command_of, projected
from skillopt_es.adapters.environments.alfworld.games import game_text
from skillopt_es.adapters.environments.alfworld.household import household
from skillopt_es.adapters.environments.alfworld.problem import read_problem
from skillopt_es.adapters.environments.alfworld.world import NOTHING_HAPPENS
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.values import Failed, Measured
from skillopt_es.ports import CallFailed, ChatReply, Environment, Item, Message

SIMPLE = "pick_and_place_simple"


def rows(*task_types: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [
        {"id": each, "task_type": each, "game": appendix_world.game(each), "split": "train"} for each in task_types
    ]
    return made + [{**made[0], "id": split, "split": split} for split in ("val", "test")]


def opened(folder: Path, *task_types: str, **options: Any) -> tuple[Environment, Sequence[Item]]:
    path = write_lines(folder / "items.jsonl", rows(*(task_types or (SIMPLE,))))
    data = data_settings(split_mode="field", data_path=str(path))
    environment = open_on(folder, "alfworld", data, **{"world": "builtin", **options})
    return environment, environment.load().train


def says(command: str) -> str:
    return f"<think>So.</think><action>{command}</action>"


# --- commands ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "command", "valid"),
    [
        ("<think>x</think><action>Go To Desk 1</action>", "go to desk 1", True),
        ("<action>look</action>", "look", False),
        ("I would say that the mug is on the desk", "that the mug is on the desk"[-30:], False),
        ("<think>去</think><action>look</action>", "look", False),
        ("</action><action>x", "", False),
        ("<think>x</think><action>a</action><action>b</action>", "a", True),
    ],
)
def test_a_reply_becomes_a_command_as_in_the_original(reply: str, command: str, valid: bool) -> None:
    """Lower case, the first tag, the last thirty characters without one."""
    found = projected(reply)
    assert found.command.endswith(command)
    assert (len(found.command) <= 30 or "<action>" in reply, found.valid) == (True, valid)


@pytest.mark.parametrize("reply", ["", "go to desk 1", "<ACTION>go to desk 1</ACTION>", "<action>go to desk 1"])
def test_a_reply_without_an_action_looks_around(reply: str) -> None:
    """It costs a step, and does nothing else."""
    assert command_of(reply) == Projection("look", valid=False)


# --- the household ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task_type", appendix_world.TASK_TYPES)
def test_every_type_of_task_is_solved_by_a_planner(tmp_path: Path, task_type: str) -> None:
    """The shortest plan wins through the environment, with as many turns as it has commands."""
    commands = plan(game_text(appendix_world.game(task_type)))
    assert len(commands) == appendix_world.shortest(task_type)
    environment, items = opened(tmp_path, task_type)
    episode = attempt(environment, items[0], Target([says(each) for each in commands]))
    assert episode.outcome == Measured(1.0, 1.0)
    assert (episode.turns, episode.failure) == (len(commands), "")
    assert items[0].task_type == task_type


def test_the_first_view_is_alfworlds() -> None:
    """The room, the task and what can be done, in ALFWorld's own words."""
    game = game_text(appendix_world.game(SIMPLE))
    view = asyncio.run(BuiltinWorld(household(read_problem(game.problem), game.task)).reset())
    assert view.observation == (
        "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see "
        "a countertop 1, a desk 1, a fridge 1, a microwave 1, a sidetable 1, and a sinkbasin 1.\n\n"
        "Your task is to: put a apple in sidetable."
    )
    places = ("countertop", "desk", "fridge", "microwave", "sidetable", "sinkbasin")
    assert view.commands == (*(f"go to {each} 1" for each in places), "help", "inventory", "look")


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        (["dance"], NOTHING_HAPPENS),
        (["take apple 1 from countertop 1"], NOTHING_HAPPENS),
        (["go to fridge 1"], "You arrive at fridge 1. The fridge 1 is closed."),
        (["go to fridge 1", "open fridge 1"], "You open the fridge 1. The fridge 1 is open. In it, you see nothing."),
        (["go to desk 1"], "You arrive at desk 1. On the desk 1, you see a desklamp 1, and a mug 2."),
        (["go to desk 1", "use desklamp 1"], "You turn on the desklamp 1."),
        (["go to desk 1", "look"], "You are facing the desk 1. Next to it, you see nothing."),
        (["inventory"], "You are not carrying anything."),
        (["go to desk 1", "take mug 2 from desk 1"], "You pick up the mug 2 from the desk 1."),
        (["go to desk 1", "take mug 2 from desk 1", "inventory"], "You are carrying: a mug 2."),
        (
            ["go to desk 1", "take mug 2 from desk 1", "go to microwave 1", "heat mug 2 with microwave 1"],
            "You heat the mug 2 using the microwave 1.",
        ),
        (
            ["go to desk 1", "take mug 2 from desk 1", "go to fridge 1", "cool mug 2 with fridge 1", "examine mug 2"],
            "This is a cold mug 2.",
        ),
    ],
)
def test_the_household_says_what_alfworld_says(commands: list[str], said: str) -> None:
    """After each command."""
    game = game_text(appendix_world.game("pick_two_obj_and_place"))
    moment = household(read_problem(game.problem), game.task).begin()
    heard = ""
    for command in commands:
        moment, heard = do(moment, command)
    assert heard == said


def test_a_goal_may_say_all_or_not() -> None:
    """As the goals of real games do."""
    game = appendix_world.game(SIMPLE)
    goal = "(and (forall (?r - receptacle) (not (opened ?r))) (exists (?o - object) (isHot ?o)))"
    problem = read_problem(re.sub(r"\(:goal .*\)\n", lambda _: f"(:goal {goal})\n", game["pddl_problem"]))
    moment = household(problem, game["task"]).begin()
    for command in ["go to countertop 1", "take apple 1 from countertop 1", "go to microwave 1", "open microwave 1"]:
        moment, _ = do(moment, command)
    moment, _ = do(moment, "heat apple 1 with microwave 1")
    assert not moment.won
    assert do(moment, "close microwave 1")[0].won


# --- episodes ---------------------------------------------------------------------------------------------------------


def test_there_is_no_hidden_limit_of_steps(tmp_path: Path) -> None:
    """`max_steps` above 50 is what it says."""
    environment, items = opened(tmp_path, max_steps=60)
    target = Target([says("look")])
    episode = attempt(environment, items[0], target)
    assert (episode.outcome, episode.turns, episode.failure) == (Measured(0.0, 0.0), 60, "step_limit")
    assert len(target.asked) == 60
    assert "all 60 steps" in episode.detail


def test_a_target_that_never_keeps_the_form_has_a_code_of_its_own(tmp_path: Path) -> None:
    """The game goes on by looking around."""
    environment, items = opened(tmp_path, max_steps=3)
    episode = attempt(environment, items[0], Target(["go to desk 1"]))
    assert (episode.outcome, episode.failure, episode.prediction) == (
        Measured(0.0, 0.0),
        "format",
        "look > look > look",
    )


def test_the_prompt_holds_the_skill_the_view_and_the_last_two_steps(tmp_path: Path) -> None:
    """The skill is in front of the user message at every step; `help` is never offered."""
    environment, items = opened(tmp_path, max_steps=4)
    target = Target([says("go to desk 1"), says("Look"), says("inventory"), says("look")])
    attempt(environment, items[0], target)
    system, first = target.asked[0]
    assert "Answer briefly." not in system.content
    assert first.content.startswith("## Skill Knowledge\n")
    assert "Answer briefly." in first.content
    assert "Your current observation is: -= Welcome to TextWorld, ALFRED! =-" in first.content
    assert "['go to countertop 1',\n 'go to desk 1',\n" in first.content
    assert "help" not in first.content
    last = target.asked[3][1].content
    assert "Your task is to: put a apple in sidetable." in last
    assert "You have taken 3 steps so far. The last 2" in last
    assert (
        "[Observation 2: 'You arrive at desk 1. On the desk 1, you see a desklamp 1, and a mug 2.', Action 2: 'look']"
        in last
    )
    assert "Action 1:" not in last
    assert "You are at step 4. Your current observation is: You are not carrying anything." in last


@pytest.mark.parametrize(("window", "shown"), [(0, 0), (1, 1), (9, 3)])
def test_the_memory_window_is_an_option(tmp_path: Path, window: int, shown: int) -> None:
    """So many of the last steps are shown, and none under a window of 0."""
    environment, items = opened(tmp_path, max_steps=4, memory_window=window)
    target = Target([says("look")])
    attempt(environment, items[0], target, BLANK)
    assert target.asked[3][1].content.count("[Observation ") == shown
    assert "Skill Knowledge" not in target.asked[3][1].content


def test_analysts_see_the_first_view_every_step_and_what_was_not_admissible(tmp_path: Path) -> None:
    """The trajectory has the observation after each command, and the commands where none of them was given."""
    environment, items = opened(tmp_path, max_steps=2)
    episode = attempt(environment, items[0], Target([says("go to desk 1"), says("fly")]))
    assert [record.kind for record in episode.records] == [
        "system",
        "user",
        "reply",
        "tool",
        "reply",
        "tool",
        "feedback",
    ]
    assert "Admissible commands: ['go to countertop 1'," in episode.records[1].text
    assert episode.records[3].text == (
        "[step 1] go to desk 1\nYou arrive at desk 1. On the desk 1, you see a desklamp 1, and a mug 2."
    )
    assert episode.records[5].text.startswith(
        "[step 2] fly\nNothing happens.\n(not an admissible command; these were: ["
    )
    assert "Answer briefly." not in "".join(record.text for record in episode.records)


def test_an_outage_in_the_middle_of_a_game_passes_through(tmp_path: Path) -> None:
    """It is no command, and no score."""
    environment, items = opened(tmp_path)
    asked = 0

    async def fails(messages: Sequence[Message], *, max_tokens: int | None = None) -> ChatReply:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise CallFailed("server", "no answer")
        return ChatReply(text=says("look"), finish="stop")

    with pytest.raises(CallFailed, match="no answer"):
        asyncio.run(environment.attempt(items[0], SKILL, fails, seed=1))
    assert asked == 3


def test_a_refusal_ends_the_game(tmp_path: Path) -> None:
    """It measures 0 under its own code."""
    environment, items = opened(tmp_path)
    episode = attempt(environment, items[0], Target([says("look"), ChatReply(text="No.", finish="refused")]))
    assert (episode.outcome, episode.failure, episode.turns) == (Measured(0.0, 0.0), "refused", 2)


# --- data -------------------------------------------------------------------------------------------------------------


def files(folder: Path, gamefile: str, game: object) -> Path:
    """A folder with a split of one game file each."""
    path = folder / "games" / "seen" / "pick_heat_then_place_in_recep-Mug" / "game.tw-pddl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(game), encoding="utf-8")
    for split in ("train", "val", "test"):
        (folder / split).mkdir()
        (folder / split / "items.json").write_text(json.dumps([{"id": split, "gamefile": gamefile}]))
    return path


def open_files(folder: Path, **options: Any) -> Environment:
    data = data_settings(split_mode="split_dir", split_dir=str(folder))
    return open_on(folder, "alfworld", data, **{"world": "builtin", "data_root": "games", **options})


GAMEFILE = "seen/pick_heat_then_place_in_recep-Mug/game.tw-pddl"


def test_games_are_found_below_the_data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An option, or the variable that the download sets; the path names the type of the task."""
    game = {
        **appendix_world.game(SIMPLE),
        "task": "",
        "grammar": '"rhs": "Your task is to: put a hot mug in sidetable."',
    }
    files(tmp_path, GAMEFILE, game)
    item = open_files(tmp_path).load().train[0]
    assert item.task_type == "pick_heat_then_place_in_recep"
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "games"))
    environment = open_files(tmp_path, data_root="")
    splits = environment.load()
    episode = attempt(environment, splits.train[0], Target([says("look")]))
    assert episode.task == "put a hot mug in sidetable."


def test_a_changed_game_is_other_data(tmp_path: Path) -> None:
    """The digests of the splits cover the games, and a game that changes during a run is not played."""
    path = files(tmp_path, GAMEFILE, appendix_world.game(SIMPLE))
    environment = open_files(tmp_path)
    before = environment.load()
    path.write_text(json.dumps(appendix_world.game("pick_two_obj_and_place")))
    assert environment.load().digests != before.digests
    episode = attempt(environment, before.train[0], Target([says("look")]))
    assert isinstance(episode.outcome, Failed)
    assert (episode.failure, episode.detail) == ("sandbox", "the game file has changed since the run began")


@pytest.mark.parametrize("gamefile", ["../../elsewhere.tw-pddl", "/etc/passwd", "$HOME/x"])
def test_a_path_that_leads_out_of_the_data_root_is_refused(tmp_path: Path, gamefile: str) -> None:
    """Whatever a manifest says, no other file is read."""
    files(tmp_path, gamefile, appendix_world.game(SIMPLE))
    with pytest.raises(DataError, match="points outside of"):
        open_files(tmp_path).load()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({}, "neither a `gamefile` nor a `game`"),
        ({"gamefile": "x"}, "cannot be read"),
        ({"game": []}, "not an object"),
        ({"game": {"task": "t"}}, "no `pddl_problem`"),
        ({"game": {"pddl_problem": "(define)"}}, "no `task`"),
        ({"game": {"task": "t", "pddl_problem": "(define"}}, "a bracket is missing"),
        ({"game": {"task": "t", "pddl_problem": "(define (:objects a - agent) (:init) (:goal (x)))"}}, "where a is"),
    ],
)
def test_data_that_cannot_be_played_is_refused(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    """Before anything runs, with the line and what is wrong."""
    path = write_lines(tmp_path / "items.jsonl", [{"id": "1", "split": "train", **row}, *rows(SIMPLE)])
    data = data_settings(split_mode="field", data_path=str(path))
    with pytest.raises(DataError, match=said) as caught:
        open_on(tmp_path, "alfworld", data, world="builtin", data_root=".").load()
    assert "items.jsonl:1" in str(caught.value)


def test_game_files_without_a_root_say_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option and the variable are named."""
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    files(tmp_path, GAMEFILE, appendix_world.game(SIMPLE))
    with pytest.raises(DataError) as caught:
        open_files(tmp_path, data_root="").load()
    assert "env.data_root" in caught.value.hint
    assert "ALFWORLD_DATA" in caught.value.hint


def test_textworld_has_to_be_installed_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how, and what there is without it."""
    monkeypatch.setattr("skillopt_es.adapters.environments.alfworld.worlds.textworld_is_installed", lambda: False)
    with pytest.raises(ConfigError) as caught:
        open_files(tmp_path, world="textworld")
    assert "pip install '.[alfworld]'" in caught.value.hint


@pytest.mark.parametrize(
    ("world", "installed", "noted"), [("auto", False, True), ("auto", True, False), ("builtin", False, False)]
)
def test_the_log_notes_a_world_that_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: str, installed: bool, noted: bool
) -> None:
    """Where TextWorld would have been taken and is not installed."""
    monkeypatch.setattr("skillopt_es.adapters.environments.alfworld.worlds.textworld_is_installed", lambda: installed)
    files(tmp_path, GAMEFILE, appendix_world.game(SIMPLE))
    notes = open_files(tmp_path, world=world).load().notes
    assert any("TextWorld is not installed" in note for note in notes) == noted


# --- the hidden reference --------------------------------------------------------------------------------------------

TRAJECTORY = {
    "task_type": "pick_heat_then_place_in_recep",
    "turk_annotations": {
        "anns": [
            {"task_desc": f"Warm mug {number % 4}.", "high_descs": [f"Step {number} {each}." for each in "abc"]}
            for number in range(5)
        ]
    },
    "pddl_params": {"object_target": "Mug", "parent_target": "SideTable", "toggle_target": "", "object_sliced": False},
    "plan": {
        "high_pddl": [
            {"discrete_action": {"action": "GotoLocation", "args": ["countertop"]}},
            {"discrete_action": {"action": "HeatObject", "args": ["microwave", "mug"]}},
            {"discrete_action": {}},
        ]
    },
    "scene": {"floor_plan": "FloorPlan21", "scene_num": 21, "dirty_and_empty": False, "random_seed": 9},
}
KNOWN = """\
[HIDDEN REFERENCE]
Task type:
  pick_heat_then_place_in_recep
In people's words:
  Warm mug 0.
  Warm mug 1.
  Warm mug 2.
Their steps:
{steps}
Objects:
  object_sliced: False
  object_target: Mug
  parent_target: SideTable
Plan:
  1. GotoLocation(countertop)
  2. HeatObject(microwave, mug)
Scene:
  floor_plan: FloorPlan21; scene_num: 21; dirty_and_empty: False""".format(
    steps="\n".join(f"  Step {number} {each}." for number in range(4) for each in "abc")
)


def test_analysts_of_training_items_may_be_shown_how_a_game_is_solved(tmp_path: Path) -> None:
    """Where the config says so; no target ever is, and nobody for what is scored."""
    files(tmp_path, GAMEFILE, appendix_world.game(SIMPLE)).with_name("traj_data.json").write_text(
        json.dumps(TRAJECTORY)
    )
    for shown, expected in ((True, [KNOWN]), (False, [])):
        environment = open_files(tmp_path, show_reference=shown, max_steps=2)
        splits = environment.load()
        for split, wanted in ((splits.train, expected), (splits.val, []), (splits.test, [])):
            target = Target([says("look")])
            records = attempt(environment, split[0], target).records
            assert [each.text for each in records if "HIDDEN" in each.text] == wanted
            assert all(each.kind == "feedback" for each in records if "HIDDEN" in each.text)
            assert "Warm mug" not in repr(target.asked)


def test_a_reference_is_part_of_the_data_where_it_is_shown(tmp_path: Path) -> None:
    """Another one is other data; games without one are noted, and an item may hold its own."""
    file = files(tmp_path, GAMEFILE, appendix_world.game(SIMPLE)).with_name("traj_data.json")
    before = open_files(tmp_path, show_reference=True).load()
    assert any("1 games have no traj_data.json beside them" in note for note in before.notes)
    file.write_text(json.dumps(TRAJECTORY))
    after = open_files(tmp_path, show_reference=True).load()
    assert after.digests["train"] != before.digests["train"]
    assert not any("traj_data.json" in note for note in after.notes)
    plain = open_files(tmp_path).load().digests
    file.write_text("{}")
    assert open_files(tmp_path).load().digests == plain


@pytest.mark.parametrize(
    ("content", "said"),
    [("nothing", "is not JSON"), ("[]", "is not an object"), ("link", "is a link that points outside")],
)
def test_a_reference_that_cannot_be_read_is_refused(tmp_path: Path, content: str, said: str) -> None:
    """Before the run, where it would be shown."""
    file = files(tmp_path, GAMEFILE, appendix_world.game(SIMPLE)).with_name("traj_data.json")
    if content == "link":
        (tmp_path / "elsewhere.json").write_text("{}")
        file.symlink_to(tmp_path / "elsewhere.json")
    else:
        file.write_text(content)
    with pytest.raises(DataError, match=said):
        open_files(tmp_path, show_reference=True).load()
    assert open_files(tmp_path).load()


def test_an_item_with_its_game_may_hold_its_reference(tmp_path: Path) -> None:
    """As `traj_data`, in the same form."""
    given = [{**row, "traj_data": TRAJECTORY} for row in rows(SIMPLE)]
    path = write_lines(tmp_path / "items.jsonl", given)
    data = data_settings(split_mode="field", data_path=str(path))
    environment = open_on(tmp_path, "alfworld", data, world="builtin", max_steps=1, show_reference=True)
    episode = attempt(environment, environment.load().train[0], Target([says("look")]))
    assert episode.records[-2].text == KNOWN
    assert episode.records[-1].text.startswith("[EVALUATION RESULT]")
