"""Commits of what was learned, entries through their history, and the vault as it was."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import NOW, Run, write_files
from repositories import Clone, found
from support import entry

from memory_kb import KnowledgeBase
from memory_kb.git.past_vault import MOST_KEPT
from memory_kb.store.changes import create_file

if TYPE_CHECKING:
    from fake_provider import FakeProvider

RULE = entry("Run the linter before every push.", id="r1", kind="rule", title="Lint first", confidence=0.5)
FILES = {
    "memory/config.yaml": "",
    ".gitignore": ".memory-kb/\n",
    "memory/rules/lint.md": RULE,
    "memory/MEMORY.md": entry("Zebras are striped.", id="z1", kind="fact")
    + "\n"
    + entry("Otters swim.", id="o1", kind="fact"),
    "src/a.py": "x = 1\n",
}


# -- commit ----------------------------------------------------------------------------------


def test_a_commit_has_what_the_last_run_wrote_and_says_what_was_learned(clone: Clone) -> None:
    clone.kb("learn", "Numbats eat termites.", "--title", "Numbats", "--kind", "fact")
    told = clone.kb("commit")
    (file,) = clone.git("show", "--name-only", "--format=", "HEAD").splitlines()
    assert file.startswith("memory/learnings/")
    assert file in told
    message = clone.git("log", "-1", "--format=%B")
    assert message.splitlines()[0] == "memory: learned Numbats"
    assert f"- learned fact: Numbats ({file})" in message
    assert clone.git("status", "--porcelain") == ""


def test_what_else_is_staged_or_changed_stays_as_it_is(clone: Clone) -> None:
    """Of this person's staged, half-staged, new and deleted files nothing gets into the commit, or out of the index."""
    write_files(clone.folder, {"staged.py": "1\n", "src/a.py": "x = 2\n", "memory/rules/own.md": "staged by hand\n"})
    clone.git("add", "staged.py", "src/a.py", "memory/rules/own.md")
    write_files(clone.folder, {"src/a.py": "x = 3\n", "new.txt": "new\n"})
    clone.kb("rules", "feedback", "r1", "success")
    before = clone.git("status", "--porcelain")
    clone.kb("commit")
    assert clone.git("show", "--name-only", "--format=", "HEAD").split() == ["memory/rules/lint.md"]
    assert clone.git("status", "--porcelain") == before.replace(" M memory/rules/lint.md\n", "")
    assert clone.git("show", ":src/a.py") == "x = 2\n"
    assert "lint.md" in before


def test_moves_and_removals_are_committed_whole(clone: Clone) -> None:
    clone.kb("forget", "r1", "--delete")
    clone.kb("commit", "-m", "memory: without the linter")
    assert clone.git("log", "-1", "--format=%s").strip() == "memory: without the linter"
    assert clone.git("status", "--porcelain") == ""


def test_nothing_to_commit_is_said(clone: Clone) -> None:
    assert "no run has written anything yet" in clone.kb("commit", "--json")
    clone.kb("learn", "Numbats eat termites.")
    clone.kb("commit")
    head = clone.git("rev-parse", "HEAD")
    assert "nothing to commit" in clone.kb("commit", "--json")
    clone.kb("undo")
    clone.kb("undo", json.loads(clone.kb("undo", "--list", "--json"))["runs"][0]["run"])
    assert "nothing to commit" in clone.kb("commit", "--json")
    assert clone.git("rev-parse", "HEAD") == head


def test_a_dry_run_commits_nothing(clone: Clone) -> None:
    clone.kb("learn", "Numbats eat termites.", "--title", "Numbats")
    head, status = clone.git("rev-parse", "HEAD"), clone.git("status", "--porcelain")
    assert clone.kb("commit", "--dry-run").startswith("memory: learned Numbats\n")
    assert (clone.git("rev-parse", "HEAD"), clone.git("status", "--porcelain")) == (head, status)


def test_a_session_is_committed_as_one(clone: Clone) -> None:
    clone.kb("session", "start", "s1")
    for text in ("Remember: never rebase shared branches.", "I prefer small pull requests in this project."):
        clone.kb("session", "append", "s1", text, "--role", "user")
    clone.kb("session", "end", "s1")
    clone.kb("learn", "Numbats eat termites.")
    report = json.loads(clone.kb("commit", "--session", "s1", "--json"))
    assert len(report["commits"]) == 1
    assert "(session s1)" in report["commits"][0]["subject"]
    left = clone.git("status", "--porcelain", "--untracked-files=all").splitlines()
    assert [line for line in left if "numbats" in line]
    written = {
        file
        for run in json.loads(clone.kb("undo", "--list", "--json"))["runs"]
        if run["occasion"] == "session s1"
        for file in run["files"]
    }
    assert set(report["commits"][0]["files"]) == {file for file in written if (clone.folder / file).exists()}
    assert "wrote nothing" in clone.kb("commit", "--session", "nobody", code=2)


@pytest.mark.parametrize("what", ["merge", "rebase", "cherry-pick"])
def test_in_the_middle_of_something_nothing_is_committed(what: str, clone: Clone) -> None:
    clone.git("checkout", "-q", "-b", "side")
    write_files(clone.folder, {"src/a.py": "x = 2\n"})
    clone.save("side")
    clone.git("checkout", "-q", "main")
    write_files(clone.folder, {"src/a.py": "x = 3\n"})
    clone.save("main")
    clone.kb("learn", "Numbats eat termites.")
    clone.git(what, "side", may_fail=True)
    head = clone.git("rev-parse", "HEAD")
    assert f"is in the middle of a {what}; nothing was committed" in clone.kb("commit", code=6)
    assert clone.git("rev-parse", "HEAD") == head


def test_a_hook_that_refuses_leaves_the_index_as_it_was(clone: Clone) -> None:
    hook = clone.folder / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not today >&2\necho but tomorrow >&2\nexit 1\n")
    hook.chmod(0o755)
    clone.kb("learn", "Numbats eat termites.")
    status = clone.git("status", "--porcelain", "--untracked-files=all")
    assert "not today\n  but tomorrow\n" in clone.kb("commit", code=6)
    assert clone.git("status", "--porcelain", "--untracked-files=all") == status


def test_first_commit_worktrees_and_odd_names(tmp_path: Path, home: Path) -> None:
    clone = Clone(write_files(tmp_path / "a [b] *c", {"memory/config.yaml": "", ".gitignore": ".memory-kb/\n"}), home)
    clone.git("init", "-q", "-b", "main")
    clone.kb("learn", "Numbats eat termites.")
    clone.kb("commit")
    assert len(clone.git("ls-files").splitlines()) == 1
    clone.git("add", "-A")
    clone.save()
    clone.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    tree = Clone(tmp_path / "tree", home)
    tree.kb("learn", "Otters swim upstream.")
    tree.kb("commit")
    assert tree.git("log", "--format=%s", "main..side").splitlines() == ["memory: learned Otters swim upstream."]
    assert clone.git("status", "--porcelain") == ""


def test_what_git_ignores_and_what_was_edited_since_is_reported(clone: Clone) -> None:
    clone.kb("rules", "feedback", "r1", "success")
    note = clone.folder / "memory/rules/lint.md"
    note.write_text(note.read_text() + "\nMore.\n")
    assert "memory/rules/lint.md was edited since" in clone.kb("commit", "--json")
    write_files(clone.folder, {".gitignore": ".memory-kb/\nmemory/learnings/\n"})
    clone.kb("learn", "Numbats eat termites.")
    assert "is ignored by git" in clone.kb("commit", "--json")


def test_a_vault_below_the_top_of_its_repository(tmp_path: Path, home: Path) -> None:
    top = found(
        tmp_path / "mono",
        home,
        {"README.md": "x", "memory/rules/stray.md": RULE, **{f"apps/kb/{name}": text for name, text in FILES.items()}},
    )
    vault = Clone(top.folder / "apps/kb", home)
    vault.kb("git", "install")
    assert "merge: memory-kb" in top.git("check-attr", "merge", "--", "apps/kb/memory/rules/lint.md")
    assert "merge: unspecified" in top.git("check-attr", "merge", "--", "memory/rules/stray.md")
    vault.kb("rules", "feedback", "r1", "success")
    vault.kb("commit")
    assert top.git("show", "--name-only", "--format=", "HEAD").split() == ["apps/kb/memory/rules/lint.md"]
    hits = json.loads(vault.kb("search", "linter", "--as-of", "HEAD~1", "--json"))["hits"]
    assert [hit["path"] for hit in hits] == ["memory/rules/lint.md"]
    assert len(json.loads(vault.kb("show", "r1", "--history", "--json"))["versions"]) == 2
    assert json.loads(vault.kb("ci", "HEAD~1", "--json"))["sound"]


def test_many_files_are_committed_at_once(clone: Clone) -> None:
    with KnowledgeBase.open(
        clone.folder, clone.folder.parent / "home", environ=dict(os.environ) | clone.environ, clock=lambda: NOW
    ) as kb:
        plan = [
            create_file(f"memory/learnings/{'long-' * 30}{number}.md", f"Number {number}.\n", "Many.")
            for number in range(240)
        ]
        kb.writer.run("import", plan)
        report = kb.commit()
        assert len(report.commits[0].files) == 240
        assert "and 180 more" in report.commits[0].message.splitlines()[-1]
        assert report.commits[0].subject == "memory: 240 learned"
    assert clone.git("status", "--porcelain") == ""


def test_what_went_to_the_home_is_committed_where_that_lies(clone: Clone, home: Path) -> None:
    clone.kb("learn", "Quolls hunt at night.", "--scope", "global")
    assert "is in no git repository" in clone.kb("commit", code=3)
    other = Clone(home, home)
    other.git("init", "-q", "-b", "main")
    other.git("commit", "-q", "--allow-empty", "-m", "first")
    assert json.loads(clone.kb("commit", "--json"))["commits"][0]["repository"] == str(home)
    assert other.git("show", "--name-only", "--format=", "HEAD").startswith("learnings/")
    assert clone.git("log", "--format=%s").splitlines() == ["first"]


def test_outside_of_a_repository_a_commit_says_so(run: Run, folder: Path) -> None:
    run("--vault", folder, "learn", "Numbats eat termites.")
    done = run("--vault", folder, "commit", env={"GIT_CEILING_DIRECTORIES": str(folder.parent)})
    assert (done.returncode, "is in no git repository" in done.stderr) == (3, True)


def test_a_repository_of_somebody_else_is_called_that(run: Run, folder: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    run("--vault", folder, "learn", "Numbats eat termites.")
    for words in (["git", "install"], ["ci", "HEAD..HEAD"], ["commit"]):
        done = run("--vault", folder, *words, env={"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"})
        assert (done.returncode, "dubious ownership" in done.stderr, "no git repository" in done.stderr) == (
            6,
            True,
            False,
        )
        assert f"git config --global --add safe.directory {folder}" in done.stderr


# -- history, and the vault as it was --------------------------------------------------------


def make_history(clone: Clone) -> None:
    note = clone.folder / "memory/MEMORY.md"
    note.write_text(note.read_text().replace("Otters swim.", "Otters swim upstream."))
    clone.save("otters go up")
    note.write_text(FILES["memory/MEMORY.md"].partition("\n---\nid: o1")[0] + "\n")
    write_files(
        clone.folder,
        {"memory/archive/2026-11/o1.md": entry("Otters swim upstream.", id="o1", kind="fact", status="archived")},
    )
    clone.save("otters to the archive")
    write_files(clone.folder, {"memory/rules/other.md": RULE.replace("0.5", "0.6")})
    (clone.folder / "memory/rules/lint.md").unlink()
    clone.save("renamed")


def test_history_follows_an_entry_through_edits_and_renames_of_its_file(clone: Clone) -> None:
    make_history(clone)
    versions = json.loads(clone.kb("show", "r1", "--history", "--json"))["versions"]
    assert [(one["subject"], one["change"]) for one in versions] == [
        ("renamed", "moved; confidence 0.5 -> 0.6"),
        ("first", "written"),
    ]
    assert versions[1]["path"] == "memory/rules/lint.md"
    assert "otters to the archive" in clone.kb("show", "o1", "--history")


def test_history_says_what_a_merge_brought_and_of_each_commit_only_its_own(clone: Clone) -> None:
    rule = clone.folder / "memory/rules/lint.md"
    main = clone.git("branch", "--show-current").strip()
    clone.git("checkout", "-q", "-b", "side")
    rule.write_text(RULE.replace("kind: rule", "kind: rule\nstatus: retired"))
    clone.save("retired aside")
    clone.git("checkout", "-q", main)
    rule.write_text(RULE + "\nMore.\n")
    clone.save("more")
    clone.kb("git", "install")
    clone.git("merge", "-q", "-m", "joined", "side")
    versions = json.loads(clone.kb("show", "r1", "--history", "--json"))["versions"]
    assert [(one["subject"], one["change"]) for one in versions] == [
        ("joined", "status retired"),
        ("more", "text changed"),
        ("first", "written"),
    ]


def test_the_past_is_searched_and_shown_as_it_was(clone: Clone) -> None:
    make_history(clone)
    assert "Otters swim.\n" in clone.kb("show", "o1", "--as-of", "HEAD~3")
    hits = json.loads(clone.kb("search", "otters swim", "--as-of", "HEAD~3", "--json"))["hits"]
    assert [(hit["id"], hit["path"], hit["text"].strip()) for hit in hits] == [
        ("o1", "memory/MEMORY.md", "Otters swim.")
    ]
    assert json.loads(clone.kb("search", "upstream", "--as-of", "HEAD~3", "--json"))["hits"] == []
    assert json.loads(clone.kb("search", "upstream", "--json"))["hits"]
    assert "no revision" in clone.kb("search", "x", "--as-of", "nowhere", code=2)
    assert "no revision" in clone.kb("search", "x", "--as-of", "--all", code=2)


def test_a_clean_revision_ranks_as_the_working_tree_does(clone: Clone) -> None:
    def ranked(*more: str) -> list[tuple[str, str]]:
        return [
            (hit["id"], hit["path"])
            for hit in json.loads(clone.kb("search", "zebras swim linter push", "--json", *more))["hits"]
        ]

    assert ranked() == ranked("--as-of", "HEAD")
    assert len(ranked()) == 3


@pytest.mark.slow
def test_looking_back_is_no_retrieval_and_only_so_many_revisions_are_kept(clone: Clone) -> None:
    for number in range(MOST_KEPT + 3):
        clone.save(str(number))
        clone.kb("search", "otters", "--as-of", "HEAD")
    machine = clone.folder / "memory/.memory-kb"
    assert len(list((machine / "revisions").iterdir())) == MOST_KEPT
    assert not (machine / "log/retrievals.jsonl").exists()
    assert clone.git("status", "--porcelain") == ""


# -- nothing is embedded twice ---------------------------------------------------------------


def test_branches_and_the_past_embed_nothing_again(clone: Clone, fake: FakeProvider, home: Path) -> None:
    environ = {"HOME": str(home.parent), "MEMORY_KB_HOME": str(home), "PATH": os.environ["PATH"]}
    environ |= {"MEMORY_KB_EMBEDDINGS_BASE_URL": fake.base_url, "MEMORY_KB_EMBEDDINGS_MODEL": "small"}
    with KnowledgeBase.open(clone.folder, environ=environ, clock=lambda: NOW) as kb:
        kb.sync()
        clone.git("checkout", "-q", "-b", "side")
        make_history(clone)
        kb.sync()
        paid = sum(fake.embedded_texts.values())
        for branch in ("main", "side", "main", "side~1", "side"):
            clone.git("checkout", "-q", branch)
            assert kb.sync().embedded == 0
        with kb.at("main") as past:
            result = past.search("otters swim")
            assert (result.mode, result.hits[0].id) == ("text", "o1")
            assert result.degraded == ("vectors exist only of the notes as they are now; this is a text search",)
        assert sum(fake.embedded_texts.values()) == paid


def test_git_hears_no_words_of_options(clone: Clone) -> None:
    """A revision that looks like an option is no option."""
    done = subprocess.run(
        ["git", "-C", str(clone.folder), "branch", "--list"], capture_output=True, text=True, check=True
    )
    assert clone.kb("show", "o1", "--as-of", "--output=/tmp/x", code=2)
    assert done.stdout.strip() == "* main"
