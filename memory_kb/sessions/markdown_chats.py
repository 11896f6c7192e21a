"""Read conversations kept as Markdown: by people, Cursor and SpecStory by turns, by aider by the signs of its lines.

SpecStory saves other agents' sessions in `.specstory/history/*.md`; Cursor exports chats, and keeps transcripts in
`~/.cursor/projects/<project>/agent-transcripts/*.jsonl`; aider logs all sessions of a project in
`.aider.chat.history.md`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, groupby
from typing import NamedTuple

from memory_kb.markdown.lists_and_fences import FenceState
from memory_kb.sessions.transcripts import EventMaker, LineResult, RawLine, object_of, read_records, records_of
from memory_kb.store.session_events import MAX_EVENT_TEXT, Event, normal_time
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
#: The ways in which a turn may be marked: a heading, bold letters, a word.
_STYLES = (
    re.compile(
        rf"#{{1,6}}\s+(?:[^\w\s#]+\s*)?(?:\*\*)?{_NAME}(?:\*\*)?(?:\s+(?:said|says|wrote))?\s*:?{_WHEN}\s*:?\s*(?P<rest>)",
        re.IGNORECASE,
    ),
    re.compile(rf"(?:\*\*|__)(?:[^\w\s*]+\s*)?{_NAME}{_WHEN}\s*:?\s*(?:\*\*|__)\s*:?(?P<rest>.*)", re.IGNORECASE),
    re.compile(rf"(?-i:(?=[A-Z])){_NAME}{_WHEN}\s*:(?:\s+(?P<rest>.*)|$)", re.IGNORECASE),
)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?)?")
#: A moment as a computer in America writes it, with AM or PM and the month first, or one in Europe.
_LOCAL_MOMENT = re.compile(r"\d{1,2}/\d{1,2}/\d{4}, \d{1,2}:\d\d:\d\d(?P<half> [AP]M)?")
_RULE_OR_NOTHING = re.compile(r"(?:-{3,}|\*{3,}|_{3,})?")
_LONGEST = 4 * MAX_EVENT_TEXT


class Turn(NamedTuple):
    """What one side said; `mark` is what is written behind its name, such as a time.

    The role `preamble` is that of what comes before the first turn.
    """

    role: str
    text: str
    mark: str = ""


def read_chat(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Return the turns of a conversation; its first turn gives the session its id."""
    return _read_turns(turns_of(lines), EventMaker("md"), _read_turn)


def _read_turn(turn: Turn, made: EventMaker) -> None:
    if turn.role != "preamble":
        made.message(turn.role, turn.text)


def _read_turns(
    turns: Iterable[Turn], made: EventMaker, read: Callable[[Turn, EventMaker], None]
) -> Iterator[LineResult]:
    """Yield the events of a conversation by its turns."""
    is_begun = False
    for turn in turns:
        if turn.role == "preamble":
            read(turn, made)
            continue
        made.ts = _time_in(turn.mark) or made.ts
        if not is_begun:
            made.is_named = made.session is not None
            made.session = made.session or _name_session(turn)
            yield made.begin()
            is_begun = True
        read(turn, made)
        yield from made.results(_key(turn))


def _key(turn: Turn) -> bytes:
    return f"{turn.role}\n{turn.text}".encode("utf-8", "replace")


def _name_session(turn: Turn) -> str:
    words = re.sub(r"[^a-z0-9-]", "", slugify(turn.text[:80], 40)).strip("-")
    return f"chat-{words + '-' if words else ''}{hash_of(_key(turn))[:8]}"


def _time_in(text: str) -> str:
    if local := _LOCAL_MOMENT.search(text):
        form = "%m/%d/%Y, %I:%M:%S %p" if local["half"] else "%d/%m/%Y, %H:%M:%S"
        try:
            return normal_time(datetime.strptime(local[0], form).replace(tzinfo=UTC).isoformat())
        except ValueError:
            return ""
    found = _MOMENT.search(text)
    return normal_time(found[0]) if found else ""


def turns_of(lines: Iterable[RawLine], styles: Sequence[re.Pattern[str]] = _STYLES) -> Iterator[Turn]:
    """Yield the turns of a conversation, after what comes before the first.

    The first mark decides which of the `styles` marks turns in this file, so that a `User:` inside an answer is no turn
    where headings mark them. Marks inside of code are none.

    Example:
        >>> [tuple(turn[:2]) for turn in turns_of([b"User: hi", b"Assistant:", b"hello", b"there"])]
        [('user', 'hi'), ('assistant', 'hello\\nthere')]
    """
    fence, size, turn, text = FenceState(), 0, Turn("preamble", ""), list[str]()
    for line in _texts_of(lines):
        is_unmarked = fence.advance(line) or len(line) >= _LONGEST
        marks = () if is_unmarked else (style.fullmatch(line.strip()) for style in styles)
        if mark := next(filter(None, marks), None):
            styles = (mark.re,)
            yield from _close(turn, text)
            turn = Turn(_ROLE_OF[mark["name"].lower()], "", mark["when"] or "")
            text, size, line = [], 0, mark["rest"] or ""  # noqa: PLW2901 - what stands behind the mark is text
        size += len(line) + 1
        if size < _LONGEST:
            text.append(line)
    yield from _close(turn, text)


def _texts_of(lines: Iterable[RawLine]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield (line or b"").decode("utf-8" if number else "utf-8-sig", "replace").rstrip("\r\n")


def _close(turn: Turn, text: list[str]) -> Iterator[Turn]:
    while len(text) > 1 and _RULE_OR_NOTHING.fullmatch(text[-1].strip()):
        text.pop()
    if joined := "\n".join(text).strip():
        yield turn._replace(text=joined)


# -- SpecStory ----------------------------------------------------------------------------------

_SPECSTORY = "<!-- Generated by SpecStory"
_SESSION = re.compile(r"<!-- (?P<agent>[\w .-]+?) Session (?P<id>[\w-]{8,80}) \((?P<when>[^)]*)\) -->")
_SPECSTORY_TURN = re.compile(r"_\*\*(?P<name>User|Agent|Assistant)(?P<when>[^*\n]*)\*\*_(?P<rest>)")
#: A thought or a call within an answer; of a call the older forms, in their order, have a line, the file or the change.
_BLOCK = re.compile(
    r"<think>(?P<thought>.*?)</think>|<tool-use\b[^>]*?data-tool-name=\"(?P<tool>[^\"]*)\"[^>]*>(?P<body>.*?)</tool-use>"
    r"|^Tool use: \*\*(?P<called>[^*\n]+)\*\*(?P<said>.*?)(?=^---$|^Tool use: |\Z)"
    r"|^Read file: (?P<read>[^\n]+)$|^---\n+(?:_\*{4}_\n+)?```diff\n(?P<change>(?:(?!```)[^\n]*\n)*)```$",
    re.DOTALL | re.MULTILINE,
)
_WENT = re.compile(r"^(?:(?P<failed>Error)|Result):$", re.MULTILINE)
_MARKUP = re.compile(r"</?(?:details|summary)>")
_COMMAND = re.compile(r"```(?:bash|sh|shell)\n(.*?)\n```|^`([^`\n]+)`[ \t]*$", re.DOTALL | re.MULTILINE)
#: The file of a call: named by its first line up to the end, or on a line of its own, else by what the tool said.
_FILE = re.compile(
    r"\A[^\n]*(?:\b(?:Read|Edit) file: (?!undefined$)|\bApply patch for )(?P<named>[^\n]+)"
    r"|^[ \t]*`(?P<quoted>(?!\w+://)[^`\n]+)`[ \t]*$"
    r"|(?:\b[Ff]ile(?: created successfully at)?:? |\bedits to )`?(?P<said>(?:[./~]|[A-Za-z]:)[^\s`]*[\w])`?"
    r"|\bthe following files:\n[AM] (?P<listed>\S+)",
    re.MULTILINE,
)


def read_specstory(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Return the events of a session; it keeps the id that its agent gave it."""
    turns = chain.from_iterable(map(_split_answer, turns_of(lines, [_SPECSTORY_TURN])))
    return _read_turns(turns, EventMaker("ss"), _read_specstory_turn)


def _split_answer(turn: Turn) -> Iterator[Turn]:
    """Yield an answer in pieces, each a text, a thought or a call, which keep their names while the answer grows."""
    place, pieces = 0, list[str]()
    for block in _BLOCK.finditer(turn.text) if turn.role == "assistant" else ():
        pieces += [turn.text[place : block.start()], block[0]]
        place = block.end()
    for piece in (*pieces, turn.text[place:]):
        if piece.strip("-\n "):
            yield turn._replace(text=piece)


def _read_specstory_turn(turn: Turn, made: EventMaker) -> None:
    if turn.role == "preamble":
        if named := _SESSION.search(turn.text):
            made.session, made.agent = named["id"], slugify(named["agent"], 40)
        made.ts = (named and normal_time(named["when"])) or _time_in(turn.text)
        return
    if turn.role == "user":
        made.from_person(turn.text, role="agent" if "sidechain" in turn.mark else "user")
        return
    block = _BLOCK.fullmatch(turn.text)
    if block is None:
        made.message("assistant", re.sub(r"(?m)^---$\n?", "", turn.text).strip())
    elif block["thought"] is not None:
        made.thinking(_MARKUP.sub(" ", block["thought"]).strip())
    elif block["tool"] is not None:
        _read_tool(block["tool"], block["body"], made)
    elif block["called"] is not None:
        went = _WENT.search(block["said"])
        _read_tool(block["called"], block["said"], made, ok=not went["failed"] if went else None)
    elif block["read"] is not None:
        file = block["read"].strip()
        _add_done(made, "read_file", {} if file == "undefined" else {"file_path": file})
    else:
        _add_done(made, "edit", {"change": block["change"].rstrip("\n")})


def _read_tool(name: str, body: str, made: EventMaker, *, ok: bool | None = None) -> None:
    """Add a call and its answer; of the arguments only command and file can be known from the text."""
    text = html.unescape(_MARKUP.sub("\n", body)).strip()
    command, file = _COMMAND.search(text), _FILE.search(text)
    args = {"file_path": (file[file.lastgroup or 0]).strip()} if file else {}
    if command and re.search(r"bash|shell|command|terminal|exec", name, re.IGNORECASE):
        args = {"command": command[1] or command[2]}
    made.add(Event(type="tool_call", role="assistant", tool=name, args=args or None))
    made.tool_result(text, ok=ok, tool=name)


def _add_done(made: EventMaker, tool: str, args: dict[str, str], content: str | None = None) -> None:
    """Add a call of which nothing but its success is known."""
    made.add(Event(type="tool_call", role="assistant", tool=tool, args=args or None, ok=True, content=content))


# -- Cursor -------------------------------------------------------------------------------------

_EXPORTED = re.compile(r"_Exported on .{4,60} from Cursor\b")
_CURSOR_TURN = re.compile(r"\*\*(?P<name>User|Cursor)\*\*(?P<when>)(?P<rest>)")


def read_cursor(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Return the events of a chat, in either form."""
    rest = iter(lines)
    first = next((line for line in rest if line and line.strip()), b"")
    whole = chain([first], rest)
    if first.lstrip().startswith(b"{"):
        made = EventMaker("cu", "cursor")
        return read_records(records_of(whole), made, made.begin(), _read_cursor_record)
    return _read_turns(turns_of(whole, [_CURSOR_TURN]), EventMaker("cu", "cursor"), _read_turn)


def _read_cursor_record(record: Mapping[str, object], made: EventMaker) -> None:
    content = object_of(record.get("message")).get("content")
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, dict) and block.get("type") == "tool_use":
            made.call(block.get("name"), object_of(block.get("input")) or None)
        else:
            made.message("user" if record.get("role") == "user" else "assistant", block)


# -- aider --------------------------------------------------------------------------------------

#: `#### ` begins a line that the person typed, `> ` one that aider itself printed; the rest is the model's answer.
_AIDER_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_AIDER_SIGNS = {"####": "user", ">": "tool"}
_AIDER_COMMANDS = re.compile(r"(?:[/!]\w[^\n]*(?:\n|\Z))+")
#: What aider asks; it logs the question with the answer as if the person had typed both.
_AIDER_QUESTION = re.compile(r"[^\n]*\(Y\)es/\(N\)o[^\n]*")
_EDITED = re.compile(r"(?:Applied edit to|Wrote|Created) (\S.*?)\s*")
_COMMITTED = re.compile(r"Commit [0-9a-f]{7,40} \S")


def read_aider(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Yield the events of all sessions; each is named after the moment at which it began."""
    made = EventMaker("ad", "aider")
    for (kind, _), block in groupby(_aider_lines(lines), key=lambda line: line[:2]):
        text = "\n".join(line for *_, line in block)[:_LONGEST].strip()
        if kind == "start":
            made.ts = normal_time(text)
            made.session = f"aider-{made.ts[:19].replace('-', '').replace(':', '')}"
            yield made.begin()
        elif made.session is not None and text:
            _read_aider_block(kind, text, made)
            yield from made.results(f"{made.session}\n{kind}\n{text}".encode("utf-8", "replace"))


def _aider_lines(lines: Iterable[RawLine]) -> Iterator[tuple[str, int, str]]:
    """Yield each line behind its speaker (`start`, `user`, `tool` or `assistant`) and the number of its session."""
    fence, sessions = FenceState(), 0
    for line in _texts_of(lines):
        if start := _AIDER_START.fullmatch(line):
            fence, sessions = FenceState(), sessions + 1
            yield "start", sessions, start[1]
            continue
        sign, _, rest = line.partition(" ")
        kind = "assistant" if fence.advance(line) else _AIDER_SIGNS.get(sign, "assistant")
        yield kind, sessions, line if kind == "assistant" else rest


def _read_aider_block(kind: str, text: str, made: EventMaker) -> None:
    if kind == "user" and (commands := _AIDER_COMMANDS.match(text)):
        made.notice(commands[0].strip(), "command")
        text = text[commands.end() :]
    is_asked = kind == "user" and _AIDER_QUESTION.fullmatch(text)
    printed = text.split("\n") if kind == "tool" else []
    for edited in filter(None, map(_EDITED.fullmatch, printed)):
        _add_done(made, "edit", {"file_path": edited[1]})
    made.message("system" if kind == "tool" or is_asked else kind, text)
    for line in filter(_COMMITTED.match, printed):
        _add_done(made, "shell", {"command": "git commit"}, line.strip())


def sniff_markdown(text: str, lines: Iterable[RawLine]) -> str | None:
    """Return the format of a conversation in Markdown: `text` is its beginning, `lines` all of it."""
    begun = text.split("\n")
    if _SPECSTORY in text:
        return "specstory"
    if any(_AIDER_START.fullmatch(line) for line in begun):
        return "aider"
    if _EXPORTED.search(text):
        return "cursor"
    # A conversation has turns of a person and of somebody who answers.
    roles = set[str]()
    for turn in turns_of(lines):
        roles.add(turn.role)
        if "user" in roles and roles & {"assistant", "tool"}:
            return "markdown"
    # The oldest files of SpecStory have no other sign.
    return "specstory" if any(map(_SPECSTORY_TURN.fullmatch, begun)) else None
