"""Histories of edits at random, for the tests of what follows the files."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from conftest import NOW
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support import assert_equals_rebuild

from memory_kb import KnowledgeBase

ENTRY = "---\nid: e1\nkind: pitfall\ntags: [network]\napplies_to: ['src/**']\ncreated_at: '2026-03-01'\n---\nNever retry a payment.\n"

NAMES = st.sampled_from(
    [
        "MEMORY.md",
        "memory/a.md",
        "memory/learnings/b.md",
        "memory/learnings/deep/c.md",
        "memory/rules/d.md",
        "memory/jobs/j/tasks/t/x.md",
    ]
)
NAMES |= st.sampled_from(
    [
        "memory/archive/2026-01/e.md",
        "memory/Größe 日本.md",
        "memory/episodes/2026-02-03/f.md",
        "~home~/learnings/g.md",
        "~home~/institutional.md",
    ]
)
FOLDERS = st.sampled_from(
    ["memory/learnings", "memory/learnings/deep", "memory/rules", "memory/jobs/j", "memory/moved", "memory/archive"]
)
CONTENTS = st.sampled_from(
    [
        b"",
        b"\n \n",
        b"# Title\n\nalpha beta\n",
        ENTRY.encode(),
        ENTRY.replace("\n", "\r\n").encode() + b"\r\n---\r\nid: e2\r\nkind: fact\r\n---\r\nalpha again\r\n",
        "\ufeff# Größe\n\nDie Größe ändern. 検索機能を使う。 C++ und C#.\n".encode(),
        b"---\nid: e1\nstatus: retired\nimportance: 7\n---\nbeta gone\n",
        b"---\nbroken: [yaml\n---\nalpha\n",
        b"---\nid: e2\nlinks: [{to: e1, relation: supersedes}]\n---\nalpha instead\n",
        b"alpha \xff\xfe beta \x00 gamma\n",
        b"\n\n".join(b"## Part %d\n\n" % part + b"alpha gamma delta epsilon. " * 30 for part in range(5)),
    ]
)


class Edits(RuleBasedStateMachine):
    """People, editors and git at work on a vault; after any of their steps a sync may happen."""

    @initialize()
    def make(self) -> None:
        self.place = Path(tempfile.mkdtemp())
        self.home = self.place / "home"
        self.folder = self.place / "vault"
        (self.folder / "memory" / ".memory-kb").mkdir(parents=True)
        self.kb = KnowledgeBase.open(self.folder, self.home, environ={"HOME": str(self.place)}, clock=lambda: NOW)

    def file(self, name: str) -> Path:
        return self.home / name.removeprefix("~home~/") if name.startswith("~home~/") else self.folder / name

    @rule(name=NAMES, content=CONTENTS)
    def write(self, name: str, content: bytes) -> None:
        file = self.file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    @rule(name=NAMES, content=CONTENTS)
    def append(self, name: str, content: bytes) -> None:
        if self.file(name).exists():
            with self.file(name).open("ab") as stream:
                stream.write(content)

    @rule(name=NAMES)
    def change_within_one_tick(self, name: str) -> None:
        """Sync, then save other words of the same size at once, as scripts do."""
        file = self.file(name)
        if file.exists():
            file.write_bytes(file.read_bytes().replace(b"alpha", b"gamma"))
            self.kb.sync()
            file.write_bytes(file.read_bytes().replace(b"gamma", b"alpha"))

    @rule(name=NAMES, content=CONTENTS)
    def save_like_an_editor(self, name: str, content: bytes) -> None:
        """Write beside and rename over, which changes the inode."""
        file = self.file(name)
        if file.exists():
            beside = file.with_name(".~tmp")
            beside.write_bytes(content)
            os.replace(beside, file)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self.file(name).unlink(missing_ok=True)

    @rule(name=NAMES, other=NAMES)
    def rename(self, name: str, other: str) -> None:
        if self.file(name).exists():
            self.file(other).parent.mkdir(parents=True, exist_ok=True)
            os.replace(self.file(name), self.file(other))

    @rule(folder=FOLDERS, other=FOLDERS)
    def move_folder(self, folder: str, other: str) -> None:
        source, target = self.folder / folder, self.folder / other
        if source.is_dir() and not target.exists() and not target.is_relative_to(source):
            shutil.move(source, target)

    @rule(name=NAMES, days=st.integers(-400, 400))
    def touch(self, name: str, days: int) -> None:
        if self.file(name).exists():
            os.utime(self.file(name), (NOW.timestamp(), NOW.timestamp() + days * 86_400))

    @rule()
    def sync(self) -> None:
        self.kb.sync()
        assert self.kb.sync().is_empty

    @rule()
    def rebuild(self) -> None:
        self.kb.sync(rebuild=True)

    @rule()
    def reopen(self) -> None:
        self.kb.close()

    @invariant()
    def has_nothing_pending_after_a_search(self) -> None:
        assert self.kb.search("alpha").freshness.pending == 0

    def teardown(self) -> None:
        if hasattr(self, "kb"):
            self.kb.sync()
            assert_equals_rebuild(
                self.kb, self.place / "fresh", ("alpha", "gamma delta", "größe", "検索", "payment C++", "2026-03-01")
            )
            self.kb.close()
            shutil.rmtree(self.place)
