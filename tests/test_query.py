"""Queries: whatever was typed becomes an expression that the full-text index takes."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_kb.search.query import MAX_PAIRS, MAX_TERMS, TextQuery, parse_query, parse_words

ANY_TEXT = st.one_of(
    st.text(max_size=200),
    st.text(st.characters(), max_size=60),
    st.text(st.sampled_from("\"'-+*:^(){}[]<>.,;!?#@/\\|&~`“”„ aAbB9_日本\x00\n\ud800é"), max_size=80),
    st.lists(
        st.sampled_from(
            [
                "AND",
                "OR",
                "NOT",
                "NEAR",
                "NEAR(",
                ")",
                '"',
                '"a b',
                "-x",
                "--",
                "-",
                "title:",
                "a*",
                "^a",
                "foo-bar",
                "C++",
                "日",
                "検索",
            ]
        ),
        max_size=20,
    ).map(" ".join),
)


def is_accepted(query: TextQuery) -> bool:
    """Let SQLite judge every expression of a query."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(
            "CREATE VIRTUAL TABLE t USING fts5 (title, content, tokenize = 'porter unicode61 remove_diacritics 2')"
        )
        connection.execute("INSERT INTO t VALUES ('a', 'some text')")
        for expression in (query.expression, *query.terms, *query.phrases, *query.pairs, *query.excluded):
            connection.execute("SELECT rowid, bm25(t) FROM t WHERE t MATCH ?", (expression,)).fetchall()
    return True


@given(ANY_TEXT)
@example("edge-case foo.bar")
@example('"unbalanced')
@example('- -- --- -""')
@example("NOT a OR (b")
def test_every_text_is_an_expression_or_empty(text: str) -> None:
    for query in (parse_query(text), parse_words(text)):
        assert query.is_empty or is_accepted(query)
        assert len(query.terms) <= MAX_TERMS
        assert len(query.pairs) <= MAX_PAIRS
    loose = parse_query(text).loosened()
    assert loose.is_empty or is_accepted(loose)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("flaky tests", ['"flaky"', '"tests"']),
        ("How do I fix the flaky tests?", ['"fix"', '"flaky"', '"tests"']),
        ("the who", ['"the"', '"who"']),
        ("foo-bar", ['"foo-bar"', '"foo"', '"bar"']),
        ("user_name", ['"user_name"', '"user"', '"name"']),
        ("v1.2.3", ['"v1.2.3"', '"v1"']),
        ("getUserName", ['"getUserName"', '"get User Name"']),
        ("HTTPServer", ['"HTTPServer"', '"HTTP Server"']),
        ("README", ['"README"']),
        ("C++", ['"C"', '"Cplusplus"']),
        ("C#", ['"C"', '"Csharp"']),
        ("gateway's retries", ['"gateway"', '"retries"']),
        ("(tests)", ['"tests"']),
        ("検索機能", ['"検索"', '"索機"', '"機能"']),
        ("能", ['"能" *']),
        ("Obsidian同期", ['"Obsidian"', '"同期"']),
        ("NOT OR AND", ['"NOT"', '"OR"', '"AND"']),
        ("title:x", ['"title:x"', '"title"']),
        ("wie kann ich die Notiz finden", ['"Notiz"', '"finden"']),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_terms(text: str, terms: list[str]) -> None:
    assert list(parse_query(text).terms) == terms


@pytest.mark.parametrize(
    ("text", "phrases", "excluded", "terms"),
    [
        ('"exact phrase"', ['"exact phrase"'], [], []),
        ('fix "exact phrase" -old', ['"exact phrase"'], ['"old"'], ['"fix"']),
        ('fix -"old way"', [], ['"old way"'], ['"fix"']),
        ("“typographic quotes” help", ['"typographic quotes"'], [], ['"help"']),
        ('"検索機能"', ['"検索 索機 機能"'], [], []),
        ("edge-case", [], [], ['"edge-case"', '"edge"', '"case"']),
        ("a - beta", [], [], ['"beta"']),
        ("fix --force", [], [], ['"fix"', '"force"']),
        ('"half open', [], [], ['"half"', '"open"']),
        ("-only", [], ['"only"'], []),
        ('""', [], [], []),
    ],
    ids=[
        "phrase",
        "all three",
        "excluded phrase",
        "typographic",
        "cjk phrase",
        "inner dash",
        "lone dash",
        "two dashes",
        "unbalanced",
        "only excluded",
        "empty quotes",
    ],
)
def test_phrases_and_excluded_words(text: str, phrases: list[str], excluded: list[str], terms: list[str]) -> None:
    query = parse_query(text)
    assert (list(query.phrases), list(query.excluded), list(query.terms)) == (phrases, excluded, terms)


@pytest.mark.parametrize("text", ["", "   ", "?!", '*:"', "-", "-x", "\x00", "\ud800", "()"])
def test_texts_without_words_are_empty(text: str) -> None:
    assert parse_query(text).is_empty


def test_a_query_is_cut_to_what_helps() -> None:
    assert len(parse_query(" ".join(f"word{number}" for number in range(1_000))).terms) == MAX_TERMS
    assert is_accepted(parse_query("word " * 100_000))
    assert is_accepted(parse_query('"' + "word " * 100_000 + '"'))


def test_words_of_a_text_are_taken_literally() -> None:
    query = parse_words('Never -force "main branch"')
    assert (query.phrases, query.excluded) == ((), ())
    assert list(query.terms) == ['"Never"', '"force"', '"main"', '"branch"']


def test_neighbouring_words_are_pairs_unless_a_common_word_parts_them() -> None:
    assert list(parse_query("connection reset of peers").pairs) == ['"connection reset"']
