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
    skills_in,
)
from skillopt_es.events.codec import canonical_json
from skillopt_es.events.log import EventLog, Head
from skillopt_es.events.values import GateVerdict, SkillTree, digest_of
from skillopt_es.gate.bets import ERROR
from skillopt_es.projections.by_hand import BY_HAND_TYPES, by_hand
from skillopt_es.projections.certificate import still_wants, wants_certificate
from skillopt_es.projections.lineage import TYPES as LINEAGE_TYPES
from skillopt_es.projections.lineage import Lineage, Node, lineage
from skillopt_es.runs.run_settings import Settings, backend_of, model_of, settings_in, text_of

_TYPES = frozenset({*LINEAGE_TYPES, *BY_HAND_TYPES, "RunResumed", "GapFound", "CertificateWagered"})


def facts_of(log: EventLog, which: Which, until: int | None = None) -> tuple[SkillTree, Facts]:
    """A skill of a run as it was after an event (default: now), and what the log says about it."""
    end = _end(log, until)
    skill = _skill_at(log, which, end.seq)
    records = list(log.read(until=end.seq, types=_TYPES))
    started = records[0].event
    assert isinstance(started, RunStarted)
    settings = settings_in(records)
    tree = lineage(records)
    node = _node(tree, which, skill.hash)
    made = _made(records, tree, node, skill.hash)
    verdict = next((each for each in reversed(records) if _judges(each, node, skill.hash)), None)
    gate = None if verdict is None else _gate(verdict, settings)
    facts = Facts(
        run=_run(log, records, settings),
        log=ChainHead(seq=end.seq, hash=end.hash),
        data={
            name: DataFacts(items=len(ids), digest=started.splits.digests.get(name))
            for name, ids in (
                ("train", started.splits.train),
                ("val", started.splits.val),
                ("test", started.splits.test),
            )
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
            _evaluation(each, started.skill.hash)
            for each in records
            if isinstance(each.event, SkillScored) and each.event.skill == skill.hash and each.event.purpose != "train"
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


def _skill_at(log: EventLog, which: Which, seq: int) -> SkillTree:
    state, _ = fold_log(log.read(until=seq))
    if state is None:
        raise NotInRun(f"{log.run.name} has not begun: it has no skill yet")
    return state.started.skill if which == "initial" else state.standings[which].skill


def _ref(recorded: Recorded) -> EventRef:
    return EventRef(seq=recorded.seq, type=type(recorded.event).__name__, hash=recorded.hash)


def _run(log: EventLog, records: Sequence[Recorded], settings: Settings) -> RunFacts:
    started = records[0].event
    assert isinstance(started, RunStarted)
    forks = [each.event for each in records if isinstance(each.event, RunForked)]
    hand = by_hand(each.event for each in records)
    return RunFacts(
        id=log.run.run_id,
        name=log.run.name,
        software=started.software,
        config_digest=digest_of(canonical_json(settings).encode()),
        models={role: f"{backend_of(settings, role)}/{model_of(settings, role)}" for role in ("target", "optimizer")},
        by_hand=hand.counts if hand else None,
        forked_from=tuple(Fork(run=fork.parent, run_id=fork.parent_id, seq=fork.seq) for fork in forks),
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


def _judges(recorded: Recorded, node: Node | None, skill: str) -> bool:
    """Whether an event is the verdict on a node's text."""
    match recorded.event:
        case CandidateGated(candidate=candidate, step=step):
            return candidate == skill and node is not None and node.kind == "candidate" and step == node.step
        case SlowUpdateApplied(candidate=candidate, verdict=GateVerdict(candidate_value=value), epoch=epoch):
            return candidate == skill and node is not None and epoch == node.epoch and value is not None
        case _:
            return False


def _gate(recorded: Recorded, settings: Settings) -> Gate:
    assert isinstance(recorded.event, CandidateGated | SlowUpdateApplied)
    verdict = recorded.event.verdict
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


def _evaluation(recorded: Recorded, initial: str) -> Evaluation:
    event = recorded.event
    assert isinstance(event, SkillScored)
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
    wanted = wants_certificate(started)
    moves: list[tuple[Recorded, CertificateWagered]] = []
    for each in records:
        match each.event:
            case RunForked() | RunResumed():
                wanted = still_wants(wanted, each.event.overrides)
            case CertificateWagered(moved=True):
                moves.append((each, each.event))
    if not moves:
        initial = started.skill.hash
        return Certified(error=ERROR, skill=initial, is_this=skill == initial) if wanted else None
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
