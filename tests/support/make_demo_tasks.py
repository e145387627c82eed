"""
Writes the tasks of the bundled demo: questions about short notes, to be answered in a house style.

    python tests/support/make_demo_tasks.py configs/demo/tasks.jsonl

The expected answers are made here from the raw values, not by the simulated target's own formatting.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

COUNTS = {  # kind: items in train, val, test
    "date": (7, 5, 5),
    "money": (6, 5, 5),
    "name": (5, 4, 4),
    "duration": (5, 4, 4),
    "percent": (5, 3, 3),
    "phone": (4, 3, 3),
    "time": (4, 3, 3),
    "distance": (3, 3, 3),
    "temperature": (2, 2, 2),
    "list": (2, 2, 2),
    "place": (5, 6, 6),
}
SPLITS = ("train", "val", "test")
_PEOPLE = {
    "Maria": "Ms", "Jonas": "Mr", "Aylin": "Ms", "Pierre": "Mr", "Ruth": "Ms", "Tomas": "Mr", "Ines": "Ms",
    "Karl": "Mr", "Nora": "Ms", "Felix": "Mr", "Olga": "Ms", "Sven": "Mr", "Lena": "Ms",
}  # fmt: skip
_LAST = ("Lopez", "Brandt", "Yilmaz", "Moreau", "Keller", "Novak", "Costa", "Weiss", "Berg", "Hofer", "Petrov", "Lund")
_CITIES = {
    "Hamburg": "Germany", "Leipzig": "Germany", "Kassel": "Germany", "Lyon": "France", "Nantes": "France",
    "Graz": "Austria", "Linz": "Austria", "Bilbao": "Spain", "Sevilla": "Spain", "Basel": "Switzerland",
    "Bern": "Switzerland", "Zurich": "Switzerland",
}  # fmt: skip
_COLOURS = ("red", "blue", "green", "white", "black", "yellow", "grey", "brown")
_CODES = {"Germany": 49, "France": 33, "Austria": 43, "Spain": 34, "Switzerland": 41}
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

Made = tuple[str, str, str]
Maker = Callable[[random.Random], Made]


def _person(draw: random.Random) -> tuple[str, str]:
    return draw.choice(tuple(_PEOPLE)), draw.choice(_LAST)


def _called(first: str, last: str) -> str:
    return f"{_PEOPLE[first]} {first} {last}"


def _city(draw: random.Random) -> str:
    return draw.choice(tuple(_CITIES))


def _day(draw: random.Random) -> date:
    return date(2023, 1, 1) + timedelta(days=draw.randrange(1000))


def _written(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _date(draw: random.Random) -> Made:
    day = _day(draw)
    question, note = draw.choice(
        (
            (
                "On which day does the lease of the {city} office end?",
                "The lease in {city} ends on {day}; {person} asked to be reminded.",
            ),
            (
                "When was the offer for {city} sent?",
                "{person} sent the offer to the {city} branch on {day}, with two enclosures.",
            ),
            (
                "On what date is the inspection in {city}?",
                "The inspection of the {city} workshop is set for {day}. Keys are with {person}.",
            ),
            (
                "When did the contract with the {city} supplier begin?",
                "Signed by {person}; in force in {city} since {day}.",
            ),
        )
    )
    return question, note.replace("{day}", _written(day)), day.isoformat()


def _money(draw: random.Random) -> Made:
    cents = draw.randrange(110_000, 4_999_999) if draw.random() < 0.7 else draw.randrange(1_000, 99_999)
    question, note = draw.choice(
        (
            (
                "How much is the bill from {city}?",
                "Bill from {city}: {amount} euros, due in 30 days. Questions to {person}.",
            ),
            (
                "What does the new machine for {city} cost?",
                "{person} ordered the machine for {city} at {amount} euros, delivery included.",
            ),
            (
                "How much was paid for the repair in {city}?",
                "The repair in {city} took 3 hours and was paid with {amount} euros.",
            ),
            (
                "How much may the {city} team spend?",
                "Budget of the {city} team: {amount} euros until the end of the year.",
            ),
        )
    )
    whole, rest = divmod(cents, 100)
    return question, note.replace("{amount}", f"{whole}.{rest:02d}"), f"{whole:,}.{rest:02d} EUR"


def _name(draw: random.Random) -> Made:
    first, last = _person(draw)
    question, note = draw.choice(
        (
            ("Who signed the contract with {city}?", "The contract with {city} was signed on {otherday} by {boss}."),
            ("Who runs the {city} branch?", "Since {otherday} {boss} has been running the {city} branch."),
            ("Whose keys were found in {city}?", "Found in the {city} canteen: keys that belong to {boss}."),
            (
                "Who is the contact for the {city} order?",
                "Contact for the order from {city}: {boss}, usually there before noon.",
            ),
        )
    )
    return question, note.replace("{boss}", _called(first, last)), f"{last.upper()}, {first}"


def _duration(draw: random.Random) -> Made:
    hours, minutes = draw.randrange(1, 9), draw.choice((0, 5, 10, 15, 20, 25, 35, 40, 45, 50, 55))
    question, note = draw.choice(
        (
            ("How long did the audit in {city} take?", "The audit in {city} took {time}, led by {person}."),
            ("How long is the drive to {city}?", "By car {city} is reached in {time}; there is a toll of 12.50 euros."),
            ("How long was the {city} line down?", "The {city} line stood still for {time} on {otherday}."),
            ("How long does the {city} course last?", "The course in {city} lasts {time}, with a break."),
        )
    )
    said = f"{hours} hour{'s' * (hours > 1)}" + (f" and {minutes} minutes" if minutes else "")
    return question, note.replace("{time}", said), f"{60 * hours + minutes} min"


def _percent(draw: random.Random) -> Made:
    whole = draw.choice((25, 30, 40, 70, 90, 125, 200))  # none of them gives a tie in the second decimal
    part = draw.randrange(1, whole)
    question, note = draw.choice(
        (
            (
                "What share of the {city} visitors came back?",
                "{part} of {whole} visitors in {city} came a second time, counted on {otherday}.",
            ),
            (
                "What percentage of the {city} devices failed the test?",
                "In {city} {part} of {whole} devices failed; {person} has the list.",
            ),
            (
                "What share of the {city} staff speaks French?",
                "French is spoken by {part} of {whole} people at the {city} site.",
            ),
            ("What percentage of letters to {city} was returned?", "Returned from {city}: {part} of {whole} letters."),
        )
    )
    said = note.replace("{part}", str(part)).replace("{whole}", str(whole))
    tenths = (2000 * part + whole) // (2 * whole)
    return question, said, f"{tenths // 10}.{tenths % 10}%"


def _phone(draw: random.Random) -> Made:
    city = _city(draw)
    country = _CITIES[city]
    area, group, line = draw.randrange(20, 99), draw.randrange(200, 999), draw.randrange(1000, 9999)
    question, note = draw.choice(
        (
            (
                "Under which number can the {city} desk be reached?",
                "The {city} desk answers at ({0}) {1} {2} in {3}, except on Fridays.",
            ),
            (
                "Which number belongs to the {city} night service?",
                "Night service {city}: ({0}) {1} {2} in {3}. Ask for {person}.",
            ),
            (
                "Which number should the {city} carrier call?",
                "The carrier from {city} calls ({0}) {1} {2} in {3} an hour ahead.",
            ),
        )
    )
    for place, value in enumerate((f"0{area}", group, line, country)):
        note = note.replace(f"{{{place}}}", str(value))
    return question.replace("{city}", city), note.replace("{city}", city), f"+{_CODES[country]} {area} {group} {line}"


def _time(draw: random.Random) -> Made:
    hour, minute = draw.choice((*range(6, 11), *range(12, 23))), draw.choice((0, 10, 15, 20, 30, 40, 45))
    question, note = draw.choice(
        (
            (
                "At what time does the {city} meeting start?",
                "The meeting with {city} starts at {time} and lasts 2 hours.",
            ),
            (
                "At what time does the {city} shop close?",
                "The shop in {city} closes at {time}, on {otherday} an hour earlier.",
            ),
            (
                "At what time is the {city} parcel collected?",
                "The parcel for {city} is collected at {time} at gate 3 by {person}.",
            ),
        )
    )
    said = f"{hour if hour <= 12 else hour - 12}:{minute:02d} {'am' if hour < 12 else 'pm'}"
    return question, note.replace("{time}", said), f"{hour:02d}:{minute:02d}"


def _distance(draw: random.Random) -> Made:
    miles = draw.randrange(3, 240)
    question, note = draw.choice(
        (
            (
                "How far is the depot from {city}?",
                "From {city} to the depot it is {miles} miles, about 40 minutes by train.",
            ),
            ("How far did the {city} van drive?", "The {city} van drove {miles} miles on {otherday}."),
            ("How far apart are the two {city} sites?", "The sites in {city} lie {miles} miles apart, says {person}."),
        )
    )
    return question, note.replace("{miles}", str(miles)), f"{round(miles * 1.609344, 1)} km"


def _temperature(draw: random.Random) -> Made:
    question, note, degrees = draw.choice(
        (
            (
                "How warm was the {city} store room?",
                "Store room {city}, {otherday}: {degrees} degrees Fahrenheit.",
                draw.randrange(55, 104),
            ),
            (
                "How cold was the {city} delivery?",
                "The delivery to {city} arrived at {degrees} degrees Fahrenheit; {person} signed.",
                draw.randrange(-10, 40),
            ),
        )
    )
    return question, note.replace("{degrees}", str(degrees)), f"{round((degrees - 32) / 1.8, 1)} °C"


def _list(draw: random.Random) -> Made:
    colours = draw.sample(_COLOURS, draw.choice((3, 4)))
    while colours == sorted(colours):
        draw.shuffle(colours)
    question, note = draw.choice(
        (
            ("Which colours are in stock in {city}?", "In stock in {city}: {colours}. New goods arrive on {otherday}."),
            (
                "Which colours are sold out in {city}?",
                "Sold out at the {city} branch: {colours}. {person} has ordered more.",
            ),
        )
    )
    return (
        question,
        note.replace("{colours}", f"{', '.join(colours[:-1])} and {colours[-1]}"),
        "; ".join(sorted(colours)),
    )


def _place(draw: random.Random) -> Made:
    city = _city(draw)
    question, note = draw.choice(
        (
            ("In which city does {person} work?", "{person} has worked in the city of {town} since {otherday}."),
            (
                "Where is the fair of {otherday}?",
                "The fair of {otherday} is held in the city of {town}; entry is 12.50 euros.",
            ),
            (
                "In which city was the van of {person} left?",
                "{person} left the van in the city of {town}, 14 miles from the depot.",
            ),
        )
    )
    return question, note.replace("{town}", city), city


MAKERS: dict[str, Maker] = {
    "date": _date,
    "money": _money,
    "name": _name,
    "duration": _duration,
    "percent": _percent,
    "phone": _phone,
    "time": _time,
    "distance": _distance,
    "temperature": _temperature,
    "list": _list,
    "place": _place,
}


def make_tasks() -> list[dict[str, str]]:
    """The demo's items, the same ones each time: train first, then val, then test."""
    rows: dict[str, list[dict[str, str]]] = {split: [] for split in SPLITS}
    for kind, counts in COUNTS.items():
        made = _different(kind, sum(counts))
        for split, count in zip(SPLITS, counts, strict=True):
            rows[split] += [{**made.pop(0), "type": kind, "split": split} for _ in range(count)]
    return [row for split in SPLITS for row in rows[split]]


def _different(kind: str, count: int) -> list[dict[str, str]]:
    draw = random.Random(f"demo {kind}")
    inputs: dict[str, str] = {}
    while len(inputs) < count:
        question, note, expected = MAKERS[kind](draw)
        text = f"{question}\nNote: {note}"
        for name, value in (
            ("city", _city(draw)),
            ("person", _called(*_person(draw))),
            ("otherday", _written(_day(draw))),
        ):
            text = text.replace(f"{{{name}}}", value)
        inputs.setdefault(text, expected)
    return [
        {"id": f"{kind}-{number:02d}", "input": text, "expected": expected}
        for number, (text, expected) in enumerate(inputs.items(), start=1)
    ]


def main() -> None:
    """Writes the file that is named on the command line."""
    lines = [json.dumps(row, ensure_ascii=False) for row in make_tasks()]
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
