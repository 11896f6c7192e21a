"""Reading YAML blocks: plain values, strings that stay strings, bounds, and python-frontmatter as oracle."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import frontmatter
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memory_kb import KnowledgeBase
from memory_kb.markdown.document import parse_document
from memory_kb.yaml_loader import MAX_BLOCK, MAX_DEPTH, MAX_VALUES, InvalidBlock, load_mapping

VALUES = [
    pytest.param("2026-03-01", "2026-03-01", id="date"),
    pytest.param("2026-03-01T10:00:00Z", "2026-03-01T10:00:00Z", id="date-time"),
    pytest.param("2026-03-01 10:00:00 +02:00", "2026-03-01 10:00:00 +02:00", id="date-time-with-zone"),
    pytest.param("12:30", "12:30", id="clock"),
    pytest.param("12:30:45", "12:30:45", id="clock-with-seconds"),
    pytest.param("1:30.5", "1:30.5", id="sexagesimal-float"),
    pytest.param("v1.2.3", "v1.2.3", id="version"),
    pytest.param("1.2.3", "1.2.3", id="bare-version"),
    pytest.param("42", 42, id="int"),
    pytest.param("-7", -7, id="negative"),
    pytest.param("1_000", 1000, id="int-with-underscore"),
    pytest.param("0x1F", 31, id="hex"),
    pytest.param("0.80", 0.8, id="float"),
    pytest.param("-1.5e+3", -1500.0, id="exponent"),
    pytest.param(".5", 0.5, id="leading-dot"),
    pytest.param(".inf", "inf", id="infinity-is-no-json"),
    pytest.param(".nan", "nan", id="nan-is-no-json"),
    pytest.param("true", True, id="true"),
    pytest.param("'true'", "true", id="quoted-true"),
    pytest.param("~", None, id="tilde"),
    pytest.param("", None, id="empty"),
    pytest.param("=", "=", id="equals-sign"),
    pytest.param("'it''s'", "it's", id="single-quoted"),
    pytest.param('"tab\\there"', "tab\there", id="double-quoted"),
    pytest.param("[a, 'b c', 3]", ["a", "b c", 3], id="flow-list"),
    pytest.param("{to: x, n: {deep: [1]}}", {"to": "x", "n": {"deep": [1]}}, id="flow-mapping"),
    pytest.param("\n  - a\n  - b: 1\n    c: 2\n", ["a", {"b": 1, "c": 2}], id="block-list"),
    pytest.param("\n- a\n- b\n", ["a", "b"], id="block-list-not-indented"),
    pytest.param("|\n  one\n   two\n", "one\n two\n", id="literal"),
    pytest.param(">-\n  one\n  two\n", "one two", id="folded"),
    pytest.param("a  # why", "a", id="comment"),
    pytest.param("a#b", "a#b", id="no-comment"),
    pytest.param("https://example.org/a?b=c", "https://example.org/a?b=c", id="address"),
    pytest.param("Größe 検索 🎉", "Größe 検索 🎉", id="every-script"),
    pytest.param("!vault abc", "abc", id="unknown-tag-on-text"),
    pytest.param("!thing [1, 2]", [1, 2], id="unknown-tag-on-list"),
    pytest.param("!!python/object/apply:os.getcwd {a: 1}", {"a": 1}, id="python-tag-is-inert"),
    pytest.param("!!set {a, b}", ["a", "b"], id="set"),
]


@pytest.mark.parametrize(("written", "read"), VALUES)
def test_a_value_becomes_what_json_can_hold(written: str, read: object) -> None:
    block = f"id: x\nvalue: {written}\n"
    value = load_mapping(block)["value"]
    assert (sorted(value) if written.startswith("!!set") else value) == read
    assert type(value) is type(read)
    json.dumps(value, allow_nan=False)


@pytest.mark.parametrize("block", ["", "\n\n", "# only a comment\n", "~\n", "{}"])
def test_an_empty_block_is_an_empty_mapping(block: str) -> None:
    assert load_mapping(block) == {}


def test_merge_keys_merge_nothing() -> None:
    assert load_mapping("base: &b {x: 1}\nuse:\n  <<: *b\n  y: 2\n")["use"] == {"<<": {"x": 1}, "y": 2}


def test_an_alias_repeats_its_anchor() -> None:
    assert load_mapping("a: &t [x, y]\nb: *t\n") == {"a": ["x", "y"], "b": ["x", "y"]}


def test_of_a_repeated_key_the_last_one_counts() -> None:
    assert load_mapping("title: one\ntitle: two\n") == {"title": "two"}


def test_keys_that_are_not_text_become_text() -> None:
    assert load_mapping("7: a\n2026-01-02: b\ntrue: c\nnull: d\n") == {
        "7": "a",
        "2026-01-02": "b",
        "True": "c",
        "None": "d",
    }


@pytest.mark.parametrize(
    ("block", "line"),
    [
        pytest.param("id: a\nbad: x: y\n", 1, id="two-colons"),
        pytest.param("id: a\ntags:\n\t- x\n", 2, id="tab"),
        pytest.param("id: a\nb: *nowhere\n", 1, id="alias-to-nothing"),
        pytest.param("id: a\nb: @x\n", 1, id="reserved-sign"),
        pytest.param("- a\n- b\n", 0, id="list"),
        pytest.param("just words\n", 0, id="words"),
        pytest.param("id: a\n? [x]\n: 1\n", 1, id="list-as-key"),
        pytest.param("id: !!int twelve\n", 0, id="explicit-tag-that-lies"),
        pytest.param("id: !!timestamp soon\n", 0, id="explicit-timestamp-that-lies"),
        pytest.param("id: a\n--- \nb: c\n", 1, id="second-document"),
        pytest.param("id: \x00\n", 0, id="nul"),
    ],
)
def test_what_is_no_mapping_is_refused_with_its_line(block: str, line: int) -> None:
    with pytest.raises(InvalidBlock) as caught:
        load_mapping(block)
    assert caught.value.line == line
    assert str(caught.value).startswith("the frontmatter")


def nested_lists(depth: int) -> str:
    return "a: " + "[" * depth + "]" * depth + "\n"


def test_depth_and_size_have_bounds() -> None:
    load_mapping(nested_lists(MAX_DEPTH - 1))
    load_mapping(f"a: [{'1,' * (MAX_VALUES - 1)}]")
    for block in (nested_lists(MAX_DEPTH + 1), f"a: [{'1,' * MAX_VALUES}]", "a: " + "x" * MAX_BLOCK):
        with pytest.raises(InvalidBlock):
            load_mapping(block)


def test_a_note_with_more_properties_than_64_kib_is_read(
    vault: Callable[..., Path], open_kb: Callable[..., KnowledgeBase]
) -> None:
    aliases = "".join(f"- another name of the quokka, number {number}\n" for number in range(3_000))
    kb = open_kb(vault({"a.md": f"---\nid: quokka\naliases:\n{aliases}---\nIt sleeps.\n"}))
    assert (kb.lint(), kb.show("quokka").path) == ((), "a.md")


def doubling(levels: int, line: str) -> str:
    return "a0: &a0 {k: [1, 2]}\n" + "".join(line.format(n=n, m=n - 1) for n in range(1, levels))


BOMBS = {
    "aliases in lists": doubling(60, "a{n}: &a{n} [*a{m}, *a{m}, *a{m}]\n"),
    "aliases in mappings": doubling(60, "a{n}: &a{n} {{x: *a{m}, y: *a{m}}}\n"),
    "explicit merge tag": doubling(30, "a{n}: &a{n} {{!!merge <<: [*a{m}, *a{m}]}}\n"),
    "list in itself": "a: &x [*x]\n",
    "mapping in itself": "a: &x {b: *x}\n",
    "unclosed lists": "a: " + "[" * (MAX_BLOCK - 10),
    "closed lists": nested_lists(MAX_BLOCK // 2 - 10),
    "deep mappings": "a: " + "{b: " * (MAX_BLOCK // 5 - 10) + "}" * (MAX_BLOCK // 5 - 10),
    "nested dashes": "a:\n " + "- " * (MAX_BLOCK // 2 - 10) + "x\n",
    "question marks": "? " * (MAX_BLOCK // 2 - 10) + "x\n",
}


def test_bombs_are_refused_at_once() -> None:
    """In a process of its own, since an exploding parser takes its process with it."""
    program = (
        "import json, sys; from memory_kb.yaml_loader import InvalidBlock, load_mapping\n"
        "for name, text in json.load(sys.stdin).items():\n"
        "    try: load_mapping(text)\n"
        "    except InvalidBlock: print(name, flush=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(BOMBS),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, list(BOMBS)), done.stderr[-300:]


KEYS = st.from_regex(r"[a-z_][a-z0-9_-]{0,12}", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cn")), max_size=40)
SCALARS = st.one_of(
    TEXTS, st.integers(-(10**15), 10**15), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False)
)
MAPPINGS = st.dictionaries(
    KEYS,
    st.recursive(
        SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
    ),
    max_size=6,
)
STYLES = st.fixed_dictionaries(
    {
        "sort_keys": st.booleans(),
        "default_flow_style": st.sampled_from([True, False, None]),
        "allow_unicode": st.booleans(),
        "width": st.sampled_from([20, 80, 10_000]),
        "default_style": st.sampled_from([None, "'", '"', "|", ">"]),
    }
)


@pytest.mark.slow
@given(MAPPINGS, STYLES)
def test_what_yaml_writes_is_read_back(mapping: dict[str, Any], style: dict[str, Any]) -> None:
    block = yaml.safe_dump(mapping, **style)
    assert load_mapping(block) == yaml.safe_load(block)


WORDS = st.lists(
    st.sampled_from(
        [
            "",
            "Retry twice.",
            "# Heading",
            "- item",
            "---",
            "    code",
            "***",
            "a: b",
            "> quote",
            "Größe 検索",
            "| a | b |",
        ]
    ),
    max_size=12,
)


@given(MAPPINGS, WORDS, st.booleans())
def test_an_ordinary_note_reads_as_python_frontmatter_reads_it(
    mapping: dict[str, Any], lines: list[str], sort_keys: bool
) -> None:
    """A note with one block: the same metadata, and the same body but for the space around it."""
    text = (
        frontmatter.dumps(frontmatter.Post("\n".join(lines), **mapping), sort_keys=sort_keys, allow_unicode=True) + "\n"
    )
    theirs = frontmatter.loads(text)
    document = parse_document(text, "note.md")
    assert len(document.entries) == 1
    entry = document.entries[0]
    assert entry.metadata == theirs.metadata
    assert text[entry.body.start : entry.body.end].strip() == theirs.content
    assert entry.has_frontmatter
    assert text[entry.span.start : entry.span.end] == text


@given(st.text(st.sampled_from("ab:-#[]{}'\"|>&*!%@,?~ \n\t\r0.\ufeff\x85\u2028\x00\ud800é"), max_size=60))
def test_any_block_is_a_mapping_or_refused(block: str) -> None:
    try:
        mapping = load_mapping(block)
    except InvalidBlock:
        return
    json.dumps(mapping, allow_nan=False).encode()


def test_what_is_done_to_a_mapping_is_not_in_the_next_one() -> None:
    block = "tags: [a, b]\nlinks:\n  - to: x\n"
    first = load_mapping(block)
    first["tags"].append("c")
    first["links"][0]["to"] = "y"
    first["new"] = 1
    assert load_mapping(block) == {"tags": ["a", "b"], "links": [{"to": "x"}]}
