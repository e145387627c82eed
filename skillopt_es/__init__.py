"""Train the skill a frozen agent reads, as an event-sourced state machine."""

from pathlib import Path

# In a clone the packages inside this one lie beside it (`events/` is `skillopt_es.events`): so `python -m skillopt_es`
# works from its root, too, where Python takes this folder for the whole package.
_clone = Path(__file__).parent.parent
if not (Path(__file__).parent / "events").exists() and (_clone / "events" / "catalog.py").exists():
    __path__.append(str(_clone))
