"""Select what of a session may be sent to a language model."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from memory_kb.credentials import redact
from memory_kb.injected_text import is_own_call, remove_injected
from memory_kb.store.session_events import FRAME, Event, cut, strings_of
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
    """A session as it may be shown: what people said, what the agent said and did, what failed and what came after it.

    `day` is the last one it was worked on, as an ISO date or ""; `task_text` what it was for in a few words.
    """

    humans: ShownRecord
    execution: ShownRecord
    errors: ShownRecord
    job: str | None = None
    task: str | None = None
    day: str = ""
    task_text: str | None = None


def _show(passage: RecordPiece) -> str:
    """Return a passage, its further lines moved in so that none looks like another passage."""
    return f"[{passage.number}] {passage.who}: " + passage.text.replace("\n", "\n    ")


def _cut_middle(passages: Iterable[RecordPiece], limit: int) -> ShownRecord:
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
    if len(_show(passage)) >= half:  # it has so many lines that indenting them makes it too long
        passage = passage._replace(text=" ".join(passage.text.split()))
    return passage


def read_conversation(events: Iterable[Event]) -> Conversation:
    """Return what may be shown of a session.

    Example:
        >>> read_conversation([Event(seq=1, role="user", content="Use UTC.")]).humans.text
        '[1] user: Use UTC.'
    """
    humans, execution, errors = list[RecordPiece](), list[RecordPiece](), list[RecordPiece]()
    subagents, own_calls = set[str](), set[str]()
    number, day, job, task, recovering = 0, "", None, None, 0
    for event in events:
        number = max(number + 1, event.seq)
        job, task = job or event.job, task or event.task
        if not (day and event.event in FRAME):
            day = event.ts[:10] or day
        if event.role == "agent" and event.agent:
            subagents.add(event.agent)
        who, text = _read_piece(event, subagents, own_calls)
        piece = RecordPiece(number, who, text, event.ts)
        if not text:
            continue
        if who == "user":
            humans.append(piece)
            continue
        execution.append(piece)
        recovering = _RECOVERY + 1 if who == "failed" else recovering
        if recovering:
            recovering -= 1
            errors.append(piece)
    did, failed = (_cut_middle(some, EXECUTION_CHARS) for some in (execution, errors))
    task_text = shorten(humans[0].text, _TASK_CHARS) if humans else None
    return Conversation(_cut_middle(humans, HUMAN_CHARS), did, failed, job, task, day, task_text)


def _read_piece(event: Event, subagents: Collection[str], own_calls: set[str]) -> tuple[str, str]:
    """Return who did something and what is shown of it, "" for nothing; calls of memory-kb are added to `own_calls`."""
    if event.injected == "whole":
        return "", ""
    if is_human(event):
        return "user", clean_text(event.content)
    if event.type == "message" and event.role == "assistant" and event.agent not in subagents:
        return "assistant", clean_text(event.content)
    if event.type == "tool_call":
        if is_own_call(event.tool, event.args):
            own_calls.update([event.call_id] if event.call_id else [])
            return "", ""
        arguments = " ".join(strings_of(event.args)) if event.args else ""
        return "tool", f"{event.tool or 'tool'}: {shorten(clean_text(arguments[:2_000]), _TOOL_CHARS)}"
    is_failure = event.ok is False or (event.type == "event" and event.event == "error")
    if not is_failure or event.call_id in own_calls or is_own_call(event.tool, None):
        return "", ""
    text = "" if event.tool and _WEB.search(event.tool) else clean_text((event.error or event.content or "")[:2_000])
    return "failed", f"{event.tool or event.event or 'tool'}: {shorten(text, _TOOL_CHARS)}".rstrip(": ")


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


def clean_text(text: str | None) -> str:
    """Return a text without what memory-kb put there and without credentials."""
    # Far more than is shown of one text, so that half a credential at the cut is not shown either.
    return redact(cut(remove_injected(text or ""), _CLEANED_CHARS)).text.replace("\0", "").strip()
