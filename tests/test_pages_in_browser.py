"""The page in a real browser: keys, hearing of changes, no complaint on any page at any width."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from browsing import Tab, browsing, find_browser
from pages import FILES, Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_browser() is None, reason="no Chromium here: install the system's, or name one in MEMORY_KB_TEST_BROWSER"
    ),
]
#: Phone, tablet, desk.
WIDTHS = (360, 800, 1440)


@pytest.fixture(scope="module")
def open_tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Tab]]:
    with browsing(tmp_path_factory.mktemp("browser")) as opening:
        yield opening


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    from conftest import write_files

    root = tmp_path_factory.mktemp("browsed")
    started = Server(write_files(root / "vault", FILES), root / "home")
    started.ask("/?q=x")
    yield started
    started.process.kill()
    started.process.communicate()


@pytest.fixture
def tab(open_tab: Callable[[], Tab]) -> Iterator[Tab]:
    opened = open_tab()
    opened.look(1280, 900)
    yield opened
    opened.close()
    assert opened.complaints == []


def test_keys_alone_lead_from_a_question_to_an_edit(tab: Tab, server: Server) -> None:
    tab.go(f"{server.address}/browse")
    tab.press("/")
    tab.wait("document.activeElement && document.activeElement.id === 'q'")
    tab.type("flaky")
    tab.wait("document.querySelector('.hits mark')?.textContent === 'Flaky'")
    tab.wait("location.search === '?q=flaky'")
    tab.press("Escape")
    tab.press("j")
    tab.wait("document.activeElement.matches('.hits li.chosen a[data-main]')")
    tab.press("Enter")
    tab.wait("location.pathname === '/entry' && document.querySelector('h1').textContent.startsWith('Flaky tests')")
    tab.wait("document.querySelector('#links li')")
    tab.press("e")
    tab.wait("location.pathname === '/entry/edit' && document.activeElement.id === 'text'")
    assert tab.run("document.querySelector('#moved').checkVisibility()") is False
    tab.press("Escape")
    tab.press("?")
    tab.wait("document.querySelector('#keys').open")
    tab.press("Escape")
    tab.wait("!document.querySelector('#keys').open")
    tab.press("g")
    tab.press("r")
    tab.wait("location.pathname === '/review'")


def test_the_first_tab_leads_past_the_navigation(tab: Tab, server: Server) -> None:
    tab.go(f"{server.address}/browse")
    tab.press("Tab")
    assert tab.run("document.activeElement.className") == "skip"
    assert tab.run("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert tab.run("document.activeElement.getBoundingClientRect().left") >= 0


def test_what_is_typed_stays_and_what_answers_it_changes_with_the_files(tab: Tab, server: Server) -> None:
    tab.go(f"{server.address}/?q=pangolin")
    tab.wait("known !== null")
    assert "No results" in tab.run("document.querySelector('#results').textContent")
    tab.run("(box => { box.focus(); box.setSelectionRange(99, 99); })(document.querySelector('#q'))")
    tab.type(" seen")
    file = server.vault / "memory/learnings/pangolin.md"
    file.write_text("# A pangolin was seen\n\nAt night.\n")
    tab.wait("document.querySelector('.hits a')?.textContent === 'A pangolin was seen'")
    assert tab.run("document.querySelector('#q').value") == "pangolin seen"
    assert tab.run("document.activeElement.id") == "q"


def test_an_open_entry_follows_its_file_and_a_form_says_that_it_moved(tab: Tab, server: Server) -> None:
    file = server.vault / "memory/learnings/moving.md"
    file.write_text("---\nid: moving\n---\n# Moving\n\nbefore\n")
    tab.go(f"{server.address}/entry?id=moving")
    tab.wait("document.querySelector('.text')?.textContent.includes('before') && known !== null")
    tab.wait("document.querySelector('#links').textContent.includes('links to nothing')")
    file.write_text("---\nid: moving\n---\n# Moving\n\nafter, see [[Retry rule]]\n")
    tab.wait("document.querySelector('.text').textContent.includes('after')")
    tab.wait("document.querySelector('#links').textContent.includes('Retry rule')")
    tab.go(f"{server.address}/entry/edit?id=moving")
    tab.wait("known !== null")
    tab.run("document.querySelector('#text').focus()")
    tab.type("x")
    file.write_text("---\nid: moving\n---\n# Moving\n\nonce more\n")
    tab.wait("document.querySelector('#moved').checkVisibility()")
    assert "after" in tab.run("document.querySelector('#text').value")
    tab.run("document.querySelector('button.main').click()")
    tab.wait("document.querySelector('[role=alert]')?.textContent.includes('Nothing was written')")
    assert tab.run("document.querySelector('.diff').textContent").count("once more")
    # The browser itself says on its console that the answer was 409.
    tab.complaints = [said for said in tab.complaints if "409" not in said]


def test_the_queue_is_judged_by_keys(tab: Tab, server: Server) -> None:
    tab.go(f"{server.address}/review")
    tab.wait("htmx")
    tab.press("j")
    title = tab.run("document.querySelector('.queue li.chosen h2').textContent")
    tab.run("document.querySelector('.queue li.chosen summary').click()")
    tab.wait("document.querySelector('.queue li.chosen .diff .added')")
    tab.press("a")
    tab.wait("document.querySelector('.note')?.textContent.includes('Approved.')")
    assert title not in tab.run("document.querySelector('.queue').textContent")
    tab.run("document.querySelector('.note button').click()")
    tab.wait("document.querySelector('.queue h2') && !document.querySelector('.note')")
    assert title in tab.run("document.querySelector('.queue').textContent")


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_no_page_complains_or_is_wider_than_the_window(tab: Tab, server: Server, is_dark: bool) -> None:
    for path in (
        "/",
        "/?q=evil+flaky",
        "/browse",
        "/entry?id=evil-1",
        "/entry/edit?id=evil-1",
        "/review",
        "/graph",
        "/graph?id=flaky-1",
        "/sessions",
        "/health",
    ):
        for width in WIDTHS:
            tab.look(width, 800, is_dark=is_dark)
            tab.go(f"{server.address}{path}")
            tab.wait(
                '!document.querySelector(\'[hx-get] > p > a[href^="/entry/"], #findings > p:only-child > a[href="/health/findings"]\')'
            )
            assert tab.run(f"document.documentElement.scrollWidth - {width}") <= 0, (path, width)
    assert tab.dialogs == []
    assert tab.run("getComputedStyle(document.body).backgroundColor") == (
        "rgb(22, 23, 26)" if is_dark else "rgb(251, 250, 247)"
    )


def test_diagrams_are_drawn_as_pictures_where_there_are_any(tab: Tab, server: Server) -> None:
    file = server.vault / "memory/learnings/drawing.md"
    file.write_text(
        "---\nid: drawing\n---\n# Drawing\n\n```mermaid\ngraph TD\n  A[<b>x</b>] --> B\n```\n\n```mermaid\nno diagram\n```\n"
    )
    tab.go(f"{server.address}/entry?id=drawing")
    tab.wait("document.querySelector('.text img[alt^=Diagram]')?.naturalWidth > 20")
    tab.wait("document.querySelector('.text p.bad')?.textContent.startsWith('No diagram')")
    assert "A[<b>x</b>]" in tab.run("document.querySelector('.text details pre').textContent")
    tab.go(f"{server.address}/entry?id=flaky-1")
    assert tab.run("document.querySelector('iframe')") is None


def test_the_graph_is_drawn(tab: Tab, server: Server) -> None:
    tab.go(f"{server.address}/graph")
    tab.wait("document.querySelector('#graph[data-ready] canvas')")
    drawn = "[...document.querySelector('#graph canvas').getContext('2d').getImageData(0, 0, 1112, 400).data].some((part) => part > 0)"
    assert tab.run(drawn)


def test_the_styles_that_are_let_through_are_those_of_the_drawing(tab: Tab, server: Server) -> None:
    from memory_kb.web.auth import STYLE_HASHES

    tab.go(f"{server.address}/graph")
    tab.wait("document.querySelector('#graph canvas')")
    digests = tab.run(
        "Promise.all([...document.querySelectorAll('style')].map(async (one) => btoa(String.fromCharCode(...new Uint8Array("
        "await crypto.subtle.digest('SHA-256', new TextEncoder().encode(one.textContent)))))))"
    )
    assert len(digests) == 2 and set(digests) <= set(STYLE_HASHES)
