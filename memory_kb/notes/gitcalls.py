"""Run git without starting what a repository's own configuration names.

A repository that came with an archive, or that lies bare inside a clone, has a configuration of somebody else's.
What it could start is switched off: hooks, file system monitors, pagers, external diffs, text conversion, filters,
signature programs, and everything that uses the network. `docs/security.md` lists the exceptions.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Set by git for its hooks; they would make it look at another repository than the folder's.
_HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_PREFIX")
_NO_FOLDER = "/dev/null"
_OFF = {
    "core.fsmonitor": "",
    "core.pager": "cat",
    "core.askPass": "",
    "credential.helper": "",
    "diff.external": "",
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
    stdin: bytes | None = None,
    with_hooks: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """Run a git command in a folder.

    Args:
        folder: where; its repository is the nearest one around it.
        environ: the environment of the person.
        arguments: the command and its words.
        seconds: how long it may take.
        stdin: what it reads.
        with_hooks: run the hooks of `.git/hooks` and of the person's own configuration, for a commit that a person asked for.

    Raises:
        OSError: git cannot be run.
        ValueError: a word is none that a program can be given.
        subprocess.SubprocessError: it takes too long.
    """
    variables = _clean(environ) if with_hooks else _clean(environ) | _READING
    off = dict(_OFF) if with_hooks else _OFF | {"core.hooksPath": _NO_FOLDER}
    if arguments[0] in _FILTERING:
        off |= _switch_off(read_started(folder, environ), folder, variables, with_hooks=with_hooks)
    words = [word for name, value in off.items() for word in ("-c", f"{name}={value}")]
    command, *rest = arguments
    return _call(
        folder, variables, ("--no-pager", *words, command, *_MORE.get(command, ()), *rest), seconds=seconds, stdin=stdin
    )


def _clean(environ: Mapping[str, str]) -> dict[str, str]:
    own = {name: value for name, value in environ.items() if name not in _HOOK_VARIABLES}
    return own | {"PATH": own.get("PATH") or os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def read_started(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what a repository's own configuration would have git start, by its key; the person's own is not among it."""
    variables = _clean(environ)
    asked = ("config", "--includes", "--show-scope", "-z", "--get-regexp", _STARTED)
    try:
        done = _call(folder, variables, asked, seconds=20)
        if done.returncode > 1:  # a git from before 2.26: whatever is configured counts as the repository's
            done = _call(folder, variables, ("config", "--includes", "-z", "--get-regexp", _STARTED), seconds=20)
            told = [(b"local", one) for one in done.stdout.split(b"\0")]
        else:
            words = done.stdout.split(b"\0")
            told = list(zip(words[::2], words[1::2], strict=False))
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    found: dict[str, str] = {}
    for scope, line in told:
        name, _, value = os.fsdecode(line).partition("\n")
        if name and scope in (b"local", b"worktree"):
            found[name] = value
    return found


def foreign_filters(started: Mapping[str, str]) -> frozenset[str]:
    """Return the filters that a repository's own configuration names and nobody knows.

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
        told = _call(folder, variables, ("rev-parse", "--git-common-dir"), seconds=20)
        common = os.path.join(folder, os.fsdecode(told.stdout).rstrip("\n"))
        found["core.hooksPath"] = os.path.join(common, "hooks")
    return found


def _call(
    folder: Path,
    variables: dict[str, str],
    arguments: Sequence[str],
    *,
    seconds: float,
    stdin: bytes | None = None,
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # noqa: S603 - no shell, and the words are options of ours and names of files
        ["git", "-C", str(folder), *arguments],  # noqa: S607 - the git that the person uses
        capture_output=True,
        input=b"" if stdin is None else stdin,
        timeout=seconds,
        check=False,
        env=variables,
    )


def tracks(folder: Path, environ: Mapping[str, str]) -> bool:
    """Tell whether git keeps a file of a folder, or may do so: where it cannot be asked, it does."""
    top = Path(os.path.realpath(folder.parent))
    if not any((place / ".git").exists() for place in (top, *top.parents)):
        return False
    try:
        asked = ("ls-files", "-z", "--", folder.name)
        done = run_git(top, {**environ, "GIT_LITERAL_PATHSPECS": "1"}, asked, seconds=20)
    except (OSError, ValueError, subprocess.SubprocessError):
        return True
    return done.returncode != 0 or bool(done.stdout)
