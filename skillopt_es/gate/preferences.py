"""
What a judge prefers, as draws that a rule of the gate can weigh: a candidate's answers against the current skill's.

The n-th draws of both are compared item by item: 1 where the judge prefers the candidate's answer, 0 where it prefers
the other, 0.5 where it is even, and 0.5 is what the current skill has against itself. Grades stay what they are: they
are told, and say which skill is the best one where nobody has compared the two. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from skillopt_es.engine.evaluations import unmeasured_hint
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.work import Comparisons, Contest, Decide, Rivals, Work
from skillopt_es.events.catalog import AnswersCompared, RunPaused
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.places import Place
from skillopt_es.events.values import EVEN, RETESTS, CallRef, Failed, Measured, SkillTree
from skillopt_es.gate.comparing import Side
from skillopt_es.gate.noise import Draw
from skillopt_es.projections.state import AnyState, Drawn


def preferences(state: AnyState, run: RunData, contest: Contest) -> tuple[Side, Side]:
    """The current skill's side and the candidate's, as far as their answers are compared."""
    drawn = [*_compared_draws(state, run, contest)]
    even: tuple[Draw, ...] = tuple(dict.fromkeys(draw, EVEN) for draw in drawn)
    return (
        Side(draws=even, bonus=run.bonus(contest.current)),
        Side(draws=tuple(drawn), bonus=run.bonus(contest.candidate)),
    )


def _compared_draws(state: AnyState, run: RunData, contest: Contest) -> Iterator[Draw]:
    """The comparisons of one draw after the other, up to the first that is not complete."""
    earlier: dict[_Answers, Measured] = {}
    for number, (ours, theirs) in enumerate(_drawn(state, run, contest), start=1):
        found: dict[str, Measured] = {}
        done = state.compared.get((contest.candidate.hash, contest.current.hash, number), {})
        common = _common(run, ours, theirs)
        for item in common:
            answers = _answers(ours, theirs, item)
            if answers[0] == answers[1]:
                found[item] = EVEN
            elif answers in earlier:
                found[item] = earlier[answers]
            elif item not in done:
                return
            elif isinstance(outcome := done[item].outcome, Measured):
                found[item] = earlier[answers] = outcome
        if _too_few(run, done, len(common)):
            return
        yield found


def _drawn(state: AnyState, run: RunData, contest: Contest) -> Iterator[tuple[Drawn, Drawn]]:
    """The draws that both skills have, each beside its like."""
    yield from zip(*(draws_of(state, run, skill) for skill in (contest.candidate, contest.current)), strict=False)


def draws_of(state: AnyState, run: RunData, skill: SkillTree) -> tuple[Drawn, ...]:
    """The draws of a skill that the rule weighs; by one that draws all items again, those in part would count twice."""
    known = state.measured.get(skill.hash)
    lasts = run.config.evaluation.gate_rule in RETESTS
    return () if known is None else tuple(each for each in known.drawn if lasts or not each.in_part)


def _common(run: RunData, ours: Drawn, theirs: Drawn) -> tuple[str, ...]:
    return tuple(item for item in run.selection_items if item in ours.items and item in theirs.items)


_Answers = tuple[CallRef | None, CallRef | None]


def _answers(ours: Drawn, theirs: Drawn, item: str) -> _Answers:
    """The two answers to an item; where both are one, or none, there is nothing to compare."""
    for drawn in (ours, theirs):
        if item not in drawn.answers:
            raise LogDamaged(f"the answer to {item} at {drawn.place} is not known, and it is to be compared")
    return ours.answers[item], theirs.answers[item]


def _too_few(run: RunData, done: Mapping[str, AnswersCompared], items: int) -> bool:
    """Whether more comparisons came to nothing than an evaluation may have unmeasured items; or all of them."""
    failed = sum(isinstance(each.outcome, Failed) for each in done.values())
    return failed > run.config.rollout.max_failed_share * items or (failed > 0 and failed == items)


def comparing_work(state: AnyState, run: RunData, contest: Contest, draw: int) -> Work:
    """What is missing of the n-th comparison, once both skills have so many draws."""
    pairs = tuple(_rivals(state, run, contest, draw))
    return Comparisons(pairs) if pairs else Decide("pause_for_judge")


def undrawn(state: AnyState, run: RunData, contest: Contest, draw: int) -> list[tuple[Place, SkillTree]]:
    """The skills of a contest that have not been drawn so often, each with the place where it would be."""
    sides = ((contest.candidate_place, contest.candidate), (contest.current_place, contest.current))
    return [(place, skill) for place, skill in sides if len(draws_of(state, run, skill)) < draw]


def _rivals(state: AnyState, run: RunData, contest: Contest, draw: int) -> Iterator[Rivals]:
    *before, (ours, theirs) = [*_drawn(state, run, contest)][:draw]
    candidate, current = contest.candidate.hash, contest.current.hash
    done = state.compared.get((candidate, current, draw), {})
    place = (contest.candidate_place / "versus").drawn(draw)
    # What was not drawn again was compared before.
    known = {(item, *_answers(*pair, item)) for pair in before for item in _common(run, *pair)}
    for item in _common(run, ours, theirs):
        answer, other = _answers(ours, theirs, item)
        if item not in done and answer != other and (item, answer, other) not in known:
            yield Rivals(
                place=place,
                item=item,
                candidate=candidate,
                current=current,
                answer=answer,
                other=other,
                judged=state.misjudged.get(place.of_item(item), 0),
            )


def pause_for_judge(state: AnyState, run: RunData) -> RunPaused:
    """That too many answers could not be compared; which comparisons those are, the state says."""
    done = [each for compared in state.compared.values() for each in compared.values()]
    lost = [each for each in done if isinstance(each.outcome, Failed)]
    first = lost[0].outcome
    assert isinstance(first, Failed)
    return RunPaused(
        reason="unmeasured",
        message=f"{len(lost)} of {len(done)} pairs of answers at {Place(lost[0].place).evaluation} could not be "
        f"compared; first, {lost[0].item}: {first.message}",
        hint=unmeasured_hint((each.outcome for each in lost), run),
    )
