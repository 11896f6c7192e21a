"""A team's index: several vaults, roles of the database, clones at different commits, and a server that is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import REPOSITORY, write_files
from support import entry
from watching import eventually

from memory_kb import KnowledgeBase
from memory_kb.errors import InvalidSettings, UnknownEntry, UsageError

if TYPE_CHECKING:
    from postgres_server import OpenTeam, Server

pytestmark = pytest.mark.slow  # PostgreSQL takes that long to start

NOTES: dict[str, str] = {"a.md": "# Wombats\n\nburrow at night\n", "b.md": "# Numbats\n\neat termites by day\n"}
OTHER: dict[str, str] = {"a.md": "# Quokkas\n\nsmile at night\n"}
ORDINARY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@b.c",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@b.c",
}


def own_folder(tmp_path: Path, name: str, files: dict[str, str]) -> Path:
    return write_files(tmp_path / name, files)


def places(kb: KnowledgeBase, query: str, *vaults: str) -> list[tuple[str | None, str]]:
    return [(hit.vault, hit.path) for hit in kb.search(query, vaults=vaults).hits]


def test_several_vaults_are_searched_as_one(tmp_path: Path, open_team: OpenTeam) -> None:
    first = open_team(own_folder(tmp_path, "one", NOTES), "one")
    second = open_team(own_folder(tmp_path, "two", OTHER), "two")
    assert first.sync().notices == second.sync().notices == ()
    assert sorted(places(first, "night", "all")) == [("one", "a.md"), ("two", "a.md")]
    assert places(first, "night", "two") == [("two", "a.md")]
    assert places(second, "termites", "one", "two") == [("one", "b.md")]
    # One vault with the notes of both says the same.
    together = open_team(
        own_folder(
            tmp_path,
            "both",
            {
                f"{name}/{file}": text
                for name, files in (("one", NOTES), ("two", OTHER))
                for file, text in files.items()
            },
        ),
        "both",
    )
    assert [hit.score for hit in together.search("night eat").hits] == pytest.approx(
        [hit.score for hit in first.search("night eat", vaults=["one", "two"]).hits], abs=1e-6
    )


def test_an_entry_hides_nothing_of_another_vault(tmp_path: Path, open_team: OpenTeam) -> None:
    job = {"memory/jobs/j/learnings/a.md": entry("A potoroo of the job.", id="same-id")}
    project = {"memory/learnings/a.md": entry("A potoroo of the project.", id="same-id")}
    first = open_team(own_folder(tmp_path, "one", job), "one")
    second = open_team(own_folder(tmp_path, "two", project), "two")
    first.sync()
    second.sync()
    assert sorted(vault or "" for vault, _ in places(first, "potoroo", "all")) == ["one", "two"]


def test_what_no_vault_is_called_is_said(tmp_path: Path, open_team: OpenTeam) -> None:
    kb = open_team(own_folder(tmp_path, "one", NOTES), "one")
    kb.sync()
    with pytest.raises(UsageError, match="no vault elsewhere"):
        kb.search("night", vaults=["elsewhere"])


def test_a_vault_cannot_say_where_its_texts_go(tmp_path: Path, open_team: OpenTeam) -> None:
    folder = own_folder(
        tmp_path, "one", NOTES | {".memory-kb/config.yaml": "index:\n  url: postgresql://evil/x\n  vaults: [one=.]\n"}
    )
    kb = KnowledgeBase.open(folder, tmp_path / "home", environ={"HOME": str(tmp_path)})
    assert kb.vault.settings.index.url is None
    assert kb.vault.settings.index.vaults == ()
    assert len([line for line in kb.vault.warnings if "index." in line]) == 2
    with pytest.raises(InvalidSettings, match="no team's index"):
        kb.search("night", vaults=["all"])


def test_a_clone_elsewhere_is_no_vault_of_the_team(tmp_path: Path, open_team: OpenTeam) -> None:
    kb = open_team(own_folder(tmp_path, "one", NOTES), "one")
    kb.sync()
    fork = open_team(own_folder(tmp_path, "fork", OTHER), "one", MEMORY_KB_INDEX_VAULTS=f"one={tmp_path / 'one'}")
    fork.sync()
    assert places(fork, "smile", "all") == []
    assert places(kb, "smile", "all") == []


def test_roles_see_and_write_what_is_granted(tmp_path: Path, open_team: OpenTeam, server: Server) -> None:
    from postgres_server import as_role

    owner = open_team(own_folder(tmp_path, "one", NOTES), "one")
    owner.sync()
    secret = open_team(own_folder(tmp_path, "two", OTHER), "two")
    secret.sync()
    url = owner.vault.settings.index.url
    assert url
    roles = ("writer", "reader", "stranger")
    name = {role: f"{role}_{os.getpid()}" for role in roles}
    for role in roles:
        server.run(url, f"CREATE ROLE {name[role]} LOGIN PASSWORD '{name[role]}'")
    server.run(
        url,
        f"INSERT INTO memory_kb.grants VALUES ('one', '{name['writer']}', true), ('one', '{name['reader']}', false)",
    )
    kbs = {
        role: open_team(own_folder(tmp_path, role, NOTES | {f"{role}.md": f"# {role}\n\nby the {role} at night\n"}), "one",
                        MEMORY_KB_INDEX_URL=as_role(url, name[role]))
        for role in roles
    }  # fmt: skip
    assert kbs["writer"].sync().notices == ()
    assert ("one", "writer.md") in places(kbs["reader"], "night", "all")
    assert {vault for vault, _ in places(kbs["reader"], "night", "all")} == {"one"}
    assert "refuses" in kbs["reader"].sync().notices[0]
    assert "refuses" in kbs["stranger"].sync().notices[0]
    assert places(kbs["stranger"], "smile night", "all") == []
    with pytest.raises(UsageError):
        kbs["reader"].search("smile", vaults=["two"])
    with pytest.raises(UnknownEntry):
        kbs["reader"].show("quokkas", vaults=["all"])


def test_why_not_asks_the_team_too(tmp_path: Path, open_team: OpenTeam) -> None:
    kb = open_team(own_folder(tmp_path, "one", NOTES), "one")
    other = open_team(own_folder(tmp_path, "two", {"q.md": entry("Quokkas smile at night.", id="q-1")}), "two")
    kb.sync()
    other.sync()
    assert kb.why_not("smile", "q-1", vaults=["all"]).step == "found"
    assert kb.why_not("termites", "q-1", vaults=["two"]).step == "no-shared-term"
    with pytest.raises(UnknownEntry):
        kb.why_not("smile", "q-1", vaults=["one"])


def test_an_entry_of_another_vault_is_shown_whole(tmp_path: Path, open_team: OpenTeam) -> None:
    from memory_kb.errors import AmbiguousId, ProviderFailed

    long = "\n\n".join(f"Paragraph {n} of the quokka, {'which smiles ' * 30}." for n in range(12))
    text = entry(f"# Quokkas\n\n{long}", id="q-1")
    kb = open_team(own_folder(tmp_path, "one", NOTES), "one")
    open_team(own_folder(tmp_path, "two", {"q.md": text, "a.md": "# First\n\nx\n"}), "two").sync()
    kb.sync()
    for wanted in ("q-1", "q.md", "two:q.md", "two:q.md:9", "quokkas"):
        shown = kb.show(wanted, vaults=["two"])
        assert (shown.id, shown.path) == ("q-1", "two:q.md")
        assert [f"Paragraph {n} " in (shown.text or "") for n in range(12)] == [True] * 12
        assert (shown.text or "").count("Paragraph 7 ") == 1
    assert kb.show("a.md:3", vaults=["two"]).title == kb.show("first", vaults=["all"]).title == "First"
    assert kb.why_not("smiles", "two:q.md", vaults=["all"]).step == "found"
    with pytest.raises(UnknownEntry):
        kb.show("q-1", vaults=["one"])
    with pytest.raises(AmbiguousId):
        kb.show("a.md", vaults=["all"])
    gone = open_team(tmp_path / "one", "one", MEMORY_KB_INDEX_URL="postgresql://x:y@127.0.0.1:1/none")
    with pytest.raises(ProviderFailed, match="cannot be reached"):
        gone.show("q-1", vaults=["two"])


def test_status_names_the_server_and_its_vaults(tmp_path: Path, open_team: OpenTeam) -> None:
    kb = open_team(own_folder(tmp_path, "one", NOTES), "one")
    kb.sync()
    team = kb.status().team
    assert team
    assert (team.name, team.problem, [vault.name for vault in team.vaults]) == ("one", "", ["one"])
    assert "PostgreSQL" in team.server
    gone = open_team(tmp_path / "one", "one", MEMORY_KB_INDEX_URL="postgresql://x:y@127.0.0.1:1/none").status().team
    assert gone
    assert "cannot be reached" in gone.problem
    assert "x:y" not in str(gone)


def test_agents_and_the_page_search_many_vaults(tmp_path: Path, open_team: OpenTeam) -> None:
    from memory_kb.mcp.tools import Caller, memory_recall

    kb = open_team(own_folder(tmp_path, "one", NOTES), "one")
    kb.sync()
    open_team(own_folder(tmp_path, "two", OTHER), "two").sync()
    answer = memory_recall(kb, {"query": "night"}, Caller("coder", "s1", ("all",)))
    assert "one:a.md" in answer
    assert "two:a.md" in answer


def test_watch_sends_what_is_written(tmp_path: Path, open_team: OpenTeam) -> None:
    kb, stop = open_team(own_folder(tmp_path, "one", NOTES), "one"), threading.Event()
    watching = threading.Thread(target=kb.watch, kwargs={"stop": stop, "poll": True})
    watching.start()
    try:
        eventually(lambda: _is_there(kb))
    finally:
        stop.set()
        watching.join()


def _is_there(kb: KnowledgeBase) -> bool:
    try:
        return bool(kb.search("night", vaults=["one"], sync=False).hits)
    except UsageError:
        return False


#: What a client with a role, and a mind of its own, may try; every one has to fail, or find and change nothing.
ATTACKS = (
    "SELECT content FROM memory_kb.chunks WHERE content LIKE '%smile%'",
    "SELECT term FROM memory_kb.postings WHERE term = 'smile'",
    "SELECT name FROM memory_kb.vaults WHERE name = 'two'",
    "SELECT path FROM memory_kb.files WHERE vault = 2",
    "SELECT vault FROM memory_kb.grants WHERE vault = 'two'",
    "SELECT most_common_vals::text FROM pg_stats WHERE schemaname = 'memory_kb' AND tablename IN ('postings', 'chunks')",
    "INSERT INTO memory_kb.grants VALUES ('two', current_user, true) RETURNING vault",
    "UPDATE memory_kb.vaults SET generation = 99 WHERE name = 'two' RETURNING id",
    "UPDATE memory_kb.vaults SET name = 'three' WHERE name = 'one' RETURNING id",
    "UPDATE memory_kb.chunks SET vault = 2 RETURNING key",
    "INSERT INTO memory_kb.files VALUES (2, 'x.md', 'h', NULL) RETURNING path",
    "INSERT INTO memory_kb.vaults (name, made_with) VALUES ('mine', '') RETURNING id",
    "INSERT INTO memory_kb.vaults (name, made_with) VALUES ('two', '') ON CONFLICT (name) DO UPDATE SET made_with = 'x' RETURNING id",
    "DELETE FROM memory_kb.chunks WHERE vault = 2 RETURNING key",
    "TRUNCATE memory_kb.chunks",
    "SELECT embedding FROM memory_kb.vectors WHERE vault = 2",
    "UPDATE memory_kb.postings SET block = 2::bigint << 28 RETURNING block",
    "SET row_security = off; SELECT content FROM memory_kb.chunks",
    "SET ROLE memory_kb",
    "SET SESSION AUTHORIZATION memory_kb",
    "ALTER TABLE memory_kb.chunks DISABLE ROW LEVEL SECURITY",
    "DROP SCHEMA memory_kb CASCADE",
    "CREATE FUNCTION memory_kb.is_granted(text, boolean, integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
)


#: A condition that is cheaper than any policy, and says what it is shown.
LEAK = """CREATE FUNCTION pg_temp.leak(seen text) RETURNS boolean COST 0.000001 LANGUAGE plpgsql AS $$
BEGIN IF seen LIKE '%smile%' THEN RAISE EXCEPTION 'leaked %', seen; END IF; RETURN true; END $$;
SELECT key FROM memory_kb.chunks WHERE pg_temp.leak(content);
SELECT block FROM memory_kb.postings WHERE pg_temp.leak(term)"""


def test_a_hostile_client_gets_nothing(tmp_path: Path, open_team: OpenTeam, server: Server) -> None:
    import psycopg
    from postgres_server import as_role

    for name, files in (("one", NOTES), ("two", OTHER)):
        open_team(own_folder(tmp_path, name, files), name).sync()
    url = open_team(tmp_path / "one", "one").vault.settings.index.url
    assert url
    role = f"hostile_{os.getpid()}"
    server.run(url, f"CREATE ROLE {role} LOGIN PASSWORD '{role}'")
    server.run(url, f"INSERT INTO memory_kb.grants VALUES ('one', '{role}', true)")
    server.run(url, "ANALYZE")
    before = server.run(url, "SELECT vault, key, content FROM memory_kb.chunks ORDER BY key")
    for attack in ATTACKS:
        try:
            assert server.run(as_role(url, role), attack) == [], attack
        except psycopg.Error:
            continue
    server.run(as_role(url, role), LEAK)
    assert server.run(url, "SELECT vault, key, content FROM memory_kb.chunks ORDER BY key") == before


def test_a_server_that_is_gone_leaves_the_vault_here(tmp_path: Path, open_team: OpenTeam) -> None:
    kb = open_team(own_folder(tmp_path, "one", NOTES), "one", MEMORY_KB_INDEX_URL="postgresql://x:y@127.0.0.1:1/none")
    assert "cannot be reached" in kb.sync().notices[0]
    result = kb.search("night", vaults=["all"])
    assert [hit.path for hit in result.hits] == ["a.md"]
    assert "cannot be reached" in result.degraded[0]
    assert "x:y" not in str(result.degraded)


def test_a_network_that_is_gone_is_noticed_as_soon_as_a_server_that_is(tmp_path: Path, open_team: OpenTeam) -> None:
    from memory_kb.index.postgres_schema import CONNECT_SECONDS, connect_postgres

    url = open_team(own_folder(tmp_path, "one", NOTES), "one").vault.settings.index.url
    assert url
    with connect_postgres(url) as connection:
        asked = connection.info.get_parameters()
    assert asked["tcp_user_timeout"] == str(1000 * CONNECT_SECONDS)
    assert asked["keepalives_idle"] == str(CONNECT_SECONDS)


@pytest.fixture
def clones(tmp_path: Path) -> Iterator[list[Path]]:
    """Three clones of one repository, each a commit behind the one before."""
    origin = tmp_path / "origin"
    write_files(origin, NOTES)
    folders = []

    def git(folder: Path, *words: str, day: int = 1) -> None:
        when = {
            "GIT_COMMITTER_DATE": f"2026-03-{day:02} 12:00:00 +0000",
            "GIT_AUTHOR_DATE": f"2026-03-{day:02} 12:00:00 +0000",
        }
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, env=os.environ | ORDINARY | when)

    git(origin, "init", "-q", "-b", "main")
    for number in range(3):
        write_files(origin, {"c.md": f"# Day {number}\n\nrevision{number} of the platypus\n"})
        git(origin, "add", "-A")
        git(origin, "commit", "-qm", str(number), day=number + 1)
        folders.append(tmp_path / f"clone{number}")
        git(tmp_path, "clone", "-q", str(origin), str(folders[-1]))
    yield folders[::-1]


def test_the_newest_commit_wins(clones: list[Path], open_team: OpenTeam) -> None:
    newest, middle, oldest = (open_team(folder, "one") for folder in clones)
    assert middle.sync().notices == ()
    assert places(oldest, "revision1", "one") == [("one", "c.md")]
    assert "a newer commit" in oldest.sync().notices[0]
    assert newest.sync().notices == ()
    assert places(oldest, "revision2", "one") == [("one", "c.md")]
    result = middle.search("revision1", vaults=["one"])
    assert result.hits == ()
    assert "a newer commit" in result.degraded[0]


def test_one_clone_speaks_for_a_commit(clones: list[Path], tmp_path: Path, open_team: OpenTeam) -> None:
    import shutil

    twin = shutil.copytree(clones[0], tmp_path / "twin")
    first, second = open_team(clones[0], "one"), open_team(twin, "one")
    assert first.sync().notices == second.sync().notices == ()
    write_files(twin, {"d.md": "# Echidna\n\nuncommitted\n"})
    assert "another clone" in second.sync().notices[0]
    write_files(clones[0], {"e.md": "# Bilby\n\nuncommitted\n"})
    assert places(second, "uncommitted", "one") == []
    assert places(first, "uncommitted", "one") == [("one", "e.md")]


def test_another_branch_is_left_out(clones: list[Path], open_team: OpenTeam) -> None:
    subprocess.run(["git", "checkout", "-qb", "draft"], cwd=clones[0], check=True)
    kb = open_team(clones[0], "one")
    assert "this clone is on draft" in kb.sync().notices[0]


def assert_consistent(server: Server, url: str) -> None:
    """Assert that a vault says of its chunks, and its postings of the places of words, what is there."""
    counted = server.run(url, "SELECT chunks, terms FROM memory_kb.vaults")
    assert server.run(url, "SELECT count(*), sum(length) FROM memory_kb.chunks") == counted
    assert server.run(url, "SELECT sum(cardinality(places)) FROM memory_kb.postings") == [counted[0][1:2]]
    numbers = (
        "SELECT count(DISTINCT (block, place >> 38)), count(DISTINCT (block, term, place >> 38)) - "
        "(SELECT sum(chunks) FROM memory_kb.postings) FROM memory_kb.postings, unnest(places) place"
    )
    assert server.run(url, numbers) == [(counted[0][0], 0)]


_INDEX = "from memory_kb.cli import main; main()"


def start_index(kb: KnowledgeBase, tmp_path: Path) -> subprocess.Popen[bytes]:
    environ = os.environ | kb.vault.environ | {"MEMORY_KB_HOME": str(tmp_path / "home"), "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", _INDEX, "--vault", str(kb.vault.folder), "index"]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def wait_until_the_lock_is_free(server: Server, url: str) -> None:
    """Wait until the server has noticed that the process that held the lock is dead: it ends its statement first."""
    eventually(lambda: server.run(url, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)])


def test_a_killed_writer_leaves_the_state_before_and_no_lock(
    tmp_path: Path, open_team: OpenTeam, server: Server
) -> None:
    folder = own_folder(tmp_path, "one", {f"n{n}.md": f"# Note {n}\n\n{'word ' * 50} stays{n}\n" for n in range(300)})
    kb = open_team(folder, "one")
    kb.sync()
    url = str(kb.vault.settings.index.url)
    for delay in (0.3, 0.5, 0.7, 0.9):
        write_files(folder, {f"n{n}.md": f"# Note {n}\n\n{'term ' * 50} after{delay} stays{n}\n" for n in range(300)})
        with start_index(kb, tmp_path) as running:
            time.sleep(delay)
            running.send_signal(signal.SIGKILL)
        wait_until_the_lock_is_free(server, url)
        assert_consistent(server, url)
        # The server keeps the lock until it notices that its client is gone.
        eventually(lambda: kb.sync().notices == ())
        assert len(kb.search(f"after{delay}", limit=300, vaults=["one"]).hits) == 300


def test_eight_writers_at_once(clones: list[Path], tmp_path: Path, open_team: OpenTeam) -> None:
    import shutil

    folders = [shutil.copytree(clones[n % 3], tmp_path / f"machine{n}") for n in range(8)]
    kbs = [open_team(folder, "one") for folder in folders]
    running = [start_index(kb, tmp_path / f"home{n}") for n, kb in enumerate(kbs)]
    outputs = [process.communicate()[0].decode() for process in running]
    assert [process.returncode for process in running] == [0] * 8, outputs
    assert places(kbs[2], "platypus", "one") == [("one", "c.md")]
    assert places(kbs[2], "revision2", "one") == [("one", "c.md")]


def test_a_server_killed_while_it_is_asked(tmp_path: Path, open_team: OpenTeam, server: Server) -> None:
    kb = open_team(own_folder(tmp_path, "one", NOTES), "one")
    kb.sync()
    server.stop()
    try:
        assert "cannot be reached" in kb.search("night", vaults=["one"]).degraded[0]
        write_files(kb.vault.folder, {"c.md": "# Later\n\nwritten at night\n"})
        assert "cannot be reached" in kb.sync().notices[0]
    finally:
        server.start()
    assert ("one", "c.md") in places(kb, "later", "one")


def test_a_server_killed_while_it_is_written_to(tmp_path: Path, open_team: OpenTeam, server: Server) -> None:
    folder = own_folder(tmp_path, "one", {f"n{n}.md": f"# Note {n}\n\n{'word ' * 50} stays{n}\n" for n in range(300)})
    kb = open_team(folder, "one")
    kb.sync()
    url = str(kb.vault.settings.index.url)
    for delay in (0.5, 0.8):
        write_files(folder, {f"n{n}.md": f"# Note {n}\n\n{'term ' * 50} after{delay} stays{n}\n" for n in range(300)})
        try:
            with start_index(kb, tmp_path) as running:
                time.sleep(delay)
                server.stop()
        finally:
            server.start()
        assert running.returncode == 0
        assert_consistent(server, url)
        assert kb.sync().notices == ()
        assert len(kb.search(f"after{delay}", limit=300, vaults=["one"]).hits) == 300
