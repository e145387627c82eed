"""Anthropic's Claude Code: `claude -p --output-format stream-json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from skillopt_es.adapters.agent_output import inside, number_in, objects_in, short, shown, text_in
from skillopt_es.adapters.harnesses.agent import Access, Agent, Complaint, Event, Run, Transcript
from skillopt_es.adapters.harnesses.harness import Harness
from skillopt_es.adapters.harnesses.stream import total
from skillopt_es.events.values import Json
from skillopt_es.ports import AgentStep, ChatModel, ModelSettings, Usage, provider

_READ = ("Skill", "Read", "Grep", "Glob")
_EDIT = (*_READ, "Edit", "Write")
_WEB = ("WebFetch", "WebSearch")
_TOOLS: Mapping[Access, tuple[str, ...]] = {"none": (), "read": _READ, "edit": _EDIT}
# Without a question: dontAsk denies what is not allowed (reading in the workspace is), acceptEdits also edits there.
_MODE: Mapping[Access, str] = {"none": "dontAsk", "read": "dontAsk", "edit": "acceptEdits", "full": "bypassPermissions"}


@provider(system="anthropic", agent=True)
def open_model(settings: ModelSettings, environ: Mapping[str, str]) -> ChatModel:
    """Claude Code as a model; raises ConfigError when it is not installed."""
    return Harness(ClaudeCode(), settings, environ)


class ClaudeCode(Agent):
    """The command line of Claude Code."""

    name = "claude_code"
    program = "claude"
    install = "npm install -g @anthropic-ai/claude-code"
    sign_in = "run `claude` and `/login` there"
    key_variables = ("ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY")
    state_variables = ("CLAUDE_CONFIG_DIR",)
    skills = ".claude/skills"
    retrying = b'"api_retry"'
    signed_in = ("auth", "status")

    def arguments(self, run: Run) -> Sequence[str]:
        """A run with the tools that its access allows, which loads nothing of the user's and keeps nothing."""
        arguments = ["-p", "--output-format", "stream-json", "--verbose", "--no-session-persistence"]
        arguments += ["--setting-sources", "project", "--strict-mcp-config", "--permission-mode", _MODE[run.access]]
        if run.access != "full":
            web = _WEB if run.web and run.access != "none" else ()
            arguments += ["--tools", ",".join((*_TOOLS[run.access], *web))]
            if run.access != "none":
                arguments += ["--allowedTools", ",".join(("Skill", *web))]
        # With full access all tools are there: only those for the web are taken away.
        elif not run.web:
            arguments += ["--disallowedTools", ",".join(_WEB)]
        if run.model:
            arguments += ["--model", run.model]
        if run.effort:
            arguments += ["--effort", run.effort]
        if run.schema is not None:
            arguments += ["--json-schema", json.dumps(run.schema, separators=(",", ":"))]
        return arguments

    def environment(self, run: Run, home: Path | None) -> Mapping[str, str]:
        """No updates and no traffic beside the model's; a private folder for its state, unless the user's is needed."""
        variables = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        if home is not None:
            variables["CLAUDE_CONFIG_DIR"] = str(home / ".claude")
        if run.base_url:
            variables["ANTHROPIC_BASE_URL"] = run.base_url
        if run.thinking_tokens is not None:
            variables["MAX_THINKING_TOKENS"] = str(run.thinking_tokens)
        return variables

    def read(self, events: Sequence[Event], run: Run) -> Transcript:
        """Blocks of messages become steps; the `result` event holds the answer, the usage, or the error."""
        blocks = _Blocks()
        result: Event | None = None
        repeated: Event | None = None
        model = ""
        for event in events:
            match text_in(event, "type"):
                case "system" if text_in(event, "subtype") == "init":
                    model = text_in(event, "model")
                case "system" if text_in(event, "subtype") == "api_retry":
                    repeated = event
                case "assistant" | "user" as author:
                    # A message after a repeated request says that the request got through in the end.
                    repeated = None
                    blocks.take(author, inside(event, "message", "content"))
                case "result":
                    result = event
        session = next((text_in(event, "session_id") for event in events if text_in(event, "session_id")), "")
        if result is None:
            complaint = None if repeated is None else _repeated(repeated)
            return Transcript(steps=blocks.done(), model=model, session=session, complaint=complaint)
        complaint = _complaint(result)
        answer = None if complaint else _answer(result, structured=run.schema is not None)
        return Transcript(
            answer=answer,
            steps=blocks.done(answer),
            usage=_usage(result),
            model=model,
            session=session,
            complaint=complaint,
            finished=True,
        )


class _Blocks:
    """The content blocks of a conversation as steps; a tool's result joins the step of its call."""

    def __init__(self) -> None:
        self._steps: list[AgentStep] = []
        self._places: dict[str, int] = {}

    def take(self, author: str, content: Json) -> None:
        """One message's blocks; what the user says is only of interest where it is a tool's result."""
        for block in objects_in({"content": content}, "content"):
            match text_in(block, "type"):
                case "text" if author == "assistant":
                    self._steps.append(AgentStep(kind="message", text=text_in(block, "text")))
                case "thinking" if author == "assistant" and text_in(block, "thinking"):
                    self._steps.append(AgentStep(kind="reasoning", text=short(text_in(block, "thinking"))))
                # This one only carries the answer to a schema: it is no step of the work.
                case "tool_use" if text_in(block, "name") != "StructuredOutput":
                    self._places[text_in(block, "id")] = len(self._steps)
                    self._steps.append(_called(block))
                case "tool_result":
                    self._finish(block)

    def done(self, answer: str | None = None) -> tuple[AgentStep, ...]:
        """All steps; the last message is none where it is the answer."""
        if answer and self._steps and self._steps[-1] == AgentStep(kind="message", text=answer):
            return tuple(self._steps[:-1])
        return tuple(self._steps)

    def _finish(self, block: Event) -> None:
        place = self._places.get(text_in(block, "tool_use_id"))
        if place is not None:
            before = self._steps[place]
            ok = inside(block, "is_error") is not True
            self._steps[place] = AgentStep(kind=before.kind, text=before.text, output=_result_text(block), ok=ok)


def _called(block: Event) -> AgentStep:
    name = text_in(block, "name")
    if name == "Bash":
        return AgentStep(kind="command", text=text_in(block, "input", "command"))
    if name in ("Edit", "Write", "NotebookEdit"):
        return AgentStep(kind="file", text=f"{name} {text_in(block, 'input', 'file_path')}")
    return AgentStep(kind="tool", text=f"{name} {shown(inside(block, 'input'))}".rstrip())


def _result_text(block: Event) -> str:
    parts = [text_in(part, "text") for part in objects_in(block, "content")]
    return short("\n".join(parts)) if parts else shown(inside(block, "content"))


def _complaint(result: Event) -> Complaint | None:
    subtype = text_in(result, "subtype")
    if inside(result, "is_error") is not True and not subtype.startswith("error"):
        return None
    errors = inside(result, "errors")
    said = "; ".join(each for each in errors if isinstance(each, str)) if isinstance(errors, list) else ""
    return Complaint(message=text_in(result, "result") or said or subtype, status=number_in(result, "api_error_status"))


def _repeated(event: Event) -> Complaint:
    """Why a request to the model is about to be repeated: a status, and one word of Claude Code's own."""
    status, error = number_in(event, "error_status"), text_in(event, "error").replace("_", " ")
    said = f" ({error})" if error and error != "unknown" else ""
    what = f"HTTP {status}{said}" if status is not None else error if said else "it cannot connect to its model"
    tries = f"try {number_in(event, 'attempt')} of {number_in(event, 'max_retries')}"
    return Complaint(message=f"{what}, {tries}", status=status)


def _answer(result: Event, *, structured: bool) -> str:
    found = inside(result, "structured_output") if structured else None
    return text_in(result, "result") if found is None else json.dumps(found, ensure_ascii=False)


def _usage(result: Event) -> Usage:
    """Here `input_tokens` leaves out what a cache gave or took; everybody else counts it in."""
    cached = number_in(result, "usage", "cache_read_input_tokens")
    written = number_in(result, "usage", "cache_creation_input_tokens")
    return Usage(
        input=total(number_in(result, "usage", "input_tokens"), cached, written),
        output=number_in(result, "usage", "output_tokens"),
        cached=cached,
    )
