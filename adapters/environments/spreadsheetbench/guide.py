"""What analysts are told of SpreadsheetBench's tasks and of how they are missed."""

from __future__ import annotations

GUIDE = """\
Changes to workbooks, made by a Python script and graded cell by cell: values are compared, not looks. See what the
script assumed of the workbook, and which cells came out otherwise than expected.
Kinds of failure, to be used as failure_type where one fits:
- data_exploration: the real layout was not looked at: headings, extent, other sheets, types of values, empty or
  merged cells
- code_error: the script broke, or did something else than was meant
- rule_missing, rule_wrong, rule_ignored: the skill lacks, has wrong, or has and was not obeyed
- other
Rules say how to read and to change any workbook; cells of a single one belong into no rule."""
