"""What goes back to an item in a folder of skills: also what an epoch's end changed, which rests on counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.skill_world import managing, trained
from support.skills import skill

import skillopt_es as so
from skillopt_es.audit.descent import Evidence, descent

BOTH = {f"{kind}-tasks": skill(f"{kind}-tasks", f"{kind}.", f"RULE {kind} {kind[::-1]}") for kind in ("apple", "birch")}


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> so.Run:
    """A run whose first epoch ends with a merge."""
    into = [{"name": "trees", "description": "apple and birch.", "content": "RULE apple elppa\nRULE birch hcrib\nNew."}]
    change = {"kind": "merge", "skills": [*BOTH], "into": into, "why": "one"}
    folder: Path = tmp_path_factory.mktemp("merged")
    return trained(folder, optimizer=managing(change), skills=BOTH, kinds=("apple", "birch"))


@pytest.mark.parametrize("place", ["", "e1/s1/b0"])
def test_what_an_epochs_end_changed_goes_back_to_every_item_that_it_counted(merged: so.Run, place: str) -> None:
    """The question about the folder was told what all attempts came to."""
    item = next(each.event.item for each in merged.events(["RolloutCompleted"]) if each.event.place == "e1/s1/b0")  # type: ignore[attr-defined]
    found = descent(Evidence(item, place), merged.events())
    patches = [each.name for each in found.derived if each.kind == "patch"]
    assert "e1/s3/manage" in patches
    assert 3 in found.taken
    assert "New." in {line.text for line in found.lines}


def test_an_attempt_of_a_later_epoch_has_no_part_in_it(merged: so.Run) -> None:
    item = next(each.event.item for each in merged.events(["RolloutCompleted"]) if each.event.place == "e2/s4/b0")  # type: ignore[attr-defined]
    found = descent(Evidence(item, "e2/s4/b0"), merged.events())
    assert "e1/s3/manage" not in {each.name for each in found.derived}
    assert 3 not in found.taken
