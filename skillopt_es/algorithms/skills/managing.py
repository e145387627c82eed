"""The question about the whole folder at an epoch's end, and what it is shown: who opened what, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skillopt_es.algorithms.optimizer import described, guide_section, patch_asked, question, steering_section
from skillopt_es.algorithms.skills.asking import listing_section, open_section, refused_section
from skillopt_es.algorithms.skills.planner import ManageJob
from skillopt_es.algorithms.skills.state import WHOLE, Sighting, SkillsState, where_of
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithms import Asking
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.trajectories import fenced, shortened
from skillopt_es.events.places import Place
from skillopt_es.events.values import WHOLE_FILES
from skillopt_es.ports import ChatRequest
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.proposals import PatchReply
from skillopt_es.replies.skill_changes import CHANGES_SCHEMA, read_skill_changes
from skillopt_es.skill.folders import entries_of, files_of, ids_of, listing_of, main_file

SHOWN_BY_AGENTS = 8_000
"""Characters of names and descriptions after which agents begin to leave some out."""


def ask_for_changes(
    job: ManageJob, state: SkillsState, config: RunConfig, evidence: RecordedTexts
) -> Asking[PatchReply]:
    """The question, and how its answer is read."""
    group, tree, step = job.group, state.current.skill, where_of(state).number
    gone = {skill: each.files for skill, each in state.algorithm.gone.items()}

    def read(text: str) -> PatchReply | Unusable:
        return read_skill_changes(text, patch=group.id, most=config.skills.most_changes, tree=tree, gone=gone)

    return patch_asked(group, step, _request(job, state, config), read)


def _request(job: ManageJob, state: SkillsState, config: RunConfig) -> ChatRequest:
    tree, routing = state.current.skill, routing_table(state.algorithm.sightings, config)
    return question(
        config,
        slot=job.group.id,
        stage="meta_skill",
        prompt="skills_manage",
        sections=(
            open_section(tree, ids_of(tree), "Skills"),
            listing_section(tree),
            _size_section(len(listing_of(tree))),
            f"## What was opened in this epoch\n{fenced('views', views_table(state, config))}",
            f"## Which kinds of task opened what\n{fenced('routing', routing)}",
            _history_section(state),
            refused_section(state.algorithm.refused.get(WHOLE, ())),
            _gone_section(state),
            guide_section(state.started.guide),
            steering_section(state.steering),
            f"At most {config.skills.most_changes} changes.",
        ),
        schema=CHANGES_SCHEMA,
    )


def _size_section(listed: int) -> str:
    over = f"; agents show about {SHOWN_BY_AGENTS:,} and leave out the rest" if listed > SHOWN_BY_AGENTS else ""
    return f"Names and descriptions have {listed:,} characters together{over}."


def _rate(rows: Iterable[Sighting], config: RunConfig) -> str:
    """How many there are, and how many of them passed."""
    there = list(rows)
    return f"{len(there)} ({sum(config.passes(each.outcome) for each in there)} passed)"


def views_table(state: SkillsState, config: RunConfig) -> str:
    """A line a skill: how often it was opened, alone and with others, and what came of the tasks where it was not."""
    tree, lines = state.current.skill, []
    for entry in entries_of(tree):
        # What was tried before it was there could not open it, and says nothing about it.
        since = _since(state, entry.id)
        seen = [each for each in state.algorithm.sightings if (Place(each.attempt.place).step or 0) > since]
        opened = [each for each in seen if entry.id in each.key]
        alone = [each for each in opened if each.key == (entry.id,)]
        size = sum(map(len, files_of(tree, entry.id).values()))
        quiet = state.algorithm.quiet.get(entry.id, 0) + 1 if not opened else 0
        said = [
            f"opened {_rate(opened, config)}",
            f"alone {_rate(alone, config)}",
            f"not opened {_rate((each for each in seen if each not in opened), config)}",
            f"{size} characters",
            *(["always shown"] if entry.always else []),
            *([f"not opened for {quiet} epochs"] if quiet > 1 and not entry.always else []),
        ]
        lines.append(f"- {entry.id}: {', '.join(said)}")
    return "\n".join(lines) or "(there are no skills)"


def _since(state: SkillsState, skill: str) -> int:
    """The step that brought a skill into the folder; 0 for one that was there before all that is remembered."""
    made = (
        done.step
        for done in state.algorithm.history
        for edit in done.edits
        if done.taken and edit.op in WHOLE_FILES - {"describe", "retire"} and edit.file == main_file(skill)
    )
    return max(made, default=0)


def routing_table(seen: Sequence[Sighting], config: RunConfig) -> str:
    """A line for each kind of task: how many there were, and what they opened."""
    lines = []
    for kind in sorted({each.kind for each in seen}):
        rows = [each for each in seen if each.kind == kind]
        keys = sorted({each.key for each in rows})
        opened = [f"{'+'.join(key) or 'nothing'} {_rate((r for r in rows if r.key == key), config)}" for key in keys]
        lines.append(f"- {kind or 'tasks'}: {_rate(rows, config)}; opened {', '.join(opened)}")
    return "\n".join(lines) or "(no task was tried)"


def _history_section(state: SkillsState) -> str:
    lines = [
        f"- step {done.step}, {'taken' if done.taken else 'refused'}: {shortened(described(edit), 300)}"
        for done in state.algorithm.history
        for edit in done.edits
    ]
    return f"## What was changed so far\n{fenced('history', chr(10).join(lines))}" if lines else ""


def _gone_section(state: SkillsState) -> str:
    lines = [f"- {skill}, at step {each.step}" for skill, each in sorted(state.algorithm.gone.items())]
    return f"## Skills that were retired\n{fenced('retired', chr(10).join(lines))}" if lines else ""
