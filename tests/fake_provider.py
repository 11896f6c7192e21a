"""A server on loopback that speaks like OpenAI, Gemini and Anthropic, and fails on request.

    with FakeProvider() as fake:
        embedder = openai_embedder("any-model", fake.base_url)
        embedder.embed(["one text"], "document")
        fake.calls[-1].body["model"]            # every request, in order
        fake.embedded_texts["one text"]         # how often a text was embedded
        fake.fail("rate-limit", times=2, retry_after=1)
        fake.fail("server-error", every=2, times=None)  # half of all requests, from now on
        fake.fail("bad-text", when="poison", times=None)  # only requests holding that word
        fake.answers.append({"title": "x"})     # what its language model says next

`base_url` serves every dialect. Vectors are bags of words: texts that share words are near, and
words of one synonym group count as the same word. `python tests/fake_provider.py --port 0` runs it
as a process: it prints its `base_url`, takes `fail`'s arguments as JSON at `/_fail`, and tells at
`/_calls` what was asked; it ends when its input does.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import socket
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from fake_answers import REFUSALS, SYNONYMS, Refused, WordVectors, error_body, example_of

_USUAL_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "gemini-embedding-001": 3072,
}


class Call(NamedTuple):
    """One request as it arrived; header names are in small letters."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


class Fault(NamedTuple):
    """What goes wrong, how often, and in which requests."""

    kind: str
    times: int | None
    every: int
    when: str
    seconds: float
    retry_after: str | None
    says: str | None


#: Faults of the answer itself.
_SPOILED = (
    "wrong-dimension",
    "wrong-count",
    "shuffled",
    "unnumbered",
    "misnumbered",
    "nan",
    "zero",
    "uneven",
    "malformed",
    "html",
    "empty",
    "drop",
    "slow",
    "trickle",
)


class FakeProvider:
    """A fake provider, started by `with`.

    Attributes:
        calls: all requests.
        embedded_texts: how often a vector was given for each text.
        answers: what the language model says next, text or an object; without any it makes up an
            object that fits the schema it was given.
        refuses: words that make a request a 400 if they are among its parameters, such as
            "dimensions", "encoding_format" or "json_schema".
        answers_lists: whether vectors are lists of numbers even if base64 was asked for.
        tells_usage: whether its language model says what a call took.
        longest_text: characters above which a text is refused as too long, or None.
        most_at_once: the largest number of requests that were served at one time.
    """

    def __init__(self, dimension: int = 64, synonyms: Sequence[Sequence[str]] = SYNONYMS, port: int = 0) -> None:
        self.dimension = dimension
        self.calls: list[Call] = []
        self.embedded_texts: Counter[str] = Counter()
        self.answers: list[str | Mapping[str, Any]] = []
        self.refuses: set[str] = set()
        self.answers_lists = False
        self.tells_usage = True
        self.longest_text: int | None = None
        self.most_at_once = 0
        self._word_vectors = WordVectors(synonyms)
        self._faults: list[list[Any]] = []
        self._lock = threading.Lock()
        self._at_once = 0
        self.stopping = threading.Event()
        self._released = threading.Event()
        self._server = _Server(("127.0.0.1", port), self)

    @property
    def base_url(self) -> str:
        """Where it listens; good for every kind of client."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._released.set()
        self._server.shutdown()
        self._server.server_close()

    def fail(
        self,
        kind: str,
        *,
        times: int | None = 1,
        every: int = 1,
        when: str = "",
        seconds: float = 0.0,
        retry_after: float | str | None = None,
        says: str | None = None,
    ) -> None:
        """Make requests fail: `times` of them (None: for ever), each `every`th, if `when` is in the body.

        `seconds` is how long "slow" takes, and "trickle" between two bytes; `says` replaces the
        server's words.
        """
        assert kind in REFUSALS or kind in _SPOILED, kind
        fault = Fault(kind, times, every, when, seconds, None if retry_after is None else str(retry_after), says)
        with self._lock:
            self._faults.append([fault, 0, 0])

    def heal(self) -> None:
        """Forget all faults."""
        with self._lock:
            self._faults.clear()

    def release(self) -> None:
        """Answer at once what is slow."""
        self._released.set()

    def be_slow(self, seconds: float) -> None:
        """Wait, unless nothing is to be slow any more."""
        self._released.wait(seconds)

    def count(self, word: str) -> int:
        """Return how many requests had `word` in their path."""
        return sum(word in call.path for call in self.calls)

    def vector(self, text: str, dimension: int | None = None) -> list[float]:
        """Return the vector it gives for a text, of length 1."""
        return self._word_vectors.of(text, dimension or self.dimension)

    def begin(self, call: Call) -> Fault | None:
        """Note a request and return what is to go wrong with it."""
        with self._lock:
            self.calls.append(call)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            text = json.dumps(call.body, ensure_ascii=False)
            for entry in self._faults:
                fault, seen, used = entry
                if fault.when not in text or (fault.times is not None and used >= fault.times):
                    continue
                entry[1] += 1
                if seen % fault.every == 0:
                    entry[2] += 1
                    return fault  # type: ignore[no-any-return]
            return None

    def end(self) -> None:
        with self._lock:
            self._at_once -= 1

    def answer(self, call: Call, fault: Fault | None) -> Mapping[str, Any]:
        """Return the body of an answer.

        Raises:
            Refused: the answer is an error.
        """
        kind = fault.kind if fault else ""
        if fault and kind in REFUSALS:
            status, code, message = REFUSALS[kind]
            raise Refused(status, fault.says or message, code, fault.retry_after)
        for word in sorted(self.refuses):
            if word in call.body or any(
                word in json.dumps(call.body.get(part, ""))
                for part in ("response_format", "encoding_format", "generationConfig", "output_config")
            ):
                raise Refused(400, f"Unsupported parameter: '{word}' is not supported.", "unsupported_parameter")
        if call.path.endswith("/embeddings"):
            return self._openai_vectors(call.body, kind)
        if call.path.endswith(":batchEmbedContents"):
            return self._gemini_vectors(call, kind)
        if call.path.endswith("/chat/completions"):
            return self._counted(self._chat(call.body))
        if call.path.endswith(":generateContent"):
            return self._counted(self._generate(call.body))
        if call.path.endswith("/messages"):
            return self._counted(self._message(call.body))
        raise Refused(404, f"no such address: {call.path}", "not_found")

    def _vectors(self, texts: Sequence[str], size: int, kind: str) -> list[list[float]]:
        if self.longest_text is not None and any(len(text) > self.longest_text for text in texts):
            status, code, message = REFUSALS["too-long"]
            raise Refused(status, message, code)
        if any(not text for text in texts):
            raise Refused(400, "input cannot be an empty string", "invalid_request_error")
        rows = [self.vector(text, size + (kind == "wrong-dimension")) for text in texts]
        if kind == "wrong-count":
            rows.pop()
        elif kind == "uneven":
            rows[-1] = rows[-1][1:]
        elif kind in ("nan", "zero"):
            rows[-1] = [float("nan") if kind == "nan" else 0.0] * size
        else:
            with self._lock:
                self.embedded_texts.update(texts)
        return rows

    def _openai_vectors(self, body: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        rows = self._vectors(
            texts, body.get("dimensions") or _USUAL_DIMENSIONS.get(body["model"], self.dimension), kind
        )
        as_text = body.get("encoding_format") == "base64" and not self.answers_lists
        data = [
            {
                "object": "embedding",
                "index": index,
                "embedding": base64.b64encode(np.array(row, "<f4").tobytes()).decode() if as_text else row,
            }
            for index, row in enumerate(rows)
        ]
        tokens = sum(len(text) for text in texts) // 4
        if kind == "shuffled":
            data.reverse()
        elif kind == "unnumbered":
            data = [item | {"index": 0} for item in data]
        elif kind == "misnumbered":
            data = [item | {"index": 1} for item in data]
        return {
            "object": "list",
            "data": data,
            "model": body["model"],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }

    def _gemini_vectors(self, call: Call, kind: str) -> Mapping[str, Any]:
        requests = call.body["requests"]
        model = call.path.rpartition("/")[2].partition(":")[0]
        size = requests[0].get("outputDimensionality") or _USUAL_DIMENSIONS.get(model, self.dimension)
        rows = self._vectors(
            ["".join(part["text"] for part in request["content"]["parts"]) for request in requests], size, kind
        )
        return {
            "embeddings": [{"values": [0.7 * number for number in row]} for row in rows]
        }  # a cut vector is not of length 1

    def _say(self, schema: Mapping[str, Any]) -> str:
        with self._lock:
            said = self.answers.pop(0) if self.answers else example_of(schema)
        return said if isinstance(said, str) else json.dumps(said)

    def _counted(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        return (
            answer
            if self.tells_usage
            else {name: part for name, part in answer.items() if not name.startswith("usage")}
        )

    def _chat(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        text = self._say(body.get("response_format", {}).get("json_schema", {}).get("schema", {}))
        return {
            "id": "chat-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
        }

    def _generate(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        text = self._say(body.get("generationConfig", {}).get("responseJsonSchema", {}))
        return {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
            ],
            "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100},
        }

    def _message(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        text = self._say(body.get("output_config", {}).get("format", {}).get("schema", {}))
        return {
            "id": "message-1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1000, "output_tokens": 100},
        }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], fake: FakeProvider) -> None:
        self.fake = fake
        self._open: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        super().server_close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""

    def do_GET(self) -> None:
        fake = self.server.fake
        self._send(
            200, json.dumps({"calls": [call.path for call in fake.calls], "embedded": dict(fake.embedded_texts)})
        )

    def do_POST(self) -> None:
        fake = self.server.fake
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if self.path == "/_fail":
            fake.fail(**body)
            return self._send(200, "{}")
        call = Call(self.path.partition("?")[0], {name.lower(): value for name, value in self.headers.items()}, body)
        fault = fake.begin(call)
        try:
            if fault and fault.kind == "slow":
                fake.be_slow(fault.seconds)
            text, status, retry_after = json.dumps(fake.answer(call, fault)), 200, None
        except Refused as exc:
            text = json.dumps(error_body(call.path, exc))
            status, retry_after = exc.status, exc.retry_after
        finally:
            fake.end()
        return self._deliver(text, status, retry_after, fault)

    def _deliver(self, text: str, status: int, retry_after: str | None, fault: Fault | None) -> None:
        kind = fault.kind if fault else ""
        if kind == "malformed":
            self._send(200, text[: len(text) // 2])
        elif kind == "html":
            self._send(200, "<html><body>Sign in to the guest network</body></html>", "text/html")
        elif kind == "empty":
            self._send(503, "", "text/plain")
        elif kind == "drop":
            self._send(200, text, cut=len(text) // 2)
        elif fault and kind == "trickle":
            self._send(200, text, cut=0)
            for byte in text.encode():
                if self.server.fake.stopping.wait(fault.seconds):
                    break
                self.wfile.write(bytes([byte]))
        else:
            self._send(status, text, retry_after=retry_after)

    def _send(
        self,
        status: int,
        text: str,
        kind: str = "application/json",
        *,
        retry_after: str | None = None,
        cut: int | None = None,
    ) -> None:
        body = text.encode()
        lines = [f"HTTP/1.1 {status} Fake", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
        if retry_after is not None:
            lines.append(f"Retry-After: {retry_after}")
        if cut is not None:
            lines.append("Connection: close")
            self.close_connection = True
        self.wfile.write("\r\n".join([*lines, "", ""]).encode() + body[:cut])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--dimension", type=int, default=64)
    arguments = parser.parse_args()
    with FakeProvider(arguments.dimension, port=arguments.port) as fake:
        sys.stdout.write(fake.base_url + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
