"""What the optimizer writes at an epoch's end, from one comparison: guidance for the agent, and its own meta skill."""

from __future__ import annotations

from functools import partial

from skillopt_es.algorithms.classic.epoch_end import Compared, selected_pairs
from skillopt_es.algorithms.classic.jobs import MetaSkillJob, SlowUpdateJob
from skillopt_es.algorithms.classic.state import ClassicState, EndedEpoch
from skillopt_es.algorithms.optimizer import guard, question, skill_section
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Asking
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.trajectories import fenced, shown
from skillopt_es.events.catalog import MetaSkillWritten, SlowUpdateProposed
from skillopt_es.events.places import Place
from skillopt_es.events.values import CallRef
from skillopt_es.replies.answers import META_SKILL_SCHEMA, SLOW_UPDATE_SCHEMA, EpochText, read_epoch_text
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.skill.leaks import LeakGuard
from skillopt_es.skill.regions import clean_of_markers, slow_guidance, with_slow_guidance

_ORDER = ("regressed", "persistent_fail", "improved", "stable_success")
_TITLES = {
    "regressed": "Got worse (passed before, fails now)",
    "persistent_fail": "Fails under both skills",
    "improved": "Got better (failed before, passes now)",
    "stable_success": "Passes under both skills",
}


def propose_slow_update(
    job: SlowUpdateJob, state: ClassicState, end: EndedEpoch, config: RunConfig, evidence: RecordedTexts
) -> Asking[EpochText]:
    """The guidance and the skill it would make, or why there is none."""
    skill = state.current.skill
    compared = selected_pairs(state, end, config)
    request = question(
        config,
        slot=(Place.of_epoch(job.epoch).slow / "advice").after_step(job.after),
        stage="slow_update",
        prompt="slow_update",
        sections=(
            *_skills(state, end),
            "## Guidance in force\n" + (slow_guidance(skill.text) or "(none yet)"),
            _comparison_section(compared, end, config, evidence),
        ),
        schema=SLOW_UPDATE_SCHEMA,
    )
    tried = [row for pair in compared for row in (pair.previous, pair.current)]
    read = partial(_read_guidance, guard=guard(tried, skill, config, evidence))
    named = partial(SlowUpdateProposed, epoch=job.epoch, pairs=tuple(row.pair for row in compared))

    def guided(reply: EpochText, calls: tuple[CallRef, ...]) -> SlowUpdateProposed:
        guidance = clean_of_markers(reply.content)
        if not guidance:
            return named(result="unusable", note="the guidance is empty", calls=calls)
        candidate = skill.with_text(with_slow_guidance(skill.text, guidance))
        return named(result="guidance", guidance=guidance, candidate=candidate, reasoning=reply.reasoning, calls=calls)

    return Asking(request=request, read=read, event=guided, none=named)


def _read_guidance(text: str, *, guard: LeakGuard) -> EpochText | Unusable:
    """Guidance that says something and copies no item."""
    found = read_epoch_text(text, key="slow_update_content")
    leak = "" if isinstance(found, Unusable) else guard.leak(found.content)
    return Unusable(f"refused_leak: it copies {leak}; say it so that it holds for other items, too") if leak else found


def write_meta_skill(
    job: MetaSkillJob, state: ClassicState, end: EndedEpoch, config: RunConfig, evidence: RecordedTexts
) -> Asking[EpochText]:
    """The optimizer's meta skill for the next epoch, or why there is none."""
    skills = (
        skill_section(end.epoch.first_skill, "Skill at the end of the previous epoch"),
        skill_section(end.comparison.last, "Skill now"),
    )
    request = question(
        config,
        slot=(Place.of_epoch(job.epoch) / "meta").after_step(job.after),
        stage="meta_skill",
        prompt="meta_skill",
        sections=(
            *(skills if job.after is None else _skills(state, end)),
            "## Your previous notes\n" + (end.epoch.meta_skill or "(none yet)"),
            _comparison_section(selected_pairs(state, end, config), end, config, evidence),
        ),
        schema=META_SKILL_SCHEMA,
    )
    read = partial(read_epoch_text, key="meta_skill_content")
    named = partial(MetaSkillWritten, epoch=job.epoch)

    def written(reply: EpochText, calls: tuple[CallRef, ...]) -> MetaSkillWritten:
        return named(result="written", content=reply.content, reasoning=reply.reasoning, calls=calls)

    return Asking(request=request, read=read, event=written, none=named)


def _skills(state: ClassicState, end: EndedEpoch) -> tuple[str, ...]:
    """The two skills that were compared, and the one of now where steps have changed it since."""
    previous = skill_section(end.epoch.first_skill, "Skill at the end of the previous epoch")
    now = skill_section(state.current.skill, "Skill now")
    if end.comparison.last.hash == state.current.skill.hash:
        return previous, now
    return previous, skill_section(end.comparison.last, "Skill that was compared with it"), now


def _comparison_section(
    compared: tuple[Compared, ...], end: EndedEpoch, config: RunConfig, evidence: RecordedTexts
) -> str:
    counts = {category: sum(row.pair.category == category for row in compared) for category in _ORDER}
    lines = [
        f"## The same {len(compared)} tasks under both skills",
        ", ".join(f"{category} {count}" for category, count in counts.items()),
    ]
    most = config.gradient.max_trajectory_chars // 2
    before, now = end.epoch.first_skill.text, end.comparison.last.text
    for category in _ORDER:
        lines.append(f"\n### {_TITLES[category]}")
        rows = [row for row in compared if row.pair.category == category]
        if not rows:
            lines.append("(none)")
        for row in rows:
            said = f"answered: {row.previous.prediction!r}\nnow: {row.current.prediction!r}"
            lines.append(fenced("result", f"item: {row.pair.item}\n{said}"))
            if category != "stable_success":
                lines.append("before:\n" + shown(row.previous, evidence, most_chars=most, skill=before, config=config))
                lines.append("now:\n" + shown(row.current, evidence, most_chars=most, skill=now, config=config))
    return "\n".join(lines)
