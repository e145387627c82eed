"""The simulated world of LiveMathematicianBench: made-up theorems, and how closely a choice has to be read."""

from __future__ import annotations

import re
from collections.abc import Callable

from skillopt_es.adapters.models.simulated import forms
from skillopt_es.adapters.models.simulated.kinds import Habit, Rule, Topic
from skillopt_es.adapters.models.simulated.rules import FULL_SENTENCE
from skillopt_es.adapters.models.simulated.world import World

_CHOICE = re.compile(r"^([A-Z])\. (.+)$", re.MULTILINE)


def _label(answer: str, task: str) -> str:
    """The label of the choice with this text; the text itself where there is none."""
    return next((label for label, text in _CHOICE.findall(task) if text == answer), answer)


def _always(choice: str) -> Callable[[forms.Found], str]:
    return lambda found: choice


LIVEMATH = World(
    tasks=r"## Question\n",
    rest="\n## Task\nChoose the one choice that is right",
    mistake="A choice that misreads the {kind} of the statement",
    named=_label,
    said=lambda answer: f"Compared with what the question states, this is the one.\n<answer>{answer}</answer>",
    habits=(
        FULL_SENTENCE,
        Habit(
            rule=Rule(
                name="first choice",
                keywords=[r"\bfirst choice\b", r"\balways\b|\bdoubt\b"],
                wording="When in doubt, choose the first choice.",
            ),
            spoil=lambda answer: "A",
        ),
    ),
    topics=(
        Topic(
            kind="quantifier",
            asked="For which n",
            value=r"is shown for (?P<value>all sufficiently large n|infinitely many n|at least one n)",
            naive=_always("every n"),
            rule=Rule(
                name="quantifiers",
                keywords=[r"\bquantifiers?\b|\bfor which\b", r"\bsufficiently large\b|\binfinitely many\b"],
                wording="Keep the quantifier of the statement: infinitely many or all sufficiently large is not every.",
            ),
        ),
        Topic(
            kind="strictness",
            asked="Which inequality",
            value=r"with equality for one of them, that (?P<value>f\(\w\) is at (?:most|least) g\(\w\))",
            naive=lambda found: re.sub(
                "at (most|least)", lambda word: "below" if word[1] == "most" else "above", found["value"]
            ),
            rule=Rule(
                name="equality",
                keywords=[r"\bequality\b", r"\bstrict\b"],
                wording="Where equality is attained, choose the inequality that is not strict.",
            ),
        ),
        Topic(
            kind="hypotheses",
            asked="Under which hypothesis",
            value=r"Suppose that M is (?P<value>(?P<first>\w+) and \w+)\.",
            naive=lambda found: found["first"],
            rule=Rule(
                name="hypotheses",
                keywords=[r"\bhypothes[ie]s\b", r"\bevery\b|\ball\b"],
                wording="Choose the choice that states every hypothesis, not only the first one.",
            ),
        ),
        Topic(
            kind="constant",
            asked="What is the best constant",
            value=r"holds with c = (?P<first>\d+), and with c = (?P<best>\d+), which cannot be improved",
            naive=lambda found: f"c = {found['first']}",
            house=lambda found: f"c = {found['best']}",
            rule=Rule(
                name="constants",
                keywords=[r"\bconstants?\b", r"\bimproved\b|\bsharp\b"],
                wording="The best constant is the one that cannot be improved, not the first that is named.",
            ),
        ),
        Topic(
            kind="uniqueness",
            asked="How many solutions",
            value=r"has (?P<value>exactly one solution up to (?:sign|scaling|translation))",
            naive=_always("exactly one solution"),
            rule=Rule(
                name="uniqueness",
                keywords=[r"\bunique(?:ness)?\b|\bexactly one\b", r"\bup to\b"],
                wording="Say what uniqueness is up to: exactly one up to sign is weaker than exactly one.",
            ),
        ),
        Topic(
            kind="object",
            asked="Which graph",
            value=r"must be (?P<value>a \w+)\.",
            naive=forms.as_written,
        ),
    ),
)
