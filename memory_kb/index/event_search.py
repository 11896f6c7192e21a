"""Search the events of sessions in an open `.sessions.db`."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from memory_kb.reports import SessionHit
from memory_kb.store.session_events import EventFilter
from memory_kb.terms import MARKED_WORD, cut_word, has_cjk, is_glued, query_terms
from memory_kb.text import shorten

_PIECE = re.compile(r'"[^"]*"\*?|[^\s"()]+|[()]')
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
#: The condition for each value of a filter, and for the sessions that may be found.
_CONDITIONS = {
    "types": "(e.type IN (SELECT value FROM json_each(:types)) OR e.event IN (SELECT value FROM json_each(:types)))",
    **{name: f"e.{name} = :{name}" for name in ("agent", "job", "task", "session")},
    "since": "e.ts >= :since",
    "until": "e.ts < :until",
    "sessions": "e.session IN (SELECT value FROM json_each(:sessions))",
}


class EventFinder:
    """The events of an index that pass some filters.

    `sessions` are those that may be found; all when None.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        wanted: EventFilter,
        sessions: Sequence[str] | None,
        *,
        with_injected: bool,
    ) -> None:
        self._connection = connection
        lists = {"types": json.dumps(wanted.types) if wanted.types else None}
        lists["sessions"] = None if sessions is None else json.dumps(sessions)
        self._values = {name: one for name, one in (wanted._asdict() | lists).items() if one is not None}
        conditions = [_CONDITIONS[name] for name in self._values] + ([] if with_injected else ["NOT e.injected"])
        self._where = "".join(f" AND {condition}" for condition in conditions)

    def newest(self, limit: int) -> tuple[SessionHit, ...]:
        rows = self._connection.execute(
            f"SELECT {_FIELDS}, substr(e.content, 1, 2000) FROM events e WHERE 1{self._where} "
            "ORDER BY e.ts DESC, e.id DESC LIMIT :limit",
            self._values | {"limit": limit},
        )
        return tuple(
            _make(rank, fields, 0.0, shorten(text, _PLAIN_LENGTH)) for rank, (*fields, text) in enumerate(rows, 1)
        )

    def find(self, query: str, limit: int, *, every_event: bool) -> tuple[tuple[SessionHit, ...], list[str]]:
        """Return the best hits, and notes for the user about the query.

        Plain words are alternatives, the rarer the better; a query with operators is taken at its word if
        FTS5 understands it. A session is one hit, its best event, unless `every_event` is set.
        """
        problem = "there is no word in the query"
        for expression in expressions(query):
            try:
                best = (self._best_events if every_event else self._best_sessions)(expression, limit)
            except sqlite3.OperationalError as exc:
                if not str(exc).startswith(_SYNTAX):
                    raise
                problem = f"the query is not in the query language ({str(exc).removeprefix('fts5: ')})"
                continue
            hits = enumerate(best, 1)
            return tuple(self._hit(rank, key, score, expression, query) for rank, (key, score) in hits), []
        return (), [problem]

    def _best_events(self, expression: str, limit: int) -> list[tuple[int, float]]:
        """Return the row ids and scores of the best events."""
        statement = (
            f"SELECT e.id, -bm25(events_fts, {_WEIGHTS}) FROM events_fts JOIN events e ON e.id = events_fts.rowid "
            f"WHERE events_fts MATCH :match{self._where} "
            f"ORDER BY bm25(events_fts, {_WEIGHTS}), e.ts DESC, e.id DESC LIMIT :limit"
        )
        return self._connection.execute(statement, self._values | {"match": expression, "limit": limit}).fetchall()

    def _best_sessions(self, expression: str, limit: int) -> list[tuple[int, float]]:
        """Return the row id of the best event of each of the best sessions, and the session's score.

        What was asked, said, done and seen is evidence of its own: the score of a session is the sum of
        the best event of each.
        """
        statement = (
            f"WITH hits AS MATERIALIZED (SELECT rowid AS id, -bm25(events_fts, {_WEIGHTS}) AS score FROM events_fts "
            "WHERE events_fts MATCH :match) "
            "SELECT e.session, e.id, max(h.score), max(e.ts) FROM hits h JOIN events e ON e.id = h.id "
            f"WHERE 1{self._where} GROUP BY e.session, {_EVIDENCE}"
        )
        evidence: dict[str, list[tuple[float, int, str]]] = {}
        for session, key, score, ts in self._connection.execute(statement, self._values | {"match": expression}):
            evidence.setdefault(session, []).append((score, key, ts))
        ranked = sorted(
            (sum(score for score, _, _ in rows), max(ts for *_, ts in rows), session, max(rows)[1])
            for session, rows in evidence.items()
        )
        return [(key, total) for total, _, _, key in ranked[::-1][:limit]]

    def _hit(self, rank: int, key: int, score: float, expression: str, query: str) -> SessionHit:
        *fields, snippet, content = self._connection.execute(
            f"SELECT {_FIELDS}, {_SNIPPET}, CASE WHEN e.terms IS NULL THEN '' ELSE e.content END "
            "FROM events_fts JOIN events e ON e.id = events_fts.rowid WHERE events_fts MATCH ? AND events_fts.rowid = ?",
            (expression, key),
        ).fetchone()
        text = str(snippet)
        return _make(rank, fields, score, text if ">>>" in text else _cjk_snippet(content, query) or text)


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
        cut = (_cjk_phrase(piece) if has_cjk(piece) else piece for piece in pieces)
        yield " ".join(cut) if has_cjk(query) else query
    terms = [term for piece in pieces if piece not in _OPERATORS for term in _terms(piece)]
    if terms:
        yield " OR ".join(list(dict.fromkeys(terms))[:_MOST_TERMS])


def _terms(piece: str) -> Iterator[str]:
    """Yield a piece of a query as it is if it is a phrase or a word, else the words in it."""
    words = MARKED_WORD.findall(piece)
    if has_cjk(piece):
        yield _cjk_phrase(piece)
    elif len(words) == 1 or piece.startswith('"'):
        text = piece.rstrip("*").replace('"', "")
        yield f'"{text}"{"*" if piece.endswith("*") else ""}'
    else:
        yield from (f'"{word}"' for word in words)


def _cjk_phrase(text: str) -> str:
    """Return an expression for words of which some are in a script without spaces; the others are not cut."""
    phrases = []
    for word in MARKED_WORD.findall(text):
        for piece, is_cut in cut_word(word):
            if not is_cut or is_glued(piece):
                phrases.append(f'"{piece}"')
            else:
                terms, is_short = query_terms(piece)
                phrases.append(f'"{" ".join(terms)}"' + "*" * is_short)
    return f"({' AND '.join(phrases)})"


def _cjk_snippet(content: str, query: str) -> str | None:
    """Return the surroundings of the first of the query's CJK words in a text."""
    for word in filter(has_cjk, MARKED_WORD.findall(query)):
        head, found, tail = content.partition(word)
        if found:
            before, after = "..." * (len(head) > 40), "..." * (len(tail) > 40)
            return f"{before}{head[-40:]}>>>{word}<<<{tail[:40]}{after}"
    return None


def _make(rank: int, fields: Sequence[Any], score: float, snippet: str) -> SessionHit:
    *named, ok, injected, offset = fields
    is_ok = None if ok is None else bool(ok)
    return SessionHit._make((rank, *named, is_ok, bool(injected), offset, round(float(score), 6), snippet))
