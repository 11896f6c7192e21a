"""Read conversations that somebody kept as Markdown: `## User`, `**User:**` or `User:` before every turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from memory_kb.sessions.transcripts import LineResult, Origins, RawLine, message, numbered, results, tool_result
from memory_kb.store.events import MAX_TEXT, Event, normal_time
from memory_kb.text import hash_of, slugify

_ROLES = {
    "user": "user, human, me, you, prompt, question",
    "assistant": "assistant, ai, claude, claude code, chatgpt, gpt, codex, copilot, gemini, cursor, model, response, answer, agent",
    "system": "system, developer",
    "tool": "tool, tool result, tool output",
}
_ROLE_OF = {word: role for role, words in _ROLES.items() for word in words.split(", ")}
_NAME = "(?P<name>" + "|".join(sorted(_ROLE_OF, key=len, reverse=True)) + ")"
_WHEN = r"(?P<when>\s*[-–—|,@(\[]*\s*\d[^\n]{0,60})?"
_STYLES = {
    "heading": re.compile(
        rf"#{{1,6}}\s+(?:[^\w\s#]+\s*)?(?:\*\*)?{_NAME}(?:\*\*)?(?:\s+(?:said|says|wrote))?\s*:?{_WHEN}\s*:?\s*(?P<rest>)",
        re.IGNORECASE,
    ),
    "bold": re.compile(
        rf"(?:\*\*|__)(?:[^\w\s*]+\s*)?{_NAME}{_WHEN}\s*:?\s*(?:\*\*|__)\s*:?(?P<rest>.*)", re.IGNORECASE
    ),
    "plain": re.compile(rf"(?-i:(?=[A-Z])){_NAME}{_WHEN}\s*:(?:\s+(?P<rest>.*)|$)", re.IGNORECASE),
}
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?)?")
_LONGEST = 4 * MAX_TEXT


class Turn(NamedTuple):
    """What one side said, and when if the text says."""

    role: str
    text: str
    when: str = ""


class Preamble(NamedTuple):
    """What comes before the turns of a conversation: its session, agent and time, as far as it names them."""

    session: str | None = None
    agent: str | None = None
    ts: str = ""


def read(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Return the turns of a conversation; its first turn gives the session its id."""
    return read_turns(turns_of(lines), "md", lambda _: Preamble(), wanted="## User` or `User:")


def read_turns(
    turns: Iterable[Turn],
    prefix: str,
    read_preamble: Callable[[str], Preamble],
    events_of: Callable[[Turn], Iterable[Event]] | None = None,
    *,
    wanted: str,
) -> Iterator[LineResult]:
    """Yield the events of a conversation by its turns.

    Args:
        turns: as `turns_of` yields them.
        prefix: what the origins of the events begin with.
        read_preamble: reads what comes before the first turn.
        events_of: returns the events of a turn.
        wanted: how a turn would be marked, for the problem where there is none.
    """
    origins, known, session = Origins(prefix), Preamble(), None
    for turn in turns:
        if turn.role == "preamble":
            known = read_preamble(turn.text)
            continue
        known = known._replace(ts=turn.when or known.ts)
        key = f"{turn.role}\n{turn.text}".encode("utf-8", "replace")
        if session is None:
            session = known.session or name_session(turn.text, key)
            start = Event(ts=known.ts, type="event", event="start", agent=known.agent, origin="start")
            yield LineResult(session, start)
        made = (events_of or _events)(turn)
        yield from results(session, numbered(made, origins.name(key), ts=known.ts, agent=known.agent))
    if session is None:
        yield LineResult(problem=f"no turn such as `{wanted}` found", line=1)


def name_session(text: str, key: bytes) -> str:
    """Return a session id for the first turn of a conversation; it stays when the file is moved or grows."""
    words = re.sub(r"[^a-z0-9-]", "", slugify(text[:80], 40)).strip("-")
    return f"chat-{words + '-' if words else ''}{hash_of(key)[:8]}"


def is_conversation(lines: Iterable[RawLine]) -> bool:
    """Return whether a text holds turns of a person and of somebody who answers.

    Example:
        >>> is_conversation([b"a:hover {", b"  cursor: pointer;", b"}"]), is_conversation([b"User: hi", b"AI: hello"])
        (False, True)
    """
    roles = set()
    for turn in turns_of(lines):
        roles.add(turn.role)
        if "user" in roles and roles & {"assistant", "tool"}:
            return True
    return False


def _events(turn: Turn) -> Iterator[Event]:
    return iter([tool_result(turn.text, ok=None)]) if turn.role == "tool" else message(turn.role, turn.text)


def turns_of(lines: Iterable[RawLine], styles: Mapping[str, re.Pattern[str]] = _STYLES) -> Iterator[Turn]:
    """Yield the turns of a conversation, after what comes before the first.

    `styles` are the ways in which turns may be marked. The first mark decides how turns are marked in this file, so that a `User:` inside an answer is
    no turn where headings mark them. Marks inside of code are none.

    Example:
        >>> [tuple(turn[:2]) for turn in turns_of([b"User: hi", b"Assistant:", b"hello", b"there"])]
        [('user', 'hi'), ('assistant', 'hello\\nthere')]
    """
    style, fence, is_front, size = None, "", False, 0
    turn, text = Turn("preamble", ""), list[str]()
    for number, raw in enumerate(lines):
        line = "" if raw is None else raw.decode("utf-8-sig" if number == 0 else "utf-8", "replace").rstrip("\r\n")
        if line == "---" and (number == 0 or is_front):
            is_front = number == 0
            continue
        fenced = _FENCE.match(line)
        if fenced and (not fence or (fenced.group(1).startswith(fence) and line.strip() == fenced.group(1))):
            fence = "" if fence else fenced.group(1)
        style, mark = (style, None) if fence or is_front else _find_mark(line, style, styles)
        if mark:
            if done := _close(turn, text):
                yield done
            when = _MOMENT.search(mark.group("when") or "")
            turn = Turn(_ROLE_OF[mark.group("name").lower()], "", normal_time(when.group()) if when else "")
            text, size, line = [], 0, mark.group("rest") or ""
        size += len(line) + 1
        if size < _LONGEST and not is_front:
            text.append(line)
    if done := _close(turn, text):
        yield done


def _find_mark(
    line: str, style: str | None, styles: Mapping[str, re.Pattern[str]]
) -> tuple[str | None, re.Match[str] | None]:
    """Return how turns are marked, as far as known, and the mark on this line."""
    for name in [style] if style else styles:
        mark = styles[name].fullmatch(line.strip()) if len(line) < _LONGEST else None
        if mark:
            return name, mark
    return style, None


def _close(turn: Turn, text: list[str]) -> Turn | None:
    """Return a turn with its text, without rules between turns; None for an empty one."""
    joined = re.sub(r"(?:\n\s*(?:-{3,}|\*{3,}|_{3,})\s*)+\Z", "", "\n".join(text)).strip()
    return turn._replace(text=joined) if joined else None
