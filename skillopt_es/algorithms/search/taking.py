"""What of an answer is taken: its edits with their claims, each in its place, and why others are not tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve as replace
from attrs import field, frozen

from skillopt_es.algorithms.search.credit import spoken_of
from skillopt_es.algorithms.search.placing import aimed, in_place_of, only_new, put_in, rules_in
from skillopt_es.algorithms.search.refusing import refusal, refused_before
from skillopt_es.algorithms.search.state import Kept, ReplyForm, Tried
from skillopt_es.events.values import REFUSED_BEFORE, Edit, SkillTree

NOTHING_NEW = "it gives back what the skill says already, and nothing else"


@frozen(kw_only=True)
class Asked:
    """
    What a question was about.

    `skill` is what edits are tried on, `shown` what the question has: without `old`, where another edit is wanted in
    its place. `tasks` are those of the question, `known` solved ones of other steps, by what they ask; `told` are the
    refused edits that the question names.
    """

    skill: SkillTree
    shown: SkillTree
    failing: Sequence[str]
    tasks: Mapping[str, str]
    known: Mapping[str, str]
    kept: tuple[Kept, ...]
    old: Kept | None
    told: Sequence[Tried]
    form: ReplyForm
    prompt: str
    close_gaps: bool


@frozen
class Taken:
    """The edits that are tried, and why each of the others is not, by its content; `before`: as what it was refused."""

    edits: tuple[Edit, ...]
    refused: Mapping[str, str]
    before: Mapping[str, tuple[Tried, ...]] = field(factory=dict)


def taken(given: Sequence[Edit], asked: Asked) -> Taken:
    """What of an answer's edits is tried: only what is new, rule by rule, and nothing that was refused already."""
    edits, refused, before = list[Edit](), dict[str, str](), dict[str, tuple[Tried, ...]]()
    for edit in given:
        new = only_new(aimed(edit, asked.shown), asked.shown)
        if new is None:
            refused[edit.content] = NOTHING_NEW
            continue
        for change in _changes_of(new, asked):
            again = refused_before(new, asked.told) if asked.old is not None else ()
            again = again or refused_before(change[-1], asked.told)
            why = REFUSED_BEFORE if again else refusal(change[-1], prompt=asked.prompt, skill=asked.skill.text)
            if why:
                refused[change[-1].content], before[change[-1].content] = why, again
            else:
                edits += change
    return Taken(tuple(edits), refused, before)


def _changes_of(new: Edit, asked: Asked) -> Iterator[tuple[Edit, ...]]:
    if asked.old is not None:
        yield (with_claims(in_place_of(asked.old.edit, new), asked.failing, asked.tasks),)
        return
    for rule in rules_in(new, asked.failing, asked.tasks):
        claimed = with_claims(rule, asked.failing, asked.tasks)
        tasks = {**asked.known, **asked.tasks}
        yield put_in(claimed, asked.kept, asked.skill, tasks, close_gaps=asked.close_gaps)


def with_claims(edit: Edit, failing: Sequence[str], tasks: Mapping[str, str]) -> Edit:
    """
    What an edit claims, and of that first what it speaks of.

    One that speaks of none of the tasks that it names was mixed up, or is more general than its words: it is tried on
    those that it speaks of, and then on the first one that it names.
    """
    spoken = speaks_of(edit, failing, tasks)
    named = tuple(item for item in edit.claims if item in spoken)
    others = tuple(item for item in edit.claims if item not in spoken)
    if named or not spoken:
        return replace(edit, claims=(*named, *others))
    return replace(edit, claims=(*spoken, *others[:1]), claims_assumed=True)


def speaks_of(edit: Edit, failing: Sequence[str], tasks: Mapping[str, str]) -> tuple[str, ...]:
    """The failing tasks that an edit speaks of."""
    return tuple(item for item in spoken_of(edit.content or edit.target, tasks) if item in failing)
