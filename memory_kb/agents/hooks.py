"""Answer the hooks of agents: log the event, and return the context to add."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from memory_kb.agents.agent import EVENTS, Agent
from memory_kb.agents.payloads import HookAnswer, HookCall, format_answer, read_results
from memory_kb.errors import UsageError
from memory_kb.injected_text import mark_as_own
from memory_kb.regular_files import make_folder, open_for_appending, read_file, read_text
from memory_kb.store.logs import START, RetrievalLog, format_time, log_shown
from memory_kb.store.session_events import COMPACTION, Event
from memory_kb.store.session_log import prepare

if TYPE_CHECKING:
    from memory_kb.context.entry_lines import ClaimChecks
    from memory_kb.context.framing import Given
    from memory_kb.context.relevance import PromptMatches
    from memory_kb.context.session_start import StartMaterial
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.memory import Memory
    from memory_kb.reports import WhyNot
    from memory_kb.sessions.service import Sessions
    from memory_kb.vault import Vault

#: The most of what CONTINUITY.md says is being done.
_MAX_TASK = 500
#: The time within which a repeated prompt is the same one, sent by two configurations.
_ECHO = timedelta(seconds=5)
#: Seconds after which a session that nobody ended is over.
_IDLE_SECONDS = 3_600.0
#: How long git may take to find a cited file that is not where it was.
_GIT_SECONDS = 0.3
#: The end of the log of retrievals that is looked through, in bytes.
_MAX_LOG = 8_000_000
#: The end of a session's log in which calls wait for their results, in bytes.
_MAX_LATE = 200_000
#: Entries that a session may start with for the task at hand, before the budget counts.
_MOST_FITTING = 10
#: The most of a rule that a refusal shows.
_MAX_RULE = 600
_REFUSED = (
    "memory-kb refuses this once a session. Change the edit so that it keeps to the rule;"
    " where the rule does not fit here, make the same edit again and it passes."
)


class Hooks:
    """Answer an agent's hooks: log the event, and return what the agent should know now.

    The index is loaded only by what gives context, and waits for nobody.
    """

    def __init__(self, vault: Vault, sessions: Sessions, get_index: Callable[[], VaultIndex]) -> None:
        self._vault = vault
        self._sessions = sessions
        self._get_index = get_index

    def hook(self, event: str, call: HookCall, agent: Agent) -> HookAnswer:
        """Log what an agent sends, and give it what it should know now.

        `session-start` gives what holds whatever the task is, and what has to do with what CONTINUITY.md or the
        branch says is being done; `prompt` what bears on the prompt and was not shown in this session yet;
        `before-tool` refuses an edit that breaks a rule, once; `tool` gives what names the file that was opened or
        edited and was not shown; at `stop` (for some agents `ask`) its model may be asked once what to remember; at
        `session-end` the session is to be ended.
        """
        if event not in EVENTS:
            raise UsageError(f"unknown hook {event[:40]!r}", f"hooks are {', '.join(EVENTS)}")
        if event == "session-end":
            is_logged = call.session is not None and self._sessions.files.path(call.session).exists()
            return HookAnswer(sessions_to_end=(call.session,) if call.session and is_logged else ())
        if event == "before-tool":
            return HookAnswer(format_answer(agent, event, self._refuse_edit(call, agent), agent.refusal))
        owes_start = event == "prompt" and self._owes_start(call, agent)
        if self._log_call(event, call, agent):
            return HookAnswer()
        if agent.question and event == agent.question[0]:
            return HookAnswer(format_answer(agent, event, self._ask_to_remember(call, agent), agent.question[1]))
        sessions_to_end = self._abandoned(call.session) if event == "session-start" else ()
        if not self._vault.settings.context.hooks:
            return HookAnswer(sessions_to_end=sessions_to_end)
        texts = list[str]()
        is_start = event == "session-start"
        is_prompt = event == "prompt" and bool(call.prompt) and agent.takes_prompt_context
        if event == "tool":
            texts.append(self._file_context(call, agent))
        if (is_start and call.source not in agent.late_starts) or (is_prompt and owes_start):
            texts.append(self._start_context(call, agent))
        if is_prompt:
            texts.append(self._prompt_context(call, agent))
        context = "\n\n".join(filter(None, texts))
        needs_background_update = (is_start or is_prompt) and self._get_index().needs_background_update
        return HookAnswer(format_answer(agent, event, context), sessions_to_end, needs_background_update)

    def _owes_start(self, call: HookCall, agent: Agent) -> bool:
        """Return whether a session began anew and its agent dropped what the start gave."""
        if not (agent.late_starts and call.session and self._sessions.files.path(call.session).exists()):
            return False
        last = list(self._sessions.files.recent(call.session, _MAX_LATE))[-1:]
        return any(one.type == "event" and (one.args or {}).get("source") in agent.late_starts for one in last)

    def _ask_to_remember(self, call: HookCall, agent: Agent) -> str:
        """Return the question what to remember, once work was done and where no language model reads the session."""
        settings = self._vault.settings
        has_model = settings.llm.provider not in ("none", "offline")
        may_ask = call.can_be_asked and settings.learning.ask_agent and not has_model
        if call.session is None or not may_ask:
            return ""
        from memory_kb.agents.stop_question import ASKED, QUESTION, is_headless, should_ask

        if is_headless(self._vault.environ, call.transcript):
            return ""
        with self._sessions.files.writing(call.session) as writer:
            if writer.is_empty or not should_ask(self._sessions.files.recent(call.session, _MAX_LOG)):
                return ""
            event = Event(type="event", event=ASKED, agent=agent.name)
            writer.append(prepare(event, self._vault.clock(), writer.first).event)
        return mark_as_own(QUESTION)

    def hook_finish(self, sessions: Iterable[str]) -> None:
        """End sessions that agents are done with, and do what follows."""
        for session in sessions:
            self._sessions.end(session)
            self._sessions.files.hook_mark(session).unlink(missing_ok=True)

    def _log_call(self, event: str, call: HookCall, agent: Agent) -> bool:
        """Append an event to the session; return whether it was logged already, seconds ago.

        Two configurations of one agent, a person's and a project's, both call us.
        """
        if call.session is None:
            return False
        now = self._vault.clock()
        with self._sessions.files.writing(call.session) as writer:
            is_new = writer.is_empty
            events = [*([] if is_new else self._late_results(call, agent)), *call.events]
            if event == "session-start" or is_new:
                args = {"cwd": call.folders[0]} if call.folders else {}
                if call.source in (COMPACTION, "clear", "resume"):
                    args["source"] = call.source
                word = "start" if is_new else "resume"
                events.insert(0, Event(type="event", event=word, agent=agent.name, args=args or None))
            done = [prepare(one, now, writer.first).event for one in events]
            if done and writer.last and writer.last.ts >= format_time(now - _ECHO) and _is_same(writer.last, done[-1]):
                return True
            for one in done:
                writer.append(one)
        if is_new or event == "session-start":
            mark = self._sessions.files.hook_mark(call.session)
            make_folder(mark.parent)
            open_for_appending(mark).close()
        return False

    def _late_results(self, call: HookCall, agent: Agent) -> list[Event]:
        """Return the results of calls that were logged without one, read from the agent's transcript."""
        if not (agent.has_late_results and call.transcript and call.session):
            return []
        open_calls: dict[str, Event] = {}
        for event in self._sessions.files.recent(call.session, _MAX_LATE):
            if event.type == "tool_call" and event.call_id:
                open_calls[event.call_id] = event
            elif event.type == "tool_result":
                open_calls.pop(event.call_id or "", None)
        return read_results(call.transcript, open_calls) if open_calls else []

    def _abandoned(self, session: str | None) -> tuple[str, ...]:
        """Return sessions that agents began and nobody ended, which nothing has happened in for an hour."""
        logs = self._sessions.files
        files = [(name, logs.path(name)) for name in logs.hooked() if name != session]
        return tuple(
            name for name, file in files if file.exists() and time.time() - file.stat().st_mtime > _IDLE_SECONDS
        )[:5]

    def _start_context(self, call: HookCall, agent: Agent) -> str:
        """Return the context of a session's start; of a session that is resumed, only what is new."""
        from memory_kb.context.session_start import build_start, read_start

        goes_on = call.source == "resume"
        shown = self._shown_in(call.session) if goes_on else frozenset[str]()
        today, task = self._vault.today(), self._current_task(call)

        def read(index: SqliteIndex) -> tuple[StartMaterial, list[Memory]]:
            found = self._match_task(index, task).find() if task else ()
            start = read_start(index, today, shown, call.session, goes_on=goes_on)
            return start, [one.memory for one in islice(found, _MOST_FITTING)]

        material, found = self._get_index().read(read)
        fitting = [one for one in found if one.id not in shown]
        given = build_start(material, fitting, today, self._claims(), agent.most_chars)
        return self._give("context" if goes_on else START, given, call, agent, task)

    def _prompt_context(self, call: HookCall, agent: Agent) -> str:
        """Return what bears on a prompt and was not shown in this session yet."""
        from memory_kb.context.hook_context import build_prompt_context, find_task

        task = find_task(call.prompt)
        if not task:
            return ""
        shown, today, claims = self._shown_in(call.session), self._vault.today(), self._claims()

        def build(index: SqliteIndex) -> Given:
            found = self._match_task(index, task).find()
            news = (one for one in found if not one.memory.is_episode_of(call.session))
            return build_prompt_context(news, shown, today, claims)

        return self._give("context", self._get_index().read(build), call, agent, task)

    def why_silent(self, prompt: str, wanted: str, session: str | None = None) -> WhyNot:
        """Return why hooks do not put an entry before an agent at a prompt."""
        from memory_kb.context.hook_context import content_words, explain_silence, find_task
        from memory_kb.index import listing
        from memory_kb.reports import WhyNot

        settings, task = self._vault.settings.context, find_task(prompt)
        shown = self._shown_in(session or self._vault.session)

        def explain(index: SqliteIndex) -> WhyNot:
            entry = listing.find_entry_by_name(self._vault, index, wanted)
            asked = WhyNot(prompt, entry.id, entry.path, "off", "context.hooks is off")
            if not settings.hooks:
                return asked
            if not task:
                said = ", ".join(content_words(prompt)) or "none"
                words = f"the prompt has too few words of its own ({said}): orders and short answers get nothing"
                return asked._replace(step="few-words", reason=words)
            matches, keys = self._match_task(index, task), index.keys_of(entry)
            return explain_silence(asked, matches, keys, shown, settings.floor)

        return self._get_index().read(explain)

    def _file_context(self, call: HookCall, agent: Agent) -> str:
        """Return the entries, not shown in this session yet, that name the file which a tool opened or edited."""
        if not call.session:
            return ""
        from memory_kb.agents.touched_files import find_touched_file

        file = find_touched_file(call, self._vault.project)
        if not file:
            return ""
        from memory_kb.context.hook_context import build_file_context, read_naming

        naming = self._get_index().read(lambda index: read_naming(index, file))
        if not naming:
            return ""
        shown = self._shown_in(call.session, call.subagent)
        given = build_file_context(naming, shown, self._vault.today(), self._claims())
        return self._give("context", given, call, agent, file)

    def _refuse_edit(self, call: HookCall, agent: Agent) -> str:
        """Return why an edit is refused: the rules that it breaks and that refused nothing in this session yet."""
        is_wanted = agent.refusal and self._vault.settings.context.hooks
        if not (call.events and call.events[0].args and call.session and is_wanted):
            return ""
        from memory_kb.agents.touched_files import read_edits
        from memory_kb.learning.guards import find_broken_rules, read_guards, refuse_once
        from memory_kb.learning.playbook import rule_text

        project, memory = self._vault.project, self._vault.memory
        asked = call.events[0]
        edits = read_edits(asked.args or {}, project, Path(call.folders[0]) if call.folders else None)
        edits = [one for one in edits if not (memory and (project / one.path).is_relative_to(memory))]
        if not edits:
            return ""
        reasons = [
            f"{edit.path} would break rule {rule.id}: {rule_text(rule)[:_MAX_RULE]}"
            for rule, edit in find_broken_rules(self._get_index().read(read_guards), edits)
            if refuse_once(self._vault, rule.id, edit.path, call.session, agent.name)
        ]
        return "\n".join((*reasons, _REFUSED)) if reasons else ""

    def _give(self, verb: str, given: Given, call: HookCall, agent: Agent, query: str) -> str:
        """Log which entries an agent is given, and return the text."""
        log_shown(
            self._vault,
            verb,
            given.ids,
            query=query,
            session=call.session,
            agent=agent.name,
            injected=True,
            subagent=call.subagent,
        )
        return given.text

    def _match_task(self, index: SqliteIndex, task: str) -> PromptMatches:
        """Look up what bears on a prompt or a task."""
        from memory_kb.context.hook_context import match_task

        return match_task(index, self._get_index(), task, self._vault.settings.context.floor, self._vault.today())

    def _claims(self) -> ClaimChecks:
        from memory_kb.context.entry_lines import ClaimChecks

        return ClaimChecks(self._vault, _GIT_SECONDS)

    def shown_now(self) -> frozenset[str]:
        """Return what hooks put before the agent that calls, where it is clear which session of the vault that is."""
        going_on = self._sessions.files.hooked()
        named = self._vault.environ.get("CLAUDE_CODE_SESSION_ID")
        return self._shown_in(named or (going_on[0] if len(going_on) == 1 else None))

    def _shown_in(self, session: str | None, subagent: str | None = None) -> frozenset[str]:
        return RetrievalLog(self._vault.machine / "log").shown_in(session, subagent) if session else frozenset()

    def _current_task(self, call: HookCall) -> str:
        """Return what is being done, as CONTINUITY.md says, else the branch; "" where neither does."""
        words = ""
        with contextlib.suppress(OSError):
            data = read_file(self._vault.scope_folder("project") / "CONTINUITY.md", _MAX_LOG)
            from memory_kb.working.continuity import first_own_words

            words = first_own_words(data.decode("utf-8", "replace"), _MAX_TASK)
        return words or _branch_words(call.folders)


def _is_same(last: Event, event: Event) -> bool:
    """Return whether two events are one that was sent twice; the first of two starts begins the session."""
    if event.tool and event.call_id is None:
        return False
    return last._replace(ts=event.ts, seq=event.seq, session=event.session, event=event.event) == event


def _branch_words(folders: Iterable[str]) -> str:
    """Return the words of the branch that is checked out; one such as "main" has too few for any entry."""
    for folder in folders:
        found = re.match(r"ref: refs/heads/(\S+)", read_text(Path(folder, ".git", "HEAD"), 500))
        if found:
            return " ".join(re.findall(r"[^\W_]+", found[1]))
    return ""
