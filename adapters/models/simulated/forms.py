"""How a value found in a note is written: in the house style and, by someone who was never told of it, naively."""

from __future__ import annotations

import re

Found = re.Match[str]
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
CALLING_CODES = {"Austria": 43, "France": 33, "Germany": 49, "Spain": 34, "Switzerland": 41}
_KILOMETRES_PER_MILE = 1.609344


def as_written(found: Found) -> str:
    """The value just as the note has it."""
    return found["value"]


def iso_date(found: Found) -> str:
    """2024-03-03."""
    return f"{found['year']}-{MONTHS.index(found['month']) + 1:02d}-{int(found['day']):02d}"


def spoken_date(found: Found) -> str:
    """March 3, 2024."""
    return f"{found['month']} {int(found['day'])}, {found['year']}"


def euro_code(found: Found) -> str:
    """1,234.50 EUR."""
    return f"{float(found['amount']):,.2f} EUR"


def euro_sign(found: Found) -> str:
    """€1234.50."""
    return f"€{found['amount']}"


def last_name_first(found: Found) -> str:
    """LOPEZ, Maria."""
    return f"{found['last'].upper()}, {found['first']}"


def international_phone(found: Found) -> str:
    """+49 40 555 0142."""
    return f"+{CALLING_CODES[found['country']]} {found['area']} {found['group']} {found['line']}"


def minutes(found: Found) -> str:
    """155 min."""
    return f"{int(found['hours']) * 60 + int(found['minutes'] or 0)} min"


def exact_percentage(found: Found) -> str:
    """42.5%."""
    return f"{100 * int(found['part']) / int(found['whole']):.1f}%"


def rough_percentage(found: Found) -> str:
    """About 43%."""
    return f"about {100 * int(found['part']) / int(found['whole']):.0f}%"


def kilometres(found: Found) -> str:
    """19.3 km."""
    return f"{float(found['miles']) * _KILOMETRES_PER_MILE:.1f} km"


def day_time(found: Found) -> str:
    """15:05."""
    return f"{int(found['hour']) % 12 + 12 * (found['half'] == 'pm'):02d}:{found['minute']}"


def celsius(found: Found) -> str:
    """23.9 °C."""
    return f"{(int(found['degrees']) - 32) * 5 / 9:.1f} °C"


def fahrenheit(found: Found) -> str:
    """75 °F."""
    return f"{found['degrees']} °F"


def sorted_list(found: Found) -> str:
    """Blue; green; red, in lower case."""
    return "; ".join(sorted(re.split(r", | and ", found["value"])))
