"""
The facts of a skill and who wrote its lines, folded from the events of its log.

The same log and the same moment always give the same facts, so a folder that holds them can be compared with the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from skillopt_es.audit.blame import BLAME_TYPES, Attributed, Maker, blame
from skillopt_es.deploy.facts import (
    Certified,
    ChainHead,
    DataFacts,
    Evaluation,
    EventRef,
    Facts,
    Fork,
    Gate,
    LinesFrom,
    Made,
    RunFacts,
    SkillFacts,
    Which,
)
from skillopt_es.engine.algorithms import fold_log
from skillopt_es.errors import NotInRun
from skillopt_es.events.catalog import (
    BestPromoted,
    CandidateGated,
    CertificateWagered,
    Recorded,
    RunForked,
    RunResumed,
    RunStarted,
    SkillScored,
    SlowUpdateApplied,
    only,
    skills_in,
)
from skillopt_es.events.codec import canonical_json
from skillopt_es.events.log import EventLog, Head
from skillopt_es.events.values import GateVerdict, SkillTree, digest_of
from skillopt_es.gate.bets import ERROR
from skillopt_es.projections.by_hand import BY_HAND_TYPES, by_hand
from skillopt_es.projections.deciding import CERTIFICATE, setting_after, setting_in
from skillopt_es.projections.lineage import TYPES as LINEAGE_TYPES
from skillopt_es.projections.lineage import Lineage, Node, lineage
from skillopt_es.runs.run_settings import Settings, backend_of, model_of, settings_in, text_of

_TYPES = frozenset({*LINEAGE_TYPES, *BY_HAND_TYPES, "RunResumed", "GapFound", "CertificateWagered"})


def facts_of(log: EventLog, which: Which, until: int | None = None) -> tuple[SkillTree, Facts]:
    """A skill of a run as it was after an event (default: now), and what the log says about it."""
    end = _end(log, until)
    state, _ = fold_log(log.read(until=end.seq))
    if state is None:
        raise NotInRun(f"{log.run.name} has not begun: it has no skill yet")
    started, splits = state.started, state.started.splits
    skill = started.skill if which == "initial" else state.standings[which].skill
    records = list(log.read(until=end.seq, types=_TYPES))
    settings = settings_in(records)
    tree = lineage(records)
    node = _node(tree, which, skill.hash)
    made = _made(records, tree, node, skill.hash)
    judged = ((each, _verdict(each, node, skill.hash)) for each in reversed(records))
    gate = next((_gate(each, verdict, settings) for each, verdict in judged if verdict is not None), None)
    facts = Facts(
        run=_run(log, started, records, settings),
        log=ChainHead(seq=end.seq, hash=end.hash),
        data={
            name: DataFacts(items=len(ids), digest=splits.digests.get(name))
            for name, ids in (("train", splits.train), ("val", splits.val), ("test", splits.test))
        },
        skill=SkillFacts(
            which=which,
            hash=skill.hash,
            main=skill.main,
            files={path: digest_of(each.content) for path, each in skill.contents.items()},
            executable=skill.executable,
        ),
        made=made,
        gate=gate,
        ungated="" if gate else _why_ungated(made.kind),
        scores=tuple(
            _evaluation(each, event, started.skill.hash)
            for each in records
            if isinstance(event := each.event, SkillScored) and event.skill == skill.hash and event.purpose != "train"
        ),
        lines=origins_of(log, which, skill, end.seq),
        certificate=_certified(records, started, skill.hash),
    )
    return skill, facts


def _end(log: EventLog, until: int | None) -> Head:
    """The event that is the last one looked at."""
    if until is None:
        return log.head()
    return next((Head(each.seq, each.hash) for each in log.read(after=until - 1, until=until)), Head(0, ""))


def _ref(recorded: Recorded) -> EventRef:
    return EventRef(seq=recorded.seq, type=type(recorded.event).__name__, hash=recorded.hash)


def _run(log: EventLog, started: RunStarted, records: Sequence[Recorded], settings: Settings) -> RunFacts:
    forks = (fork for _, fork in only(RunForked, records))
    hand = by_hand(each.event for each in records)
    return RunFacts(
        id=log.run.run_id,
        name=log.run.name,
        software=started.software,
        config_digest=digest_of(canonical_json(settings).encode()),
        models={role: f"{backend_of(settings, role)}/{model_of(settings, role)}" for role in ("target", "optimizer")},
        by_hand=hand.counts if hand else None,
        forked_from=tuple(Fork(run=each.parent, run_id=each.parent_id, seq=each.seq) for each in forks),
    )


def _node(tree: Lineage, which: Which, skill: str) -> Node | None:
    """The text's node; None for a text of an imported run that nobody knows the making of."""
    named = {"best": tree.best, "current": tree.current, "initial": "start"}
    node = tree.by_name.get(named.get(which, ""))
    if node is not None and node.skill == skill:
        return node
    return next((each for each in reversed(tree.nodes) if each.skill == skill), None)


def _made(records: Sequence[Recorded], tree: Lineage, node: Node | None, skill: str) -> Made:
    if node is not None:
        recorded = next(each for each in records if each.seq == node.seq)
    else:
        recorded = next(each for each in reversed(records) if any(tree.hash == skill for tree in skills_in(each.event)))
    promoted = next(
        (each for each in records if isinstance(each.event, BestPromoted) and each.event.skill == skill), None
    )
    return Made(
        event=_ref(recorded),
        recorded_at=recorded.recorded_at,
        node=node.name if node else "",
        kind=node.kind if node else "unknown",
        parent=node.parent if node else "",
        ancestors=_ancestors(tree, node),
        promoted=_ref(promoted) if promoted else None,
    )


def _ancestors(tree: Lineage, node: Node | None) -> tuple[str, ...]:
    found: list[str] = []
    while node is not None and node.parent:
        found.insert(0, node.parent)
        node = tree.by_name.get(node.parent)
    return tuple(found)


def _verdict(recorded: Recorded, node: Node | None, skill: str) -> GateVerdict | None:
    """The verdict on a node's text, where an event is that."""
    event = recorded.event
    if node is None or not isinstance(event, CandidateGated | SlowUpdateApplied) or event.candidate != skill:
        return None
    if isinstance(event, CandidateGated):
        return event.verdict if node.kind == "candidate" and event.step == node.step else None
    return event.verdict if event.epoch == node.epoch and event.verdict.candidate_value is not None else None


def _gate(recorded: Recorded, verdict: GateVerdict, settings: Settings) -> Gate:
    counted = verdict.compared is not None
    return Gate(
        event=_ref(recorded),
        action=verdict.action,
        metric=text_of(settings, "evaluation.gate_metric") if verdict.metric is None else verdict.metric,
        candidate=verdict.candidate_score,
        candidate_value=verdict.candidate_value,
        current=verdict.current_score,
        current_value=verdict.current_value,
        best_value=verdict.best_value,
        compared=verdict.compared,
        won=len(verdict.won) if counted else None,
        lost=len(verdict.lost) if counted else None,
        known_from=verdict.known_from,
        stale_from=verdict.stale_from,
    )


def _evaluation(recorded: Recorded, event: SkillScored, initial: str) -> Evaluation:
    return Evaluation(
        event=_ref(recorded),
        place=event.place,
        split=event.split,
        hard=event.score.hard,
        soft=event.score.soft,
        n=event.score.measured,
        unmeasured=event.score.unmeasured,
        value=event.value,
        decided=event.purpose == "selection" and event.repeat != 0 and event.skill != initial,
    )


def _certified(records: Sequence[Recorded], started: RunStarted, skill: str) -> Certified | None:
    """What was proved by then; None where nobody asked for a certificate."""
    wanted = setting_in(started, CERTIFICATE)
    moves: list[tuple[Recorded, CertificateWagered]] = []
    for each in records:
        match each.event:
            case RunForked() | RunResumed():
                wanted = setting_after(wanted, CERTIFICATE, each.event.overrides)
            case CertificateWagered(moved=True):
                moves.append((each, each.event))
    if not moves:
        initial = started.skill.hash
        return Certified(error=ERROR, skill=initial, is_this=skill == initial) if wanted is True else None
    recorded, won = moves[-1]
    return Certified(
        error=ERROR,
        skill=won.challenger,
        is_this=skill == won.challenger,
        event=_ref(recorded),
        against=won.certified,
        fresh_items=won.pairs,
        gain=won.gain,
        least=won.least,
    )


def _why_ungated(kind: str) -> str:
    return {
        "initial": "it is the skill that the run began with",
        "notes": "reminder notes were written after the verdict, and the text with them met no gate",
        "guidance": "guidance was written at an epoch's end without a gate",
        "candidate": "there is no verdict on it",
    }.get(kind, "how it came about is not known")


def origins_of(log: EventLog, which: Which, skill: SkillTree, until: int) -> Mapping[str, tuple[LinesFrom, ...]] | None:
    """By file, who wrote the lines of a skill as they were measured; None for a text that nothing explains."""
    records = list(log.read(until=until, types=frozenset(BLAME_TYPES)))
    refs = {each.seq: EventRef(seq=each.seq, type=type(each.event).__name__, hash=each.hash) for each in records}
    found = blame(records[:1] if which == "initial" else records)
    if found is None:
        return None
    texts: tuple[Attributed, ...] = {"best": (found.best,), "certified": (found.best, found.current)}.get(
        which, (found.current,)
    )
    text = next((each for each in texts if each.skill == skill), None)
    if text is None:
        return None
    return {path: _runs(makers, refs) for path, makers in sorted(text.makers.items())}


def _runs(makers: Sequence[Maker], refs: Mapping[int, EventRef]) -> tuple[LinesFrom, ...]:
    found = []
    for maker, group in groupby(enumerate(makers, start=1), key=lambda each: each[1]):
        numbers = [number for number, _ in group]
        found.append(
            LinesFrom(
                first=numbers[0],
                last=numbers[-1],
                written_by=refs[maker.seq],
                kind=maker.kind,
                step=maker.step,
                epoch=maker.epoch,
            )
        )
    return tuple(found)
