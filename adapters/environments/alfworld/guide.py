"""What analysts are told of ALFWorld's tasks and of how they are missed."""

from __future__ import annotations

GUIDE = """\
Household tasks as text games, won or not within a limit of steps. Follow each game step by step: where was the
object, when was it seen, which step was the first that could not lead to the goal any more.
Kinds of failure, to be used as failure_type where one fits:
- navigation_loop: the same places again and again
- missed_object: it was in sight, or in something that was never opened
- wrong_sequence: steps in an order in which they do not help, such as putting away before heating
- premature_stop: the goal was reached in part, and nothing more was tried
- action_loop: one command again, though nothing happens
- appliance_error: the wrong appliance, or the right one used wrongly
- rule_missing, rule_wrong, rule_ignored: the skill lacks, has wrong, or has and was not obeyed
- other
Rules say what to do in a kind of situation; where things were in one game does not help in the next."""
