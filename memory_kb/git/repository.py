"""Read objects of a repository, and commit files."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from memory_kb.errors import GitFailed, NoRepository, UsageError
from memory_kb.store.git_command import foreign_filters, read_started, run_git
from memory_kb.text import printable

_SECONDS = 300
#: Paths on one command line, and files that are read at once.
_AT_ONCE, _BATCH = 400, 500
#: What a half-done operation leaves in git's folder, and what it is called.
_HALF_DONE = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
}


class Blob(NamedTuple):
    """A file of a revision: its path from the repository's top, and the name of its content."""

    path: str
    mode: str
    object: str


class LoggedCommit(NamedTuple):
    """A commit that changed a file; `path` is the file's path then, empty if the commit removed it."""

    hash: str
    time: str
    author: str
    subject: str
    path: str


class Repository:
    """The repository around a folder.

    Raises:
        NoRepository: there is none, or git is missing.
        GitFailed: git refuses to look into it, as where it belongs to somebody else.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        index = environ.get("GIT_INDEX_FILE")
        # Git names it as seen from where it calls its hooks.
        known = {"GIT_INDEX_FILE": os.path.abspath(index)} if index else {}
        self._environ = {**environ, **known, "GIT_LITERAL_PATHSPECS": "1"}
        self.top = folder
        output = self._run(("rev-parse", "--show-toplevel"))
        if output.returncode:
            raise _explain(folder, output.stderr.decode("utf-8", "replace"))
        self.top = Path(os.path.realpath(os.fsdecode(output.stdout).rstrip("\n")))

    def _run(
        self, arguments: Sequence[str], stdin: bytes = b"", *, with_hooks: bool = False
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            return run_git(self.top, self._environ, arguments, seconds=_SECONDS, stdin=stdin, with_hooks=with_hooks)
        except subprocess.TimeoutExpired as exc:
            raise GitFailed(f"git {arguments[0]} did not come to an end within {_SECONDS} s") from exc
        except (OSError, ValueError) as exc:
            raise NoRepository(f"git cannot be run in {self.top}", "is it installed, and on the PATH?") from exc

    def _try(self, *arguments: str) -> bytes | None:
        done = self._run(arguments)
        return done.stdout if done.returncode == 0 else None

    def git(self, *arguments: str, stdin: bytes = b"", with_hooks: bool = False) -> bytes:
        """Return what a git command prints, its hooks run where that is asked for."""
        done = self._run(arguments, stdin, with_hooks=with_hooks)
        if done.returncode:
            said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
            raise GitFailed(f"git {arguments[0]} failed: {said or f'exit code {done.returncode}'}")
        return done.stdout

    def config(self, name: str) -> str | None:
        """Return a value of the repository's own configuration."""
        output = self._try("config", "--local", "--get", name)
        return None if output is None else os.fsdecode(output).rstrip("\n")

    def prefix(self, folder: Path) -> str:
        """Return the path of a folder from the top: empty, or ending in a slash."""
        return (self.inner(folder / "x") or "x").removesuffix("x")

    def inner(self, file: Path) -> str | None:
        """Return a file's path from the top, or None where it is outside."""
        real = Path(os.path.realpath(file.parent)) / file.name
        return real.relative_to(self.top).as_posix() if real.is_relative_to(self.top) else None

    def half_done(self) -> str | None:
        """Return what is not finished in the working tree, such as a merge, or None."""
        for name, word in _HALF_DONE.items():
            output = self._try("rev-parse", "--git-path", name)
            if output is not None and os.path.lexists(os.path.join(self.top, os.fsdecode(output).rstrip("\n"))):
                return word
        return "a merge" if self._try("ls-files", "--unmerged", "-z") else None

    def changed(self, paths: Iterable[str]) -> dict[str, str]:
        """Return which of some files differ from the last commit, with git's two letters for each."""
        options = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
        lines = self._for_paths(options, paths)
        return {line[3:]: line[:2] for line in lines if len(line) > 3}

    def ignored(self, paths: Iterable[str]) -> frozenset[str]:
        """Return which of some files git ignores."""
        options = ("ls-files", "--others", "--ignored", "--exclude-standard", "-z")
        return frozenset(filter(None, self._for_paths(options, paths)))

    def _for_paths(self, command: Sequence[str], paths: Iterable[str]) -> Iterator[str]:
        """Yield what a command says of paths, as many at once as fit on a command line."""
        waiting = iter(paths)
        while batch := list(itertools.islice(waiting, _AT_ONCE)):
            yield from map(os.fsdecode, self.git(*command, "--", *batch).split(b"\0"))

    def commit(self, paths: Sequence[str], new: Sequence[str], message: str) -> str:
        """Commit exactly some files as they are now; what else is staged stays staged. Return the commit.

        The hooks of `.git/hooks` and of the person's own configuration run, as at any commit of theirs.

        Raises:
            GitFailed: git or one of its hooks refuses, or a file is to go through a filter that only the
                repository's own configuration names; the index is as it was.
        """
        self._refuse_filters(paths)
        named = ("--pathspec-from-file=-", "--pathspec-file-nul")
        names, made = (b"\0".join(map(os.fsencode, some)) for some in (paths, new))
        if new:
            self.git("add", "--intent-to-add", *named, stdin=made)
        try:
            options = ("-q", "--only", f"--message={printable(message)}", *named)
            self.git("commit", *options, stdin=names, with_hooks=True)
        except GitFailed:
            if new:
                self._run(["rm", "-q", "--cached", *named], made)
            raise
        return self.git("rev-parse", "HEAD").decode().strip()

    def _refuse_filters(self, paths: Sequence[str]) -> None:
        foreign = foreign_filters(read_started(self.top, self._environ))
        if not foreign:
            return
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        output = self.git("check-attr", "-z", "--stdin", "filter", stdin=names)
        words = [os.fsdecode(word) for word in output.split(b"\0")]
        for path, name in zip(words[::3], words[2::3], strict=False):
            if name in foreign:
                said = f"{path} is to go through the filter {name!r}, which only the configuration of this repository names"
                raise GitFailed(f"{said}; memory-kb does not run it", "commit it with git itself")

    def skipped_hooks(self) -> str | None:
        """Return the folder of hooks that the repository's own configuration names, which no commit of ours runs."""
        return read_started(self.top, self._environ).get("core.hookspath")

    def find(self, revision: str) -> str:
        """Return the whole hash of the commit that a revision names."""
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        output = None if revision.startswith("-") else self._try(*asked)
        if not output:
            hint = "name a commit, a branch, a tag, or such as HEAD~3 or main@{yesterday}"
            raise UsageError(f"{revision!r} is no revision of {self.top}", hint)
        return output.decode().strip()

    def merge_base(self, one: str, other: str) -> str:
        """Return where two commits parted."""
        output = self._try("merge-base", one, other)
        if not output:
            said = f"{one[:12]} and {other[:12]} have no commit in common"
            raise GitFailed(said, "fetch the whole history: git fetch --unshallow")
        return output.decode().split()[0]

    @property
    def has_commits(self) -> bool:
        """Whether anything was committed to the branch."""
        return bool(self._try("rev-parse", "--verify", "--quiet", "HEAD"))

    def files(self, tree: str, folder: str) -> Iterator[Blob]:
        """Yield the files of a revision below a folder, which ends in a slash or is empty."""
        spot = f"{tree}:{folder.rstrip('/')}" if folder else tree
        output = self._try("ls-tree", "-r", "-z", "--full-tree", spot)
        for line in (output or b"").split(b"\0"):
            head, _, name = line.partition(b"\t")
            words = head.split()
            if len(words) == 3 and words[1] == b"blob":
                yield Blob(os.fsdecode(name), words[0].decode(), words[2].decode())

    def read(self, blobs: Sequence[Blob]) -> Iterator[tuple[Blob, bytes]]:
        """Yield files with their bytes, some hundred in memory at a time; of one that is not here, none."""
        for start in range(0, len(blobs), _BATCH):
            batch = blobs[start : start + _BATCH]
            output = self.git("cat-file", "--batch", stdin="".join(f"{blob.object}\n" for blob in batch).encode())
            place = 0
            for blob in batch:
                end = output.index(b"\n", place)
                words = output[place:end].split()
                size = int(words[2]) if len(words) == 3 else -1
                yield blob, output[end + 1 : end + 1 + max(size, 0)]
                place = end + 2 + size

    def log(self, path: str, most: int) -> list[LoggedCommit]:
        """Return the commits that changed a file, newest first.

        A merge represents what it brought, so that each commit follows on the next of the list.
        """
        form = "--format=%x01%H%x00%cI%x00%an%x00%s%x00"
        output = self._try(
            "log", f"-{most}", "--first-parent", "-m", "--follow", "--name-status", "-M", "-z", form, "HEAD", "--", path
        )
        found = []
        for record in (output or b"").split(b"\x01")[1:]:
            commit, time, author, subject, *rest = [os.fsdecode(word) for word in record.split(b"\0")]
            # Behind the subject: a letter, and the path, or for a rename the old one and the new.
            names = [word for word in rest if word.strip()]
            if len(names) >= 2:
                is_gone = names[0].strip().startswith("D")
                found.append(LoggedCommit(commit, time, author, subject, "" if is_gone else names[-1]))
        return found

    def blob(self, commit: str, path: str) -> bytes | None:
        """Return a file's bytes at a commit, or None where it was not there."""
        return self._try("cat-file", "blob", f"{commit}:{path}")


def _explain(folder: Path, said: str) -> NoRepository | GitFailed:
    """Return why git names no working tree: there is none, or it refuses one that belongs to somebody else."""
    if "not a git repository" in said:
        return NoRepository(f"{folder} is in no git repository", "`git init` makes one")
    kind = GitFailed if "safe.directory" in said else NoRepository
    return kind(f"git refuses the repository around {folder}: {' '.join(said.split())}")
