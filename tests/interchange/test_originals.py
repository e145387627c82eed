"""The eight result folders that the original really wrote: followed, checked, given back, and compared with ours."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.exchange import checked, differences, exported, gaps, imported, read
from support.model_server import ModelServer
from support.original_runs import RUNS, answered, config_of, unpacked
from support.params import parametrized
from support.scripted import ticking

from skillopt_es.config import load_config
from skillopt_es.config.original import FLAT
from skillopt_es.config.sections import SECTIONS
from skillopt_es.sessions.session import start
from skillopt_es.sessions.wiring import Session

QUICK = ("0.2.0-full-rewrite-accumulation", "0.2.0-no-learning-rate", "2026-08-rewrite-soft")
"""A run of each way in which folders differ; the others are as long again and differ in single keys."""


# --- in -------------------------------------------------------------------------------------------------------------

# What comes back otherwise than it was, and why.
OURS = {
    ".skillopt-es-export.json",
    *(f"{file}:out_root" for file in ("config.json", "summary.json")),
    "runtime_state.json:best_skill_path",
    "runtime_state.json:current_skill_path",
    *(f"minibatch_{kind}_{number:03d}.json:batch_size" for kind in ("fail", "succ") for number in range(5)),  # no ids
    # The made optimizer's own keys of an edit, which nothing reads: the original keeps whatever an answer has.
    *(
        f"{file}.json:{key}"
        for file in ("merged_patch", "ranked_edits", *(f"minibatch_fail_{number:03d}" for number in range(5)))
        for key in ("claims", "items")
    ),
    "results.jsonl:task_description",  # ours, for every benchmark
    "slow_result.json:update_target",  # a sentence of the original that we have in our own words
    "trajectory_digest.json:pattern",  # the original pairs descriptions and failures by position
    "ranked_edits.json:selected_indices",  # those of the reply that went beyond the budget were not used
}
DRAFTS = {  # we always know how many trajectories a draft stands on
    *(f"{name}.json:{key}" for key in ("support_count", "source_type")
      for name in ("merged_patch", "ranked_edits", "full_rewrite_result")),
    *(f"{name}.json:support_counts" for name in ("history", "step_record")),
    # The endpoint wrote the markers of a guidance block into its texts, so that the placeholder changed nothing.
    *(f"{name}.json:current_origin" for name in ("runtime_state", "summary")),
}  # fmt: skip


@parametrized("name", RUNS, by_default=2)
def test_a_folder_is_followed_checked_and_given_back(tmp_path: Path, name: str) -> None:
    """Nothing is unknown but what the original did not measure; all that can be derived is; and it says the same."""
    folder = unpacked(tmp_path, name)
    state = imported(folder, tmp_path / "run")
    noted = {("start", "the score of the first step's skill")}
    with_notes = read(folder / "config.json").get("use_skill_aware_reflection")
    assert gaps(state) == (noted if with_notes else set())
    assert state.status == "completed"
    report = checked(tmp_path / "run")
    assert report.ok, report.mismatch
    assert report.decisions >= 14
    assert not {what for what in report.unchecked if what.startswith("candidates")}
    found = differences(folder, exported(tmp_path / "run", tmp_path / "out"))
    assert found <= OURS | (DRAFTS if "full-rewrite" in name else set())


@pytest.mark.parametrize(
    ("name", "file", "list_of"),
    [
        ("0.2.0-full-rewrite-accumulation", "merged_patch.json", "skill_candidates"),
        ("0.2.0-no-learning-rate", "merged_patch.json", "edits"),
        ("2026-08-rewrite-soft", "rewrite_result.json", ""),
    ],
)
def test_a_text_that_does_not_follow_is_told_by_its_first_line(
    tmp_path: Path, name: str, file: str, list_of: str
) -> None:
    """A name for each text and the line where they part, and no whole skill."""
    folder = unpacked(tmp_path, name)
    [rule, *_] = re.findall(r"RULE-\d\d", (folder / "skills/skill_v0001.md").read_text())
    for path in [folder / "steps/step_0001" / each for each in (file, file.replace("merged_patch", "ranked_edits"))]:
        path.write_text(path.read_text().replace(rule, "RULE-98"))
    imported(folder, tmp_path / "run")
    found = checked(tmp_path / "run").mismatch
    assert found is not None
    assert (found.event, found.step) == ("CandidateBuilt", 1)
    pattern = rf"the text is \w{{12}}, not \w{{12}}: line \d+ is '- {rule}: .*, not '- RULE-98: .*"
    assert re.search(pattern, str(found)), str(found)
    assert len(str(found)) < 300


def test_guidance_that_the_original_wrote_down_follows_by_its_rules(tmp_path: Path) -> None:
    """It leaves no two empty lines anywhere, where we change nothing outside of the block."""
    folder = unpacked(tmp_path, "0.2.0-notes-no-gate")
    for path in folder.glob("skills/*.md"):
        if path.name != "skill_v0004.md":
            path.write_text(path.read_text().replace("Skill\n\n", "Skill\n\n\n\n"))
    for path in (folder / "steps").glob("*/*.json"):
        path.unlink()
    imported(folder, tmp_path / "run")
    assert checked(tmp_path / "run").ok


# --- out ------------------------------------------------------------------------------------------------------------

FILES = {
    r"\.skillopt-es-export\.json": "says that the folder is an export",
    r".*/target_(system|user)_prompt\.txt": "the archive has no prompts",
    r"(steps/step|slow_update/epoch)_N/selection_eval_current/.*": "what was never measured is measured first",
    r"(slow_update|meta_skill)/epoch_N/rollout_(prev|curr)/topup/.*": "equal skills are not compared again",
    r"steps/step_N/appendix_notes\.json": "written where an analyst gave a note",
    r"(final_selection_eval|test_eval_final)/.*": "whether the last skill is the best one depends on the answers",
}
KEYS = {
    r"skip_reason": "ours",
    r"(.*\.)?edits\.(items|claims)": "the archive's optimizer says them, and nothing reads them",
    r"(.*\.)?edits\.target|(rejected_edits|score_)(after|before)?.*": "depends on the answers: a delete, a rejection",
    r"(tokens|token_summary)\.(ranking|appendix_consolidate)(\..*)?": "depends on the answers: more than is allowed",
    r"ranking_details(\..*)?|n_execution_lapse_notes|n_appendix_notes_.*": "the same",
    r"(prev|curr)(\..*)?|task|category|id": "equal skills are not compared again, so a list of pairs may be empty",
    rf"(config\.)?({'|'.join(['model', *SECTIONS])})\.[a-z_]+": "a key of ours",
    r"(config\.)?azure_openai_api_key": "no secret is in a log",
    r"task_(type|description)": "ours, for every benchmark",
    r".*(support_count|source_type)": "we always know how many trajectories a draft stands on",
}
IGNORED = {
    r"(config\.)?azure_openai_(endpoint|auth_mode)": "for another backend: the original ignores them, we refuse them"
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ModelServer]:
    """The made endpoint."""
    with ModelServer(answered) as server:
        yield server


@parametrized(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in RUNS], by_default=1
)
def test_a_run_of_ours_writes_the_same_files_with_the_same_keys(
    endpoint: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The very settings and data of a run of the original, trained here."""
    for variable in ("AZURE_OPENAI_API_KEY", "OPENAI_API_KEY", "OPENAI_COMPATIBLE_API_KEY"):
        monkeypatch.setenv(variable, "mock")
    monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", endpoint.base_url)
    theirs, settings = unpacked(tmp_path, name), tmp_path / "config.yaml"
    settings.write_text(yaml.safe_dump(config_of(theirs, endpoint.base_url)))
    asyncio.run(
        start(load_config(settings, environ=os.environ), tmp_path / "run", Session(now=ticking(), clock=lambda: 0.0))
    )
    ours = exported(tmp_path / "run", tmp_path / "out")
    files = [{kind_of(path, root) for path in root.rglob("*") if path.is_file()} for root in (theirs, ours)]
    assert not [file for file in files[0] ^ files[1] if not told(file, FILES)]
    left, right = keys_by_kind(theirs), keys_by_kind(ours)
    wrong = [
        (kind, key)
        for kind in left.keys() & right.keys()
        for key in unlike(left[kind], right[kind])
        if not told(key, KEYS | (IGNORED if name.startswith("2026-08") else {}))
    ]
    assert not wrong


def unlike(theirs: set[str], ours: set[str]) -> set[str]:
    """The keys that only one has; of settings ours may have the original's own that it left to their defaults."""
    return theirs - ours | {key for key in ours - theirs if key.removeprefix("config.") not in FLAT}


def kind_of(path: Path, folder: Path) -> str:
    """What a file is: its path without numbers and ids."""
    return re.sub(r"\d+", "N", re.sub(r"(predictions|topup)/[^/]+", r"\1/ID", str(path.relative_to(folder))))


def keys_by_kind(folder: Path) -> dict[str, set[str]]:
    """The keys of a folder's documents by kind of file: those of all steps, of all items, together."""
    found: dict[str, set[str]] = {}
    for path in folder.rglob("*.json*"):
        found.setdefault(kind_of(path, folder), set()).update(keys_of(read(path)))
    return found


def keys_of(value: Any, at: str = "") -> set[str]:
    """Every key of a document with those that it lies under, without the numbers of entries."""
    if isinstance(value, list):
        return {key for each in value for key in keys_of(each, at)}
    if not isinstance(value, dict):
        return set()
    below = {key for name, each in value.items() for key in keys_of(each, f"{at}{name}.")}
    return {f"{at}{name}" for name in value} | below


def told(name: str, exceptions: dict[str, str]) -> bool:
    """Whether a difference is one that has a reason."""
    return any(re.fullmatch(pattern, name) for pattern in exceptions)
