"""LiveMathematicianBench: the monthly files, and the released split, which follows from a seed and one exception."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from skillopt_es.adapters.benchmarks.plan import Divided, Fields, Found
from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.adapters.environments.livemath.choices import read_choices
from skillopt_es.adapters.environments.livemath.items import MONTHLY_FILES, read_months
from skillopt_es.errors import DataError
from skillopt_es.events.values import Json

# The months of the released split, and how many entries each has.
MONTHS = {"202511": 29, "202512": 52, "202601": 46, "202602": 50}
_SEED = 42  # the original's: with it the split is the released one
_TRAIN, _VAL = 35, 17  # items of the released split's parts; the other 125 are its test
_KEPT = ("month", "no", "paper_link", "theorem", "sketch", "theorem_type")


def divided(folder: Path) -> Divided:
    """The released split: drawn 2:1:7 with seed 42, but that the item after the validation items stands last of all."""
    entries = {item.id: item for item in read_months(folder, [])}
    counts = Counter(item.split(":")[0] for item in entries)
    short = [f"{month}: {counts[month]} of {size}" for month, size in MONTHS.items() if counts[month] != size]
    if short:
        raise DataError(
            f"the released split needs four months, whole ({'; '.join(short)})",
            hint="download all of them, or divide what you have with env.split_mode: ratio",
        )
    order = [f"{month}:{number}" for month in MONTHS for number in _numbers(entries, month)]
    random.Random(_SEED).shuffle(order)  # noqa: S311 - a reproducible order is the point
    rows = [entries[name] for name in order]
    held = _TRAIN + _VAL
    return {"train": rows[:_TRAIN], "val": rows[_TRAIN:held], "test": [*rows[held + 1 :], rows[held]]}


def _numbers(entries: Mapping[str, RawItem], month: str) -> list[int]:
    return sorted(int(name.split(":")[1]) for name in entries if name.startswith(f"{month}:"))


def read(folder: Path, wanted: Mapping[str, RawItem]) -> Found:
    """What a folder of downloads holds of the wanted items."""
    notes: list[str] = []
    items = {item.id: _item(item) for item in read_months(folder, notes) if item.id in wanted}
    files = [folder] if folder.is_file() else sorted(folder.rglob(MONTHLY_FILES))
    return Found(items=items, inputs=files, notes=notes)


def _item(raw: RawItem) -> Fields:
    asked = raw.fields.get("mcq", raw.fields)
    assert isinstance(asked, Mapping)  # read_months keeps only entries that can be asked
    choices = read_choices(asked.get("choices"), asked.get("correct_choice"))
    listed: list[Json] = [{"label": choice.label, "text": choice.text} for choice in choices.all]
    return {
        "id": raw.id,
        **{key: raw.fields[key] for key in _KEPT if key in raw.fields},
        "question": asked["question"],
        "choices": listed,
        "correct_choice": {"label": choices.correct, "text": choices.text_of(choices.correct)},
    }
