"""Vectors of a vault: made once, kept through everything, and at a price that is told."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import embedding
import pytest
from conftest import NOW, Run, write_files
from embedding import NOTES, assert_every_vector_is_its_text, environment
from fake_provider import FakeProvider
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support import entry, query
from watching import PATIENCE, eventually

from memory_kb import KnowledgeBase

open_with = embedding.open_with

Open = Callable[..., KnowledgeBase]


def test_a_second_run_after_a_rebuild_asks_for_nothing(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    kb = open_with(write_files(tmp_path / "vault", NOTES))
    assert kb.sync().embedded == 60
    calls = len(fake.calls)
    for report in (kb.sync(), kb.sync(rebuild=True), kb.sync(rebuild=True)):
        assert (report.embedded, report.notices) == (0, ())
    assert len(fake.calls) == calls
    assert max(fake.embedded_texts.values()) == 1
    assert_every_vector_is_its_text(kb, fake)


def test_renames_copies_and_branches_cost_nothing(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    folder = write_files(tmp_path / "vault", NOTES)
    kb = open_with(folder)
    kb.sync()
    calls = len(fake.calls)
    (folder / "n000.md").rename(folder / "other name.md")
    shutil.copytree(folder, tmp_path / "branch", ignore=shutil.ignore_patterns(".memory-kb"))
    (folder / "sub").mkdir()
    shutil.copy(folder / "n001.md", folder / "sub" / "copy.md")
    assert kb.sync().embedded == 0
    for name in list(NOTES)[10:50]:
        (folder / name).unlink()
    kb.sync()
    shutil.copytree(tmp_path / "branch", folder, dirs_exist_ok=True)
    assert kb.sync().embedded == 0
    assert len(fake.calls) == calls
    assert_every_vector_is_its_text(kb, fake)


def test_an_edit_embeds_what_changed_and_no_more(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    folder = write_files(
        tmp_path / "vault", NOTES | {"long.md": "\n\n".join(f"Paragraph {n}. " + f"word{n} " * 80 for n in range(9))}
    )
    kb = open_with(folder)
    kb.sync()
    before = sum(fake.embedded_texts.values())
    text = (folder / "long.md").read_text()
    (folder / "long.md").write_text(text.replace("word8 word8", "other8 word8", 1))
    assert kb.sync().embedded == 1
    assert sum(fake.embedded_texts.values()) == before + 1
    assert_every_vector_is_its_text(kb, fake)


def test_the_name_of_a_file_is_not_embedded(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    kb = open_with(
        write_files(tmp_path / "vault", {"secret-name.md": "plain text", "titled.md": entry("body", title="Given")})
    )
    kb.sync()
    assert set(fake.embedded_texts) == {"plain text", "Given\n\nbody"}


class Storm(RuleBasedStateMachine):
    """Any history of edits, syncs, failures and rebuilds ends with every chunk's own vector attached."""

    @initialize()
    def begin(self) -> None:
        import tempfile

        self.tmp = Path(tempfile.mkdtemp(prefix="memory-kb-test-"))
        self.fake = FakeProvider(dimension=8).__enter__()
        self.folder = write_files(self.tmp / "vault", {"a.md": "first words"})
        self.kb = KnowledgeBase.open(self.folder, environ=environment(self.fake, self.tmp / "home"), clock=lambda: NOW)

    @rule(
        name=st.sampled_from("abcdef"),
        text=st.sampled_from(["one text", "another text", "# Third\n\nwith a heading", "two\n\nparts " * 300, ""]),
    )
    def write(self, name: str, text: str) -> None:
        (self.folder / f"{name}.md").write_text(text)

    @rule(name=st.sampled_from("abcdef"))
    def delete(self, name: str) -> None:
        (self.folder / f"{name}.md").unlink(missing_ok=True)

    @rule(old=st.sampled_from("abcdef"), new=st.sampled_from("abcdef"))
    def rename(self, old: str, new: str) -> None:
        if (self.folder / f"{old}.md").exists():
            (self.folder / f"{old}.md").replace(self.folder / f"{new}.md")

    @rule(rebuild=st.booleans(), embed=st.booleans())
    def sync(self, rebuild: bool, embed: bool) -> None:
        self.kb.sync(rebuild=rebuild, embed=embed)

    @rule()
    def fail(self) -> None:
        (self.folder / "new.md").write_text(f"never said before {len(self.fake.calls)}")
        self.fake.fail("no-quota", times=None)
        self.kb.sync()
        self.kb.close()
        self.fake.heal()

    @rule()
    def search(self) -> None:
        self.kb.search("text with words")

    @invariant()
    def vectors_are_right_after_a_sync(self) -> None:
        self.kb.sync()
        assert_every_vector_is_its_text(self.kb, self.fake)

    def teardown(self) -> None:
        if hasattr(self, "kb"):
            self.kb.close()
            self.fake.__exit__(None, None, None)
            shutil.rmtree(self.tmp)


TestStorm = pytest.mark.slow(Storm.TestCase)
TestStorm.settings = settings(
    max_examples=12, stateful_step_count=10, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_a_dry_run_counts_without_asking_or_writing(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    folder = write_files(tmp_path / "vault", NOTES | {"same.md": NOTES["n000.md"]})
    kb = open_with(folder)
    estimate = kb.estimate()
    assert estimate is not None
    assert estimate.texts == 60
    assert estimate.usd == 0.0
    assert (kb.status().generation, fake.calls) == (0, [])
    kb.sync()
    assert sum(fake.embedded_texts.values()) == estimate.texts
    (folder / "n000.md").write_text("changed")
    again = kb.estimate()
    assert again is not None
    assert again.texts == 1


def test_prices_are_reported_before_the_first_run(tmp_path: Path, run: Run, home: Path) -> None:
    write_files(tmp_path / "vault", NOTES)
    done = run("--vault", tmp_path / "vault", "index", "--dry-run", env={"OPENAI_API_KEY": "sk-test"})
    assert done.returncode == 0, done.stderr
    assert "60 passages" in done.stdout
    assert "$0.0000" in done.stdout


def test_pruning_keeps_what_is_in_use_or_was_lately(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    folder = write_files(tmp_path / "vault", NOTES)
    kb = open_with(folder)
    kb.sync()
    for name in list(NOTES)[:20]:
        (folder / name).unlink()
    assert kb.prune_cache() == (0, 0, 60 * 256)
    assert kb.prune_cache(keep_days=-1, dry_run=True) == (20, 20 * 256, 40 * 256)
    assert kb.prune_cache(max_bytes=50 * 256) == (10, 10 * 256, 50 * 256)
    assert kb.prune_cache(keep_days=-1, max_bytes=0) == (10, 10 * 256, 40 * 256)
    assert kb.sync(rebuild=True).embedded == 0
    assert_every_vector_is_its_text(kb, fake)


@pytest.mark.slow
def test_what_the_command_says(tmp_path: Path, run: Run, fake: FakeProvider, home: Path) -> None:
    folder = write_files(tmp_path / "vault", NOTES)
    variables = environment(fake, home)
    done = run("--vault", folder, "index", "--no-embed", env=variables)
    assert "embedded" not in done.stdout
    assert not fake.calls
    done = run("--vault", folder, "index", env=variables)
    assert "60 embedded" in done.stdout
    done = run("--vault", folder, "status", env=variables)
    assert "vectors of small  60 passages\n" in done.stdout
    fake.fail("bad-key", times=None)
    done = run("--vault", folder, "search", "topic7", env=variables)
    assert (done.returncode, "n007.md" in done.stdout) == (0, True)
    assert "this is a text search" in done.stderr
    done = run("--vault", folder, "index", "--rebuild", env=variables)
    assert done.returncode == 0
    write_files(folder, {"another.md": "new words"})
    done = run("--vault", folder, "index", env=variables)
    assert (done.returncode, "1 added" in done.stdout) == (0, True)
    assert "note: the server at 127.0.0.1" in done.stderr


@pytest.mark.slow
def test_watching_embeds_what_is_saved(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    folder = write_files(tmp_path / "vault", NOTES)
    said: list[str] = []
    stop = threading.Event()
    watcher = threading.Thread(target=lambda: open_with(folder).watch(on_notice=said.append, stop=stop))
    watcher.start()
    try:
        eventually(lambda: len(fake.embedded_texts) == 60)
        write_files(folder, {"car.md": "Our automobile is parked outside."})
        eventually(lambda: "Our automobile is parked outside." in fake.embedded_texts)
        eventually(lambda: any("61 so far" in sentence for sentence in said))
        fake.fail("bad-key", times=None)
        write_files(folder, {"more.md": "Another thing is said here."})
        eventually(lambda: any("refused the key" in sentence for sentence in said))
    finally:
        stop.set()
        watcher.join(PATIENCE)
    assert not watcher.is_alive()
    fake.heal()
    assert open_with(folder).search("vehicle", sync=False).hits[0].path == "car.md"


def damage(file: Path, page: int, size: int) -> None:
    with file.open("r+b") as stream:
        stream.seek((page - 1) * size)
        stream.write(b"U" * size)


@pytest.mark.parametrize("damaged", ["chunks", "embedding_cache"])
def test_a_damaged_index_gives_its_vectors_to_the_next(
    vault: Callable[..., Path], open_with: Open, fake: FakeProvider, damaged: str
) -> None:
    folder = vault(NOTES)
    kb = open_with(folder)
    assert kb.sync().embedded == len(NOTES)
    page, size = (
        int(str(row[0]))
        for row in query(kb, f"SELECT rootpage FROM sqlite_master WHERE name = '{damaged}'")
        + query(kb, "PRAGMA page_size")
    )
    kb.close()
    file = kb.vault.machine / ".memory.db"
    if damaged == "embedding_cache":  # its first page only leads to the others: take the one in the middle
        with file.open("rb") as stream:
            stream.seek((page - 1) * size)
            root = stream.read(size)
        cell = int.from_bytes(root[12 + int.from_bytes(root[3:5]) // 2 * 2 :][:2])
        page = int.from_bytes(root[cell : cell + 4])
    damage(file, page, size)
    again = open_with(folder)
    assert again.search("topic7").hits
    again.sync()
    paid_again = [text for text, times in fake.embedded_texts.items() if times > 1]
    assert (
        (file.with_name(".memory.db.broken").exists(), len(paid_again)) == (True, 0)
        if damaged == "chunks"
        else 0 < len(paid_again) < len(NOTES)
    )
    assert again.search("topic7").degraded == ()
