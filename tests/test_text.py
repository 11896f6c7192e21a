"""Words: tokens for every script, file names that are safe everywhere, and cutting to length."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_kb.terms import MARKS, cut_word, extra_terms, has_cjk, jaccard, run_terms, symbol_terms, word_tokens
from memory_kb.text import count_tokens, shorten, slugify

ANY = st.text(st.characters(codec="utf-8"), max_size=80)
MIXED = st.text(st.sampled_from("aB1 _-#+日本語ひらカタ한국ﬀéß\u0301\u3000\n.🎉\U00020000"), max_size=40)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("plain", False, id="ascii"),
        pytest.param("Größe Привет", False, id="alphabets"),
        pytest.param("検索", True, id="han"),
        pytest.param("ひらがな", True, id="hiragana"),
        pytest.param("カタカナ", True, id="katakana"),
        pytest.param("ｶﾀｶﾅ", True, id="half-width"),
        pytest.param("검색", True, id="hangul"),
        pytest.param("\U00020000", True, id="rare-han"),
        pytest.param("人々〆", True, id="iteration-mark"),
        pytest.param("🎉「」、。", False, id="signs"),
    ],
)
def test_scripts_that_need_cutting(text: str, found: bool) -> None:
    assert has_cjk(text) is found
    assert bool(extra_terms(text)) is found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("Run the Tests, run!", {"run", "the", "tests"}, id="case-and-signs"),
        pytest.param("user_name v1.2", {"user_name", "v1", "2"}, id="identifiers"),
        pytest.param("STRASSE Straße", {"strasse"}, id="sharp-s"),
        pytest.param("索引", {"索引", "引"}, id="pair"),
        pytest.param("字", {"字"}, id="one-sign"),
        pytest.param("Obsidian同期v2", {"obsidian", "同期", "期", "v2"}, id="mixed"),
        pytest.param("—…!?", set(), id="signs-alone"),
        pytest.param("", set(), id="nothing"),
    ],
)
def test_tokens(text: str, words: set[str]) -> None:
    assert word_tokens(text) == words


@given(MIXED)
def test_the_pieces_of_a_word_are_the_word(word: str) -> None:
    pieces = list(cut_word(word))
    assert "".join(piece for piece, _ in pieces) == word
    assert all(piece and has_cjk(piece) is is_cjk for piece, is_cjk in pieces)
    assert all(a[1] != b[1] for a, b in pairwise(pieces))


@given(st.text(st.sampled_from("日本語検索"), min_size=1, max_size=8))
def test_every_pair_and_every_sign_of_a_run_can_be_found(run: str) -> None:
    terms = run_terms(run)
    assert all(any(term.startswith(sign) for term in terms) for sign in run)
    assert all(run[place : place + 2] in terms for place in range(len(run) - 1))
    assert set(terms) == word_tokens(run)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("C++ and C#", "Cplusplus Csharp"),
        ("F# (or c++)", "cplusplus Fsharp"),
        ("i++; a+++b", "iplusplus"),
        ("issue #12, ++x, # heading, ab#", ""),
        ("notepad++", "notepadplusplus"),
    ],
)
def test_names_that_live_by_their_signs(text: str, terms: str) -> None:
    assert symbol_terms(text) == terms


SETS = st.frozensets(st.sampled_from("abcdefgh"), max_size=8)


@given(SETS, SETS)
def test_likeness_is_a_symmetric_share(a: frozenset[str], b: frozenset[str]) -> None:
    assert jaccard(a, b) == jaccard(b, a)
    assert 0.0 <= jaccard(a, b) <= 1.0
    assert (jaccard(a, b) == 1.0) == (a == b != frozenset())
    assert (jaccard(a, b) == 0.0) == (not a & b)


@pytest.mark.parametrize(("length", "cost"), [(0, 0), (1, 1), (4, 1), (5, 2), (8, 2), (4001, 1001)])
def test_what_a_text_costs(length: int, cost: int) -> None:
    assert count_tokens("x" * length) == cost


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        pytest.param("Retry, then: fail?", "retry-then-fail", id="signs"),
        pytest.param("  ..  /etc/passwd ", "etc-passwd", id="path"),
        pytest.param("user_name", "user-name", id="underscore"),
        pytest.param("Straße ÜBER", "strasse-über", id="case"),
        pytest.param("検索 機能", "検索-機能", id="other-script"),
        pytest.param("a" * 59 + " b", "a" * 59, id="no-dash-at-the-cut"),
        pytest.param("é" * 40, "é" * 30, id="bytes-count"),
        pytest.param("日" * 40, "日" * 20, id="no-half-characters"),
        pytest.param("", "note", id="nothing"),
        pytest.param("🎉 …", "note", id="no-letters"),
    ],
)
def test_slugs(text: str, slug: str) -> None:
    assert slugify(text) == slug


@given(ANY | MIXED, st.integers(8, 80))
def test_a_slug_is_a_safe_name(text: str, limit: int) -> None:
    slug = slugify(text, limit)
    assert 0 < len(slug.encode()) <= limit
    word = rf"[^\W_](?:[^\W_]|[{MARKS}])*"
    assert re.fullmatch(f"{word}(?:-{word})*", slug)
    assert slugify(slug, limit) == slug


@given(ANY, st.integers(1, 60))
def test_a_shortened_line_fits(text: str, limit: int) -> None:
    line = " ".join(text.split())
    short = shorten(text, limit)
    assert len(short) <= limit
    assert short == line if len(line) <= limit else short.endswith("…") and line.startswith(short[:-1])


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [
        ("one two three", 9, "one two…"),
        ("one\n two ", 9, "one two"),
        ("unbreakable", 6, "unbre…"),
        ("a unbreakable", 8, "a unbre…"),
        ("exactly ten", 11, "exactly ten"),
    ],
)
def test_lines_are_cut_at_words(text: str, limit: int, short: str) -> None:
    assert shorten(text, limit) == short
