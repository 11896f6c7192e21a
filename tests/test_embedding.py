"""Vectors of a vault: made once, kept through everything, and never in the way of an answer."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import NOW, Run, clean_environment, write_files
from fake_provider import FakeProvider
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support import entry, ids, query

from memory_kb import KnowledgeBase
from memory_kb.index.cache import EmbeddingCache
from memory_kb.index.passages import embedded_text
from memory_kb.ports import Space

Open = Callable[..., KnowledgeBase]
NOTES = {f"n{number:03}.md": f"# Note {number}\n\nAll about topic{number} and nothing else.\n" for number in range(60)}


def environment(fake: FakeProvider, home: Path, **more: str) -> dict[str, str]:
    """Return an environment in which the fake server is the provider."""
    return {
        "HOME": str(home.parent),
        "MEMORY_KB_HOME": str(home),
        "MEMORY_KB_EMBEDDINGS_BASE_URL": fake.base_url,
        "MEMORY_KB_EMBEDDINGS_MODEL": "small",
    } | more


@pytest.fixture
def open_with(fake: FakeProvider, home: Path) -> Iterator[Open]:
    """A function that opens a folder with the fake server as its provider."""
    opened: list[KnowledgeBase] = []

    def open_one(folder: Path, **more: str) -> KnowledgeBase:
        kb = KnowledgeBase.open(folder, environ=environment(fake, home, **more), clock=lambda: NOW)
        opened.append(kb)
        return kb

    yield open_one
    for kb in opened:
        kb.close()


def attached(kb: KnowledgeBase, model: str = "small") -> dict[str, list[float]]:
    """Return the vector that a search would see for every chunk that there is, by file and position."""
    store = kb._keeper.index.vectors
    table = store.table(Space("openai", model, 0))
    rows = dict(zip(table.keys.tolist(), table.rows.tolist(), strict=True)) if table else {}
    return {str(place): rows[key] for key, place in query(kb, "SELECT rowid, id FROM chunks") if key in rows}


def assert_every_vector_is_its_text(kb: KnowledgeBase, fake: FakeProvider) -> None:
    chunks = query(kb, "SELECT id, CASE WHEN is_titled THEN title ELSE '' END, headings, content FROM chunks")
    seen = attached(kb)
    assert set(seen) == {str(chunk[0]) for chunk in chunks}
    for place, title, headings, content in chunks:
        wanted = fake.vector(embedded_text(str(title), str(headings), str(content)) or " ")
        assert seen[str(place)] == pytest.approx(wanted, abs=1e-6), place


# -- nothing is paid for twice ---------------------------------------------------------------


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
    folder = write_files(tmp_path / "vault", NOTES | {"long.md": "\n\n".join(f"Paragraph {n}. " + f"word{n} " * 80 for n in range(9))})
    kb = open_with(folder)
    kb.sync()
    before = sum(fake.embedded_texts.values())
    text = (folder / "long.md").read_text()
    (folder / "long.md").write_text(text.replace("word8 word8", "other8 word8", 1))
    assert kb.sync().embedded == 1
    assert sum(fake.embedded_texts.values()) == before + 1
    assert_every_vector_is_its_text(kb, fake)


def test_the_name_of_a_file_is_not_embedded(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    kb = open_with(write_files(tmp_path / "vault", {"secret-name.md": "plain text", "titled.md": entry("body", title="Given")}))
    kb.sync()
    assert set(fake.embedded_texts) == {"plain text", "Given\n\nbody"}


@pytest.mark.parametrize("spoil", ["delete", "truncate", "empty-keys", "swap"])
def test_the_files_of_vectors_may_be_lost(spoil: str, tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    folder = write_files(tmp_path / "vault", NOTES)
    kb = open_with(folder)
    kb.sync()
    kb.close()
    vectors = kb.machine / "vectors"
    (matrix,), (keys,) = vectors.glob("*.f32"), vectors.glob("*.keys")
    if spoil == "delete":
        shutil.rmtree(vectors)
    elif spoil == "truncate":
        os.truncate(matrix, 1000)
    elif spoil == "empty-keys":
        os.truncate(keys, 0)
    else:
        matrix.unlink()
    again = open_with(folder)
    assert ids(again, "topic7")
    assert again.sync().embedded == 0
    assert again.search("topic7").mode == "hybrid"
    assert_every_vector_is_its_text(again, fake)


def test_no_files_are_left_behind(tmp_path: Path, open_with: Open) -> None:
    folder = write_files(tmp_path / "vault", NOTES)
    kb = open_with(folder)
    for _ in range(3):
        kb.sync(rebuild=True)
    assert len(list((kb.machine / "vectors").iterdir())) == 2


class Storm(RuleBasedStateMachine):
    """Any history of edits, syncs, failures and rebuilds ends with every chunk's own vector attached."""

    @initialize()
    def begin(self) -> None:
        import tempfile

        self.tmp = Path(tempfile.mkdtemp(prefix="memory-kb-test-"))
        self.fake = FakeProvider(dimension=8).__enter__()
        self.folder = write_files(self.tmp / "vault", {"a.md": "first words"})
        self.kb = KnowledgeBase.open(self.folder, environ=environment(self.fake, self.tmp / "home"), clock=lambda: NOW)

    @rule(name=st.sampled_from("abcdef"), text=st.sampled_from(["one text", "another text", "# Third\n\nwith a heading", "two\n\nparts " * 300, ""]))
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

    @rule()
    def forget_files(self) -> None:
        self.kb.close()
        shutil.rmtree(self.kb.machine / "vectors", ignore_errors=True)

    @invariant()
    def vectors_are_right_after_a_sync(self) -> None:
        self.kb.sync()
        assert_every_vector_is_its_text(self.kb, self.fake)

    def teardown(self) -> None:
        if hasattr(self, "kb"):
            self.kb.close()
            self.fake.__exit__(None, None, None)
            shutil.rmtree(self.tmp)


TestStorm = Storm.TestCase
TestStorm.settings = settings(max_examples=12, stateful_step_count=10, deadline=None, suppress_health_check=list(HealthCheck))


# -- ending early ------------------------------------------------------------------------------


def test_half_of_the_batches_failing_loses_nothing_of_the_rest(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    notes = {f"{number}.md": f"# Number {number}\n\n" + f"word{number} " * 150 for number in range(400)}
    kb = open_with(write_files(tmp_path / "vault", notes))
    fake.fail("no-quota", every=2, times=None)
    report = kb.sync()
    # When the first answer is a refusal, the requests that have not been sent yet are spared.
    assert report.embedded < 400
    assert len(report.notices) == 1
    assert "quota" in report.notices[0]
    result = kb.search("word7")
    assert result.hits[0].path == "7.md"
    assert any("have no vector yet" in reason or "quota" in reason for reason in result.degraded)
    kb.close()
    fake.heal()
    assert kb.sync().embedded == 400 - report.embedded
    assert max(count for text, count in fake.embedded_texts.items() if text.startswith("# Number")) == 1
    assert_every_vector_is_its_text(kb, fake)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_goes_on_where_it_was(sent: int, tmp_path: Path, open_with: Open, fake: FakeProvider, home: Path) -> None:
    notes = {f"{number}.md": f"# Number {number}\n\n" + f"word{number} " * 30 for number in range(2000)}
    folder = write_files(tmp_path / "vault", notes)
    fake.fail("slow", times=None, seconds=0.15)
    command = [sys.executable, "-m", "memory_kb", "--vault", str(folder), "index"]
    process = subprocess.Popen(command, env=clean_environment(home) | environment(fake, home), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(fake.embedded_texts) < 600 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(sent)
    process.communicate(timeout=60)
    assert process.returncode == (130 if sent == signal.SIGINT else -sent)
    fake.heal()
    kb = open_with(folder)
    paid = len(fake.embedded_texts)
    assert 600 <= paid < 2000
    report = kb.sync()
    assert report.embedded <= 2000 - 128
    if sent == signal.SIGINT:
        assert report.embedded == 2000 - paid
        assert max(fake.embedded_texts.values()) == 1
    assert_every_vector_is_its_text(kb, fake)


def test_an_answer_that_is_being_kept_when_ctrl_c_comes_is_not_paid_for_twice(
    vault: Callable[..., Path], open_with: Open, fake: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = open_with(vault({f"{number}.md": f"# Number {number}\n\n" + f"word{number} " * 30 for number in range(600)}))
    remember = EmbeddingCache.remember
    moments = iter((0, 1))

    def interrupt(*arguments: object) -> None:
        if next(moments, None) == 1:
            raise KeyboardInterrupt
        remember(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(EmbeddingCache, "remember", interrupt)
    with pytest.raises(KeyboardInterrupt):
        kb.sync()
    paid = len(fake.embedded_texts)
    assert paid >= 256
    assert kb.sync().embedded == 600 - paid
    assert max(fake.embedded_texts.values()) == 1


def test_two_at_once_embed_each_text_once(tmp_path: Path, fake: FakeProvider, home: Path) -> None:
    folder = write_files(tmp_path / "vault", {f"{number}.md": f"# Number {number}\n\n" + f"word{number} " * 150 for number in range(300)})
    fake.fail("slow", times=None, seconds=0.05)
    command = [sys.executable, "-m", "memory_kb", "--vault", str(folder), "index"]
    both = [subprocess.Popen(command, env=clean_environment(home) | environment(fake, home), stderr=subprocess.PIPE) for _ in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert max(fake.embedded_texts.values()) == 1
    assert len(fake.embedded_texts) == 300


# -- always an answer --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("bad-key", "OPENAI_API_KEY"),
        ("no-quota", "quota"),
        ("unknown-model", "embeddings.model"),
        ("wrong-dimension", "65"),
        ("malformed", "127.0.0.1"),
        ("unavailable", "503"),
        ("drop", "127.0.0.1"),
        ("html", "base_url"),
    ],
)
def test_a_provider_that_fails_leaves_a_text_search(kind: str, word: str, tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    kb = open_with(write_files(tmp_path / "vault", NOTES))
    kb.sync()
    fake.fail(kind, times=None)
    started = time.monotonic()
    result = kb.search("topic7 elsewhere")
    assert time.monotonic() - started < 10
    assert (result.mode, result.hits[0].path) == ("text", "n007.md")
    assert len(result.degraded) == 1
    assert word in result.degraded[0]
    assert result.degraded[0].endswith("this is a text search")
    fake.heal()
    kb.close()
    assert kb.search("topic7 elsewhere").degraded == ()


def test_a_provider_that_hangs_holds_no_search_up(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    kb = open_with(write_files(tmp_path / "vault", NOTES))
    kb.sync()
    fake.fail("slow", times=None, seconds=30)
    started = time.monotonic()
    result = kb.search("topic7 elsewhere")
    assert time.monotonic() - started < 9
    assert result.hits[0].path == "n007.md"
    assert result.degraded


def test_without_any_vectors_a_search_says_what_makes_them(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    kb = open_with(write_files(tmp_path / "vault", NOTES))
    result = kb.search("topic7")
    assert result.mode == "text"
    assert result.degraded == ("no passage has a vector yet, so this is a text search; `memory-kb index` makes them",)
    assert not fake.calls


def test_a_few_new_notes_are_embedded_by_the_search_itself(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    folder = write_files(tmp_path / "vault", NOTES)
    kb = open_with(folder)
    kb.sync()
    (folder / "car.md").write_text("Our automobile is parked outside.")
    result = kb.search("vehicle")
    assert result.hits[0].path == "car.md"
    assert (result.mode, result.degraded) == ("hybrid", ())
    for number in range(50):
        (folder / f"more{number}.md").write_text(f"another thing {number}")
    result = kb.search("vehicle")
    assert result.hits[0].path == "car.md"
    assert result.degraded == ("50 passages have no vector yet and are found by their words alone; `memory-kb index` makes them",)
    kb.sync()
    assert kb.search("vehicle").degraded == ()


@pytest.mark.parametrize(("text", "how"), [("topic7 car", {"mode": "text"}), ('"topic7"', {}), ("", {"file": "a.py"})])
def test_what_needs_no_model_asks_none(text: str, how: dict[str, str], tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    kb = open_with(write_files(tmp_path / "vault", NOTES))
    kb.sync()
    calls = len(fake.calls)
    result = kb.search(text, **how)  # type: ignore[arg-type]
    assert (result.mode, result.degraded, len(fake.calls)) == ("text", (), calls)


def test_none_is_a_choice(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    kb = open_with(write_files(tmp_path / "vault", NOTES), MEMORY_KB_EMBEDDINGS_PROVIDER="none")
    assert kb.sync().embedded == 0
    assert kb.search("topic7").degraded == ()
    (reason,) = kb.search("topic7", mode="vector").degraded
    assert reason == "vector search needs an embedding provider, and there is none; this is a text search"
    assert not fake.calls


# -- another model -------------------------------------------------------------------------------


def test_old_vectors_answer_until_the_new_ones_are_complete(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    folder = write_files(tmp_path / "vault", NOTES | {"car.md": "Our automobile is parked outside."})
    first = open_with(folder)
    first.sync()
    first.close()
    fake.dimension = 32
    fake.fail("no-quota", times=None, when="topic")
    other = open_with(folder, MEMORY_KB_EMBEDDINGS_MODEL="large")
    other.sync()
    other.close()
    fake.dimension = 64
    result = other.search("vehicle")
    assert (result.mode, result.hits[0].path) == ("hybrid", "car.md")
    assert "those of openai small answer" in result.degraded[0]
    assert fake.calls[-1].body["model"] == "small"
    fake.heal()
    fake.dimension = 32
    other.close()
    assert other.sync().embedded > 0
    result = other.search("vehicle")
    assert (result.mode, result.hits[0].path, result.degraded) == ("hybrid", "car.md", ())
    assert fake.calls[-1].body["model"] == "large"
    assert [one.model for one in other.status().vectors] == ["large"]
    calls = len(fake.calls)
    back = open_with(folder)
    assert back.sync().embedded == 0
    assert len(fake.calls) == calls


def test_vectors_of_another_size_say_so_until_the_new_ones_are_complete(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    folder = write_files(tmp_path / "vault", NOTES)
    open_with(folder).sync()
    other = open_with(folder, MEMORY_KB_EMBEDDINGS_DIMENSIONS="32")
    result = other.search("topic7")
    assert (result.mode, result.hits[0].path) == ("hybrid", "n007.md")
    assert result.degraded == ("the vectors of openai small with 32 numbers are not complete; those of 64 answer",)
    assert other.sync().embedded == len(NOTES)
    assert other.search("topic7").degraded == ()


# -- what it costs, and what is kept ---------------------------------------------------------------


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


def test_prices_are_told_before_the_first_run(tmp_path: Path, run: Run, home: Path) -> None:
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


def test_watching_embeds_what_is_saved(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    folder = write_files(tmp_path / "vault", NOTES)
    said: list[str] = []
    stop = threading.Event()
    watcher = threading.Thread(target=lambda: open_with(folder).watch(on_notice=said.append, stop=stop))
    watcher.start()
    try:
        wait_for(lambda: len(fake.embedded_texts) == 60)
        write_files(folder, {"car.md": "Our automobile is parked outside."})
        wait_for(lambda: "Our automobile is parked outside." in fake.embedded_texts)
        wait_for(lambda: any("61 so far" in sentence for sentence in said))
        fake.fail("bad-key", times=None)
        write_files(folder, {"more.md": "Another thing is said here."})
        wait_for(lambda: any("refused the key" in sentence for sentence in said))
    finally:
        stop.set()
        watcher.join(30)
    assert not watcher.is_alive()
    fake.heal()
    assert open_with(folder).search("vehicle", sync=False).hits[0].path == "car.md"


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def damage(file: Path, page: int, size: int) -> None:
    with file.open("r+b") as stream:
        stream.seek((page - 1) * size)
        stream.write(b"U" * size)


@pytest.mark.parametrize("damaged", ["chunks", "embedding_cache"])
def test_a_damaged_index_gives_its_vectors_to_the_next(vault: Callable[..., Path], open_with: Open, fake: FakeProvider, damaged: str) -> None:
    folder = vault(NOTES)
    kb = open_with(folder)
    assert kb.sync().embedded == len(NOTES)
    page, size = (
        int(str(row[0])) for row in query(kb, f"SELECT rootpage FROM sqlite_master WHERE name = '{damaged}'") + query(kb, "PRAGMA page_size")
    )
    kb.close()
    file = kb.machine / ".memory.db"
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
    assert (file.with_name(".memory.db.broken").exists(), len(paid_again)) == (True, 0) if damaged == "chunks" else 0 < len(paid_again) < 30
    assert again.search("topic7").degraded == ()
