"""The facts of a session: what was done, what failed, how it ended; and when two errors are the same."""

import re
from typing import NamedTuple


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


def same_words(message: str) -> str:
    """Return a message as it is compared: in lower case, any number like any other."""
    return " ".join(re.sub(r"\d+", "#", message.casefold()).split())
