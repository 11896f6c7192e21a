"""What of a chunk is embedded, and the name that its vector is cached under."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

_T = TypeVar("_T")


class Passage(NamedTuple):
    """The text of a chunk as it is embedded, and the hash it is cached by."""

    key: int
    hash: str
    text: str


def make_passage(key: int, title: str, headings: str, content: str) -> Passage:
    """Return what is embedded of a chunk; `title` is empty if it is only the file's name."""
    text = embedded_text(title, headings, content)
    return Passage(key, hash_text(text), text)


def embedded_text(title: str, headings: str, content: str) -> str:
    """Return a chunk's text under its title and headings, where they do not open it anyway.

    Example:
        >>> embedded_text("Deploy", "Rollback > By hand", "Stop the queue.")
        'Deploy\\nRollback > By hand\\n\\nStop the queue.'
        >>> embedded_text("Deploy", "", "# Deploy\\n\\nStop the queue.")
        '# Deploy\\n\\nStop the queue.'
    """
    opening = content[: len(title) + 16]
    head = [part for part in (title, headings) if part and part not in opening]
    return "\n".join(head) + "\n\n" + content if head else content


def hash_text(text: str) -> str:
    """Return the name under which the vector of a text is cached."""
    return hashlib.sha256(text.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()


def batched(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield the items in lists of at most `size`.

    Example:
        >>> list(batched("abc", 2))
        [['a', 'b'], ['c']]
    """
    batch: list[_T] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
