"""CONTINUITY.md: the two sections in it that are memory-kb's, and every other byte that is not (S2-43 to S2-46).

The sections stand between comments, in the form by which `injected` knows our own text, so that
none of it is learned from again. Only what is between the comments is ever replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from memory_kb.entry import Span
from memory_kb.errors import CannotSplice
from memory_kb.notes.injected import END
from memory_kb.notes.plans import Change, NoteText, create_file, write_file
from memory_kb.notes.sheets import newline_of
from memory_kb.reports import RunReport
from memory_kb.text import shorten

CONTINUITY = "CONTINUITY.md"
#: The names of the two sections, with the headings that they have.
SECTIONS = {"relevant": "## Relevant Memories (Auto-Retrieved)", "avoid": "## Mistakes to Avoid (From Learnings)"}
#: A summary is at most as long (S2-36).
_SUMMARY = 120
_MARK = re.compile(r"^\ufeff?[ \t]*<!--[ \t]*memory-kb:(begin|end)\b[ \t]*([\w-]*)[ \t]*-->[ \t]*\r?$", re.MULTILINE)
#: What only a mark of ours says, whole or not.
_TRACE = re.compile(r"<!--\s*memory-kb\b|memory-kb:\s*(?:begin|end|start)\b")
_HEADINGS = re.compile(rf"^\ufeff?[ \t]*(?:{'|'.join(map(re.escape, SECTIONS.values()))})", re.MULTILINE)


class Summarised(Protocol):
    """An entry in one line."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def kind(self) -> str:
        """Its kind."""

    @property
    def text(self) -> str:
        """What it says, on one line."""


class Reminder(NamedTuple):
    """An entry in one line, as a section of CONTINUITY.md names it."""

    id: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class ContinuityView:
    """CONTINUITY.md as it is; `text` is None where there is none, `problem` what is wrong with its marks."""

    path: str
    text: str | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ContinuityReport:
    """What the two sections of CONTINUITY.md name now, and what was written for it."""

    path: str
    relevant: tuple[str, ...]
    avoid: tuple[str, ...]
    run: RunReport
    degraded: tuple[str, ...] = ()


class _Place(NamedTuple):
    """A marked section: what is between the lines of its marks."""

    name: str
    inner: Span


def plan_continuity(
    path: str, note: NoteText | None, relevant: Sequence[Summarised], avoid: Sequence[Summarised]
) -> Change | None:
    """Plan to bring the two sections up to date; None where they say so already.

    A section that is not there is put at the end. Where there is nothing to say, none is made.

    Raises:
        CannotSplice: the marks in the file are damaged; nothing is to be written.

    Example:
        >>> plan = plan_continuity("CONTINUITY.md", None, [Reminder("sem-001", "rule", "Check the type.")], [])
        >>> print(plan.action.data.decode(), end="")
        <!-- memory-kb:begin relevant -->
        ## Relevant Memories (Auto-Retrieved)
        <BLANKLINE>
        - [sem-001] Check the type.
        <!-- memory-kb:end -->
        <BLANKLINE>
        <!-- memory-kb:begin avoid -->
        ## Mistakes to Avoid (From Learnings)
        <!-- memory-kb:end -->
    """
    reason = "What fits the work at hand."
    if note is None:
        return create_file(path, fill("", relevant, avoid), reason) if relevant or avoid else None
    damage = find_damage(note.text)
    if damage:
        raise CannotSplice(f"{path}:{damage.line}: {damage.message}")
    if not (relevant or avoid or _places(note.text)):
        return None
    text = fill(note.text, relevant, avoid)
    return write_file(note, text, reason) if text != note.text else None


def fill(text: str, relevant: Sequence[Summarised], avoid: Sequence[Summarised]) -> str:
    r"""Return a text with its two sections as they are to be, and all else as it is.

    Its marks are whole; `find_damage` tells.

    Example:
        >>> text = fill("# Now\r\n", [Reminder("a", "fact", "One.")], [])
        >>> fill(text, [Reminder("a", "fact", "One.")], []) == text, text.startswith("# Now\r\n\r\n<!-- memory-kb:begin relevant -->\r\n")
        (True, True)
    """
    newline = newline_of(text)
    lines = {"relevant": [name_line(one) for one in relevant], "avoid": [f"- {plain(one.text)}" for one in avoid]}
    inner = {name: [heading, *([""] if lines[name] else []), *lines[name]] for name, heading in SECTIONS.items()}
    places = _places(text)
    for place in reversed(places):
        said = "".join(f"{line}{newline}" for line in inner[place.name])
        text = text[: place.inner.start] + said + text[place.inner.end :]
    there = {place.name for place in places}
    for name in SECTIONS:
        if name not in there:
            text = _append(text, [f"<!-- memory-kb:begin {name} -->", *inner[name], END], newline)
    return text


def _append(text: str, lines: Iterable[str], newline: str) -> str:
    """Return a text with some lines at its end, after a blank one."""
    bare = text.removeprefix("\ufeff")
    if bare and not bare.endswith("\n"):
        text += newline
    if bare and not re.search(r"\n[ \t\r]*\n\Z", text):
        text += newline
    return text + "".join(f"{line}{newline}" for line in lines)


def name_line(one: Summarised) -> str:
    """Return a line that names an entry, by an id that `show` finds (S2-44).

    Example:
        >>> name_line(Reminder("api-implementation", "skill", "Build an endpoint.")), name_line(Reminder("sem-001", "rule", "Check <!-- it -->"))
        ('- [skill: api-implementation] Build an endpoint.', '- [sem-001] Check <! -- it -- >')
    """
    return f"- [{'skill: ' if one.kind == 'skill' else ''}{plain(one.id)}] {plain(one.text)}".rstrip()


def plain(text: str) -> str:
    """Return a text on one line, in which no comment begins or ends, so that no mark can be faked."""
    line = shorten("".join(sign if sign.isprintable() else " " for sign in text), _SUMMARY)
    line = line.replace("<!--", "<! --").replace("-->", "-- >")
    return re.sub(r"memory-kb:(?=\s*(?:begin|end|start)\b)", "memory-kb ", line)


class Damage(NamedTuple):
    """What is wrong with the marks in a file, and where."""

    line: int
    message: str


def find_damage(text: str) -> Damage | None:
    """Return what is wrong with the marks in a text; None where they are whole, or there are none.

    Example:
        >>> find_damage("Mine.\\n<!-- memory-kb:begin relevant -->\\n- [a] One.\\n").line
        2
    """
    held = ""
    opened = 0
    seen: set[str] = set()
    marks = list(_MARK.finditer(text))
    for mark in marks:
        line = _line_at(text, mark.start())
        if mark[1] == "end" and mark[2]:
            return Damage(line, f"a section ends with `{END}`, without a name")
        if (mark[1] == "end") != bool(held):
            return Damage(
                line,
                "this mark ends nothing; delete it"
                if mark[1] == "end"
                else f"a section begins here before the one of line {opened} ends",
            )
        if mark[1] == "end":
            held = ""
            continue
        if mark[2] in seen and mark[2] in SECTIONS:
            return Damage(line, f"the section `{mark[2]}` is here twice; delete one of them with its marks")
        held, opened = mark[2] or "-", line
        seen.add(mark[2])
    if held:
        return Damage(
            opened,
            "the section that begins here has no end; put `<!-- memory-kb:end -->` on a line of its own behind it",
        )
    spans = [mark.span() for mark in marks]
    for trace in _TRACE.finditer(text):
        if not any(start <= trace.start() < end for start, end in spans):
            return Damage(
                _line_at(text, trace.start()), "this looks like a mark of memory-kb and is none; mend it or delete it"
            )
    inside = [place.inner for place in _places(text)]
    for heading in _HEADINGS.finditer(text):
        if not any(place.start <= heading.start() < place.end for place in inside):
            return Damage(
                _line_at(text, heading.start()),
                "this section has lost the marks around it; delete it, and it is written anew",
            )
    return None


def _places(text: str) -> list[_Place]:
    """Return our sections in the order in which they stand; the marks are whole."""
    found: list[_Place] = []
    name, start = "", 0
    for mark in _MARK.finditer(text):
        if mark[1] == "begin":
            name, start = mark[2], min(mark.end() + 1, len(text))
        elif name in SECTIONS:
            found.append(_Place(name, Span(start, mark.start())))
            name = ""
    return found


def _line_at(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def own_words(text: str, limit: int) -> str:
    """Return the first words of a file that are the agent's own, as what it is working on.

    Example:
        >>> own_words("# Now\\n\\nFix the parser.\\n\\n<!-- memory-kb:begin relevant -->\\n- [a] One.\\n<!-- memory-kb:end -->\\n", 40)
        'Now Fix the parser.'
    """
    from memory_kb.notes.injected import strip

    lines = (line.strip().lstrip("#>-*").strip() for line in strip(text.removeprefix("\ufeff")).splitlines())
    return " ".join(line for line in lines if line)[:limit].strip()
