"""
What is asked of the optimizer: about attempts that opened the same skills, and at an epoch's end about the folder.

A step's questions show the skills that were open in full and the others by name. The epoch's question also says who
opened what, and what came of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from skillopt_es.algorithms.optimizer import described, guide_section, patch_asked, question, steering_section
from skillopt_es.algorithms.skills.planner import EditJob, ManageJob
from skillopt_es.algorithms.skills.state import WHOLE, Key, Refused, Sighting, SkillsState, where_of
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Asking
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.trajectories import fenced, shortened, shown
from skillopt_es.events.places import Place
from skillopt_es.events.values import WHOLE_FILES, Minibatch, SkillTree
from skillopt_es.replies.proposals import PatchReply, placed_in
from skillopt_es.replies.skill_changes import CHANGES_SCHEMA, EDITS_SCHEMA, read_skill_changes, read_skill_edits
from skillopt_es.skill.folders import (
    SHOWN_BY_AGENTS,
    always_shown,
    entries_of,
    files_of,
    ids_of,
    index_of,
    listing_of,
    main_file,
    skills_in,
)

MOST_CHANGES = 2
"""Changes of the folder in one answer: all of them meet the gate together, and more could not be told apart there."""


def ask_for_edits(job: EditJob, state: SkillsState, config: RunConfig, evidence: RecordedTexts) -> Asking[PatchReply]:
    """The question about one group of attempts."""
    group, tree, most = job.group, state.current.skill, config.optimizer.learning_rate
    viewed, characters = open_now(group, tree), config.gradient.max_trajectory_chars
    rows = [state.rollouts[place][item] for place, item in group.attempts]
    texts = [shown(row, evidence, most_chars=characters, skill=index_of(tree), config=config) for row in rows]
    title = "Failed" if group.kind == "failure" else "Successful"
    opened = ", ".join(group.viewed) or "no skill"
    request = question(
        config,
        slot=group.id,
        stage="analyst",
        prompt="skills_edit",
        sections=(
            open_section(tree, viewed),
            listing_section(tree),
            refused_section(refused_of(state, group.viewed)),
            guide_section(state.started.guide),
            steering_section(state.steering),
            f"## {title} trajectories ({len(texts)}), with {opened} open\n" + "\n\n".join(texts),
            f"At most {most} edits.",
        ),
        schema=EDITS_SCHEMA,
    )
    read = partial(
        read_skill_edits,
        patch=group.id,
        kind=group.kind,
        support=len(group.items),
        most=most,
        viewed=viewed,
        tree=tree,
    )
    reader = placed_in(tree, read) if config.optimizer.ask_again else read
    return patch_asked(group, where_of(state).number, request, reader)


def ask_for_changes(
    job: ManageJob, state: SkillsState, config: RunConfig, evidence: RecordedTexts
) -> Asking[PatchReply]:
    """The question about the whole folder."""
    group, tree, most = job.group, state.current.skill, MOST_CHANGES
    request = question(
        config,
        slot=group.id,
        stage="meta_skill",
        prompt="skills_manage",
        sections=(
            open_section(tree, ids_of(tree), "Skills"),
            listing_section(tree),
            _size_section(len(listing_of(tree))),
            f"## What was opened in this epoch\n{fenced('views', views_table(state, config))}",
            "## Which kinds of task opened what\n"
            + fenced("routing", routing_table(state.algorithm.sightings, config)),
            _history_section(state),
            refused_section(state.algorithm.refused.get(WHOLE, ())),
            _gone_section(state),
            guide_section(state.started.guide),
            steering_section(state.steering),
            f"At most {most} changes.",
        ),
        schema=CHANGES_SCHEMA,
    )
    gone = {skill: each.files for skill, each in state.algorithm.gone.items()}
    read = partial(read_skill_changes, patch=group.id, most=most, tree=tree, gone=gone)
    return patch_asked(group, where_of(state).number, request, read)


# --- what they show --------------------------------------------------------------------------------------------------


def open_now(group: Minibatch, tree: SkillTree) -> tuple[str, ...]:
    """The skills that were open or always shown, of those that are there."""
    seen = {*group.viewed, *skills_in(always_shown(tree))}
    return tuple(skill for skill in ids_of(tree) if skill in seen)


def open_section(tree: SkillTree, skills: Sequence[str], title: str = "Skills that were open") -> str:
    """Every file of these skills, fenced under its path; or that there is none."""
    files = [fenced(path, text) for skill in skills for path, text in files_of(tree, skill).items()]
    return f"## {title}\n" + ("\n\n".join(files) or "(none)")


def listing_section(tree: SkillTree) -> str:
    """What the agent is shown of all skills before it opens one."""
    return f"## Names and descriptions\n{fenced('skills', listing_of(tree) or '(there are no skills yet)')}"


def refused_of(state: SkillsState, key: Key) -> list[Refused]:
    """
    What was refused for these skills.

    Several answers of a step may make the same skill. All but the first are told as that one: not at all, if it was
    taken, and else once.
    """
    made = {(done.step, edit.file): (edit, done.taken) for done in state.algorithm.history for edit in done.edits}
    found: dict[str, Refused] = {}
    for each in state.algorithm.refused.get(key, ()):
        first, taken = made.get((each.step, each.edit.file), (each.edit, False))
        if each.edit.op != "create" or first.op != "create" or first.id == each.edit.id:
            found[each.edit.id] = each
        elif not taken:
            found.setdefault(first.id, Refused(step=each.step, edit=first, why="validation refused the step's edits"))
    return [*found.values()]


def refused_section(refused: Sequence[Refused]) -> str:
    """What was refused for these skills, the newest first; or nothing."""
    if not refused:
        return ""
    lines = [f"- step {each.step}: {described(each.edit)}\n  refused: {each.why}" for each in reversed(refused)]
    told = fenced("refused", "\n".join(lines))
    return f"## Updates that were refused before\nDo not give them again as they are.\n{told}"


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
