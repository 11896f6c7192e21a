"""Globs: `*` stays within a folder, `**` does not, and a pattern is never an error."""

from __future__ import annotations

import time
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_kb.globs import fits, fits_any, name_matcher

CASES = [
    pytest.param("src/*.py", ["src/a.py", "src/.py"], ["src/a/b.py", "a.py", "lib/src/a.py", "src/a.pyc"], id="star"),
    pytest.param(
        "src/**/*.py",
        ["src/a.py", "src/x/a.py", "src/x/y/a.py"],
        ["src.py", "lib/a.py", "xsrc/a.py"],
        id="star-star-between",
    ),
    pytest.param("**/a.py", ["a.py", "x/a.py", "x/y/a.py"], ["xa.py", "a.py.txt"], id="star-star-first"),
    pytest.param("docs/**", ["docs/a.md", "docs/x/y.md"], ["docs", "docs2/a.md"], id="star-star-last"),
    pytest.param("**", ["a", "a/b/c"], [], id="star-star-alone"),
    pytest.param("*", ["a", "a/b", ".x"], [], id="star-alone-takes-any-name"),
    pytest.param("*.py", ["a.py", "x/y/a.py"], ["a.pyc", "a.py.md"], id="name-anywhere"),
    pytest.param("Makefile", ["Makefile", "x/Makefile", "Makefile/x"], ["makefile", "Makefile2"], id="word"),
    pytest.param("src", ["src", "src/a.py", "x/src/y/a.py"], ["srcs/a.py", "asrc"], id="folder-anywhere"),
    pytest.param("src/", ["src/a.py", "x/src/a.py"], ["srcs/a.py"], id="folder-with-slash"),
    pytest.param("/src", ["src", "src/a.py"], ["x/src/a.py"], id="from-the-top"),
    pytest.param("./src/*.py", ["src/a.py"], ["x/src/a.py"], id="from-here"),
    pytest.param("src/api", ["src/api", "src/api/a/b.py"], ["src/apis", "x/src/api"], id="folder-with-path"),
    pytest.param("a?.md", ["ab.md", "x/aé.md"], ["a.md", "abc.md", "a/.md"], id="question-mark"),
    pytest.param("[ab].md", ["a.md", "x/b.md"], ["c.md", "ab.md"], id="class"),
    pytest.param("[!ab].md", ["c.md"], ["a.md", "cc.md"], id="not-in-class"),
    pytest.param("[a-c]1", ["a1", "c1"], ["d1", "-1"], id="range"),
    pytest.param("[^a]1", ["b1", "^1"], ["a1"], id="caret-as-in-gitignore"),
    pytest.param("[[]x]", ["[x]"], ["x", "x]"], id="bracket-in-class"),
    pytest.param("[ab", ["[ab"], ["a"], id="open-bracket"),
    pytest.param("a[]b", ["a[]b"], ["ab"], id="empty-class"),
    pytest.param("[z-a].md", ["[z-a].md"], ["z.md", "a.md"], id="range-backwards"),
    pytest.param("[!].md", ["[!].md"], ["!.md"], id="not-in-nothing"),
    pytest.param("[a&&b].md", ["a.md", "&.md"], ["c.md"], id="signs-of-other-dialects"),
    pytest.param("[a||b]", ["|"], ["c"], id="bars"),
    pytest.param("a.b+c(d)|e$", ["a.b+c(d)|e$"], ["aab+c(d)|e$"], id="signs-of-expressions"),
    pytest.param("{a,b}", ["{a,b}"], ["a"], id="braces-are-signs"),
    pytest.param("a\\b", ["a\\b"], ["ab"], id="backslash"),
    pytest.param("日本/*", ["日本/語"], ["日本語"], id="other-script"),
    pytest.param("a\nb*", ["a\nbc"], ["a"], id="line-break"),
]


@pytest.mark.parametrize(("pattern", "yes", "no"), CASES)
def test_what_a_pattern_fits(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [path for path in [*yes, *no] if fits(path, pattern)] == yes


def test_a_path_fits_one_of_several() -> None:
    assert fits_any("src/a.py", ["docs/**", "*.py"])
    assert not fits_any("src/a.py", ["docs/**", "*.md"])
    assert not fits_any("src/a.py", [])


NAMES = st.text(st.sampled_from("ab.*?[]!-^&|~(){}\\+é"), min_size=1, max_size=8)
PATHS = st.lists(st.text(st.sampled_from("ab.-é[!"), min_size=1, max_size=4), min_size=1, max_size=4).map("/".join)


@given(st.lists(NAMES, min_size=1, max_size=3).map("/".join), PATHS)
def test_no_pattern_is_an_error(pattern: str, path: str) -> None:
    assert fits(path, pattern) in (True, False)


@given(
    st.text(st.sampled_from("ab.?*"), min_size=1, max_size=6), st.text(st.sampled_from("ab."), min_size=1, max_size=6)
)
def test_within_one_name_it_is_the_ordinary_glob(pattern: str, name: str) -> None:
    if "**" not in pattern:
        assert bool(name_matcher(pattern)(name)) == fnmatchcase(name, pattern)


@given(PATHS)
def test_a_path_without_signs_fits_itself_and_what_is_in_it(path: str) -> None:
    if not set(path) & set("[*?") and not path.startswith("./"):
        assert fits(path, path)
        assert fits(f"{path}/below/it", path)


@pytest.mark.parametrize(
    "pattern", ["**/" * 8 + "y", "*a" * 8 + "b", "/**" * 8 + "/y"], ids=["folders", "names", "folders-from-the-top"]
)
def test_no_pattern_takes_long(pattern: str) -> None:
    """Patterns come with the notes of a cloned repository."""
    started = time.process_time()
    fits("a/" * 30 + "x", pattern)
    fits("a" * 40, pattern)
    assert time.process_time() - started < 2
