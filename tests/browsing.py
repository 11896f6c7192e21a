"""A real browser for the tests: Chromium without a window, spoken to in its own protocol."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import time
import urllib.request
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_SECONDS = 60.0
_FLAGS = (
    *("--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--no-default-browser-check", "--mute-audio"),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-extensions",
        "--disable-dev-shm-usage",
    ),
    *("--remote-debugging-port=0", "--remote-allow-origins=*", "--force-color-profile=srgb", "--hide-scrollbars"),
)
#: Keys that are no letter, as the browser calls them, with their numbers.
_KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38}


def find_browser() -> str | None:
    """Return the browser of this machine, or None."""
    named = os.environ.get("MEMORY_KB_TEST_BROWSER")
    return named or next(filter(None, map(shutil.which, _NAMES)), None)


class Tab:
    """A page in the browser.

    `complaints` has what it wrote to its console as an error or warning, and what was not caught;
    `dialogs` the questions that it asked, which are answered with yes.
    """

    def __init__(self, address: str) -> None:
        from websockets.sync.client import connect

        self._held = contextlib.ExitStack()
        self._socket = self._held.enter_context(connect(address, max_size=None, open_timeout=_SECONDS))
        self._numbers = itertools.count(1)
        self.complaints: list[str] = []
        self.dialogs: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        """Close the page, so that it gives its connections back."""
        with contextlib.suppress(Exception):
            self.send("Page.close")
        self._held.close()

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the browser for something and wait for it."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=_SECONDS))
            if message.get("id") == number:
                assert "error" not in message, (method, message["error"])
                result: dict[str, Any] = message["result"]
                return result
            self._hear(message)

    def _hear(self, message: dict[str, Any]) -> None:
        about = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(about["exceptionDetails"]))
        elif message.get("method") == "Page.javascriptDialogOpening":
            self.dialogs.append(str(about["message"]))
            self._socket.send(
                json.dumps(
                    {"id": next(self._numbers), "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
                )
            )
        elif message.get("method") == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")
        elif message.get("method") == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([one.get("value") for one in about["args"]]))

    def run(self, expression: str) -> Any:
        """Return what an expression gives on the page."""
        done = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, (expression, done["exceptionDetails"])
        return done["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true on the page; a page that is just being left is none."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(AssertionError):
                if self.run(f"Boolean({expression})"):
                    return
            time.sleep(0.02)
        raise AssertionError(
            f"never came: {expression}; at {self.run('location.href')}: {self.run('document.body.innerText')[:800]}"
        )

    def go(self, address: str) -> None:
        """Open an address and wait until the page and its scripts are there."""
        self.send("Page.navigate", url=address)
        self.wait(
            f"document.readyState === 'complete' && location.href !== 'about:blank' && {json.dumps(address.partition('#')[0])}.length > 0"
        )

    def press(self, key: str) -> None:
        """Press and release a key."""
        code = _KEYS.get(key, ord(key[0].upper()))
        text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        self.send(
            "Input.dispatchKeyEvent",
            type="keyDown" if text else "rawKeyDown",
            key=key,
            windowsVirtualKeyCode=code,
            **text,
        )
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text: str) -> None:
        """Type a text, key by key."""
        for character in text:
            self.press(character)

    def look(self, width: int, height: int, *, is_dark: bool = False) -> None:
        """Give the page a size and a colour scheme."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}],
        )

    def photograph(self, file: Path) -> None:
        """Write what is to be seen to a PNG file."""
        file.write_bytes(b64decode(self.send("Page.captureScreenshot", format="png")["data"]))


@contextlib.contextmanager
def browsing(folder: Path) -> Iterator[Callable[[], Tab]]:
    """Start the browser with an empty profile; give what opens a tab."""
    browser = find_browser()
    assert browser is not None
    root = ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
    process = subprocess.Popen(
        [browser, *_FLAGS, *root, f"--user-data-dir={folder}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    tabs: list[Tab] = []
    try:
        port = _wait_for_port(folder / "DevToolsActivePort", process)

        def open_tab() -> Tab:
            request = urllib.request.Request(f"http://127.0.0.1:{port}/json/new?about:blank", method="PUT")
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                tabs.append(Tab(json.load(answer)["webSocketDebuggerUrl"]))
            return tabs[-1]

        yield open_tab
    finally:
        for tab in tabs:
            tab.close()
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_port(file: Path, process: subprocess.Popen[bytes]) -> int:
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(file.read_text().splitlines()[0])
        time.sleep(0.02)
    raise AssertionError("the browser did not start")
