"""GitHub's Copilot CLI: `copilot --output-format json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from skillopt_es.adapters.agent_output import inside, number_in, shown, text_in
from skillopt_es.adapters.harnesses.agent import Access, Agent, Complaint, Event, Run, Transcript
from skillopt_es.adapters.harnesses.harness import Harness
from skillopt_es.adapters.harnesses.stream import total
from skillopt_es.events.values import Role
from skillopt_es.ports import AgentStep, ChatModel, ModelSettings, Usage, provider

_READ = ("view", "grep", "glob", "skill")
_EDIT = (*_READ, "create", "edit", "apply_patch")
# An empty list would hide nothing; `none` is no tool's name, so that nothing is left.
_TOOLS: Mapping[Access, tuple[str, ...]] = {"none": ("none",), "read": _READ, "edit": _EDIT}
_WEB = "web_fetch"
_USAGE = "usage.json"


@provider(system="github.copilot", agent=True)
def open_model(settings: ModelSettings, environ: Mapping[str, str]) -> ChatModel:
    """Copilot as a model; raises ConfigError when it is not installed."""
    return Harness(Copilot(), settings, environ)


class Copilot(Agent):
    """The command line of Copilot."""

    name = "copilot"
    program = "copilot"
    install = "npm install -g @github/copilot"
    sign_in = "run `copilot login`"
    key_variables = ("COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY")
    state_variables = ("COPILOT_HOME", "GH_CONFIG_DIR")
    skills = ".github/skills"

    def refusal(self, role: Role, settings: ModelSettings) -> str:
        """It can work with all settings, but an endpoint of the user's needs the name of a model."""
        if settings.base_url and settings.model == "default":
            return f"copilot needs the name of a model for an endpoint: set model.{role}"
        return ""

    def arguments(self, run: Run) -> Sequence[str]:
        """A run with the tools that its access allows, which asks nobody and loads no instructions of the user's."""
        arguments = ["--output-format", "json", "--stream", "off", "--no-color", "--log-level", "none"]
        arguments += ["-C", str(run.workspace), "--disallow-temp-dir", "--disable-builtin-mcps"]
        arguments += ["--no-custom-instructions", "--no-auto-update", "--no-ask-user"]
        arguments += ["--usage-output-file", str(run.notes / _USAGE)]
        web = run.web and run.access != "none"
        if run.access == "full":
            arguments += ["--allow-all-tools", *(() if web else ("--excluded-tools", _WEB))]
        else:
            arguments += ["--available-tools", ",".join((*_TOOLS[run.access], *([_WEB] if web else [])))]
            arguments += ["--allow-tool", "write"] if run.access == "edit" else []
            arguments += ["--allow-all-urls"] if web else []
        if run.model:
            arguments += ["--model", run.model]
        if run.effort:
            arguments += ["--reasoning-effort", run.effort]
        return arguments

    def environment(self, run: Run, home: Path | None) -> Mapping[str, str]:
        """A private folder for its state, unless the user's holds the sign-in; the endpoint, if there is one."""
        variables = {} if home is None else {"COPILOT_HOME": str(home / ".copilot")}
        if run.base_url:
            variables |= {"COPILOT_PROVIDER_BASE_URL": run.base_url, "COPILOT_OFFLINE": "true"}
        return variables

    def read(self, events: Sequence[Event], run: Run) -> Transcript:
        """Tool executions and messages become steps; the last message of the last turn is the answer."""
        steps: list[AgentStep] = []
        places: dict[str, int] = {}
        complaint: Complaint | None = None
        code: int | None = None
        model = session = ""
        for event in events:
            data = inside(event, "data")
            match text_in(event, "type"):
                case "assistant.message":
                    complaint, model = None, text_in(data, "model") or model
                    steps += (
                        [AgentStep(kind="message", text=text_in(data, "content"))] if text_in(data, "content") else []
                    )
                case "tool.execution_start":
                    places[text_in(data, "toolCallId")] = len(steps)
                    steps.append(_called(event))
                case "tool.execution_complete" if text_in(data, "toolCallId") in places:
                    place = places[text_in(data, "toolCallId")]
                    steps[place] = _finished(steps[place], event)
                case "session.error":
                    complaint = Complaint(message=text_in(data, "message"), status=number_in(data, "statusCode"))
                case "result":
                    code, session = number_in(event, "exitCode"), text_in(event, "sessionId")
        answer = None
        if code == 0 and complaint is None and steps and steps[-1].kind == "message":
            answer = steps.pop().text
        return Transcript(
            answer=answer,
            steps=tuple(steps),
            usage=_usage(run.notes / _USAGE),
            model=model,
            session=session,
            complaint=complaint,
            finished=code == 0,
        )


def _called(event: Event) -> AgentStep:
    name, arguments = text_in(event, "data", "toolName"), inside(event, "data", "arguments")
    if name == "bash":
        return AgentStep(kind="command", text=text_in(arguments, "command"))
    if name in ("create", "edit", "apply_patch"):
        return AgentStep(kind="file", text=f"{name} {text_in(arguments, 'path') or shown(arguments)}".rstrip())
    return AgentStep(kind="tool", text=f"{name} {shown(arguments)}".rstrip())


def _finished(step: AgentStep, event: Event) -> AgentStep:
    ok = inside(event, "data", "success") is True
    said = inside(event, "data", "result", "content") if ok else inside(event, "data", "error", "message")
    return AgentStep(kind=step.kind, text=step.text, output=shown(said), ok=ok)


def _usage(file: Path) -> Usage:
    """What the usage file says, over all models that took part; nothing when it was not written."""
    try:
        parsed: object = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # The counts only inform: a run that leaves no file has answered all the same.
        return Usage()
    metrics = inside(parsed, "modelMetrics")
    counts = [inside(each, "usage") for each in metrics.values()] if isinstance(metrics, Mapping) else []
    return Usage(
        input=total(*(number_in(each, "inputTokens") for each in counts)),
        output=total(*(number_in(each, "outputTokens") for each in counts)),
        cached=total(*(number_in(each, "cacheReadTokens") for each in counts)),
    )
