"""The question about attempts that opened the same skills: those in full, the others by name, and what was refused."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_es.algorithms.optimizer import described, guide_section, patch_asked, question, steering_section
from skillopt_es.algorithms.skills.planner import EditJob
from skillopt_es.algorithms.skills.state import Key, Refused, SkillsState, where_of
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithms import Asking
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.trajectories import fenced, shown
from skillopt_es.events.values import Minibatch, SkillTree
from skillopt_es.ports import ChatRequest
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.proposals import PatchReply, placed_in
from skillopt_es.replies.skill_changes import EDITS_SCHEMA, read_skill_edits
from skillopt_es.skill.folders import always_shown, files_of, ids_of, index_of, listing_of, skills_in


def ask_for_edits(job: EditJob, state: SkillsState, config: RunConfig, evidence: RecordedTexts) -> Asking[PatchReply]:
    """The question about one group, and how its answer is read."""
    group, tree = job.group, state.current.skill
    step, most = where_of(state).number, config.optimizer.learning_rate

    def read(text: str) -> PatchReply | Unusable:
        return read_skill_edits(
            text,
            patch=group.id,
            kind=group.kind,
            support=len(group.items),
            most=most,
            viewed=open_now(group, tree),
            tree=tree,
        )

    reader = placed_in(tree, read) if config.optimizer.ask_again else read
    return patch_asked(group, step, _request(group, state, config, evidence), reader)


def open_now(group: Minibatch, tree: SkillTree) -> tuple[str, ...]:
    """The skills that were open or always shown, of those that are there."""
    seen = {*group.viewed, *skills_in(always_shown(tree))}
    return tuple(skill for skill in ids_of(tree) if skill in seen)


def _request(group: Minibatch, state: SkillsState, config: RunConfig, evidence: RecordedTexts) -> ChatRequest:
    tree, most = state.current.skill, config.gradient.max_trajectory_chars
    rows = [state.rollouts[place][item] for place, item in group.attempts]
    texts = [shown(row, evidence, most_chars=most, skill=index_of(tree), config=config) for row in rows]
    title = "Failed" if group.kind == "failure" else "Successful"
    opened = ", ".join(group.viewed) or "no skill"
    return question(
        config,
        slot=group.id,
        stage="analyst",
        prompt="skills_edit",
        sections=(
            open_section(tree, open_now(group, tree)),
            listing_section(tree),
            refused_section(refused_of(state, group.viewed)),
            guide_section(state.started.guide),
            steering_section(state.steering),
            f"## {title} trajectories ({len(texts)}), with {opened} open\n" + "\n\n".join(texts),
            f"At most {config.optimizer.learning_rate} edits.",
        ),
        schema=EDITS_SCHEMA,
    )


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
