"""Where a file defines a symbol: by Python's own parser, and by patterns for other languages.

The patterns know the usual ways to write a definition. What they do not find is said not to be
found, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from memory_kb.learning.freshness.blocks import brace_block, indented_block, keyword_block, statement_block
from memory_kb.text import slugify

if TYPE_CHECKING:
    import ast

#: Files come from anywhere, and none may take long.
_MOST_MATCHES, _MAX_LINE = 200, 2_000
#: First and last line, from 1.
Place = tuple[int, int]
_PYTHON = (".py", ".pyi")
MARKDOWN = (".md", ".markdown", ".mdx")
_JS = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
_C = (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh")
_JAVA = (".java", ".kt", ".kts", ".cs", ".scala")
_MODIFIERS = r"(?:(?:public|private|protected|internal|static|async|readonly|override|abstract|final|get|set|default|export|declare)\s+)*"
#: Language -> how a definition of NAME begins; of those in the second tuple a body must follow.
_BRACED: dict[tuple[str, ...], tuple[tuple[str, ...], tuple[str, ...]]] = {
    _JS: (
        (
            rf"^\s*{_MODIFIERS}function\s*\*?\s*NAME\b",
            rf"^\s*{_MODIFIERS}(?:class|interface|type|enum|namespace|module)\s+NAME\b",
            rf"^\s*{_MODIFIERS}(?:const\s+enum|const|let|var)\s+NAME\b",
            rf"^\s+{_MODIFIERS}(?:#|this\.)?NAME\s*(?::[^=;]*)?=(?!=)",
        ),
        (rf"^\s+{_MODIFIERS}\*?#?NAME\s*(?:<[^>]*>)?\(",),
    ),
    (".go",): (
        (r"^func\s+(?:\([^)]*\)\s*)?NAME\s*[(\[]", r"^\s*type\s+NAME\b", r"^\s*(?:var|const)\s+NAME\b"),
        (),
    ),
    (".rs",): (
        (
            r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:default|const|async|unsafe|extern(?:\s+\"[^\"]*\")?)\s+)*fn\s+NAME\b",
            r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?:struct|enum|trait|union|mod|type|const|static(?:\s+mut)?|macro_rules!)\s+NAME\b",
        ),
        (r"^\s*(?:unsafe\s+)?impl\b[^{;]*\bNAME\b",),
    ),
    _JAVA: (
        (
            r"^\s*(?:[\w@]+\s+)*(?:class|interface|@interface|enum|record|object|trait|struct|namespace)\s+NAME\b",
            r"^\s*(?:[\w@]+\s+)*(?:fun|def)\s+(?:<[^>]*>\s*)?(?:[\w.]+\.)?NAME\b",
            r"^\s*(?:[\w@]+\s+)*(?:val|var)\s+NAME\b",
            r"^\s*(?:(?:public|private|protected|internal|static|final|const|readonly)\s+)+[\w<>\[\],.? ]+\s+NAME\s*[=;]",
        ),
        (r"^\s*(?:[\w<>\[\],.?@]+\s+)+NAME\s*(?:<[^>]*>)?\(",),
    ),
    _C: (
        (r"^\s*(?:typedef\s+)?(?:struct|enum|union|class|namespace)\s+NAME\b(?!\s*[*;)])",),
        (r"^(?:[\w:<>,~\[\]]+[\s*&]+)+(?:\w+::)*NAME\s*\(", r"^(?:\w+::)*~?NAME\s*\("),
    ),
}
_MACRO = r"^\s*#\s*define\s+NAME\b"
_RUBY = r"^(?P<indent>\s*)(?:def\s+(?:self\.)?|class\s+|module\s+)(?:\w+::)*NAME(?![\w?!])"
_SQL = (
    r"^\s*create\s+(?:or\s+replace\s+)?(?:(?:temp(?:orary)?|unlogged|materialized|unique|recursive)\s+)*"
    r"(?:table|view|function|procedure|trigger|type|index|sequence|schema)\s+(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?"
    r"(?:[\w\"`\[\]]+\.)?[\"`\[]?NAME\b"
)
_PYTHON_LINE = r"^(?P<indent>\s*)(?:(?:async\s+)?def|class)\s+NAME\b"
_MARKDOWN_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")


def knows_symbols(path: str) -> bool:
    """Tell whether symbols can be found in files with this name.

    Example:
        >>> knows_symbols("src/a.py"), knows_symbols("README")
        (True, False)
    """
    return path.casefold().endswith(
        (*_PYTHON, *MARKDOWN, ".rb", ".sql", *(ending for endings in _BRACED for ending in endings))
    )


def find_definitions(path: str, lines: Sequence[str], symbol: str) -> tuple[Place, ...]:
    """Return where a symbol is defined in a file, in the order of the lines; nowhere is empty.

    Example:
        >>> find_definitions("a.py", ["class Upload:", "    def send(self):", "        pass", "", "x = 1"], "Upload.send")
        ((2, 3),)
        >>> find_definitions("a.go", ["func (u *Upload) Send() {", "\\treturn", "}"], "Upload.Send")
        ((1, 3),)
        >>> find_definitions("a.md", ["# Use", "Run it.", "## How", "So.", "# Rest"], "use")
        ((1, 4),)
    """
    name = path.casefold()
    if name.endswith(_PYTHON):
        return _in_python(lines, symbol)
    if name.endswith(MARKDOWN):
        return tuple(islice(_headings(lines, symbol), _MOST_MATCHES))
    if name.endswith(".rb"):
        return _nested(symbol, lambda part: _ends(_matches(lines, _RUBY, part), lambda at: keyword_block(lines, at)))
    if name.endswith(".sql"):
        name = symbol.rpartition(".")[2]
        return tuple(_ends(_matches(lines, _SQL, name, re.IGNORECASE), lambda at: statement_block(lines, at)))
    endings = next((endings for endings in _BRACED if name.endswith(endings)), None)
    return _in_braces(lines, symbol, endings) if endings else ()


def _matches(lines: Sequence[str], pattern: str, name: str, flags: int = 0) -> list[int]:
    """Return the lines, from 1, on which a definition of a name may begin."""
    shape = re.compile(pattern.replace("NAME", re.escape(name)), flags)
    found = (
        number
        for number, line in enumerate(lines, 1)
        if name.casefold() in line.casefold() and shape.search(line[:_MAX_LINE])
    )
    return list(islice(found, _MOST_MATCHES))


def _ends(starts: Sequence[int], end_of: Callable[[int], int | None]) -> list[Place]:
    return [(at, end) for at in starts if (end := end_of(at)) is not None]


def _parts(symbol: str) -> list[str]:
    return [part for part in re.split(r"\.|::|#", symbol) if part]


def _nested(symbol: str, find: Callable[[str], Sequence[Place]]) -> tuple[Place, ...]:
    """Return the places of the last part of a symbol that lie within those of the parts before it."""
    outer: Sequence[Place] | None = None
    for part in _parts(symbol):
        inner = find(part)
        outer = (
            inner
            if outer is None
            else [one for one in inner if any(first <= one[0] and one[1] <= last for first, last in outer)]
        )
    return tuple(outer or ())


def _in_braces(lines: Sequence[str], symbol: str, endings: tuple[str, ...]) -> tuple[Place, ...]:
    free, bodied = _BRACED[endings]
    is_loose = endings in (_JS, (".go",), _JAVA)

    def find(name: str) -> list[Place]:
        found: dict[int, int] = {}
        for patterns, needs_body in ((bodied, True), (free, False)):
            for at in (at for pattern in patterns for at in _matches(lines, pattern, name)):
                end = brace_block(lines, at, is_loose=is_loose, needs_body=needs_body)
                if end is not None:
                    found[at] = end
        if endings == _C:
            found |= {at: _continued(lines, at) for at in _matches(lines, _MACRO, name)}
        return sorted(found.items())

    parts = _parts(symbol)
    within = _nested(symbol, find)
    if within or len(parts) < 2:
        return within
    # Methods that stand outside of their type: Go's receivers and C++'s qualified names.
    receiver = re.compile(
        rf"^func\s+\([^)]*\b{re.escape(parts[-2])}\b[^)]*\)|\b{re.escape(parts[-2])}(?:<[^>]*>)?::~?{re.escape(parts[-1])}\b"
    )
    return tuple(place for place in find(parts[-1]) if receiver.search(lines[place[0] - 1]))


def _continued(lines: Sequence[str], at: int) -> int:
    """Return the last line of a macro."""
    while at < len(lines) and lines[at - 1].endswith("\\"):
        at += 1
    return at


def _in_python(lines: Sequence[str], symbol: str) -> tuple[Place, ...]:
    import ast
    import warnings

    parts = _parts(symbol)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _nested(
            symbol, lambda part: _ends(_matches(lines, _PYTHON_LINE, part), lambda at: indented_block(lines, at))
        )
    nodes: list[ast.AST] = [tree]
    for part in parts:
        nodes = [child for node in nodes for child in _named(node, part)]
    return tuple(sorted(place for node in nodes if parts and (place := _place_of(node))))


def _named(node: ast.AST, name: str) -> Iterator[ast.AST]:
    """Yield what a class, function or module defines under a name, below `if` and `try` as well."""
    import ast

    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if child.name == name:
                yield child
        elif isinstance(child, ast.Assign | ast.AnnAssign):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                yield child
        elif isinstance(child, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            yield from _named(child, name)


def _place_of(node: ast.AST) -> Place | None:
    decorators = [one.lineno for one in getattr(node, "decorator_list", ())]
    start, end = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    return (min([start, *decorators]), end) if start and end else None


def _headings(lines: Sequence[str], symbol: str) -> Iterator[Place]:
    """Yield the sections whose heading, or its anchor, is the symbol."""
    heads: list[tuple[int, int, str]] = []
    fence = ""
    for number, line in enumerate(lines, 1):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and (found := _MARKDOWN_HEADING.match(line)):
            heads.append((number, len(found[1]), found[2]))
    wanted = symbol.strip().casefold()
    for place, (number, level, title) in enumerate(heads):
        if wanted in (title.casefold(), _anchor(title), slugify(title)):
            after = next((other for other, rank, _ in heads[place + 1 :] if rank <= level), len(lines) + 1)
            while after - 1 > number and not lines[after - 2].strip():
                after -= 1
            yield number, after - 1


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.casefold()).replace(" ", "-")
