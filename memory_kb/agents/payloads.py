"""What agents tell a hook on stdin, in the words of each; pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from memory_kb.agents.agent import Agent
from memory_kb.errors import UsageError
from memory_kb.store.events import Event, text_of
from memory_kb.store.session_log import check_id
from memory_kb.text import load_json

#: A longer input is not looked at.
MAX_INPUT = 64_000_000
_SESSIONS = ("session_id", "conversation_id", "sessionId")
_ANSWERS = ("last_assistant_message", "prompt_response", "text")
_RESULTS = ("tool_response", "tool_output", "tool_result", "result_json")


class HookCall(NamedTuple):
    """What a hook is told.

    Attributes:
        session: the agent's session as an id of ours; None where it names none.
        folders: where it works, the most telling first.
        prompt: what the person said; "" outside of `prompt`.
        events: what happened, for the log of the session.
        source: why a session starts, in the agent's word, such as `compact`.
        can_be_asked: whether this is the first stop of a main agent that came to its end by itself.
    """

    session: str | None = None
    folders: tuple[str, ...] = ()
    prompt: str = ""
    events: tuple[Event, ...] = ()
    source: str = ""
    can_be_asked: bool = True


def read_call(agent: Agent, event: str, data: bytes) -> HookCall:
    """Return what an agent tells about an event.

    Raises:
        UsageError: it is not a JSON object.

    Example:
        >>> from memory_kb.agents.agent import find_agent
        >>> call = read_call(find_agent("codex"), "prompt", b'{"session_id": "s1", "cwd": "/x", "prompt": "Fix it."}')
        >>> call.session, call.folders, call.events[0].role, call.events[0].content
        ('s1', ('/x',), 'user', 'Fix it.')
    """
    if len(data) > MAX_INPUT:
        raise UsageError(f"what {agent.title} said at {event} is longer than {MAX_INPUT:,} bytes")
    try:
        values = load_json(data.decode("utf-8-sig", "replace")) if data.strip() else {}
    except (ValueError, RecursionError) as exc:
        raise UsageError(f"what {agent.title} said at {event} is not JSON: {exc}") from exc
    if not isinstance(values, dict):
        raise UsageError(f"what {agent.title} said at {event} is no JSON object")
    named = next(
        (
            str(values[name])
            for name in _SESSIONS
            if isinstance(values.get(name), str | int) and str(values[name]).strip()
        ),
        None,
    )
    roots = values.get("workspace_roots")
    places = [values.get("cwd"), *(roots if isinstance(roots, list) else ())]
    prompt = text_of(values.get("prompt")).strip() if event == "prompt" else ""
    return HookCall(
        None if named is None else name_session(agent, named),
        tuple(place for place in places if isinstance(place, str) and place and "\0" not in place),
        prompt,
        tuple(_events(agent, event, values, prompt)),
        values["source"] if isinstance(values.get("source"), str) else "",
        not _is_followed(values),
    )


def _is_followed(values: Mapping[str, Any]) -> bool:
    """Return whether a stop is that of a subagent, was brought about by a hook before, or by the person."""
    return (
        bool(values.get("stop_hook_active") or values.get("loop_count") or values.get("agent_id"))
        or values.get("hook_event_name") == "SubagentStop"
        or values.get("status") in ("aborted", "error")
    )


def name_session(agent: Agent, named: str) -> str:
    """Return an agent's session as an id of ours, its own where it can be one.

    Example:
        >>> from memory_kb.agents.agent import find_agent
        >>> name_session(find_agent("codex"), "0b1c42"), name_session(find_agent("codex"), "../../x")
        ('0b1c42', 'codex-9cdf6a50100a862e')
    """
    try:
        return check_id(named)
    except UsageError:
        import hashlib

        digest = hashlib.sha256(named.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
        return f"{agent.name}-{digest[:16]}"


def _events(agent: Agent, event: str, values: Mapping[str, Any], prompt: str) -> list[Event]:
    if event == "prompt" and prompt:
        return [Event(role="user", content=prompt, stream="intent", agent=agent.name)]
    if event == "stop":
        said = next((text for name in _ANSWERS if (text := text_of(values.get(name)).strip())), "")
        return [Event(role="assistant", content=said, stream="intent", agent=agent.name)] if said else []
    if event == "tool" and isinstance(values.get("tool_name"), str):
        return _tool_events(agent, values)
    return []


def _tool_events(agent: Agent, values: Mapping[str, Any]) -> list[Event]:
    tool, asked = str(values["tool_name"]), values.get("tool_input")
    call_id = str(values["tool_use_id"]) if isinstance(values.get("tool_use_id"), str) else None
    args = asked if isinstance(asked, dict) else None if asked is None else {"value": asked}
    result = next((values[name] for name in _RESULTS if values.get(name) is not None), None)
    error = text_of(values.get("error")).strip() or None
    shared = Event(stream="exec", agent=agent.name, tool=tool, call_id=call_id, args=args)
    told = _result_text(result) or error
    answer = replace(shared, type="tool_result", content=told, error=error, ok=_is_good(agent, values, result, error))
    return [replace(shared, type="tool_call"), answer]


def _result_text(result: object) -> str:
    if isinstance(result, dict) and ("stdout" in result or "stderr" in result):
        return "\n".join(filter(None, (text_of(result.get(name)).rstrip() for name in ("stdout", "stderr"))))
    if isinstance(result, dict) and "llmContent" in result:
        return text_of(result["llmContent"])
    return text_of(result)


def _is_good(agent: Agent, values: Mapping[str, Any], result: object, error: str | None) -> bool | None:
    """Tell whether a tool did what it should; None where nobody says."""
    if error or values.get("hook_event_name") == "PostToolUseFailure":
        return False
    if isinstance(result, dict):
        code = result.get("exit_code", result.get("exitCode"))
        if (
            result.get("is_error") is True
            or result.get("success") is False
            or result.get("error")
            or (type(code) is int and code != 0)
        ):
            return False
        if type(code) is int:
            return True
    return True if agent.name == "claude-code" else None


def format_question(agent: Agent, text: str) -> str:
    """Return a question to an agent's model in the form that its stop hook takes; "" where there is none.

    Example:
        >>> from memory_kb.agents.agent import find_agent
        >>> format_question(find_agent("codex"), "Anything to keep?")
        '{"decision": "block", "reason": "Anything to keep?"}'
        >>> format_question(find_agent("cursor"), "Anything to keep?")
        '{"followup_message": "Anything to keep?"}'
    """
    if agent.question is None:
        return ""
    form = agent.question[1]
    return json.dumps({"followup_message": text} if form == "followup" else {"decision": form, "reason": text})


def format_answer(agent: Agent, event: str, text: str) -> str:
    """Return additional context in the form that an agent reads; "" for nothing.

    Example:
        >>> from memory_kb.agents.agent import find_agent
        >>> format_answer(find_agent("claude-code"), "prompt", "Use tabs.")
        '{"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "Use tabs."}}'
    """
    hook = agent.hook_for(event)
    if not text or hook is None or (event == "prompt" and not agent.takes_prompt_context):
        return ""
    if agent.context_key:
        return json.dumps({agent.context_key: text})
    return json.dumps({"hookSpecificOutput": {"hookEventName": hook.name, "additionalContext": text}})
