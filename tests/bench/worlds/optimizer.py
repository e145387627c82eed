"""
The simulated optimizer: it finds failed tasks in whatever text it is sent, works out rules, and replies as asked.

It looks for questions, answers and what was expected, not for whose request this is. What it gets wrong is drawn from
the text of the request: the same request has the same reply.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import define, frozen

from worlds.language import ANSWER, Op, Part, consistent, followed, lines_for, op_in, questions, sentence
from worlds.made import World

AT_ONCE = 6
"""Most rules that it works out in one reply."""
LABEL = re.compile(
    r"\b(?:(?P<wanted>(?:expected|accepted|correct|right|reference|wanted|should)(?: answers?)?)"
    r"|answer(?:s|ed)?|said|got|now|was|were|agent|response|generated|outputs?)\b",
    re.IGNORECASE,
)
MOST = re.compile(r"\b(?:at most|up to|no more than|choose the) (\d+)\b(?!\.\d)", re.IGNORECASE)
_FENCED = re.compile(
    r"^[^\n]*\b(?:skill|instructions?)\b[^\n]*\n+(?P<fence>~{3,}|`{3,})[^\n]*\n(?P<text>.*?)\n?(?P=fence)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_NAMED = re.compile(r"^item: (\S+)$", re.MULTILINE)
_LABELLED = re.compile(r'\{[^{}]*"label"[^{}]*\}')
_NUMBERED = re.compile(r"^\[(\d+)\]", re.MULTILINE)


@frozen
class Example:
    """One part of a task as a request shows it."""

    part: Part
    number: int
    expected: int
    failed: bool
    item: str = ""


def examples_in(text: str) -> list[Example]:
    """The tasks of a request of which it says what was expected; one shown twice counts once, failed if either did."""
    found: dict[tuple[Part, int], Example] = {}
    places = list(questions(text))
    ends = [start for start, *_ in places[1:]] + [len(text)]
    told: dict[tuple[Part, int], list[str]] = {}
    names: dict[tuple[Part, int], str] = {}
    for (start, begin, parts, number), end in zip(places, ends, strict=True):
        named = _NAMED.findall(text, 0, start)
        for part in parts:
            told.setdefault((part, number), []).append(text[begin:end])
            names[part, number] = named[-1] if named else ""
    for (part, number), shown in told.items():
        example = _example(part, number, "\n".join(shown), names[part, number])
        if example is not None:
            found[part, number] = example
    return list(found.values())


def _example(part: Part, number: int, shown: str, item: str) -> Example | None:
    said, expected = set(), None
    for token in ANSWER.finditer(shown):
        if token[1] != part.kind:
            continue
        if _is_wanted(shown[: token.start()]):
            expected = expected or int(token[2])
        else:
            said.add(int(token[2]))
    if expected is None:
        return None
    return Example(part, number, expected, any(value != expected for value in said), item)


def _is_wanted(before: str) -> bool:
    """Whether the text before an answer calls it the expected one: its line's last label, or the one above it."""
    above, _, line = before.rpartition("\n")
    labels = list(LABEL.finditer(line)) or list(LABEL.finditer(above.strip().rpartition("\n")[2]))
    return bool(labels) and labels[-1]["wanted"] is not None


def skill_in(text: str) -> str:
    """The skill as a request shows it, the current one where there are several; empty where there is none."""
    found = [(each[0].partition("\n")[0].lower(), each["text"]) for each in _FENCED.finditer(text)]
    now = [shown for heading, shown in found if "current" in heading or "now" in heading]
    return now[0] if now else (found[0][1] if found else "")


@define
class Optimizer:
    """Works out rules from failures, mostly right."""

    world: World

    def __call__(self, text: str) -> str:
        """The reply to a request."""
        draw = random.Random(f"{self.world.name}\n{text}")
        if '"selected_indices"' in text:
            return _ranked(text, draw)
        if '"meta_skill_content"' in text:
            return json.dumps({"reasoning": "seen", "meta_skill_content": "One rule for each kind works best."})
        if '"slow_update_content"' in text:
            return json.dumps({"reasoning": "seen", "slow_update_content": self._guidance(text, draw)})
        if re.search(r"\bYou combine\b", text):
            return _merged(text)
        lines = self._proposed(text, draw, _most(text))
        if '"edits"' not in text:
            return _whole(text, list(lines))
        return _edits(self._by_habit(lines, text, draw), '"items"' in text and self.world.claims != "none")

    def _by_habit(self, lines: dict[str, list[str]], text: str, draw: random.Random) -> dict[str, list[str]]:
        """The lines as this optimizer groups them into edits, and the tasks that it names for each."""
        if self.world.claims == "wrong":
            named = [item for items in lines.values() for item in items]
            lines = {line: draw.sample(named, min(len(named), len(items))) for line, items in lines.items()}
        if self.world.habit == "lines" or not lines:
            return lines
        size = 3 if self.world.habit == "lumps" else len(lines)
        chosen = list(lines)
        groups = [chosen[at : at + size] for at in range(0, len(chosen), size)]
        before = skill_in(text).splitlines()[1:] if self.world.habit == "rewrites" else []
        return {"\n".join([*before, *group]): [item for line in group for item in lines[line]] for group in groups}

    def _guidance(self, text: str, draw: random.Random) -> str:
        """Advice for all tasks, and the rule for what got worse or never passed, one of them."""
        return "\n".join(["Look for the rule of the kind before you answer.", *self._proposed(text, draw, 1)])

    def _proposed(self, text: str, draw: random.Random, most: int) -> dict[str, list[str]]:
        """Lines for the skill and the tasks each is for: one for a kind that failed, as many as it may propose."""
        shown, skill = examples_in(text), skill_in(text)
        failed = list(dict.fromkeys(example.part for example in shown if example.failed))
        draw.shuffle(failed)
        refused = text.replace(skill, "") if skill else text
        lines: dict[str, list[str]] = {}
        for part in failed[: min(most, AT_ONCE)]:
            bad = draw.random() < self.world.wrong
            line = self._bad(part, draw) if bad else _good(part, shown, skill, refused, draw)
            if line:
                items = [example.item for example in shown if example.failed and example.part == part and example.item]
                lines.setdefault(line, []).extend(items)
        return lines

    def _bad(self, part: Part, draw: random.Random) -> str:
        """A proposal that helps nobody: too vague to follow, wrong, or wrong for other kinds as well."""
        op = draw.choice((Op("backwards"), Op("sum"), Op("plus", draw.randrange(11, 100)), Op("times", 7)))
        whoms = ("", f"kind {part.kind}", f"kinds that begin with {part.kind[0]}", "every kind")
        whom = draw.choices(whoms, self.world.bad)[0]
        return sentence(whom, op, draw) if whom else f"Take care with kind {part.kind}: check your answer twice."


def _good(part: Part, shown: Sequence[Example], skill: str, told: str, draw: random.Random) -> str:
    """The rule that a request's examples speak for; empty where the skill has it and it decides already."""
    own = {(each.number, each.expected) for each in shown if each.part == part}
    possible = consistent(own)
    if not possible:
        return ""
    if followed(skill, part) in possible:
        return ""
    overruled = [op_in(line) for line in lines_for(skill, part) if op_in(line) in possible and part.kind in line]
    if overruled and overruled[-1] is not None:  # it is there, and a later line decides: said again, it comes last
        return sentence(f"kind {part.kind}, whatever else is said", overruled[-1], draw)
    whom, possible = _scope(part, possible, shown, skill, draw)
    tried = {op_in(line) for line in lines_for(told, part)}
    possible = [op for op in possible if op not in tried] or possible  # what was refused needs another idea
    return sentence(whom, draw.choice(possible), draw)


def _scope(
    part: Part, possible: list[Op], shown: Sequence[Example], skill: str, draw: random.Random
) -> tuple[str, list[Op]]:
    """For whom a rule is: its kind, or its group where other kinds of the group speak for that, or by a guess."""
    own = f"kind {part.kind}", possible
    if not part.group or any(part.group in line for line in skill.splitlines()):
        return own
    others = {(each.number, each.expected) for each in shown if each.part.group == part.group and each.part != part}
    if not others:
        return own if draw.random() < 0.5 else (f"group {part.group}", possible)
    shared = [op for op in possible if op in consistent(others)]
    return (f"group {part.group}", shared) if shared else own


def _most(text: str) -> int:
    """How many proposals a request allows."""
    told = [int(found) for found in MOST.findall(text)]
    return min(told) if told else AT_ONCE


def _edits(lines: Mapping[str, Sequence[str]], claims: bool) -> str:
    """Edits as JSON, with what they claim where a request wants that."""
    edits = [
        {**({"hypothesis": "the rule was missing", "items": list(items)} if claims else {}), **_append(line)}
        for line, items in lines.items()
    ]
    return json.dumps({"reasoning": "rules from failures", "edits": edits, "patch": {"reasoning": "", "edits": edits}})


def _append(line: str) -> dict[str, str]:
    return {"op": "append", "target": "", "content": line}


def _whole(text: str, lines: Sequence[str]) -> str:
    """The whole skill anew, with the lines at its end."""
    return "```\n" + "\n".join([skill_in(text).strip(), *lines]) + "\n```"


def _merged(text: str) -> str:
    """Proposals joined: of those about the same kind the one that most make, with the labels of all of them."""
    about: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for found in _LABELLED.findall(text):
        edit = json.loads(found)
        about.setdefault(tuple(re.findall(r"\b[A-Z]{4}\b", edit["content"])) or (edit["content"],), []).append(edit)
    edits = []
    for same in about.values():
        said = Counter(op_in(edit["content"]) for edit in same)
        chosen = next(edit for edit in same if op_in(edit["content"]) == said.most_common(1)[0][0])
        kept = {key: chosen[key] for key in ("op", "target", "content")}
        edits.append({**kept, "from": [edit["label"] for edit in same], "support_count": len(same)})
    return json.dumps({"reasoning": "joined", "edits": edits})


def _ranked(text: str, draw: random.Random) -> str:
    """An order of what can be chosen: it sees no reason for one, so it is drawn."""
    indices = sorted({int(index) for index in _NUMBERED.findall(text)})
    draw.shuffle(indices)
    return json.dumps({"reasoning": "all alike", "selected_indices": indices[: _most(text)]})
