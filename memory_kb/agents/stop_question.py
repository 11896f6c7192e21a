"""Decide whether an agent that stops is asked what to remember of its session, and what it is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memory_kb.injected_text import is_own_call
from memory_kb.lazy_regex import lazy_regex
from memory_kb.regular_files import open_for_reading
from memory_kb.store.session_events import COMPACTION, Event, NoEvent, load_object, strings_of

#: The event that says, in the log of a session, that its agent was asked.
ASKED = "asked"
#: Prompts before an agent is asked.
_PROMPTS = 3
#: The longest first record of a transcript that is read, in bytes; Codex's has its instructions.
_MAX_RECORD = 1_000_000
_STORES = lazy_regex(
    r"(?:^|\W|_)memory_(?:learn|procedure|episode)$|(?:\bmemory[-_]kb|\bmkb)\s[^\n;&|]*\b(?:learn|add|procedure|episode)\b"
)

QUESTION = """Before you finish: did you learn or were you told something in this session that a colleague would want to know
next time, and that the code, the documents and the git history do not say by themselves? Then store it, at most three learnings:

1. Look first whether it is known, with memory_recall and its key words. What is known is left alone.
2. Call memory_learn once for each. `text`: what holds, in one or two sentences that are understood without this session and name
   their subject; then why it holds or how to apply it. `kind`: preference (how the person wants work to be done), decision (what was
   chosen, and why), fact (how something is here), pitfall (what fails here, and what to do instead) or rule (what to do, and when).

Leave out what was done, how far the work is, orders for this task alone, what holds everywhere, and secrets.
"Nothing to keep" is a full answer; most sessions have nothing. In no case repeat your last answer: it was received."""


def should_ask(events: Iterable[Event]) -> bool:
    """Return whether an agent that stops is to be asked what to remember.

    It is asked once there were three prompts and an edit or a commit, unless it stored something by itself;
    again only after a compaction.

    Example:
        >>> prompt, edit = Event(role="user", content="Go on."), Event(type="tool_call", tool="Edit")
        >>> should_ask([prompt, prompt, edit]), should_ask([prompt, prompt, edit, prompt])
        (False, True)
    """
    from memory_kb.episodes.tool_calls import read_tool_call

    prompts, has_changed, has_stored, was_asked, was_compacted = 0, False, False, False, False
    for event in events:
        if event.type == "event" and event.event == ASKED:
            prompts, has_changed, has_stored, was_asked, was_compacted = 0, False, False, True, False
        elif event.type == "event" and (event.args or {}).get("source") == COMPACTION:
            was_compacted, has_stored = True, has_stored and not was_asked
        elif event.type == "message" and event.role == "user" and event.injected != "whole":
            prompts += _is_typed(event.content or "")
        elif event.type == "tool_call":
            parts = () if has_changed else read_tool_call(event.tool, event.args).parts
            has_changed = has_changed or any(part.kind in ("edit", "commit") for part in parts)
            has_stored = has_stored or _stores(event)
    return prompts >= _PROMPTS and has_changed and not has_stored and (not was_asked or was_compacted)


def is_headless(environ: Mapping[str, str], transcript: str = "") -> bool:
    """Return whether no person watches the agent, so that a second answer would replace its result."""
    entry = environ.get("CLAUDE_CODE_ENTRYPOINT", "")
    if entry.startswith("sdk") or "action" in entry or environ.get("GITHUB_ACTIONS") == "true":
        return True
    try:
        with open_for_reading(transcript) as stream:
            meta = load_object(stream.readline(_MAX_RECORD)).get("payload")
    except (OSError, NoEvent):
        return False
    # The first record of Codex says that `codex exec` began the session.
    return isinstance(meta, dict) and meta.get("source") == "exec"


def _is_typed(prompt: str) -> bool:
    """Return whether a person sent any of a prompt, which may be an agent's notice of a background task."""
    if not prompt.startswith("<"):
        return True
    from memory_kb.learning.user_text import split_message

    return bool(split_message(prompt).sent)


def _stores(event: Event) -> bool:
    if not is_own_call(event.tool, event.args):
        return False
    return any(_STORES.search(words) for words in (event.tool or "", " ".join(strings_of(event.args or {}))))
