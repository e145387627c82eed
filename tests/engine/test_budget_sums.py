"""The sums behind a budget: what a request can come to at worst, what it came to, and what still fits."""

from __future__ import annotations

from decimal import Decimal

import pytest
from attrs import evolve
from hypothesis import strategies as st

from skillopt_es.config.sections import BudgetConfig
from skillopt_es.engine.budget import (
    NOTHING,
    Amount,
    Bound,
    Caps,
    Tariff,
    bound_of,
    caps_of,
    longest_answer,
    silent,
)
from skillopt_es.engine.call_records import recorded_request
from skillopt_es.events.requests import TryTokens
from skillopt_es.events.values import Json
from skillopt_es.ports import ChatRequest, Image, Message, Tool
from skillopt_es.projections.prices import Price

BOUND = Bound(input=1000, output=100)
MESSAGES = (Message("system", "ä" * 100), Message("user", "b" * 50))
REQUEST = ChatRequest(slot="s", stage="rollout", messages=MESSAGES, max_tokens=30)

amounts = st.builds(Amount, cost=st.decimals(0, 5, places=3), tokens=st.integers(0, 50), calls=st.integers(0, 3))


def test_amounts_are_added_and_taken_away_each_for_itself() -> None:
    """Money, tokens and calls."""
    one, other = Amount(cost=Decimal("1.5"), tokens=5, calls=2), Amount(cost=Decimal("0.5"), tokens=3, calls=1)
    assert one + other == Amount(cost=Decimal(2), tokens=8, calls=3)
    assert one - other == Amount(cost=Decimal(1), tokens=2, calls=1)
    assert Amount(cost=Decimal(0), tokens=0, calls=0) == NOTHING


@pytest.mark.parametrize(
    ("caps", "exceeded"),
    [
        (Caps(), ""),
        (Caps(cost=Decimal(2), tokens=20, calls=3), ""),
        (Caps(cost=Decimal("1.99"), tokens=19), "cost"),
        (Caps(tokens=19, calls=2), "tokens"),
        (Caps(calls=2), "calls"),
        (Caps(calls=0), "calls"),
    ],
)
def test_a_cap_may_be_reached_and_not_exceeded(caps: Caps, exceeded: str) -> None:
    """The first one that is below the amount is named."""
    assert caps.exceeded_by(Amount(cost=Decimal(2), tokens=20, calls=3)) == exceeded


def test_the_caps_are_those_of_the_config() -> None:
    """As they are written, to the last digit; minutes are no cap of calls."""
    written = BudgetConfig(max_cost=0.1, max_tokens=5, max_calls=7, max_minutes=1.0)
    assert caps_of(written) == Caps(cost=Decimal("0.1"), tokens=5, calls=7)
    none = BudgetConfig(max_cost=None, max_tokens=None, max_calls=None, max_minutes=1.0)
    assert caps_of(none) == Caps()


def bound(request: ChatRequest, most_output: int = 0) -> Bound:
    """The bound of a request, by the sizes of its texts."""
    texts = sum(len(message.content.encode()) for message in request.messages)
    return bound_of(recorded_request(request), texts, most_output)


def test_a_request_is_bounded_by_its_bytes_and_its_limit() -> None:
    """Letters of several bytes count as such; a longer answer that the config asks for counts, too."""
    assert bound(REQUEST).input == 250 + len('{"max_tokens": 30}') + 2048 + 2 * 64
    assert bound(REQUEST).output == 30
    assert bound(REQUEST, 99).output == 99
    assert bound(REQUEST, 29).output == 30


def test_everything_that_is_sent_widens_the_bound() -> None:
    """By at least its bytes: another message, a picture's tokens, tools and a schema."""
    plain = bound(REQUEST).input
    longer = evolve(REQUEST, messages=(*MESSAGES, Message("user", "c" * 10)))
    assert bound(longer).input == plain + 10 + 64
    image = Image(media_type="image/png", data=b"x")
    pictured = evolve(REQUEST, messages=(MESSAGES[0], evolve(MESSAGES[1], images=(image, image))))
    assert bound(pictured).input == plain + 2 * 50_000
    tool = Tool(name="look", description="ü" * 40, parameters={"type": "object"})
    assert bound(evolve(REQUEST, tools=(tool,))).input >= plain + 80 + len("look")
    assert plain + 80 <= bound(evolve(REQUEST, schema={"title": "é" * 40})).input < plain + 120


@pytest.mark.parametrize(
    ("extra", "longest"),
    [
        ({}, 0),
        ({"max_tokens": 5}, 5),
        ({"max_completion_tokens": 7, "max_tokens": 5}, 7),
        ({"max_output_tokens": 9}, 9),
        ({"max_tokens": True, "max_output_tokens": "9", "top_k": 5}, 0),
    ],
)
def test_a_config_may_ask_for_longer_answers(extra: dict[str, Json], longest: int) -> None:
    """Under any of the names that providers know; only whole numbers count."""
    assert longest_answer(extra) == longest


PRICE = Price(input=Decimal(2), output=Decimal(8))
CACHED = Price(input=Decimal(2), output=Decimal(8), cached_input=Decimal("0.5"))
DEAR = Price(input=Decimal(2), output=Decimal(8), cached_input=Decimal("2.5"))


@pytest.mark.parametrize(
    ("price", "attempt", "cost", "tokens"),
    [
        (None, (10, 5, None, None), "0", 15),
        (PRICE, (10, 5, None, None), "60", 15),
        (PRICE, (10, 5, 4, 3), "60", 15),
        (PRICE, (None, 5, None, None), "2040", 1005),
        (PRICE, (10, None, None, None), "820", 110),
        (PRICE, (None, None, None, None), "2800", 1100),
        (PRICE, (0, 0, None, None), "0", 0),
        (CACHED, (10, 5, 4, None), "54", 15),
        (CACHED, (10, 5, 0, None), "60", 15),
        (CACHED, (10, 5, 99, None), "45", 15),
        (CACHED, (10, 5, None, None), "60", 15),
        (DEAR, (10, 5, None, None), "65", 15),
        (DEAR, (10, 5, 4, None), "62", 15),
        (DEAR, (None, 5, 4, None), "2540", 1005),
    ],
)
def test_a_try_costs_what_was_reported_and_at_most_the_bound(
    price: Price | None, attempt: TryTokens, cost: str, tokens: int
) -> None:
    """In millionths; where it is not known how many tokens were cached, the dearer price counts."""
    charged = Tariff(price=price).charged([attempt], 1, BOUND)
    assert charged == Amount(cost=Decimal(cost) / 1_000_000, tokens=tokens, calls=1)


def test_the_worst_of_a_try_is_its_bound_and_a_call() -> None:
    """What its tries came to is added up, with the requests that were sent for nothing."""
    assert Tariff(price=PRICE).worst(BOUND) == Amount(cost=Decimal("0.0028"), tokens=1100, calls=1)
    told: TryTokens = (10, 5, None, None)
    assert Tariff().charged([told, told], 3, BOUND) == Amount(tokens=30, calls=3)
    assert Tariff().charged([], 2, BOUND) == Amount(calls=2)
    assert Tariff().most_output == 0


@pytest.mark.parametrize(
    ("attempts", "untold"),
    [
        ([], False),
        ([(1, 2, None, None)], False),
        ([(0, 0, None, None)], False),
        ([(1, None, None, None)], True),
        ([(None, 2, 3, 4)], True),
        ([(1, 2, None, None), (None, None, None, None)], True),
    ],
)
def test_a_call_is_silent_when_a_try_did_not_say_what_it_used(attempts: list[TryTokens], untold: bool) -> None:
    """Of its input or its output; cached and reasoning tokens are parts of those."""
    assert silent(attempts) is untold
