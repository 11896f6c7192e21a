"""A small editor: it speaks JSON-RPC to the language server as a process of its own."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from conftest import clean_environment
from forking import command
from watching import eventually

Position = tuple[int, int]
_PATIENCE = 60.0


class Editor:
    """An editor with a server behind it; positions are given as it would, in UTF-16 unless agreed otherwise."""

    def __init__(self, home: Path, *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command(*arguments, "lsp", env=env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=clean_environment(home) | dict(env or {}),
        )
        self._answers: dict[int, Any] = {}
        self.notices: list[dict[str, Any]] = []
        self._heard = threading.Condition()
        self._id = 0
        self._texts: dict[str, str] = {}
        self.stderr: queue.Queue[str] = queue.Queue()
        self.told: dict[str, Any] = {}
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._listen, self._drain)]
        for thread in self._threads:
            thread.start()

    def _drain(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.stderr.put(line.decode("utf-8", "replace"))

    def _listen(self) -> None:
        assert self.process.stdout
        while header := self.process.stdout.readline():
            size = 0
            while header.strip():
                name, _, value = header.decode().partition(":")
                size = int(value) if name.lower() == "content-length" else size
                header = self.process.stdout.readline()
            message = json.loads(self.process.stdout.read(size))
            with self._heard:
                if "id" in message and "method" not in message:
                    self._answers[message["id"]] = message
                else:
                    self.notices.append(message)
                self._heard.notify_all()

    def _send(self, message: Mapping[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self.process.stdin.flush()

    def tell(self, method: str, params: object) -> None:
        self._send({"method": method, "params": params})

    def ask(self, method: str, params: object) -> Any:
        self._id += 1
        number = self._id
        self._send({"id": number, "method": method, "params": params})
        with self._heard:
            assert self._heard.wait_for(lambda: number in self._answers, _PATIENCE), (
                f"no answer to {method}: {list(self.stderr.queue)}"
            )
            answer = self._answers.pop(number)
        assert "error" not in answer, answer
        return answer["result"]

    def reply(self, number: object) -> None:
        """Answer what the server asked."""
        self._send({"id": number, "result": None})

    def wait(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a notification; those before it are forgotten."""
        with self._heard:
            assert self._heard.wait_for(lambda: any(map(is_it, self.notices)), _PATIENCE), (
                self.notices,
                list(self.stderr.queue),
            )
            place = next(number for number, one in enumerate(self.notices) if is_it(one))
            found = self.notices[place]
            del self.notices[: place + 1]
        return found

    def start(self, root: Path | None = None, capabilities: Mapping[str, Any] | None = None) -> dict[str, Any]:
        self.told = self.ask(
            "initialize",
            {
                "processId": None,
                "rootUri": root.as_uri() if root else None,
                "capabilities": capabilities or CAPABILITIES,
            },
        )
        self.tell("initialized", {})
        return self.told

    def open(self, file: Path, text: str | None = None) -> str:
        """Open a file, or a text that is not saved under its name."""
        uri = file.as_uri()
        self._texts[uri] = file.read_bytes().decode() if text is None else text
        self.tell(
            "textDocument/didOpen",
            {"textDocument": {"uri": uri, "languageId": "markdown", "version": 1, "text": self._texts[uri]}},
        )
        return uri

    def type(self, uri: str, text: str, version: int = 2) -> None:
        """Change a text without saving it."""
        self._texts[uri] = text
        self.tell(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]},
        )

    def close_notes(self) -> None:
        """Close every note, and forget what was said meanwhile."""
        for uri in list(self._texts):
            self.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
        self._texts.clear()
        self.ask("workspace/symbol", {"query": ""})
        self.notices.clear()

    def text(self, uri: str) -> str:
        return self._texts[uri]

    def at(self, uri: str, word: str, *, end: bool = True) -> dict[str, Any]:
        """Return the place behind a word of an open note, or before it."""
        offset = self._texts[uri].index(word) + (len(word) if end else 0)
        return {"textDocument": {"uri": uri}, "position": utf16(self._texts[uri], offset)}

    def complete(self, uri: str, word: str) -> list[dict[str, Any]]:
        result = self.ask("textDocument/completion", self.at(uri, word))
        return list(result["items"]) if result else []

    def diagnostics(self, uri: str, version: int | None = None) -> list[dict[str, Any]]:
        """Wait for what is said of a note."""

        def is_it(one: dict[str, Any]) -> bool:
            is_meant = one.get("method") == "textDocument/publishDiagnostics" and one["params"]["uri"] == uri
            return is_meant and (version is None or one["params"].get("version") == version)

        return list(self.wait(is_it)["params"]["diagnostics"])

    def wait_until_known(self, uri: str, word: str, title: str) -> None:
        """Wait until the server has read the vault, so that completion knows an entry."""
        eventually(
            lambda: title in [item["label"] for item in self.complete(uri, word)],
            lambda: f"{title} is never completed: {list(self.stderr.queue)}",
        )

    def wait_until_clean(self, uri: str) -> None:
        """Wait until nothing is said of a note any more."""

        def is_it(one: dict[str, Any]) -> bool:
            is_meant = one.get("method") == "textDocument/publishDiagnostics" and one["params"]["uri"] == uri
            return is_meant and not one["params"]["diagnostics"]

        self.wait(is_it)

    def close(self) -> int:
        self.ask("shutdown", None)
        self.tell("exit", None)
        return self.end()

    def end(self) -> int:
        """Wait until the server has ended by itself."""
        code = self.process.wait(_PATIENCE)
        self.kill()
        return code

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(_PATIENCE)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream
            with contextlib.suppress(OSError):
                stream.close()


CAPABILITIES: dict[str, Any] = {
    "workspace": {
        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]},
        "fileOperations": {"willRename": True},
    },
    "textDocument": {
        "codeAction": {"resolveSupport": {"properties": ["edit"]}, "dataSupport": True},
        "rename": {"prepareSupport": True},
        "hover": {"contentFormat": ["markdown"]},
    },
}


def utf16(text: str, offset: int) -> dict[str, int]:
    """Return a place as editors count it, by another way than the server's."""
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    line = before.rpartition("\n")[2]
    return {"line": before.count("\n"), "character": len(line.encode("utf-16-le")) // 2}


def apply_edits(text: str, edits: list[dict[str, Any]]) -> str:
    """Return a text with an editor's edits made, from the last to the first."""
    lines = text.replace("\r\n", "\n\0").split("\n")
    starts, place = [], 0
    for line in lines:
        starts.append(place)
        place += len(line) + 1
    flat = "\n".join(lines)

    def offset(position: Mapping[str, int]) -> int:
        line = lines[position["line"]].encode("utf-16-le")[
            : 2 * (position["character"] + lines[position["line"]].startswith("\0"))
        ]
        return (
            starts[position["line"]] + len(line.decode("utf-16-le"))
            if position["character"]
            else starts[position["line"]] + lines[position["line"]].startswith("\0")
        )

    for edit in sorted(
        edits, key=lambda one: (one["range"]["start"]["line"], one["range"]["start"]["character"]), reverse=True
    ):
        start, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        flat = flat[:start] + edit["newText"].replace("\r\n", "\n\0") + flat[end:]
    return flat.replace("\n\0", "\r\n").replace("\0", "")


def apply_workspace_edit(edit: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, str | None]:
    """Return the files that an edit changes as they are then, by their addresses; None for deleted ones."""
    made: dict[str, str | None] = {}
    for change in edit["documentChanges"]:
        if change.get("kind") == "create":
            made[change["uri"]] = ""
        elif change.get("kind") == "delete":
            made[change["uri"]] = None
        elif change.get("kind") == "rename":
            old, new = change["oldUri"], change["newUri"]
            made[new] = made[old] if old in made else texts.get(old) or read_uri(old)
            made[old] = None
        else:
            uri = change["textDocument"]["uri"]
            before = made[uri] if uri in made else texts.get(uri) or read_uri(uri)
            assert before is not None
            made[uri] = apply_edits(before, change["edits"])
    return made


def read_uri(uri: str) -> str:
    from urllib.parse import unquote, urlsplit

    return Path(unquote(urlsplit(uri).path)).read_bytes().decode()
