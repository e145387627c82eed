"""
Five more tasks of an office, `--tasks office`: four of form and extraction, and one with a policy of three parts.

Drawn as the eight of `made.py` are, with the same sizes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from real_tasks.made import FIRST, LAST, THINGS, TOWNS, Draw, Drawn

OFFICES = {"Hamburg": "ham", "Lisbon": "lis", "Vienna": "vie", "Dublin": "dub"}


def login_names(draw: Draw) -> Drawn:
    """Form: first letter, dot, last name, two digits of the year, @, three letters of the office."""
    first, last, year, office = (
        draw.choice(FIRST),
        draw.choice(LAST),
        draw.randrange(1950, 2006),
        draw.choice([*OFFICES]),
    )
    asked = f"New account: {first} {last}, born in {year}, works in the {office} office."
    return asked, f"{first[0].lower()}.{last.lower()}{year % 100:02d}@{OFFICES[office]}"


def invoice_record(draw: Draw) -> Drawn:
    """Record: a sentence about an invoice into one line of a fixed layout."""
    number, day, month = draw.randrange(100, 999), draw.randrange(1, 29), draw.randrange(len(MONTHS))
    amount, town, weight = draw.randrange(20, 900), draw.choice(TOWNS), draw.randrange(2, 60)
    asked = (
        f"Invoice {number} of {day} {MONTHS[month]} is about {amount} euros; the goods weigh {weight} kilos "
        f"and go to {town}."
    )
    return asked, f"INV-{number} / {day:02d}.{month + 1:02d} / EUR {amount},00 / {town.upper()} / {weight}kg"


MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October")


def event_json(draw: Draw) -> Drawn:
    """JSON: a sentence about a meeting into a small object with fixed keys and formats."""
    who, other = draw.sample(LAST, 2)
    hour, minute, day = draw.randrange(8, 18), draw.choice((0, 15, 30, 45)), draw.choice(DAYS)
    room, length = f"{draw.choice('ABC')}{draw.randrange(1, 9)}", draw.choice((30, 45, 60, 90))
    call = {
        "day": day[:3].upper(),
        "start": f"{hour:02d}h{minute:02d}",
        "min": length,
        "room": room,
        "who": [who, other],
    }
    asked = f"{who} and {other} meet on {day} at {hour}:{minute:02d} in room {room} for {length} minutes."
    return asked, json.dumps(call)


DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")


def ticket_fields(draw: Draw) -> Drawn:
    """Extraction: a support ticket into four fields, one of them a classification."""
    kind = draw.choice([*TROUBLES])
    trouble, name, thing = draw.choice(TROUBLES[kind]), draw.choice(LAST), draw.choice(THINGS)
    order = draw.randrange(1000, 9999)
    asked = f"Ticket from {name}: My {thing} from order {order} {trouble}. Please help."
    return asked, f"from={name.upper()};order={order};item={thing};kind={kind}"


TROUBLES = {
    "broken": ("fell apart", "does not work any more", "came with a crack"),
    "late": ("has not arrived yet", "should have come last week", "is still on its way"),
    "money": ("was charged twice", "cost more than the price shown", "was not refunded"),
}


def ticket_codes(draw: Draw) -> Drawn:
    """A policy with three parts: letter by subject, digit by days waiting and customer, suffix by channel."""
    letter = draw.choice("BTS")
    subject, channel = draw.choice(SUBJECTS[letter]), draw.choice([*CHANNELS])
    kind, days = draw.choice(("business", "private")), draw.randrange(1, 15)
    urgency = 1 if days > 7 else (2 if kind == "business" else 3)
    asked = f"Ticket: {subject}; {kind} customer, waiting {days} days, came in by {channel}. Which code?"
    return asked, f"{letter}{urgency}-{CHANNELS[channel]}"


SUBJECTS = {
    "B": ("question about a bill", "wrong payment"),
    "T": ("login fails", "app crashes"),
    "S": ("parcel is missing", "delivery to a wrong address"),
}
CHANNELS = {"phone": "PH", "email": "EM", "chat": "CH"}


OFFICE: Mapping[str, tuple[str, Callable[[Draw], Drawn]]] = {
    "login_names": ("form", login_names),
    "invoice_record": ("record", invoice_record),
    "event_json": ("JSON", event_json),
    "ticket_fields": ("extraction with a class", ticket_fields),
    "ticket_codes": ("a policy of three parts", ticket_codes),
}
