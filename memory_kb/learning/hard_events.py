"""Propose what the log itself shows: a command that worked after a small change, a change that was reverted on request."""

from __future__ import annotations

from collections.abc import Iterable

from memory_kb.learning.error_text import generalise, same_words
from memory_kb.learning.ingest import Offer
from memory_kb.learning.new_entry import Draft
from memory_kb.markdown.splice import Value
from memory_kb.model import Location
from memory_kb.reports import Retry, Reverted, Trace
from memory_kb.text import shorten

_TITLE = 80


def find_hard_events(traces: Iterable[Trace], place: Location) -> list[Offer]:
    """Return the hard events of a session as proposals, one for each cause.

    A cause that was seen before has the same key or the same text, so that it is reinforced.

    Example:
        >>> trace = Trace("s", retries=(Retry(4, "npm ci", "npm ci --legacy-peer-deps", "ERESOLVE: could not resolve"),))
        >>> [(one.draft.title, one.draft.is_proposal) for one in find_hard_events([trace], Location())]
        [('`npm ci` fails, `npm ci --legacy-peer-deps` works', True)]
    """
    found = [offer for trace in traces for offer in _offers(trace, place)]
    return list({offer.key: offer for offer in reversed(found)}.values())[::-1]


def _offers(trace: Trace, place: Location) -> Iterable[Offer]:
    for retry in trace.retries:
        yield _offer_retry(retry, trace, place)
    for reverted in trace.reverted:
        yield _offer_reverted(reverted, trace, place)


def _offer_retry(retry: Retry, trace: Trace, place: Location) -> Offer:
    failed, worked, error = (text.replace("`", "'") for text in (retry.failed, retry.worked, retry.error))
    text = f"**Error Pattern:** `{failed}` fails with `{error}`\n**Prevention:** Run `{worked}`."
    key = f"retry/{failed}/{worked}/{same_words(generalise(error))}"
    return _offer(shorten(f"`{failed}` fails, `{worked}` works", _TITLE), text, key, retry.seq, trace, place)


def _offer_reverted(reverted: Reverted, trace: Trace, place: Location) -> Offer:
    files = ", ".join(f"`{file}`" for file in reverted.files)
    text = f"A change to {files} was reverted on request: “{reverted.request}”"
    key = f"reverted/{trace.session}/{reverted.seq}"
    return _offer(shorten(f"A change to {files} was reverted", _TITLE), text, key, reverted.seq, trace, place)


def _offer(title: str, text: str, key: str, seq: int, trace: Trace, place: Location) -> Offer:
    fields: tuple[tuple[str, Value], ...] = (
        ("status", "proposed"),
        ("session_id", trace.session),
        ("source_events", [str(seq)]),
    )
    draft = Draft(text, "pitfall", title, source="observed", fields=fields)
    return Offer(draft, place, key, f"Seen in session {trace.session}, event {seq}.", trace.session)
