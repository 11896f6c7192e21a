"""Glob patterns over POSIX paths, with `**`, for `ignore` and `applies_to`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

_TOKEN = re.compile(r"/\*\*/|\*\*/|/\*\*$|\*\*|\*|\?|\[!?[^\]/]+\]")


@functools.lru_cache(maxsize=1024)
def compile_glob(pattern: str) -> re.Pattern[str]:
    """Return the expression a glob stands for: `*` within a folder, `**` across folders.

    A pattern without a slash fits a file or folder of that name at any depth.

    Example:
        >>> bool(compile_glob("src/**/*.py").fullmatch("src/a/b/x.py")), bool(compile_glob("src/*.py").fullmatch("src/a/x.py"))
        (True, False)
        >>> bool(compile_glob("*.py").fullmatch("deep/down/x.py"))
        True
    """
    pattern = pattern.removeprefix("./")
    anchored = "/" in pattern.rstrip("/")
    pattern = pattern.strip("/")
    parts, end = [], 0
    for token in _TOKEN.finditer(pattern):
        parts += [re.escape(pattern[end : token.start()]), _expression(token.group())]
        end = token.end()
    parts.append(re.escape(pattern[end:]))
    return re.compile(("" if anchored else "(?:.*/)?") + "".join(parts), re.DOTALL)


def _expression(token: str) -> str:
    match token:
        case "/**/":
            return "/(?:.*/)?"
        case "**/":
            return "(?:.*/)?"
        case "/**":
            return "/.*"
        case "**":
            return ".*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
        case _:
            inner = token[1:-1].replace("\\", "\\\\").replace("[", "\\[")
            return f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"


def fits_any(path: str, patterns: Iterable[str]) -> bool:
    """Tell whether a path fits one of the patterns; a pattern that names a folder covers what is in it.

    Example:
        >>> fits_any("src/api/users.py", ["src/api", "docs/**"]), fits_any("src/a.py", ["docs/**"])
        (True, False)
    """
    return any(fits(path, pattern) for pattern in patterns)


def fits(path: str, pattern: str) -> bool:
    """Tell whether a path, or a folder above it, fits a pattern."""
    try:
        expression = compile_glob(pattern)
    except re.error:
        return path == pattern
    if expression.fullmatch(path):
        return True
    return any(expression.fullmatch(path, 0, place) for place in _slashes(path))


def _slashes(path: str) -> Iterable[int]:
    place = path.find("/")
    while place >= 0:
        yield place
        place = path.find("/", place + 1)
