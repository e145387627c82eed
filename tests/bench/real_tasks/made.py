"""
Eight small tasks of different nature, for a model that nobody scripted: office work after a made-up house rule.

Nothing in a question tells the rule, so the starting skill scores about 0. All is drawn with a fixed seed: 12 training,
12 validation and 20 test items each, no two with the same question.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping

from attrs import frozen

START = "Answer with the result only."
SIZES = {"train": 12, "val": 12, "test": 20}
FIRST = ("Omar", "Maria", "Hugo", "Aiko", "Lena", "Paul", "Ines", "Tariq", "Nora", "Emil", "Rosa", "Jonas")
LAST = ("Fischer", "Novak", "Silva", "Tanaka", "Brandt", "Okoye", "Lopez", "Haddad", "Berg", "Moreau", "Kaya", "Dunn")
THINGS = ("chair", "desk", "lamp", "shelf", "printer", "rug", "monitor", "plant")
TOWNS = ("Oslo", "Porto", "Turin", "Graz", "Ghent", "Leeds", "Malmo", "Brno")


@frozen
class Row:
    """One item: what is asked, perhaps after a conversation, and the right answer."""

    id: str
    split: str
    expected: str
    messages: tuple[tuple[str, str], ...]


@frozen
class Task:
    """A task with its rows; `soft` where a grade between 0 and 1 is meant to guide."""

    name: str
    nature: str
    rows: tuple[Row, ...]
    soft: bool = False

    def split(self, name: str) -> tuple[Row, ...]:
        """The rows of a split."""
        return tuple(row for row in self.rows if row.split == name)

    def grade(self, answer: str, expected: str) -> tuple[float, float]:
        """Hard and soft score of an answer."""
        said = _unfenced(answer)
        if self.name in ("tool_call", "episode", "event_json"):
            right = _value(said) == _value(expected)
        else:
            right = _squeezed(said) == _squeezed(expected)
        return float(right), (1.0 if right else _overlap(said, expected)) if self.soft else float(right)


Draw = random.Random
Drawn = tuple[str | tuple[str, ...], str]


def login(draw: Draw) -> Drawn:
    """Form: two parts of a name and a year, put together in a fixed way."""
    first, last, year = draw.choice(FIRST), draw.choice(LAST), draw.randrange(1950, 2006)
    return f"Login name for {first} {last}, born {year}.", f"{last.lower()}.{first[0].lower()}{year % 100:02d}"


def policy(draw: Draw) -> Drawn:
    """Classification: which of four labels, by days, state and price."""
    thing, days, price = draw.choice(THINGS), draw.randrange(1, 60), draw.randrange(5, 300)
    opened = draw.random() < 0.5
    if days > 30:
        label = "KEEP"
    elif not opened:
        label = "REFUND"
    else:
        label = "VOUCHER" if price < 100 else "ASK-LEAD"
    state = "opened" if opened else "unopened"
    return f"Return request: {thing}, {state}, bought {days} days ago for {price} euros. Which label?", label


def invoice(draw: Draw) -> Drawn:
    """Arithmetic in several steps: pieces, a discount from a number on, and delivery."""
    many, each = draw.randrange(2, 20), draw.choice((5, 10, 20, 30, 40, 50))
    total = many * each
    total -= total // 10 if many >= 10 else 0
    return f"Order: {many} {draw.choice(THINGS)}s at {each} euros each to {draw.choice(TOWNS)}. Total?", f"{total + 15}"


def lookup(draw: Draw) -> Drawn:
    """Retrieval: of several notes about one thing the one with the latest date counts."""
    things = draw.sample(THINGS, 2)
    notes = [(draw.choice(things), draw.randrange(1, 29), draw.randrange(10, 99)) for _ in range(4)]
    notes = list({(thing, day): (thing, day, value) for thing, day, value in notes}.values())
    asked = notes[0][0]
    _, day, value = max((note for note in notes if note[0] == asked), key=lambda note: note[1])
    lines = "\n".join(f"- {day:02d} March: {thing} in room {value}" for thing, day, value in notes)
    return f"Notes:\n{lines}\nWhere is the {asked}?", f"R{value}/{day:02d}03"


def tool_call(draw: Draw) -> Drawn:
    """Tool use: the call of a made-up booking tool, as JSON."""
    hour, length = draw.randrange(8, 18), draw.choice((30, 45, 60, 90))
    room, name = f"{draw.choice('ABC')}{draw.randrange(1, 9)}", draw.choice(LAST)
    call = {"do": "book", "room": room.lower(), "at": hour * 60, "len": length, "for": name.upper()}
    return f"Book room {room} at {hour}:00 for {length} minutes for {name}.", json.dumps(call)


def episode(draw: Draw) -> Drawn:
    """An episode: a first try was refused with a code; what the code wants is a rule of the house."""
    town, boxes, code = draw.choice(TOWNS), draw.randrange(2, 40), draw.choice(("E1", "E2", "E3"))
    fixed: dict[str, dict[str, object]] = {
        "E1": {"town": town.upper(), "boxes": boxes},
        "E2": {"town": town, "boxes": boxes, "split": [boxes // 2, boxes - boxes // 2]},
        "E3": {"town": town, "boxes": boxes, "insured": True},
    }
    asked = f"Send {boxes} boxes to {town}. Answer with the JSON request."
    return (asked, json.dumps({"town": town, "boxes": boxes}), f"Refused: {code}"), json.dumps(fixed[code])


def free_text(draw: Draw) -> Drawn:
    """Free text: a short note in the words of the house; each right word counts."""
    first, thing, days = draw.choice(FIRST), draw.choice(THINGS), draw.randrange(2, 15)
    note = f"Dear {first}, your {thing} is on its way and arrives in {days} days. Warm greetings, the Harbour Desk"
    return f"Write to {first}: {thing} shipped, arrival in {days} days.", note


def query(draw: Draw) -> Drawn:
    """Code: a query in a made-up language."""
    field, than = draw.choice(("price", "weight", "stock")), draw.randrange(2, 90)
    order = draw.choice(("name", "town", "date"))
    more = draw.random() < 0.5
    sign, word = (">>", "above") if more else ("<<", "below")
    return f"Query: items with {field} {word} {than}, sorted by {order}.", f"items[{field} {sign} {than}] | by:{order}"


MAKERS: Mapping[str, tuple[str, Callable[[Draw], Drawn]]] = {
    "login": ("form", login),
    "policy": ("classification with a policy", policy),
    "invoice": ("arithmetic in several steps", invoice),
    "free_text": ("free text with partial credit", free_text),
    "lookup": ("retrieval", lookup),
    "tool_call": ("tool use", tool_call),
    "episode": ("an episode with feedback", episode),
    "query": ("code", query),
}


def made(name: str, seed: int = 7, makers: Mapping[str, tuple[str, Callable[[Draw], Drawn]]] = MAKERS) -> Task:
    """A task by name."""
    nature, draw_one = makers[name]
    draw = random.Random(f"{name}-{seed}")
    rows: dict[object, Row] = {}
    places = [f"{split}-{number:02d}" for split, many in SIZES.items() for number in range(1, many + 1)]
    while len(rows) < len(places):
        asked, expected = draw_one(draw)
        said = (asked,) if isinstance(asked, str) else asked
        roles = ("user", "assistant", "user")[: len(said)]
        if said not in rows:
            place = places[len(rows)]
            rows[said] = Row(place, place.partition("-")[0], expected, tuple(zip(roles, said, strict=True)))
    return Task(name, nature, tuple(rows.values()), soft=name == "free_text")


def _unfenced(text: str) -> str:
    found = re.fullmatch(r"\s*```\w*\n(.*?)\n?```\s*", text, re.DOTALL)
    return (found[1] if found else text).strip()


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _overlap(said: str, expected: str) -> float:
    """F1 of the words; below 1, since the two differ."""
    ours, theirs = Counter(re.findall(r"\w+", said)), Counter(re.findall(r"\w+", expected))
    both = sum((ours & theirs).values())
    return min(0.99, 2 * both / (sum(ours.values()) + sum(theirs.values()))) if both else 0.0
