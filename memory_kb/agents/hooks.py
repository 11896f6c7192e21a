"""What memory-kb does when an agent calls it at a hook."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import UsageError
from memory_kb.plainfiles import read_plain
from memory_kb.store.logs import log_shown

if TYPE_CHECKING:
    from memory_kb.agents.agent import Agent
    from memory_kb.agents.payloads import HookCall
    from memory_kb.context.gather import Material
    from memory_kb.context.service import Context, Contexts
    from memory_kb.learning.citations import Standing
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.sessions.service import Sessions
    from memory_kb.store.events import Event
    from memory_kb.store.plan import Memory
    from memory_kb.vault import Vault

#: The most that is put before an agent at once: Claude Code cuts at 10,000 characters.
_MAX_CHARS = 9_000
#: The part of a prompt that tells what it is about.
_MAX_TASK = 2_000
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

    `contexts` and `store` belong to an index that waits for nobody and asks no language model.
    """

    def __init__(self, vault: Vault, sessions: Sessions, contexts: Contexts, store: EntryStore) -> None:
        self._vault = vault
        self._sessions = sessions
        self._contexts = contexts
        self._store = store

    def hook(self, event: str, call: HookCall, agent: Agent) -> HookAnswer:
        """Log what an agent tells, and give it what it should know now.

        `session-start` gives the context of what CONTINUITY.md, or the branch, says is being done;
        `prompt` what has to do with the prompt and was not shown in this session yet; `tool` is only
        logged; at `stop` (for some agents `ask`) its model may be asked once what to remember; at
        `session-end` the session is to be ended.

        Raises:
            UsageError: there is no such event.
        """
        from memory_kb.agents.agent import EVENTS
        from memory_kb.agents.payloads import format_answer
        from memory_kb.learning.ask_agent import COMPACTION

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
        if event == "prompt" and not (call.prompt and agent.takes_prompt_context):
            return HookAnswer()
        context = self._context_for(event, call, agent)
        if event == "session-start" and call.source not in (COMPACTION, "resume"):
            context = "\n".join(filter(None, (context, self._tell_waiting())))
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
                if call.source == COMPACTION:
                    args["source"] = COMPACTION
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
            self._open_mark(call.session).parent.mkdir(exist_ok=True)
            self._open_mark(call.session).touch()
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

    def _context_for(self, event: str, call: HookCall, agent: Agent) -> str:
        from memory_kb.context.gather import Wanted
        from memory_kb.context.service import build_fresh_context

        shown = self._shown_in(call.session)
        task = call.prompt if event == "prompt" else self._current_task(call)
        wanted = Wanted(f"{task[: _MAX_TASK * 3 // 4]} {task[-_MAX_TASK // 4 :]}" if len(task) > _MAX_TASK else task)
        material, _ = self._contexts.gather(wanted)
        left = _without(material, shown, is_first=not shown)
        context = _fit(
            build_fresh_context(left, (), self._vault.clock().date(), self._vault.settings.context, self._assess)
        )
        if context.text:
            log_shown(
                self._vault,
                "context",
                context.ids,
                query=wanted.task,
                session=call.session,
                agent=agent.name,
                injected=True,
            )
        return context.text

    def _tell_waiting(self) -> str:
        """Return one line about the proposals that wait for the person, or "" where none do."""
        from memory_kb.learning.review import is_snoozed
        from memory_kb.model import EVERYTHING
        from memory_kb.text import wrap

        today = self._vault.clock().date()
        proposed = self._store.all(EVERYTHING._replace(statuses=("proposed",)))
        count = sum(not is_snoozed(memory, today) for memory in proposed)
        if not count:
            return ""
        what = "1 proposal waits" if count == 1 else f"{count:,} proposals wait"
        return wrap(f"{what} for the person's review: `memory-kb review`.")

    def _assess(self, memory: Memory) -> Standing:
        from memory_kb.learning.citations import assess
        from memory_kb.store.project import ProjectFiles

        return assess(
            memory, ProjectFiles(self._vault.folder, self._vault.environ, _GIT_SECONDS), self._vault.clock().date()
        )

    def _shown_in(self, session: str | None) -> frozenset[str]:
        """Return the entries that were shown in a session."""
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
        lines = (jsonlines.parse(line) for line in data.split(b"\n") if word in line)
        return frozenset(
            str(one) for line in lines if line and line.get("session") == session for one in line.get("ids") or ()
        )

    def _current_task(self, call: HookCall) -> str:
        """Return what is being done, as CONTINUITY.md says, else the branch, else the name of the project."""
        try:
            data = (self._vault.scope_folder("project") / "CONTINUITY.md").read_bytes()
        except OSError:
            data = b""
        words = ""
        if data:
            from memory_kb.learning.continuity import own_words

            words = own_words(data.decode("utf-8", "replace"), _MAX_TASK // 4)
        return words or _branch_words(call.folders) or self._vault.folder.name or "project"


def _is_same(last: Event, event: Event) -> bool:
    """Tell whether two events are one that was told twice."""
    if event.type == "message":
        return (last.type, last.role, last.content) == (event.type, event.role, event.content)
    if event.type == "event":
        return last.type == "event" and last.event in ("start", "resume")
    return event.call_id is not None and (last.type, last.call_id) == (event.type, event.call_id)


def _branch_words(folders: Iterable[str]) -> str:
    """Return the words of the branch that is checked out, unless it is one that says nothing."""
    for folder in folders:
        try:
            head = Path(folder, ".git", "HEAD").read_bytes()[:500].decode("utf-8", "replace")
        except OSError:
            continue
        found = re.match(r"ref: refs/heads/(\S+)", head)
        if found and found[1] not in _PLAIN_BRANCHES:
            return " ".join(re.findall(r"[^\W_]+", found[1]))
    return ""


def _without(material: Material, shown: Collection[str], *, is_first: bool) -> Material:
    """Return what was not shown yet; what always holds only where nothing was."""
    return replace(
        material,
        institutional=material.institutional if is_first else (),
        baseline=material.baseline if is_first else (),
        rules=[one for one in material.rules if one.id not in shown],
        found=[one for one in material.found if one.memory.id not in shown],
        skills=[one for one in material.skills if one.memory.id not in shown],
        proxy=[one for one in material.proxy if one.memory.id not in shown],
        look_up=lambda entry_id: None if entry_id in shown else material.look_up(entry_id),
    )


def _fit(context: Context) -> Context:
    """Return a context that an agent takes whole: sections at the end go, or all but the beginning of the first."""
    from memory_kb.context.framing import frame

    sections = [section for section in context.sections if section.text]
    while sections and len(frame("\n\n".join(section.text for section in sections))) > _MAX_CHARS:
        if len(sections) == 1:
            room = _MAX_CHARS - len(frame("")) - 100
            cut = sections[0].text[:room].rpartition("\n")[0] or sections[0].text[:room]
            sections[0] = replace(sections[0], text=f"{cut}\n… (the rest: `memory-kb context`)\n--- end ---")
            break
        sections.pop()
    return replace(
        context,
        sections=tuple(sections),
        text=frame("\n\n".join(section.text for section in sections)) if sections else "",
    )
