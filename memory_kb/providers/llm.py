"""Ask a language model to fill in a JSON form."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from memory_kb.errors import ProviderFailed
from memory_kb.providers.http import Endpoint, Pace, ProviderCalls, Refused, Timing, quote_answer, read_refusal
from memory_kb.providers.protocols import is_loopback
from memory_kb.providers.remote_embedder import estimate_tokens
from memory_kb.providers.spending import SpendLog, TokenUsage, cost
from memory_kb.text import load_json

_FENCED = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL)
_TYPES: Mapping[str, type] = {"object": Mapping, "array": list, "string": str, "integer": int}


class Misfilled(Exception):
    """An answer that does not fit the form; the message says where."""


def _read_form(text: str, schema: Mapping[str, Any]) -> Mapping[str, object]:
    """Return the object that a model wrote, if it fits the schema."""
    fenced = _FENCED.search(text)
    try:
        value = load_json(fenced[1] if fenced and not text.lstrip().startswith("{") else text)
    except ValueError as exc:
        raise Misfilled("the answer is no JSON" if text.strip() else "the answer is empty") from exc
    if not isinstance(value, dict):
        raise Misfilled("the answer is no object")
    check_form(value, schema)
    return value


def check_form(value: object, schema: Mapping[str, Any], where: str = "the answer") -> None:
    """Raise `Misfilled` if a value does not have the shape of a schema; lengths are not checked."""
    kind = schema.get("type", "object")
    if not isinstance(value, _TYPES[kind]) or isinstance(value, bool):
        raise Misfilled(f"{where} is no {kind}")
    if value not in schema.get("enum", (value,)):
        raise Misfilled(f"{where} is none of {schema['enum']}")
    if isinstance(value, Mapping):
        for name, shape in schema.get("properties", {}).items():
            if name not in value:
                raise Misfilled(f"{where} lacks {name}")
            check_form(value[name], shape, f"{where}.{name}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            check_form(item, schema["items"], f"{where}[{number}]")


#: The most tokens that a model may write, its thinking included.
OUTPUT_TOKENS = 8_000


class FormRequest(NamedTuple):
    """One request for a form; `schema` is None where only the words of the prompt ask for it."""

    prompt: str
    schema: Mapping[str, Any] | None
    seconds: float = 0.0


class Reply(NamedTuple):
    """The text of an answer; `usage` is None if the server did not report it."""

    text: str
    usage: TokenUsage | None
    is_cut: bool = False


def with_schema(prompt: str, schema: Mapping[str, object]) -> str:
    """Return a prompt that includes the schema of the form, for a server that takes none."""
    return f"{prompt}\n\nAnswer with one JSON object and nothing else. Its JSON schema:\n{json.dumps(schema)}"


def fill_form(ask: Callable[[str], str], prompt: str, schema: Mapping[str, object]) -> Mapping[str, object]:
    """Return the form that a model filled in, asking a second time where the first answer does not fit."""
    try:
        return _read_form(ask(prompt), schema)
    except Misfilled as exc:
        again = f"{prompt}\n\nYour last answer could not be used: {exc}. Answer again, with one JSON object that fits the schema."
    return _read_form(ask(again), schema)


class RemoteLlm:
    """A language model over the network, whose cost is noted in a log."""

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        log: SpendLog,
        ask: Callable[[Any, FormRequest], Reply],
        timing: Timing | None = None,
    ) -> None:
        self._endpoint, self._model, self._log, self._ask = endpoint, model, log, ask
        self._calls = ProviderCalls(endpoint, timing)
        self._takes_schemas = True

    def complete(self, prompt: str, schema: Mapping[str, object], *, timeout: float) -> Mapping[str, object]:
        pace = Pace(timeout=timeout, total=timeout, retries=2, longest_wait=10.0)
        client, http_client = self._endpoint.open_client(self._endpoint.base_url, self._endpoint.key)
        deadline = self._calls.deadline(pace)

        def ask(request: FormRequest) -> str:
            return self._ask_once(client, request, pace, deadline)

        with http_client:
            try:
                return fill_form(lambda words: self._reply(ask, words, schema), prompt, schema)
            except Misfilled as exc:
                said = f"{self._endpoint.name} did not fill in the form: {quote_answer(str(exc), self._endpoint.key)}"
                raise ProviderFailed(said, self._endpoint.model_hint, is_passing=True) from None

    def _reply(self, ask: Callable[[FormRequest], str], prompt: str, schema: Mapping[str, Any]) -> str:
        """Return an answer: asked with the schema, or with it in the prompt if the provider takes none."""
        if self._takes_schemas:
            with contextlib.suppress(Refused):
                return ask(FormRequest(prompt, schema))
        try:
            text = ask(FormRequest(with_schema(prompt, schema), None))
        except Refused as refused:
            raise self._calls.note_failure(refused) from None
        self._takes_schemas = False
        return text

    def _ask_once(self, client: Any, question: FormRequest, pace: Pace, deadline: float | None) -> str:
        asked = question.prompt + json.dumps(question.schema or "")
        expected = TokenUsage(estimate_tokens(asked), OUTPUT_TOKENS)
        self._log.check(self._price(expected))
        may_be_billed = False

        def request(seconds: float) -> Reply:
            nonlocal may_be_billed
            may_be_billed = True
            try:
                return self._ask(client, question._replace(seconds=seconds))
            except Exception as exc:
                may_be_billed = read_refusal(exc).is_unanswered
                raise

        try:
            reply = self._calls.call(request, pace, deadline)
        except ProviderFailed:
            if may_be_billed:
                self._record(expected)
            raise
        self._record(reply.usage or TokenUsage(expected.input_tokens, estimate_tokens(reply.text)))
        if reply.is_cut:
            raise Misfilled(f"the answer is longer than {OUTPUT_TOKENS} tokens")
        return reply.text

    def _price(self, usage: TokenUsage) -> float:
        is_free = is_loopback(self._endpoint.base_url)
        return 0.0 if is_free else cost(self._endpoint.provider, self._model, usage)

    def _record(self, usage: TokenUsage) -> None:
        self._log.record(self._endpoint.provider, self._model, usage, self._price(usage))
