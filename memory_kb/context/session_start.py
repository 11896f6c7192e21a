"""Select what an agent is given when its session starts, whatever the task."""

import functools
from collections.abc import Collection, Sequence
from datetime import date
from typing import NamedTuple

from memory_kb.context.entry_lines import ClaimChecks, EntryLines, order_by_use, write_brief
from memory_kb.context.framing import Given, as_line, frame
from memory_kb.context.sections import order_baseline, order_institutional, show_institutional
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.learning.playbook import RULE_KINDS, active_rules, is_doubted, is_snoozed
from memory_kb.memory import Memory
from memory_kb.model import BASELINE_KINDS, EVERYTHING, LIVE_STATUSES, Filters
from memory_kb.text import count_tokens, pluralize

#: The most that the start of a session costs besides `institutional.md`, in tokens.
BUDGET = 1_500
#: What rules, and what fits the task at hand, keep free for themselves at most, with their headings.
_RULES, _FITTING = 355, 307
_RULES_HEAD = "## Rules in force"
_MOST_HANDOFFS = 3
_STATED = "user_explicit"
_NOT_STATED = frozenset({"episode", "handoff", "ledger"})


class StartMaterial(NamedTuple):
    """What the start of a session is made of; all of it visible from the project.

    `core` is what people stated, and preferences, policies and architecture of high priority; `episode` is the last
    one.
    """

    institutional: Sequence[Memory] = ()
    core: Sequence[Memory] = ()
    rules: Sequence[Memory] = ()
    handoffs: Sequence[Memory] = ()
    episode: Memory | None = None
    proposals: int = 0


def read_start(
    index: SqliteIndex,
    today: date,
    shown: Collection[str] = (),
    session: str | None = None,
    *,
    goes_on: bool = False,
) -> StartMaterial:
    """Read from the index what the start of a session is made of, and what of that was not shown yet.

    The episode of `session` itself is no news to it, and what was learned in it none where it goes on; that proposals
    wait is none where anything was shown.
    """
    live = tuple(sorted(LIVE_STATUSES))
    here = Filters(statuses=live, scopes=("project", "global"))

    def read(filters: Filters, origin: str | None = None) -> list[Memory]:
        found = [one for one in index.memories(filters, origin=origin) if one.id not in shown]
        return [one for one in found if one.word("session_id") != session] if goes_on and session else found

    proposed = read(EVERYTHING._replace(statuses=("proposed",)))
    tasks = here._replace(learning_types=("task",))
    stated = [one for one in read(tasks, _STATED) if one.kind not in _NOT_STATED and one.kind not in RULE_KINDS]
    baseline = order_baseline(read(tasks._replace(kinds=BASELINE_KINDS)), today)
    core = {(one.path, one.id): one for one in (*stated, *baseline) if one.may_be_given_unasked}
    rules = active_rules(read(tasks._replace(kinds=RULE_KINDS, statuses=(*live, "retired"))))
    handoffs = [one for one in read(tasks._replace(kinds=("handoff",))) if one.status == "active"]
    episode = max(index.memories(here._replace(kinds=("episode",))), key=_when, default=None)
    is_old = episode and (episode.id in shown or episode.is_episode_of(session))
    return StartMaterial(
        institutional=order_institutional(read(here._replace(learning_types=("institutional",)))),
        core=list(core.values()),
        rules=[one for one in rules if one.may_be_given_unasked and not is_doubted(one, today)],
        handoffs=sorted(handoffs, key=_when, reverse=True),
        episode=None if is_old else episode,
        proposals=0 if shown else sum(not is_snoozed(one, today) for one in proposed),
    )


def build_start(
    material: StartMaterial,
    fitting: Sequence[Memory],
    today: date,
    claims: ClaimChecks,
    max_chars: int | None = None,
) -> Given:
    """Return the text for the start of a session: `institutional.md` first and whole, the rest within a budget.

    `fitting` is what has to do with the task at hand, best first. Of an agent that cuts what is longer than `max_chars`
    the model gets as much as it takes, and where the rest is.
    """
    in_time = [one for one in material.institutional if "valid_until" not in one.metadata or claims.is_kept(one)]
    always = show_institutional(in_time, {})
    waits = "waits" if material.proposals == 1 else "wait"
    waiting = f"{pluralize(material.proposals, 'proposal')} {waits} for the person's review: `memory-kb review`."
    room = max_chars - len(frame("")) - min(len(always.text), max_chars * 3 // 4) - 200 if max_chars else 4 * BUDGET
    write = functools.partial(write_brief, today=today)
    # What always has its place comes last, and has the first of the room.
    tail = EntryLines(min(BUDGET, room // 4) - 24 - count_tokens(waiting), claims)
    tail.add("## Open handoffs", material.handoffs, write, most=_MOST_HANDOFFS)
    tail.add("## Last episode", filter(None, [material.episode]), write)
    lines = EntryLines(tail.left, claims)
    news = [one for one in fitting if one.id not in (*always.ids, *tail.ids)]
    notice = _fill_lines(lines, material, news, today)
    head = always.text
    rest = "\n\n".join(filter(None, (lines.text, tail.text, waiting if material.proposals else "", notice)))
    if head and max_chars and len(frame(f"{head}\n\n{rest}")) > max_chars:
        head = _cut_head(head, rest, material.institutional[-1].path, max_chars)
    text = "\n\n".join(filter(None, (head, rest)))
    return Given(frame(text) if text else "", tuple(dict.fromkeys((*always.ids, *lines.ids, *tail.ids))))


def _fill_lines(lines: EntryLines, material: StartMaterial, fitting: Sequence[Memory], today: date) -> str:
    """Add what always holds, rules, and what fits the task at hand; return what was left out, in a sentence."""
    write = functools.partial(write_brief, today=today)
    core, rules = order_by_use(material.core, today), order_by_use(material.rules, today)
    for_fitting = _FITTING if fitting else 0
    for_rules = min(_RULES, count_tokens(_RULES_HEAD) + sum(count_tokens(write(one)) + 1 for one in rules[:20]))
    left_out = {
        "of what always holds": lines.add("## Core Memory", core, write, keep_free=for_rules + for_fitting),
        "rules": lines.add(_RULES_HEAD, rules, write, keep_free=for_fitting),
        "handoffs": max(0, len(material.handoffs) - _MOST_HANDOFFS),
    }
    lines.add("## For the task at hand", fitting, write, most=3)
    said = ", ".join(f"{count} {name}" for name, count in left_out.items() if count)
    return f"Left out for room: {said}; `memory-kb list` shows all." if said else ""


def _cut_head(head: str, rest: str, path: str, max_chars: int) -> str:
    """Return as much of `institutional.md` as fits beside the rest, and where it goes on."""
    end = f"\n… It goes on in {as_line(path, 200)}: read that file before you begin.\n--- end ---"
    cut = head[: max(0, max_chars - len(frame(f"{end}\n\n{rest}")))]
    return (cut.rpartition("\n")[0] or cut) + end


def _when(memory: Memory) -> tuple[str, str, str]:
    return memory.created_at or (memory.seen.isoformat() if memory.seen else ""), memory.path, memory.id
