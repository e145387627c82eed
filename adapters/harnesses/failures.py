"""
Why a run of an agent gave no answer, in the words of every other model's failures.

    auth            nobody is signed in, or the key is wrong          config      a flag or a model that it refuses
    timeout         it worked, but not to an end in time              transport   it never got to its model
    empty           it ended well and said nothing                    server      it broke down, or its provider did
    invalid_reply   it prints something else than its event stream
"""

from __future__ import annotations

import re

from attrs import evolve

from skillopt_es.adapters.harnesses.agent import Agent, Complaint, Transcript
from skillopt_es.adapters.harnesses.stream import Stream
from skillopt_es.adapters.models.endpoint import setting
from skillopt_es.adapters.models.errors import ErrorBody, Failure, failure, failure_of
from skillopt_es.adapters.processes import Ended
from skillopt_es.ports import FailureKind, ModelSettings

# A status that is named as one (HTTP 429, status code: 503), or that stands before its words (401 unauthorized).
_STATUS = re.compile(r"(?:\bhttp|\bstatus(?: code)?|api error|\bcode)\W{0,3}([45]\d\d)\b|\b([45]\d\d) [a-z]")
# The first pattern that fits decides, so their order matters.
_WORDS: tuple[tuple[FailureKind, re.Pattern[str]], ...] = (
    ("config", re.compile(r"unknown option|unexpected argument|unrecognized|invalid value|root/sudo|error: option")),
    ("quota", re.compile(r"insufficient.quota|credit balance|usage limit|billing|quota exceeded|out of credits")),
    (
        "auth",
        re.compile(
            r"not (logged|signed) in|log ?in\b|sign in|unauthori[sz]ed|authenticat|api key|missing environment variable"
        ),
    ),
    ("context_length", re.compile(r"context (length|window)|prompt is too long")),
    ("rate_limit", re.compile(r"rate.?limit|too many requests|overloaded")),
    ("config", re.compile(r"model\b.*(not found|not exist|not supported|not available|unknown|invalid)")),
    (
        "transport",
        re.compile(r"connect|network|stream disconnected|resolve|enotfound|econnrefused|socket|unreachable|timed? out"),
    ),
)


def failure_in(ended: Ended, transcript: Transcript, stream: Stream, seconds: float) -> Failure | None:
    """The failure of a run, None when it gave an answer."""
    if ended.how == "flooded":
        return failure("invalid_reply", "the agent printed far more than an event stream ever holds")
    answered = transcript.finished and transcript.complaint is None and bool(transcript.answer)
    if ended.how == "given_up" and transcript.complaint is not None:
        # It was ended because no later request can do better, so another run could not, either.
        return evolve(meant_by(transcript.complaint), retry=False)
    if ended.how == "late":  # one that does not leave after its last word has answered all the same
        return None if answered else evolve(_late(transcript, seconds), retry=False)
    if transcript.complaint is not None:
        return meant_by(transcript.complaint)
    if ended.code:
        return _crashed(ended)
    return None if answered else _unanswered(ended, transcript, stream)


def _unanswered(ended: Ended, transcript: Transcript, stream: Stream) -> Failure:
    """It ended as if all were well, but there is no answer."""
    if not stream.events:
        return failure("invalid_reply", f"the agent printed no events{_quoted(stream.garbage or ended.errors)}")
    if not transcript.finished:
        return failure("server", f"the agent's event stream ends before its result{_quoted(ended.errors)}")
    return failure("empty", "the agent ended without an answer")


def _late(transcript: Transcript, seconds: float) -> Failure:
    """Who did something was too slow; who did nothing at all never reached a model, which is no skill's fault."""
    if transcript.complaint is not None:
        return meant_by(transcript.complaint)
    if any(step.kind != "error" for step in transcript.steps):
        return failure("timeout", f"the agent had no answer after {seconds:g} seconds")
    return failure("transport", f"the agent showed no sign of life in {seconds:g} seconds")


def _crashed(ended: Ended) -> Failure:
    how = f"exit code {ended.code}" if ended.code > 0 else f"signal {-ended.code}"
    said = _last_words(ended.errors)
    meant = meant_by(Complaint(message=said)) if said else None
    # What a crash prints may say anything: it is only believed where it speaks of how the agent was set up.
    kind: FailureKind = meant.kind if meant is not None and meant.kind in ("config", "auth", "quota") else "server"
    return failure(kind, f"the agent ended with {how}{_quoted(said)}", status=meant.status if meant else None)


def meant_by(complaint: Complaint) -> Failure:
    """A failure from an agent's own words: an HTTP status tells most, then what it says."""
    words = complaint.message.lower()
    status = complaint.status or _status_in(words)
    said = next((kind for kind, pattern in _WORDS if pattern.search(words)), None)
    if status is not None and status >= 400:
        by_status = failure_of(status, {}, ErrorBody(complaint.message))
        # These two come with several statuses, so their words are surer.
        kind = said if said in ("quota", "context_length") else by_status.kind
        return failure(kind, complaint.message, status=status)
    return failure(said or "server", complaint.message)


def _status_in(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found[1] or found[2]) if found else None


def _last_words(errors: str) -> str:
    """The line that says what is wrong: one that speaks of an error, else the last one."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"(fatal |\W*)?error\b", line, re.IGNORECASE)]
    return (telling or lines or [""])[0 if telling else -1][:500]


def _quoted(text: str) -> str:
    line = _last_words(text)
    return f": {line}" if line else ""


def hint_for(failed: Failure, agent: Agent, settings: ModelSettings) -> str:
    """The next step after this failure; empty when there is nothing sensible to say."""
    role = settings.role
    by_kind: dict[FailureKind, str] = {
        "auth": _auth_hint(agent, settings),
        "config": _config_hint(failed, agent, settings),
        "quota": "the account has no credit left: top it up",
        "rate_limit": f"lower {setting(role, 'agent_processes')}, or set model.requests_per_minute",
        "timeout": f"{setting(role, 'timeout_seconds')} is {settings.timeout_seconds:g}",
        "transport": f"does {agent.program} reach its model? try it by hand",
        "invalid_reply": f"is {agent.program} the real one, and new enough? `{agent.install}` installs the newest",
    }
    return by_kind.get(failed.kind, "")


def _auth_hint(agent: Agent, settings: ModelSettings) -> str:
    if settings.api_key_env:
        return f"check the key in the environment variable {settings.api_key_env}"
    return f"{agent.sign_in}, or name the variable that holds a key in {setting(settings.role, 'api_key_env')}"


def _config_hint(failed: Failure, agent: Agent, settings: ModelSettings) -> str:
    where = setting(settings.role, "agent_access")
    if "root/sudo" in failed.message:
        return (
            f"set {where} to edit, run as another user, or, inside a sandbox of your own, export IS_SANDBOX=1 and "
            f"name it in model.agent_env"
        )
    if "option" in failed.message or "argument" in failed.message:
        return f"this version of {agent.program} is too old or too new: `{agent.install}` installs the newest"
    return f"check model.{settings.role} (now {settings.model!r}) with {agent.program} by hand"
