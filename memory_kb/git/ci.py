"""Standing queries, between two revisions."""

from __future__ import annotations

import difflib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from memory_kb.context.service import Context
from memory_kb.errors import UsageError
from memory_kb.model import EVERYTHING, Problem
from memory_kb.search.evaluation import CUTS, Outcome, Row, summarize
from memory_kb.store.queries import Queries, StandingQuery
from memory_kb.text import shorten

if TYPE_CHECKING:
    from memory_kb.context.service import Contexts
    from memory_kb.git.repository import Repository
    from memory_kb.git.service import Git
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.search.candidates import Request
    from memory_kb.search.evaluation import File, Outcome, Row
    from memory_kb.search.service import Searching
    from memory_kb.store.queries import Queries, StandingQuery
    from memory_kb.vault import Vault


@dataclass(frozen=True, slots=True)
class Asking:
    """What is asked of two revisions.

    Attributes:
        told: the queries that count: those of the later revision, and those that it lost by accident.
        unasked: those that were taken out while the others stayed; what becomes of them is told, and fails nothing.
        known: the questions that the earlier revision has.
        problems: what is to be fixed before anything is asked.
        notices: what else should be known.
    """

    told: tuple[StandingQuery, ...] = ()
    unasked: tuple[StandingQuery, ...] = ()
    known: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def of_head(self) -> Sequence[StandingQuery]:
        """What the later revision is asked."""
        return (*self.told, *self.unasked)

    @property
    def of_base(self) -> Sequence[StandingQuery]:
        """What the earlier one is asked."""
        return [one for one in self.of_head if one.question in self.known]


def arrange(old: Queries, new: Queries, path: str, max_tokens: int | None = None) -> Asking:
    """Return what to ask, so that no query gets lost with its file, or with a line of it that cannot be read.

    Example:
        >>> old = Queries((StandingQuery("a"), StandingQuery("b")))
        >>> [one.question for one in arrange(old, Queries((StandingQuery("a"),)), "q.yaml").told]
        ['a']
        >>> emptied = arrange(old, Queries(()), "q.yaml")
        >>> [one.question for one in emptied.told], emptied.problems[0].message
        (['a', 'b'], 'the standing queries are gone; the 2 that were asked before are asked still')
    """
    asked = {one.question for one in new.queries}
    gone = [one for one in old.queries if one.question not in asked]
    were_there = {one.message for one in old.problems}
    problems = tuple(one for one in new.problems if one.message not in were_there)
    is_emptied = bool(old.queries) and not new.queries
    kept = gone if problems or is_emptied else []
    if is_emptied and not problems:
        count = len(old.queries)
        said = f"the {count} that were asked before are" if count > 1 else "the one that was asked before is"
        problems = (Problem(path, 1, f"the standing queries are gone; {said} asked still"),)
    told = tuple(replace(one, max_tokens=one.max_tokens or max_tokens) for one in (*new.queries, *kept))
    notices = () if told or new.problems else (f"{path} has no queries; recall is not measured",)
    return Asking(told, () if kept else tuple(gone), frozenset(one.question for one in old.queries), problems, notices)


_NUMBERS = re.compile(r"\d[\d,]*")
#: What a context says of itself when it costs more than it should.
_TOO_LARGE = ("the institutional notes take", "not all policies fit into")


@dataclass(frozen=True, slots=True)
class ToldContext:
    """What an agent is told for one task."""

    text: str = ""
    ids: tuple[str, ...] = ()
    tokens: int = 0
    complaints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RevisionView:
    """One revision looked at.

    Attributes:
        name: what people call it.
        revision: the hash of its commit or tree.
        outcomes: of the standing queries, in their order.
        contexts: by the task.
        problems: secrets, dangling links, double ids, contradictions without a link.
        titles: what its entries are called, by id.
    """

    name: str
    revision: str
    outcomes: tuple[Outcome, ...] = ()
    contexts: Mapping[str, ToldContext] | None = None
    problems: tuple[Problem, ...] = ()
    titles: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class QueryChange:
    """One standing query before and after.

    Attributes:
        verdict: `lost`, `missing` for one that is new and finds nothing, `found` for one that does now, `fewer` where
            only some of what it found is found still, `moved` where another entry or rank answers, `same`,
            or `never` where neither finds what it should.
    """

    verdict: str
    before: Outcome | None
    after: Outcome


@dataclass(frozen=True, slots=True)
class ContextChange:
    """What an agent is told for one task before and after."""

    task: str
    before: ToldContext
    after: ToldContext

    @property
    def added(self) -> tuple[str, ...]:
        """The entries that it tells of now."""
        return tuple(one for one in self.after.ids if one not in self.before.ids)

    @property
    def removed(self) -> tuple[str, ...]:
        """The entries that it no longer tells of."""
        return tuple(one for one in self.before.ids if one not in self.after.ids)

    @property
    def is_same(self) -> bool:
        """Whether the text is the same to the letter."""
        return self.before.text == self.after.text


@dataclass(frozen=True, slots=True)
class CiReport:
    """What a change of the notes does.

    Attributes:
        rows: recall before and after, over the queries that both were asked.
        findings: what is to be fixed before this goes in.
        known: findings that were there before already; they fail nothing.
        unasked: questions that are no longer in the file.
        notices: what else should be known.
    """

    base: RevisionView
    head: RevisionView
    rows: tuple[Row, Row]
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


def compare(base: RevisionView, head: RevisionView, path: str, asking: Asking | None = None) -> CiReport:
    """Hold two revisions against each other.

    Args:
        base: the one before; it was asked the queries of the one after.
        head: the one after.
        path: the file of the queries, which lost answers are told at.
        asking: what both were asked, where it is not all that they answered.
    """
    asking = asking or Asking(tuple(one.query for one in head.outcomes))
    asked = {one.question for one in asking.told}
    rows = (
        summarize(side.name, [one for one in side.outcomes if one.query.question in asked]) for side in (base, head)
    )
    before = {one.query.question: one for one in base.outcomes}
    changes = [
        QueryChange(judge(before.get(one.query.question), one), before.get(one.query.question), one)
        for one in head.outcomes
    ]
    queries = [one for one in changes if one.after.query.question in asked]
    told = base.contexts or {}
    contexts = tuple(
        ContextChange(task, told.get(task, ToldContext()), after) for task, after in (head.contexts or {}).items()
    )
    new, known = split_problems(base.problems, head.problems)
    findings = [
        *asking.problems,
        *(_say_lost(one, path) for one in queries if one.verdict in ("lost", "missing")),
        *new,
    ]
    was_there = list(known)
    for change in contexts:
        old = {_NUMBERS.sub("", one) for one in change.before.complaints}
        for one in change.after.complaints:
            (was_there if _NUMBERS.sub("", one) in old else findings).append(Problem(path, 1, one))
    unasked = tuple(one.question for one in asking.unasked)
    notices = (
        *asking.notices,
        *(_say_unasked(one) for one in changes if one.after.query.question not in asked and one.verdict == "lost"),
    )
    return CiReport(
        base,
        head,
        (next(rows), next(rows)),
        tuple(queries),
        contexts,
        tuple(dict.fromkeys(findings)),
        tuple(dict.fromkeys(was_there)),
        unasked,
        notices,
    )


def _say_unasked(change: QueryChange) -> str:
    rank = change.before.rank if change.before else None
    return f"{change.after.query.question!r} is no longer asked, and would no longer find what it expects (was rank {rank})"


def judge(before: Outcome | None, after: Outcome) -> str:
    """Return how the answer to a query changed.

    Example:
        >>> from memory_kb.store.queries import StandingQuery
        >>> query = StandingQuery("q", ("x",))
        >>> judge(Outcome(query, {"x": 2}), Outcome(query, {"x": 11})), judge(None, Outcome(query, {"x": None}))
        ('lost', 'missing')
    """
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
    query = change.after.query
    wanted = ", ".join(query.expect)
    if change.before is None:
        return Problem(
            path, query.line, f"the new query {query.question!r} finds none of {wanted} among its first {query.k} hits"
        )
    return Problem(
        path,
        query.line,
        f"{query.question!r} no longer finds any of {wanted} among its first {query.k} hits (was rank {change.before.rank})",
    )


def complain(context: Context, most: int | None, task: str) -> tuple[str, ...]:
    """Return in which ways a context costs more than it may.

    Args:
        context: what an agent is told.
        most: the tokens it may cost; None for no bound of its own.
        task: what it is for.
    """
    found = [one for one in context.degraded if one.startswith(_TOO_LARGE)]
    if most is not None and context.tokens > most:
        found.append(f"the context for {task!r} takes {context.tokens:,} tokens and may take {most:,}")
    return tuple(found)


def split_problems(
    before: Iterable[Problem], after: Sequence[Problem]
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Return which problems are new and which were there, whatever line or file they are at now.

    Example:
        >>> old = [Problem("a.md", 3, "the wikilink to 'x' leads to no entry")]
        >>> [len(side) for side in split_problems(old, [Problem("b.md", 9, old[0].message), Problem("c.md", 1, old[0].message)])]
        [1, 1]
    """
    old = list(before)
    places = Counter((one.path, _NUMBERS.sub("", one.message)) for one in old)
    messages = Counter(_NUMBERS.sub("", one.message) for one in old)
    known: list[Problem] = []
    left: list[Problem] = []
    for one in after:
        key = (one.path, _NUMBERS.sub("", one.message))
        if places[key]:
            places[key] -= 1
            messages[key[1]] -= 1
            known.append(one)
        else:
            left.append(one)
    new: list[Problem] = []
    for one in left:
        message = _NUMBERS.sub("", one.message)
        (known if messages[message] > 0 else new).append(one)
        messages[message] -= 1
    return tuple(new), tuple(known)


#: What code hosts take for one comment, with room to spare; characters.
MOST = 60_000
_MOST_LISTED, _LONG = 50, 160
_SIGNS = re.compile(r"([\\`*_\[\]#|~])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_MARKS = {
    "lost": "❌ lost",
    "missing": "❌ not found",
    "found": "✅ found now",
    "fewer": "⚠️ finds fewer",
    "moved": "moved",
    "same": "same",
    "never": "⚠️ never found",
}


def as_markdown(report: CiReport) -> str:
    """Return the report; long differences of contexts are left out before it gets longer than a comment may be."""
    text = "\n".join(_lines(report, with_text=True))
    if len(text) <= MOST:
        return text + "\n"
    short = "\n".join(
        (
            *_lines(report, with_text=False),
            "",
            "The texts of the contexts are left out: the report would be too long for a comment.",
        )
    )
    return shorten_lines(short, MOST) + "\n"


def shorten_lines(text: str, most: int) -> str:
    r"""Return the first lines of a text that fit.

    Example:
        >>> shorten_lines("one\ntwo\nthree", 9)
        'one\n…'
    """
    if len(text) <= most:
        return text
    return text[: text.rfind("\n", 0, most - 2)] + "\n…"


def escape(text: str) -> str:
    """Return a text on one line that Markdown shows as it is; it mentions nobody.

    Example:
        >>> escape("a | *b* <i> @team\\n# c")
        'a \\\\| \\\\*b\\\\* &lt;i&gt; &#64;team \\\\# c'
    """
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return "".join(_ENTITIES.get(sign, sign) for sign in _SIGNS.sub(r"\\\1", shorten(line, _LONG)))


def _lines(report: CiReport, *, with_text: bool) -> Iterator[str]:
    titles = {**(report.base.titles or {}), **(report.head.titles or {})}
    verdict = "nothing to mend" if report.is_sound else f"{len(report.findings)} to mend"
    yield f"## {'✅' if report.is_sound else '❌'} Memories: {verdict}"
    yield ""
    yield f"{escape(report.base.name)} (`{report.base.revision[:12]}`) → {escape(report.head.name)} (`{report.head.revision[:12]}`)"
    yield from _list("To mend", [f"`{_code(one.path)}:{one.line}` {escape(one.message)}" for one in report.findings])
    yield from _recall(report)
    yield from _queries(report.queries, titles)
    yield from _contexts(report.contexts, titles, with_text=with_text)
    yield from _list("No longer asked", [escape(question) for question in report.unasked])
    yield from _list(
        "Was there before, and fails nothing",
        [f"`{_code(one.path)}:{one.line}` {escape(one.message)}" for one in report.known],
    )
    yield from _list("Notes", [escape(notice) for notice in report.notices])


def _code(text: str) -> str:
    return "".join(sign if sign.isprintable() and sign != "`" else "?" for sign in text)


def _list(head: str, items: Sequence[str]) -> Iterator[str]:
    if not items:
        return
    yield ""
    yield f"### {head}"
    yield ""
    yield from (f"- {item}" for item in items[:_MOST_LISTED])
    if len(items) > _MOST_LISTED:
        yield f"- and {len(items) - _MOST_LISTED} more"


def _recall(report: CiReport) -> Iterator[str]:
    before, after = report.rows
    if not after.questions:
        return
    yield ""
    yield "### Recall"
    yield ""
    yield f"| | questions | {' | '.join(f'recall@{cut}' for cut in CUTS)} | hit@{CUTS[-1]} | MRR |"
    yield f"|---|{'---:|' * (len(CUTS) + 3)}"
    for name, row in (("before", before), ("after", after)):
        if row.questions:
            yield f"| {name} | {row.questions} | {' | '.join(f'{row.recall[cut]:.2f}' for cut in CUTS)} | {row.hits[CUTS[-1]]:.2f} | {row.mrr:.2f} |"


def _queries(changes: Sequence[QueryChange], titles: Mapping[str, str]) -> Iterator[str]:
    shown = [change for change in changes if change.verdict != "same"]
    if not changes:
        return
    yield ""
    yield "### Standing queries"
    yield ""
    if not shown:
        yield f"All {len(changes)} answer as before."
        return
    yield "| query | | rank before | rank after | first hit after |"
    yield "|---|---|---:|---:|---|"
    for change in shown[:_MOST_LISTED]:
        first = change.after.top[0] if change.after.top else None
        name = escape(titles.get(first, first)) if first else "nothing"
        ranks = " | ".join((_rank(change.before), _rank(change.after)))
        yield f"| {escape(change.after.query.question)} | {_MARKS[change.verdict]} | {ranks} | {name} |"
    same = len(changes) - len(shown)
    if same or len(shown) > _MOST_LISTED:
        yield ""
        yield f"{same} answer as before{f', {len(shown) - _MOST_LISTED} more are not listed' if len(shown) > _MOST_LISTED else ''}."


def _rank(outcome: Outcome | None) -> str:
    return "new" if outcome is None else "–" if outcome.rank is None else str(outcome.rank)


def _contexts(changes: Sequence[ContextChange], titles: Mapping[str, str], *, with_text: bool) -> Iterator[str]:
    shown = [change for change in changes if not change.is_same]
    if not changes:
        return
    yield ""
    yield "### What agents are told"
    yield ""
    if not shown:
        yield f"All {len(changes)} contexts are as before."
        return
    for change in shown[:_MOST_LISTED]:
        counts = f"{change.before.tokens:,} → {change.after.tokens:,} tokens"
        yield f"- **{escape(change.task)}**: {counts}"
        for sign, ids in (("+", change.added), ("−", change.removed)):
            yield from (
                f"  - {sign} {escape(titles.get(one, one))} (`{_code(one)[:60]}`)" for one in ids[:_MOST_LISTED]
            )
        if with_text:
            yield from _difference(change)
    same = len(changes) - len(shown)
    if same:
        yield f"- {same} more are as before."


def _difference(change: ContextChange) -> Iterator[str]:
    lines = list(
        difflib.unified_diff(
            change.before.text.splitlines(), change.after.text.splitlines(), "before", "after", lineterm="", n=2
        )
    )
    fence = "`" * max(3, *(len(run) + 1 for line in lines for run in re.findall(r"`+", line)), 3)
    yield ""
    yield "  <details><summary>text</summary>"
    yield ""
    yield f"  {fence}diff"
    yield from (f"  {''.join(sign if sign.isprintable() or sign == ' ' else ' ' for sign in line)}" for line in lines)
    yield f"  {fence}"
    yield ""
    yield "  </details>"
    yield ""


_ONLY_TOUCHED = "only what the change can touch was examined; --strict examines everything"
#: A path, perhaps a line, and what is said of it.
_PLACE = re.compile(r"([^\s:]+):(?:(\d+):)? (.*)", re.DOTALL)
#: Further than this the rank of an expected entry is not looked for.
_DEPTH = 50
#: So many times as many proposals are tried as are wanted.
_TRIED = 3


@dataclass(frozen=True, slots=True)
class EvalReport:
    """How well a vault answers its standing queries.

    Attributes:
        path: their file.
        rows: ways to search, each with its means: ours, by words alone where that is another, and grep.
        outcomes: of the first row, in the order of the file.
        problems: what is wrong with the file, and what it expects that is nowhere.
        degraded: what the search lacked.
    """

    path: str
    rows: tuple[Row, ...]
    outcomes: tuple[Outcome, ...]
    problems: tuple[Problem, ...] = ()
    degraded: tuple[str, ...] = ()

    @property
    def missed(self) -> tuple[Outcome, ...]:
        """The questions that found none of what they expect."""
        return tuple(one for one in self.outcomes if one.query.expect and not one.is_found)


class Evaluation:
    """The verbs eval and ci."""

    def __init__(
        self,
        vault: Vault,
        index: VaultIndex,
        contexts: Contexts,
        git: Git,
        searching: Searching,
        open_past: Callable[[Vault], PastVault],
    ) -> None:
        self._vault = vault
        self._index = index
        self._contexts = contexts
        self._git = git
        self._searching = searching
        self._open_past = open_past

    def eval(self) -> EvalReport:
        """Ask the standing queries of `queries.yaml` and measure what is found, beside grep.

        Nothing of it counts as use.

        Raises:
            UsageError: there are no queries.
        """
        from memory_kb.index.doctor import check_queries
        from memory_kb.search.candidates import Request
        from memory_kb.search.evaluation import grep, summarize

        queries = self.standing_queries()
        if not queries.queries and not queries.problems:
            raise UsageError(
                f"there are no standing queries in {self._queries_path}", "`memory-kb eval --propose 10` proposes some"
            )
        depth = max([_DEPTH, *(one.k for one in queries.queries)])
        modes: dict[str, list[Outcome]] = {}
        degraded: dict[str, None] = {}
        for one in queries.queries:
            for mode in ("auto", "text"):
                outcome, used, reasons = self._answer(one, Request(one.question, limit=depth, mode=mode))
                modes.setdefault(mode, []).append(outcome)
                degraded |= dict.fromkeys(reasons)
                if used == "text":
                    break
        files = self._index.read(self._files)
        rows = [summarize("memory-kb", modes.get("auto", ()))]
        if "text" in modes and len(modes["text"]) == len(modes["auto"]):
            rows.append(summarize("memory-kb, words alone", modes["text"]))
        rows.append(summarize("grep", [grep(one, files) for one in queries.queries]))
        problems = tuple(self._index.read(lambda index: check_queries(self._vault, index)))
        return EvalReport(self._queries_path, tuple(rows), tuple(modes.get("auto", ())), problems, tuple(degraded))

    def eval_propose(self, count: int) -> tuple[StandingQuery, ...]:
        """Propose standing queries from what people asked and from what the notes say; nothing is written.

        Each of them finds today what it expects.
        """
        from memory_kb.search.candidates import Request
        from memory_kb.search.evaluation import propose_queries
        from memory_kb.search.query import parse_query
        from memory_kb.store.logs import RetrievalLog
        from memory_kb.store.plan import make_memory

        known = self.standing_queries().queries
        asked = tuple(RetrievalLog(self._vault.machine / "log").read())

        def propose(index: SqliteIndex) -> Sequence[StandingQuery]:
            def frequency(word: str) -> int:
                query = parse_query(word)
                return 0 if query.is_empty else index.frequency(query.expression)

            memories = tuple(map(make_memory, index.memories(EVERYTHING)))
            return propose_queries(memories, asked, frequency, known, _TRIED * count)

        found = (
            one
            for one in self._index.read(propose)
            if self._answer(one, Request(one.question, limit=one.k))[0].is_found
        )
        return tuple(itertools.islice(found, count))

    def ci(
        self, range: str | None = None, *, staged: bool = False, max_tokens: int | None = None, strict: bool = False
    ) -> CiReport:
        """Return what a change of the notes does to recall, to contexts, and to what is wrong with them.

        The queries are those of the later revision, and those of the earlier where the later's are gone or cannot be
        read; the settings are those of each, under the person's own. The global home plays no part, and the ages of
        both count to today. What was wrong before already fails nothing. Without standing queries only the notes that
        the change can make a difference to are examined.

        Args:
            range: `BASE..HEAD`; `BASE...HEAD` begins where the two parted, `BASE` alone ends at HEAD.
            staged: from HEAD to what is staged for a commit, instead.
            max_tokens: what any context may cost.
            strict: examine every note; what was wrong before fails too.

        Raises:
            UsageError: no range, or no such revisions.
            NoRepository: the vault is in no git repository.
            GitFailed: git cannot read the revisions.
        """
        from memory_kb.git.touched import find_touched

        if (range is None) == (not staged):
            raise UsageError("nothing says what to compare", "try: memory-kb ci main..HEAD, or: memory-kb ci --staged")
        repository = self._git.repository()
        sides = _staged(repository) if staged else _split(repository, range or "")
        no_home = self._vault.machine / "revisions" / ".no-home"
        touched = None if strict else find_touched(repository, self._vault, sides[0][1], sides[1][1])
        opened = [
            self._open_past(
                self._git.past_vault(
                    repository, revision, self._vault.clock, no_home, touched.around if touched else None
                )
            )
            for _, revision in sides
        ]
        try:
            old, new = (past.evaluation.standing_queries() for past in opened)
            asking = arrange(old, new, self._queries_path, max_tokens)
            base, head = (
                past.evaluation.observe(
                    name, revision, asking.of_head if past is opened[1] else asking.of_base, asking.told
                )
                for past, (name, revision) in zip(opened, sides, strict=True)
            )
        finally:
            for past in opened:
                past.close()
        report = compare(base, head, self._queries_path, asking)
        broken = self._find_broken(repository, sides[0][1], sides[1][1])
        report = replace(report, findings=(*report.findings, *broken))
        if touched:
            known = tuple(one for one in report.known if one.path in touched.changed)
            return replace(report, known=known, notices=(*report.notices, _ONLY_TOUCHED))
        return replace(report, findings=(*report.findings, *report.known), known=()) if strict else report

    def _find_broken(self, repository: Repository, base: str, head: str) -> tuple[Problem, ...]:
        """Return where a change breaks what a rule in force forbids or requires of the project's files."""
        from memory_kb.git.backtest import find_breaches
        from memory_kb.learning.guards import guarding_rules, read_guard

        rules = self._index.read(lambda index: guarding_rules(index, ("project",)))
        folder = repository.inner(self._vault.folder)
        project = f"{folder}/" if folder and folder != "." else ""
        problems = list[Problem]()
        for rule in rules:
            try:
                found = find_breaches(repository, read_guard(rule), base, head, project)
            except UsageError as exc:
                problems.append(Problem(rule.path, rule.line, str(exc)))
                continue
            said = " ".join(rule.text.split())[:200]
            problems += [Problem(one.path, one.line, f"breaks rule {rule.id}: {said}") for one in found]
        return tuple(problems)

    @property
    def _queries_path(self) -> str:
        from memory_kb.index.doctor import queries_path

        return queries_path(self._vault)

    def standing_queries(self) -> Queries:
        """Return the standing queries of this vault."""
        from memory_kb.index.doctor import read_queries

        return read_queries(self._vault)

    def _answer(self, query: StandingQuery, request: Request) -> tuple[Outcome, str, tuple[str, ...]]:
        """Return where a question finds what it should, how it was searched for, and what the search lacked."""
        from memory_kb.search.evaluation import measure

        result = self._index.use(lambda index: self._searching.answer(index, request, sync=True, progress=None))
        return measure(query, result.hits), result.mode, result.degraded

    def _files(self, index: SqliteIndex) -> Sequence[File]:
        """Return the notes as grep sees them."""
        from memory_kb.search.evaluation import File
        from memory_kb.store.files import read_if_there

        ids: dict[str, list[str]] = {}
        for entry in index.entries(EVERYTHING):
            ids.setdefault(entry.source, []).append(entry.entry_id)
        read = ((path, read_if_there(path, self._vault.resolve(path))) for path in ids)
        return [
            File(path, data.decode("utf-8", "replace"), tuple(ids[path])) for path, data in read if data is not None
        ]

    def observe(
        self, name: str, revision: str, asked: Sequence[StandingQuery], told: Sequence[StandingQuery]
    ) -> RevisionView:
        """Return all that is compared of this vault."""
        from memory_kb.search.candidates import Request

        outcomes = tuple(self._answer(one, Request(one.question, limit=max(_DEPTH, one.k)))[0] for one in asked)
        contexts = {one.task or one.question: self._told(one) for one in told}
        problems, titles = self._index.read(self._examine)
        return RevisionView(name, revision, outcomes, contexts, problems, titles)

    def _told(self, query: StandingQuery) -> ToldContext:

        task = query.task or query.question
        context = self._contexts.context(task, labels=query.labels, files=query.files)
        return ToldContext(context.text, context.ids, context.tokens, complain(context, query.max_tokens, task))

    def _examine(self, index: SqliteIndex) -> tuple[tuple[Problem, ...], dict[str, str]]:
        """Return what is wrong with the notes beyond their fields, and what the entries are called."""
        from memory_kb.index.doctor import check_queries, cross_check
        from memory_kb.learning.contradictions import find_contradictions
        from memory_kb.model import Problem
        from memory_kb.store.plan import make_memory

        memories = tuple(map(make_memory, index.memories(EVERYTHING)))
        problems = [
            *map(_unusable, self._vault.warnings),
            *check_queries(self._vault, index),
            *cross_check(self._vault, index),
        ]
        flagged = {one.path for one in problems if "looks like" in one.message}
        problems += [one for one in self._raw_problems(index) if one.path not in flagged]
        for one in find_contradictions(memories):
            sides = f"{one.older.id} ({one.older.title}) and {one.newer.id} ({one.newer.title})"
            problems.append(
                Problem(
                    one.newer.path, one.newer.line, f"{sides} contradict each other, and no link says so: {one.signal}"
                )
            )
        return tuple(problems), {memory.id: memory.title for memory in memories}

    def _raw_problems(self, index: SqliteIndex) -> Iterator[Problem]:
        """Yield secrets that stand where the index has no eye on them, and conflicts that nobody settled."""
        from memory_kb.credentials import describe_secret, locate_secret
        from memory_kb.model import Problem

        for file in self._files(index):
            found = locate_secret(file.text)
            if found:
                yield Problem(file.path, found.line, describe_secret(found).replace("the text", "the file", 1))
                continue
            for number, line in enumerate(file.text.splitlines(), 1):
                if line.startswith(("<<<<<<< ", ">>>>>>> ")):
                    yield Problem(file.path, number, "a conflict of a merge is not settled here")
                    break


def _unusable(warning: str) -> Problem:
    """Return what is wrong with the settings of a revision, at the line that it names."""
    from memory_kb.model import Problem

    found = _PLACE.match(warning)
    return Problem(found[1], int(found[2] or 1), found[3]) if found else Problem("memory/config.yaml", 1, warning)


def _split(repository: Repository, range: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the two revisions of a range, each with its name."""
    base, dots, head = range.partition("...") if "..." in range else range.partition("..")
    names = base or "HEAD", head or "HEAD"
    one, other = (repository.find(name) for name in names)
    if dots == "...":
        one = repository.merge_base(one, other)
    return (names[0], one), (names[1], other)


def _staged(repository: Repository) -> tuple[tuple[str, str], tuple[str, str]]:
    base = ("HEAD", repository.find("HEAD")) if repository.has_commits else ("nothing", repository.empty_tree())
    return base, ("what is staged", repository.staged_tree())


class PastVault(Protocol):
    """A vault of the past, as far as it is evaluated."""

    @property
    def evaluation(self) -> Evaluation:
        """How well it answers its standing queries."""

    def close(self) -> None:
        """Close its index."""
