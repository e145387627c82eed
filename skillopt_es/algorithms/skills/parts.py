"""
A candidate of several changes that was refused as a whole: which of them may stay. Pure.

A change can be made without the others. It is noticed by items that open a skill that it is about, before or after.
Where an item opens otherwise or comes out otherwise and opened none of those, it may be any change of what is listed.

Items that notice two changes or more cannot say which one it was. Some of them are tried again, each under a part of
those changes that the run's seed draws. What each change does is fitted to all draws, and what does no harm is judged
by itself, on draws of its own. A gate's cost is a result of each item that it may want, and a trigger set: the two
gates and what was drawn between them cost twice that at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from attrs import frozen

from skillopt_es.algorithms.skills.candidate import Candidate
from skillopt_es.algorithms.skills.effects import Draw, effects
from skillopt_es.algorithms.skills.gate import GATE, gate_config
from skillopt_es.algorithms.skills.state import Key, SkillsState, place_of, where_of
from skillopt_es.algorithms.skills.triggers import triggers_met
from skillopt_es.engine.draws import draw_seed, shuffled, some_of
from skillopt_es.engine.estimates import most_draws
from skillopt_es.engine.evaluations import too_many_unmeasured, units_of, unmeasured_hint
from skillopt_es.engine.work import Decide, Evaluation, Rollouts, Unit, Work
from skillopt_es.events.catalog import RunPaused
from skillopt_es.events.places import Place
from skillopt_es.events.values import Edit, Effect, GateVerdict, Measured, Tries
from skillopt_es.gate.verdicts import candidate_gated, rule_of
from skillopt_es.skill.folders import always_shown, skill_of, skills_in

Worths = Sequence[tuple[str, float]]
"""Results: an item, and what it came to."""


@frozen(kw_only=True)
class Change:
    """Edits that can only be made together, and the skills that they are about; `lists` where those are listed anew."""

    edits: tuple[str, ...]
    skills: frozenset[str]
    lists: bool

    @property
    def name(self) -> str:
        """Its first edit's."""
        return self.edits[0]


@frozen
class Whole(Candidate):
    """A candidate of changes: which items notice each, and what they came to under all, some or none of them."""

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The changes that it consists of."""
        routing, found = self.routing, []
        for edits in self._apart():
            skills = frozenset(name for edit in edits for name in (skill_of(edit.file), *_sources(edit)))
            names = tuple(edit.id for edit in edits)
            found.append(Change(edits=names, skills=skills, lists=bool(skills & (routing.old | routing.new))))
        return tuple(found)

    def _apart(self) -> list[tuple[Edit, ...]]:
        """The edits in groups: the parts of one change, and those that cannot be applied where another is left out."""
        of = {edit.id: edit.change or edit.id for edit in self.edits}
        for left_out in dict.fromkeys(of.values()):
            _, reports = self.made_with([edit for edit in self.edits if of[edit.id] != left_out])
            needy = {of[report.edit] for report in reports if not report.applied}
            of = {name: left_out if group in needy else group for name, group in of.items()}
        return [tuple(edit for edit in self.edits if of[edit.id] == group) for group in dict.fromkeys(of.values())]

    @cached_property
    def noticed(self) -> Mapping[str, frozenset[str]]:
        """The changes that each validation item notices, by their names."""
        shown = {skill for folder in self.folders for skill in skills_in(always_shown(folder))}
        parts: dict[str, Key] = {}
        for tries in self.algorithm.parts:
            for row in self.rows(tries.place).values():
                parts[row.item] = (*parts.get(row.item, ()), *skills_in(row.viewed))
        found = {}
        for item in self.items:
            keys = [view[item] for view in self.views if item in view]
            opened = shown.union(*keys, parts.get(item, ()))
            found[item] = self._noticing(opened, moved=item in self.turned or len(set(keys)) > 1)
        return found

    def _noticing(self, opened: set[str], *, moved: bool) -> frozenset[str]:
        direct = frozenset(change.name for change in self.changes if change.skills & opened)
        return direct or frozenset(change.name for change in self.changes if change.lists and moved)

    @cached_property
    def turned(self) -> dict[str, float]:
        """The items that came out otherwise under all of it, as far as they were tried, and by how much."""
        before, after = _by_item(self._before), _by_item(self._together)
        gains = {item: _mean(after[item]) - _mean(before[item]) for item in before if item in after}
        return {item: gains[item] for item in self.items if gains.get(item, 0.0) != 0.0}

    @cached_property
    def draws(self) -> tuple[Draw, ...]:
        """Every result under the current folder, all of it or parts, with what was on that the item notices."""
        every = frozenset(change.name for change in self.changes)
        found = [Draw(item, frozenset(), value) for item, value in self._before]
        found += [Draw(item, every & self.noticed[item], value) for item, value in self._together if item in self.items]
        for tries in self.algorithm.parts:
            on = frozenset(change.name for change in self.changes if change.name in tries.edits)
            tried = self._worths((row.item, row.outcome) for row in self.rows(tries.place).values())
            found += [Draw(item, on & self.noticed[item], value) for item, value in tried]
        for each in triggers_met(self):
            on = self._noticing({*each.before, *each.after}, moved=each.before != each.after)
            found.append(Draw(each.item, frozenset(), self.config.worth(each.was.hard, each.was.soft)))
            found.append(Draw(each.item, on, self.config.worth(each.now.hard, each.now.soft)))
        return tuple(found)

    @cached_property
    def _before(self) -> Worths:
        drawn = self.state.measured[self.state.current.skill.hash].drawn
        return self._worths(row for each in drawn for row in each.items.items())

    @cached_property
    def _together(self) -> Worths:
        """The results of all of it, those of a draw that ended early among them."""
        name = self.built.candidate.hash
        known = self.state.measured.get(name)
        begun = [each for (skill, _), each in self.state.partial.items() if skill == name]
        return [
            *self._worths(row for each in (known.drawn if known is not None else ()) for row in each.items.items()),
            *self._worths((item, row.outcome) for each in begun for item, row in each.rows.items()),
        ]

    def _worths(self, rows: Iterable[tuple[str, object]]) -> Worths:
        return [(item, self.config.worth(row.hard, row.soft)) for item, row in rows if isinstance(row, Measured)]

    @cached_property
    def mixed(self) -> GateVerdict | None:
        """The verdict that refuses all changes together, where some of them may be better than that."""
        if not self.config.evaluation.use_gate or self.algorithm.ranked is not None:
            return None
        if self.state.current.skill.hash not in self.state.measured or len(self.changes) < 2:
            return None
        gated = candidate_gated(self.state, self.config, self.built, GATE)
        verdict = gated.verdict
        if verdict.taken or not verdict.by_gate or self.built.candidate.hash in self.state.steering.by_hand:
            return None
        hope = (gain for item, gain in self.turned.items() if self.noticed[item])
        return verdict if gated.against or any(gain > 0.0 or self.takes_ties for gain in hope) else None

    @property
    def takes_ties(self) -> bool:
        """Whether the rule takes what is only as good."""
        return rule_of(gate_config(self.state, self.config)).takes_ties


def _sources(edit: Edit) -> list[str]:
    return edit.target.split() if edit.op in ("rename", "merge", "split") else []


def _by_item(rows: Worths) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for item, value in rows:
        found.setdefault(item, []).append(value)
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


# --- what stays ------------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Parted:
    """The edits that may stay, what each change was found to do, and what the gate said of all together."""

    kept: tuple[str, ...]
    effects: tuple[Effect, ...]
    together: GateVerdict


def part_work(whole: Whole) -> Work | None:
    """What is still to be drawn or decided of a refused candidate's parts; nothing where it is refused as a whole."""
    if whole.mixed is None:
        return None
    if not whole.algorithm.parts and parts_drawn(whole):
        return Decide("draw_parts")
    missing = [unit for unit in _units(whole) if unit.item not in whole.rows(unit.place)]
    if missing:
        return Rollouts(tuple(missing))
    if failed_parts(whole) is not None:
        return Decide("pause_for_parts")
    return Decide("part") if parted(whole) is not None else None


def parted(whole: Whole) -> Parted | None:
    """What may stay, by what the changes were found to do; None where all or nothing would."""
    if whole.mixed is None:
        return None
    found = effects(whole.draws, [change.name for change in whole.changes])
    stay = [change for change in whole.changes if found[change.name] >= 0.0]
    helps = any(found[change.name] > 0.0 for change in stay)
    if not stay or len(stay) == len(whole.changes) or not (helps or whole.takes_ties):
        return None
    kept = {name for change in stay for name in change.edits}
    noticing = whole.noticed.values()
    return Parted(
        kept=tuple(edit.id for edit in whole.edits if edit.id in kept),
        effects=tuple(
            Effect(edits=each.edits, effect=found[each.name], items=sum(each.name in names for names in noticing))
            for each in whole.changes
        ),
        together=whole.mixed,
    )


# --- what is drawn -----------------------------------------------------------------------------------------------


def parts_drawn(whole: Whole) -> tuple[Tries, ...]:
    """
    Which items are tried under which part of the changes that they notice; nothing where no item notices two.

    Those that came out otherwise come first, and each has one draw: so many as the first gate has left of its cost.
    """
    seed = whole.config.train.seed + whole.where.number
    order = shuffled([item for item in whole.items if len(whole.noticed[item]) > 1], seed)
    order.sort(key=lambda item: item not in whole.turned)
    of_part: dict[tuple[str, ...], list[str]] = {}
    for item in order[: max(0, _most_of_a_gate(whole) - _spent(whole.state))]:
        on = some_of([change.name for change in whole.changes if change.name in whole.noticed[item]], f"{seed} {item}")
        edits = tuple(edit for change in whole.changes if change.name in on for edit in change.edits)
        of_part.setdefault(edits, []).append(item)
    at = place_of(whole.state) / "parts"
    return tuple(
        Tries(place=at / str(number), items=tuple(items), edits=edits)
        for number, (edits, items) in enumerate(sorted(of_part.items()), start=1)
    )


def _most_of_a_gate(whole: Whole) -> int:
    """How many results one gate takes at most, its trigger set among them."""
    return most_draws(gate_config(whole.state, whole.config)) * len(whole.items) + 3 * whole.config.skills.triggers


def _spent(state: SkillsState) -> int:
    """How many results the open step's first gate has taken."""
    here = where_of(state).place
    scored = [each for each in state.scored.values() if here.holds(each.place) and Place(each.place).batch is None]
    counts = [(each.score.measured, each.score.unmeasured, -len(each.carried)) for each in scored]
    return sum(number for row in counts for number in row if number is not None)  # only imported runs have None


def _units(whole: Whole) -> list[Unit]:
    """Every planned result. They are no draws of a text on all items, so they are never added up."""
    found, seed = [], draw_seed(whole.config.train.seed, 1)
    for tries in whole.algorithm.parts:
        tree, _ = whole.made_with([edit for edit in whole.edits if edit.id in tries.edits])
        items = tuple(item for item in tries.items if item in whole.items)
        tried = Evaluation(place=tries.place, purpose="parts", split="val", items=items, skill=tree, seed=seed)
        found += units_of(whole.state, tried, items)
    return found


def failed_parts(whole: Whole) -> RunPaused | None:
    """That too many results could not be measured to say what changes do; nothing where enough could."""
    rows = [whole.rows(unit.place)[unit.item] for unit in _units(whole)]
    failed = [row for row in rows if not isinstance(row.outcome, Measured)]
    if not too_many_unmeasured([row.outcome for row in rows], whole.config, "val", len(rows)):
        return None
    first = failed[0]
    return RunPaused(
        reason="unmeasured",
        message=f"{len(failed)} of {len(rows)} items at {place_of(whole.state) / 'parts'} could not be measured; "
        f"first, {first.item}: {getattr(first.outcome, 'message', '')}",
        hint=unmeasured_hint((row.outcome for row in failed), whole.config),
    )
