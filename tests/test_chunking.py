"""Chunks: exact pieces of the text, cut where it pauses, under the headings that CommonMark sees."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memory_kb.index.note_chunks import RawNote, decode_note, read_note
from memory_kb.markdown.blocks import scan_blocks
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.sections import SECTION, Piece, split_text
from memory_kb.model import Chunk, FileStat

LIMIT, SHORT = SECTION.limit, SECTION.whole
WORDS = "The retry budget of the gateway is shared by every worker. "


def chunk_bytes(data: bytes) -> tuple[Chunk, ...]:
    """Return the chunks of a file with these bytes."""
    return read_note(RawNote(FileStat("notes/a.md", "", len(data), 0, 0), data, is_cut=False), is_memory=False).chunks


def split(text: str) -> list[Piece]:
    return split_text(text, 0, len(text))


def is_blank(text: str) -> bool:
    return not text.strip().strip("\ufeff").strip()


LINE = st.one_of(
    st.sampled_from(
        [
            "",
            "",
            " ",
            "# One",
            "## Two ##",
            "### Größe",
            "Title",
            "===",
            "---",
            "- item",
            "  more",
            "* star",
            "1. first",
            "2) second",
            "   indented",
            "```",
            "```python",
            "~~~~",
            "    code",
            "\tcode",
            "| a | b |",
            "|---|---|",
            "> quote",
            "<!-- open",
            "close -->",
            "<!-- both -->",
            "Grüße aus Köln.",
            "日本語のメモ。検索する。",
            "\ufeff",
            "\x0c",
            "a\u2028b",
            "\x00",
            "---\r",
            "🙂 ok",
            "---",
            "id: x",
            "kind: fact",
        ]
    ),
    st.text(max_size=40),
    st.builds(
        lambda word, times: word * times,
        st.sampled_from(["word ", "Ein Satz. ", "長い文。", "x", "- ", "# ", "| ", "\t"]),
        st.integers(1, 700),
    ),
)
TEXT = st.builds(
    lambda bom, lines, newline: bom + newline.join(lines),
    st.sampled_from(["", "", "\ufeff"]),
    st.lists(LINE, max_size=25),
    st.sampled_from(["\n", "\n", "\r\n"]),
)


@given(TEXT)
def test_pieces_are_ordered_and_leave_only_blank_text_out(text: str) -> None:
    pieces = split(text)
    places = [0, *(place for piece in pieces for place in (piece.start, piece.end)), len(text)]
    assert places == sorted(places)
    assert all(text[piece.start : piece.end].strip() for piece in pieces)
    assert all(is_blank(text[start:end]) for start, end in zip(places[::2], places[1::2], strict=True))


@given(TEXT)
def test_pieces_stay_within_their_sizes(text: str) -> None:
    assert all(piece.end - piece.start <= LIMIT for piece in split(text))


@given(TEXT)
def test_a_short_text_is_one_piece(text: str) -> None:
    text = text[:SHORT]
    pieces = split(text)
    assert len(pieces) == (0 if not text.strip() else 1)
    if pieces:
        assert text[pieces[0].start : pieces[0].end] == text[pieces[0].start :].rstrip(" \t\r\n")


@given(TEXT)
@example("\ufeff---\r\nid: x\r\n---\r\nOne.\r\n\r\n---\r\nid: y\r\n---\r\nTwo.\r\n")
def test_chunks_stand_at_their_offsets_and_lines(text: str) -> None:
    data = text.encode("utf-8", "replace")
    decoded, _ = decode_note(data)
    for chunk in chunk_bytes(data):
        assert decoded[chunk.char_offset :][: len(chunk.content)] == chunk.content
        assert chunk.line == decoded.count("\n", 0, chunk.char_offset) + 1
        assert chunk.end_line == chunk.line + chunk.content.count("\n")


@given(st.binary(max_size=400), TEXT)
def test_any_bytes_give_chunks_of_the_decoded_text(noise: bytes, text: str) -> None:
    half = len(text) // 2
    data = text[:half].encode() + noise + text[half:].encode()
    decoded, _ = decode_note(data)
    chunks = chunk_bytes(data)
    assert [chunk.position for chunk in chunks] == list(range(len(chunks)))
    assert all(decoded[chunk.char_offset :][: len(chunk.content)] == chunk.content for chunk in chunks)
    assert all(before.char_offset + len(before.content) <= after.char_offset for before, after in pairwise(chunks))


@given(TEXT, st.lists(st.text(max_size=300), max_size=4))
def test_every_word_of_every_entry_is_in_a_chunk(first: str, bodies: list[str]) -> None:
    text = first + "".join(f"\n\n---\nid: e{number}\nkind: fact\n---\n{body}" for number, body in enumerate(bodies))
    text = text.encode("utf-8", "replace").decode()
    covered = [False] * len(text)
    for chunk in chunk_bytes(text.encode()):
        covered[chunk.char_offset : chunk.char_offset + len(chunk.content)] = [True] * len(chunk.content)
    for entry in parse_document(text, "notes/a.md").entries:
        assert is_blank("".join(text[place] for place in range(*entry.body) if not covered[place]))


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["plain", "bom"])
def test_a_long_note_is_cut_at_the_same_words_whatever_its_line_ends(newline: str, bom: str) -> None:
    lines = [
        "# Gateway",
        "",
        *(line for part in range(6) for line in (f"## Part {part}", "", WORDS * 8, "", "- one", "- two", "")),
    ]
    chunks = chunk_bytes((bom + newline.join(lines)).encode())
    plain = chunk_bytes("\n".join(lines).encode())
    assert len(chunks) > 2
    assert [(chunk.line, chunk.end_line, chunk.headings, chunk.content.split()) for chunk in chunks] == [
        (chunk.line, chunk.end_line, chunk.headings, chunk.content.split()) for chunk in plain
    ]


@pytest.mark.parametrize(
    ("length", "count"),
    [(1, 1), (399, 1), (1_600, 1), (2_400, 1), (2_401, 2)],
    ids=["one character", "short", "the longest short entry", "the limit", "one more"],
)
def test_the_size_of_an_entry_decides_whether_it_is_cut(length: int, count: int) -> None:
    text = (WORDS * 50)[:length]
    assert len(split(text[:-1] + "x")) == count


@pytest.mark.parametrize(
    "start",
    ["2026 was the year of", "*Never* restart", "-force is a flag of", "+1 from everybody for", "`kubectl` needs"],
    ids=["a number", "emphasis", "a dash", "a plus", "inline code"],
)
def test_a_paragraph_that_only_looks_like_a_structure_keeps_to_the_limit(start: str) -> None:
    text = f"{WORDS * 10}\n\n{(f'{start} ' + WORDS * 30)[:1_500]}\n\n{WORDS * 10}"
    assert max(piece.end - piece.start for piece in split(text)) <= LIMIT


@pytest.mark.parametrize(
    "text",
    [
        "# " + "long heading " * 400,
        "\n".join(f"# Heading number {number}" for number in range(400)),
        WORDS * 40 + "\n\n" + "## Empty section\n\n" * 300,
    ],
    ids=["one endless heading", "headings only", "headings without text at the end"],
)
def test_headings_alone_keep_to_the_limit_too(text: str) -> None:
    assert max(piece.end - piece.start for piece in split(text)) <= LIMIT


@pytest.mark.parametrize(
    "text",
    ["x" * 10_000, "長" * 10_000, "x " * 5_000, "x\n" * 5_000, "x\r\n" * 5_000],
    ids=["word", "cjk", "words", "lines", "crlf lines"],
)
def test_text_without_good_breaks_is_cut_at_the_limit(text: str) -> None:
    pieces = split(text)
    assert all(200 <= piece.end - piece.start <= LIMIT for piece in pieces[:-1])
    assert "".join(text[piece.start : piece.end] for piece in pieces).split() == text.split() or "".join(
        text[piece.start : piece.end] for piece in pieces
    ).replace(" ", "").replace("\n", "").replace("\r", "") == "".join(text.split())


def fence(lines: int) -> str:
    return "```python\n" + "\n".join(f"# step {n}\n\nrun({n})" for n in range(lines)) + "\n```"


def table(rows: int) -> str:
    return "| name | value |\n|---|---|\n" + "\n".join(f"| setting {n} | value of it |" for n in range(rows))


def item(lines: int, indent: str = "", marker: str = "-") -> str:
    inner = indent + " " * (len(marker) + 1)
    return f"{indent}{marker} Restart in this order:\n" + "\n".join(
        f"{inner}- worker {n} first. Then the rest.\n\n{inner}  And wait." for n in range(lines)
    )


STRUCTURE = st.one_of(
    st.integers(1, 75).map(fence),
    st.integers(1, 55).map(table),
    st.builds(item, st.integers(1, 32), st.sampled_from(["", "  "]), st.sampled_from(["-", "*", "1.", "2)"])),
).filter(lambda text: len(text) <= SHORT)


@given(st.integers(0, 40), STRUCTURE, st.integers(0, 40), st.sampled_from(["\n", "\r\n"]))
@example(0, "  - " + "An indented item. " * 80, 40, "\n")
def test_a_structure_that_fits_is_never_cut(before: int, structure: str, after: int, newline: str) -> None:
    structure = structure.strip("\n").replace("\n", newline).rstrip()
    if len(structure) > SHORT:
        return
    text = newline.join([WORDS * before, "", structure, "", WORDS * after])
    start = text.index(structure)
    first, last = start + len(structure) - len(structure.lstrip()), start + len(structure)
    assert any(piece.start <= first and last <= piece.end for piece in split(text))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 30)), min_size=2, max_size=12))
def test_a_heading_goes_with_what_follows_it(blocks: list[tuple[int, int]]) -> None:
    text = "\n\n".join(
        "#" * level + f" Part {number}" if level else WORDS * times for number, (level, times) in enumerate(blocks)
    )
    pieces = split(text)
    for piece in pieces[:-1]:
        assert not text[piece.start : piece.end].rpartition("\n")[2].startswith("#")


def test_a_piece_in_the_middle_of_a_long_section_is_under_the_nearest_heading() -> None:
    text = f"# Guide\n\n## Retries\n\n{WORDS * 60}"
    assert [piece.headings for piece in split(text)][1:] == [("Guide", "Retries")] * (len(split(text)) - 1)


def test_the_heading_path_follows_the_levels() -> None:
    text = "\n\n".join(
        [
            f"# A\n\n{WORDS * 8}",
            f"## B\n\n{WORDS * 8}",
            f"#### C\n\n{WORDS * 8}",
            f"## D\n\n{WORDS * 8}",
            f"# E\n\n{WORDS * 8}",
        ]
    )
    assert [piece.headings for piece in split(text)] == [("A",), ("A", "B"), ("A", "B", "C"), ("A", "D"), ("E",)]


# -- the scanner against CommonMark ---------------------------------------------------------

PHRASE = st.lists(
    st.sampled_from(["alpha", "beta", "*gamma*", "`code`", "größe", "日本", "C#", "v1.2", "a_b", "[x](y)"]),
    min_size=1,
    max_size=4,
).map(" ".join)
ATX = st.builds(
    lambda indent, level, text, tail: f"{indent}{'#' * level} {text}{tail}",
    st.sampled_from(["", "", " ", "   "]),
    st.integers(1, 6),
    PHRASE,
    st.sampled_from(["", "", " #", " ###", "  "]),
)
SETEXT = st.builds(
    lambda lines, line: "\n".join([*lines, line]),
    st.lists(PHRASE, min_size=1, max_size=2),
    st.sampled_from(["=", "===", "---", "-----  ", "  ==="]),
)
PARAGRAPH = st.lists(
    st.one_of(PHRASE, PHRASE.map(lambda text: f"    # {text}"), PHRASE.map(lambda text: f"#{text}")),
    min_size=1,
    max_size=3,
).map(lambda lines: "\n".join(["Text", *lines]))
INSIDE = st.lists(st.sampled_from(["# hidden", "- x", "text", "", "===", "> q", "~~", "``", "    deep"]), max_size=5)
FENCED = st.builds(
    lambda mark, info, lines: "\n".join([mark + info, *lines, mark]),
    st.sampled_from(["```", "~~~", "`````"]),
    st.sampled_from(["", "python", " sh # x"]),
    INSIDE,
)
CODE = PHRASE.map(lambda text: f"    # {text}\n\n    more")
LIST = st.builds(
    lambda marker, parts: "\n".join(f"{marker} {part}".replace("\n", "\n" + " " * (len(marker) + 1)) for part in parts),
    st.sampled_from(["-", "*", "+", "1.", "1)"]),
    st.lists(
        st.one_of(
            PHRASE,
            PHRASE.map(lambda text: f"{text}\n\n# {text}\n- {text}\n\nmore"),
            PHRASE.map(lambda text: f"# {text}"),
            FENCED,
        ),
        min_size=1,
        max_size=3,
    ),
)
QUOTE = st.lists(st.one_of(PHRASE, PHRASE.map(lambda text: f"# {text}"), st.just("===")), min_size=1, max_size=3).map(
    lambda lines: "\n".join(f"> {line}" for line in lines)
)
COMMENT = st.lists(st.sampled_from(["# hidden", "text", "", "- x", "```"]), max_size=3).map(
    lambda lines: "\n".join(["<!-- note", *lines, "-->"])
)
ONE_LINE_COMMENT = PHRASE.map(lambda text: f"<!-- {text} -->")
BLOCK = st.one_of(ATX, SETEXT, PARAGRAPH, FENCED, CODE, LIST, QUOTE, COMMENT, ONE_LINE_COMMENT)


def oracle(text: str) -> list[tuple[int, int, str]]:
    """Return the headings outside lists and quotes as `(level, line, text)`, as markdown-it reads them."""
    found = []
    stream = MarkdownIt("commonmark").parse(text)
    for token, inside in pairwise(stream):
        if token.type == "heading_open" and token.level == 0:
            assert token.map
            found.append((int(token.tag[1]), token.map[0] + 1, " ".join(inside.content.split())))
    return found


def scanned(text: str) -> list[tuple[int, int, str]]:
    return [
        (level, text.count("\n", 0, start) + 1, heading)
        for start, _, level, heading in scan_blocks(text, 0, len(text))
        if level > 0
    ]


@given(st.lists(BLOCK, min_size=1, max_size=8), st.sampled_from(["\n\n", "\n\n\n"]))
def test_the_scanner_sees_the_headings_that_commonmark_sees(blocks: list[str], gap: str) -> None:
    text = gap.join(blocks) + "\n"
    assert scanned(text) == oracle(text)
    assert scanned(text.replace("\n", "\r\n")) == oracle(text)


@given(st.lists(st.one_of(ATX, PARAGRAPH, FENCED, COMMENT, ONE_LINE_COMMENT, QUOTE), min_size=1, max_size=8))
def test_the_scanner_needs_no_blank_lines_between_blocks(blocks: list[str]) -> None:
    text = "\n".join(blocks) + "\n"
    assert scanned(text) == oracle(text)


@given(st.lists(BLOCK, min_size=3, max_size=10), st.integers(1, 12))
def test_the_heading_path_of_a_chunk_is_that_of_its_first_line(blocks: list[str], times: int) -> None:
    text = "\n\n".join(f"{block}\n\n{WORDS * times}" for block in blocks)
    headings = oracle(text)
    if len(text.rstrip()) <= SHORT:
        return
    for piece in split(text):
        line = text.count("\n", 0, piece.start) + 1
        path: list[tuple[int, str]] = []
        for level, place, heading in headings:
            if place <= line:
                path = [*(above for above in path if above[0] < level), (level, heading)]
        assert piece.headings == tuple(heading for _, heading in path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One\n", [(1, 1, "One")]),
        ("Two\nlines\n---\n", [(2, 1, "Two lines")]),
        ("\n\n   ### Three ###\n", [(3, 3, "Three")]),
        ("    # code\n", []),
        ("#no heading\n", []),
        ("```\n# code\n```\n# Yes\n", [(1, 4, "Yes")]),
        ("~~~\n# never closed\n", []),
        ("> # quoted\n\n# Yes\n", [(1, 3, "Yes")]),
        ("- # item\n\n  # inside\n\n# Yes\n", [(1, 5, "Yes")]),
        ("- ```\n  # code\n  ```\n\n# Yes\n", [(1, 5, "Yes")]),
        ("text\n\n---\n\nafter\n", []),
        ("<!--\n# hidden\n\n# hidden\n-->\n# Yes\n", [(1, 6, "Yes")]),
        ("text\n<!--\n# hidden\n-->\n", []),
        ("<!-- marker -->\nTitle\n=====\n", [(1, 2, "Title")]),
        ("---\nTitle\n---\n", [(2, 2, "Title")]),
        ("#\n", [(1, 1, "")]),
        ("####### seven\n", []),
    ],
    ids=[
        "atx",
        "setext",
        "indented",
        "code",
        "no space",
        "fence",
        "open fence",
        "quote",
        "item",
        "fence in item",
        "rule",
        "comment",
        "comment in paragraph",
        "comment before setext",
        "rule before setext",
        "empty",
        "seven",
    ],
)
def test_headings_by_example(text: str, expected: list[tuple[int, int, str]]) -> None:
    assert oracle(text) == expected
    assert scanned(text) == expected
