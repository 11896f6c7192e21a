"""The file grammar: which `---` opens an entry, where it ends, and that nothing is lost."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_kb.markdown.document import display_title, find_blocks, first_heading, parse_document, provisional_id
from memory_kb.markdown.splice import yaml_span
from memory_kb.model import Document, Entry
from memory_kb.yaml_loader import load_mapping


def read(text: str) -> Document:
    return parse_document(text, "notes.md")


def outline(text: str) -> list[tuple[str | None, int, str]]:
    """Return the own id, the line and the body of each entry."""
    return [
        (entry.id if entry.has_own_id else None, entry.line, text[entry.body.start : entry.body.end])
        for entry in read(text).entries
    ]


def only(text: str) -> Entry:
    (entry,) = read(text).entries
    return entry


A = "---\nid: a\n---\n"
B = "---\nid: b\nkind: rule\n---\n"

GRAMMAR = [
    pytest.param("", [], id="empty-file"),
    pytest.param(" \n\t\r\n\n", [], id="blank-file"),
    pytest.param("\ufeff", [], id="byte-order-mark-alone"),
    pytest.param("Text.\n", [(None, 1, "Text.\n")], id="no-frontmatter"),
    pytest.param("\ufeffText.\n", [(None, 1, "Text.\n")], id="byte-order-mark-is-no-text"),
    pytest.param(f"{A}One.\n", [("a", 1, "One.\n")], id="one"),
    pytest.param(f"{A}One.", [("a", 1, "One.")], id="no-final-newline"),
    pytest.param("---\nid: a\n---", [("a", 1, "")], id="closing-line-at-the-end-of-the-file"),
    pytest.param("---\n---\nText\n", [(None, 1, "Text\n")], id="empty-block"),
    pytest.param("---\n# Words\n---\nText\n", [(None, 1, "---\n# Words\n---\nText\n")], id="comments-are-no-mapping"),
    pytest.param("---\ncolour: red\n---\nText\n", [(None, 1, "Text\n")], id="any-mapping-opens-a-file"),
    pytest.param(
        f"{A}One.\n\n{B}Two.\n\n---\ntype: corrective\n---\nThree.\n",
        [("a", 1, "One.\n\n"), ("b", 6, "Two.\n\n"), (None, 12, "Three.\n")],
        id="three",
    ),
    pytest.param(f"Before.\n\n{A}One.\n", [(None, 1, "Before.\n\n"), ("a", 3, "One.\n")], id="preamble"),
    pytest.param(f"\n\n{A}One.\n", [("a", 3, "One.\n")], id="blank-lines-first"),
    pytest.param(f" \t\n{A}One.\n", [("a", 2, "One.\n")], id="white-line-first"),
    pytest.param(f"\ufeff{A}One.\n", [("a", 1, "One.\n")], id="byte-order-mark"),
    pytest.param(f"\ufeff\n{A}One.\n", [("a", 2, "One.\n")], id="byte-order-mark-and-blank-line"),
    pytest.param(f"{A}\n{B}Two.\n", [("a", 1, "\n"), ("b", 5, "Two.\n")], id="entry-without-text"),
    pytest.param(f"{A}{B}Two.\n", [("a", 1, f"{B}Two.\n")], id="no-blank-line-no-entry"),
    pytest.param(f"{A}One.\n{B}Two.\n", [("a", 1, f"One.\n{B}Two.\n")], id="heading-underline-no-entry"),
    pytest.param(f"{A}One.\n \t\n{B}Two.\n", [("a", 1, "One.\n \t\n"), ("b", 6, "Two.\n")], id="white-line-is-blank"),
    pytest.param("---  \nid: a\n--- \t\nOne.\n", [("a", 1, "One.\n")], id="spaces-after-the-dashes"),
    pytest.param(" ---\nid: a\n---\nOne.\n", [(None, 1, " ---\nid: a\n---\nOne.\n")], id="indented-dashes"),
    pytest.param("----\nid: a\n----\nOne.\n", [(None, 1, "----\nid: a\n----\nOne.\n")], id="four-dashes"),
    pytest.param(
        f"{A}One.\n\n---\n\nMore.\n\n---\n\nEnd.\n",
        [("a", 1, "One.\n\n---\n\nMore.\n\n---\n\nEnd.\n")],
        id="horizontal-rules",
    ),
    pytest.param(
        f"{A}One.\n\n---\ncolour: red\n---\nMore.\n",
        [("a", 1, "One.\n\n---\ncolour: red\n---\nMore.\n")],
        id="mapping-without-entry-key",
    ),
    pytest.param(
        f"{A}One.\n\n---\nnest:\n  id: b\n---\nMore.\n",
        [("a", 1, "One.\n\n---\nnest:\n  id: b\n---\nMore.\n")],
        id="entry-key-must-be-on-top",
    ),
    pytest.param(
        f"{A}One.\n\n---\nSome prose\nid: this is not YAML: no\n\n{B}Two.\n",
        [("a", 1, "One.\n\n---\nSome prose\nid: this is not YAML: no\n\n"), ("b", 10, "Two.\n")],
        id="rule-above-an-entry",
    ),
    pytest.param(
        f"{A}One.\n\n---\nid: b\nnever closed\n",
        [("a", 1, "One.\n\n---\nid: b\nnever closed\n")],
        id="unclosed-later-block",
    ),
    pytest.param(
        f"---\nJust a rule.\n\n{B}Two.\n",
        [(None, 1, "---\nJust a rule.\n\n"), ("b", 4, "Two.\n")],
        id="file-opens-with-a-rule",
    ),
    pytest.param(
        "---\n\n# Title\n\n---\n\nText.\n", [(None, 1, "---\n\n# Title\n\n---\n\nText.\n")], id="title-between-rules"
    ),
    pytest.param(
        f"```yaml\n\n{A}```\n\n{B}Two.\n",
        [(None, 1, f"```yaml\n\n{A}```\n\n"), ("b", 8, "Two.\n")],
        id="example-in-a-fence",
    ),
    pytest.param(
        f"~~~\n\n{A}\n```\n\n{A}~~~\n\n{B}Two.\n",
        [(None, 1, f"~~~\n\n{A}\n```\n\n{A}~~~\n\n"), ("b", 14, "Two.\n")],
        id="tilde-fence-holds-backticks",
    ),
    pytest.param(
        f"````\n```\n\n{A}````\n\n{B}", [(None, 1, f"````\n```\n\n{A}````\n\n"), ("b", 9, "")], id="longer-fence"
    ),
    pytest.param(
        f"```\n\n{A}``` not a closing\n\n{B}",
        [(None, 1, f"```\n\n{A}``` not a closing\n\n{B}")],
        id="fence-closes-bare",
    ),
    pytest.param(f"```\n\n{A}", [(None, 1, f"```\n\n{A}")], id="unclosed-fence-runs-to-the-end"),
    pytest.param(
        f"``` `no` fence\n\n{B}Two.\n",
        [(None, 1, "``` `no` fence\n\n"), ("b", 3, "Two.\n")],
        id="backticks-in-the-info-string",
    ),
    pytest.param(
        f"    ```\n\n{B}Two.\n", [(None, 1, "    ```\n\n"), ("b", 3, "Two.\n")], id="indented-code-is-no-fence"
    ),
    pytest.param(
        f"   ```\n\n{A}   ```\n\n{B}",
        [(None, 1, f"   ```\n\n{A}   ```\n\n"), ("b", 8, "")],
        id="fence-indented-by-three",
    ),
    pytest.param(
        "---\nid: a\nnote: |\n  ```\n---\nOne.\n\n---\nid: b\n---\nTwo.\n",
        [("a", 1, "One.\n\n"), ("b", 8, "Two.\n")],
        id="fence-in-frontmatter",
    ),
    pytest.param(
        "---\nid: a\ntext: |\n  one\n  ---\n  two\n---\nOne.\n",
        [("a", 1, "One.\n")],
        id="indented-dashes-inside-a-block",
    ),
    pytest.param(
        f"{A}One.\n\n---\n- id: b\n---\nMore.\n",
        [("a", 1, "One.\n\n---\n- id: b\n---\nMore.\n")],
        id="list-block-later",
    ),
    pytest.param("---\n- a\n- b\n---\nMore.\n", [(None, 1, "---\n- a\n- b\n---\nMore.\n")], id="list-block-first"),
]


@pytest.mark.parametrize(("text", "entries"), GRAMMAR)
def test_which_entries_a_text_has_whatever_its_line_ends(text: str, entries: list[tuple[str | None, int, str]]) -> None:
    assert outline(text) == entries
    assert outline(text.replace("\n", "\r\n")) == [
        (id_, line, body.replace("\n", "\r\n")) for id_, line, body in entries
    ]


@pytest.mark.parametrize(
    "block",
    [
        "{id: b}",
        "'id': b",
        '"id" : b',
        "  id: b\n  kind: rule",
        "id:\n  b",
        "? id\n: b",
        "title: x\nid: b",
        "{title: x,\n id: b}",
    ],
)
def test_any_mapping_with_an_id_opens_an_entry(block: str) -> None:
    text = f"{A}One.\n\n---\n{block}\n---\nTwo.\n"
    assert [entry[0] for entry in outline(text)] == ["a", "b"]
    assert [entry[0] for entry in outline(text[text.index("One.") + 6 :])] == ["b"]


@pytest.mark.parametrize("block", ["id:0", "type:x", "identity: b", "kind of: b"])
def test_what_only_looks_like_an_id_is_text_and_no_problem(block: str) -> None:
    document = read(f"{A}One.\n\n---\n{block}\n---\nTwo.\n")
    assert ([entry.id for entry in document.entries], document.problems) == (["a"], ())


@pytest.mark.parametrize(
    "text",
    [
        f"{A}```\n\n{B}```\nOne.\n",
        f"{A}```\n\n{B}```\n\n```\nnever closed, hides nothing\n",
        f"{A}```\n\n---\nno entry\n\n---\n",
    ],
)
def test_a_fence_that_swallows_no_entry_is_no_problem(text: str) -> None:
    assert read(text).problems == ()


def test_an_entry_after_an_unclosed_rule_of_prose_is_found() -> None:
    """A `---` line closes what the `---` before it could have opened, so a rule right above hides nothing."""
    text = f"{A}One.\n\n---\n\nProse.\n\n{B}Two.\n\n---\n\nidentity: in prose\n\n---\n"
    assert [entry[0] for entry in outline(text)] == ["a", "b"]


PROBLEMS = [
    pytest.param("---\nid: a\nbad: x: y\n---\nText.\n", 3, "not valid YAML", 1, id="unparsable-first"),
    pytest.param(
        f"{A}One.\n\n---\nid: b\nbad: x: y\n---\nTwo.\n\n{B}Three.\n",
        8,
        "not valid YAML",
        3,
        id="unparsable-in-the-middle",
    ),
    pytest.param("\n\n---\nid: a\n\tx: y\n---\nText.\n", 5, "not valid YAML", 1, id="unparsable-after-blank-lines"),
    pytest.param("---\nid: a\ntitle: b\n\nText.\n", 1, "never closed", 1, id="unclosed"),
    pytest.param(f"{A}One.\n\n```sh\nmake\n\n{B}Two.\n", 6, "never closed; the entry in line 9 and", 1, id="swallowed"),
    pytest.param(
        f"```\n\n{A}```\n\n~~~\nmake\n\n{B}Two.\n", 8, "the entry in line 11 and", 1, id="swallowed-behind-an-example"
    ),
    pytest.param("---\n- id: a\n- id: b\n---\nText.\n", 2, "not a mapping", 1, id="list-of-mappings"),
    pytest.param("---\nid: a\nx: " + "[" * 60 + "]" * 60 + "\n---\nText.\n", 3, "levels", 1, id="too-deep"),
    pytest.param("---\nid: a\nx: " + "y" * 310_000 + "\n---\nText.\n", 2, "longer than 300,000", 1, id="too-long"),
    pytest.param(
        "---\nid: a\nl0: &l0 [1, 1]\n"
        + "".join(f"l{n}: &l{n} [*l{n - 1}, *l{n - 1}]\n" for n in range(1, 30))
        + "---\nText.\n",
        2,
        "50,000 values",
        1,
        id="alias-bomb",
    ),
]


@pytest.mark.parametrize(("text", "line", "message", "entries"), PROBLEMS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_block_that_cannot_be_read_is_reported_and_loses_no_byte(
    text: str, line: int, message: str, entries: int, newline: str
) -> None:
    text = text.replace("\n", newline)
    document = read(text)
    assert [(problem.path, problem.line) for problem in document.problems] == [("notes.md", line)]
    assert message in document.problems[0].message
    assert {entry.fault for entry in document.entries} <= {None, line}
    assert len(document.entries) == entries
    assert "".join(text[entry.span.start : entry.span.end] for entry in document.entries).strip() == text.strip()


@pytest.mark.parametrize(
    "text", ["---\nJust words.\n---\nMore.\n", "---\n\nText\n", "---\n", "a\n\n---\n\nb\n", "---\n- a\n---\n"]
)
def test_a_rule_is_no_problem(text: str) -> None:
    assert read(text).problems == ()


def test_metadata_keeps_unknown_keys_and_nesting_in_order() -> None:
    entry = only("---\nzeta: 1\nid: a\nstate:\n  files: [x, {y: 2026-01-02}]\nalpha: no\n---\n")
    assert list(entry.metadata.items()) == [
        ("zeta", 1),
        ("id", "a"),
        ("state", {"files": ["x", {"y": "2026-01-02"}]}),
        ("alpha", False),
    ]


def test_dates_and_times_stay_as_written() -> None:
    entry = only("---\nid: a\ncreated_at: 2026-03-01T10:00:00Z\nlast_reinforced: 2026-04-01\nat: 12:30\n---\n")
    assert (entry.created_at, entry.last_reinforced, entry.metadata["at"]) == (
        "2026-03-01T10:00:00Z",
        "2026-04-01",
        "12:30",
    )
    assert (entry.dated, entry.seen) == (date(2026, 3, 1), date(2026, 4, 1))


@pytest.mark.parametrize(
    ("path", "block", "dated", "seen"),
    [
        pytest.param("episodes/2026-06-18/a.md", "id: a", date(2026, 6, 18), date(2026, 6, 18), id="folder"),
        pytest.param("2025-01-01/2026-06-18-a.md", "id: a", date(2026, 6, 18), date(2026, 6, 18), id="the-last-one"),
        pytest.param("2026-06-18/2026-13-45.md", "id: a", date(2026, 6, 18), date(2026, 6, 18), id="no-such-day"),
        pytest.param("120260-06-181.md", "id: a", None, None, id="within-digits"),
        pytest.param("2026-06-18.md", "date: 2026-01-02", date(2026, 1, 2), date(2026, 1, 2), id="date-field-first"),
        pytest.param(
            "2026-06-18.md", "last_reinforced: 2026-09-09", date(2026, 6, 18), date(2026, 9, 9), id="each-for-itself"
        ),
        pytest.param("a.md", "id: a", None, None, id="none"),
    ],
)
def test_the_days_of_an_entry(path: str, block: str, dated: date | None, seen: date | None) -> None:
    (entry,) = parse_document(f"---\n{block}\n---\nText.\n", path).entries
    assert (entry.dated, entry.seen) == (dated, seen)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("importance: 1" + "0" * 400, id="importance-beyond-floats"),
        pytest.param("confidence: -1" + "0" * 400, id="confidence-beyond-floats"),
        pytest.param("title: 0x" + "f" * 5_000, id="title-too-long-to-print"),
        pytest.param("id: 0x" + "f" * 5_000, id="id-too-long-to-print"),
        pytest.param("phase: 0b" + "1" * 20_000, id="phase-too-long-to-print"),
        pytest.param("tags: [0x" + "f" * 5_000 + "]", id="tag-too-long-to-print"),
        pytest.param("? 0x" + "f" * 5_000 + "\n: 1", id="key-too-long-to-print"),
        pytest.param("reinforcement_count: 1" + "0" * 5_000, id="count-too-long-to-read"),
        pytest.param("importance: .inf", id="infinite-importance"),
        pytest.param("links: [[], {}, 7, {to: {}}, {to: x, relation: []}]", id="links-of-every-shape"),
        pytest.param(
            "status: [a]\nkind: {b: c}\ntype: [d]\npriority: 3\ndomain: []\nlast_reinforced: []", id="lists-for-words"
        ),
        pytest.param("title: \x07", id="control-character"),
        pytest.param("title: \udcff", id="undecodable-byte"),
        pytest.param("title: 0x_", id="number-without-digits"),
    ],
)
def test_no_value_makes_reading_fail(value: str) -> None:
    text = f"---\nkind: fact\n{value}\n---\nText.\n"
    (entry,) = read(text).entries
    assert text[entry.body.start : entry.body.end].endswith("Text.\n")
    assert 0.0 <= entry.importance <= 1.0


PIECES = st.lists(
    st.sampled_from(
        [
            *(
                "\n",
                "\n\n",
                "---\n",
                "--- \n",
                "---",
                "----\n",
                " ---\n",
                "```\n",
                "~~~ x\n",
                "\ufeff",
                "Text.\n",
                "# H\n",
                " \n",
                "\r\n",
                "\r",
                "\x85",
                "\x0b",
            ),
            *(
                "id: a\n",
                "id: b\n",
                "kind: rule\n",
                "x: [\n",
                "- a\n",
                "x: 'y'\n",
                "id: é\n",
                "id: c",
                "note: |\n  ---\n",
                "---\nid: z\n---\n",
                "\n\n---\nkind: fact\n---\n",
            ),
        ]
    ),
    max_size=24,
).map("".join)


@given(PIECES, st.booleans())
def test_entries_tile_the_file(text: str, is_crlf: bool) -> None:
    """Each entry begins where the one before ends; before the first stands nothing but blank space."""
    if is_crlf:
        text = text.replace("\n", "\r\n")
    entries = read(text).entries
    if not entries:
        assert text.strip(" \t\r\n\ufeff") == ""
        return
    assert text[: entries[0].span.start].strip(" \t\r\n\ufeff") == ""
    assert text[entries[0].span.start :] == "".join(text[entry.span.start : entry.span.end] for entry in entries)
    for entry in entries:
        assert entry.span.start <= entry.body.start <= entry.body.end == entry.span.end
        assert entry.line == text.count("\n", 0, entry.span.start) + 1
        assert entry.has_frontmatter == (entry.body.start > entry.span.start)


@given(PIECES)
def test_yaml_is_where_its_span_says(text: str) -> None:
    blocks = list(find_blocks(text, "notes.md", []))
    entries = [entry for entry in read(text).entries if entry.has_frontmatter]
    assert len(entries) == len(blocks)
    for entry, block in zip(entries, blocks, strict=True):
        assert text[block.span.start : block.span.start + 3] == "---"
        assert (entry.metadata, entry.fault) == (block.metadata, block.fault)
        if block.fault is None:
            assert text[block.yaml.end : block.span.end].strip() == "---"
            assert load_mapping(text[block.yaml.start : block.yaml.end]) == entry.metadata
            assert yaml_span(text, entry) == block.yaml
        assert (block.span.start, block.span.end) == (entry.span.start, entry.body.start)


@given(PIECES)
def test_an_entry_reads_the_same_in_a_file_of_its_own(text: str) -> None:
    for entry in read(text).entries:
        if entry.has_frontmatter:
            alone = read(text[entry.span.start : entry.span.end]).entries
            assert len(alone) == 1
            assert (alone[0].metadata, alone[0].id) == (entry.metadata, entry.id)


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_any_text_is_read(text: str) -> None:
    document = read(text)
    assert len(document.entries) <= 1 or "---" in text


def test_a_provisional_id_follows_from_path_and_body_alone() -> None:
    plain = only("Retry twice.\n")
    assert plain.id == provisional_id("notes.md", "Retry twice.\n") == only("Retry twice.\n").id
    assert plain.id == only("---\ntags: [x]\n---\nRetry twice.\n").id == only("---\nkind: rule\n---\nRetry twice.\n").id
    assert plain.id != only("Retry thrice.\n").id
    assert plain.id != parse_document("Retry twice.\n", "other.md").entries[0].id
    assert not plain.has_own_id


def test_a_provisional_id_looks_like_any_other() -> None:
    import uuid

    parsed = uuid.UUID(only("Größe \ud800\n").id)
    assert (parsed.version, parsed.variant) == (5, uuid.RFC_4122)


def test_a_provisional_id_stays_when_another_entry_changes() -> None:
    first = "---\nkind: fact\n---\nRetry twice.\n\n"
    before, after = read(f"{first}{B}Two."), read(f"Preamble.\n\n{first}{B}Changed.\n\n{A}")
    assert before.entries[0].id == after.entries[1].id


@pytest.mark.parametrize(
    "more", ["\n", "\n\n---\nid: b\n---\nTwo.\n", ""], ids=["blank-line", "entry-added", "nothing"]
)
def test_a_provisional_id_does_not_depend_on_the_space_behind_the_body(more: str) -> None:
    text = "---\nkind: fact\n---\nRetry twice.\n"
    assert read(text + more).entries[0].id == only(text).id


@pytest.mark.parametrize(
    ("body", "heading"),
    [
        pytest.param("# Retry\ntext", "Retry", id="first-line"),
        pytest.param("\n\n  ### Retry ##\n", "Retry", id="closed-and-indented"),
        pytest.param("# Retry\r\ntext\r\n", "Retry", id="crlf"),
        pytest.param("#Retry\n", None, id="tag"),
        pytest.param("    # Retry\n", None, id="code"),
        pytest.param("####### Seven\n", None, id="seven-signs"),
        pytest.param("text\n# Late\n", None, id="late"),
        pytest.param("# \n", None, id="empty"),
        pytest.param("", None, id="nothing"),
        pytest.param("## [2026-01-02] Use C#\n", "[2026-01-02] Use C#", id="sharp-is-part-of-a-word"),
    ],
)
def test_the_heading_of_a_body(body: str, heading: str | None) -> None:
    assert first_heading(body) == heading


@pytest.mark.parametrize(
    ("text", "title"),
    [
        pytest.param("---\nid: a\ntitle: Named\n---\n# Heading\n", "Named", id="title"),
        pytest.param("---\nid: a\nname: Skill\n---\nText\n", "Skill", id="name"),
        pytest.param("---\nid: a\n---\n# Heading\nText\n", "Heading", id="heading"),
        pytest.param("---\nid: a\n---\n\n  First   line.\nSecond.\n", "First line.", id="first-line"),
        pytest.param("First line.\n", "notes", id="file-name"),
        pytest.param("---\nid: a\n---\n", "a", id="id"),
    ],
)
def test_what_an_entry_is_called(text: str, title: str) -> None:
    entry = only(text)
    assert display_title(entry, text[entry.body.start : entry.body.end], "folder/notes.md", is_only=True) == title


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("".join(f"---\nid: e{n}\n---\nText.\n\n" for n in range(1_500)), id="entries"),
        pytest.param("Text.\n\n---\n\n" * 15_000, id="rules"),
        pytest.param("```\n\n---\nid: a\n---\n```\n\n" * 5_000, id="fences"),
        pytest.param("---\n" * 50_000, id="dashes"),
        pytest.param("x" + "\n \t" * 50_000, id="blank-lines"),
        pytest.param("# x" + " " * 20_000 + "y", id="heading"),
    ],
)
def test_time_grows_with_the_size_alone(text: str) -> None:
    """A tenth of a megabyte of anything is read at once; where time grew with the square, in seconds."""
    for entry in read(text).entries:
        assert display_title(entry, text[entry.body.start : entry.body.end], "notes.md", is_only=False)
