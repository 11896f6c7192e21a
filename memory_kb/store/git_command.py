"""Run git without starting anything that a repository's configuration names."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from memory_kb.store.worktrees import find_repository

#: Set by git for its hooks; they would make it look at another repository than the folder's.
_HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_PREFIX")
_OFF = {
    "core.fsmonitor": "",
    "core.pager": "cat",
    "core.askPass": "",
    "credential.helper": "",
    "diff.external": "",
    "diff.orderFile": os.devnull,
    "log.showSignature": "false",
    "maintenance.auto": "false",
    "gc.auto": "0",
    "safe.bareRepository": "explicit",
}
_READING = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
}
_MORE = {
    "status": ("--ignore-submodules=dirty",),
    "diff": ("--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"),
    "show": ("--no-ext-diff", "--no-textconv"),
    "log": ("--no-ext-diff", "--no-textconv"),
}
#: How long a question may take.
_SECONDS = 20
#: The commands that run the filters of a repository.
_FILTERING = ("status", "diff", "add", "commit")
_STARTED = r"^(filter\..*\.(clean|smudge|process|required)|core\.hookspath|gpg\..*(program|defaultkeycommand))$"
#: Filters that people set up for a repository, by what the programs' own installers write.
_KNOWN_FILTERS = frozenset(
    (
        *("git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs filter-process"),
        *("git-crypt clean", "git-crypt smudge", '"git-crypt" clean', '"git-crypt" smudge'),
    )
)
_SIGNERS = {
    "gpg.program": "gpg",
    "gpg.openpgp.program": "gpg",
    "gpg.x509.program": "gpgsm",
    "gpg.ssh.program": "ssh-keygen",
}


def run_git(
    folder: Path,
    environ: Mapping[str, str],
    arguments: Sequence[str],
    *,
    seconds: float,
    stdin: bytes = b"",
    with_hooks: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """Run a git command in a folder.

    With `with_hooks` the hooks of `.git/hooks` and of the person's own configuration run, for a commit that a person
    asked for.

    Raises:
        OSError: git cannot be run.
        ValueError: a word is none that a program can be given.
        subprocess.SubprocessError: it takes too long.
    """
    variables = _environment(environ) if with_hooks else _environment(environ) | _READING
    off = dict(_OFF) if with_hooks else _OFF | {"core.hooksPath": "/dev/null"}
    if arguments[0] in _FILTERING:
        off |= _switch_off(read_started(folder, environ), folder, variables, with_hooks=with_hooks)
    options = [word for name, value in off.items() for word in ("-c", f"{name}={value}")]
    command, *rest = arguments
    words = ("--no-pager", *options, command, *_MORE.get(command, ()), *rest)
    return _call(folder, variables, words, seconds, stdin)


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    own = {name: value for name, value in environ.items() if name not in _HOOK_VARIABLES}
    return own | {"PATH": own.get("PATH") or os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def read_started(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the commands that a repository's own configuration has git start, by key, without the person's own."""
    variables = _environment(environ)
    asked = ("config", "--includes", "--show-scope", "-z", "--get-regexp", _STARTED)
    try:
        done = _call(folder, variables, asked, _SECONDS)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    found: dict[str, str] = {}
    words = done.stdout.split(b"\0")
    for scope, line in zip(words[::2], words[1::2], strict=False):
        name, _, value = os.fsdecode(line).partition("\n")
        if name and scope in (b"local", b"worktree"):
            found[name] = value
    return found


def foreign_filters(started: Mapping[str, str]) -> frozenset[str]:
    """Return the filters that only a repository's own configuration names.

    Example:
        >>> sorted(foreign_filters({"filter.lfs.clean": "git-lfs clean -- %f", "filter.x.clean": "sh -c y", "filter.x.required": "true"}))
        ['x']
    """
    return frozenset(
        name.split(".", 1)[1].rpartition(".")[0]
        for name, value in started.items()
        if name.startswith("filter.") and not name.endswith(".required") and value not in _KNOWN_FILTERS
    )


def _switch_off(
    started: Mapping[str, str], folder: Path, variables: dict[str, str], *, with_hooks: bool
) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in foreign_filters(started):
        found |= {f"filter.{name}.{what}": "" for what in ("clean", "smudge", "process")}
        found[f"filter.{name}.required"] = "false"
    for name in started:
        if name.startswith("gpg."):
            found[name] = _SIGNERS.get(name, "")
    if with_hooks and "core.hookspath" in started:
        output = _call(folder, variables, ("rev-parse", "--git-common-dir"), _SECONDS)
        common = os.path.join(folder, os.fsdecode(output.stdout).rstrip("\n"))
        found["core.hooksPath"] = os.path.join(common, "hooks")
    return found


def _call(
    folder: Path, variables: dict[str, str], arguments: Sequence[str], seconds: float, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # noqa: S603 - no shell, and the words are options of ours and names of files
        ["git", "-C", str(folder), *arguments],  # noqa: S607 - the git that the person uses
        capture_output=True,
        input=stdin,
        timeout=seconds,
        check=False,
        env=variables,
    )


def tracks(folder: Path, environ: Mapping[str, str]) -> bool:
    """Return whether git keeps a file of a folder, or may do so: where it cannot be asked, it does."""
    top = Path(os.path.realpath(folder.parent))
    if find_repository(top) is None:
        return False
    listed = ask_git(top, {**environ, "GIT_LITERAL_PATHSPECS": "1"}, ("ls-files", "-z", "--", folder.name))
    return listed is None or bool(listed)


_MAX_FILES = 100


class GitState(NamedTuple):
    """The state of a repository: branch, last commit and its subject, and the first hundred changed or new files."""

    branch: str | None
    commit: str | None
    subject: str | None
    dirty_files: tuple[str, ...] = ()
    dirty_count: int = 0


def read_git_state(folder: Path, environ: Mapping[str, str], leave_out: Sequence[str] = ()) -> GitState | None:
    """Return the state of the repository around a folder, or None where there is none.

    Files below the folders of `leave_out`, relative to `folder`, do not count as changed.
    """
    where = (":/", *(f":(exclude){name}" for name in leave_out))
    status = ask_git(folder, environ, ["status", "--porcelain", "-z", "--untracked-files=normal", "--", *where])
    if status is None:
        return None
    files = sorted(_changed_files(status.decode("utf-8", "replace")))
    branch = _one_line(ask_git(folder, environ, ["symbolic-ref", "-q", "--short", "HEAD"]))
    commit, _, subject = (_one_line(ask_git(folder, environ, ["log", "-1", "--format=%H %s"])) or "").partition(" ")
    subject = " ".join(subject.split())
    return GitState(branch, commit[:12] or None, subject or None, tuple(files[:_MAX_FILES]), len(files))


def _changed_files(status: str) -> Iterator[str]:
    """Yield the paths that `git status --porcelain -z` lists, of renamed files the new one."""
    pieces = iter(status.split("\0"))
    for piece in filter(None, pieces):
        yield piece[3:]
        if not {"R", "C"}.isdisjoint(piece[:2]):
            next(pieces, None)


def ask_git(
    folder: Path, environ: Mapping[str, str], arguments: Sequence[str], seconds: float = _SECONDS
) -> bytes | None:
    """Return what git answers in a folder, or None where it fails, is missing or takes too long."""
    variables = {name: value for name, value in environ.items() if name != "GIT_INDEX_FILE"}
    try:
        done = run_git(folder, variables, arguments, seconds=seconds)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


_HEX = re.compile(r"[0-9a-f]{7,64}")
#: A larger file is not looked into.
_MAX_BYTES = 2_000_000


class GitQueries:
    """The repository around a folder; each question is asked once.

    Paths are relative to the folder. Where there is no repository, or git fails, nothing is known.
    When all questions together have taken `seconds`, no more are asked.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str], seconds: float) -> None:
        self._folder, self._environ, self._left = folder, environ, seconds
        self._ask = functools.cache(self._ask_git)

    def _ask_git(self, *arguments: str) -> bytes | None:
        # Whether a repository is around is found out without starting git.
        if self._left <= 0 or find_repository(Path(os.path.realpath(self._folder))) is None:
            return None
        began = time.monotonic()
        output = ask_git(self._folder, self._environ, arguments, self._left)
        self._left -= time.monotonic() - began
        return output

    def head(self) -> str | None:
        """Return the last commit, shortened."""
        return _one_line(self._ask("rev-parse", "--verify", "--quiet", "--short=12", "HEAD"))

    def dated_head(self) -> tuple[str, int]:
        """Return the last commit, whole, and its time in seconds; "" and 0 without one."""
        commit, _, seconds = (_one_line(self._ask("log", "-1", "--format=%H %ct")) or "").partition(" ")
        return commit, int(seconds or 0)

    def other_branch(self, branch: str | None) -> tuple[str, str] | None:
        """Return what is checked out and `branch`, by default that of `origin/HEAD`; None if HEAD is on or in it."""
        origin = _one_line(self._ask("rev-parse", "--abbrev-ref", "origin/HEAD")) or ""
        wanted = branch or origin.removeprefix("origin/")
        current = _one_line(self._ask("symbolic-ref", "-q", "--short", "HEAD"))
        if not wanted or current == wanted:
            return None
        for tip in () if current else (f"origin/{wanted}", wanted):
            if self._ask("merge-base", "--is-ancestor", "HEAD", tip) is not None:
                return None
        return current or "a commit of its own", wanted

    def find_commit(self, commit: str) -> str | None:
        """Return the whole hash of a commit that is here, or None."""
        if not _HEX.fullmatch(commit):
            return None
        return _one_line(self._ask("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"))

    def text_at(self, commit: str, path: str) -> str | None:
        """Return what a file said at a commit, or None where it was not there or is too large."""
        data = self._ask("cat-file", "blob", f"{commit}:./{path}") if _HEX.fullmatch(commit) else None
        return None if data is None or len(data) > _MAX_BYTES else data.decode("utf-8", "surrogateescape")


def _one_line(output: bytes | None) -> str | None:
    return (output or b"").decode("utf-8", "surrogateescape").strip() or None
