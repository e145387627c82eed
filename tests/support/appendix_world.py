"""A household with one table, desk, fridge, microwave and sink, and a task of each of ALFWorld's six types in it."""

from __future__ import annotations

_KINDS = ("CounterTop", "Fridge", "Microwave", "SinkBasin", "Desk", "SideTable")
_CAN_CONTAIN = " ".join(f"(canContain {kind}Type {each}Type)" for kind in _KINDS for each in ("Apple", "Mug"))
_HOUSE = """(define (problem made) (:domain alfred)
(:objects agent1 - agent
 Apple_bar_1 Mug_bar_1 Mug_bar_2 DeskLamp_bar_1 - object
 CounterTop_bar_1 Fridge_bar_1 Microwave_bar_1 Sink_bar_1_bar_SinkBasin Desk_bar_1 SideTable_bar_1 - receptacle
 AppleType MugType DeskLampType - otype
 CounterTopType FridgeType MicrowaveType SinkBasinType DeskType SideTableType - rtype
 l0 l1 l2 l3 l4 l5 l6 - location)
(:init (= (total-cost) 0) (atLocation agent1 l0) ; costs decide nothing
 (receptacleType CounterTop_bar_1 CounterTopType) (receptacleAtLocation CounterTop_bar_1 l1)
 (receptacleType Fridge_bar_1 FridgeType) (receptacleAtLocation Fridge_bar_1 l2) (openable Fridge_bar_1)
 (receptacleType Microwave_bar_1 MicrowaveType) (receptacleAtLocation Microwave_bar_1 l3) (openable Microwave_bar_1)
 (receptacleType Sink_bar_1_bar_SinkBasin SinkBasinType) (receptacleAtLocation Sink_bar_1_bar_SinkBasin l4)
 (receptacleType Desk_bar_1 DeskType) (receptacleAtLocation Desk_bar_1 l5)
 (receptacleType SideTable_bar_1 SideTableType) (receptacleAtLocation SideTable_bar_1 l6)
 (objectType Apple_bar_1 AppleType) (inReceptacle Apple_bar_1 CounterTop_bar_1) (objectAtLocation Apple_bar_1 l1)
 (pickupable Apple_bar_1) (heatable Apple_bar_1) (coolable Apple_bar_1) (cleanable Apple_bar_1)
 (objectType Mug_bar_1 MugType) (inReceptacle Mug_bar_1 Desk_bar_1) (objectAtLocation Mug_bar_1 l5)
 (pickupable Mug_bar_1) (heatable Mug_bar_1) (coolable Mug_bar_1) (cleanable Mug_bar_1)
 (objectType Mug_bar_2 MugType) (inReceptacle Mug_bar_2 CounterTop_bar_1) (objectAtLocation Mug_bar_2 l1)
 (pickupable Mug_bar_2) (heatable Mug_bar_2) (coolable Mug_bar_2) (cleanable Mug_bar_2)
 (objectType DeskLamp_bar_1 DeskLampType) (inReceptacle DeskLamp_bar_1 Desk_bar_1) (objectAtLocation DeskLamp_bar_1 l5)
 (toggleable DeskLamp_bar_1)
 CAN_CONTAIN)
(:goal GOAL)
(:metric minimize (total-cost)))
"""


def _placed(kind: str, also: str = "") -> str:
    held = f"(objectType ?o {kind}Type) (receptacleType ?r SideTableType) (inReceptacle ?o ?r)"
    return f"(exists (?o - object ?r - receptacle) (and {held}{also}))"


_TWO_MUGS = (
    "(exists (?r - receptacle ?o - object ?p - object) (and (receptacleType ?r SideTableType) (not (= ?o ?p)) "
    "(objectType ?o MugType) (inReceptacle ?o ?r) (objectType ?p MugType) (inReceptacle ?p ?r)))"
)
_UNDER_THE_LAMP = (
    "(exists (?o - object ?l - object ?r - receptacle ?a - agent ?p - location) (and (objectType ?o MugType) "
    "(holds ?a ?o) (objectType ?l DeskLampType) (isToggled ?l) (inReceptacle ?l ?r) "
    "(receptacleAtLocation ?r ?p) (atLocation ?a ?p)))"
)
_GOALS = {
    "pick_and_place_simple": ("put a apple in sidetable.", _placed("Apple"), 4),
    "pick_clean_then_place_in_recep": ("put a clean mug in sidetable.", _placed("Mug", " (isClean ?o)"), 6),
    "pick_heat_then_place_in_recep": ("put a hot mug in sidetable.", _placed("Mug", " (isHot ?o)"), 6),
    "pick_cool_then_place_in_recep": ("put a cool apple in sidetable.", _placed("Apple", " (isCool ?o)"), 6),
    "pick_two_obj_and_place": (
        "put two mug in sidetable.",
        _TWO_MUGS,
        8,
    ),
    "look_at_obj_in_light": (
        "look at mug under the desklamp.",
        _UNDER_THE_LAMP,
        3,
    ),
}
TASK_TYPES = tuple(_GOALS)


def game(task_type: str) -> dict[str, str]:
    """The game of a task type, as an item holds it."""
    task, goal, _ = _GOALS[task_type]
    return {"task": task, "pddl_problem": _HOUSE.replace("CAN_CONTAIN", _CAN_CONTAIN).replace("GOAL", goal)}


def shortest(task_type: str) -> int:
    """How many commands its shortest plan has."""
    return _GOALS[task_type][2]
