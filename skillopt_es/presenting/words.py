"""Proposals, fates, and looks at sealed test items in a few words, for whatever shows a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from skillopt_es.counting import counted
from skillopt_es.engine.algorithms import planned_steps
from skillopt_es.events.catalog import RunStarted, SealedTestOpened
from skillopt_es.events.values import WHOLE_FILES, Credit, Draft, Edit, PatchSource, Proposal, SkillTree, Split
from skillopt_es.projections.fates import earned
from skillopt_es.projections.seal import Looks
from skillopt_es.skill.folders import ids_of

if TYPE_CHECKING:
    from skillopt_es.projections.by_hand import ByHand, HandCounts
    from skillopt_es.projections.fates import Fate
    from skillopt_es.projections.lines import Part
    from skillopt_es.projections.summary import Summary


def is_sealed(started: RunStarted) -> bool:
    """Whether each look at the test items of the run has to be recorded."""
    env = started.config.get("env")
    return isinstance(env, dict) and env.get("seal_test") is True


def progress_words(summary: Summary) -> str:
    """Which step a run has come to; of how many, and in which epoch, where that is planned."""
    steps = planned_steps(summary)
    if steps is None:
        return f"step {summary.step}"
    epoch = f", epoch {summary.epoch} of {summary.epochs}" if summary.epoch or not summary.step else ""
    return f"step {summary.step} of {steps}{epoch}"


def progress_cell(summary: Summary) -> str:
    """The same in a table."""
    steps = planned_steps(summary)
    return f"{summary.step}" if steps is None else f"{summary.step}/{steps}"


def part_words(part: Part | None, *, chosen: bool = False) -> str:
    """Over how many items a score is, to be said after it; empty where it is over all."""
    return "" if part is None else f" over {items_words(part, chosen=chosen)}"


def items_words(part: Part | None, *, chosen: bool = False) -> str:
    """These items, and whether the skill was `chosen` by its results on them; empty where they are all."""
    return "" if part is None else f"{part.measured} of {part.of} items{', chosen on these' if chosen else ''}"


def metric_words(metric: str) -> str:
    """What a validation score is: a hard, soft or mixed score."""
    return f"{metric} score" if metric else "score"


def looks_words(looks: Looks) -> str:
    """One line: closed, or how often it was opened and by whom."""
    if not looks.count:
        return "closed: nobody has looked at the test items"
    times = "once" if looks.count == 1 else f"{looks.count} times"
    return f"the test items were looked at {times}: {', '.join(_by(look) for look in looks.opened)}"


def _by(look: SealedTestOpened) -> str:
    return "final evaluation" if look.by == "final" else f"eval of skill {look.skill[:8]}"


_LONGEST = 90  # one line of a terminal with its label in front
_MOST_NAMES = 12  # one line or two; lists of hundreds hide the sentence that they stand in


def short(text: str, longest: int = _LONGEST) -> str:
    """A text on one line, its end left out where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def names(items: Sequence[str], most: int = _MOST_NAMES) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"


_SPLITS: Mapping[Split, str] = {"train": "train task", "val": "validation task", "test": "test task"}


def by_hand_words(found: ByHand) -> str:
    """What people did to a run: 1 candidate accepted, 2 train tasks left out; empty where they did nothing."""
    return hand_count_words(found.counts)


def hand_count_words(found: HandCounts) -> str:
    """The same where only the numbers are known."""
    counts = (
        (found.accepted, "candidate", "accepted"),
        (found.rejected, "candidate", "rejected"),
        (found.pinned, "line", "pinned"),
        (found.struck, "line", "struck"),
        (found.hints, "hint", "given"),
        *((found.left_out.get(split, 0), task, "left out") for split, task in _SPLITS.items()),
        (found.results_left_out, "result", "left out"),
    )
    return ", ".join(f"{counted(number, what)} {done}" for number, what, done in counts if number)


_SOURCES: Mapping[PatchSource, str] = {
    "failure": "failed task",
    "success": "solved task",
    "examples": "worked example",
    "pruning": "line-removal task",
}


def source_words(source: PatchSource, number: int) -> str:
    """What proposals come from: 2 failed tasks, 6 worked examples."""
    return counted(number, _SOURCES[source])


def shown_words(source: PatchSource, items: Sequence[str], solved: Collection[str] = ()) -> str:
    """What the optimizer was shown: 3 failed tasks: a, b, c; 1 solved task for comparison: d."""
    told = [item for item in items if item not in solved]
    beside = [item for item in items if item in solved]
    said = [f"{source_words(source, len(told))}: {names(told)}"] if told else []
    said += [f"{counted(len(beside), 'solved task')} for comparison: {names(beside)}"] if beside else []
    return "; ".join(said)


def credit_words(credit: Credit) -> str:
    """What an edit has earned alone, and what it took to know."""
    again = f", and {credit.again} more to rule out luck" if credit.again else ""
    return f"{earned(credit)} ({counted(credit.tries, 'try')}{again})"


def proposal_words(proposal: Proposal) -> str:
    """What a proposal wants, on one line."""
    if isinstance(proposal, Draft):
        return f"a whole text: {short(proposal.title or '; '.join(proposal.changes))}"
    if not isinstance(proposal, Edit):
        return f"{proposal.kind.replace('_', ' ')}: {short(proposal.instruction)}"
    return _whole_files(proposal) if proposal.op in WHOLE_FILES else _text_edit(proposal)


def _text_edit(edit: Edit) -> str:
    file, content = f" in {edit.file}" if edit.file else "", f"“{short(edit.content)}”"
    target = f"“{short(edit.target, 40)}”"
    match edit.op:
        case "insert_after":
            return f"insert{file} after {target}: {content}"
        case "replace":
            return f"replace{file} {target} by {content}"
        case "delete":
            return f"delete{file} “{short(edit.target)}”"
        case _:
            return f"append{file} {content}"


def _whole_files(edit: Edit) -> str:
    skill = edit.file.partition("/")[0]
    match edit.op:
        case "create":
            return f"create {edit.file} “{short(edit.content)}”"
        case "describe":
            return f"describe {skill} as “{short(edit.content)}”"
        case "retire":
            return f"retire {skill}"
        case _:
            return f"{edit.op} {listed(edit.target.split())} into {skill}"


def skill_named(skill: SkillTree) -> str:
    """What a skill is called where its name is wanted: its main file, or how many skills a folder of them has."""
    if not skill.is_folder:
        return skill.main
    return f"a folder of {counted(len(ids_of(skill)), 'skill')}"


def unsaid_words(merges: int) -> str:
    """The one note on merges that did not say which of their inputs they used."""
    if merges == 1:
        return "The merge did not say which proposals it used; matched by wording."
    return f"{merges} merges did not say which proposals they used; matched by wording."


def fate_words(fate: Fate) -> str:
    """Where a proposal ended, and by which way."""
    way = f"merged into {', then '.join(fate.path[1:])}; " if len(fate.path) > 1 else ""
    way += f"the skill has it in the same words, by {fate.same_as}; " if fate.same_as else ""
    detail = f" ({fate.detail})" if fate.detail else ""
    return f"{way}{fate.reason.replace('_', ' ')}{detail}"


def status_words(status: str, *, damaged: bool) -> str:
    """Where a run stands; of a damaged log that shows no end nobody knows whether there was one."""
    if not damaged:
        return status
    return "damaged" if status == "stopped" else f"{status}, damaged"


def listed(names: list[str]) -> str:
    """Names as one says them: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "none"
