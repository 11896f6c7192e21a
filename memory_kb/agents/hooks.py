"""What memory-kb does when an agent calls it at a hook."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import UsageError
from memory_kb.plainfiles import append_plain, make_folder, read_plain
from memory_kb.store.events import format_time
from memory_kb.store.logs import Retrieval, RetrievalLog

if TYPE_CHECKING:
    from memory_kb.agents.agent import Agent
    from memory_kb.agents.payloads import HookCall
    from memory_kb.context.service import Contexts
    from memory_kb.context.session_start import Given
    from memory_kb.learning.citations import ClaimState
    from memory_kb.sessions.service import Sessions
    from memory_kb.store.events import Event
    from memory_kb.store.plan import Memory
    from memory_kb.vault import Vault

#: The most that is put before an agent at once: Claude Code cuts at 10,000 characters.
_MAX_CHARS = 9_000
#: The part of CONTINUITY.md that says what is being done.
_MAX_TASK = 500
#: The verb in the log of retrievals with which a session begins anew: what was shown before is gone.
_START = "start"
#: The time in which the same prompt again is the same one, told by two configurations.
_ECHO = timedelta(seconds=5)
#: Seconds after which a session that nobody ended is over.
_IDLE_SECONDS = 3_600.0
#: How long git may take to find a cited file that is not where it was.
_GIT_SECONDS = 0.3
#: The end of the log of retrievals that is looked through, in bytes.
_MAX_LOG = 8_000_000
_PLAIN_BRANCHES = ("main", "master", "trunk", "develop", "dev", "HEAD")


class HookAnswer(NamedTuple):
    """What a hook gives back: what to print, and the sessions to end without keeping the agent waiting."""

    output: str = ""
    over: tuple[str, ...] = ()


class Hooks:
    """What an agent's hooks call: log what happened, and answer with what the agent should know now.

    `contexts` belongs to an index that waits for nobody and asks no language model.
    """

    def __init__(self, vault: Vault, sessions: Sessions, contexts: Contexts) -> None:
        self._vault = vault
        self._sessions = sessions
        self._contexts = contexts

    def hook(self, event: str, call: HookCall, agent: Agent) -> HookAnswer:
        """Log what an agent tells, and give it what it should know now.

        `session-start` gives what holds whatever the task is, and what has to do with what CONTINUITY.md or the
        branch says is being done; `prompt` what bears on the prompt and was not shown in this session yet; `tool` is only
        logged; at `stop` (for some agents `ask`) its model may be asked once what to remember; at
        `session-end` the session is to be ended.

        Raises:
            UsageError: there is no such event.
        """
        from memory_kb.agents.agent import EVENTS
        from memory_kb.agents.payloads import format_answer

        if event not in EVENTS:
            raise UsageError(f"unknown hook {event[:40]!r}", f"hooks are {', '.join(EVENTS)}")
        if event == "session-end":
            return HookAnswer(
                over=(call.session,) if call.session and self._sessions.files.path(call.session).exists() else ()
            )
        is_echo = self._log_call(event, call, agent)
        if agent.question and event == agent.question[0] and not is_echo:
            return HookAnswer(self._ask_to_remember(call, agent))
        if is_echo or event not in ("session-start", "prompt"):
            return HookAnswer()
        over = self._abandoned(call.session) if event == "session-start" else ()
        if not self._vault.settings.context.hooks:
            return HookAnswer(over=over)
        if event == "prompt" and not (call.prompt and agent.takes_prompt_context):
            return HookAnswer()
        context = self._start_context(call, agent) if event == "session-start" else self._prompt_context(call, agent)
        return HookAnswer(format_answer(agent, event, context), over)

    def _ask_to_remember(self, call: HookCall, agent: Agent) -> str:
        """Return the question what to remember, once work was done and where no language model reads the session."""
        from memory_kb.learning.ask_agent import ASKED, QUESTION, is_headless, should_ask

        has_model = self._vault.settings.llm.provider not in ("none", "offline")
        if call.session is None or not call.can_be_asked or has_model or not self._vault.settings.learning.ask_agent:
            return ""
        if is_headless(self._vault.environ):
            return ""
        from memory_kb.agents.payloads import format_question
        from memory_kb.store.events import Event
        from memory_kb.store.session_log import prepare
        from memory_kb.text import wrap

        with self._sessions.files.writing(call.session) as writer:
            if writer.is_empty or not should_ask(self._sessions.files.recent(call.session, _MAX_LOG)):
                return ""
            event = Event(type="event", event=ASKED, agent=agent.name)
            writer.append(prepare(event, self._vault.clock(), writer.first).event)
        return format_question(agent, wrap(QUESTION))

    def hook_finish(self, sessions: Iterable[str]) -> None:
        """End sessions that agents are done with, and do what follows."""
        for session in sessions:
            self._sessions.end(session)
            self._open_mark(session).unlink(missing_ok=True)

    def _open_mark(self, session: str) -> Path:
        from memory_kb.store.session_log import HOOKED

        return self._sessions.files.folder / HOOKED / session

    def _log_call(self, event: str, call: HookCall, agent: Agent) -> bool:
        """Append what happened to the session; tell whether it was there already, seconds ago.

        Two configurations of one agent, a person's and a project's, both call us.
        """
        from memory_kb.learning.ask_agent import COMPACTION
        from memory_kb.store.events import Event, format_time
        from memory_kb.store.session_log import prepare

        if call.session is None:
            return False
        now = self._vault.clock()
        with self._sessions.files.writing(call.session) as writer:
            events = list(call.events)
            if event == "session-start" or writer.is_empty:
                args = {"cwd": call.folders[0]} if call.folders else {}
                if call.source in (COMPACTION, "clear", "resume"):
                    args["source"] = call.source
                events.insert(
                    0,
                    Event(
                        type="event",
                        event="start" if writer.is_empty else "resume",
                        agent=agent.name,
                        args=args or None,
                    ),
                )
            done = [prepare(one, now, writer.first).event for one in events]
            if done and writer.last and writer.last.ts >= format_time(now - _ECHO) and _is_same(writer.last, done[-1]):
                return True
            is_new = writer.is_empty
            for one in done:
                writer.append(one)
        if is_new or event == "session-start":
            mark = self._open_mark(call.session)
            make_folder(mark.parent)
            append_plain(mark).close()
        return False

    def _abandoned(self, session: str | None) -> tuple[str, ...]:
        """Return sessions that agents began and nobody ended, which nothing has happened in for an hour."""
        try:
            marks = sorted(os.listdir(self._open_mark("x").parent))
        except OSError:
            return ()
        files = [(name, self._sessions.files.path(name)) for name in marks if name != session]
        return tuple(
            name for name, file in files if file.exists() and time.time() - file.stat().st_mtime > _IDLE_SECONDS
        )[:5]

    def _start_context(self, call: HookCall, agent: Agent) -> str:
        """Return what a session starts with; where it goes on with what it knew, only what is new."""
        from memory_kb.context.gather import Wanted
        from memory_kb.context.prompts import choose
        from memory_kb.context.session_start import build_start, read_start

        settings = self._vault.settings.context
        goes_on = call.source == "resume"
        shown = self._shown_in(call.session) if goes_on else frozenset[str]()
        material = self._contexts.read(read_start).without(shown)
        if goes_on and shown:
            material = replace(material, proposals=0)
        task = self._current_task(call)
        found = choose(self._contexts.gather_fitting(Wanted(task)), shown, settings.floor) if task else []
        fitting = [one.memory for one in found]
        given = build_start(material, fitting, self._vault.clock().date(), self._assess, _MAX_CHARS)
        self._log_given("context" if goes_on else _START, given, call, agent, task)
        return given.text

    def _prompt_context(self, call: HookCall, agent: Agent) -> str:
        """Return what bears on a prompt and was not shown in this session yet."""
        from memory_kb.context.prompts import build_prompt_context, find_task

        task = find_task(call.prompt)
        if not task:
            return ""
        from memory_kb.context.gather import Wanted

        material = self._contexts.gather_fitting(Wanted(task))
        floor, today = self._vault.settings.context.floor, self._vault.clock().date()
        given = build_prompt_context(material, self._shown_in(call.session), floor, today, self._assess)
        self._log_given("context", given, call, agent, task)
        return given.text

    def _log_given(self, verb: str, given: Given, call: HookCall, agent: Agent, query: str) -> None:
        if given.ids or verb == _START:
            time_now = format_time(self._vault.clock())
            session = call.session or self._vault.session
            RetrievalLog(self._vault.machine / "log").append(
                Retrieval(time_now, verb, given.ids, query, session, agent.name, injected=True)
            )

    def _assess(self, memory: Memory) -> ClaimState:
        from memory_kb.learning.citations import assess
        from memory_kb.store.project import ProjectFiles

        return assess(
            memory, ProjectFiles(self._vault.folder, self._vault.environ, _GIT_SECONDS), self._vault.clock().date()
        )

    def _shown_in(self, session: str | None) -> frozenset[str]:
        """Return the entries that were put before an agent in a session since its context was last empty."""
        if session is None:
            return frozenset()
        from memory_kb.store import logs as jsonlines

        try:
            with read_plain(self._vault.machine / "log" / "retrievals.jsonl") as stream:
                stream.seek(max(0, stream.seek(0, os.SEEK_END) - _MAX_LOG))
                data = stream.read()
        except OSError:
            return frozenset()
        word = session.encode()
        shown: set[str] = set()
        for line in (jsonlines.parse(line) for line in data.split(b"\n") if word in line):
            if line and line.get("session") == session and line.get("injected") is True:
                if line.get("verb") == _START:
                    shown.clear()
                shown.update(map(str, line.get("ids") or ()))
        return frozenset(shown)

    def _current_task(self, call: HookCall) -> str:
        """Return what is being done, as CONTINUITY.md says, else the branch; "" where neither does."""
        try:
            data = (self._vault.scope_folder("project") / "CONTINUITY.md").read_bytes()
        except OSError:
            data = b""
        words = ""
        if data:
            from memory_kb.learning.continuity import own_words

            words = own_words(data.decode("utf-8", "replace"), _MAX_TASK)
        return words or _branch_words(call.folders)


def _is_same(last: Event, event: Event) -> bool:
    """Tell whether two events are one that was told twice."""
    if event.type == "message":
        return (last.type, last.role, last.content) == (event.type, event.role, event.content)
    if event.type == "event":
        sources = [(one.args or {}).get("source") for one in (last, event)]
        return last.type == "event" and last.event in ("start", "resume") and sources[0] == sources[1]
    return event.call_id is not None and (last.type, last.call_id) == (event.type, event.call_id)


def _branch_words(folders: Iterable[str]) -> str:
    """Return the words of the branch that is checked out, unless it is one that says nothing."""
    for folder in folders:
        try:
            with read_plain(Path(folder, ".git", "HEAD")) as stream:
                head = stream.read(500).decode("utf-8", "replace")
        except OSError:
            continue
        found = re.match(r"ref: refs/heads/(\S+)", head)
        if found and found[1] not in _PLAIN_BRANCHES:
            return " ".join(re.findall(r"[^\W_]+", found[1]))
    return ""
