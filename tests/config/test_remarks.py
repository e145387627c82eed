"""The remark on each key."""

from __future__ import annotations

import yaml

from skillopt_es.config.own_keys import own_keys
from skillopt_es.config.places import packaged
from skillopt_es.config.remarks import remarks


def test_every_key_of_the_defaults_has_a_remark() -> None:
    """So that a form and the documentation can explain each of them."""
    base = yaml.safe_load(packaged("base.yaml").read_text(encoding="utf-8"))
    keys = {f"{section}.{key}" for section, values in base.items() for key in values}
    assert set(remarks()) == {*keys, *(f"model.{key}" for key in own_keys())}
    assert remarks()["train.num_epochs"] == "passes over the training items"
