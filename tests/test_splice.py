"""Setting one value: every byte that is not its own stays, and it reads back."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memory_kb.errors import CannotSplice
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.splice import Value, set_values
from memory_kb.model import Span
from memory_kb.yaml_loader import load_mapping


@dataclass(frozen=True)
class Line:
    """A key with its value as written: what stands up to the value, the value, and what stands behind it."""

    key: str
    lead: str
    value: str
    tail: str

    @property
    def text(self) -> str:
        return self.lead + self.value + self.tail


#: Values in every style; each is whole YAML wherever a key stands before it.
FLOW_VALUES = [
    *(
        "active",
        "0.80",
        "007",
        "no",
        "~",
        "2026-01-02",
        "12:30",
        "v1.2",
        "a:b",
        "one two",
        "Größe 検索 🎉",
        "https://x.org/#a",
        "a#b",
        "-1",
        "!x tagged",
        "&a anchored",
    ),
    *(
        "'single'",
        "'it''s # not: a comment'",
        '"double"',
        '"esc \\" \\u00e9 \\N"',
        "''",
        '""',
        "'ends\n  here'",
        '"ends\n\n  here"',
        "folded\n  plain\n  text",
    ),
    *(
        "[a, 'b', \"c\"]",
        "[]",
        "{}",
        "{to: x, n: [1, 2]}",
        "[a,\n  b, # inside\n  c]",
        "[ ]",
        "[{a: b}, [c]]",
        "'\x85'",
        '"\u2028"',
    ),
]
#: Values that stand below their key and end with their own last line.
BLOCK_VALUES = [
    *(
        "\n  - a\n  - b",
        "\n- a\n- b",
        "\n  # first\n  - a # why\n\n  - 'b'",
        "\n  - to: x\n    relation: y\n  - - deep\n    - er",
        "\n  to: x\n  n:\n    - 1",
    ),
    *(
        " |\n  one\n  two",
        " >\n  one\n\n  two",
        " |-\n  one",
        " >-\n   one\n   two",
        " |2\n   one",
        "\n  [a, b]",
        "\n  'below'",
        "\n  plain\n  below",
    ),
]
KEYS = st.sampled_from(["id", "kind", "status", "title", "tags", "a-b", "zeta", "x_1", "'quoted'", '"dq"', "Größe"])
FLOW_TAILS = st.sampled_from(
    ["\n", "  # why: not\n", " \n", "\t# tab\n", "\n\n", "\n# own line\n", "\n  # indented\n\n", " # Größe 🎉 \u2028\n"]
)
BLOCK_TAILS = st.sampled_from(["\n", "\n\n", "\n# own line\n", "\n  # indented\n\n"])
LEADS = st.sampled_from([": ", ":  ", ":\t", " : "])


@st.composite
def lines(draw: st.DrawFn) -> Line:
    key = draw(KEYS)
    bare = key.strip("'\"")
    if draw(st.integers(0, 5)) == 0:
        tail = draw(st.sampled_from(["\n", " \n", "  # why\n", "\n\n", "\n# own\n"]))
        return Line(bare, key + ":", "", tail)
    if draw(st.booleans()):
        return Line(bare, key + draw(LEADS), draw(st.sampled_from(FLOW_VALUES)), draw(FLOW_TAILS))
    value = draw(st.sampled_from(BLOCK_VALUES))
    tail = draw(BLOCK_TAILS)
    assume(not (value[1] in "|>" and "  #" in tail))  # there it would be part of the text
    return Line(bare, key + ":", value, tail)


BLOCKS = st.lists(lines(), min_size=1, max_size=6, unique_by=lambda line: line.key)
VALUES: st.SearchStrategy[Value] = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.sampled_from(
        [
            "retired",
            "2026-11-21",
            "true",
            "007",
            "~",
            "a: b",
            "# x",
            "- x",
            "'",
            '"',
            "",
            " x ",
            "a\nb",
            "\x85",
            "[",
            "a, b",
            "0x1F",
            "<<",
            "=",
            "|",
        ]
    ),
    st.integers(),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(st.text(max_size=6), max_size=3),
)


def is_loadable(block: str) -> bool:
    try:
        load_mapping(block)
    except Exception:  # noqa: BLE001 - the generator may make what is no YAML; those are no cases
        return False
    return True


@given(
    BLOCKS,
    st.data(),
    VALUES,
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "# top\n", "\n", "# top: Größe\n\n"]),
)
def test_only_the_bytes_of_the_value_change(
    written: list[Line], data: st.DataObject, value: Value, newline: str, top: str
) -> None:
    """In the second of three entries of a file with a byte order mark."""
    number = data.draw(st.integers(0, len(written) - 1))
    head = top + "".join(line.text for line in written[:number])
    line, rest = written[number], "".join(line.text for line in written[number + 1 :])
    assume(not any(anchor in line.value for anchor in ("&", "*")))
    before, own, after, block = (
        part.replace("\n", newline)
        for part in (head + line.lead, line.value, line.tail + rest, head + line.text + rest)
    )
    assume(is_loadable(block))
    around = (
        "\ufeff---\nid: first # é\n---\nBody 🎉\n\n---\n".replace("\n", newline),
        "---\nBody\u2028\n\n---\nid: last\n---\n\udcff\n".replace("\n", newline),
    )
    text = around[0] + block + around[1]
    result = set_values(text, Span(len(around[0]), len(around[0]) + len(block)), {line.key: value})
    assert result.startswith(around[0] + before.rstrip())
    assert result.endswith(after + around[1])
    changed = result[len(around[0]) : len(result) - len(around[1])]
    assert load_mapping(changed) == {**load_mapping(block), line.key: value}
    if own.strip() == own != "":
        assert result.startswith(around[0] + before)
    assert len(changed) >= len(before.rstrip()) + len(after)
    if "\n" not in own:
        assert "\n" not in changed[len(before.rstrip()) : len(changed) - len(after)]


@given(
    BLOCKS, VALUES, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "# top\n", "\n"]), st.sampled_from(["", "  "])
)
def test_a_new_key_is_one_new_last_line(written: list[Line], value: Value, newline: str, top: str, indent: str) -> None:
    block = top + "".join(line.text for line in written)
    if indent:
        block = "".join(f"{indent}{line}" if line.strip() else line for line in block.splitlines(keepends=True))
    block = block.replace("\n", newline)
    assume(is_loadable(block))
    text = f"\ufeff---{newline}{block}---{newline}Größe{newline}"
    start = text.index("---") + 3 + len(newline)
    result = set_values(text, Span(start, start + len(block)), {"forgotten_at": value})
    assert result.startswith(text[: start + len(block)])
    assert result.endswith(f"---{newline}Größe{newline}")
    added = result[start + len(block) : len(result) - len(f"---{newline}Größe{newline}")]
    assert added.startswith(f"{indent}forgotten_at: ")
    assert added.endswith(newline)
    assert added.count("\n") == 1
    assert load_mapping(result[start : start + len(block) + len(added)]) == {
        **load_mapping(block),
        "forgotten_at": value,
    }


EXAMPLES = [
    pytest.param("status: active # why\n", "status", "retired", "status: retired # why\n", id="plain"),
    pytest.param("status: 'active' # why\n", "status", "retired", "status: 'retired' # why\n", id="single-quotes-stay"),
    pytest.param('status: "active"\n', "status", "retired", 'status: "retired"\n', id="double-quotes-stay"),
    pytest.param(
        "last_reinforced: '2026-01-02'\n",
        "last_reinforced",
        "2026-11-21",
        "last_reinforced: '2026-11-21'\n",
        id="quoted-date",
    ),
    pytest.param(
        'last_reinforced: "2026-01-02"\n',
        "last_reinforced",
        "2026-11-21",
        'last_reinforced: "2026-11-21"\n',
        id="double-quoted-date",
    ),
    pytest.param("status:\nid: a\n", "status", "retired", "status: retired\nid: a\n", id="empty"),
    pytest.param(
        "status:   # why\nid: a\n", "status", "retired", "status: retired   # why\nid: a\n", id="empty-with-comment"
    ),
    pytest.param("status: \n", "status", "retired", "status: retired \n", id="empty-with-space"),
    pytest.param("status:", "status", "retired", "status: retired", id="empty-at-the-end"),
    pytest.param(
        "tags:\n  - a\n  - b # last\n# next\nid: x\n",
        "tags",
        ["c"],
        "tags: [c] # last\n# next\nid: x\n",
        id="block-list",
    ),
    pytest.param("tags: [a, b]  # both\n", "tags", ["c", "d e"], "tags: [c, d e]  # both\n", id="flow-list"),
    pytest.param("note: |\n  one\n  two\n\nid: x\n", "note", "three", "note: three\n\nid: x\n", id="literal"),
    pytest.param("count: 3\n", "count", 4, "count: 4\n", id="number"),
    pytest.param("pinned: no\n", "pinned", True, "pinned: true\n", id="boolean"),
    pytest.param("id: a\n", "status", "retired", "id: a\nstatus: retired\n", id="new-key"),
    pytest.param("id: a", "status", "retired", "id: a\nstatus: retired\n", id="new-key-without-line-end"),
    pytest.param("", "status", "retired", "status: retired\n", id="empty-block"),
    pytest.param("# nothing yet\n", "status", "retired", "# nothing yet\nstatus: retired\n", id="comment-block"),
    pytest.param("id: a\r\n", "n", 1, "id: a\r\nn: 1\r\n", id="new-key-crlf"),
    pytest.param("id: a\n# end\n", "n", 1, "id: a\n# end\nn: 1\n", id="new-key-behind-a-comment"),
    pytest.param("{id: a}\n", "status", "retired", "{id: a, status: retired}\n", id="flow-root"),
    pytest.param("{}\n", "status", "retired", "{status: retired}\n", id="empty-flow-root"),
    pytest.param(
        "{id: a, status: 'active'} # why\n",
        "status",
        "retired",
        "{id: a, status: 'retired'} # why\n",
        id="flow-root-value",
    ),
    pytest.param(
        "{ id: a } # why }\n",
        "status",
        "retired",
        "{ id: a, status: retired } # why }\n",
        id="flow-root-keeps-its-space",
    ),
    pytest.param(
        "{\n  id: a,\n}\n", "status", "retired", "{\n  id: a, status: retired,\n}\n", id="flow-root-with-last-comma"
    ),
    pytest.param(
        "{\n  id: a # why\n}\n",
        "status",
        "retired",
        "{\n  id: a, status: retired # why\n}\n",
        id="flow-root-with-last-comment",
    ),
    pytest.param("{id: a}\n", "title", "a, b", '{id: a, title: "a, b"}\n', id="flow-root-with-comma-in-value"),
    pytest.param("title: old\n", "title", "a\nb\x85", 'title: "a\\nb\\x85"\n', id="line-breaks"),
    pytest.param("title: old\n", "title", "it's: # x", "title: 'it''s: # x'\n", id="signs"),
    pytest.param(
        "nest:\n  status: a\nstatus: b\n",
        "status",
        "c",
        "nest:\n  status: a\nstatus: c\n",
        id="nested-key-of-the-same-name",
    ),
    pytest.param("'status': a\n", "status", "c", "'status': c\n", id="quoted-key"),
    pytest.param("? status\n: a\n", "status", "c", "? status\n: c\n", id="explicit-key"),
]


@pytest.mark.parametrize(("block", "key", "value", "result"), EXAMPLES)
def test_worked_examples(block: str, key: str, value: Value, result: str) -> None:
    after = set_values(block, Span(0, len(block)), {key: value})
    assert load_mapping(after)[key] == value
    if '"a' in result:  # how a value with signs is quoted is not promised
        assert load_mapping(after) == load_mapping(result)
    else:
        assert after == result


@pytest.mark.parametrize("value", ["quoted", "a b", "ü", "it's"])
def test_a_value_set_twice_is_as_set_once(value: str) -> None:
    block = "id: a\ntitle: first # why\n"
    once = set_values(block, Span(0, len(block)), {"title": value})
    assert set_values(once, Span(0, len(once)), {"title": value}) == once


@pytest.mark.parametrize(
    ("block", "key"),
    [
        pytest.param("a: &x one\nb: *x\n", "a", id="anchor-in-use"),
        pytest.param("a: &x one\nb: *x\n", "b", id="alias"),
        pytest.param("a: 1\na: 2\n", "a", id="repeated-key"),
        pytest.param("bad: x: y\n", "a", id="not-yaml"),
        pytest.param("- a\n", "a", id="list"),
    ],
)
def test_a_change_that_would_not_read_back_is_made_right_or_refused(block: str, key: str) -> None:
    try:
        after = set_values(block, Span(0, len(block)), {key: "new"})
    except CannotSplice as refused:
        assert str(refused).startswith("not changed:")
    else:
        assert load_mapping(after) == {**load_mapping(block), key: "new"}


def test_values_of_several_entries_are_set_one_by_one() -> None:
    text = "".join(f"---\nid: e{n} # {n}\nstatus: active\n---\n\n---\n\nText {n}\n\n" for n in range(5))
    expected = text
    for n in (3, 0, 4):
        entry = parse_document(text, "a.md").entries[n]
        start = text.index("\n", entry.span.start) + 1
        text = set_values(text, Span(start, text.rindex("---", start, entry.body.start)), {"status": f"s{n}"})
        expected = expected.replace(f"id: e{n} # {n}\nstatus: active\n", f"id: e{n} # {n}\nstatus: s{n}\n")
    assert text == expected
