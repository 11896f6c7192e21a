"""Find events by their words: the query language and the snippets of S0-6 and S0-7."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator

from memory_kb.notes.events import EventFilter
from memory_kb.reports import SessionHit
from memory_kb.text import bigrams, cut_cjk, has_cjk, shorten

_PIECE = re.compile(r'"[^"]*"\*?|[^\s"()]+|[()]')
_WORD = re.compile(r"\w")
_OPERATORS = frozenset({"AND", "OR", "NOT", "NEAR"})
_SYNTAX = ("fts5:", "no such column", "unterminated string", "unknown special query", "syntax error")
#: A match in the name of the tool says less than one in the text.
_WEIGHTS = "1.0, 0.5, 1.0, 0.0"
_SNIPPET = "snippet(events_fts, 0, '>>>', '<<<', '...', 16)"
_FIELDS = "e.session, e.seq, e.ts, e.job, e.task, e.agent, e.type, e.event, e.role, e.tool, e.ok, e.injected, e.offset"
_PLAIN_LENGTH = 120


def find(
    connection: sqlite3.Connection, query: str, wanted: EventFilter, limit: int, *, with_injected: bool
) -> tuple[tuple[SessionHit, ...], list[str]]:
    """Return the events that fit, best first, and what to say about the query.

    A query that FTS5 does not understand is tried again as words that must all be there, and then
    as words of which one must.
    """
    where, values = _conditions(wanted, with_injected=with_injected)
    if not query.strip():
        return _newest(connection, where, values, limit), []
    statement = (
        f"SELECT {_FIELDS}, -bm25(events_fts, {_WEIGHTS}), {_SNIPPET}, e.terms IS NOT NULL, e.id "
        f"FROM events_fts JOIN events e ON e.id = events_fts.rowid "
        f"WHERE events_fts MATCH ?{where} ORDER BY bm25(events_fts, {_WEIGHTS}), e.ts DESC, e.id DESC LIMIT ?"
    )
    problem = "there is no word in the query"
    for stage, expression in enumerate(expressions(query)):
        try:
            rows = connection.execute(statement, (expression, *values, limit)).fetchall()
        except sqlite3.OperationalError as exc:
            if not str(exc).startswith(_SYNTAX):
                raise
            problem = f"the query is not in the query language ({str(exc).removeprefix('fts5: ')}), and no event has its words"
            continue
        if rows or stage == 0:
            notes = ["no event has all the words; these have one of them"] if stage == 2 else []
            return tuple(_hit(connection, rank, row, query) for rank, row in enumerate(rows, 1)), notes
    return (), [problem]


def expressions(query: str) -> Iterator[str]:
    """Yield the query as it is, then as words that must all be there, then as words of which one must.

    Example:
        >>> list(expressions("edge-case foo.bar"))
        ['edge-case foo.bar', '"edge-case" "foo.bar"', '"edge-case" OR "foo.bar"']
        >>> next(expressions("検索機能 AND test"))
        '("検索 索機 機能") AND test'
    """
    yield _with_bigrams(query) if has_cjk(query) else query
    terms = [_quote(piece) for piece in _PIECE.findall(query) if _WORD.search(piece) and piece not in _OPERATORS]
    if terms:
        yield " ".join(terms)
        yield " OR ".join(terms)


def _quote(piece: str) -> str:
    star = "*" if piece.endswith("*") else ""
    text = piece.rstrip("*").replace('"', "")
    return _cjk_phrase(text) if has_cjk(text) else f'"{text}"{star}'


def _with_bigrams(query: str) -> str:
    return " ".join(_cjk_phrase(piece.strip('"*')) if has_cjk(piece) else piece for piece in _PIECE.findall(query))


def _cjk_phrase(text: str) -> str:
    """Return an expression for words in a script without spaces."""
    phrases = []
    for word in re.findall(r"\w+", text):
        for piece, is_cjk in cut_cjk(word):
            if not is_cjk:
                phrases.append(f'"{piece}"')
            else:
                phrases.append(f'"{piece}"*' if len(piece) == 1 else f'"{" ".join(bigrams(piece)[:-1])}"')
    return f"({' AND '.join(phrases)})"


def _conditions(wanted: EventFilter, *, with_injected: bool) -> tuple[str, tuple[object, ...]]:
    parts: list[str] = [] if with_injected else ["NOT e.injected"]
    values: list[object] = []
    if wanted.types:
        marks = ", ".join("?" * len(wanted.types))
        parts.append(f"(e.type IN ({marks}) OR e.event IN ({marks}))")
        values += [*wanted.types, *wanted.types]
    for name in ("agent", "job", "task", "session"):
        if getattr(wanted, name) is not None:
            parts.append(f"e.{name} = ?")
            values.append(getattr(wanted, name))
    for sign, moment in ((">=", wanted.since), ("<", wanted.until)):
        if moment is not None:
            parts.append(f"e.ts {sign} ?")
            values.append(moment)
    return "".join(f" AND {part}" for part in parts), tuple(values)


def _newest(
    connection: sqlite3.Connection, where: str, values: tuple[object, ...], limit: int
) -> tuple[SessionHit, ...]:
    statement = f"SELECT {_FIELDS}, 0.0, substr(e.content, 1, 2000) FROM events e WHERE 1{where} ORDER BY e.ts DESC, e.id DESC LIMIT ?"
    return tuple(
        _make(rank, row, shorten(row[-1], _PLAIN_LENGTH))
        for rank, row in enumerate(connection.execute(statement, (*values, limit)), 1)
    )


def _hit(connection: sqlite3.Connection, rank: int, row: tuple[object, ...], query: str) -> SessionHit:
    *fields, snippet, has_terms, key = row
    text = str(snippet)
    if ">>>" not in text and has_terms:
        (content,) = connection.execute("SELECT content FROM events WHERE id = ?", (key,)).fetchone()
        text = _cjk_snippet(content, query) or text
    return _make(rank, (*fields, text), text)


def _cjk_snippet(content: str, query: str) -> str | None:
    """Return the surroundings of the first of the query's CJK words in a text."""
    for word in re.findall(r"\w+", query):
        place = content.find(word) if has_cjk(word) else -1
        if place >= 0:
            start, end = max(0, place - 40), place + len(word) + 40
            head, tail = content[start:place], content[place + len(word) : end]
            return f"{'...' if start else ''}{head}>>>{word}<<<{tail}{'...' if end < len(content) else ''}"
    return None


def _make(rank: int, row: tuple[object, ...], snippet: str) -> SessionHit:
    session, seq, ts, job, task, agent, kind, event, role, tool, ok, injected, offset, score = row[:14]
    return SessionHit(  # the columns are typed by the schema
        rank, session, seq, ts, job, task, agent, kind, event, role, tool, None if ok is None else bool(ok), bool(injected), offset,  # type: ignore[arg-type]
        round(float(score), 6), snippet,  # type: ignore[arg-type]
    )  # fmt: skip
