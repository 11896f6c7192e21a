"""No verb starts what the configuration of a repository names that came with an archive."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from repositories import Clone

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the programs are shell scripts")
NOTE = "---\nid: n1\ntitle: One\n---\nThe build needs Node 22.\n"
GUARD = "---\nid: g1\nkind: rule\nforbid: zzz\n---\nNever zzz.\n"
FILES = {"memory/config.yaml": "", "memory/learnings/a.md": NOTE, "memory/rules/g.md": GUARD, "src/a.py": "x = 1\n"}


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """The file that every program of the configuration would make."""
    return tmp_path / "was-run"


@pytest.fixture
def evil(clone: Clone, marker: Path, tmp_path: Path) -> Clone:
    """A repository with a commit and a configuration that names a program wherever git takes one."""
    program = tmp_path / "evil.sh"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{marker}'\ncat 2>/dev/null\nexit 0\n")
    program.chmod(0o755)
    clone.kb("learn", "The tests need a database of their own on every machine.")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("pre-commit", "post-commit", "post-index-change", "reference-transaction", "prepare-commit-msg"):
        (hooks / name).symlink_to(program)
    (clone.folder / ".git/info").mkdir(exist_ok=True)
    (clone.folder / ".git/info/attributes").write_text("*.md diff=evil filter=evil\n*.py diff=evil filter=evil\n")
    settings = {
        "core.fsmonitor": program, "core.pager": program, "core.hooksPath": hooks, "core.askPass": program,
        "core.sshCommand": program, "core.editor": program, "diff.external": program, "diff.evil.command": program,
        "diff.evil.textconv": program, "filter.evil.clean": program, "filter.evil.smudge": program,
        "filter.evil.required": "true", "gpg.program": program, "log.showSignature": "true", "credential.helper": program,
        "diff.orderFile": tmp_path / "none",
        "pager.log": program, "pager.status": program, "pager.show": program, "interactive.diffFilter": program,
        "alias.ls-files": f"!{program}", "core.alternateRefsCommand": program, "sequence.editor": program,
        "merge.evil.driver": program, "tar.tar.command": program, "trailer.evil.command": program,
        "submodule.evil.update": f"!{program}", "gpg.ssh.program": program, "core.gitProxy": program,
    }  # fmt: skip
    sign_last_commit(clone)
    with (clone.folder / ".git/config").open("a") as config:
        config.writelines(_setting(name, value) for name, value in settings.items())
    return clone


def _setting(name: str, value: object) -> str:
    """Return a setting of git as its file has it."""
    section, _, key = name.rpartition(".")
    section, _, part = section.partition(".")
    return f'[{section} "{part}"]\n{key} = {value}\n' if part else f"[{section}]\n{key} = {value}\n"


def sign_last_commit(clone: Clone) -> None:
    """Put a signature into the last commit, which git asks a program about."""
    head, _, message = clone.git("cat-file", "commit", "HEAD").partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----"
    commit = clone.folder / ".git/signed"
    commit.write_text(f"{head}\n{signature}\n\n{message}", newline="\n")
    clone.git("reset", "-q", clone.git("hash-object", "-t", "commit", "-w", str(commit)).strip())
    commit.unlink()


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("core.fsmonitor", ("status",)),
        ("core.hooksPath", ("update-index", "--refresh", "--really-refresh")),
        ("diff.external", ("diff",)),
        ("diff.evil.textconv", ("show", "HEAD")),
        ("filter.evil.clean", ("diff",)),
        ("log.showSignature", ("log", "-1")),
    ],
)
def test_git_itself_would_run_them(evil: Clone, marker: Path, name: str, command: tuple[str, ...]) -> None:
    for key in (
        "core.fsmonitor",
        "core.hooksPath",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "diff.orderFile",
    ):
        if key != name:
            evil.git("config", "--local", "--unset", key)
    if not name.startswith("filter"):
        (evil.folder / ".git/info/attributes").write_text("*.md diff=evil\n*.py diff=evil\n")
    (evil.folder / "src/a.py").write_text("x = 2\n")
    evil.git(*command, may_fail=True)
    assert marker.exists()


VERBS = (
    ("learn", "Deploys happen on Tuesdays after the review."),
    ("commit", "--dry-run"),
    ("search", "build"),
    ("search", "build", "--as-of", "HEAD"),
    ("show", "n1", "--history"),
    ("context", "fix the build"),
    ("continuity", "refresh", "--task", "fix the build"),
    ("handoff", "create", "--from", "coder", "--to", "tester", "--done", "Fixed the build."),
    ("status",),
    ("git", "install"),
    ("git", "install", "--uninstall"),
    ("ci", "HEAD..HEAD"),
    ("rules", "backtest", "g1"),
    ("cite", "n1", "src/a.py"),
    ("verify",),
)


def test_no_verb_runs_a_program_of_the_repository(evil: Clone, marker: Path) -> None:
    for verb in VERBS:
        (evil.folder / "src/a.py").touch()
        (evil.folder / "memory/learnings/a.md").touch()
        evil.kb(*verb)
        assert not marker.exists(), (verb, marker.read_text())


def test_no_verb_runs_a_program_of_an_included_file(evil: Clone, marker: Path, tmp_path: Path) -> None:
    config, included = evil.folder / ".git/config", tmp_path / "included"
    config.rename(included)
    config.write_text(f'[core]\n\trepositoryformatversion = 0\n[includeIf "gitdir:**"]\n\tpath = {included}\n')
    assert evil.git("config", "core.editor").strip()
    for verb in (("commit", "--dry-run"), ("status",), ("ci", "HEAD..HEAD"), ("show", "n1", "--history"), ("verify",)):
        (evil.folder / "src/a.py").touch()
        evil.kb(*verb)
        assert not marker.exists(), (verb, marker.read_text())


def test_a_commit_refuses_a_filter_of_the_repository_alone(evil: Clone, marker: Path) -> None:
    told = evil.kb("commit", code=6)
    assert "filter 'evil'" in told
    assert "commit it with git itself" in told
    assert not marker.exists()


def test_a_commit_leaves_out_the_hooks_of_the_configuration(evil: Clone, marker: Path) -> None:
    (evil.folder / ".git/info/attributes").unlink()
    own = evil.folder / ".git/hooks/post-commit"
    own.parent.mkdir(exist_ok=True)
    own.write_text(f"#!/bin/sh\ntouch '{marker}.own'\n")
    own.chmod(0o755)
    told = evil.kb("commit")
    assert not marker.exists(), marker.read_text()
    assert Path(f"{marker}.own").exists(), "the hooks of .git/hooks run as at every commit"
    assert "committed" in told.lower() or "memory:" in told


def test_a_bare_repository_among_the_notes_is_not_used(clone: Clone, marker: Path, tmp_path: Path) -> None:
    program = tmp_path / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch '{marker}'\n")
    program.chmod(0o755)
    folder = tmp_path / "plain"
    for name in ("objects", "refs"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(
        f"[core]\nrepositoryformatversion = 0\nbare = false\nworktree = {folder}\nfsmonitor = {program}\n"
    )
    (folder / "a.md").write_text(NOTE)
    bare = Clone(folder, tmp_path / "home")
    bare.kb("learn", "Deploys happen on Tuesdays after the review.")
    bare.kb("commit", "--dry-run", code=3)
    assert not marker.exists()
