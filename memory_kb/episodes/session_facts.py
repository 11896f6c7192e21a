"""The facts of a session: what was done, what failed, how it ended; and when two errors are the same."""

import re
from typing import NamedTuple

from memory_kb.lazy_regex import lazy_regex


class Failure(NamedTuple):
    """An error of a session, with its type, and what made it go away, None while nothing has."""

    error: str
    resolution: str | None = None


class Commit(NamedTuple):
    """A commit that a tool reported."""

    hash: str
    subject: str


class Retry(NamedTuple):
    """A command that failed and then succeeded with a small change, nothing else having been done in between.

    `seq` is the number of the event that reports the failure, `error` the line it reports.
    """

    seq: int
    failed: str
    worked: str
    error: str


class Reverted(NamedTuple):
    """A change that a person asked to revert, and that was reverted; `seq` is the event with their words."""

    seq: int
    request: str
    files: tuple[str, ...]


class Trace(NamedTuple):
    """The facts of one task of a session, as its log has them.

    Attributes:
        seq: the number of the last event that counts for it.
        began: the moment of the first event, or ""; `ended` that of the last. Where the session was
            ended much later than it was worked on, or its log was begun later, that does not count.
        turns: how many messages people wrote; `actions` how many calls there were.
        steps: the lines of the action log, its head and tail.
        checks: whether each test run, build, lint run and deployment succeeded that no later one covers.
        seen: the files that were read; `constraints` are what the person said must always or never be.
        outcome: as the end of the session states it, or None; `summary` likewise.
    """

    session: str
    job: str | None = None
    task: str | None = None
    agent: str | None = None
    seq: int = 0
    began: str = ""
    ended: str = ""
    goal: str = ""
    turns: int = 0
    actions: int = 0
    steps: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    checks: tuple[bool, ...] = ()
    commits: tuple[Commit, ...] = ()
    changed: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    retries: tuple[Retry, ...] = ()
    reverted: tuple[Reverted, ...] = ()
    outcome: str | None = None
    summary: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was done that is worth an episode: a question and its answer are none."""
        return not (self.actions or self.outcome or self.summary)


#: What differs from one run to the next, and the placeholder for it.
_VOLATILE = tuple(
    (lazy_regex(pattern, re.IGNORECASE), word)
    for pattern, word in (
        (
            r"\b\d{4}-\d\d-\d\d(?:[T _]\d\d[:_]\d\d(?:[:_]\d\d(?:[.,_]\d+)?)?Z?)?\b|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b",
            "<time>",
        ),
        (
            (
                r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b0x[0-9a-f]{4,}\b|"
                r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{10,64}\b"
            ),
            "<hash>",
        ),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\[?::1\]?:\d+|\blocalhost:\d+\b", "<address>"),
        (r"(?<![\w/.:~@-])(?:[a-z]:)?~?(?:[/\\][\w.@+-]+){2,}(?::\d+)*:?", "<path>"),
        (r"(?<=\w\.\w)(?::\d+){1,2}\b|(?<=\w\.\w\w)(?::\d+){1,2}\b|(?<=\w\.\w\w\w)(?::\d+){1,2}\b", ""),
        (r"\b(line|column|port|pid|process|took|after|in) \d+(?:\.\d+)?(?:ms|s)?\b", r"\1 <n>"),
        (r"\b\d+(?:\.\d+)?(?:ms|s)\b|\b\d{4,}\b", "<n>"),
    )
)


def generalise(text: str) -> str:
    """Return a text about an error without what differs from one time to the next.

    Example:
        >>> generalise("connect to 127.0.0.1:5433 failed after 4.31s in /home/mira/shop/db.py:12")
        'connect to <address> failed after <n> in <path>'
    """
    text = " ".join(text.split())
    for pattern, word in _VOLATILE:
        text = pattern.sub(word, text)
    return re.sub(r"^<path>:? ", "", text)


def same_words(message: str) -> str:
    """Return a message as it is compared: in lower case, any number like any other."""
    return " ".join(re.sub(r"\d+", "#", message.casefold()).split())
