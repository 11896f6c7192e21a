"""Texts and small values: names of files, decoding, truncation, numbers in words, dates, JSON."""

from __future__ import annotations

import codecs
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from memory_kb.lazy_regex import lazy_regex
from memory_kb.terms import MARKED_NAME, to_nfc

if TYPE_CHECKING:
    import json

_DATE = lazy_regex(r"\s*(\d{4})-(\d{2})-(\d{2})(?=$|[T\s])")
#: How many words of a frontmatter field are read, and how many characters of one.
MOST_LISTED, _MAX_TEXT = 200, 1_000
_UUID = lazy_regex(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")

#: The bytes that a file in UTF-16 begins with.
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: Signs that join letters in some scripts and emoji.
_JOINERS = "\u200c\u200d"
_WINDOWS = "memory-kb-windows-1252"

#: Characters per token, the estimate every budget is counted in.
CHARS_PER_TOKEN = 4


@functools.cache
def _json_decoder() -> json.JSONDecoder:
    import json

    return json.JSONDecoder(parse_constant=lambda _: None)


def load_json(text: str | bytes) -> Any:
    """Return the value of some JSON; what is no number at all, such as NaN, is None.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
    """
    import json

    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    try:
        return _json_decoder().decode(text)
    except RecursionError as exc:
        raise ValueError("it is nested too deeply") from exc


def short_id(entry_id: str) -> str:
    """Return an id shortened for people: uuids are cut, readable ids are not.

    Example:
        >>> short_id("69712e00-2428-4298-a1d4-4e3d73916342"), short_id("ep-2026-03-24-001")
        ('69712e00', 'ep-2026-03-24-001')
    """
    return entry_id[:8] if _UUID.fullmatch(entry_id) else entry_id


def count_tokens(text: str) -> int:
    """Estimate what a text costs a language model, in tokens of four characters."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


#: What Windows takes for a device, whatever follows the dot.
DEVICES = lazy_regex(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)")


def slugify(text: str, limit: int = 60) -> str:
    """Return a title, in any script, as a safe file name of at most `limit` bytes, cut between words.

    Example:
        >>> slugify("Retry, then: ../fail?"), slugify("日本語 メモ"), slugify("…"), slugify("one two three", 10)
        ('retry-then-fail', '日本語-メモ', 'note', 'one-two')
    """
    slug = "-".join(MARKED_NAME.findall(to_nfc(text[: 4 * limit].casefold())))
    cut = slug.encode()[:limit].decode(errors="ignore")
    if len(cut) < len(slug) and slug[len(cut)] != "-" and cut.rfind("-") >= limit // 2:
        cut = cut[: cut.rfind("-")]
    return cut.strip("-") or "note"


def make_slug(name: str) -> str:
    """Return a name as a file name of safe characters, on any system.

    Example:
        >>> make_slug("../../Release: Train!"), make_slug("NUL")
        ('release-train', 'nul-skill')
    """
    slug = slugify(name)
    return f"{slug}-skill" if DEVICES.match(slug) else slug


def first_free(name: str, is_taken: Callable[[str], bool]) -> str:
    """Return a name, with the first number behind it that is not taken where the name is.

    Example:
        >>> first_free("tea", ["tea", "tea-2"].__contains__), first_free("milk", ["tea"].__contains__)
        ('tea-3', 'milk')
    """
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    return next(one for one in itertools.chain([name], numbered) if not is_taken(one))


def shorten(text: str, limit: int = 120) -> str:
    """Cut a line at a word, marking that something follows.

    Example:
        >>> shorten("one two three", 9)
        'one two…'
    """
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    cut = line[: limit - 1]
    head = cut.rpartition(" ")[0]
    return (head if len(head) > limit // 2 else cut) + "…"


def first_lines(text: str, limit: int) -> str:
    """Return the beginning of a text, cut at a line.

    Example:
        >>> first_lines("one\\ntwo\\nthree", 8)
        'one\\ntwo'
    """
    return text if len(text) <= limit else text[: limit + 1].rpartition("\n")[0]


def on_one_line(text: str) -> str:
    """Return a text on one line, without signs that nobody sees.

    Example:
        >>> on_one_line("a\\n---\\nid: x\\x1b[31m")
        'a --- id: x [31m'
    """
    return " ".join("".join(sign if sign.isprintable() or sign in _JOINERS else " " for sign in text).split())


def printable(text: str) -> str:
    """Return a text that can be stored and printed; bytes from the shell that are no UTF-8 become question marks."""
    return text.encode("utf-8", "replace").decode()


def decode_text(data: bytes) -> str:
    """Return bytes as text: as UTF-16 if they begin with its mark, else as UTF-8.

    A byte that is no UTF-8 is read by itself as Windows-1252, so that a part of a file reads as in the whole file.

    Example:
        >>> decode_text("Grüße".encode("latin-1")), decode_text("Grüße".encode("utf-16")), decode_text("ü ".encode() + b"\\xfc")
        ('Grüße', 'Grüße', 'ü ü')
    """
    return data.decode("utf-16", "replace") if data[:2] in UTF_16_MARKS else data.decode("utf-8", _WINDOWS)


def _read_as_windows(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error(_WINDOWS, _read_as_windows)


def as_read(text: str) -> str:
    """Return a text with undecodable bytes in it as readers see them; see `decode_text`.

    Example:
        >>> as_read("Gr\\udcfc\\udcdfe"), as_read("\\ud800")
        ('Grüße', '?')
    """
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", _WINDOWS)
    except UnicodeEncodeError:
        return printable(text)


def readable_name(name: str) -> str:
    """Return a file's name as it can be printed and stored; bytes of it that are no UTF-8 become `\\xff`.

    Example:
        >>> readable_name("tea.md"), readable_name("caf\\udce9.md")
        ('tea.md', 'caf\\\\xe9.md')
    """
    if name.isascii():
        return name
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return printable(name)


def note_name(path: str) -> str:
    """Return the name of a note's file, without its folder and its ending.

    Example:
        >>> note_name("trips/Rome.md"), note_name("St. Ives.MD")
        ('Rome', 'St. Ives')
    """
    name = path.rpartition("/")[2]
    return name[:-3] if name.lower().endswith(".md") else name


def fold_case(text: str) -> str:
    """Return a text as such texts are compared: in one case, with single spaces.

    Example:
        >>> fold_case(" How do\\nwe SHIP? ")
        'how do we ship?'
    """
    return " ".join(text.casefold().split())


def pluralize(number: int, one: str, many: str = "") -> str:
    """Return a number with its word, in the plural where there is not one.

    Example:
        >>> pluralize(1, "failure"), pluralize(0, "entry"), pluralize(1200, "success", "successes")
        ('1 failure', '0 entries', '1,200 successes')
    """
    usual = f"{one[:-1]}ies" if one.endswith("y") and one[-2:-1] not in "aeiou" else f"{one}s"
    return f"{number:,} {one if number == 1 else many or usual}"


def format_mapping(values: Mapping[str, object]) -> str:
    """Return names and values as lines, those of a list below its name; what is empty is left out.

    Example:
        >>> print(format_mapping({"from_agent": "planner", "job": None, "context": {"done": ["Wrote the plan."], "is_new": True}}))
        from agent: planner
        done:
        - Wrote the plan.
        is new: yes
    """
    lines: list[str] = []
    for name, value in values.items():
        words = name.replace("_", " ")
        if isinstance(value, Mapping):
            lines += filter(None, [format_mapping(value)])
        elif isinstance(value, list | tuple):
            lines += [f"{words}:", *(f"- {on_one_line(str(one))}" for one in value)] if value else []
        elif isinstance(value, bool):
            lines.append(f"{words}: {'yes' if value else 'no'}")
        elif value not in (None, ""):
            lines.append(f"{words}: {on_one_line(str(value))}")
    return "\n".join(lines)


def count_same(one: Iterable[object], other: Iterable[object]) -> int:
    """Return how many items two texts have in common from the start.

    Example:
        >>> count_same("prominence", "promotion")
        4
    """
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def format_size(count: int) -> str:
    """Return a number of bytes as people say it.

    Example:
        >>> format_size(2_000), format_size(999_999), format_size(4_194_304)
        ('2.0 kB', '1,000.0 kB', '4.2 MB')
    """
    return f"{count / 1e6:,.1f} MB" if count >= 1_000_000 else f"{count / 1e3:,.1f} kB"


def fits_tag(tags: Iterable[str], wanted: Iterable[str]) -> bool:
    """Return whether any tag is one of those wanted, or below it.

    Example:
        >>> fits_tag(["Deploy/prod"], ["deploy"]), fits_tag(["deploy"], ["deploy/prod", "#deploy"]), fits_tag(["deploying"], ["deploy"])
        (True, True, False)
    """
    heads = tuple(word.lstrip("#").casefold() for word in wanted)
    return any(tag == head or tag.startswith(f"{head}/") for tag in map(str.casefold, tags) for head in heads if head)


def hash_of(data: bytes) -> str:
    """Return the SHA-256 of a file's bytes."""
    import hashlib

    return hashlib.sha256(data, usedforsecurity=False).hexdigest()


def decode(data: bytes) -> str:
    """Return bytes as text that `encode` turns back into them."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Return the bytes of a text."""
    return text.encode("utf-8", "surrogateescape")


def moment_text(moment: datetime) -> str:
    """Return a moment as logs and notes store it: in UTC, to the second.

    Example:
        >>> moment_text(datetime(2026, 3, 1, 10, 0, 7, 123, UTC))
        '2026-03-01T10:00:07Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_date(value: object) -> date | None:
    """Return the day an ISO date or date-time names, or None.

    Example:
        >>> parse_date("2026-03-01T10:00:00Z"), parse_date("yesterday"), parse_date("2026-13-01")
        (datetime.date(2026, 3, 1), None, None)
    """
    found = _DATE.match(value) if isinstance(value, str) else None
    if found is None:
        return None
    try:
        return date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return None


def as_text(value: object) -> str | None:
    """Return a one-line text, or None when there is nothing to show.

    Example:
        >>> as_text("  two\\n words "), as_text(7), as_text([])
        ('two words', '7', None)
    """
    if value is None or isinstance(value, (list, dict)):
        return None
    return " ".join(str(value).split())[:_MAX_TEXT] or None


def read_words(value: object) -> tuple[str, ...]:
    """Return the words of a YAML list or a comma-separated text, without repeats.

    Example:
        >>> read_words(["a", 2, None, "a"]), read_words("x, #y")
        (('a', '2'), ('x', 'y'))
    """
    items: Sequence[object] = value if isinstance(value, list) else str(value).split(",") if value is not None else ()
    words = (text.lstrip("#") for item in items if (text := as_text(item)))
    return tuple(dict.fromkeys(word for word in words if word))[:MOST_LISTED]
