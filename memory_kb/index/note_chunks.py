"""Read the file of a note, and cut it into the chunks that are indexed, with warnings about what could not be read."""

import errno
import json
import os
import re
import stat
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from memory_kb.index.port import IS_CUT, UNSURE
from memory_kb.markdown.document import display_title, first_heading, parse_document
from memory_kb.markdown.links import find_tags
from memory_kb.markdown.sections import Piece, split_text
from memory_kb.model import Chunk, Entry, FileStat, Location, Problem
from memory_kb.private_text import mask_private
from memory_kb.terms import extra_terms, needs_cutting, symbol_terms, to_nfc
from memory_kb.text import UTF_16_MARKS, decode_text, format_size, pluralize, printable, read_words
from memory_kb.vault import default_status, place_of_path

_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
#: A file saved again within one tick of the file system's clock looks the same; nanoseconds. Some count whole seconds.
_TICK, _COARSE_TICK = 50_000_000, 2_000_000_000
#: Bytes of a character in UTF-8 behind its first.
_MOST_INNER = 3
# The first bytes of every CJK character in UTF-8, and of few others: a quick test that spares most
# files the slow one, the quicker without the bytes of ASCII.
_ASCII = bytes(range(128))
_MAYBE_CJK = re.compile(rb"[\xd6-\xe1\xe3-\xed\xef-\xf4]")


def describe_cut(problems: Sequence[Problem]) -> tuple[str, ...]:
    """Return a sentence about the files of which only the beginning is indexed, if there are any.

    Example:
        >>> describe_cut([Problem("a.md", 1, "is 5.0 MB"), Problem("b.md", 1, "is 7.0 MB")])
        ('a.md is 5.0 MB (and 1 more file)',)
    """
    more = f" (and {pluralize(len(problems) - 1, 'more file')})" if len(problems) > 1 else ""
    return (f"{problems[0].path} {problems[0].message}{more}",) if problems else ()


def describe_faults(faults: Sequence[Problem]) -> tuple[str, ...]:
    """Return a sentence about the places where frontmatter cannot be read, if there are any.

    Example:
        >>> describe_faults([Problem("a.md", 3, ""), Problem("b.md", 2, "")])
        ('the frontmatter at a.md:3 and in 1 more place cannot be read; it counts as text, `memory-kb lint` lists all',)
    """
    if not faults:
        return ()
    more = f" and in {pluralize(len(faults) - 1, 'more place')}" if len(faults) > 1 else ""
    place = f"{printable(faults[0].path)}:{faults[0].line}{more}"
    return (f"the frontmatter at {place} cannot be read; it counts as text, `memory-kb lint` lists all",)


class RawNote(NamedTuple):
    """A file's bytes and the state they were read at. `is_cut` says that there was more."""

    stat: FileStat
    data: bytes
    is_cut: bool


class ReadNote(NamedTuple):
    """A parsed file: its chunks, and the problems found."""

    chunks: tuple[Chunk, ...]
    problems: tuple[tuple[int, str], ...]


def is_fresh(mtime_ns: int, now_ns: int) -> bool:
    """Return whether a file with a time may be saved again behind the same time.

    Example:
        >>> [is_fresh(mtime_ns, 5_000_000_000) for mtime_ns in (4_990_000_000, 4_900_000_000, 4_000_000_000)]
        [True, False, True]
    """
    tick = _TICK if mtime_ns % 1_000_000_000 else _COARSE_TICK
    return -_TICK <= now_ns - mtime_ns <= tick


def read_raw(file: FileStat, limit: int) -> RawNote:
    """Read a file's first `limit` bytes, with its state from before the reading.

    A change during the reading, or behind the same time, leaves a state that the next comparison finds different.
    """
    descriptor = os.open(file.os_path, _FLAGS)
    try:
        found, now_ns = os.fstat(descriptor), time.time_ns()
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        # To ask for as much as a file may have takes a quarter of a first index: the system maps that much anew each time.
        data = os.read(descriptor, min(found.st_size, limit) + 1)
        while (
            len(data) != found.st_size and len(data) <= limit and (more := os.read(descriptor, limit + 1 - len(data)))
        ):
            data += more
    finally:
        os.close(descriptor)
    seen = FileStat.of(file.path, file.os_path, found)
    if is_fresh(seen.mtime_ns, now_ns):
        seen = seen._replace(inode=UNSURE)
    if len(data) <= limit:
        return RawNote(seen, data, is_cut=False)
    if data[:2] in UTF_16_MARKS:
        return RawNote(seen, data[: limit & ~1], is_cut=True)
    # At a line's end, unless that were a line that is most of the file.
    cut = data.rfind(b"\n", limit - limit // 4, limit) + 1 or limit
    for _ in range(min(_MOST_INNER, cut)):
        cut -= data[cut] & 0xC0 == 0x80  # inside a character
    return RawNote(seen, data[:cut], is_cut=True)


def explain_unreadable(file: FileStat) -> str | None:
    """Return why a file cannot be read, or None where it can or is gone."""
    try:
        read_raw(file, 1)
    except FileNotFoundError:
        return None
    except OSError as exc:
        return say_unreadable(exc)
    return None


def say_unreadable(error: OSError) -> str:
    """Return the problem's message for a file that cannot be read."""
    return f"cannot be read: {error.strerror}; left out"


def decode_note(data: bytes) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Return the text of a file, and line and message for each fault of its bytes.

    Example:
        >>> decode_note(b"ok\\nso l\\xe0 l\\xe0")
        ('ok\\nso là là', ((2, 'is not valid UTF-8 here; its bytes are read as Windows-1252'),))
    """
    problems = []
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        text = decode_text(data)
        message = "is not valid UTF-8 here; its bytes are read as Windows-1252"
        if data[:2] in UTF_16_MARKS:
            message = "is UTF-16, and read as such; save it as UTF-8"
        problems.append((line, message))
    if "\0" in text:
        problems.append((text.count("\n", 0, text.index("\0")) + 1, "contains NUL bytes; is it a text file?"))
    return text, tuple(problems)


def read_note(raw: RawNote, *, is_memory: bool) -> ReadNote:
    """Return the chunks and problems of a file of a memory vault, or of another. No content can make this fail."""
    text, problems = decode_note(raw.data)
    path = raw.stat.path
    if raw.is_cut:
        problems = (
            (1, f"is {format_size(raw.stat.size)}, {IS_CUT}; only its first {format_size(len(raw.data))} are indexed"),
            *problems,
        )
    document = parse_document(text, path, default_status(path, is_memory=is_memory))
    may_be_cjk = (
        not path.isascii()
        or raw.data[:2] in UTF_16_MARKS
        or _MAYBE_CJK.search(raw.data.translate(None, _ASCII)) is not None
    )
    place = place_of_path(path, is_memory=is_memory)
    chunks = _chunk_entries(text, document.entries, place, path, may_be_cjk=may_be_cjk)
    return ReadNote(tuple(chunks), problems + tuple((problem.line, problem.message) for problem in document.problems))


def _chunk_entries(text: str, entries: Sequence[Entry], place: Location, path: str, *, may_be_cjk: bool) -> list[Chunk]:
    chunks: list[Chunk] = []
    line, counted_to = 1, 0
    has_terms = (may_be_cjk and (needs_cutting(text) or needs_cutting(path))) or bool(symbol_terms(text))
    text = _mask(text, entries)
    for entry in entries:
        own = _entry_columns(text, entry, path, is_only=len(entries) == 1, has_terms=has_terms)
        shared = {**place._asdict(), **own}
        supersedes = shared.pop("supersedes")
        pieces = split_text(text, entry.body.start, entry.body.end) or [Piece(entry.body.start, entry.body.start, ())]
        for part, (start, end, headings) in enumerate(pieces):
            content = text[start:end]
            line += text.count("\n", counted_to, start)
            end_line = line + content.count("\n")
            under = " > ".join([one for one in headings if one != shared["title"]]) if headings else ""
            chunks.append(
                Chunk(
                    source=path,
                    position=len(chunks),
                    part=part,
                    char_offset=start,
                    line=line,
                    end_line=end_line,
                    headings=under,
                    content=content,
                    terms=search_terms(f"{content}\n{under}\n{shared['tags']}") if has_terms else None,
                    supersedes=supersedes if part == 0 else None,
                    **shared,
                )
            )
            line, counted_to = end_line, end
    return chunks


def _entry_columns(text: str, entry: Entry, path: str, *, is_only: bool, has_terms: bool) -> dict[str, Any]:
    """Return what all chunks of an entry have in common, by the names of their columns."""
    body = text[entry.body.start : entry.body.end]
    name = path.rpartition("/")[2].rpartition(".")[0]
    title = display_title(entry, body, path, is_only=is_only)
    names = _other_names(entry, title, name if is_only and not entry.has_own_id else "")
    replaced = [link.to for link in entry.links if link.relation == "supersedes" and link.to != entry.id]
    return {
        "entry_id": entry.id,
        "kind": entry.kind,
        "type": entry.type,
        "status": entry.status,
        "importance": entry.importance,
        "reinforcement_count": entry.reinforcement_count,
        "seen": entry.seen.isoformat() if entry.seen else None,
        "is_superseded": int(entry.is_superseded),
        "title": title,
        "is_titled": int(title != name or title == entry.title or title == first_heading(body)),
        "tags": ",".join(tag.replace(",", " ") for tag in entry.tags),
        "applies_to": "\n".join(entry.applies_to),
        "dated": entry.dated.isoformat() if entry.dated else None,
        "names": names,
        "title_terms": search_terms(f"{title}\n{names}") if has_terms else None,
        "metadata": json.dumps(entry.metadata, ensure_ascii=False) if entry.metadata else None,
        "text_tags": ",".join(find_tags(body)) if "#" in body else "",
        "fault": entry.fault,
        "supersedes": json.dumps(replaced, ensure_ascii=False) if replaced else None,
    }


def _other_names(entry: Entry, title: str, file_name: str) -> str:
    """Return the further names of an entry, one a line: its aliases, its file's name if it is alone in the file, and its title composed.

    The file of an entry with an id is named for its title, which would count twice.
    """
    names = (*read_words(entry.metadata.get("aliases", entry.metadata.get("alias"))), file_name, to_nfc(title))
    return "\n".join(name for name in dict.fromkeys(names) if name and name != title)


def _mask(text: str, entries: Sequence[Entry]) -> str:
    """Return the text of a note with the private parts of its entries blank: they are for its readers alone."""
    for entry in entries if "<private" in text.lower() else ():
        body = slice(entry.body.start, entry.body.end)
        text = text[: body.start] + mask_private(text[body]) + text[body.stop :]
    return text


def search_terms(text: str) -> str | None:
    """Return the words to index beside a text, or None.

    They are the bigrams of its CJK runs and its names spelled out.
    """
    return " ".join(filter(None, (extra_terms(text) if needs_cutting(text) else "", symbol_terms(text)))) or None
