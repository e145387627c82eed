"""Defaults are part of what was released: fields that have theirs are not written."""

from __future__ import annotations

import json

import attrs
import pytest
from support.params import each_of

from skillopt_es.events.catalog import CATALOG, Event, SkillScored
from skillopt_es.events.codec import decode, encode
from skillopt_es.events.errors import InvalidEvent
from skillopt_es.events.values import (
    Draft,
    Edit,
    EditReport,
    FailurePattern,
    GateVerdict,
    Rewrite,
    Score,
    SkillTree,
    Suggestion,
)

# To change one of these is to change what released logs say: raise the VERSION of the class and add an upcast.
DEFAULTS: dict[str, dict[str, object]] = {
    "RunStarted": {
        "notes": (),
        "guide": "",
        "learned": None,
        "worked": "",
        "twins": (),
        "config_file": None,
        "limit_chosen": False,
    },
    "RunResumed": {"overrides": (), "lost": (), "accepted_loss": ""},
    "RunForked": {"overrides": ()},
    "EvidenceRetracted": {"place": "", "values": None},
    "TextsErased": {"place": ""},
    "RunPaused": {"hint": "", "key": ""},
    "RunSteered": {"text": "", "settings": (), "skill": None},
    "EpochPlanned": {"meta_skill": ""},
    "RolloutCompleted": {
        "failure": "",
        "detail": "",
        "prediction": "",
        "trajectory": "",
        "calls": (),
        "trust": "trusted",
        "viewed": (),
        "injected": (),
        "near": None,
        "truncated": False,
    },
    "SkillScored": {
        "value": None,
        "exact": True,
        "repeat": 1,
        "seed": None,
        "not_run": (),
        "begun_at": "",
        "carried": (),
        "carried_from": "",
    },
    "MinibatchesPlanned": {"dropped": ()},
    "PatchProposed": {
        "edits": (),
        "suggestions": (),
        "drafts": (),
        "notes": (),
        "patterns": (),
        "reasoning": "",
        "note": "",
        "calls": (),
    },
    "AppendixExtended": {},
    "AppendixConsolidated": {"reasoning": "", "note": "", "calls": ()},
    "PatchesMerged": {
        "suggestions": (),
        "drafts": (),
        "reasoning": "",
        "fallback": "",
        "failed": "",
        "calls": (),
    },
    "LearningRateChosen": {"asked": None, "confidence": "", "risks": (), "reasoning": "", "note": "", "calls": ()},
    "ComparisonExtended": {},
    "TriesPlanned": {},
    "EditsRanked": {
        "reasoning": "",
        "fallback": "",
        "failed": "",
        "calls": (),
        "credits": (),
        "effects": (),
        "together": None,
    },
    "SkillRewritten": {"text": "", "changes": (), "reasoning": "", "note": "", "calls": ()},
    "CandidateBuilt": {"rewrite": None, "notes": 0, "gaps_closed": False},
    "CandidateGated": {"against": ()},
    "StepSkipped": {"detail": ""},
    "AppendixWritten": {"value": None, "stale_from": ""},
    "ComparisonDrawn": {},
    "SlowUpdateProposed": {"guidance": "", "candidate": None, "reasoning": "", "note": "", "calls": ()},
    "SlowUpdateApplied": {"guidance": "", "candidate": ""},
    "MetaSkillWritten": {"content": "", "reasoning": "", "note": "", "calls": ()},
    "TrainingStopped": {"limit": None},
    "EpochCompleted": {},
    "BestPromoted": {},
    "CertificateWagered": {"by_type": None, "least": None, "moved": False},
    "SealedTestOpened": {"skill": "", "evaluation": ""},
    "RunCompleted": {"test_initial": None, "test_best": None, "test_final": None},
    "RunImported": {},
    "StepImported": {},
    "GapFound": {"step": None, "skill": None},
    "GateVerdict": {
        "new_best": False,
        "metric": None,
        "candidate_score": None,
        "candidate_value": None,
        "current_score": None,
        "current_value": None,
        "best_value": None,
        "compared": None,
        "won": (),
        "lost": (),
        "known_from": "",
        "stale_from": "",
        "rule": None,
        "reason": "",
        "repeats": 1,
        "current_repeats": 1,
        "error": None,
        "exact": True,
        "retested": (),
    },
    "Score": {"unmeasured": 0},
    "SkillTree": {"main": "SKILL.md", "assets": attrs.Factory(dict), "executable": ()},
    "Edit": {
        "content": "",
        "target": "",
        "file": "",
        "support": 1,
        "source": "failure",
        "origins": (),
        "origins_assumed": False,
        "claims": (),
        "claims_assumed": False,
        "hypothesis": "",
        "change": "",
    },
    "EditReport": {"note": ""},
    "Suggestion": {
        "title": "",
        "motivation": "",
        "priority": "medium",
        "support": 1,
        "source": "failure",
        "origins": (),
        "origins_assumed": False,
    },
    "Draft": {
        "title": "",
        "changes": (),
        "support": 1,
        "source": "failure",
        "origins": (),
        "origins_assumed": False,
    },
    "Rewrite": {"repairs": ()},
    "FailurePattern": {"cause": ""},
}


@each_of(
    "kind", [*CATALOG, GateVerdict, Score, SkillTree, Edit, EditReport, FailurePattern, Suggestion, Draft, Rewrite]
)
def test_no_default_of_a_released_class_changes(kind: type) -> None:
    """Logs do not hold defaults, so a changed one would change what they say."""
    found = {field.name: field.default for field in attrs.fields(kind) if field.default is not attrs.NOTHING}
    assert found == DEFAULTS[kind.__name__]
    assert [type(value) for value in found.values()] == [type(value) for value in DEFAULTS[kind.__name__].values()]


@each_of("kind", CATALOG)
def test_every_default_can_stand_for_itself(kind: type[Event]) -> None:
    """A default that is rebuilt each time could not be compared, one that changes not be shared."""
    for field in attrs.fields(kind):
        assert not isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]
        hash(field.default)


def scored(**changes: object) -> SkillScored:
    """An event with two optional fields."""
    event = SkillScored(
        place="baseline", purpose="selection", split="val", skill="s", score=Score(1.0, 1.0, 3), by_type={}
    )
    return attrs.evolve(event, **changes)  # type: ignore[arg-type]


def test_what_has_its_default_is_not_written() -> None:
    """Any other value is, null too; and a value that only resembles the default is refused."""
    assert {"value", "exact"}.isdisjoint(json.loads(encode(scored()).data))
    written = json.loads(encode(scored(value=0.0, exact=False)).data)
    assert (written["value"], written["exact"]) == (0.0, False)
    with pytest.raises(InvalidEvent, match="exact"):
        encode(scored(exact=1))


def test_a_written_default_is_read_all_the_same() -> None:
    """Other algorithms may spell it out."""
    data = json.dumps({**json.loads(encode(scored()).data), "exact": True, "value": None})
    assert decode("SkillScored", 1, data, str) == scored()
