"""What may be cited, and how a span or a symbol is known again in a file that changed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memory_kb.learning.freshness.citations import InvalidReference, Reference, parse_reference, suggest_references
from memory_kb.learning.freshness.definitions import find_definitions
from memory_kb.learning.freshness.spans import compare_lines, find_lines, hash_lines, split_lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("src/a.py", Reference("src/a.py")),
        ("./src/a.py", Reference("src/a.py")),
        ("src\\a.py#L3", Reference("src/a.py", 3, 3)),
        ("src/a.py#L10-L20", Reference("src/a.py", 10, 20)),
        ("src/a.py#L10-20", Reference("src/a.py", 10, 20)),
        ("src/a.py#L10C5-L20C1", Reference("src/a.py", 10, 20)),
        ("src/a.py:10-20", Reference("src/a.py", 10, 20)),
        ("src/a.py:10", Reference("src/a.py", 10, 10)),
        ("src/a.py:10:5", Reference("src/a.py", 10, 10)),
        ("src/a.py::Client.send", Reference("src/a.py", symbol="Client.send")),
        ("src/a.py::Client::send", Reference("src/a.py", symbol="Client::send")),
        ("src/a.py#send()", Reference("src/a.py", symbol="send")),
        ("docs/api.md#Rate limits", Reference("docs/api.md", symbol="Rate limits")),
        ("Makefile", Reference("Makefile")),
        ("docs/two words.md", Reference("docs/two words.md")),
        ("3f2a9c1", Reference("", commit="3f2a9c1")),
        ("./3f2a9c1", Reference("3f2a9c1")),
        ("a" * 40, Reference("", commit="a" * 40)),
    ],
)
def test_references(text: str, expected: Reference) -> None:
    assert parse_reference(text) == expected
    assert parse_reference(expected.text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "/etc/passwd",
        "~/x",
        "../x.py",
        "src/../../x.py",
        "src\\..\\x.py",
        "C:\\x.py",
        "https://example.org/x.py",
        ".git/config",
        "src/.GIT/x",
        "a.py:0",
        "a.py#L5-L3",
        "a\nb.py",
        "a\0b",
        "x" * 501,
        "./",
    ],
)
def test_what_is_no_reference(text: str) -> None:
    with pytest.raises(InvalidReference):
        parse_reference(text)


@given(st.text(max_size=60) | st.text("abc012#L:-/.@~\\", max_size=12))
def test_any_text_is_a_reference_or_says_why_not(text: str) -> None:
    try:
        reference = parse_reference(text)
    except InvalidReference as exc:
        assert str(exc)
    else:
        assert not reference.path.startswith(("/", "~"))
        assert ".." not in reference.path.split("/")
        assert parse_reference(reference.text) == reference


def test_what_a_text_seems_to_cite() -> None:
    text = (
        "See `src/a.py:4-7`, [the docs](docs/api.md#Limits), `docs/x.md#L3` and `src/a.py:4-7` again.\n"
        "Not `x = 1`, `pytest -q`, `../out.py`, [web](https://example.org/a.py), `self.run()` or ![p](img/a.png).\n"
        "```\n`in/fence.py`\n```\n"
    )
    assert [one.text for one in suggest_references(text)] == ["src/a.py#L4-L7", "docs/api.md::Limits", "docs/x.md#L3"]


TEXT = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=12), min_size=1, max_size=12
)


@given(
    above=TEXT, span=TEXT, below=TEXT, newline=st.sampled_from(["\n", "\r\n"]), tail=st.sampled_from(["", " ", "\t "])
)
def test_an_unchanged_span_is_found_wherever_it_moves(
    above: list[str], span: list[str], below: list[str], newline: str, tail: str
) -> None:
    lines = split_lines(newline.join(f"{line}{tail}" for line in (*above, *span, *below, "end")))
    start = find_lines(lines, hash_lines(split_lines("\n".join((*span, "x")))[:-1]), len(span), len(above) + 1)
    assert start == len(above) + 1


@given(span=TEXT, where=st.integers(0, 11), new=st.text("abc", min_size=1, max_size=3))
def test_a_changed_span_is_not_found(span: list[str], where: int, new: str) -> None:
    before = split_lines("\n".join((*span, "x")))[:-1]
    after = list(before)
    after[where % len(after)] += new
    assume("\n".join(before) not in "\n".join(after))
    assert find_lines(after, hash_lines(before), len(before)) is None


def test_the_nearest_of_several_is_meant() -> None:
    lines = ["same", "a", "same", "b", "same"]
    assert [find_lines(lines, hash_lines(["same"]), 1, near) for near in (1, 2, 4, 9)] == [1, 1, 3, 5]


def test_what_changed_within_lines_that_moved() -> None:
    changed = compare_lines(["x", "a", "b", "c", "y"], ["new", "new", "x", "a", "B", "c", "y", "z"], (2, 4))
    assert changed
    assert changed == (("- b", "+ B"), (4, 6))


LANGUAGES: list[tuple[str, str, str, Sequence[tuple[int, int]]]] = [
    ("a.py", "@dec\ndef f():\n    s = '''\nx\n'''\n    return 1\nX = 3\n", "f", [(1, 6)]),
    ("a.py", "if a:\n    def f(): return 1\nelse:\n    def f():\n        return 2\n", "f", [(2, 2), (4, 5)]),
    ("a.py", "X: int = (\n    3\n)\n", "X", [(1, 3)]),
    ("a.py", "class A:\n    def f(self):\n        pass\ndef f(): pass\n", "A.f", [(2, 3)]),
    ("a.py", "def broken(:\ndef f():\n    return 1\n\nx\n", "f", [(2, 3)]),
    (
        "a.ts",
        "export async function f<T>(a: {x: number}): Promise<{y: T}> {\n  const s = '}'; // }\n  return `}${a}`;\n}\nf();\n",
        "f",
        [(1, 4)],
    ),
    ("a.ts", "export const f = (a) => {\n  return 1;\n};\n", "f", [(1, 3)]),
    ("a.ts", "class A {\n  private send(x) {\n    if (x) { send() }\n  }\n}\n", "A.send", [(2, 4)]),
    ("a.ts", "type U =\n  | 'a'\n  | 'b'\nload()\n", "U", [(1, 3)]),
    ("a.js", "const g = 3\nconst h = 4\n", "g", [(1, 1)]),
    (
        "a.go",
        "type T struct {\n\ta int\n}\n\nfunc (t *T) Run() error {\n\treturn nil\n}\nfunc Run() {}\n",
        "T.Run",
        [(5, 7)],
    ),
    (
        "a.rs",
        "struct S<'a> {\n  a: &'a str,\n}\nimpl<'a> S<'a> {\n  pub async fn go(&self) -> u8 {\n    let c = '{';\n  }\n}\n",
        "S::go",
        [(5, 7)],
    ),
    (
        "A.java",
        "class A {\n  @Override\n  public Map<K, V> run(int a) throws E {\n    run(1);\n  }\n}\n",
        "A.run",
        [(3, 5)],
    ),
    ("a.c", "int f(int);\nstatic int\nf(int a)\n{\n  return 1;\n}\nint g(void) { return f(1); }\n", "f", [(3, 6)]),
    ("a.c", "#define M(x) \\\n  (x)\nint a;\n", "M", [(1, 2)]),
    ("a.cpp", "void A::b() {\n}\nvoid b() {\n}\n", "A::b", [(1, 2)]),
    ("a.rb", "class B\n  def c(x)\n    if x\n    end\n  end\nend\n", "B#c", [(2, 5)]),
    ("a.sql", "CREATE TABLE IF NOT EXISTS public.users (\n a text default ';'\n);\nselect 1;\n", "users", [(1, 3)]),
    ("a.md", "# A\n\n## Use it, now!\ntext\n```\n# B\n```\n\n## C\n", "use-it-now", [(3, 7)]),
    ("a.md", "# A\n\n```\n# B\n```\n", "B", []),
    ("a.py", "f()\n", "f", []),
    ("a.c", "int f(int);\n", "f", []),
    ("a.xyz", "def f():\n", "f", []),
]


@pytest.mark.parametrize(
    ("path", "text", "symbol", "expected"), LANGUAGES, ids=[f"{path}-{symbol}" for path, _, symbol, _ in LANGUAGES]
)
def test_where_a_symbol_is_defined(path: str, text: str, symbol: str, expected: Sequence[tuple[int, int]]) -> None:
    assert list(find_definitions(path, split_lines(text), symbol)) == list(expected)


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("a.c", ["x " + "*" * 1500 + " & " * 100 + "name"] * 20),
        ("a.js", ["const name = 1 +", "/*" * 200_000]),
        ("a.js", ["const name = 1 +", "`\\" * 200_000]),
        ("a.js", ["const name = 1 +", '"\\' * 200_000]),
        ("a.js", ["const name = {"] * 20_000),
        ("a.sql", ["create table name (", "$a$ $b$ '" * 50_000]),
        ("a.md", ["# name"] * 20_000),
        ("a.py", ["(" * 100_000, "name = " + "-" * 90_000 + "1"]),
    ],
    ids=["stars", "comments", "ticks", "quotes", "many", "dollars", "headings", "depth"],
)
def test_no_file_keeps_us_long(path: str, lines: list[str]) -> None:
    """What takes exponential or quadratic time does not end within the time that tests have."""
    assert len(find_definitions(path, lines, "name")) <= 200
