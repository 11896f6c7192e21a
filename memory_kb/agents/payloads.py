"""Parse what agents send a hook on stdin, and format the answers."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from memory_kb.agents.agent import Agent
from memory_kb.errors import UsageError
from memory_kb.lazy_regex import lazy_regex
from memory_kb.private_text import cut_private
from memory_kb.regular_files import open_for_reading
from memory_kb.store.session_events import Event, NoEvent, load_object, text_of, unpack
from memory_kb.store.session_log import session_name
from memory_kb.text import load_json

#: A longer input is not looked at.
MAX_INPUT = 16_000_000
_COPILOT_TEXT = "text_result_for_llm"
_SESSIONS = ("session_id", "conversation_id")
_ANSWERS = ("last_assistant_message", "prompt_response", "text")
_RESULTS = ("tool_response", "tool_output", "tool_result")
#: How Gemini CLI puts what a hook gave before the prompt, and frames and ends what a command printed.
_HOOK_CONTEXT = lazy_regex(r"\A\s*<hook_context>.*?</hook_context>", re.DOTALL)
_FRAME = lazy_regex(r"\A<untrusted_context>\n?(.*?)\n?</untrusted_context>\s*\Z", re.DOTALL)
_EXIT = lazy_regex(r"(?m)^Exit Code: (-?\d+)\b")
#: How Copilot CLI, which calls the hooks of Claude Code, ends what a command printed.
_COPILOT_EXIT = lazy_regex(r"\n<[^<>\n]* with exit code (-?\d+)>\s*\Z")


class HookCall(NamedTuple):
    """What a hook receives: the session as an id of ours, the folders it works in, the prompt, events for the log.

    `source` is why a session starts, in the agent's word, `subagent` the one that does what the events say, if it is not
    the session's own agent. The agent can be asked something at the first stop of a main agent that came to its end by
    itself.
    """

    session: str | None = None
    folders: tuple[str, ...] = ()
    prompt: str = ""
    events: tuple[Event, ...] = ()
    source: str = ""
    transcript: str = ""
    can_be_asked: bool = True
    subagent: str | None = None


class HookAnswer(NamedTuple):
    """What to print, the sessions to end, and whether to update the index.

    Both are done in the background, so that the agent need not wait.
    """

    output: str = ""
    sessions_to_end: tuple[str, ...] = ()
    needs_background_update: bool = False


def read_hook_call(agent: Agent, event: str, data: bytes) -> HookCall:
    """Return what an agent sends about an event.

    Example:
        >>> from memory_kb.agents.agent import find_agent
        >>> call = read_hook_call(find_agent("codex"), "prompt", b'{"session_id": "s1", "cwd": "/x", "prompt": "Fix it."}')
        >>> call.session, call.folders, call.prompt
        ('s1', ('/x',), 'Fix it.')
    """
    if len(data) > MAX_INPUT:
        raise UsageError(f"what {agent.title} said at {event} is longer than {MAX_INPUT:,} bytes")
    try:
        values = load_object(data.decode("utf-8-sig", "replace")) if data.strip() else {}
    except NoEvent as exc:
        raise UsageError(f"what {agent.title} said at {event} is not JSON: {exc}") from exc
    named = next((str(values[name]) for name in _SESSIONS if isinstance(values.get(name), str | int)), "")
    roots = values.get("workspace_roots")
    places = [values.get("cwd"), *(roots if isinstance(roots, list) else ())]
    said = _HOOK_CONTEXT.sub("", text_of(values.get("prompt"))) if event == "prompt" else ""
    prompt = cut_private(said).strip()
    return HookCall(
        session=session_name(named) if named.strip() else None,
        folders=tuple(place for place in places if isinstance(place, str) and place and "\0" not in place),
        prompt=prompt,
        events=tuple(_events(agent, event, values, prompt)),
        source="compact" if values.get("hook_event_name") == "PreCompress" else text_of(values.get("source")),
        transcript=_transcript(values),
        can_be_asked=not _is_followed(values),
        subagent=text_of(values.get("agent_id")) or None,
    )


def _transcript(values: Mapping[str, Any]) -> str:
    path = values.get("transcript_path")
    return path if isinstance(path, str) and "\0" not in path and os.path.isfile(path) else ""


def _is_followed(values: Mapping[str, Any]) -> bool:
    """Return whether more follows: the stop is a subagent's or one still works, a hook asked, or the person stopped it."""
    tasks = values.get("background_tasks")
    kinds = [one.get("type") for one in tasks if isinstance(one, dict)] if isinstance(tasks, list) else []
    return (
        "subagent" in kinds
        or bool(values.get("stop_hook_active") or values.get("loop_count") or values.get("agent_id"))
        or values.get("hook_event_name") == "SubagentStop"
        or values.get("status") in ("aborted", "error")
    )


def _events(agent: Agent, event: str, values: Mapping[str, Any], prompt: str) -> list[Event]:
    if event == "prompt" and prompt:
        return [Event(role="user", content=prompt, stream="intent", agent=agent.name)]
    if event == "stop":
        said = next((text for name in _ANSWERS if (text := text_of(values.get(name)).strip())), "")
        return [Event(role="assistant", content=said, stream="intent", agent=agent.name)] if said else []
    if event in ("before-tool", "tool") and isinstance(values.get("tool_name"), str):
        call = _tool_call(agent, values)
        return [call] if event == "before-tool" else _tool_events(agent, values, call)
    return []


def _tool_call(agent: Agent, values: Mapping[str, Any]) -> Event:
    asked = unpack(values.get("tool_input"))
    args = asked if isinstance(asked, dict) else None if asked is None else {"value": asked}
    call_id = str(values["tool_use_id"]) if isinstance(values.get("tool_use_id"), str) else None
    tool = str(values["tool_name"])
    return Event(type="tool_call", stream="exec", agent=agent.name, tool=tool, call_id=call_id, args=args)


def _tool_events(agent: Agent, values: Mapping[str, Any], call: Event) -> list[Event]:
    result = unpack(next((values[name] for name in _RESULTS if values.get(name) is not None), None))
    error = text_of(values.get("error") or values.get("error_message")).strip() or None
    content = _result_text(result) or error
    if agent.has_late_results and call.call_id and isinstance(result, str) and _transcript(values):
        return [call]
    answer = call._replace(type="tool_result", content=content, error=error, ok=_is_good(agent, values, result, error))
    return [call, answer]


def _result_text(result: object) -> str:
    if not isinstance(result, dict):
        return text_of(result)
    if "stdout" in result or "stderr" in result:
        return "\n".join(filter(None, (text_of(result.get(name)).rstrip() for name in ("stdout", "stderr"))))
    if "llmContent" in result:
        return _FRAME.sub(r"\1", text_of(result["llmContent"]))
    if isinstance(result.get("output"), str):
        return str(result["output"])
    return text_of(result.get(_COPILOT_TEXT, result))


def _is_good(agent: Agent, values: Mapping[str, Any], result: object, error: str | None) -> bool | None:
    """Return whether a tool did what it should; None where nobody says."""
    if error or str(values.get("hook_event_name")).endswith("ToolUseFailure"):
        return False
    answer = result if isinstance(result, dict) else {}
    kind = answer.get("result_type")
    if answer.get("isError") is True or answer.get("error") or kind not in (None, "success"):
        return False
    printed = _EXIT.search(text_of(answer.get("llmContent")))
    printed = printed or _COPILOT_EXIT.search(text_of(answer.get(_COPILOT_TEXT)))
    code = int(printed[1]) if printed else answer.get("exitCode")
    if type(code) is int:
        return code == 0
    return True if kind == "success" or agent.name in ("claude-code", "gemini-cli") else None


def format_answer(agent: Agent, event: str, text: str, form: str = "context") -> str:
    """Return additional context, a question or a refusal in the form that an agent's hook takes; "" for nothing.

    Example:
        >>> from memory_kb.agents.agent import find_agent
        >>> format_answer(find_agent("claude-code"), "prompt", "Use tabs.")
        '{"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "Use tabs."}}'
    """
    hook = agent.hook_for(event)
    if not text or hook is None:
        return ""
    if form in ("block", "deny"):
        return json.dumps({"decision": form, "reason": text})
    if form == "followup" or (form == "context" and agent.context_key):
        return json.dumps({"followup_message" if form == "followup" else agent.context_key: text})
    said = {"additionalContext": text}
    if form == "permission":
        said = {"permissionDecision": "deny", "permissionDecisionReason": text}
    return json.dumps({"hookSpecificOutput": {"hookEventName": hook.name, **said}})


#: The end of a transcript that is read, in bytes.
_MAX_TRANSCRIPT = 2_000_000


def read_results(transcript: str, calls: Mapping[str, Event]) -> list[Event]:
    """Return the results of calls, by their ids, for agents that write them to their transcript alone."""
    try:
        with open_for_reading(Path(transcript)) as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _MAX_TRANSCRIPT))
            lines = stream.read().split(b"\n")
    except OSError:
        return []
    found: dict[str, Event] = {}
    for line in lines:
        if b'_output"' not in line and b'"item_completed"' not in line:
            continue
        try:
            call_id, text, ok = _read_result(load_json(line.decode("utf-8", "replace"))["payload"])
            call = calls.get(call_id)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if call:
            found[call_id] = call._replace(type="tool_result", content=text, ok=ok, seq=0, ts="")
    return list(found.values())


def _read_result(payload: Mapping[str, Any]) -> tuple[str, str, bool | None]:
    """Return the call that a record is about, what it gave, and whether that was good.

    Where a model calls its tools from a script, the record of a call that is over alone names it.
    """
    from memory_kb.sessions.json_transcripts import read_tool_outcome

    item = payload.get("item")
    if item is None:
        return (payload["call_id"], *read_tool_outcome(payload["output"]))
    text = text_of(item.get("aggregated_output", item.get("stdout")))
    return item["id"], text, {"completed": True, "failed": False}.get(item["status"])
