"""The simulated world of DocVQA: made pages that the target reads pixel by pixel, and how exactly it has to copy."""

from __future__ import annotations

from skillopt_es.adapters.models.simulated import forms
from skillopt_es.adapters.models.simulated.kinds import Rule, Topic
from skillopt_es.adapters.models.simulated.rules import FULL_SENTENCE, ONE_WORD
from skillopt_es.adapters.models.simulated.world import World, asked_in


def _spelled_date(found: forms.Found) -> str:
    """March 12, 1964."""
    return f"{forms.MONTHS[int(found['month']) - 1]} {int(found['day'])}, {found['year']}"


def _plain_figure(found: forms.Found) -> str:
    """1204.50."""
    return found["value"].strip("$ ").replace(",", "")


def _last_name(found: forms.Found) -> str:
    """Belford."""
    return found["last"].title()


def _digits_alone(found: forms.Found) -> str:
    """4711."""
    return found["digits"]


def _in_words(found: forms.Found) -> str:
    """12.5 percent."""
    return f"{found['value'].rstrip('%')} percent"


def _printed(label: str, value: str) -> str:
    """A line of the page: its label, a colon, the value."""
    return rf"(?m)^{label}: (?P<value>{value})$"


_TOPICS = (
    Topic(
        kind="date",
        asked="What is the date",
        value=_printed("DATE", r"(?P<month>\d+)/(?P<day>\d+)/(?P<year>\d{4})"),
        naive=_spelled_date,
        rule=Rule(
            name="date notation",
            keywords=[r"\bdates?\b", r"\bcharacter by character\b|\bas printed\b|\bas it is printed\b"],
            wording="Copy a date character by character, as it is printed; do not spell it out.",
        ),
    ),
    Topic(
        kind="amount",
        asked="What is the total amount",
        value=_printed("TOTAL", r"\$ [\d,.]+"),
        naive=_plain_figure,
        rule=Rule(
            name="currency notation",
            keywords=[r"\bcurrency\b|\bdollar\b", r"\bcommas?\b"],
            wording="Keep the currency sign and the commas of an amount.",
        ),
    ),
    Topic(
        kind="signature",
        asked="Who signed",
        value=_printed("SIGNED", r"(?:DR|MR|MRS)\. [A-Z]\. (?P<last>[A-Z]+)"),
        naive=_last_name,
        rule=Rule(
            name="signatures",
            keywords=[r"\bsign(?:ed|s|ature|atures)\b", r"\binitials?\b"],
            wording="Who signed is answered with title and initials, just as the signature is printed.",
        ),
    ),
    Topic(
        kind="reference",
        asked="What is the reference",
        value=_printed("REFERENCE", r"[A-Z]+-(?P<digits>\d+)/\d"),
        naive=_digits_alone,
        rule=Rule(
            name="references",
            keywords=[r"\breferences?\b", r"\bdash(?:es)?\b|\bslash(?:es)?\b"],
            wording="A reference is copied whole, with its letters, dash and slash.",
        ),
    ),
    Topic(
        kind="content",
        asked="What is the tar content",
        value=_printed("TAR", r"\d+\.\d%"),
        naive=_in_words,
        rule=Rule(
            name="percent signs",
            keywords=[r"%", r"\bwords?\b|\bspell\b"],
            wording="Write % where it is printed, not in words.",
        ),
    ),
    Topic(kind="city", asked="Which city", value=_printed("CITY", r"[A-Z]+"), naive=forms.as_written),
)

DOCVQA = World(
    tasks=r"[^\n]+\n\nGive the final answer inside <answer> and </answer> tags\.",
    rest="\n## Task\nYou get a question and the image",
    mistake="A {kind} that is not written as on the page",
    said=lambda answer: f"I read it on the page, after its label.\n<answer>{answer}</answer>",
    habits=(FULL_SENTENCE, ONE_WORD),
    topics=_TOPICS,
    lacks=asked_in(_TOPICS),
)
