"""What whoever reads from the index should know of notes that it could read only in part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from memory_kb.model import Problem
from memory_kb.notes.walk import UNLISTED
from memory_kb.ports import Fault
from memory_kb.text import printable

#: What problems say of a file whose text is not indexed as it is meant.
IS_UTF_16, NOT_UTF_8, HAS_NUL, IS_CUT = (
    "is UTF-16",
    "is not valid UTF-8",
    "contains NUL bytes",
    "over index.max_file_bytes",
)

#: What problems say, and what such are called; those first by which most text is lost to a search.
_SORTS = (
    (UNLISTED, "unlisted"),
    ("cannot be read:", "unreadable"),
    (IS_CUT, "too large"),
    (HAS_NUL, "NUL bytes"),
    (IS_UTF_16, "UTF-16"),
    (NOT_UTF_8, "not UTF-8"),
    ("skipped", "skipped"),
    ("frontmatter", "frontmatter"),
    ("is never closed", "fences"),
    ("is not a known word", "unknown words"),
)
_OTHERS = "others"


def tell_cut(problems: Sequence[Problem]) -> tuple[str, ...]:
    """Say in one sentence which files are larger than what is indexed of them.

    Example:
        >>> tell_cut([Problem("a.md", 1, "is 5.0 MB"), Problem("b.md", 1, "is 7.0 MB")])
        ('a.md is 5.0 MB (and 1 file more is too large)',)
    """
    if not problems:
        return ()
    more = len(problems) - 1
    others = f" (and {more:,} {'file more is' if more == 1 else 'files more are'} too large)" if more else ""
    return (f"{problems[0].path} {problems[0].message}{others}",)


def by_loss(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return problems by sort, those first by which text is lost to a search.

    Example:
        >>> found = [Problem("a.md", 1, "kind x is not a known word"), Problem("b.md", 1, "is UTF-16, and read as such")]
        >>> [problem.path for problem in by_loss(found)]
        ['b.md', 'a.md']
    """
    names = [name for _, name in _SORTS]
    return tuple(
        sorted(problems, key=lambda problem: names.index(_sort(problem)) if _sort(problem) in names else len(names))
    )


def count_sorts(problems: Iterable[Problem]) -> str:
    """Return how many problems there are of each sort.

    Example:
        >>> count_sorts([Problem("a.md", 1, "kind x is not a known word"), Problem("b.md", 1, "is UTF-16, and read as such")])
        '1 UTF-16, 1 unknown words'
    """
    counts = Counter(map(_sort, by_loss(problems)))
    return ", ".join(f"{number:,} {name}" for name, number in counts.items())


def _sort(problem: Problem) -> str:
    return next((name for said, name in _SORTS if said in problem.message), _OTHERS)


def tell_faults(faults: Sequence[Fault]) -> tuple[str, ...]:
    """Say in one sentence where frontmatter cannot be read.

    Example:
        >>> tell_faults([Fault("a.md", 3)])
        ('the frontmatter at a.md:3 cannot be read; only its good lines count',)
        >>> tell_faults([Fault("a.md", 3), Fault("b.md", 2)])
        ('the frontmatter at a.md:3 and in 1 more place cannot be read; only its good lines count, `memory-kb lint` tells all',)
    """
    if not faults:
        return ()
    first, more = f"{printable(faults[0].path)}:{faults[0].line}", len(faults) - 1
    if not more:
        return (f"the frontmatter at {first} cannot be read; only its good lines count",)
    others = f"in {more:,} more place{'' if more == 1 else 's'}"
    return (
        f"the frontmatter at {first} and {others} cannot be read; only its good lines count, `memory-kb lint` tells all",
    )
