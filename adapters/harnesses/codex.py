"""OpenAI's Codex: `codex exec --json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from skillopt_es.adapters.agent_output import inside, number_in, objects_in, short, shown, text_in
from skillopt_es.adapters.harnesses.agent import Access, Agent, Complaint, Event, Run, Transcript
from skillopt_es.adapters.harnesses.harness import Harness
from skillopt_es.events.values import Json
from skillopt_es.ports import AgentStep, ChatModel, ModelSettings, Usage, provider

_SANDBOX: Mapping[Access, str] = {
    "none": "read-only",
    "read": "read-only",
    "edit": "workspace-write",
    "full": "danger-full-access",
}
_KEY = "CODEX_API_KEY"


@provider(system="openai", agent=True)
def open_model(settings: ModelSettings, environ: Mapping[str, str]) -> ChatModel:
    """Codex as a model; raises ConfigError when it is not installed."""
    return Harness(Codex(), settings, environ)


class Codex(Agent):
    """The command line of Codex."""

    name = "codex"
    program = "codex"
    install = "npm install -g @openai/codex"
    sign_in = "run `codex login`"
    key_variables = (_KEY, _KEY)
    state_variables = ("CODEX_HOME",)
    skills = ".agents/skills"
    mention = "$"
    signed_in = ("login", "status")

    def arguments(self, run: Run) -> Sequence[str]:
        """A run that asks nobody, loads nothing of the user's and keeps nothing."""
        arguments = ["exec", "--json", "--ephemeral", "--ignore-user-config", "--ignore-rules", "--skip-git-repo-check"]
        arguments += ["--color", "never", "--cd", str(run.workspace), "--sandbox", _SANDBOX[run.access]]
        arguments += _setting("approval_policy", "never")
        arguments += _setting("web_search", "live" if run.web and run.access != "none" else "disabled")
        if run.access == "edit":
            arguments += _setting("sandbox_workspace_write.network_access", run.network)
            # Only the workspace may be written to: other runs share /tmp.
            arguments += _setting("sandbox_workspace_write.exclude_slash_tmp", True)
        if run.effort:
            arguments += _setting("model_reasoning_effort", run.effort)
        if run.base_url:
            arguments += _provider(run)
        if run.model:
            arguments += ["--model", run.model]
        if run.schema is not None:
            file = run.notes / "schema.json"
            file.write_text(json.dumps(run.schema), encoding="utf-8")
            arguments += ["--output-schema", str(file)]
        # `-` makes it read the prompt from standard input.
        return [*arguments, "-"]

    def environment(self, run: Run, home: Path | None) -> Mapping[str, str]:
        """A private folder for its state, unless the user's holds the sign-in."""
        if home is None:
            return {}
        state = home / ".codex"
        state.mkdir(exist_ok=True)
        return {"CODEX_HOME": str(state)}

    def read(self, events: Sequence[Event], run: Run) -> Transcript:
        """Items become steps, the last message is the answer; `turn.completed` says that it is done."""
        steps: list[AgentStep] = []
        complaint: Complaint | None = None
        finished = False
        usage = Usage()
        for event in events:
            kind = text_in(event, "type")
            if kind == "item.completed":
                done = _step(inside(event, "item"))
                steps += done
                complaint = complaint if all(step.kind == "error" for step in done) else None  # it goes on
            # A turn that completes has got over what was complained of before.
            elif kind == "turn.completed":
                finished, complaint, usage = True, None, _usage(event)
            elif kind == "turn.failed":
                complaint = Complaint(message=text_in(event, "error", "message"))
            elif kind == "error":  # reconnecting, or the reason of the failure that follows
                complaint = Complaint(message=text_in(event, "message"))
        answer = None
        if finished and steps and steps[-1].kind == "message":
            answer = steps.pop().text
        session = next((text_in(event, "thread_id") for event in events if text_in(event, "thread_id")), "")
        return Transcript(
            answer=answer, steps=tuple(steps), usage=usage, session=session, complaint=complaint, finished=finished
        )


def _setting(name: str, value: str | bool) -> list[str]:
    return ["-c", f"{name}={json.dumps(value)}"]


def _provider(run: Run) -> list[str]:
    """An endpoint of the user's, as a provider of its own; the key stays in the environment."""
    fields = {"name": "skillopt", "base_url": run.base_url, "wire_api": "responses"}
    if run.has_key:
        fields["env_key"] = _KEY
    # It takes an inline table of TOML; a text that is quoted as in JSON is one in TOML, too.
    table = ", ".join(f"{name} = {json.dumps(value)}" for name, value in fields.items())
    return [*_setting("model_provider", "skillopt"), "-c", f"model_providers.skillopt={{{table}}}"]


def _step(item: Json) -> list[AgentStep]:
    reader = _ITEMS.get(text_in(item, "type"))
    return [reader(item)] if reader is not None else []


def _command_step(item: Json) -> AgentStep:
    code = number_in(item, "exit_code")
    return AgentStep(
        kind="command",
        text=text_in(item, "command"),
        output=short(text_in(item, "aggregated_output")),
        exit_code=code,
        ok=text_in(item, "status") == "completed" and code in (0, None),
    )


def _file_step(item: Json) -> AgentStep:
    changes = [f"{text_in(each, 'kind')} {text_in(each, 'path')}" for each in objects_in(item, "changes")]
    return AgentStep(kind="file", text="\n".join(changes), ok=text_in(item, "status") == "completed")


def _tool_step(item: Json) -> AgentStep:
    called = f"{text_in(item, 'server')}.{text_in(item, 'tool')} {shown(inside(item, 'arguments'))}".rstrip()
    return AgentStep(kind="tool", text=called, ok=text_in(item, "status") == "completed")


_ITEMS: Mapping[str, Callable[[Json], AgentStep]] = {
    "agent_message": lambda item: AgentStep(kind="message", text=text_in(item, "text")),
    "reasoning": lambda item: AgentStep(kind="reasoning", text=short(text_in(item, "text"))),
    "command_execution": _command_step,
    "file_change": _file_step,
    "mcp_tool_call": _tool_step,
    "web_search": lambda item: AgentStep(kind="tool", text=f"web_search {text_in(item, 'query')}"),
    # A warning: an error that ends the turn is an event of its own.
    "error": lambda item: AgentStep(kind="error", text=short(text_in(item, "message"))),
}


def _usage(event: Event) -> Usage:
    return Usage(
        input=number_in(event, "usage", "input_tokens"),
        output=number_in(event, "usage", "output_tokens"),
        cached=number_in(event, "usage", "cached_input_tokens"),
        reasoning=number_in(event, "usage", "reasoning_output_tokens"),
    )
