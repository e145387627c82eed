"""What analysts are told of LiveMathematicianBench's tasks and of how they are missed."""

from __future__ import annotations

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
Rules say how to read and to compare statements; the mathematics of one question belongs into no rule."""
