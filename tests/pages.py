"""The page as a process of its own, and a vault that would do it harm, for the tests of the web."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest
from conftest import clean_environment, write_files
from forking import command
from support import entry

from memory_kb import KnowledgeBase

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
            command("--vault", vault, "serve", "--port", "0", *arguments, env=env),
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
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.putrequest(method, target, skip_host="host" in headers)
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            if body is not None:
                given = {
                    "content-type": "application/x-www-form-urlencoded",
                    "content-length": str(len(body.encode())),
                } | given
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders(body.encode() if body is not None else None)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())

    def send(self, target: str, page: str, **fields: str) -> Answer:
        """Send a form as a browser would that has just loaded a page."""
        return self.ask(
            target,
            "POST",
            urlencode({"mark": self.ask(page).mark} | fields),
            origin=self.address,
            sec_fetch_site="same-origin",
        )

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err


Start = Callable[..., Server]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A function that serves a vault of these files, until the test ends."""
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
    """A server that no test writes through."""
    root = tmp_path_factory.mktemp("shared")
    (root / "secret.txt").write_text(SECRET_FILE)
    (root / "secret.md").write_text(SECRET_FILE)
    vault = write_files(root / "vault", FILES)
    KnowledgeBase.open(vault, environ=clean_environment(root / "home")).close()
    sessions = vault / "memory/.memory-kb/sessions"
    sessions.mkdir()
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
        found += [
            f"{tag} {name}" for tag, given in self.tags for name in given if name.startswith("on") or name == "style"
        ]
        schemes = ("/", "#", "https://", "http://", "mailto:", "vscode://file/", "obsidian://open?")
        found += [
            f"{tag} {given['href']}"
            for tag, given in self.tags
            if given.get("href") and not str(given["href"]).startswith(schemes)
        ]
        return found

    def has_labels(self) -> bool:
        """Whether every field that is seen has a label."""
        labelled = {given.get("for") for tag, given in self.tags if tag == "label"}
        fields = [
            given
            for tag, given in self.tags
            if tag in ("input", "select", "textarea") and given.get("type") != "hidden" and "hidden" not in given
        ]
        return all(given.get("id") in labelled for given in fields)


def form_of(server: Server, wanted: str) -> dict[str, str]:
    """Return the fields of the form that edits an entry."""
    text = server.ask(f"/entry/edit?id={wanted}").text
    fields = dict(re.findall(r'name="(id|at|was|mark)" value="([^"]*)"', text))
    area = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", text, re.DOTALL)
    assert area
    import html

    return fields | {"text": html.unescape(area[1])}


def save_form(server: Server, fields: Mapping[str, str]) -> Answer:
    """Send such fields, with the line ends of a browser."""
    text = fields["text"].replace("\r\n", "\n").replace("\n", "\r\n")
    return server.ask("/entry/edit", "POST", urlencode({**fields, "text": text}), origin=server.address)
