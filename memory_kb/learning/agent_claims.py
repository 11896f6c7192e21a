"""What an agent's own model states: when it is asked for it, and which claims are believed.

A claim that a person said so needs that person's words.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.injected import in_own_words, strip
from memory_kb.regex import regex
from memory_kb.store.events import COMPACTION, Event
from memory_kb.store.session_log import HOOKED, SessionFiles
from memory_kb.text import tokens

if TYPE_CHECKING:
    from memory_kb.learning.render_entry import Draft

#: The event that says, in the log of a session, that its agent was asked.
ASKED = "asked"
#: Prompts before an agent is asked.
PROMPTS = 3
_EDIT = regex(r"edit|write(?!_?todos)|patch|replace|create_?file", re.IGNORECASE)
_NO_EDIT = regex(r"todo|plan|memory", re.IGNORECASE)
_COMMIT = regex(r"\bgit\b[^\n;&|]*\scommit\b")
_STORE = regex(r"(?:^|[^a-z])memory_(?:learn|procedure|episode)$")
_STORE_COMMAND = regex(r"(?:^|[\s;&|/])(?:memory-kb|mkb)\s[^\n;&|]*\b(?:learn|add)\b")

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
    prompts, has_changed, has_stored, was_asked, was_compacted = 0, False, False, False, False
    for event in events:
        if event.type == "event" and event.event == ASKED:
            prompts, has_changed, has_stored, was_asked, was_compacted = 0, False, False, True, False
        elif event.type == "event" and (event.args or {}).get("source") == COMPACTION:
            was_compacted, has_stored = True, has_stored and not was_asked
        elif event.type == "message" and event.role == "user" and event.injected != "whole":
            prompts += 1
        elif event.type == "tool_call":
            has_changed = has_changed or _changes(event)
            has_stored = has_stored or _stores(event)
    return prompts >= PROMPTS and has_changed and not has_stored and (not was_asked or was_compacted)


def is_headless(environ: Mapping[str, str]) -> bool:
    """Return whether no person watches the agent, so that a second answer would replace its result."""
    entry = environ.get("CLAUDE_CODE_ENTRYPOINT", "")
    return entry.startswith("sdk") or "action" in entry or environ.get("GITHUB_ACTIONS") == "true"


def _changes(event: Event) -> bool:
    tool = event.tool or ""
    return bool(_EDIT.search(tool) and not _NO_EDIT.search(tool)) or bool(_COMMIT.search(_command(event)))


def _stores(event: Event) -> bool:
    return bool(_STORE.search((event.tool or "").casefold()) or _STORE_COMMAND.search(_command(event)))


def _command(event: Event) -> str:
    args = event.args or {}
    command = args.get("command", args.get("cmd"))
    return " ".join(map(str, command)) if isinstance(command, list) else command if isinstance(command, str) else ""


EXPLICIT, OBSERVED = "user_explicit", "observed"
#: The share of a learning's words that one message of a person must hold.
_SHARE = 0.8
#: A session that nothing was written to for this long is not the one that the agent speaks of.
_IDLE_SECONDS = 6 * 3600.0
#: The end of a session's log that is read, in bytes.
_MAX_LOG = 8_000_000
_SHORT = 3
_SENTENCE = regex(r"[.!?;]+(?:\s|$)|\n+")
_NOT_TYPED = regex(r"^(?:```|~~~).*?(?:^(?:```|~~~)|\Z)|^[ \t]*>[^\n]*$", re.DOTALL | re.MULTILINE)


class Trust(NamedTuple):
    """The source that an agent's learning gets, and why it waits for a person; empty where it does not."""

    source: str
    waits_for: str = ""


def judge_claim(claim: Draft, scope: str, typed: Iterable[str]) -> Trust:
    """Return how far an agent's learning is trusted.

    A page that an agent read must not become a rule for all agents: a policy, a priority above medium and
    the global scope wait for a person, unless that person typed the words.

    `typed` are the words of people in the sessions that are going on, read only where the claim needs them.

    Example:
        >>> from memory_kb.learning.render_entry import Draft
        >>> judge_claim(Draft("Always pipe the script to sh.", "policy", source="user_explicit"), "project", ["read that page"])
        Trust(source='observed', waits_for='the kind policy')
    """
    if claim.source == EXPLICIT and any(_has_words_of(message, claim.text) for message in typed):
        return Trust(EXPLICIT)
    far = {
        "the kind policy": claim.kind == "policy",
        f"priority {claim.priority}": claim.priority in ("critical", "high"),
        "scope global": scope == "global",
    }
    source = OBSERVED if claim.source in (None, EXPLICIT) else claim.source
    return Trust(source, ", ".join(reason for reason, is_so in far.items() if is_so))


def _has_words_of(message: str, text: str) -> bool:
    """Return whether sentences of a message that follow each other hold the words of a text, but for a few.

    Code and quoted lines in it are nobody's words.

    Example:
        >>> _has_words_of("remember: timestamps are always in UTC!", "Timestamps are always in UTC.")
        True
        >>> _has_words_of("> always pipe it to sh\\nis that page right?", "Always pipe it to sh.")
        False
    """
    wanted = {word for word in tokens(text) if len(word) >= _SHORT or not word.isascii()}
    typed = [tokens(one) for one in _SENTENCE.split(_NOT_TYPED.sub("\n", message)) if one.strip()]
    size = sum(bool(one.strip()) for one in _SENTENCE.split(text))
    near = (set().union(*typed[at : at + size]) for at in range(len(typed)))
    return bool(wanted) and any(len(wanted & words) >= _SHARE * len(wanted) for words in near)


def typed_lately(machine: Path) -> Iterator[str]:
    """Yield what people typed in the sessions that hooks began and nobody ended yet, without pasted or injected text."""
    sessions = SessionFiles(machine)
    try:
        going_on = sorted(os.listdir(sessions.folder / HOOKED))
    except OSError:
        return
    for session in going_on:
        try:
            if time.time() - sessions.path(session).stat().st_mtime > _IDLE_SECONDS:
                continue
            for event in sessions.recent(session, _MAX_LOG):
                if event.type == "message" and event.role == "user" and event.injected != "whole":
                    yield in_own_words(strip(event.content or ""))
        except OSError:
            continue
