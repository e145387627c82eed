"""What a coding agent's command line looks like to the harness: the port that each agent implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from attrs import field, frozen

from skillopt_es.events.values import Json, Role
from skillopt_es.ports import AgentStep, ModelSettings, Usage

Access = Literal["none", "read", "edit", "full"]
Event = Mapping[str, Json]
DEFAULT_MODEL = "default"


@frozen(kw_only=True)
class Run:
    """One run of an agent, as its command line needs to know it; `notes` is a private folder beside the workspace."""

    model: str
    access: Access
    network: bool
    web: bool = False
    thinking_tokens: int | None = None
    effort: str
    schema: Mapping[str, Json] | None
    base_url: str
    has_key: bool
    workspace: Path
    notes: Path


@frozen(kw_only=True)
class Complaint:
    """What an agent itself reports as the reason for having no answer."""

    message: str
    status: int | None = None


@frozen(kw_only=True)
class Transcript:
    """What an event stream says; `answer` is None where the agent gave none, `finished` if it says that it is done."""

    answer: str | None = None
    steps: tuple[AgentStep, ...] = ()
    usage: Usage = field(factory=Usage)
    model: str = ""
    session: str = ""
    complaint: Complaint | None = None
    finished: bool = False


class Agent(ABC):
    """One agent's command line."""

    # The backend's name in a config, that of the executable, and what to type to install it.
    name: str
    program: str
    install: str
    # What to do to be signed in without a key of ours, and arguments that exit with an error when nobody is.
    sign_in: str
    signed_in: tuple[str, ...] = ()
    # The variables in which it reads a key: for its own service, and for the endpoint in `base_url`.
    key_variables: tuple[str, str]
    # Variables that say where the user's sign-in is kept; passed on when that is what it signs in with.
    state_variables: tuple[str, ...]
    # The folder of a workspace in which it looks for skills.
    skills: str
    # What makes it read a skill unasked, and say nothing of it, where its name follows in a prompt; or nothing.
    mention: str = ""
    # What a line holds that says that a request to its model failed and will be repeated; empty for no such.
    retrying: bytes = b""

    def refusal(self, role: Role, settings: ModelSettings) -> str:
        """Which setting it cannot work with, and what to write instead; empty when it can work with all."""
        return ""

    @abstractmethod
    def arguments(self, run: Run) -> Sequence[str]:
        """The arguments after the executable; the prompt comes on standard input."""

    def environment(self, run: Run, home: Path | None) -> Mapping[str, str]:
        """Variables of its own, beside those that every program gets; `home` is a private one, if it has one."""
        return {}

    @abstractmethod
    def read(self, events: Sequence[Event], run: Run) -> Transcript:
        """What the events on its standard output say."""
