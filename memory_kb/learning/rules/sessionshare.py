"""What hooks showed in a session: whose outcome tells of it, and what of it is credited already.

A hook does not know what a task will be called when it is over, so that what it shows belongs to
the session. There each entry is credited once, however many tasks the session does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from memory_kb.learning.rules.outcomes import Injected
from memory_kb.notes.outcomes import Outcome
from memory_kb.notes.retrievals import Retrieval
from memory_kb.text import tokens

#: The share of a task's words that a prompt must have to be about it.
_LIKE = 0.5


class Showing(NamedTuple):
    """What was shown, and the task of an agent that it counts for.

    Attributes:
        session: the session it belongs to; None where it belongs to the task by name.
        hooked: the agent whose hooks showed it, where it belongs to a session.
        since: when it was shown first.
    """

    agent: str
    task: str
    shown: Injected
    session: str | None = None
    hooked: str | None = None
    since: str = ""


class Candidate(NamedTuple):
    """A session of an agent, what it was asked there, and when something was heard of it last."""

    session: str
    prompts: tuple[str, ...]
    last: str
    is_running: bool = False


def task_of(session: str) -> str:
    """Return the task that credits of a whole session stand under.

    Example:
        >>> task_of("0b1c42")
        'session 0b1c42'
    """
    return f"session {session}"


def find_shares(retrievals: Iterable[Retrieval], session: str) -> tuple[Showing, ...]:
    """Return what hooks showed in a session, for each agent of it.

    Example:
        >>> log = [Retrieval("t1", "context", ("a",), agent="codex", session="s", injected=True)]
        >>> [(one.agent, one.task, one.shown.ids, one.since) for one in find_shares(log, "s")]
        [('codex', 'session s', ('a',), 't1')]
    """
    shown: dict[str, dict[str, None]] = {}
    first: dict[str, str] = {}
    for one in retrievals:
        if one.is_hooked and one.session == session:
            agent = one.agent or ""
            shown.setdefault(agent, {}).update(dict.fromkeys(one.ids))
            first.setdefault(agent, one.ts)
    return tuple(
        Showing(agent, task_of(session), Injected(tuple(ids), (session,)), session, agent, first[agent])
        for agent, ids in shown.items()
    )


def choose_session(task: str, candidates: Iterable[Candidate], since: str) -> str | None:
    """Return the session that a task was done in, as far as that can be told.

    It is one that runs, if one does; of several the one that was asked for it, else the one that
    something was heard of last. Where none runs it is one that was not over long before `since`,
    or was asked for the task in its very words.

    Example:
        >>> done = Candidate("a", ("Fix the webhook",), "2026-03-01T10"), Candidate("b", ("Write docs",), "2026-03-01T11")
        >>> choose_session("fix the webhook", done, "2026-03-01"), choose_session("tidy up", done, "2026-03-01")
        ('a', 'b')
        >>> choose_session("fix the webhook", done, "2026-04-01"), choose_session("tidy up", done, "2026-04-01")
        ('a', None)
    """
    held = list(candidates)
    pool = [one for one in held if one.is_running] or [
        one for one in held if one.last >= since or measure_likeness(task, one.prompts) == 1
    ]
    best = max(pool, key=lambda one: (measure_likeness(task, one.prompts), one.last, one.session), default=None)
    return best.session if best else None


def measure_likeness(task: str, prompts: Iterable[str]) -> float:
    """Return the share of a task's words that the nearest prompt has; 1 for the same words, 0 for less than half.

    Example:
        >>> measure_likeness("Fix the upload!", ["fix the  upload"]), measure_likeness("Fix it", ["Now fix the upload"])
        (1.0, 0.45)
        >>> measure_likeness("Tidy up everything", ["Now fix the upload"])
        0.0
    """
    wanted, best = tokens(task), 0.0
    for words in map(tokens, prompts):
        if wanted and wanted == words:
            return 1.0
        share = len(wanted & words) / len(wanted) if wanted else 0.0
        best = max(best, 0.9 * share if share >= _LIKE else 0.0)
    return best


def find_told(outcomes: Iterable[Outcome], showing: Showing) -> tuple[Outcome, ...]:
    """Return the outcomes that credited what was shown: of the task by name, and in its session.

    One that names no session may have told of the same work, so that those of the agent since the
    first showing count too.
    """
    agents = (showing.agent, showing.hooked)

    def is_about(one: Outcome) -> bool:
        if (one.agent, one.task) == (showing.agent, showing.task):
            return True
        if showing.session is None:
            return False
        return one.session == showing.session or (
            one.session is None and one.agent in agents and one.ts >= showing.since
        )

    return tuple(filter(is_about, outcomes))


def choose_new_marks(marks: Mapping[str, str], credits_: Collection[tuple[str, str]]) -> dict[str, str]:
    """Return the marks that are not credited yet: what an outcome said of an entry already is not said twice.

    Example:
        >>> choose_new_marks({"a": "success", "b": "failure", "c": "success"}, {("a", "success"), ("b", "success"), ("c", "mixed")})
        {'b': 'failure', 'c': 'success'}
    """
    return {name: credit for name, credit in marks.items() if (name, credit) not in credits_}


def split_pairs(retrievals: Sequence[Retrieval], session: str) -> tuple[tuple[str, str], ...]:
    """Return the tasks of agents that were shown something by name in a session."""
    shown = (one for one in retrievals if one.session == session and one.injected and one.agent and one.task)
    return tuple(dict.fromkeys((one.agent or "", one.task or "") for one in shown))
