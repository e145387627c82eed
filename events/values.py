"""The typed values that events carry: outcomes, scores, skills, edits. Frozen, free of behaviour that could change."""

from __future__ import annotations

import hashlib
import math
from base64 import b64decode
from collections.abc import Collection, Mapping
from functools import cached_property, lru_cache
from typing import Literal

from attrs import Attribute, evolve, field, frozen

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]
Cell = str | int | bytes | None
"""What one column of a table holds."""
Row = tuple[Cell, ...]

Role = Literal["target", "optimizer", "judge"]
Stage = Literal[
    "rollout",
    "analyst",
    "appendix",
    "merge",
    "ranking",
    "learning_rate",
    "rewrite",
    "slow_update",
    "meta_skill",
    "probe",
    "judge",
    "harvest",
]
Purpose = Literal["train", "selection", "parts", "slow_previous", "slow_current", "test"]
HELD_OUT: frozenset[Purpose] = frozenset({"selection", "parts", "test"})
"""What results are for that no optimizer may see."""
Split = Literal["train", "val", "test"]
EditOp = Literal[
    "append", "insert_after", "replace", "delete", "create", "describe", "rename", "merge", "split", "retire"
]
WHOLE_FILES: frozenset[str] = frozenset({"create", "describe", "rename", "merge", "split", "retire"})
"""The edits that make, move or remove files of a folder of skills, or write the line that describes one."""
SuggestionKind = Literal["add_rule", "remove_rule", "merge_rules", "reorganize", "compress", "clarify"]
Priority = Literal["high", "medium", "low"]
PatchSource = Literal["failure", "success", "examples", "pruning"]
"""Where proposals come from; `examples` are training items with their right answers, which nobody was asked for."""
Trust = Literal["trusted", "untrusted"]
GateMetric = Literal["hard", "soft", "mixed"]
Order = Literal["pause", "stop", "budget", "hint", "pin", "unpin", "strike", "take", "refuse", "retract"]
"""What somebody may ask of a run that is open."""
GateRule = Literal["strict", "paired", "retest", "not_worse", "not_worse_retest"]
RETESTS: frozenset[str] = frozenset({"retest", "not_worse_retest"})  # those that draw again what turned, and only that
TAKES_TIES: frozenset[str] = frozenset({"not_worse", "not_worse_retest"})  # those that take what is as good, too
DRAWS_ONCE: frozenset[str] = frozenset({"strict", "not_worse"})  # the rules that never draw a text twice
GateAction = Literal["accept_new_best", "accept", "reject", "indecisive", "force_accept"]
Ungated = Literal["placeholder", "unchanged", "postponed", "no_content"]
"""What becomes of an epoch's guidance that meets no gate."""
Decided = Literal[GateAction, Ungated]
TAKEN: frozenset[str] = frozenset({"accept_new_best", "accept", "force_accept", "placeholder"})
BY_GATE: frozenset[str] = frozenset({"accept_new_best", "accept", "reject", "indecisive"})
Cause = Literal["", "defect", "lapse"]
AppendixOrder = Literal["measured", "after_verdict"]
REFUSED_LEAK = "refused_leak"
REFUSED_BEFORE = "it was refused before"
"""What the note of an answer says of edits that were left out because they had been refused before."""
NoteStatus = Literal[
    "added", "skipped_empty", "skipped_too_long", "skipped_already_there", "skipped_appendix_full", "refused_leak"
]


def clean_text(text: str) -> str:
    """The text with every lone surrogate, which UTF-8 cannot hold, replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def digest_of(data: bytes) -> str:
    """The SHA-256 of some bytes, in hex: the address of a text everywhere in a log."""
    return hashlib.sha256(data).hexdigest()


def raw_digest(digest: str) -> bytes:
    """A digest as the tables keep it, in half the bytes; raises ValueError for what is not lower-case hex."""
    raw = bytes.fromhex(digest)
    if raw.hex() != digest:
        raise ValueError(f"{digest!r:.80} is not a digest")
    return raw


def hex_digest(cell: object) -> str:
    """A hash or digest as everyone but the tables writes it; nothing for what a damaged file may hold instead."""
    return cell.hex() if type(cell) is bytes else ""


@lru_cache(maxsize=8192)
def text_digest(text: str) -> str:
    """The address of a text; remembered, because one skill text goes into many requests."""
    return digest_of(text.encode())


def _finite(_instance: object, attribute: Attribute[float], value: float) -> None:
    if not math.isfinite(value):
        raise ValueError(f"{attribute.name} must be a finite number, not {value}")


@frozen
class Measured:
    """The world answered and the answer was graded; a wrong, missing, refused or late answer measures 0."""

    hard: float = field(validator=_finite)
    soft: float = field(validator=_finite)

    @property
    def passed(self) -> bool:
        """Whether the task was fully solved; a part of it is not a pass."""
        # Scores are sums of floats: a whole pass may be a hair below 1.
        return self.hard > 1 - 1e-9


@frozen
class Failed:
    """The world did not answer (no model, no key, a broken sandbox): this says nothing about the skill."""

    kind: str
    message: str


UNREADABLE = "unreadable"
"""The kind of failure, and its code, where a judge answered and nobody can read what it said."""


@frozen
class NotRun:
    """Nobody asked; `why` says what made it unnecessary or impossible."""

    why: str


Outcome = Measured | Failed | NotRun


@frozen
class Score:
    """The means of one evaluation over its measured items; None for counts that an imported run does not have."""

    hard: float = field(validator=_finite)
    soft: float = field(validator=_finite)
    measured: int | None
    unmeasured: int | None = 0


@frozen(kw_only=True)
class GateVerdict:
    """
    What was decided about a text that would be current, and on what evidence; None and "" are what there is not.

    The scores are means over `repeats` evaluations of the candidate and `current_repeats` of the current skill; `error`
    is the standard error of their difference under a rule that measures it. `reason` says what the verdict rests on,
    where that is more than one evaluation of each. Unless `exact`, the candidate's numbers are the most that they could
    be.
    Items that turned in the first evaluation may be `retested` under both texts; then those are won and lost of which
    every result says so. `known_from` is where the candidate had been measured before. `stale_from` is the
    skill whose score stood in for the current one's, or goes on to stand for the candidate. Without `compared`,
    nobody counted which items turned. The `rule` is null where no gate decided.
    """

    action: Decided
    new_best: bool = False
    metric: GateMetric | None = None
    candidate_score: Score | None = None
    candidate_value: float | None = None
    current_score: Score | None = None
    current_value: float | None = None
    best_value: float | None = None
    compared: int | None = None
    won: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    known_from: str = ""
    stale_from: str = ""
    rule: GateRule | None = None
    reason: str = ""
    repeats: int = 1
    current_repeats: int = 1
    error: float | None = None
    exact: bool = True
    retested: tuple[str, ...] = ()

    @property
    def taken(self) -> bool:
        """Whether the text became the current skill."""
        return self.action in TAKEN

    @property
    def by_gate(self) -> bool:
        """Whether it was compared, and could have been refused."""
        return self.action in BY_GATE

    @property
    def alone(self) -> bool:
        """Whether there was nothing to compare with: the current skill had never been measured."""
        return self.current_score is None and self.current_value is None


@frozen(kw_only=True)
class Bets:
    """
    The bets that one text is better than another: what they began with, what each won, and what they have come to.

    `gains` are differences between -1 and 1, by item or by type of task.
    """

    stake: float = field(validator=_finite)
    gains: Mapping[str, float]
    wealth: float = field(validator=_finite)


def exceeds(value: float, best: float | None) -> bool:
    """Whether a text that was taken without a comparison becomes the best one: it counts more, or nothing was known."""
    return best is None or value > best


@frozen
class CallRef:
    """A finished effect in the journal: where in the algorithm it was made, and the digest of what was recorded."""

    slot: str
    digest: str


@frozen
class Redaction:
    """An event of which parts were erased, and the digest of the payload that is left."""

    seq: int
    content: str


@frozen
class FileContent:
    """A file as it lies on a disk: its bytes, and whether it may be run."""

    content: bytes
    executable: bool = False


def tree_hash(digests: Mapping[str, str], executable: Collection[str]) -> str:
    """The hash of a tree, from the digests of its files by path, and the paths of those that may be run."""
    # Logs name skills by this: another order or spelling would rename them all.
    rows = [f"{digest} {path}\n" for path, digest in sorted(digests.items())]
    rows += [f"executable {path}\n" for path in sorted(executable)]
    return digest_of("".join(rows).encode())


@frozen
class SkillTree:
    """
    The trainable state: relative path -> text, with the file a plain edit goes to.

    Without a main file it is a folder of skills: each in a folder of its own, and possibly none. `assets` are files
    that are not text, in base64: they are carried as they are, and no edit can name them. `executable` are the paths
    of files that may be run.
    """

    files: Mapping[str, str]
    main: str = "SKILL.md"
    assets: Mapping[str, str] = field(factory=dict)
    executable: tuple[str, ...] = ()

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder of skills, and not one skill."""
        return not self.main

    @cached_property
    def hash(self) -> str:
        """Names this exact tree: the same files under the same paths have the same hash anywhere."""
        return tree_hash({path: digest_of(each.content) for path, each in self.contents.items()}, self.executable)

    @property
    def contents(self) -> Mapping[str, FileContent]:
        """All its files as they are written to a disk, by path and in that order."""
        whole = {path: text.encode() for path, text in self.files.items()}
        whole |= {path: b64decode(text) for path, text in self.assets.items()}
        return {path: FileContent(content, path in self.executable) for path, content in sorted(whole.items())}

    @property
    def text(self) -> str:
        """The main file; a folder of skills has none, and no text of its own."""
        return self.files[self.main] if self.main else ""

    def with_text(self, text: str, path: str = "") -> SkillTree:
        """The same tree with one file (default: the main one) replaced."""
        return evolve(self, files={**self.files, path or self.main: text})


@frozen
class Edit:
    """
    One change to a skill, with the edits or trajectories it came from.

    Where it was asked for, `claims` are the tasks that it is to fix, and `hypothesis` says in a line why it would. They
    are `claims_assumed` where it named none: then they are those that it speaks of. Edits with the same `change` are
    one change of a folder of skills: all of them are applied, or none.
    """

    id: str
    op: EditOp
    content: str = ""
    target: str = ""
    file: str = ""
    support: int = 1
    source: PatchSource = "failure"
    origins: tuple[str, ...] = ()
    origins_assumed: bool = False
    claims: tuple[str, ...] = ()
    claims_assumed: bool = False
    hypothesis: str = ""
    change: str = ""


@frozen
class Suggestion:
    """One instruction to whoever rewrites a skill, with the suggestions or trajectories it came from."""

    id: str
    kind: SuggestionKind
    instruction: str
    title: str = ""
    motivation: str = ""
    priority: Priority = "medium"
    support: int = 1
    source: PatchSource = "failure"
    origins: tuple[str, ...] = ()
    origins_assumed: bool = False


@frozen
class Draft:
    """One whole text that would take a skill's place, with the drafts or trajectories it came from."""

    id: str
    text: str
    title: str = ""
    changes: tuple[str, ...] = ()
    support: int = 1
    source: PatchSource = "failure"
    origins: tuple[str, ...] = ()
    origins_assumed: bool = False


Proposal = Edit | Suggestion | Draft
"""What an analyst may propose; each update mode has its own kind."""


@frozen
class EditReport:
    """What became of one edit (or suggestion, or draft) when it was applied."""

    edit: str
    status: str
    note: str = ""

    @property
    def applied(self) -> bool:
        """Whether it is in the candidate."""
        return self.status.startswith("applied")


@frozen
class SameLines:
    """A run of lines of an older text that stands in a newer one unchanged; lines are counted from 0."""

    old_start: int
    new_start: int
    length: int


@frozen
class Repair:
    """What a rewrite did to a part that it may not touch: dropped it, altered it, or made one up; it is as before."""

    part: Literal["frontmatter", "slow_update", "appendix"]
    action: Literal["put_back", "restored", "removed"]


@frozen
class Rewrite:
    """How a whole new text came about: the lines that it kept of the old one, and what had to be repaired in it.

    Reminder notes that a step adds come afterwards, and are not part of either.
    """

    kept: tuple[SameLines, ...]
    repairs: tuple[Repair, ...] = ()


@frozen
class FailurePattern:
    """What an analyst says a group of failures has in common; the cause where it was asked for one."""

    type: str
    count: int | None
    description: str
    cause: Cause = ""


@frozen
class NoteReport:
    """What became of one reminder note, and the patch that proposed it; `why` says what of which item it copied."""

    patch: str
    note: str
    status: NoteStatus
    why: str = ""


@frozen
class Batch:
    """One training batch of an epoch: its seed and its items in order."""

    seed: int
    items: tuple[str, ...]


@frozen
class Attempt:
    """One attempt at an item, by where it was made."""

    place: str
    item: str


@frozen
class Minibatch:
    """
    The trajectories that one analyst call looks at, tried at `place` unless they are `earlier` ones.

    In a folder of skills those are grouped that opened the same ones, the `viewed`.
    """

    id: str
    kind: PatchSource
    place: str
    items: tuple[str, ...]
    earlier: tuple[Attempt, ...] = ()
    viewed: tuple[str, ...] = ()

    @property
    def attempts(self) -> tuple[tuple[str, str], ...]:
        """Where each of its items was tried, and the item."""
        before = {each.item: each.place for each in self.earlier}
        return tuple((before.get(item, self.place), item) for item in self.items)


@frozen
class Tries:
    """
    Items that are to be tried at a place of a step, for its `draw`-th time.

    With `edits` the text is the current one with these of the candidate's alone.
    """

    place: str
    items: tuple[str, ...]
    draw: int = 1
    edits: tuple[str, ...] = ()


@frozen
class Effect:
    """By how much edits that belong together were found to move an item that notices them, and how many do."""

    edits: tuple[str, ...]
    effect: float = field(validator=_finite)
    items: int


@frozen
class Credit:
    """
    What an edit has earned alone, on training items: those that it fixed, and those that it broke.

    `varied` are those that turned and did not stay so when they were drawn again: in `again` further draws, all
    together. `tries` are all its own results. Worked examples have brought wrong answers `nearer` to right ones by so
    much.
    """

    edit: str
    fixed: tuple[str, ...] = ()
    broke: tuple[str, ...] = ()
    varied: tuple[str, ...] = ()
    again: int = 0
    tries: int = 0
    nearer: float = 0.0


@frozen
class Pair:
    """One task under the previous epoch's skill and under the current one."""

    item: str
    category: Literal["improved", "regressed", "persistent_fail", "stable_success"]


@frozen
class ImportedBatch:
    """One training batch as another trainer recorded it; None for what it did not record."""

    seed: int | None
    size: int | None
    items: tuple[str, ...] | None
    score: Score | None
    failure_patches: int | None
    success_patches: int | None


@frozen
class ImportedUsage:
    """The cost of a stage's calls, as another trainer counted it; None for what it did not count."""

    calls: int | None
    input_tokens: int | None
    output_tokens: int | None


@frozen
class ConfigFile:
    """The file that a run's config was read from: its name, its digest, and the keys `given` by --set."""

    name: str
    digest: str
    given: tuple[str, ...] = ()


@frozen
class Setting:
    """One config key and its value."""

    key: str
    value: Json


@frozen(kw_only=True)
class LostCall:
    """A call that was in flight when its process was killed: what each of so many tries may have used at most."""

    slot: str
    role: Role
    input_tokens: int
    output_tokens: int
    tries: int


@frozen
class SplitIds:
    """The item ids of a run's three splits, in file order, and the digest of each split's content."""

    train: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]
    digests: Mapping[str, str]


@frozen
class FailureCode:
    """A code, and the items that failed with it."""

    code: str
    items: tuple[str, ...]


@frozen(kw_only=True)
class BufferEntry:
    """
    One entry of the step buffer: what a step tried and what came of it; `bound`: the value after is a bound.

    `before` says that it is a step of the run that this one continues.
    """

    step: int
    action: str
    total: int
    failed: int
    codes: tuple[FailureCode, ...]
    patterns: tuple[FailurePattern, ...]
    value_before: float | None
    value_after: float | None
    rejected: tuple[Proposal, ...] = ()
    rejected_notes: tuple[str, ...] = ()
    bound: bool = False
    before: bool = False


@frozen(kw_only=True)
class Learned:
    """
    What a run takes over from the one that it continues, beside its best skill: the last epoch's tries, and the notes.

    The other run is named, with its id and the event up to which it had come.
    """

    run: str
    run_id: str
    seq: int
    meta_skill: str = ""
    tried: tuple[BufferEntry, ...] = ()
