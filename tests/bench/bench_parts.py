"""
Which changes of a refused candidate stay: how often the right ones are found, and at what price.

    python tests/bench/bench_parts.py [RUNS]

Made worlds of 32 validation items, half of which pass before. Each change helps or harms seven of ten items that notice
it; a draw comes out otherwise with the chance in the table. `opened` keeps what no worse item has opened, `fitted` what
the fit finds harmless from the two draws there are, `drawn` the same after a dozen draws under parts. For each: how
often the kept changes are the best ones, the share of the best gain that passes a gate of fresh draws, and the results
that are spent after the first gate. No network.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from skillopt_es.algorithms.skills.effects import Draw, effects
from skillopt_es.engine.draws import some_of

ITEMS, PARTS, REACH = 32, 12, 0.7
Kept = frozenset[str] | None


@frozen
class World:
    """Items with what each notices, and what each change that it notices does to it."""

    names: tuple[str, ...]
    passes: tuple[bool, ...]
    acts: tuple[dict[str, int], ...]
    noise: float

    def chance(self, item: int, on: frozenset[str]) -> float:
        """How probable it is that an item passes."""
        does = {act for name, act in self.acts[item].items() if name in on}
        passes = -1 not in does and (1 in does or self.passes[item])
        return 1 - self.noise if passes else self.noise

    def worth(self, on: frozenset[str]) -> float:
        """How many items pass."""
        return sum(self.chance(item, on) for item in range(ITEMS))


def made(chance: random.Random, form: str, changes: int, noise: float) -> World:
    """A world of a form, with a change that helps and one that harms at least."""
    names = tuple("abcdef"[:changes])
    signs = {name: chance.choice((1, -1)) for name in names}
    while len(set(signs.values())) < 2:
        signs = {name: chance.choice((1, -1)) for name in names}
    acts = []
    for item in range(ITEMS):
        felt = FORMS[form](item, names, chance)
        acts.append({name: signs[name] * (chance.random() < REACH) for name in felt})
    return World(names, tuple(chance.random() < 0.5 for _ in range(ITEMS)), tuple(acts), noise)


FORMS: dict[str, Callable[[int, Sequence[str], random.Random], list[str]]] = {
    "a skill each": lambda item, names, chance: [
        name for at, name in enumerate(names) if item % (len(names) + 2) == at
    ],
    "one skill": lambda item, names, chance: [*names],
    "overlapping": lambda item, names, chance: [name for name in names if chance.random() < 0.5],
}


def opened(world: World, before: Sequence[float], after: Sequence[float]) -> Kept:
    """What no item that got worse has opened; nothing where an item opened nothing, or nothing good is left."""
    worse = [item for item in range(ITEMS) if after[item] < before[item]]
    if not worse or not all(world.acts[item] for item in worse):
        return None
    good = frozenset(world.names).difference(*(world.acts[item] for item in worse))
    better = (item for item in range(ITEMS) if after[item] > before[item])
    return good if any(good & set(world.acts[item]) for item in better) else None


def kept(world: World, draws: Sequence[Draw]) -> Kept:
    """What the fit finds harmless; nothing where that is all, or nothing helps."""
    found = effects(draws, world.names)
    stay = frozenset(name for name in world.names if found[name] >= 0)
    return stay if len(stay) < len(world.names) and any(found[name] > 0 for name in stay) else None


def run(way: str, seed: int, form: str, changes: int, noise: float) -> tuple[float, float, int] | None:
    """Whether it was right, the share of the best gain, and the results; None where the gate takes all together."""
    chance = random.Random(f"{seed} {form} {changes} {noise}")
    world = made(chance, form, changes, noise)
    every, none = frozenset(world.names), frozenset[str]()

    def draw(item: int, on: frozenset[str]) -> float:
        return float(chance.random() < world.chance(item, on))

    before, after = ([draw(item, on) for item in range(ITEMS)] for on in (none, every))
    if sum(after) > sum(before):
        return None
    best = max(world.worth(frozenset(some)) for size in range(changes) for some in combinations(world.names, size))
    spent, stay = 0, opened(world, before, after) if way == "opened" else None
    if way != "opened" and any(after[item] > before[item] for item in range(ITEMS)):
        draws = [Draw(f"{item}", none, before[item]) for item in range(ITEMS)]
        draws += [Draw(f"{item}", every & set(world.acts[item]), after[item]) for item in range(ITEMS)]
        several = [item for item in range(ITEMS) if len(world.acts[item]) > 1]
        chance.shuffle(several)
        several.sort(key=lambda item: before[item] == after[item])
        for item in several[:PARTS] if way == "drawn" else ():
            on = frozenset(some_of([*world.acts[item]], f"{seed} {item}"))
            draws.append(Draw(f"{item}", on, draw(item, on)))
            spent += 1
        stay = kept(world, draws)
    if stay is None:
        return 0.0, 0.0, spent
    taken = sum(draw(item, stay) for item in range(ITEMS)) > sum(before)
    most = best - world.worth(none)
    gain = (world.worth(stay) - world.worth(none)) / most if taken and most > 0 else 0.0
    return float(abs(world.worth(stay) - best) < 1e-9), gain, spent + ITEMS


def main(runs: int) -> None:
    """A row for each kind of world; in each cell right, gain and results."""
    print("| changes notice | how many | noise | opened | fitted | drawn |")
    print("| --- | ---: | ---: | --- | --- | --- |")
    for form in FORMS:
        for changes in (2, 3, 4):
            for noise in (0.0, 0.05, 0.15):
                cells = []
                for way in ("opened", "fitted", "drawn"):
                    all_ = (run(way, seed, form, changes, noise) for seed in range(4 * runs))
                    found = [each for each in all_ if each is not None][:runs]
                    right, gain, spent = (sum(column) / len(found) for column in zip(*found, strict=True))
                    cells.append(f"{right:.2f}, {gain:.2f}, {spent:.0f}")
                print(f"| {form} | {changes} | {noise} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
