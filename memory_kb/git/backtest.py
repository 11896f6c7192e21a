"""Find past commits that a rule would have stopped, and how many of them were fixed soon after."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from memory_kb.git.repository import Repository
from memory_kb.learning.guards import Guard

#: The most commits that are looked through, the newest.
MOST_COMMITS = 2_000
_DIFF = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "-U0")
_NAMES = ("-c", "core.quotePath=false")
_WEEK = 7 * 86_400
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)")


#: The lines added, with their numbers, and removed, by file.
ChangedLines = dict[str, tuple[list[tuple[int, str]], list[str]]]


class Breach(NamedTuple):
    """A commit that broke a rule: the first such line of a file, and when it was fixed within a week, if it was."""

    commit: str
    day: str
    subject: str
    path: str
    line: int
    text: str
    mended_by: str | None = None


@dataclass(frozen=True, slots=True)
class Backtest:
    """The commits that broke a rule, the newest first, and how many commits were checked."""

    rule: str
    commits: int
    breaches: tuple[Breach, ...]

    @property
    def broken(self) -> int:
        """How many commits broke it."""
        return len({one.commit for one in self.breaches})

    @property
    def mended(self) -> int:
        """How many of these were fixed or reverted within a week."""
        return len({one.commit for one in self.breaches if one.mended_by})


class CheckedCommit(NamedTuple):
    """A commit, or a change that ends at a revision, with the lines that it adds and removes."""

    name: str
    seconds: int
    subject: str
    files: ChangedLines


def backtest(repository: Repository, guard: Guard, project: str = "") -> Backtest:
    """Walk the history of the branch that is checked out, the oldest commit first.

    A commit breaks `forbid` with a line that it adds, and `require` with a file that it changes and that lacks the
    pattern then. It was fixed where the line went, or the file got the pattern, within seven days.
    """
    found: list[Breach] = []
    waiting: list[tuple[int, int]] = []
    log = repository.git(
        *_NAMES, "log", f"-{MOST_COMMITS}", "-p", "--first-parent", "-m", *_DIFF, "--format=%x01%H%x00%ct%x00%s%x00"
    )
    records = log.split(b"\x01")[1:]
    for record in reversed(records):
        name, moment, subject, diff = record.split(b"\0", 3)
        files = _read_diff(diff.decode("utf-8", "replace"))
        commit = CheckedCommit(name.decode(), int(moment), subject.decode("utf-8", "replace"), files)
        waiting = [one for one in waiting if one[1] + _WEEK >= commit.seconds]
        for place, seconds in list(waiting):
            if _fixes(repository, guard, commit, found[place]):
                found[place] = found[place]._replace(mended_by=commit.name[:10])
                waiting.remove((place, seconds))
        for breach in find_breaches(repository, guard, project, commit):
            waiting.append((len(found), commit.seconds))
            found.append(breach)
    return Backtest(guard.rule, len(records), tuple(reversed(found)))


def read_change(repository: Repository, base: str, head: str) -> CheckedCommit:
    """Return what a change between two revisions does, as one commit."""
    diff = repository.git(*_NAMES, "diff", *_DIFF, base, head)
    return CheckedCommit(head, 0, "", _read_diff(diff.decode("utf-8", "replace")))


def find_covered(guard: Guard, project: str, files: Iterable[str]) -> str | None:
    """Return the first file of a change that a rule is about."""
    return next((one for one in files if one.startswith(project) and guard.covers(one.removeprefix(project))), None)


def find_breaches(repository: Repository, guard: Guard, project: str, commit: CheckedCommit) -> Iterator[Breach]:
    """Yield where a commit breaks a rule, the first such line of each file."""
    for path, (added, removed) in commit.files.items():
        if not find_covered(guard, project, [path]):
            continue
        new = ((number, line) for number, line in added if line not in removed)
        broken = guard.find_broken(new, functools.partial(_text, repository, commit.name, path))
        if broken:
            day = datetime.fromtimestamp(commit.seconds, UTC).date().isoformat()
            yield Breach(commit.name[:10], day, commit.subject, path, broken[0], broken[1].strip())


def _fixes(repository: Repository, guard: Guard, commit: CheckedCommit, breach: Breach) -> bool:
    added, removed = commit.files.get(breach.path, ([], []))
    if breach.text:
        return any(line.strip() == breach.text for line in removed) and not any(
            line.strip() == breach.text for _, line in added
        )
    return bool(added or removed) and not guard.misses(lambda: _text(repository, commit.name, breach.path))


def _text(repository: Repository, commit: str, path: str) -> str:
    return (repository.blob(commit, path) or b"").decode("utf-8", "replace")


def _read_diff(diff: str) -> ChangedLines:
    r"""Return the lines added, with their numbers, and removed, by file.

    Example:
        >>> _read_diff("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n")
        {'x': ([(1, 'new')], ['old'])}
    """
    files: ChangedLines = {}
    path, number, is_head = "", 0, True
    for line in diff.split("\n"):
        if line.startswith("diff --git "):
            is_head = True
        elif is_head and line.startswith(("--- ", "+++ ")):
            named = line[4:].rstrip("\t")
            path = path if named == os.devnull else named.strip('"')[2:]
        elif hunk := _HUNK.match(line):
            is_head, number = False, int(hunk[1])
        elif not is_head and line.startswith("+"):
            files.setdefault(path, ([], []))[0].append((number, line[1:]))
            number += 1
        elif not is_head and line.startswith("-"):
            files.setdefault(path, ([], []))[1].append(line[1:])
    return files
