"""Select what of a session may be sent to a language model."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from memory_kb.credentials import redact
from memory_kb.injected import is_own_call, strip
from memory_kb.store.events import FRAME, Event, cut, strings_of
from memory_kb.text import shorten

#: Characters of what was done, of what failed, and of what people said.
EXECUTION_CHARS, HUMAN_CHARS = 10_000, 12_000
#: A tool's result that is longer is not a person's answer.
ANSWER_CHARS = 500
#: The longest piece of one event, and of one line about a tool.
_PIECE_CHARS, _TOOL_CHARS = 3_000, 200
_CLEANED_CHARS = 20_000
#: Events after a failure that may show what made it work.
_RECOVERY = 4
_TASK_CHARS = 200
_HUMAN_ROLES = ("user", "human")
_ASKING = re.compile(
    r"ask[-_ ]?(?:user|human|person)|askuser|request[-_]user[-_]input|user[-_]?question", re.IGNORECASE
)
#: Tools that bring in pages which anybody may have written; what they return is not repeated.
_WEB = re.compile(r"web|browser|fetch|http|url|crawl|scrape", re.IGNORECASE)


class RecordPiece(NamedTuple):
    """A piece of what is shown; `number` is the event's, or that of a source in its list, `ts` when it happened."""

    number: int
    who: str
    text: str
    ts: str = ""


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """Passages in their order; `missing` were left out after the first `head` of them."""

    passages: tuple[RecordPiece, ...] = ()
    head: int = 0
    missing: int = 0

    @property
    def text(self) -> str:
        """The passages as a model reads them, with a mark where some are missing."""
        lines = [_show(passage) for passage in self.passages]
        if self.missing:
            lines.insert(self.head, f"[… {self.missing:,} more left out …]")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session as it may be shown.

    Attributes:
        humans: what people said.
        execution: what the agent said and did.
        errors: what failed, with what came after it.
        seq: the number of the last event.
        day: when it was worked on last, as an ISO date, or "".
        task_text: what it was for, in a few words.
    """

    humans: ShownRecord
    execution: ShownRecord
    errors: ShownRecord
    job: str | None = None
    task: str | None = None
    seq: int = 0
    day: str = ""
    task_text: str | None = None


def _show(passage: RecordPiece) -> str:
    """Return a passage, its further lines moved in so that none looks like another passage."""
    return f"[{passage.number}] {passage.who}: " + passage.text.replace("\n", "\n    ")


def _cut_middle(passages: Iterable[RecordPiece], limit: int) -> ShownRecord:
    """Return the first and the last of some passages, each of half the characters there are."""
    half = limit // 2
    left = deque(_fit(passage, half) for passage in passages)
    head, tail = list[RecordPiece](), deque[RecordPiece]()
    room = half
    while left and (room := room - len(_show(left[0])) - 1) >= 0:
        head.append(left.popleft())
    room = half
    while left and (room := room - len(_show(left[-1])) - 1) >= 0:
        tail.appendleft(left.pop())
    return ShownRecord((*head, *tail), len(head), len(left))


def _fit(passage: RecordPiece, half: int) -> RecordPiece:
    passage = passage._replace(text=cut(passage.text, min(_PIECE_CHARS, half - 100)))
    if len(_show(passage)) >= half:  # so many lines that moving them in makes it too long
        passage = passage._replace(text=" ".join(passage.text.split()))
    return passage


def read_conversation(events: Iterable[Event]) -> Conversation:
    """Return what may be shown of a session.

    Example:
        >>> read_conversation([Event(seq=1, role="user", content="Use UTC.")]).humans.text
        '[1] user: Use UTC.'
    """
    reader = _ConversationReader()
    for event in events:
        reader.take(event)
    return reader.conversation()


class _ConversationReader:
    """One pass over the events of a session."""

    def __init__(self) -> None:
        self._humans, self._execution, self._errors = list[RecordPiece](), list[RecordPiece](), list[RecordPiece]()
        self._subagents, self._own_calls = set[str](), set[str]()
        self._recovering = 0
        self._number, self._day = 0, ""
        self._job: str | None = None
        self._task: str | None = None

    def take(self, event: Event) -> None:
        self._number = max(self._number + 1, event.seq)
        self._job, self._task = self._job or event.job, self._task or event.task
        if not (self._day and event.event in FRAME):
            self._day = event.ts[:10] or self._day
        if event.injected == "whole":
            return
        if event.role == "agent" and event.agent:
            self._subagents.add(event.agent)
        if is_human(event):
            if text := clean(event.content):
                self._humans.append(RecordPiece(self._number, "user", text, event.ts))
        elif event.type == "message" and event.role == "assistant" and event.agent not in self._subagents:
            self._do("assistant", clean(event.content), event.ts)
        elif event.type == "tool_call":
            self._take_call(event)
        elif event.ok is False or (event.type == "event" and event.event == "error"):
            self._take_failure(event)

    def _take_call(self, event: Event) -> None:
        if is_own_call(event.tool, event.args):
            if event.call_id:
                self._own_calls.add(event.call_id)
            return
        arguments = " ".join(strings_of(event.args)) if event.args else ""
        self._do("tool", f"{event.tool or 'tool'}: {shorten(clean(arguments[:2_000]), _TOOL_CHARS)}", event.ts)

    def _take_failure(self, event: Event) -> None:
        if event.call_id in self._own_calls or is_own_call(event.tool, None):
            return
        text = "" if event.tool and _WEB.search(event.tool) else clean((event.error or event.content or "")[:2_000])
        line = f"{event.tool or event.event or 'tool'}: {shorten(text, _TOOL_CHARS)}".rstrip(": ")
        passage = RecordPiece(self._number, "failed", line, event.ts)
        self._recovering = _RECOVERY
        self._errors.append(passage)
        self._execution.append(passage)

    def _do(self, who: str, text: str, ts: str) -> None:
        if not text:
            return
        passage = RecordPiece(self._number, who, text, ts)
        self._execution.append(passage)
        if self._recovering:
            self._recovering -= 1
            self._errors.append(passage)

    def conversation(self) -> Conversation:
        return Conversation(
            _cut_middle(self._humans, HUMAN_CHARS),
            _cut_middle(self._execution, EXECUTION_CHARS),
            _cut_middle(self._errors, EXECUTION_CHARS),
            self._job,
            self._task,
            self._number,
            self._day,
            shorten(self._humans[0].text, _TASK_CHARS) if self._humans else None,
        )


def is_human(event: Event) -> bool:
    """Return whether an event is what a person said; a tool's result is only as an answer to a question.

    Example:
        >>> is_human(Event(role="user", content="Yes.")), is_human(Event(type="tool_result", role="user", tool="Bash", content="x" * 501))
        (True, False)
    """
    if event.type == "message" and event.tool is None:
        return event.role in _HUMAN_ROLES
    if event.type not in ("message", "tool_result") or event.ok is False:
        return False
    asks = event.tool is not None and _ASKING.search(event.tool) is not None
    return (asks or event.role in _HUMAN_ROLES) and len(event.content or "") <= ANSWER_CHARS


def clean(text: str | None) -> str:
    """Return a text without what memory-kb put there and without credentials."""
    # Far more than is shown of one text, so that half a credential at the cut is not shown either.
    return redact(cut(strip(text or ""), _CLEANED_CHARS)).text.replace("\0", "").strip()
