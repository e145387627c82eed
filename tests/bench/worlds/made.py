"""
The worlds: which rules hide behind which kinds, who asks about them how often, what the models get wrong.

Each is drawn from its name and a seed. Nothing here is shown to a trainer but the items of train and validation and the
text to start from; `score` and `ceiling` know the test items and the rules, and are the bench's alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from attrs import evolve, frozen

from worlds.language import OPS, Item, Op, Part, answer, followed, sentence, useless_lines

START = "Answer each task by the rules below. Give the kind, an equals sign and the number, as in KIND=1234."
NUMBERS = {"train": range(1000, 4000), "val": range(4000, 7000), "test": range(7000, 10000)}
"""Which numbers a split asks about: no question stands in two of them."""


Claims = Literal["right", "none", "wrong"]
Habit = Literal["lines", "lumps", "rewrites"]


@frozen(kw_only=True)
class World:
    """One made world."""

    name: str
    truth: Mapping[Part, Op]
    train: Sequence[Item]
    val: Sequence[Item]
    test: Sequence[Item]
    start: str = START
    flaky: float = 0.0
    """The share of questions that the target answers by the toss of a coin, whatever its skill says."""
    noise: float = 0.0
    """The share of calls that the target answers so, whatever is asked."""
    wrong: float = 0.2
    """How often a proposal of the optimizer is useless or harmful."""
    bad: tuple[float, ...] = (0.3, 0.3, 0.15, 0.25)
    """Of these, by weight: too vague, wrong for its kind, for all kinds with its first letter, for every kind."""
    clutter: float = 0.0
    """The share of tasks that the target overlooks for each useless line of its skill."""
    memory: int = 0
    """With more lines than this, the target forgets the oldest rules of its skill; 0: it remembers all."""
    claims: Claims = "right"
    """What the optimizer says of the tasks an edit is for: the right ones, none, or others."""
    habit: Habit = "lines"
    """One rule an edit, three of them in one edit, or all of them in one edit that says what is there once more."""
    budgets: tuple[int, ...] = (100, 200, 350, 500, 700)
    """The calls at which scores are told; the last is what a run may take."""

    @property
    def soft(self) -> bool:
        """Whether a task has parts, and is scored by the share that is right."""
        return len(self.test[0].parts) > 1

    def tosses(self, question: str) -> bool:
        """Whether the target answers this question by the toss of a coin."""
        return random.Random(f"tossed: {question}").random() < self.flaky

    def overlooks(self, skill: str, question: str) -> bool:
        """Whether useless lines keep the target from this question; more of them keep it from more questions."""
        attention = (1 - self.clutter) ** useless_lines(skill)
        return random.Random(f"overlooked: {question}").random() >= attention

    def heeded(self, skill: str) -> str:
        """What the target keeps of its skill: the first line, and as many of the others as it remembers."""
        first, *lines = [line for line in skill.splitlines() if line.strip()] or [""]
        return "\n".join([first, *lines[-self.memory :]]) if self.memory else skill

    def score(self, skill: str) -> float:
        """What the target is expected to score with a skill on the test items; exact, nothing is drawn."""
        return sum(self._expected(skill, item) for item in self.test) / len(self.test)

    def _expected(self, skill: str, item: Item) -> float:
        if self.tosses(item.question):
            return 0.5
        if self.overlooks(skill, item.question):
            return 0.0
        heeded = self.heeded(skill)
        right = [followed(heeded, part) == self.truth[part] for part in item.parts]
        return (1 - self.noise) * sum(right) / len(right) + self.noise / 2

    @property
    def ceiling(self) -> float:
        """The score of the text that has every rule of which train has an example, in an order that is right."""
        return self._learned(self.train, general=True)

    @property
    def plain(self) -> float:
        """The score of the text with a rule for each kind of which train has an example that no coin decides."""
        return self._learned([item for item in self.train if not self.tosses(item.question)], general=False)

    def _learned(self, examples: Sequence[Item], *, general: bool) -> float:
        seen = {part for item in examples for part in item.parts}
        learned = [(part, self.truth[part]) for part in self.truth if part in seen]
        draw = random.Random(0)
        of_groups = [sentence(f"group {part.group}", op, draw) for part, op in learned if self._general(part)]
        of_kinds = [sentence(f"kind {part.kind}", op, draw) for part, op in learned]
        return self.score("\n".join([self.start, *(of_groups if general else []), *of_kinds]))

    def _general(self, part: Part) -> bool:
        """Whether a part goes by the rule of its group."""
        members = [op for other, op in self.truth.items() if other.group == part.group]
        return part.group != "" and 2 * members.count(self.truth[part]) > len(members)

    @property
    def floor(self) -> float:
        """The score of the text to start from."""
        return self.score(self.start)


def _names(draw: random.Random, many: int) -> list[str]:
    """Made-up names, each of its own."""
    every = [a + b + c + d for a in "BDKLMPRT" for b in "AEIOU" for c in "FGNSVZ" for d in "AEIOU"]
    return draw.sample(every, many)


def _truth(draw: random.Random, kinds: Sequence[str]) -> dict[Part, Op]:
    """A rule for each kind; all families of rules are as likely."""
    families = sorted({op.name for op in OPS})
    return {Part(kind): _op(draw, families) for kind in kinds}


def _op(draw: random.Random, families: Sequence[str]) -> Op:
    family = draw.choice(families)
    return draw.choice([op for op in OPS if op.name == family])


def _items(
    draw: random.Random, split: str, parts: Sequence[tuple[Part, ...]], truth: Mapping[Part, Op]
) -> tuple[Item, ...]:
    return tuple(_item(draw.choice(NUMBERS[split]), f"{split}-{at}", each, truth) for at, each in enumerate(parts))


def _item(number: int, name: str, parts: tuple[Part, ...], truth: Mapping[Part, Op]) -> Item:
    return Item(name, parts, number, answer([(part, truth[part].of(number)) for part in parts]))


def _drawn(draw: random.Random, many: int, parts: Sequence[Part], weights: Sequence[float]) -> list[tuple[Part, ...]]:
    return [(part,) for part in draw.choices(parts, weights, k=many)]


def _each(parts: Sequence[Part], times: int) -> list[tuple[Part, ...]]:
    return [(part,) for part in parts for _ in range(times)]


def _by_kind(name: str, seed: int, train: int, val: int, tests: int = 5) -> World:
    """A world of 24 independent rules, its kinds drawn alike."""
    draw = random.Random(f"{name} {seed}")
    truth = _truth(draw, _names(draw, 24))
    parts, alike = list(truth), [1.0] * 24
    return World(
        name=name,
        truth=truth,
        train=_items(draw, "train", _drawn(draw, train, parts, alike), truth),
        val=_items(draw, "val", _drawn(draw, val, parts, alike), truth),
        test=_items(draw, "test", _each(parts, tests), truth),
    )


def rules(seed: int) -> World:
    """24 independent rules, one for each kind, and few items: some kinds have none."""
    return _by_kind("rules", seed, 40, 20)


def larger(seed: int) -> World:
    """40 independent rules; a third of the kinds come often in training and hardly in validation."""
    draw = random.Random(f"larger {seed}")
    truth = _truth(draw, _names(draw, 40))
    parts = list(truth)
    rare = [0.15 if at < 14 else 1.0 for at in range(40)]
    return World(
        name="larger",
        truth=truth,
        train=_items(draw, "train", _drawn(draw, 120, parts, [1.0] * 40), truth),
        val=_items(draw, "val", _drawn(draw, 40, parts, rare), truth),
        test=_items(draw, "test", _each(parts, 4), truth),
        budgets=(200, 350, 650, 1000, 1500),
    )


def ordered(seed: int) -> World:
    """Six groups of five kinds: a rule for each group, and for two kinds of each an exception that comes after."""
    draw = random.Random(f"ordered {seed}")
    names = _names(draw, 36)
    groups, kinds = names[:6], names[6:]
    truth: dict[Part, Op] = {}
    for at, (group, op) in enumerate(_truth(draw, groups).items()):
        members = [Part(kind, group.kind) for kind in kinds[5 * at : 5 * at + 5]]
        exceptions = _truth(draw, [part.kind for part in members[:2]])
        truth |= dict.fromkeys(members, op)
        truth |= {part: exceptions[Part(part.kind)] for part in members[:2]}
    parts, alike = list(truth), [1.0] * len(truth)
    return World(
        name="ordered",
        truth=truth,
        train=_items(draw, "train", _drawn(draw, 60, parts, alike), truth),
        val=_items(draw, "val", _drawn(draw, 30, parts, alike), truth),
        test=_items(draw, "test", _each(parts, 4), truth),
    )


def flaky(seed: int) -> World:
    """24 independent rules, and a target that answers a fifth of the questions by the toss of a coin."""
    return evolve(_by_kind("flaky", seed, 60, 30, tests=12), flaky=0.2)


def good_start(seed: int) -> World:
    """A skill that solves .70, and twelve rare kinds that it gets wrong: breaking a rule costs more than one wins."""
    draw = random.Random(f"good start {seed}")
    truth = _truth(draw, _names(draw, 26))
    parts = list(truth)
    known, rare = parts[:14], parts[14:]
    weights = [0.7 / len(known)] * len(known) + [0.3 / len(rare)] * len(rare)
    lines = [sentence(f"kind {part.kind}", truth[part], draw) for part in known]
    test = _each(known, 6) + _each(rare, 3)
    return World(
        name="good start",
        truth=truth,
        train=_items(draw, "train", _drawn(draw, 80, parts, weights), truth),
        val=_items(draw, "val", _drawn(draw, 40, parts, weights), truth),
        test=_items(draw, "test", test, truth),
        start="\n".join([START, *lines]),
        budgets=(150, 300, 500, 700, 1000),
    )


def soft(seed: int) -> World:
    """Tasks of three parts, each with a rule of its own: a rule is worth a third of a task."""
    draw = random.Random(f"soft {seed}")
    truth = _truth(draw, _names(draw, 24))
    parts = list(truth)

    def threes(many: int) -> list[tuple[Part, ...]]:
        return [tuple(draw.sample(parts, 3)) for _ in range(many)]

    return World(
        name="soft",
        truth=truth,
        train=_items(draw, "train", threes(30), truth),
        val=_items(draw, "val", threes(20), truth),
        test=_items(draw, "test", threes(120), truth),
    )


def wrong_half(seed: int) -> World:
    """24 independent rules, and an optimizer of whose proposals every other is useless or harmful."""
    return evolve(_by_kind("wrong half", seed, 60, 30), wrong=0.5)


def clutter(seed: int) -> World:
    """24 independent rules, many useless proposals, and a target that overlooks more with each useless line."""
    return evolve(_by_kind("clutter", seed, 60, 30), wrong=0.4, bad=(0.7, 0.15, 0.05, 0.1), clutter=0.03)


def null(seed: int) -> World:
    """Nothing to learn: the start has every rule, a fifth of the questions is tossed, and no proposal says anything."""
    world, draw = _by_kind("null", seed, 60, 30), random.Random(f"null start {seed}")
    lines = [sentence(f"kind {part.kind}", op, draw) for part, op in world.truth.items()]
    return evolve(world, start="\n".join([START, *lines]), flaky=0.2, wrong=1.0, bad=(1.0, 0.0, 0.0, 0.0))


def steady_null(seed: int) -> World:
    """A third of the rules is missing, nothing is tossed, and no proposal says anything."""
    world, draw = _by_kind("steady null", seed, 60, 30), random.Random(f"steady null start {seed}")
    lines = [sentence(f"kind {part.kind}", op, draw) for part, op in [*world.truth.items()][:16]]
    return evolve(world, start="\n".join([START, *lines]), wrong=1.0, bad=(1.0, 0.0, 0.0, 0.0))


def unclaimed(seed: int) -> World:
    """24 rules, an optimizer that never says which tasks an edit is for, and three of ten questions tossed."""
    return evolve(_by_kind("unclaimed", seed, 60, 30, tests=12), flaky=0.3, claims="none")


def noisy(seed: int) -> World:
    """24 rules, and a target that answers three calls in ten by the toss of a coin, whatever is asked."""
    return evolve(_by_kind("noisy", seed, 60, 30), noise=0.3)


def noisy_null(seed: int) -> World:
    """A third of the rules is missing, three calls in ten are tossed, and no proposal says anything."""
    return evolve(steady_null(seed), name="noisy null", noise=0.3)


def misclaimed(seed: int) -> World:
    """24 rules, and an optimizer that names other tasks than those its edits are for."""
    return evolve(_by_kind("misclaimed", seed, 60, 30), claims="wrong")


def lumped(seed: int) -> World:
    """24 rules, three of them in one edit; useless lines cost the target 2 % of its tasks each."""
    return evolve(_by_kind("lumped", seed, 60, 30), habit="lumps", wrong=0.3, bad=(0.6, 0.2, 0.1, 0.1), clutter=0.02)


def rewriting(seed: int) -> World:
    """24 rules, and an optimizer whose one edit says all that is there once more, and all that is new."""
    return evolve(_by_kind("rewriting", seed, 60, 30), habit="rewrites")


def forgetful(seed: int) -> World:
    """24 rules, and a target that keeps no more than 22 lines in mind: what is useless pushes out what is not."""
    return evolve(_by_kind("forgetful", seed, 60, 30), memory=22)


def narrow(seed: int) -> World:
    """24 rules, 40 items to learn from and 20 to judge by: as few as can be, and nothing else is hard."""
    return evolve(_by_kind("narrow", seed, 40, 20), wrong=0.25, bad=(0.5, 0.4, 0.0, 0.1))


WORLDS: Mapping[str, Callable[[int], World]] = {
    "rules": rules,
    "larger": larger,
    "ordered": ordered,
    "flaky": flaky,
    "good-start": good_start,
    "soft": soft,
    "wrong-half": wrong_half,
    "clutter": clutter,
    "null": null,
}
"""By the name that `--worlds` takes; in `null` every change of the text is one too many."""

HELD_OUT: Mapping[str, Callable[[int], World]] = {
    "steady-null": steady_null,
    "noisy-null": noisy_null,
    "noisy": noisy,
    "unclaimed": unclaimed,
    "misclaimed": misclaimed,
    "lumped": lumped,
    "rewriting": rewriting,
    "forgetful": forgetful,
    "narrow": narrow,
}
"""Worlds in which nothing was tried out while the search was made: they were looked at once a change was done."""

EVERY = {**WORLDS, **HELD_OUT}
