"""The page over real HTTP: whom it refuses, and what nobody gets from it."""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path
from urllib.parse import quote, urlencode

import pages
import pytest
from conftest import Run, write_files
from pages import FILES, SECRET_FILE, Parsed, Server, Start

start = pages.start
shared = pages.shared


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


@pytest.mark.parametrize("target", ["/entry/edit", "/entry/forget", "/review/judge", "/undo"])
def test_a_form_needs_the_mark_and_the_origin(shared: Server, target: str) -> None:
    before = {file: file.read_bytes() for file in shared.vault.rglob("*.md")}
    mark_ = shared.ask("/entry/edit?id=flaky-1").mark
    fields = {"id": "flaky-1", "text": "x", "was": "0" * 64, "judgment": "approve", "run": "00000000"}
    assert shared.ask(target, "POST", urlencode(fields)).status in (403, 409)
    assert shared.ask(target, "POST", urlencode(fields | {"mark": "guess"}), origin=shared.address).status in (403, 409)
    assert shared.ask(target, "POST", urlencode(fields | {"mark": mark_}), origin="https://evil.example").status == 403
    assert (
        shared.ask(
            target,
            "POST",
            urlencode(fields | {"mark": mark_}),
            sec_fetch_site="cross-site",
            sec_fetch_mode="navigate",
            sec_fetch_dest="document",
        ).status
        == 403
    )
    assert (
        shared.ask(target, "POST", json.dumps(fields | {"mark": mark_}), content_type="application/json").status == 400
    )
    assert shared.ask(target, "GET").status in (200, 404, 405)
    assert {file: file.read_bytes() for file in shared.vault.rglob("*.md")} == before


#: What each page reads of its address.
READ = {
    "/": "q kind tag since token",
    "/results": "q kind since",
    "/browse": "tag folder page order",
    "/attachment": "name from",
    "/entry": "id at lines said run",
    "/entry/links": "id",
    "/entry/edit": "id at",
    "/entry/names": "word",
    "/new": "title",
    "/session": "session",
    "/go": "to from",
    "/graph.json": "id steps",
    "/review": "said run",
}


@pytest.mark.slow
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
    for path, names in READ.items():
        for name in names.split():
            answer = shared.ask(
                f"{path}?{name}={value}&id=flaky-1&to=x&name=x"
                if name in ("at", "from", "lines")
                else f"{path}?{name}={value}"
            )
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
    for answer in (
        server.ask("/"),
        server.ask(f"/?token={quote(token)}"),
        server.ask("/graph.json"),
        server.ask("/", cookie="memory-kb-0=x; %%%"),
    ):
        assert answer.status == 401 and "flaky" not in answer.text.lower() and Parsed(answer.text).dangers == []
    assert server.ask("/enter", "POST", urlencode({"token": "wrong"})).status == 401
    entered = server.ask("/enter", "POST", urlencode({"token": token}))
    cookie = entered.headers["set-cookie"]
    assert entered.status == 303 and "HttpOnly" in cookie and "SameSite=strict" in cookie and token not in cookie
    assert "Flaky" in server.ask("/", cookie=cookie.partition(";")[0], host=f"my.machine:{server.port}").text
    form = server.ask("/entry/edit?id=flaky-1", cookie=cookie.partition(";")[0], host=f"my.machine:{server.port}")
    fields = {"mark": form.mark, "id": "retry-1"}
    for origin, status in ((f"http://my.machine:{server.port}", 303), ("http://127.0.0.1:1", 403), ("http://[", 403)):
        answer = server.ask(
            "/entry/forget",
            "POST",
            urlencode(fields),
            cookie=cookie.partition(";")[0],
            host=f"my.machine:{server.port}",
            origin=origin,
        )
        assert answer.status == status
    assert "vscode://" not in server.ask("/entry?id=flaky-1", cookie=cookie.partition(";")[0]).text
    code, said = server.end()
    assert code == 0 and token not in said and "horse" not in said
