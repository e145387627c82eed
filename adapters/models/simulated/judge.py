"""The simulated judge: full points to an answer that has the reference in it, and some for shared words."""

from __future__ import annotations

import json
import re

from skillopt_es.ports import ChatRequest

_WORD = re.compile(r"\w+")
_CRITERION = re.compile(r"^- ([\w-]+): ", re.MULTILINE)
_MOST = 4  # the points of the question's scale: a simulated judge knows it from there, as a real one does


def judge(request: ChatRequest) -> str:
    """A reply in the form that the question asks for; every criterion is met as far as the reference is."""
    if request.stage == "probe":
        return '{"ready": true}'
    criteria = _CRITERION.findall(request.messages[0].content)
    given = json.loads(request.messages[1].content)
    reference = given.get("reference")
    if "answer" in given:
        points = _points(given["answer"], reference)
        return json.dumps({"reasoning": f"{points} of {_MOST}", "points": dict.fromkeys(criteria, points)})
    ahead = _points(given["first"], reference) - _points(given["second"], reference)
    better = "first" if ahead > 0 else "second" if ahead < 0 else "equal"
    return json.dumps({"reasoning": better, "better": dict.fromkeys(criteria, better)})


def _points(answer: str, reference: object) -> int:
    accepted = reference if isinstance(reference, list) else [reference]
    return max(_shared(answer, str(each)) for each in accepted)


def _shared(answer: str, reference: str) -> int:
    wanted, said = set(_WORD.findall(reference.casefold())), set(_WORD.findall(answer.casefold()))
    return round(_MOST * len(wanted & said) / len(wanted)) if wanted else 0
