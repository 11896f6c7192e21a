"""Match paths with globs, and list what a walk ignores."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Iterable


def fits_any(path: str, patterns: Iterable[str]) -> bool:
    """Return whether a path fits one of the patterns.

    Example:
        >>> fits_any("src/api/users.py", ["src/api", "docs/**"]), fits_any("src/a.py", ["docs/**"])
        (True, False)
    """
    return any(fits(path, pattern) for pattern in patterns)


def fits(path: str, pattern: str) -> bool:
    """Return whether a path, or a folder above it, fits a pattern.

    `*` stays within a folder, `**` crosses folders; a pattern without a slash fits a file or
    folder of that name at any depth, one that begins with a slash only at the top. Patterns
    come from notes, so none may take long.

    Example:
        >>> fits("src/a/b/x.py", "src/**/*.py"), fits("src/a/x.py", "src/*.py"), fits("deep/down/x.py", "*.py")
        (True, False, True)
    """
    parts = path.split("/")
    wanted = pattern.removeprefix("./").strip("/").split("/")
    if len(wanted) == 1 and not pattern.startswith("/"):
        return wanted[0] == "**" or any(name_matcher(wanted[0])(part) for part in parts)
    # The places in the path that the pattern can have got to.
    places = {0}
    for number, name in enumerate(wanted):
        if name == "**":
            places = set(range(min(places) + (number == len(wanted) - 1), len(parts) + 1))
        else:
            matches = name_matcher(name)
            places = {place + 1 for place in places if place < len(parts) and matches(parts[place])}
        if not places:
            return False
    return True


_WILD = frozenset("*?[")


@functools.lru_cache(maxsize=1024)
def name_matcher(pattern: str) -> Callable[[str], object]:
    """Return a function that says whether one name, without slashes, fits a pattern.

    Example:
        >>> bool(name_matcher("*.p[yi]")("a.py")), bool(name_matcher("[^a]")("a"))
        (True, False)
    """
    return re.compile(_name_expression(pattern)).match if _WILD.intersection(pattern) else pattern.__eq__


def _name_expression(pattern: str) -> str:
    """Return the expression for a name; an invalid class matches itself literally."""
    return f"{fnmatch.translate(pattern.replace('[^', '[!'))}|{re.escape(pattern)}\\Z"


class Ignore:
    """Patterns for what a walk leaves out; folders are left out whole, so their contents need no test."""

    def __init__(self, patterns: Iterable[str]) -> None:
        cleaned = [pattern.removeprefix("./").rstrip("/") for pattern in patterns]
        names = frozenset(pattern for pattern in cleaned if pattern and "/" not in pattern)
        wild = sorted(name for name in names if _WILD.intersection(name))
        self._names = names.difference(wild)
        self._wild = re.compile("|".join(map(_name_expression, wild))) if wild else None
        self._paths = [pattern for pattern in cleaned if "/" in pattern]

    def covers(self, path: str) -> bool:
        """Return whether a file or folder is left out.

        Example:
            >>> ignore = Ignore(["node_modules", "docs/drafts/**"])
            >>> ignore.covers("a/node_modules"), ignore.covers("docs/drafts/x.md"), ignore.covers("a/notes.md")
            (True, True, False)
        """
        name = path[path.rfind("/") + 1 :]
        if name in self._names or (self._wild and self._wild.match(name)):
            return True
        return bool(self._paths) and fits_any(path, self._paths)
