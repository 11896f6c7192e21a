"""Compile regular expressions at their first use, since a command uses few of those in the modules that it loads."""

from __future__ import annotations

import re
from typing import Any, cast


class _Uncompiled:
    """Passes every use on to the compiled expression."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(*self._given), name)
        setattr(self, name, method)
        return method


def lazy_regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    r"""Return a regular expression for a module, which is compiled when it is first used.

    Example:
        >>> lazy_regex(r"\d+").findall("7 of 12")
        ['7', '12']
    """
    return cast("re.Pattern[str]", _Uncompiled(pattern, flags))
