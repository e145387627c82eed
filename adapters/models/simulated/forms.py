"""How a value found in a note is written: in the house style and, by someone who was never told of it, naively."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

Found = re.Match[str]
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
# By ITU-T E.164.
CALLING_CODES = {"Austria": 43, "France": 33, "Germany": 49, "Spain": 34, "Switzerland": 41}
_KILOMETRES_PER_MILE = 1.609344  # the international mile of 1959, exactly
_NOT_FOUND = "not found"
_IN_THOUSANDS = "(in thousands of dollars)"


def written(form: str, found: Found) -> str:
    """A form with its fields filled: by groups of what was found, and by what is computed of them."""
    return form.format_map(_Fields(found))


class _Fields(dict[str, str | None]):
    def __init__(self, found: Found) -> None:
        super().__init__(found.groupdict())
        self._found = found

    def __missing__(self, name: str) -> str:
        return _COMPUTED[name](self._found)


# --- values of a note ----------------------------------------------------------------------------------------------


def iso_date(found: Found) -> str:
    """2024-03-03."""
    return f"{found['year']}-{MONTHS.index(found['month']) + 1:02d}-{int(found['day']):02d}"


def spoken_date(found: Found) -> str:
    """March 3, 2024."""
    return f"{found['month']} {int(found['day'])}, {found['year']}"


def spelled_date(found: Found) -> str:
    """March 12, 1964."""
    return f"{MONTHS[int(found['month']) - 1]} {int(found['day'])}, {found['year']}"


def euro_code(found: Found) -> str:
    """1,234.50 EUR."""
    return f"{float(found['amount']):,.2f} EUR"


def plain_figure(found: Found) -> str:
    """1204.50."""
    return found["value"].strip("$ ").replace(",", "")


def last_name(found: Found) -> str:
    """Belford."""
    return found["last"].title()


def last_name_first(found: Found) -> str:
    """LOPEZ, Maria."""
    return f"{found['last'].upper()}, {found['first']}"


def international_phone(found: Found) -> str:
    """+49 40 555 0142."""
    return f"+{CALLING_CODES[found['country']]} {found['area']} {found['group']} {found['line']}"


def all_minutes(found: Found) -> str:
    """155 min."""
    return f"{int(found['hours']) * 60 + int(found['minutes'] or 0)} min"


def exact_percentage(found: Found) -> str:
    """42.5%."""
    return f"{100 * int(found['part']) / int(found['whole']):.1f}%"


def rough_percentage(found: Found) -> str:
    """43%."""
    return f"{100 * int(found['part']) / int(found['whole']):.0f}%"


def kilometres(found: Found) -> str:
    """19.3 km."""
    return f"{float(found['miles']) * _KILOMETRES_PER_MILE:.1f} km"


def day_time(found: Found) -> str:
    """15:05."""
    return f"{int(found['hour']) % 12 + 12 * (found['half'] == 'pm'):02d}:{found['minute']}"


def celsius(found: Found) -> str:
    """23.9 °C."""
    return f"{(int(found['degrees']) - 32) * 5 / 9:.1f} °C"


def sorted_list(found: Found) -> str:
    """Blue; green; red, in lower case."""
    return "; ".join(sorted(re.split(r", | and ", found["value"])))


def strict(found: Found) -> str:
    """The inequality without equality."""
    return found["value"].replace("at most", "below").replace("at least", "above")


# --- figures in tables ---------------------------------------------------------------------------------------------


def label_of(found: Found) -> str:
    """How the row is labelled that a question asks for; of several such rows what they have in common."""
    named = found.groupdict()
    return f"{named['row']}, {named['month']}" if named.get("month") else named["row"]


def _figures(text: str, label: str) -> list[str]:
    """The figures of the rows with this label, in the order in which they were read."""
    return re.findall(rf"\| {re.escape(label)}[^|\n]* \| (-?\d[\d,]*(?:\.\d+)?) \|", text, re.IGNORECASE)


def _asked(found: Found) -> list[str]:
    return _figures(found.string, label_of(found))


def _value(figure: str) -> Decimal:
    return Decimal(figure.replace(",", ""))


def first_figure(found: Found) -> str:
    """The figure that was read first in the rows that are asked for."""
    return next(iter(_asked(found)), _NOT_FOUND)


def last_figure(found: Found) -> str:
    """The one that was read last."""
    return next(reversed(_asked(found)), _NOT_FOUND)


def in_millions(found: Found) -> str:
    """The figure in millions, where the heading of its table says thousands."""
    read = _asked(found)
    return f"{_value(read[0]) / 1000:.1f}" if read and _IN_THOUSANDS in found.string else first_figure(found)


def summed(found: Found) -> str:
    """All months of a half year together."""
    read = _asked(found)
    return f"{sum(map(_value, read)):,.1f}" if read else _NOT_FOUND


def _change(found: Found) -> Decimal | None:
    before, after = (_figures(found.string, f"{found['row']}, {found[end]}") for end in ("before", "after"))
    return _value(after[0]) - _value(before[0]) if before and after else None


def signed_change(found: Found) -> str:
    """-12.5."""
    change = _change(found)
    return _NOT_FOUND if change is None else f"{change:.1f}"


def unsigned_change(found: Found) -> str:
    """12.5, whether it rose or fell."""
    change = _change(found)
    return _NOT_FOUND if change is None else f"{abs(change):.1f}"


def of_fiscal_year(found: Found) -> str:
    """The figure of the year that ended in June."""
    read = _figures(found.string, f"{found['row']}, fiscal year ended June 30, {found['year']}")
    return next(iter(read), _NOT_FOUND)


_COMPUTED: Mapping[str, Callable[[Found], str]] = {
    each.__name__: each
    for each in (
        *(iso_date, spoken_date, spelled_date, euro_code, plain_figure, last_name, last_name_first),
        *(international_phone, all_minutes, exact_percentage, rough_percentage, kilometres, day_time, celsius),
        *(sorted_list, strict, first_figure, last_figure, in_millions, summed, signed_change, unsigned_change),
        of_fiscal_year,
    )
}
