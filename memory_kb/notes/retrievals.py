"""The log of what was shown to whom: every search and every context (requirements §6.6).

It belongs to this machine. Losing it costs usage that is not folded into the notes yet.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from memory_kb.notes import jsonlines
from memory_kb.notes.events import format_time
from memory_kb.plainfiles import make_folder

if TYPE_CHECKING:
    from memory_kb.notes.vault import Vault

_NAME = "retrievals.jsonl"
#: Longer queries are cut; the log is for counting, not for reading again.
_MAX_QUERY = 500
#: How much further is looked for credentials, so that none is cut in halves.
_EDGE = 1_000
_TEXTS = ("ts", "session", "agent", "task", "verb", "query")


class Retrieval(NamedTuple):
    """Some entries that were shown at a moment; what is not known is None.

    Attributes:
        ts: when, in UTC, as events have it.
        verb: `search`, `context`, or another that showed them.
        ids: the entries, each once, in the order in which they were shown.
        task: what they were shown for; hooks name none, as nobody knows yet what it will be called.
        injected: whether they were put before an agent unasked.
    """

    ts: str
    verb: str
    ids: tuple[str, ...]
    query: str | None = None
    session: str | None = None
    agent: str | None = None
    task: str | None = None
    injected: bool = False

    @property
    def is_hooked(self) -> bool:
        """Whether a hook showed them, so that they belong to the session and to no task by name."""
        return self.injected and self.task is None and self.session is not None


class Credit(NamedTuple):
    """Entries that are counted for a session, or for a day outside any.

    Attributes:
        key: the session, or `day:2026-03-01`.
        counts: what `reinforcement_count` each of them gets by it.
        is_done: False before the notes are written, True after.
    """

    key: str
    counts: Mapping[str, int]
    is_done: bool


class RetrievalLog:
    """The retrievals of one vault, and what of them is folded into the notes."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / _NAME

    def append(self, retrieval: Retrieval) -> None:
        """Write down what was shown, if that can be written: nothing that is read fails for it.

        Credentials are taken out of what was asked.
        """
        with contextlib.suppress(OSError):
            self._append({**_known(retrieval), **_cleaned(retrieval), "ids": list(retrieval.ids)})

    def credit(self, ts: str, counted: Iterable[Credit]) -> None:
        """Write down what is about to be counted, or is.

        Raises:
            OSError: it cannot be written.
        """
        self._append(
            *({"ts": ts, "credit": one.key, "counts": dict(one.counts), "done": one.is_done} for one in counted)
        )

    def _append(self, *lines: Mapping[str, Any]) -> None:
        try:
            jsonlines.append(self.file, lines)
        except FileNotFoundError:
            make_folder(self.file.parent)
            jsonlines.append(self.file, lines)

    def read(self, session: str | None = None) -> Iterator[Retrieval]:
        """Yield the retrievals, oldest first: those of a session, or all."""
        for line in jsonlines.read(self.file, jsonlines.mark_of(session) if session else b'"ids"'):
            if session and line.get("session") != session:
                continue
            if isinstance(line.get("ids"), list) and isinstance(line.get("verb"), str):
                texts = {name: str(line[name]) for name in _TEXTS if line.get(name) is not None}
                yield Retrieval(
                    **{"ts": "", **texts}, ids=tuple(map(str, line["ids"])), injected=line.get("injected") is True
                )

    def credits(self, session: str | None = None) -> Iterator[Credit]:
        """Yield what was counted, oldest first: for a session, or for all."""
        for line in jsonlines.read(self.file, jsonlines.mark_of(session) if session else b'"credit"'):
            if session and line.get("credit") != session:
                continue
            counts = line.get("counts")
            if isinstance(line.get("credit"), str) and isinstance(counts, dict):
                good = {name: count for name, count in counts.items() if type(count) is int}
                yield Credit(line["credit"], good, line.get("done") is True)

    def trim(self, before: str) -> int:
        """Drop the lines from before a moment; return how many.

        Whoever calls this holds the vault's lock. A search that writes in the same instant may
        lose its line.

        Raises:
            OSError: it cannot be written.
        """
        lines = list(jsonlines.read_raw(self.file))
        kept = [raw for raw, line in lines if str(line.get("ts", "")) >= before]
        if len(kept) < len(lines):
            jsonlines.replace(self.file, kept)
        return len(lines) - len(kept)


def _known(retrieval: Retrieval) -> dict[str, Any]:
    return {name: value for name, value in retrieval._asdict().items() if value is not None and value is not False}


def _cleaned(retrieval: Retrieval) -> dict[str, Any]:
    from memory_kb.credentials import redact

    texts = {name: text for name, text in retrieval._asdict().items() if isinstance(text, str) and text}
    return {name: redact(text[: _MAX_QUERY + _EDGE]).text[:_MAX_QUERY] for name, text in texts.items()}


class Shown(TypedDict, total=False):
    """Who was shown some entries, and why."""

    query: str | None
    session: str | None
    agent: str | None
    task: str | None
    injected: bool


def log_shown(vault: Vault, verb: str, ids: Iterable[str], **about: Unpack[Shown]) -> None:
    """Log which entries were shown, so that the end of the session can credit those that were used."""
    shown = tuple(dict.fromkeys(ids))
    if shown:
        about["session"] = about.get("session") or vault.session
        RetrievalLog(vault.machine / "log").append(Retrieval(format_time(vault.clock()), verb, shown, **about))
