"""The changes of an entry on its page: what runs did and what git knows, in one list."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browsing import browsing, find_browser
from conftest import write_files
from pages import Server, form_of, save_form
from repositories import Clone
from support import entry

TEXT = entry("# Pin the image\n\nAlways.", id="pin-image", kind="rule")
NEWER = entry("# Pin the image\n\nAlways <b>pin</b> it.", id="pin-image", kind="rule")
FILES = {"memory/config.yaml": "", "memory/rules/pin.md": TEXT}

Serve = Callable[[], Server]


@pytest.fixture
def clone(tmp_path: Path, home: Path) -> Clone:
    return Clone(write_files(tmp_path / "vault", FILES), home)


@pytest.fixture
def serve(clone: Clone, home: Path) -> Iterator[Serve]:
    started: list[Server] = []

    def start() -> Server:
        started.append(Server(clone.folder, home))
        return started[-1]

    yield start
    for server in started:
        server.process.kill()
        server.process.communicate()


def committed(clone: Clone) -> None:
    clone.git("init", "-q", "-b", "main")
    clone.save("Say what to pin <i>")
    (clone.folder / "memory/rules/pin.md").write_text(NEWER, encoding="utf-8")
    clone.save("Say why")


def told(server: Server) -> str:
    answer = server.ask("/entry/changes?id=pin-image", hx_request="true")
    assert answer.status == 200
    return answer.text


def test_commits_are_shown_with_their_authors_and_differences(clone: Clone, serve: Serve) -> None:
    committed(clone)
    page = told(serve())
    assert page.index("Say why") < page.index("Say what to pin &lt;i&gt;")
    assert page.count("nobody@localhost, commit") == 2
    assert '<span class="removed">-Always.</span>' in page
    assert '<span class="added">+Always &lt;b&gt;pin&lt;/b&gt; it.</span>' in page
    assert "<summary>text changed</summary>" in page


def test_runs_and_commits_stand_in_one_list_by_time(clone: Clone, serve: Serve) -> None:
    committed(clone)
    server = serve()
    fields = form_of(server, "pin-image")
    assert save_form(server, fields | {"text": fields["text"].replace("it.", "it, always.")}).status == 303
    clone.git("commit", "-q", "-am", "Say it twice")
    page = told(server)
    places = [page.index(word) for word in ("Say it twice", "Edited by hand.", "Say why")]
    # What was done and committed within one second may stand either way.
    assert max(places[:2]) < places[2]
    assert 'name="run"' in page


def test_without_git_there_are_the_runs_alone(clone: Clone, serve: Serve) -> None:
    server = serve()
    assert "No changes are recorded." in told(server)
    fields = form_of(server, "pin-image")
    save_form(server, fields | {"text": fields["text"].replace("Always.", "Ever.")})
    page = told(server)
    assert "Edited by hand." in page and "commit" not in page
    assert (clone.folder / "memory").is_dir()


def test_the_page_itself_does_not_ask_git(clone: Clone, serve: Serve) -> None:
    committed(clone)
    page = serve().ask("/entry?id=pin-image").text
    assert "Say why" not in page
    assert re.search(r'id="changes" hx-get="/entry/changes', page)


@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason="no Chromium here")
def test_the_list_is_loaded_and_fits_a_phone(clone: Clone, serve: Serve, tmp_path: Path) -> None:
    committed(clone)
    server = serve()
    fields = form_of(server, "pin-image")
    save_form(server, fields | {"text": fields["text"].replace("it.", f"it, {'long' * 60}.")})
    clone.git("commit", "-q", "-am", "A subject that goes on and on, " * 5 + "x" * 80)
    with browsing(tmp_path / "browser") as opening:
        tab = opening()
        tab.look(360, 740)
        tab.go(f"{server.address}/entry?id=pin-image")
        tab.wait("document.querySelectorAll('#changes li').length === 4")
        tab.run("document.querySelectorAll('#changes details').forEach((one) => { one.open = true; })")
        assert tab.run("document.documentElement.scrollWidth") == 360
        assert tab.complaints == []
        tab.close()
