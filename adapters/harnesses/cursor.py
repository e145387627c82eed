"""Cursor's agent: `cursor-agent -p --output-format stream-json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skillopt_es.adapters.agent_output import inside, number_in, objects_in, shown, text_in
from skillopt_es.adapters.harnesses.agent import Access, Agent, Complaint, Event, Run, Transcript
from skillopt_es.adapters.harnesses.harness import Harness
from skillopt_es.adapters.models.endpoint import setting
from skillopt_es.events.values import Role
from skillopt_es.ports import AgentStep, ChatModel, ModelSettings, Usage, provider

# There is no `none`: it has no switch that takes its tools away, so it can only be a target.
_ACCESS: Mapping[Access, tuple[str, ...]] = {
    "read": ("--sandbox", "enabled", "--mode", "ask"),
    "edit": ("--sandbox", "enabled", "--force"),
    "full": ("--sandbox", "disabled", "--force"),
}
_CALL = "ToolCall"


@provider(agent=True)
def open_model(settings: ModelSettings, environ: Mapping[str, str]) -> ChatModel:
    """Cursor's agent as a target; raises ConfigError when it is not installed or cannot keep a setting."""
    return Harness(Cursor(), settings, environ)


class Cursor(Agent):
    """The command line of Cursor's agent."""

    name = "cursor"
    program = "cursor-agent"
    install = "install cursor-agent as cursor.com/cli says"
    sign_in = "run `cursor-agent login`"
    key_variables = ("CURSOR_API_KEY", "CURSOR_API_KEY")
    state_variables = ("CURSOR_CONFIG_DIR",)
    skills = ".cursor/skills"
    signed_in = ("status",)

    def refusal(self, role: Role, settings: ModelSettings) -> str:
        """It has no switch that takes its tools away, none for an endpoint, and none for the network."""
        assert settings.agent is not None
        if role == "optimizer":
            return f"cursor can only be a target: set {setting(role, 'backend')} to another backend"
        if settings.base_url:
            return f"cursor takes no endpoint: set {setting(role, 'base_url')} to an empty text for this role"
        for name, allowed in (("agent_network", settings.agent.network), ("agent_web_search", settings.agent.web)):
            if allowed:
                return f"cursor decides by itself about the network: set {setting(role, name)} to false"
        return ""

    def arguments(self, run: Run) -> Sequence[str]:
        """A run in its sandbox, which asks nobody."""
        arguments = ["-p", "--output-format", "stream-json", "--trust", "--workspace", str(run.workspace)]
        arguments += _ACCESS[run.access]
        return [*arguments, "--model", run.model] if run.model else arguments

    def read(self, events: Sequence[Event], run: Run) -> Transcript:
        """Finished tool calls and messages become steps; the `result` event holds the answer or the error."""
        steps: list[AgentStep] = []
        result: Event | None = None
        model = session = ""
        for event in events:
            session = session or text_in(event, "session_id")
            match text_in(event, "type"):
                case "system" if text_in(event, "subtype") == "init":
                    model = text_in(event, "model")
                case "assistant":
                    steps += _said(event)
                case "tool_call" if text_in(event, "subtype") == "completed":
                    steps.append(_called(event))
                case "result":
                    result = event
        if result is None:
            return Transcript(steps=tuple(steps), model=model, session=session)
        failed = inside(result, "is_error") is True or text_in(result, "subtype").startswith("error")
        answer = None if failed else text_in(result, "result")
        if answer and steps and steps[-1].kind == "message" and answer.endswith(steps[-1].text):
            steps.pop()
        return Transcript(
            answer=answer,
            steps=tuple(steps),
            usage=_usage(result),
            model=model,
            session=session,
            complaint=Complaint(message=text_in(result, "result") or text_in(result, "subtype")) if failed else None,
            finished=True,
        )


def _said(event: Event) -> list[AgentStep]:
    text = "".join(text_in(part, "text") for part in objects_in(event, "message", "content"))
    return [AgentStep(kind="message", text=text)] if text else []


def _called(event: Event) -> AgentStep:
    """A finished call: {"<name>ToolCall": {"args": …, "result": {"success" or "error": …}}}."""
    call = inside(event, "tool_call")
    key = next((name for name in call if name.endswith(_CALL)), "") if isinstance(call, Mapping) else ""
    name = key.removesuffix(_CALL)
    args, result = inside(call, key, "args"), inside(call, key, "result")
    ok = not isinstance(inside(result, "error"), dict | str) and inside(result, "rejected") is None
    output = shown(inside(result, "success") or result)
    if name == "shell":
        code = number_in(result, "success", "exitCode")
        return AgentStep(kind="command", text=text_in(args, "command"), output=output, exit_code=code, ok=ok)
    if name in ("write", "edit", "delete"):
        return AgentStep(kind="file", text=f"{name} {text_in(args, 'path')}", output=output, ok=ok)
    return AgentStep(kind="tool", text=f"{name or 'tool'} {shown(args)}".rstrip(), output=output, ok=ok)


def _usage(result: Event) -> Usage:
    """Not documented; read where it is there."""
    return Usage(
        input=number_in(result, "usage", "inputTokens"),
        output=number_in(result, "usage", "outputTokens"),
        cached=number_in(result, "usage", "cacheReadTokens"),
    )
