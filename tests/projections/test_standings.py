"""Who holds which place is read from the events in one way, whoever asks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from attrs import evolve as replace
from support.at_gate import STARTED
from support.make_golden import GOLDEN

from skillopt_es.audit.blame import blame
from skillopt_es.events.catalog import (
    AppendixWritten,
    BestPromoted,
    CandidateGated,
    CertificateWagered,
    EpochCompleted,
    Event,
    GapFound,
    SlowUpdateApplied,
    StepSkipped,
)
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Bets, Decided, GateVerdict, SkillTree
from skillopt_es.projections.core import beginning, evolve, moved, takes
from skillopt_es.projections.lineage import lineage
from skillopt_es.projections.state import Standing
from skillopt_es.projections.summary import summarize
from skillopt_es.sessions.session import read_state

SKILL = SkillTree({"SKILL.md": "# x\n"})


def gated(action: Decided, *, new_best: bool = False) -> CandidateGated:
    return CandidateGated(step=1, candidate="c", verdict=GateVerdict(action=action, new_best=new_best))


def guided(action: Decided, *, new_best: bool = False) -> SlowUpdateApplied:
    return SlowUpdateApplied(epoch=1, skill=SKILL, verdict=GateVerdict(action=action, new_best=new_best))


WON = CertificateWagered(
    place="final/fresh",
    certified="p",
    challenger=SKILL.hash,
    by_item=Bets(stake=1.0, gains={"x": 1.0}, wealth=21.0),
    pairs=1,
    gain=1.0,
    moved=True,
)

TAKEN: tuple[tuple[Event, tuple[str, ...]], ...] = (
    (gated("accept"), ("current",)),
    (gated("accept_new_best", new_best=True), ("current", "best")),
    (gated("force_accept"), ("current",)),
    (gated("force_accept", new_best=True), ("current", "best")),
    (gated("reject"), ()),
    (gated("indecisive"), ()),
    (guided("placeholder"), ("current",)),
    (guided("force_accept"), ("current",)),
    (guided("accept_new_best", new_best=True), ("current", "best")),
    (guided("unchanged"), ()),
    (guided("postponed"), ()),
    (guided("no_content"), ()),
    (AppendixWritten(step=1, previous="p", previous_value=None, skill=SKILL, notes=()), ("current",)),
    (BestPromoted(skill="c", previous="p", value=1.0, previous_value=0.5), ("best",)),
    (WON, ("certified",)),
    (replace(WON, moved=False), ()),
    (GapFound(place="e1/s1", what="the text", why="gone", skill=SKILL), ("current",)),
    (GapFound(place="e1/s1", what="the text", why="gone"), ()),
    (StepSkipped(step=1, reason="unchanged"), ()),
    (EpochCompleted(epoch=1), ()),
)


def test_an_event_says_which_places_its_text_takes() -> None:
    """Whoever holds another place stays there."""
    for event, places in TAKEN:
        assert takes(event) == places, event
        held = {"current": "a", "best": "b", "certified": "c"}
        assert moved(held, event, "new") == {name: "new" if name in places else held[name] for name in held}


@pytest.mark.parametrize("release", sorted(path.name for path in GOLDEN.iterdir() if path.is_dir()))
def test_all_readers_name_the_same_texts(release: str, tmp_path: Path) -> None:
    """The state, the summary, the lineage and the makers of lines, after every verdict of a run."""
    run = Path(shutil.copytree(GOLDEN / release / "run", tmp_path / "run"))
    with EventLog.open(run) as log:
        records = list(log.read())
    ends = [each.seq for each in records if takes(each.event)] + [len(records)]
    for seq in ends:
        state, before = read_state(run, seq), records[:seq]
        summary, tree, lines = summarize(each.event for each in before), lineage(before), blame(before)
        assert state.current is not None
        assert state.best is not None
        assert lines is not None
        current, best = state.current.skill.hash, state.best.skill.hash
        assert (summary.current.skill, summary.best.skill) == (current, best)
        assert (tree.by_name[tree.current].skill, tree.by_name[tree.best].skill) == (current, best)
        assert (lines.current.skill.hash, lines.best.skill.hash) == (current, best)


def test_a_certified_text_is_the_one_that_was_bet_on() -> None:
    """At the end of a run that is the best one, whatever is current."""
    other = Standing(skill=SkillTree({"SKILL.md": "# other\n"}))
    best = Standing(skill=SKILL, step=3)
    state = replace(beginning(STARTED, None), current=other, best=best, certified=other)
    assert evolve(state, WON).certified == best
    assert evolve(state, replace(WON, moved=False)).certified == other
    assert evolve(state, WON).wagers == (WON,)
    with pytest.raises(LookupError):
        evolve(state, replace(WON, challenger="nobody"))
