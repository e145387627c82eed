"""What is said of LiveMathematicianBench's tasks: to the target, and to analysts."""

from __future__ import annotations

from skillopt_es.adapters.environments.livemath.choices import Choices, shown

_ROLE = "You are an expert mathematician who answers multiple-choice questions on research-level theorems."

_RULES = """\
## Task
Choose the one choice that is right as it stands. Read quantifiers, hypotheses, extremal words (largest, at most,
only if) and the conditions for equality closely: wrong choices are often a little weaker, a little stronger, or true
only under more.

## Answer
- Reason first, then give the final answer inside <answer> and </answer> tags.
- The final answer is the label of the choice, one letter and nothing else.

## Example
The bound is attained, so the inequality cannot be strict.
<answer>C</answer>"""

RECHECK = (
    "Check your answer against the question and every choice above. Correct it when it is wrong, "
    "then give the label of your choice again inside <answer> and </answer> tags."
)


def system_prompt(skill_section: str) -> str:
    """The system prompt around a skill section, which may be empty."""
    return "\n\n".join(part for part in (_ROLE, skill_section, _RULES) if part)


def user_prompt(question: str, choices: Choices, *, theorem: str = "", sketch: str = "") -> str:
    """The user message of one item; theorem and sketch only where they are to be shown."""
    parts = [f"## Question\n{question}", f"## Choices\n{shown(choices.all)}"]
    parts += [f"## Theorem\n{theorem}"] if theorem else []
    parts += [f"## Proof sketch\n{sketch}"] if sketch else []
    return "\n\n".join(parts)


GUIDE = """\
Multiple choice on theorems: one choice is right as it stands, the others are a little weaker, stronger, or true under
more. Compare the chosen text with the right one, word by word. The order of choices is drawn anew each time: labels
teach nothing.
Kinds of failure, to be used as failure_type where one fits:
- quantifier_miss: for all, for some, for infinitely many, for all large ones were mixed up
- strength_mismatch: a statement that is weaker or stronger than what holds
- condition_miss: a hypothesis that is needed was left out, or one that is not needed was taken in
- option_confusion: the reasoning fits another choice than the one that was given
- other
Rules say how to read and compare statements; the mathematics of a single question belongs in no rule."""
