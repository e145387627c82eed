"""A folder of skills: what each was good for, what it came from, and which kinds of task opened what."""

from __future__ import annotations

from skillopt_es.audit.skill_table import SkillRow, SkillTable, Tally
from skillopt_es.report.facts import Facts
from skillopt_es.report.html import DASH, Child, Html, note, row, score, section, table

_SKILLS = (
    "skill | #opened | #of them passed | #missed | #of them passed | #precision | #recall | #listed"
    " | #text | changes | came from"
)
_KINDS = "kind of task | #attempts | opened, and how many of them passed"


def folder_section(facts: Facts) -> Html | None:
    """Both tables; None for a run that trains no folder, or has not tried anything yet."""
    found = facts.folder
    if found is None or not (found.rows or found.routing):
        return None
    words = (
        f"From training attempts alone. Names and descriptions have {found.listed:,} characters together. Precision is "
        "the share of attempts that opened a skill whose kind of task mostly does; recall the share of such tasks that "
        "opened it, and missed are those that did not."
    )
    skills = table("What each skill was good for", _SKILLS, [row(_name(each), *_cells(each)) for each in found.rows])
    return section("The skills of the folder", note(words), skills, _routing(found), name="folder")


def _name(each: SkillRow) -> str:
    return each.name if each.there else f"{each.name} (gone)"


def _cells(each: SkillRow) -> list[Child]:
    since = "there from the start" if each.since == 0 else f"last at step {each.since}"
    return [
        f"{each.opened.attempts:,}",
        score(each.opened.rate),
        f"{each.missed.attempts:,}",
        score(each.missed.rate),
        score(each.precision),
        score(each.recall),
        f"{each.listed:,}" if each.there else DASH,
        f"{each.characters:,}" if each.there else DASH,
        f"{each.taken} taken, {each.refused} refused, {since}",
        " and ".join(each.came_from) or DASH,
    ]


def _routing(found: SkillTable) -> Html | None:
    if not found.routing:
        return None
    rows = [
        row(
            kind,
            f"{sum(each.attempts for each in keys.values()):,}",
            ", ".join(_opened(key, tally) for key, tally in keys.items()),
        )
        for kind, keys in found.routing.items()
    ]
    return table("Which kinds of task opened what", _KINDS, rows)


def _opened(key: tuple[str, ...], tally: Tally) -> str:
    return f"{' + '.join(key) or 'nothing'} {tally.attempts:,} ({tally.passed:,})"
