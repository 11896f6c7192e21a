"""Read and write a vault's saved queries, `queries.yaml`.

```yaml
- question: flaky tests                # what is asked
  expect: [69712e00, flaky-sse-test]   # entries of which one should be among the first hits
  k: 10                                # how many hits count, 10 unless said
  task: fix the flaky upload test     # the task to give a context for; the question unless said
  labels: [testing]                    # with these labels,
  files: [tests/test_upload.py]        # and these files
  max_tokens: 1500                     # what its context may cost
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.model import Problem
from memory_kb.store.file_edits import read_if_there
from memory_kb.text import as_text, read_words
from memory_kb.yaml_loader import MAX_BLOCK, NO_MAPPING, InvalidBlock, YamlItem, cut_list, load_mapping

if TYPE_CHECKING:
    from memory_kb.vault import Vault

#: The file of a vault's saved queries.
QUERIES = "queries.yaml"
#: Hits that count unless a query says otherwise.
K = 10
#: The largest numbers that a query may name.
_MOST = {"k": 1_000, "max_tokens": 1_000_000_000}
_MOST_QUERIES = 2_000
#: An expected id may be cut to no less than this.
_SHORTEST = 8
#: The file may be this many times as large as a block of frontmatter.
_SCALE = 16
_FIELDS = frozenset({"question", "expect", "k", "task", "labels", "type", "files", "max_tokens"})


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """A question, and the entries of which it should find one.

    Attributes:
        expect: ids, beginnings of at least eight characters, or paths.
        task: what to give a context for; the question where it is None.
        max_tokens: what that context may cost; None for no bound.
        line: where it is in its file.
    """

    question: str
    expect: tuple[str, ...] = ()
    k: int = K
    task: str | None = None
    labels: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    max_tokens: int | None = None
    line: int = 1


class Queries(NamedTuple):
    """The queries of a file, and what is wrong with it."""

    queries: tuple[SavedQuery, ...]
    problems: tuple[Problem, ...] = ()


def queries_path(vault: Vault) -> str:
    """Return the path of a vault's saved queries."""
    return f"memory/{QUERIES}" if vault.memory else QUERIES


def read_queries(vault: Vault) -> Queries:
    """Return a vault's saved queries, and the problems of their file."""
    path = queries_path(vault)
    data = read_if_there(path, vault.resolve(path))
    return parse_queries((data or b"").decode("utf-8", "replace"), path)


def parse_queries(text: str, path: str) -> Queries:
    """Read a file of queries; invalid ones are reported and skipped.

    Example:
        >>> parse_queries("- question: flaky tests\\n  expect: a\\n- 7\\n", "queries.yaml")
        Queries(queries=(SavedQuery(question='flaky tests', expect=('a',), ...),), problems=(Problem(path='queries.yaml', line=3, ...),))
    """
    queries: list[SavedQuery] = []
    problems: list[Problem] = []
    text = text.removeprefix("\ufeff")
    try:
        items = cut_list(text, ("queries",)) if len(text) <= _SCALE * MAX_BLOCK else None
        if items is None and load_mapping(text, _SCALE).get("queries") is not None:
            problems.append(Problem(path, 1, "is no list of queries; each begins with `- question:`"))
    except InvalidBlock as exc:
        wrong = "is no list of queries" if exc.what == NO_MAPPING else exc.what
        return Queries((), (Problem(path, exc.line + 1, f"the file {wrong}; no query of it is asked"),))
    for item in (items or ())[:_MOST_QUERIES]:
        found, faults = _read_query(item)
        queries += [found] if found else []
        problems += [Problem(path, item.line, fault) for fault in faults]
    if items and len(items) > _MOST_QUERIES:
        rest = items[_MOST_QUERIES].line
        problems.append(Problem(path, rest, f"has more than {_MOST_QUERIES:,} queries; the rest is not asked"))
    return Queries(tuple(queries), tuple(problems))


def _read_query(written: YamlItem) -> tuple[SavedQuery | None, list[str]]:
    """Return a query, None where it is none, and what is wrong with it."""
    try:
        item = load_mapping(written.text)
    except InvalidBlock:
        return None, ["is no query; it needs `question:` and `expect:`"]
    question = as_text(item.get("question")) or as_text(item.get("task"))
    if question is None:
        return None, ["the query has no question"]
    unknown = sorted(set(item) - _FIELDS)
    wrong = [f"the query has a field that means nothing: {', '.join(unknown)[:100]}"] if unknown else []
    for name, most in _MOST.items():
        value = item.get(name)
        if value is not None and (type(value) is not int or not 0 < value <= most):
            wrong.append(f"{name} {str(value)[:40]} is no number from 1 to {most:,}; read as not given")
            item[name] = None
    type_ = as_text(item.get("type"))
    query = SavedQuery(
        question,
        read_words(item.get("expect")),
        item.get("k") or K,
        as_text(item.get("task")),
        (*read_words(item.get("labels")), *([type_] if type_ else ())),
        read_words(item.get("files")),
        item.get("max_tokens"),
        written.line,
    )
    return query, wrong


def write_queries(queries: Sequence[SavedQuery]) -> str:
    """Return queries as the text of a file that reads back as the same."""
    from memory_kb.markdown.splice import emit

    return "".join(f"- question: {emit(one.question)}\n  expect: {emit(list(one.expect))}\n" for one in queries)


def names_entry(wanted: str, entry_id: str, path: str) -> bool:
    """Return whether an expected id, a beginning of one, or a path names an entry."""
    return wanted in (entry_id, path) or (len(wanted) >= _SHORTEST and entry_id.startswith(wanted))
