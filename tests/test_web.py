"""The page over real HTTP: what it shows, and how it lives with the vault."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from typing import TYPE_CHECKING

import pages
import pytest
from pages import FILES, Parsed, Server, Start
from watching import eventually, save

if TYPE_CHECKING:
    from conftest import Run

start = pages.start
shared = pages.shared

PAGES = (
    "/",
    "/?q=evil",
    "/browse",
    "/entry?id=evil-1",
    "/entry/links?id=evil-1",
    "/entry/exposure?id=evil-1",
    "/entry/changes?id=evil-1",
    "/entry/edit?id=evil-1",
    "/review",
    "/review/item?id=evil-1",
    "/graph",
    "/graph?id=flaky-1",
    "/sessions",
    "/sessions?q=evil",
    "/session?session=s1",
    "/health",
    "/health/findings",
    "/nope",
    "/entry?id=twin",
)


def test_every_page_is_whole_and_runs_nothing_of_the_notes(shared: Server) -> None:
    for target in PAGES:
        answer = shared.ask(target)
        assert answer.status in (200, 404, 409) and answer.headers["content-type"].startswith("text/html"), target
        page = Parsed(answer.text)
        assert page.dangers == [], target
        assert page.has_labels(), target
        assert "{%" not in answer.text, target
        tags = [tag for tag, _ in page.tags]
        assert tags.count("h1") == tags.count("main") == 1, target
        assert ("a", {"class": "skip", "href": "#main"}) in page.tags, target


@pytest.mark.parametrize("target", [*PAGES[:2], "/static/page.css", "/events-are-not-here", "/graph.json"])
def test_every_answer_sets_terms_for_the_browser(shared: Server, target: str) -> None:
    headers = shared.ask(target).headers
    policy = headers["content-security-policy"]
    assert (
        "default-src 'none'" in policy
        and "script-src 'self';" in policy
        and "unsafe" not in policy
        and "frame-ancestors 'none'" in policy
    )
    assert (headers["x-content-type-options"], headers["referrer-policy"], headers["x-frame-options"]) == (
        "nosniff",
        "same-origin",
        "DENY",
    )
    assert "server" not in headers
    assert len([name for name in headers if name == "content-security-policy"]) == 1


def test_hits_are_marked_and_their_scores_shown(shared: Server) -> None:
    text = shared.ask("/?q=flaky+test").text
    assert "<mark>Flaky</mark> <mark>tests</mark>" in text
    assert "why it ranks here" in text
    assert "<dt>prominence</dt>" in shared.ask("/?q=retry").text
    assert "retry-1" not in shared.ask("/?q=flaky&kind=fact").text
    assert shared.ask("/?q=flaky&kind=fct").status == 400
    assert "no day" in shared.ask("/?q=flaky&since=soon").text


def test_typing_finds_beginnings_and_counts_as_no_use(shared: Server) -> None:
    log = shared.vault / "memory/.memory-kb/log/retrievals.jsonl"
    before = log.read_bytes() if log.exists() else b""
    answer = shared.ask("/results?q=flak", hx_request="true")
    assert (
        "<mark>Flaky</mark>" in answer.text
        and answer.headers["hx-replace-url"] == "/?q=flak"
        and "<html" not in answer.text
    )
    assert (log.read_bytes() if log.exists() else b"") == before
    shared.ask("/?q=seed")
    assert b'"seed"' in log.read_bytes()


def test_an_entry_is_rendered_with_live_links_and_what_it_depends_on(shared: Server) -> None:
    text = shared.ask("/entry?id=flaky-1").text
    assert re.search(r'<a href="/go\?to=Retry\+rule&amp;from=[^"]+" class="wiki">Retry rule</a>', text)
    assert '<a href="/new?title=Nothing+of+the+kind" class="wiki missing"' in text and text.count("<h1>") == 1
    assert "Prominence is" in text
    assert shared.ask("/go?to=retry%20RULE").headers["location"].startswith("/entry?id=retry-1&at=memory")
    assert shared.ask("/go?to=nothing").headers["location"] == "/?q=nothing"
    links = shared.ask("/entry/links?id=flaky-1", hx_request="true").text
    assert (
        "derived from" in links
        and "Retry rule" in links
        and "no entry is called that" in links
        and "<html" not in links
    )


def test_of_two_entries_with_one_id_the_place_decides(shared: Server) -> None:
    answer = shared.ask("/entry?id=twin")
    assert answer.status == 409 and answer.text.count("/entry?id=memory%2Flearnings%2Ftwin-") == 2
    assert "The second of two." in shared.ask("/entry?id=memory/learnings/twin-b.md:6").text


def test_the_graph_holds_a_neighbourhood(shared: Server) -> None:
    around = json.loads(shared.ask("/graph.json?id=retry-1").body)
    assert {node["name"] for node in around["nodes"]} == {"Retry rule", "Flaky tests need a fixed seed"}
    assert {link["relation"] for link in around["links"]} == {"derived_from", "mentions"}
    assert shared.ask("/graph.json?id=nobody").status == 404
    assert json.loads(shared.ask("/graph.json?kind=skill").body) == {"nodes": [], "links": []}


def test_sessions_are_listed_searched_and_replayed(shared: Server) -> None:
    assert "/session?session=s1" in shared.ask("/sessions").text
    assert "<mark>evil</mark>" in shared.ask("/sessions?q=evil").text
    assert 'id="event-1"' in shared.ask("/session?session=s1").text
    assert shared.ask("/session?session=nobody").status == 404


def test_health_says_how_fresh_the_index_is(shared: Server) -> None:
    text = shared.ask("/health").text
    assert "up to date" in text and "words only" in text and "no language model is asked" in text
    findings = shared.ask("/health/findings", hx_request="true").text
    assert (
        "Nothing of the kind" in findings
        and "/entry?id=memory%2Flearnings%2Fflaky.md" in findings
        and "<html" not in findings
    )


def test_the_first_page_shows_what_changed_last_with_folders_and_tags(start: Start) -> None:
    server = start({f"{number:02}.md": f"# Note {number:02}\n\n#all\n" for number in range(12)})
    other = server.vault / "trips" / "south & west"
    other.mkdir(parents=True)
    (other / "rome.md").write_text("# Rome\n\n#travel #all\n", encoding="utf-8")
    for number in range(12):
        os.utime(server.vault / f"{number:02}.md", (1_700_000_000 + number * 86_400,) * 2)
    eventually(lambda: ">Rome<" in (text := server.ask("/").text) and ">Note 02<" not in text)
    text = server.ask("/").text
    shown = re.findall(r'data-main href="[^"]*">([^<]*)<', text)
    assert shown == ["Rome", *(f"Note {number:02}" for number in range(11, 2, -1))]
    links = re.findall(r'href="(/browse\?[^"]*)">([^<]*)</a> <span class="muted small">(\d+)<', text)
    assert [(name, number) for _, name, number in links] == [
        ("trips", "1"),
        ("trips/south &amp; west", "1"),
        ("#all", "13"),
        ("#travel", "1"),
    ]
    totals = [server.ask(address.replace("&amp;", "&")).text.count("data-row") for address, *_ in links]
    assert totals == [1, 1, 13, 1]
    assert "Folders" not in server.ask("/?q=rome").text
    assert server.ask("/results?q=", hx_request="true").text.count("data-row") == 10


def test_a_list_has_pages(start: Start) -> None:
    server = start({f"{number:03}.md": f"# Note {number:03}\n\ntext\n" for number in range(120)})
    assert server.ask("/browse?order=title").text.count("data-row") == 50
    last = server.ask("/browse?order=title&page=3").text
    assert last.count("data-row") == 20 and "Note 119" in last and 'rel="next"' not in last
    assert server.ask("/browse?page=99999999999999999999").status == 200
    assert server.ask("/browse?order=sideways").status == 400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        (None, "<p>one\ntwo</p>"),
        ("{}", "<p>one<br>\ntwo</p>"),
        ("no JSON", "<p>one<br>\ntwo</p>"),
        ('{"strictLineBreaks": true}', "<p>one\ntwo</p>"),
    ],
    ids=["no vault of Obsidian", "as set", "unreadable", "strict"],
)
def test_lines_are_shown_as_obsidian_shows_them(start: Start, settings: str | None, shown: str) -> None:
    server = start({"a.md": "# A\n\none\ntwo\n"} | ({".obsidian/app.json": settings} if settings else {}))
    assert shown in server.ask("/entry?id=a.md").text


def test_an_empty_folder_has_a_page(start: Start) -> None:
    server = start({})
    for target in ("/", "/?q=x", "/browse", "/review", "/graph", "/sessions", "/health"):
        assert server.ask(target).status == 200, target
    assert "No entries yet" in server.ask("/").text


def test_the_number_of_the_state_grows_with_a_change(start: Start) -> None:
    server = start(FILES)
    first = int(server.ask("/generation").text)
    save(server.vault / "memory/learnings/new.md", "# Something new\n\nzebra\n")
    eventually(lambda: int(server.ask("/generation").text) > first)
    eventually(lambda: "Something new" in server.ask("/results?q=zebra", hx_request="true").text)
    assert server.end()[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
@pytest.mark.skipif(os.name == "nt", reason="signals are others there")
def test_it_ends_when_stopped(start: Start, number: int, code: int) -> None:
    server = start(FILES)
    assert server.ask("/").status == 200
    ended, said = server.end(number)
    assert ended == code and "Traceback" not in said and (server.process.stdout is None or server.process.stdout.closed)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are others there")
def test_a_second_ctrl_c_changes_nothing(start: Start) -> None:
    server = start(FILES)
    server.process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # an answer says that the first was seen
        server.ask("/generation")
    ended, said = server.end(signal.SIGINT)
    assert ended == 130 and "Traceback" not in said


def test_a_place_that_is_taken_is_one_sentence(start: Start, run: Run) -> None:
    server = start(FILES)
    done = run("--vault", server.vault, "serve", "--port", str(server.port))
    assert done.returncode == 2 and done.stderr.startswith("memory-kb: cannot listen at 127.0.0.1:")


def test_the_graph_finds_a_note_by_its_title_and_shows_its_neighbours_by_depth(shared: Server) -> None:
    page = shared.ask("/graph?id=Retry+rule&steps=1").text
    assert "1 link away" in page and "steps=3" in page
    near = json.loads(shared.ask("/graph.json?id=Retry+rule&steps=1").text)["nodes"]
    assert {"Retry rule", "Flaky tests need a fixed seed"} <= {node["name"] for node in near}
