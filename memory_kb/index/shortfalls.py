"""What whoever reads from the index should know of notes that it could read only in part."""

from __future__ import annotations

from collections.abc import Sequence

from memory_kb.ports import Fault
from memory_kb.text import printable


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
    return (f"the frontmatter at {first} and {others} cannot be read; only its good lines count, `memory-kb lint` tells all",)
