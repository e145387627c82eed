"""
The rules that simulated models know: kinds of question with a house style each, and habits that spoil every answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from skillopt_es.adapters.models.simulated import forms
from skillopt_es.adapters.models.simulated.kinds import Habit, Rule, Topic
from skillopt_es.adapters.models.simulated.scripts import SHEET_TOPICS


def chance(*parts: str) -> float:
    """A number from 0 to 1 that depends on these texts only: the same texts have the same luck anywhere."""
    digest = hashlib.sha256("\n".join(parts).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def rules_in(text: str, rules: Iterable[Rule]) -> list[Rule]:
    """Those of the rules that a text states."""
    return [rule for rule in rules if rule.line_in(text)]


_MONTH = "|".join(forms.MONTHS)
_COUNTRY = "|".join(forms.CALLING_CODES)

TOPICS: tuple[Topic, ...] = (
    Topic(
        kind="date",
        asked="On which day|On what date|When",
        value=rf"(?P<day>\d{{1,2}}) (?P<month>{_MONTH}) (?P<year>\d{{4}})",
        naive=forms.spoken_date,
        house=forms.iso_date,
        rule=Rule(name="dates", keywords=[r"\bdates?\b", "YYYY-MM-DD|ISO"], wording="Write dates as YYYY-MM-DD."),
    ),
    Topic(
        kind="money",
        asked="How much|What does",
        value=r"(?P<amount>\d+\.\d\d) euros",
        naive=forms.euro_sign,
        house=forms.euro_code,
        rule=Rule(
            name="amounts",
            keywords=[r"\b(?:money|amounts?|prices?|sums?)\b", r"\bEUR\b"],
            wording="Write amounts of money with thousands separators, two decimals and the code EUR: 1,234.50 EUR.",
        ),
    ),
    Topic(
        kind="name",
        asked="Who|Whose",
        value=r"(?:Ms|Mr) (?P<value>(?P<first>[A-Z]\w+) (?P<last>[A-Z]\w+))",
        naive=forms.as_written,
        house=forms.last_name_first,
        rule=Rule(
            name="names",
            keywords=[r"\bnames?\b", r"\b(?:LAST|surname|family name)\b"],
            wording="Write names of people as LAST, First: the last name in capitals, a comma, the first name.",
        ),
    ),
    Topic(
        kind="duration",
        asked="How long",
        value=r"(?P<value>(?P<hours>\d+) hours?(?: and (?P<minutes>\d+) minutes)?)",
        naive=forms.as_written,
        house=forms.minutes,
        rule=Rule(
            name="durations",
            keywords=[r"\b(?:durations?|how long)\b", r"\bmin(?:utes)?\b"],
            wording="Give durations in minutes only, as a number and min: 95 min.",
        ),
    ),
    Topic(
        kind="percent",
        asked="What share|What percentage",
        value=r"(?P<part>\d+) of (?P<whole>\d+)",
        naive=forms.rough_percentage,
        house=forms.exact_percentage,
        rule=Rule(
            name="percentages",
            keywords=[r"\b(?:percent\w*|shares?)\b", r"\bone decimal\b|\b1 decimal\b"],
            wording="Give percentages with exactly one decimal and no space before the sign: 12.5%.",
        ),
    ),
    Topic(
        kind="phone",
        asked="Under which number|Which number",
        value=rf"(?P<value>\(0(?P<area>\d+)\) (?P<group>\d+) (?P<line>\d+)) in (?P<country>{_COUNTRY})",
        naive=forms.as_written,
        house=forms.international_phone,
        rule=Rule(
            name="phone numbers",
            keywords=[r"\b(?:tele)?phones?\b", r"\+|\bcountry code\b|\binternational\b"],
            wording="Write phone numbers in groups with + and the country code, without the first 0: +49 30 555 0100.",
        ),
    ),
    Topic(
        kind="time",
        asked="At what time",
        value=r"(?P<value>(?P<hour>\d{1,2}):(?P<minute>\d\d) (?P<half>am|pm))",
        naive=forms.as_written,
        house=forms.day_time,
        rule=Rule(
            name="times",
            keywords=[r"\btimes?\b", r"\b24.hours?\b|\bHH:MM\b"],
            wording="Write times of day on the 24-hour clock as HH:MM.",
        ),
    ),
    Topic(
        kind="distance",
        asked="How far",
        value=r"(?P<value>(?P<miles>\d+(?:\.\d)?) miles)",
        naive=forms.as_written,
        house=forms.kilometres,
        rule=Rule(
            name="distances",
            keywords=[r"\b(?:distances?|miles)\b", r"\b(?:km|kilomet\w+)\b"],
            wording="Convert distances to kilometres with one decimal: 19.3 km.",
        ),
    ),
    Topic(
        kind="temperature",
        asked="How warm|How cold",
        value=r"(?P<degrees>-?\d+) degrees Fahrenheit",
        naive=forms.fahrenheit,
        house=forms.celsius,
        rule=Rule(
            name="temperatures",
            keywords=[r"\btemperatures?\b", "°C|celsius"],
            wording="Convert temperatures to degrees Celsius with one decimal: 21.5 °C.",
        ),
    ),
    Topic(
        kind="list",
        asked=r"Which \w+ are",
        value=r": (?P<value>\w+(?:, \w+)+ and \w+)",
        naive=forms.as_written,
        house=forms.sorted_list,
        rule=Rule(
            name="lists",
            keywords=[r"\blists?\b", r"\balphabet\w*", r"\bsemicolons?\b"],
            wording="Write lists in alphabetical order, separated by semicolons.",
        ),
    ),
    Topic(
        kind="place", asked="In which city|Where", value=r"in the city of (?P<value>[A-Z]\w+)", naive=forms.as_written
    ),
    *SHEET_TOPICS,
)
RULES: tuple[Rule, ...] = tuple(topic.rule for topic in TOPICS if topic.rule)
STYLE: tuple[Rule, ...] = tuple(topic.rule for topic in TOPICS if topic.rule and topic not in SHEET_TOPICS)
BREVITY = Rule(
    name="brevity",
    keywords=[r"\bonly the (?:answer|value)\b"],
    wording="Give only the answer, without repeating the question.",
)
ONE_WORD = Habit(
    rule=Rule(name="one word", keywords=[r"\b(?:single|one) word\b"], wording="Answer with a single word."),
    spoil=lambda answer: answer.split()[0],
)
CAPITALS = Habit(
    rule=Rule(
        name="capitals",
        keywords=[
            r"\beverything\b|\bwhole answer\b|\ball answers\b",
            r"\bcapitals?\b|\bcapital letters\b|\bupper ?case\b",
        ],
        wording="Write everything in capital letters.",
    ),
    spoil=str.upper,
)
FULL_SENTENCE = Habit(
    rule=Rule(
        name="full sentence",
        keywords=[r"\bfull sentences?\b"],
        wording="Answer in a full sentence that repeats the question.",
    ),
    spoil=lambda answer: f"The answer to the question is {answer}.",
)
HABITS: tuple[Habit, ...] = (ONE_WORD, CAPITALS, FULL_SENTENCE)
HARMFUL: tuple[Rule, ...] = tuple(habit.rule for habit in HABITS)
