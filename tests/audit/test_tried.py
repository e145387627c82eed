"""What `explain` says of the trigger set of a candidate, and of the parts that it was tried in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import skill_world as world
from support.command import command
from support.skill_world import managing, trained
from support.skills import skill

import skillopt_es as so
from skillopt_es.audit.tried import Trigger, tried_in
from skillopt_es.projections.chains import chains
from skillopt_es.runs.reading import Reading


def agent(request: so.ChatRequest) -> str | so.ChatReply:
    """Needs its skill for apples and no skill for birches; promised everything, it opens it for later tasks, too."""
    kind, word = next(each.content for each in request.messages if each.role == "user").split()[-2:]
    have, late = world.opened(request), int(word[1:]) >= len("validation")
    fitting = [name for name, said in world.listed(request).items() if kind in said or (late and "everything" in said)]
    if fitting and not have:
        return world.view(*fitting)
    return f"{word}-{kind[::-1]}" if (kind == "apple") == bool(have) else "wrong"


@pytest.fixture(scope="module")
def greedy(tmp_path_factory: pytest.TempPathFactory) -> so.Run:
    """A run whose new description is refused for the sake of training items."""
    into = [{"name": "fruit", "description": "apple and everything.", "content": ""}]
    change = {"kind": "describe", "skills": ["fruit"], "into": into}
    folder = tmp_path_factory.mktemp("greedy")
    skills = {"fruit": skill("fruit", "apple.")}
    return trained(folder, agent=agent, optimizer=managing(change), skills=skills, kinds=("apple", "birch"))


def test_each_trigger_says_what_it_opened_and_whether_it_decided(greedy: so.Run) -> None:
    chain = chains(greedy.events())[3]
    with Reading.of(greedy.folder) as reading:
        tried = tried_in(chain, reading)
    assert chain.gated is not None
    assert tried.parts == ()
    wrong = [each for each in tried.triggers if each.decided]
    assert tuple(each.item for each in wrong) == chain.gated.event.against != ()
    for each in wrong:
        place = "e1/s3/none"
        same = Trigger(
            item=each.item, kind="none", place=place, before=(), after=("fruit",), passed=False, decided=True
        )
        assert each == same
    assert {each.before for each in tried.triggers if each.kind == "should"} == {("fruit",)}
    assert {each.place.rpartition("/")[0] for each in tried.triggers} == {"e1/s3"}


def test_a_step_that_tried_neither_has_neither(greedy: so.Run) -> None:
    with Reading.of(greedy.folder) as reading:
        tried = tried_in(chains(greedy.events())[1], reading)
    assert (tried.triggers, tried.parts) == ((), ())


def test_explain_shows_them(greedy: so.Run) -> None:
    """For people and for programs."""
    said = command("explain", str(greedy.folder), "step", "3", cwd=greedy.folder.parent).out
    assert "needs no skill: opened nothing, then fruit; failed; refused for it" in said
    assert "and they fail: train" in said
    found = json.loads(command("explain", str(greedy.folder), "step", "3", "--json", cwd=greedy.folder.parent).out)
    assert {each["kind"] for each in found["triggers"] if each["decided"]} == {"none"}


def test_parts_are_listed_with_what_was_found_of_them(tmp_path: Path) -> None:
    """Two edits of one skill, one of which harms."""
    rules = {kind: f"RULE {kind} {'wrong' if kind == 'apple' else kind[::-1]}" for kind in world.KINDS}
    edits = [
        {"op": "replace", "skill": "trees", "target": "wrong", "content": "elppa"},
        {"op": "replace", "skill": "trees", "target": "hcrib", "content": "spoilt"},
    ]

    def teacher(request: so.ChatRequest) -> str:
        first = request.stage != "meta_skill" and request.slot.endswith("failure-0")
        return json.dumps({"changes": []} if request.stage == "meta_skill" else {"edits": edits if first else []})

    first = {"trees": skill("trees", "apple, birch, cedar and daisy.", "\n".join(rules.values()))}
    run = trained(
        tmp_path,
        optimizer=teacher,
        skills=first,
        kinds=world.KINDS * 3,
        **{"train.num_epochs": 1, "train.batch_size": 16},
    )
    said = command("explain", str(run.folder), "step", "1", cwd=tmp_path).out
    assert "parts of the candidate, tried on" in said
    assert "with e1/s1/b0/failure-0#1 alone" in said
    assert "e1/s1/b0/failure-0#2: its effect is -" in said
    assert "notice it (standard error 0." in said
    found = json.loads(command("explain", str(run.folder), "step", "1", "--json", cwd=tmp_path).out)
    assert set(found["effect_errors"]) == {"e1/s1/b0/failure-0#1", "e1/s1/b0/failure-0#2"}
    assert "refused together, won val" in said
