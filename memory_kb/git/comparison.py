"""Compare two revisions of a vault: recall, contexts and findings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memory_kb.context.sections import Context
from memory_kb.git.metrics import MethodScore, QuestionResult, average_results
from memory_kb.model import Problem
from memory_kb.store.saved_queries import Queries

_NUMBERS = re.compile(r"\d[\d,]*")


@dataclass(frozen=True, slots=True)
class RevisionView:
    """What is compared of one revision, the hash of a commit or tree.

    `problems` are secrets, dangling links, double ids, contradictions without a link, contexts over their budget;
    `titles` is what its entries are called, by id.
    """

    name: str
    revision: str
    saved: Queries = field(default_factory=lambda: Queries(()))
    outcomes: tuple[QuestionResult, ...] = ()
    contexts: Mapping[str, Context] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueryChange:
    """One saved query before and after.

    The verdict is `lost`, `missing` for one that is new and finds nothing, `found` for one that does now, `fewer` where
    only some of what it found is found still, `moved` where another entry or rank answers, `same`, or `never` where
    neither finds what it should.
    """

    verdict: str
    before: QuestionResult | None
    after: QuestionResult


@dataclass(frozen=True, slots=True)
class ContextChange:
    """What an agent is given for one task before and after."""

    task: str
    before: Context
    after: Context

    @property
    def added(self) -> tuple[str, ...]:
        """The entries that it mentions now."""
        return tuple(one for one in self.after.ids if one not in self.before.ids)

    @property
    def removed(self) -> tuple[str, ...]:
        """The entries that it no longer mentions."""
        return tuple(one for one in self.before.ids if one not in self.after.ids)

    @property
    def is_same(self) -> bool:
        """Whether the text is the same to the letter."""
        return self.before.text == self.after.text


@dataclass(frozen=True, slots=True)
class CiReport:
    """The effects of a change of the notes.

    `rows` is recall before and after, over the queries that both were asked; `findings` is to be fixed before this goes
    in, `known` was there before already and fails nothing. `unasked` are questions that are no longer in the file.
    """

    base: RevisionView
    head: RevisionView
    rows: tuple[MethodScore, MethodScore]
    queries: tuple[QueryChange, ...] = ()
    contexts: tuple[ContextChange, ...] = ()
    findings: tuple[Problem, ...] = ()
    known: tuple[Problem, ...] = ()
    unasked: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nothing has to be fixed."""
        return not self.findings


def compare_revisions(base: RevisionView, head: RevisionView, path: str) -> CiReport:
    """Compare two revisions; `path` is the file of the saved queries."""
    before = {one.query.question: one for one in base.outcomes}
    pairs = [(before.get(after.query.question), after) for after in head.outcomes]
    queries = tuple(QueryChange(_judge(old, after), old, after) for old, after in pairs)
    contexts = tuple(ContextChange(task, base.contexts[task], given) for task, given in head.contexts.items())
    new, known = split_problems(base.problems, head.problems)
    were_asked, are_asked = ([one.question for one in side.saved.queries] for side in (base, head))
    were_there = {one.message for one in base.saved.problems}
    unread = [one for one in head.saved.problems if one.message not in were_there]
    if were_asked and not are_asked and not unread:
        unread = [Problem(path, 1, f"the saved queries are gone; there were {len(were_asked)}")]
    has_none = not (were_asked or are_asked or head.saved.problems)
    lost = [_say_lost(one, path) for one in queries if one.verdict in ("lost", "missing")]
    return CiReport(
        base,
        head,
        (average_results(base.name, base.outcomes), average_results(head.name, head.outcomes)),
        queries,
        contexts,
        tuple(dict.fromkeys((*unread, *lost, *new))),
        tuple(dict.fromkeys(known)),
        unasked=tuple(one for one in were_asked if one not in are_asked),
        notices=(f"{path} has no queries; recall is not measured",) if has_none else (),
    )


def _judge(before: QuestionResult | None, after: QuestionResult) -> str:
    """Return how the answer to a query changed."""
    if not after.query.expect:
        return "same" if before is not None and before.top == after.top else "moved"
    if after.is_found:
        if before is None or not before.is_found:
            return "found"
        most = after.query.k
        return "same" if before.ranks == after.ranks else "fewer" if after.count(most) < before.count(most) else "moved"
    if before is None:
        return "missing"
    return "lost" if before.is_found else "never"


def _say_lost(change: QueryChange, path: str) -> Problem:
    query, old = change.after.query, change.before
    wanted = f"{', '.join(query.expect)} among its first {query.k} hits"
    said = f"the new query {query.question!r} finds none of {wanted}"
    if old is not None:
        said = f"{query.question!r} no longer finds any of {wanted} (was rank {old.rank})"
    return Problem(path, query.line, said)


def split_problems(
    before: Iterable[Problem], after: Sequence[Problem]
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Return which problems are new and which existed before, even if their line or file has changed.

    Example:
        >>> old = [Problem("a.md", 3, "the wikilink to 'x' leads to no entry")]
        >>> [len(side) for side in split_problems(old, [Problem("b.md", 9, old[0].message), Problem("c.md", 1, old[0].message)])]
        [1, 1]
    """
    old = [(one.path, _NUMBERS.sub("", one.message)) for one in before]
    places, left = set(old), Counter(message for _, message in old)
    said = [(one, _NUMBERS.sub("", one.message)) for one in after]
    # Those that are where they were come first: of two that say the same, a new one is the other.
    said.sort(key=lambda item: (item[0].path, item[1]) not in places)
    new, known = list[Problem](), list[Problem]()
    for one, message in said:
        (known if left[message] > 0 else new).append(one)
        left[message] -= 1
    return tuple(new), tuple(known)
