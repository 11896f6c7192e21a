"""The page over real HTTP: what it shows, what it writes, and whom it refuses."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import pytest
from conftest import NOW, REPOSITORY, Run, clean_environment, write_files
from support import entry

from memory_kb import KnowledgeBase
from memory_kb.errors import ChangedOnDisk, SecretRefused, UsageError
from memory_kb.settings import Ranking
from memory_kb.web.curves import Aged, draw_curve
from memory_kb.web.markdown import Place, render
from memory_kb.web.marking import excerpt, mark

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'`{{7*7}}"
QUOTED = json.dumps(EVIL)
SECRET_FILE = "nobody on the page may read this"
FILES: dict[str, str | bytes] = {
    "memory/config.yaml": "",
    "memory/learnings/flaky.md": entry(
        "# Flaky tests need a fixed seed\n\nSeed the generator. See [[Retry rule]] and [[Nothing of the kind]].\n",
        id="flaky-1", kind="fact", tags="[testing]", created_at="'2026-06-01'", reinforcement_count=3, last_reinforced="'2026-09-01'", importance=0.8,
    ),
    "memory/rules/retry.md": entry(
        "# Retry rule\n\nRetry twice, then fail.\n", id="retry-1", kind="rule", links="[{to: flaky-1, relation: derived_from}]"
    ),
    "memory/review/new.md": entry("# Proposed thing\n\nDeploy on Fridays.\n", id="prop-1", kind="rule", status="proposed"),
    "memory/review/bad.md": entry("# Another proposal\n\nNever test.\n", id="prop-2", kind="rule", status="proposed"),
    "memory/learnings/evil.md": f"---\nid: evil-1\ntitle: {QUOTED}\nkind: fact\ntags: [{QUOTED}]\nowner: {QUOTED}\n"
    f"links: [{{to: {QUOTED}, relation: {QUOTED}}}]\nsource: {QUOTED}\nflags: [{QUOTED}]\napplies_to: [{QUOTED}]\n---\n# {EVIL}\n\n{EVIL} evil\n\n"
    f"[x](javascript:alert(3)) [[{EVIL}]] ![{EVIL}](http://evil.example/x.png)\n\n<iframe src=//evil.example></iframe>\n",
    "memory/learnings/twin-a.md": entry("# Twin\n\nThe first of two.\n", id="twin"),
    "memory/learnings/twin-b.md": entry("# Twin\n\nThe second of two.\n", id="twin"),
    "memory/learnings/dos.md": b"---\r\nid: dos-1\r\nkind: fact\r\n---\r\n# Lines\r\n\r\nfirst\r\nsecond\r\n",
}  # fmt: skip
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


class Answer(NamedTuple):
    """What the server said."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def mark(self) -> str:
        found = re.search(r'name="mark" value="([^"]+)"', self.text)
        assert found, self.text[:500]
        return found[1]


class Server:
    """The page as a process of its own."""

    def __init__(self, vault: Path, home: Path, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        self.vault = vault
        environment = clean_environment(home) | {"MEMORY_KB_EMBEDDINGS_PROVIDER": "none"} | dict(env or {})
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memory_kb", "--vault", str(vault), "serve", "--port", "0", *arguments],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=environment,
            cwd=home.parent,
        )
        assert self.process.stderr
        line = self.process.stderr.readline()
        assert "http://" in line, line + self.process.stderr.read()
        self.address = line.split()[-1].rstrip("/")
        self.port = urlsplit(self.address).port or 0

    def ask(self, target: str, method: str = "GET", body: str | None = None, **headers: str) -> Answer:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.putrequest(method, target, skip_host="host" in headers)
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            if body is not None:
                given = {"content-type": "application/x-www-form-urlencoded", "content-length": str(len(body.encode()))} | given
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders(body.encode() if body is not None else None)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())

    def send(self, target: str, page: str, **fields: str) -> Answer:
        """Send a form as a browser would that has just loaded a page."""
        return self.ask(target, "POST", urlencode({"mark": self.ask(page).mark} | fields), origin=self.address, sec_fetch_site="same-origin")

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=20)
        return self.process.returncode, err


Start = Callable[..., Server]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Server] = []

    def start_one(files: Mapping[str, str | bytes], *arguments: str, env: Mapping[str, str] | None = None) -> Server:
        vault = write_files(tmp_path / "vault", files)
        vault.mkdir(exist_ok=True)
        started.append(Server(vault, tmp_path / "home", *arguments, env=env))
        return started[-1]

    yield start_one
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
        server.process.communicate()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that no test of this file writes through."""
    root = tmp_path_factory.mktemp("shared")
    (root / "secret.txt").write_text(SECRET_FILE)
    (root / "secret.md").write_text(SECRET_FILE)
    vault = write_files(root / "vault", FILES)
    sessions = vault / "memory/.memory-kb/sessions"
    sessions.mkdir(parents=True)
    events = [
        {
            "ts": "2026-11-20T10:00:00.000Z",
            "seq": 1,
            "session": "s1",
            "type": "message",
            "role": EVIL,
            "content": f"evil {EVIL}",
            "agent": EVIL,
            "args": {EVIL: EVIL},
            "error": EVIL,
        }
    ]
    (sessions / "s1.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events))
    server = Server(vault, root / "home")
    yield server
    server.process.kill()
    server.process.communicate()


class Parsed(HTMLParser):
    """The tags of a page, and what is dangerous among them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    @property
    def dangers(self) -> list[str]:
        found = [
            tag
            for tag, given in self.tags
            if tag in ("iframe", "object", "embed", "base", "style", "img")
            or (tag == "script" and not (given.get("src") or "").startswith("/static/"))
        ]
        found += [f"{tag} {name}" for tag, given in self.tags for name in given if name.startswith("on") or name == "style"]
        schemes = ("/", "#", "https://", "http://", "mailto:", "vscode://file/", "obsidian://open?")
        found += [f"{tag} {given['href']}" for tag, given in self.tags if given.get("href") and not str(given["href"]).startswith(schemes)]
        return found

    def has_labels(self) -> bool:
        """Whether every field that is seen has a label."""
        labelled = {given.get("for") for tag, given in self.tags if tag == "label"}
        fields = [given for tag, given in self.tags if tag in ("input", "select", "textarea") and given.get("type") != "hidden"]
        return all(given.get("id") in labelled for given in fields)


# -- what is shown ---------------------------------------------------------------------------------


@pytest.mark.parametrize("target", PAGES)
def test_every_page_is_whole_and_runs_nothing_of_the_notes(shared: Server, target: str) -> None:
    answer = shared.ask(target)
    assert answer.status in (200, 404, 409) and answer.headers["content-type"].startswith("text/html")
    page = Parsed(answer.text)
    assert page.dangers == []
    assert page.has_labels()
    assert "{%" not in answer.text
    tags = [tag for tag, _ in page.tags]
    assert tags.count("h1") == 1 and tags.count("main") == 1 and ("a", {"class": "skip", "href": "#main"}) in page.tags


@pytest.mark.parametrize("target", [*PAGES[:2], "/static/page.css", "/events-are-not-here", "/graph.json"])
def test_every_answer_sets_terms_for_the_browser(shared: Server, target: str) -> None:
    headers = shared.ask(target).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert (headers["x-content-type-options"], headers["referrer-policy"], headers["x-frame-options"]) == ("nosniff", "same-origin", "DENY")
    assert "server" not in headers
    assert len([name for name in headers if name == "content-security-policy"]) == 1


def test_hits_are_marked_and_their_scores_shown(shared: Server) -> None:
    text = shared.ask("/?q=flaky+test").text
    assert "<mark>Flaky</mark> <mark>tests</mark>" in text
    assert text.count("<dt>prominence</dt>") >= 1 and "why it stands here" in text
    assert "retry-1" not in shared.ask("/?q=flaky&kind=fact").text
    assert shared.ask("/?q=flaky&kind=fct").status == 400
    assert "no day" in shared.ask("/?q=flaky&since=soon").text


def test_typing_finds_beginnings_and_counts_as_no_use(shared: Server) -> None:
    log = shared.vault / "memory/.memory-kb/log/retrievals.jsonl"
    before = log.read_bytes() if log.exists() else b""
    answer = shared.ask("/results?q=flak", hx_request="true")
    assert "<mark>Flaky</mark>" in answer.text and answer.headers["hx-replace-url"] == "/?q=flak" and "<html" not in answer.text
    assert (log.read_bytes() if log.exists() else b"") == before
    shared.ask("/?q=seed")
    assert b'"seed"' in log.read_bytes()


def test_an_entry_is_rendered_with_live_links_and_what_it_depends_on(shared: Server) -> None:
    text = shared.ask("/entry?id=flaky-1").text
    assert '<a href="/go?to=Retry+rule" class="wiki">Retry rule</a>' in text
    assert 'class="wiki missing"' in text and text.count("<h1>") == 1
    assert "Prominence is" in text and "Dotted: had it never been used." in text
    assert shared.ask("/go?to=retry%20RULE").headers["location"].startswith("/entry?id=retry-1&at=memory")
    assert shared.ask("/go?to=nothing").headers["location"] == "/?q=nothing"
    links = shared.ask("/entry/links?id=flaky-1", hx_request="true").text
    assert "derived from" in links and "Retry rule" in links and "no entry is called that" in links and "<html" not in links


def test_of_two_entries_with_one_id_the_place_tells(shared: Server) -> None:
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
    assert "Nothing of the kind" in findings and "/entry?id=memory%2Flearnings%2Fflaky.md" in findings and "<html" not in findings


def test_a_list_has_pages(start: Start) -> None:
    server = start({f"{number:03}.md": f"# Note {number:03}\n\ntext\n" for number in range(120)})
    assert server.ask("/browse?order=title").text.count("data-row") == 50
    last = server.ask("/browse?order=title&page=3").text
    assert last.count("data-row") == 20 and "Note 119" in last and 'rel="next"' not in last
    assert server.ask("/browse?page=99999999999999999999").status == 200
    assert server.ask("/browse?order=sideways").status == 400


def test_an_empty_folder_has_a_page(start: Start) -> None:
    server = start({})
    for target in ("/", "/?q=x", "/browse", "/review", "/graph", "/sessions", "/health"):
        assert server.ask(target).status == 200, target
    assert "Nothing here yet" in server.ask("/").text


# -- who is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": ""}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors", "sec_fetch_dest": "image"}, 403),
        ({"sec_fetch_site": "same-site", "sec_fetch_mode": "cors", "sec_fetch_dest": "empty"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}, 200),
        ({"sec_fetch_site": "same-origin", "sec_fetch_mode": "cors", "sec_fetch_dest": "empty"}, 200),
        ({"host": "localhost"}, 200),
    ],
)
def test_only_this_page_may_ask(shared: Server, headers: dict[str, str], status: int) -> None:
    assert shared.ask("/", **headers).status == status


@pytest.mark.parametrize("target", ["/entry/edit", "/entry/forget", "/entry/open", "/review/judge", "/undo"])
def test_a_form_needs_the_mark_and_the_origin(shared: Server, target: str) -> None:
    before = {file: file.read_bytes() for file in shared.vault.rglob("*.md")}
    mark_ = shared.ask("/entry/edit?id=flaky-1").mark
    fields = {"id": "flaky-1", "text": "x", "was": "0" * 64, "judgment": "approve", "run": "00000000"}
    assert shared.ask(target, "POST", urlencode(fields)).status in (403, 409)
    assert shared.ask(target, "POST", urlencode(fields | {"mark": "guess"}), origin=shared.address).status in (403, 409)
    assert shared.ask(target, "POST", urlencode(fields | {"mark": mark_}), origin="https://evil.example").status == 403
    assert (
        shared.ask(
            target, "POST", urlencode(fields | {"mark": mark_}), sec_fetch_site="cross-site", sec_fetch_mode="navigate", sec_fetch_dest="document"
        ).status
        == 403
    )
    assert shared.ask(target, "POST", json.dumps(fields | {"mark": mark_}), content_type="application/json").status == 400
    assert shared.ask(target, "GET").status in (200, 404, 405)
    assert {file: file.read_bytes() for file in shared.vault.rglob("*.md")} == before


@pytest.mark.parametrize(
    "escape",
    [
        "../secret.md",
        "../../secret.txt",
        "..%2f..%2fsecret.txt",
        "/etc/passwd",
        "memory/../../secret.md:1",
        "\\..\\secret.md",
        "~global/../../secret.md",
        "a\0b",
        "%00",
        "é" * 5000,
        "-1",
        "🙂",
    ],
)
def test_no_parameter_leads_out_of_the_vault(shared: Server, escape: str) -> None:
    value = quote(escape, safe="%")
    for name in ("id", "at", "to", "q", "kind", "tag", "since", "page", "order", "session", "run", "back", "said", "token"):
        for path in ("/", "/browse", "/entry", "/entry/links", "/entry/edit", "/session", "/go", "/graph.json", "/results", "/review"):
            if (name in ("id", "session", "to")) == (path in ("/entry", "/entry/links", "/entry/edit", "/session", "/go", "/graph.json")):
                answer = shared.ask(f"{path}?{name}={value}&id=flaky-1" if name == "at" else f"{path}?{name}={value}")
                assert SECRET_FILE not in answer.text and "root:" not in answer.text
                assert answer.status < 500, (path, name, answer.text)
    for path in (f"/static/{value}", f"/{value}", f"/entry/{value}"):
        answer = shared.ask(path.replace("\\", "%5c"))
        assert answer.status in (400, 404, 405) and SECRET_FILE not in answer.text


def test_a_form_is_read_only_so_far(shared: Server) -> None:
    assert shared.ask("/entry/edit", "POST", "", content_length=str(100 * 1024 * 1024)).status == 413
    assert shared.ask("/entry/edit", "POST", "", content_length="many").status in (400, 413)
    with socket.create_connection(("127.0.0.1", shared.port), 30) as connection:
        head = f"POST /entry/edit HTTP/1.1\r\nHost: 127.0.0.1:{shared.port}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"100000\r\n" + b"a" * 0x100000 + b"\r\n"
        with contextlib.suppress(OSError):
            for _ in range(100):
                connection.sendall(chunk)
        with contextlib.suppress(OSError):
            assert connection.recv(4096).split(b" ")[1] in (b"400", b"413")
    assert shared.ask("/").status == 200


def test_only_a_token_opens_it_to_other_machines(start: Start, run: Run, tmp_path: Path) -> None:
    done = run("--vault", write_files(tmp_path / "v", {"a.md": "x\n"}), "serve", "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2 and "there is no token" in done.stderr
    done = run("--vault", tmp_path / "v", "serve", "--token", "short", "--port", "0")
    assert done.returncode == 2 and "12 characters" in done.stderr
    token = "correct horse battery"
    server = start(FILES, "--host", "0.0.0.0", env={"MEMORY_KB_SERVE_TOKEN": token})
    for answer in (server.ask("/"), server.ask("/?token=wrong"), server.ask("/graph.json"), server.ask("/", cookie="memory-kb-0=x; %%%")):
        assert answer.status == 401 and "flaky" not in answer.text.lower() and Parsed(answer.text).dangers == []
    assert server.ask("/", authorization=f"Bearer {token}").status == 200
    assert server.ask("/enter", "POST", urlencode({"token": "wrong"})).status == 401
    entered = server.ask("/enter", "POST", urlencode({"token": token}))
    cookie = entered.headers["set-cookie"]
    assert entered.status == 303 and "HttpOnly" in cookie and "SameSite=Strict" in cookie and token not in cookie
    assert "Flaky" in server.ask("/", cookie=cookie.partition(";")[0], host=f"my.machine:{server.port}").text
    form = server.ask("/entry/edit?id=flaky-1", cookie=cookie.partition(";")[0], host=f"my.machine:{server.port}")
    fields = {"mark": form.mark, "id": "retry-1"}
    for origin, status in ((f"http://my.machine:{server.port}", 303), ("http://127.0.0.1:1", 403), ("http://[", 403)):
        answer = server.ask(
            "/entry/forget", "POST", urlencode(fields), cookie=cookie.partition(";")[0], host=f"my.machine:{server.port}", origin=origin
        )
        assert answer.status == status
    sent = server.ask(f"//evil.example/x?token={quote(token)}&q=a")
    assert (sent.status, sent.headers["location"]) == (303, "/evil.example/x?q=a")
    assert "vscode://" not in server.ask("/entry?id=flaky-1", cookie=cookie.partition(";")[0]).text
    code, said = server.end()
    assert code == 0 and token not in said and "horse" not in said


def test_the_vault_names_no_editor(start: Start, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    server = start(FILES | {"memory/config.yaml": f"editor: touch {seen}\n"})
    assert server.send("/entry/open", "/entry/edit?id=flaky-1", id="flaky-1").status == 400
    opening = start(
        FILES,
        env={"MEMORY_KB_EDITOR": f"{sys.executable} -c \"import sys; open({str(seen)!r}, 'w').write(' '.join(sys.argv[1:]))\" {{file}} {{line}}"},
    )
    assert opening.send("/entry/open", "/entry/edit?id=flaky-1", id="flaky-1").headers["location"] == "/entry?id=flaky-1&said=opened"
    _wait(lambda: seen.exists() and seen.read_text().endswith("flaky.md 1"))


# -- what is written -------------------------------------------------------------------------------


def _form(server: Server, wanted: str) -> dict[str, str]:
    text = server.ask(f"/entry/edit?id={wanted}").text
    fields = dict(re.findall(r'name="(id|at|was|mark)" value="([^"]*)"', text))
    area = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", text, re.DOTALL)
    assert area
    import html

    return fields | {"text": html.unescape(area[1])}


def _save(server: Server, fields: Mapping[str, str]) -> Answer:
    text = fields["text"].replace("\r\n", "\n").replace("\n", "\r\n")
    return server.ask("/entry/edit", "POST", urlencode({**fields, "text": text}), origin=server.address)


def test_an_entry_is_edited_in_its_place_and_taken_back(start: Start) -> None:
    server = start(FILES)
    file = server.vault / "memory/learnings/dos.md"
    before = file.read_bytes()
    fields = _form(server, "dos-1")
    saved = _save(server, fields | {"text": fields["text"].replace("second", "second\nthird <b>")})
    assert saved.status == 303
    assert file.read_bytes() == before.replace(b"second\r\n", b"second\r\nthird <b>\r\n")
    page = server.ask(saved.headers["location"]).text
    assert "Saved." in page and "third &lt;b&gt;" in page
    assert "Edited by hand." in server.ask("/entry/changes?id=dos-1", hx_request="true").text
    found = re.search(r'name="run" value="(\w+)"', page)
    assert found
    assert server.send("/undo", "/entry/edit?id=dos-1", run=found[1], back="/entry?id=dos-1").headers["location"] == "/entry?id=dos-1"
    assert file.read_bytes() == before
    assert server.send("/undo", "/entry/edit?id=dos-1", run="ffffffff", back="//evil.example").status == 400


def test_saving_what_was_not_changed_writes_nothing(start: Start) -> None:
    server = start(FILES)
    for wanted in ("dos-1", "flaky-1", "evil-1"):
        before = {file: file.read_bytes() for file in server.vault.rglob("*.md")}
        saved = _save(server, _form(server, wanted))
        assert saved.status == 303 and "said=same" in saved.headers["location"], saved.text
        assert {file: file.read_bytes() for file in server.vault.rglob("*.md")} == before


def test_what_somebody_else_wrote_meanwhile_is_shown_and_not_overwritten(start: Start) -> None:
    server = start(FILES)
    file = server.vault / "memory/learnings/flaky.md"
    fields = _form(server, "flaky-1")
    file.write_text(file.read_text().replace("Seed the generator.", "Seed it with THEIRS."))
    theirs = file.read_bytes()
    mine = fields | {"text": fields["text"].replace("Seed the generator.", "Seed it with MINE.")}
    answer = _save(server, mine)
    assert answer.status == 409 and "MINE" in answer.text and "THEIRS" in answer.text and "Nothing was written" in answer.text
    assert file.read_bytes() == theirs
    again = re.search(r'name="was" value="(\w+)"', answer.text)
    assert again and _save(server, mine | {"was": again[1]}).status == 303
    assert b"MINE" in file.read_bytes()


def test_nothing_typed_is_lost_when_it_cannot_be_saved(start: Start) -> None:
    server = start(FILES)
    before = {file: file.read_bytes() for file in server.vault.rglob("*.md")}
    fields = _form(server, "flaky-1")
    for change, words in (
        ({"text": fields["text"] + "\nAKIAIOSFODNN7EXAMPLQ\n"}, "AWS"),
        ({"text": fields["text"].replace("id: flaky-1", "id: other")}, "one entry"),
        ({"text": ""}, "one entry"),
        ({"mark": "of a server that ended"}, "Save once more"),
    ):
        answer = _save(server, fields | change)
        assert answer.status == 422 and words in answer.text, answer.text
        assert change.get("text", fields["text"]).splitlines()[-1:] == [] or change.get("text", fields["text"]).splitlines()[-1] in answer.text
    assert {file: file.read_bytes() for file in server.vault.rglob("*.md")} == before


def test_proposals_are_judged_and_a_judgment_taken_back(start: Start) -> None:
    server = start(FILES)
    queue = server.ask("/review").text
    assert "2 entries wait" in queue or "3 entries wait" in queue
    item = server.ask("/review/item?id=prop-1", hx_request="true").text
    assert 'class="removed"' in item and 'class="added"' in item and "Deploy on Fridays." in item
    approved = server.send("/review/judge", "/review", id="prop-1", judgment="approve")
    assert approved.headers["location"].startswith("/review?said=approve&run=")
    assert not (server.vault / "memory/review/new.md").exists() and "id=prop-1" in server.ask("/?q=deploy+fridays").text
    rejected = server.send("/review/judge", "/review", id="prop-2", judgment="reject", reason="We do test.")
    assert b"status: rejected" in (server.vault / "memory/review/bad.md").read_bytes()
    run_ = rejected.headers["location"].rpartition("=")[2]
    server.send("/undo", "/review", run=run_, back="/review")
    assert (server.vault / "memory/review/bad.md").read_text() == FILES["memory/review/bad.md"]
    assert server.send("/review/judge", "/review", id="prop-2", judgment="maybe").status == 400


def test_an_entry_is_retired(start: Start) -> None:
    server = start(FILES)
    assert "said=retired" in server.send("/entry/forget", "/entry/edit?id=retry-1", id="retry-1").headers["location"]
    assert b"status: retired" in (server.vault / "memory/rules/retry.md").read_bytes()


# -- living with the vault -------------------------------------------------------------------------


def _wait(condition: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "never came"
        time.sleep(0.02)


def test_open_pages_hear_of_a_change(start: Start) -> None:
    server = start(FILES)
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
        connection.request("GET", "/events")
        stream = connection.getresponse()
        assert stream.headers["content-type"].startswith("text/event-stream")

        def hear() -> int:
            end = time.monotonic() + 20
            while True:
                line = stream.readline()
                assert line and time.monotonic() < end, "nothing was told"
                if line.startswith(b"data: "):
                    return int(line[6:])

        first = hear()
        server.ask("/?q=x")
        (server.vault / "memory/learnings/new.md").write_text("# Something new\n\nzebra\n")
        while hear() <= first or "Something new" not in server.ask("/results?q=zebra", hx_request="true").text:
            pass
        code, _ = server.end()
        assert code == 0
        while stream.readline():
            pass


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
@pytest.mark.skipif(os.name == "nt", reason="signals are others there")
def test_it_ends_when_told_to(start: Start, number: int, code: int) -> None:
    server = start(FILES)
    assert server.ask("/").status == 200
    ended, said = server.end(number)
    assert ended == code and "Traceback" not in said and (server.process.stdout is None or server.process.stdout.closed)


def test_a_place_that_is_taken_is_one_sentence(start: Start, run: Run) -> None:
    server = start(FILES)
    done = run("--vault", server.vault, "serve", "--port", str(server.port))
    assert done.returncode == 2 and done.stderr.startswith("memory-kb: cannot listen at 127.0.0.1:")


# -- its parts -------------------------------------------------------------------------------------


def _palettes() -> list[dict[str, str]]:
    css = (REPOSITORY / "memory_kb/web/static/page.css").read_text()
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in re.findall(r":root \{(.*?)\}", css, re.DOTALL)[:2])
    return [light, light | dark]


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("palette", _palettes(), ids=["light", "dark"])
def test_colours_can_be_told_apart(palette: dict[str, str]) -> None:
    """WCAG 2.2: 4.5 for text (1.4.3 AA), 3 for what tells where a field or the focus is (1.4.11)."""

    def contrast(a: str, b: str) -> float:
        high, low = sorted((_luminance(palette[a]), _luminance(palette[b])), reverse=True)
        return (high + 0.05) / (low + 0.05)

    grounds = ("paper", "surface", "sunken")
    text = [(ink, ground) for ink in ("ink", "muted", "accent", "good", "warn", "bad") for ground in grounds if (ink, ground) != ("warn", "sunken")]
    text += [("on-accent", "accent"), ("on-mark", "mark"), ("ink", "added"), ("ink", "removed")]
    assert {pair: round(contrast(*pair), 2) for pair in text if contrast(*pair) < 4.5} == {}
    assert {pair: round(contrast(*pair), 2) for pair in [("edge", "paper"), ("edge", "surface"), ("accent", "line")] if contrast(*pair) < 3} == {}


@pytest.mark.parametrize(
    ("text", "stays", "goes"),
    [
        ("<script>x</script>", "&lt;script&gt;", "<script"),
        ("[a](javascript:x)", "[a](javascript:x)", "href"),
        ("[a](java&#10;script:x)", "", 'href="java'),
        ("[a](DATA:text/html,x)", "", "href"),
        ("[a](file:///etc/passwd)", "", "href"),
        ("[a](//evil.example)", "", "href"),
        ('[a](https://x.example "t")', 'rel="noopener noreferrer"', "onerror"),
        ("![a](x.png)", "picture: a", "<img"),
        ("![a](https://evil.example/t.png)", "picture: a", "<img"),
        ('<https://x.example/?a="b>', "", "<b"),
        ("[[a|<b>]]", "&lt;b&gt;", "<b>"),
        ('[["onclick=x]]', "%22onclick", '"onclick'),
        ("[a](../../../../etc/passwd.md)", "id=..%2F", "://"),
        ("| a |\n|---|\n| [[b\\|c]] |", ">c</a>", "b|c"),
        ("`[[a]]`", "<code>[[a]]</code>", "<a"),
    ],
)
def test_notes_become_harmless_html(text: str, stays: str, goes: str) -> None:
    made = render(text, Place("memory/learnings/a.md"))
    assert stays in made and goes not in made


@pytest.mark.parametrize(
    "text", ["> " * 2000 + "x", "[" * 5000, "*a " * 5000, "[[" * 5000, "| a " * 2000 + "\n" + "|---" * 2000, "\0\ud800"[:1] + "x"]
)
def test_rendering_comes_to_an_end(text: str) -> None:
    assert render(text, Place("a.md"))


@pytest.mark.parametrize(
    ("query", "text", "hits"),
    [
        ("", "text", []),
        ("tests", "Testing a test, tested", ["Testing", "test", "tested"]),
        ('"flaky test" -slow', "a flaky slow test", ["flaky", "test"]),
        ("café", "CAFE", ["CAFE"]),
        ("検索", "全文検索です", ["検索"]),
        ("re", "re retry red", ["re", "retry", "red"]),
        ("re ", "re retry red", ["re"]),
        ("a.*(", "a.*( b", ["a"]),
    ],
)
def test_what_was_asked_for_is_marked(query: str, text: str, hits: list[str]) -> None:
    pieces = mark(text, query)
    assert [piece.text for piece in pieces if piece.is_hit] == hits
    assert "".join(piece.text for piece in pieces) == text


def test_an_excerpt_shows_most_of_what_was_asked_for() -> None:
    shown = "".join(piece.text for piece in excerpt("flaky " + "filler " * 100 + "flaky tests here " + "filler " * 100, "flaky tests", 120))
    assert "flaky tests here" in shown and len(shown) <= 124


def test_a_curve_follows_the_formulas() -> None:
    today = NOW.date()
    aged = Aged(0.5, 3, "active", date(2026, 8, 23), date(2025, 1, 1))
    curve = draw_curve(aged, today, Ranking())
    assert curve.value == pytest.approx(0.5 * 0.5 * 4)
    assert "it was 2.00 on 2026-08-23 and will be 0.50 on 2027-02-19" in curve.sentence and curve.unused.startswith("M34.0 ")
    assert curve.past.endswith(f"{curve.now} {curve.height}") and curve.future.startswith(f"M{curve.now} {curve.height}")
    assert draw_curve(Aged(0.5, 0, "retired", None), today, Ranking()).sentence.startswith("It is retired")
    assert "does not age" in draw_curve(Aged(0.5, 0, "active", None), today, Ranking()).sentence
    assert draw_curve(Aged(0.0, 0, "active", date(2999, 1, 1), date(1, 1, 1)), today, Ranking()).value == 0.0


def test_editing_leaves_the_rest_of_the_file(folder: Path, open_kb: Callable[..., KnowledgeBase]) -> None:
    file = folder / "memory/learnings/two.md"
    first, second = entry("# One\n\nfirst", id="one"), entry("# Two\n\nsecond", id="two")
    write_files(folder, {"memory/learnings/two.md": f"{first}\n{second}"})
    kb = open_kb(folder)
    source = kb.source("one")
    file.write_text(file.read_text().replace("second", "changed meanwhile"))
    assert kb.edit("one", source.text.replace("first", "mine"), source.hash, dry_run=True).diff
    assert "first" in file.read_text()
    run_ = kb.edit("one", source.text.replace("first", "mine"), source.hash)
    assert "mine" in file.read_text() and "changed meanwhile" in file.read_text()
    with pytest.raises(ChangedOnDisk):
        kb.edit("one", source.text, source.hash)
    with pytest.raises(SecretRefused):
        kb.edit("two", kb.source("two").text + "\nAKIAIOSFODNN7EXAMPLQ\n", kb.source("two").hash)
    kb.undo(run_.run)
    assert "first" in file.read_text() and "changed meanwhile" in file.read_text()


def test_what_a_form_would_damage_is_left_to_an_editor(folder: Path, open_kb: Callable[..., KnowledgeBase]) -> None:
    write_files(folder, {"memory/learnings/odd.md": b"---\nid: odd\n---\ncaf\xe9\n", "memory/learnings/mac.md": b"---\nid: mac\n---\na\rb\n"})
    kb = open_kb(folder)
    for name in ("odd", "mac"):
        source = kb.source(name)
        assert source.uneditable
        with pytest.raises(UsageError, match="cannot be edited here"):
            kb.edit(name, "---\nid: odd\n---\nx\n", source.hash)
