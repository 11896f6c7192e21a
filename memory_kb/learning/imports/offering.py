"""Pieces of a source as offers for the intake, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from memory_kb.learning.capture import hear, make_offer
from memory_kb.learning.imports.conversations import Conversation
from memory_kb.learning.imports.pieces import Piece, dated_fields
from memory_kb.learning.intake import Intake, Offer, Taken, id_of
from memory_kb.learning.remember import fingerprint
from memory_kb.model import Location
from memory_kb.notes.splice import Value
from memory_kb.reports import RunReport

#: A request to remember something belongs to its conversation here, so that the time decides nothing.
_NO_TIME = datetime.min.replace(tzinfo=UTC)
_CHANGED = "its text and the source's differ by now; it stays as it is"


@dataclass(frozen=True, slots=True)
class ImportedPiece:
    """What became of a piece of a source.

    `action` is `created`, `reinforced`, `known`, `forgotten` or `refused`, as the intake says, or
    `left out`; `message` says why.
    """

    what: str
    origin: str
    line: int
    action: str
    kind: str = ""
    id: str = ""
    path: str = ""
    message: str = ""


class LeftOut(NamedTuple):
    """How many of a thing were left out for one reason, and where the first of them stands."""

    what: str
    why: str
    number: int
    first: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import brought in.

    Attributes:
        format: the format of the source, as given or found out.
        pieces: what became of every piece that became something, or was refused.
        left_out: the rest, by reason.
        sessions: how many sessions were written, and `events` how many events.
    """

    format: str
    source: str
    pieces: tuple[ImportedPiece, ...]
    left_out: tuple[LeftOut, ...]
    run: RunReport
    sessions: int = 0
    events: int = 0

    def count(self) -> dict[tuple[str, str], int]:
        """Return how many of each thing became what."""
        counts: dict[tuple[str, str], int] = {}
        for one in self.pieces:
            counts[one.what, one.action] = counts.get((one.what, one.action), 0) + 1
        return counts


class Tally:
    """A count of what is left out; a million messages take no more room than a few reasons."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], LeftOut] = {}

    def add(self, piece: Piece) -> None:
        """Count a piece, unless it becomes something."""
        if piece.draft is None:
            key = (piece.what, piece.why)
            held = self._found.get(key) or LeftOut(piece.what, piece.why, 0, f"{piece.origin}:{piece.line}")
            self._found[key] = held._replace(number=held.number + 1)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What was counted, by reason."""
        return tuple(self._found.values())


def count_left_out(pieces: Iterable[Piece]) -> tuple[LeftOut, ...]:
    """Return what is left out, by reason; file names and numbers in a reason are of the first.

    Example:
        >>> count_left_out([Piece("note", "a.md", 1, why="it is empty"), Piece("note", "b.md", 1, why="it is empty")])
        (LeftOut(what='note', why='it is empty', number=2, first='a.md:1'),)
    """
    tally = Tally()
    for piece in pieces:
        tally.add(piece)
    return tally.left_out


def offer_pieces(pieces: Iterable[Piece], place: Location) -> list[Offer]:
    """Return the pieces that become entries as offers, each known again by its key.

    An entry that is there and says the same is reinforced once for each source. What is imported
    to another place is another entry.
    """
    offers = []
    pieces = list(pieces)
    moved = {id_of(one.key): id_of(_keyed(one.key, one.place or place)) for one in pieces if one.draft}
    for piece in pieces:
        if piece.draft is None:
            continue
        fields = dict(piece.draft.fields)
        named = str(fields.get("imported_from") or piece.origin)
        draft = (
            piece.draft
            if "imported_from" in fields
            else replace(piece.draft, fields=(*piece.draft.fields, ("imported_from", named)))
        )
        reason = f"Imported from {piece.origin}, line {piece.line}."
        offer = Offer(
            draft, piece.place or place, _keyed(piece.key, piece.place or place), reason, named, "imported_from"
        )
        offers.append(_redirected(offer, moved))
    return offers


def _keyed(key: str, place: Location) -> str:
    return key if place == Location() else f"{key}@{place.scope}/{place.job or ''}/{place.task or ''}"


def offer_statements(talk: Conversation, place: Location, format: str, passed: Tally) -> list[Offer]:  # noqa: A002 - the word of the verb
    """Return what people state in a conversation; messages that state nothing are counted in `passed`.

    Most messages of most conversations hold no marker.
    """
    offers: list[Offer] = []
    numbered = (replace(event, session=talk.session, seq=number) for number, event in enumerate(talk.events, 1))
    named = f"{format}: {talk.title}" if talk.title else f"{format}: {talk.session}"
    for event, statements, reason in hear(numbered):
        if not statements:
            passed.add(Piece("message", talk.session, event.seq, why=_general(reason)))
        for number, one in enumerate(statements):
            made = make_offer(event, one, number, _NO_TIME, place, talk.session)
            fields: list[tuple[str, Value]] = [*made.draft.fields, *dated_fields(event.ts), ("imported_from", named)]
            key = _keyed(f"import/{talk.session}/{event.origin}{f'/{number}' if number else ''}", place)
            offers.append(replace(made, draft=replace(made.draft, fields=tuple(fields)), key=key))
    return offers


def _general(reason: str) -> str:
    """Return a reason without what is of one message alone."""
    return "too short or too long" if "characters of it are" in reason or "longer than" in reason else reason


def redirect_links(offers: Sequence[Offer], intake: Intake) -> list[Offer] | None:
    """Return the offers with their links led to what was there already, or None where none must be.

    A note whose text the vault has already is not made; what links to it links to the one there.
    """
    there: dict[str, str] = {}
    for one in intake.taken:
        if one.id != one.offer.entry_id:
            there[one.offer.entry_id] = one.id if one.action in ("created", "reinforced", "known") else ""
    changed = [_redirected(offer, there) for offer in offers]
    return changed if any(one is not offer for one, offer in zip(changed, offers, strict=True)) else None


def _redirected(offer: Offer, there: Mapping[str, str]) -> Offer:
    links = dict(offer.draft.fields).get("links")
    if not isinstance(links, list) or not any(isinstance(link, dict) and link["to"] in there for link in links):
        return offer
    led = [{**link, "to": there.get(link["to"], link["to"])} for link in links if isinstance(link, dict)]
    kept = [link for link in led if link["to"] and link["to"] != offer.entry_id]
    fields = [
        (name, kept if name == "links" else value) for name, value in offer.draft.fields if name != "links" or kept
    ]
    return replace(offer, draft=replace(offer.draft, fields=tuple(fields)))


def mark_changed(intake: Intake, texts: Mapping[str, str]) -> Intake:
    """Return an intake that says which known entries no longer say what their source says; they stay."""

    def told(one: Taken) -> Taken:
        is_same = one.id not in texts or fingerprint(texts[one.id]) == fingerprint(one.offer.draft.text)
        return (
            one if one.action != "known" or one.id != one.offer.entry_id or is_same else one._replace(message=_CHANGED)
        )

    return intake._replace(taken=tuple(map(told, intake.taken)))


def tell(pieces: Iterable[Piece], intake: Intake, whats: Sequence[str]) -> tuple[ImportedPiece, ...]:
    """Return what became of the offers, in their order; `whats` and the pieces say what they were."""
    origins = [(piece.origin, piece.line) for piece in pieces if piece.draft]
    told = []
    for number, one in enumerate(intake.taken):
        origin, line = (
            origins[number]
            if number < len(origins)
            else (one.offer.origin or "", int(str(dict(one.offer.draft.fields).get("session_seq", 0))))
        )
        told.append(
            ImportedPiece(whats[number], origin, line, one.action, one.offer.draft.kind, one.id, one.path, one.message)
        )
    return tuple(told)
