"""Regular expressions that are compiled when they are first asked.

What reads sentences needs hundreds of them, and most commands none; to compile them all while
modules are loaded would cost every command what only a few need.
"""

from __future__ import annotations

import re
from typing import cast


def lazy_compile(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return a regular expression like `re.compile` does, but compile it only when it is asked.

    A match of it bears the compiled expression as its `re`, which is not this one.

    Raises:
        re.error: where it is no expression; not here, but when it is first asked.

    Example:
        >>> number = lazy_compile(r"[0-9]+")
        >>> "search" in vars(number)
        False
        >>> number.search("on 8 cores")[0], "search" in vars(number)
        ('8', True)
    """
    return cast("re.Pattern[str]", _Expression(source, flags))


class _Expression:
    """Stands for an expression; what was asked of it once is found without it."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags
        self.pattern = source

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        asked: object = getattr(re.compile(self._source, self._flags), name)
        self.__dict__[name] = asked
        return asked
