"""Find past sessions and their events by words: query language, ranking, snippets."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence

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
_COLUMN = re.compile(r"(?:^|[\s(])(?:content|tool|agent):\w")
#: Of a longer query, the first different words count.
_MOST_TERMS = 200
#: Groups the events of a session by whose words they are: a person's, the agent's, calls, results, and the rest.
_EVIDENCE = "CASE WHEN e.type = 'event' AND e.role = 'assistant' THEN 'message' ELSE e.type END, e.role = 'user'"


def find(
    connection: sqlite3.Connection,
    query: str,
    wanted: EventFilter,
    limit: int,
    *,
    with_injected: bool,
    sessions: Sequence[str] | None = None,
    every_event: bool = False,
) -> tuple[tuple[SessionHit, ...], list[str]]:
    """Return the best hits, and what to say about the query.

    Plain words are alternatives, the rarer the better; a query with operators is taken at its word if
    FTS5 understands it. A session is one hit, its best event, unless `every_event` is set. `sessions`
    are those that may be found; all when None.
    """
    where, values = _conditions(wanted, with_injected=with_injected)
    if sessions is not None:
        where, values = f"{where} AND e.session IN (SELECT value FROM json_each(?))", (*values, json.dumps(sessions))
    if not query.strip():
        return _newest(connection, where, values, limit), []
    problem = "there is no word in the query"
    for expression in expressions(query):
        try:
            best = (_best_events if every_event else _best_sessions)(connection, expression, where, values, limit)
        except sqlite3.OperationalError as exc:
            if not str(exc).startswith(_SYNTAX):
                raise
            problem = f"the query is not in the query language ({str(exc).removeprefix('fts5: ')})"
            continue
        hits = enumerate(best, 1)
        return tuple(_hit(connection, rank, key, score, expression, query) for rank, (key, score) in hits), []
    return (), [problem]


def _best_events(
    connection: sqlite3.Connection, expression: str, where: str, values: tuple[object, ...], limit: int
) -> list[tuple[int, float]]:
    """Return the row ids and scores of the best events."""
    statement = (
        f"SELECT e.id, -bm25(events_fts, {_WEIGHTS}) FROM events_fts JOIN events e ON e.id = events_fts.rowid "
        f"WHERE events_fts MATCH ?{where} ORDER BY bm25(events_fts, {_WEIGHTS}), e.ts DESC, e.id DESC LIMIT ?"
    )
    return connection.execute(statement, (expression, *values, limit)).fetchall()


def _best_sessions(
    connection: sqlite3.Connection, expression: str, where: str, values: tuple[object, ...], limit: int
) -> list[tuple[int, float]]:
    """Return the row id of the best event of each of the best sessions, and the session's score.

    What was asked, said, done and seen is evidence of its own: the score of a session is the sum of
    the best event of each.
    """
    statement = (
        f"WITH hits AS MATERIALIZED (SELECT rowid AS id, -bm25(events_fts, {_WEIGHTS}) AS score FROM events_fts "
        "WHERE events_fts MATCH ?) "
        "SELECT e.session, e.id, max(h.score), max(e.ts) FROM hits h JOIN events e ON e.id = h.id "
        f"WHERE 1{where} GROUP BY e.session, {_EVIDENCE}"
    )
    totals: dict[str, float] = {}
    best: dict[str, tuple[float, int]] = {}
    newest: dict[str, str] = {}
    for session, key, score, ts in connection.execute(statement, (expression, *values)):
        totals[session] = totals.get(session, 0.0) + score
        best[session] = max(best.get(session, (score, key)), (score, key))
        newest[session] = max(newest.get(session, ""), ts)
    ranked = sorted(totals, key=lambda session: (totals[session], newest[session], session), reverse=True)
    return [(best[session][1], totals[session]) for session in ranked[:limit]]


def expressions(query: str) -> Iterator[str]:
    """Yield the query as it is where it has operators, then its words as alternatives.

    Example:
        >>> list(expressions("edge-case foo.bar"))
        ['"edge" OR "case" OR "foo" OR "bar"']
        >>> next(expressions("検索機能 AND test"))
        '("検索 索機 機能") AND test'
    """
    pieces = _PIECE.findall(query)
    if any(piece in _OPERATORS for piece in pieces) or _COLUMN.search(query):
        yield _with_bigrams(query) if has_cjk(query) else query
    terms = [term for piece in pieces if piece not in _OPERATORS for term in _terms(piece)]
    if terms:
        yield " OR ".join(list(dict.fromkeys(terms))[:_MOST_TERMS])


def _terms(piece: str) -> Iterator[str]:
    """Yield a piece of a query as it is if it is a phrase or a word, else the words in it."""
    words = re.findall(r"\w+", piece)
    if len(words) == 1 or piece.startswith('"') or has_cjk(piece):
        yield _quote(piece)
    else:
        yield from (f'"{word}"' for word in words)


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


def _hit(connection: sqlite3.Connection, rank: int, key: int, score: float, expression: str, query: str) -> SessionHit:
    row = connection.execute(
        f"SELECT {_FIELDS}, {_SNIPPET}, e.terms IS NOT NULL FROM events_fts JOIN events e ON e.id = events_fts.rowid "
        "WHERE events_fts MATCH ? AND events_fts.rowid = ?",
        (expression, key),
    ).fetchone()
    *fields, snippet, has_terms = row
    text = str(snippet)
    if ">>>" not in text and has_terms:
        (content,) = connection.execute("SELECT content FROM events WHERE id = ?", (key,)).fetchone()
        text = _cjk_snippet(content, query) or text
    return _make(rank, (*fields, score, text), text)


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
