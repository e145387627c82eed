"""The simulated world of OfficeQA: figures in made bulletins, and what is easily overlooked about them."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from skillopt_es.adapters.models.simulated.forms import MONTHS, Found
from skillopt_es.adapters.models.simulated.kinds import Habit, Rule, Topic
from skillopt_es.adapters.models.simulated.rules import FULL_SENTENCE
from skillopt_es.adapters.models.simulated.world import World, asked_in

NOT_FOUND = "not found"
IN_THOUSANDS = "(in thousands of dollars)"
_MONTH = rf"(?:{'|'.join(MONTHS)}) \d{{4}}"


def figures(text: str, label: str) -> list[str]:
    """The figures of the rows with this label, in the order in which they were read."""
    return re.findall(rf"\| {re.escape(label)}[^|\n]* \| (-?\d[\d,]*(?:\.\d+)?) \|", text, re.IGNORECASE)


def label_of(found: Found) -> str:
    """How the row is labelled that a question asks for; of several such rows what they have in common."""
    named = found.groupdict()
    return f"{named['row']}, {named['month']}" if named.get("month") else named["row"]


def _value(figure: str) -> Decimal:
    return Decimal(figure.replace(",", ""))


def _of_row(choose: Callable[[list[str]], str]) -> Callable[[Found], str]:
    """One of the figures in the rows that are asked for."""
    return lambda found: choose(figures(found.string, label_of(found)) or [NOT_FOUND])


def _first(read: list[str]) -> str:
    return read[0]


def _last(read: list[str]) -> str:
    return read[-1]


def _converted(found: Found) -> str:
    """The figure in millions, where the heading of its table says thousands."""
    read = figures(found.string, label_of(found))
    if not read or IN_THOUSANDS not in found.string:
        return _first(read or [NOT_FOUND])
    return f"{_value(read[0]) / 1000:.1f}"


def _summed(found: Found) -> str:
    """All months of a half year together."""
    read = figures(found.string, label_of(found))
    return f"{sum(map(_value, read)):,.1f}" if read else NOT_FOUND


def _change(found: Found) -> Decimal | None:
    ends = [figures(found.string, f"{found['row']}, {found[end]}") for end in ("before", "after")]
    return _value(ends[1][0]) - _value(ends[0][0]) if all(ends) else None


def _signed(found: Found) -> str:
    """-12.5."""
    change = _change(found)
    return NOT_FOUND if change is None else f"{change:.1f}"


def _unsigned(found: Found) -> str:
    """12.5, whether it rose or fell."""
    change = _change(found)
    return NOT_FOUND if change is None else f"{abs(change):.1f}"


def _fiscal(found: Found) -> str:
    """The figure of the year that ended in June."""
    read = figures(found.string, f"{found['row']}, fiscal year ended June 30, {found['year']}")
    return _first(read or [NOT_FOUND])


UNITS = Topic(
    kind="unit",
    asked="How many millions of dollars",
    value=rf"were spent on (?P<row>[a-z ]+) in (?P<month>{_MONTH})",
    naive=_of_row(_first),
    house=_converted,
    rule=Rule(
        name="units",
        keywords=[r"\bheadings?\b", r"\bconvert\b|\bthousands\b"],
        wording="Read the heading of a table for what it is in, and convert the figure to what the question asks for.",
    ),
)
REVISIONS = Topic(
    kind="revised figure",
    asked="What was the public debt",
    value=rf"the (?P<row>public debt) at the end of (?P<month>{_MONTH})",
    naive=_of_row(_first),
    house=_of_row(_last),
    rule=Rule(
        name="revisions",
        keywords=[r"\brevised\b|\brevisions?\b", r"\b(?:later|latest|every)\b"],
        wording="Search every document for the row: a revised figure of a later bulletin counts.",
    ),
)
_TOPICS = (
    UNITS,
    REVISIONS,
    Topic(
        kind="total",
        asked="What were the receipts",
        value=r"from (?P<row>[a-z ]+?) in the (?P<half>first|second) half of (?P<year>\d{4})",
        naive=_of_row(_last),
        house=_summed,
        rule=Rule(
            name="periods",
            keywords=[r"\bperiods?\b|\bhalf\b|\bseveral months\b", r"\badd\b|\ball its months\b"],
            wording="For a period of several months add up the rows of all its months.",
        ),
    ),
    Topic(
        kind="change",
        asked="By how much did",
        value=rf"did the (?P<row>[a-z ]+?) change from (?P<before>{_MONTH}) to (?P<after>{_MONTH})",
        naive=_unsigned,
        house=_signed,
        rule=Rule(
            name="changes",
            keywords=[r"\bdecreas\w+\b|\bfell\b|\bfalls?\b", r"\bnegative\b|\bminus\b"],
            wording="Give what fell as a negative figure, with its minus: the later one minus the earlier one.",
        ),
    ),
    Topic(
        kind="fiscal year",
        asked="What was the (?:budget deficit|relief outlay|interest outlay)",
        value=r"What was the (?P<row>[a-z ]+) of the fiscal year (?P<year>\d{4})",
        naive=_of_row(_first),
        house=_fiscal,
        rule=Rule(
            name="fiscal years",
            keywords=[r"\bfiscal\b", r"\bcalendar\b"],
            wording="A fiscal year is no calendar year: take the row of the fiscal one, which ends with June.",
        ),
    ),
    Topic(
        kind="rate",
        asked="What was the rate",
        value=rf"the rate of (?P<row>[a-z ]+) in (?P<month>{_MONTH})",
        naive=_of_row(_first),
    ),
)


def _without_decimals(answer: str) -> str:
    return re.sub(r"\.\d+", "", answer)


OFFICEQA = World(
    tasks=r"## Question\n[^\n]+\n\n## Candidate files",
    rest="\n## Answer\n- Reason first",
    mistake="A {kind} was not seen to",
    said=lambda answer: f"This is what the rows say that I have read.\n<answer>{answer}</answer>",
    habits=(
        FULL_SENTENCE,
        Habit(
            rule=Rule(
                name="whole figures",
                keywords=[r"\bdecimals?\b", r"\bleave out\b|\bwithout\b|\bcut\b"],
                wording="Leave out decimals in every answer.",
            ),
            spoil=_without_decimals,
        ),
    ),
    topics=_TOPICS,
    lacks=asked_in(_TOPICS),
)
