"""Select what an agent is given when its session starts, whatever the task."""

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
from memory_kb.text import count_tokens

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

    def write(memory: Memory) -> str:
        return write_brief(memory, today)

    in_time = [one for one in material.institutional if "valid_until" not in one.metadata or claims.is_kept(one)]
    always = show_institutional(in_time, {})
    tail = _tail(material, today)
    room = max_chars - len(frame("")) - min(len(always.text), max_chars * 3 // 4) - 200 if max_chars else 4 * BUDGET
    budget = min(BUDGET, room // 4) - 24 - sum(count_tokens(one.text) + 2 for one in tail)
    kept_free = _FITTING if fitting else 0
    rules_first = order_by_use(material.rules, today)
    rules_cost = count_tokens(_RULES_HEAD) + sum(count_tokens(write(one)) + 1 for one in rules_first[:20])
    lines = EntryLines(budget, claims)
    core = order_by_use(material.core, today)
    left_out = {
        "of what always holds": lines.add("## Core Memory", core, write, keep_free=min(_RULES, rules_cost) + kept_free),
        "rules": lines.add(_RULES_HEAD, rules_first, write, keep_free=kept_free),
        "handoffs": max(0, len(material.handoffs) - _MOST_HANDOFFS),
    }
    lines.add("## For the task at hand", (one for one in fitting if one.id not in always.ids), write, most=3)
    said = ", ".join(f"{count} {name}" for name, count in left_out.items() if count)
    notice = f"Left out for room: {said}; `memory-kb list` shows all." if said else ""
    head = always.text
    rest = "\n\n".join(filter(None, (lines.text, *(one.text for one in tail), notice)))
    if head and max_chars and len(frame(f"{head}\n\n{rest}")) > max_chars:
        head = _cut_head(head, rest, material.institutional[-1].path, max_chars)
    text = "\n\n".join(filter(None, (head, rest)))
    ids = (*always.ids, *lines.ids, *(one for part in tail for one in part.ids))
    return Given(frame(text) if text else "", tuple(dict.fromkeys(ids)))


def _cut_head(head: str, rest: str, path: str, max_chars: int) -> str:
    """Return as much of `institutional.md` as fits beside the rest, and where it goes on."""
    end = f"\n… It goes on in {as_line(path, 200)}: read that file before you begin.\n--- end ---"
    cut = head[: max(0, max_chars - len(frame(f"{end}\n\n{rest}")))]
    return (cut.rpartition("\n")[0] or cut) + end


def _when(memory: Memory) -> tuple[str, str, str]:
    return memory.created_at or (memory.seen.isoformat() if memory.seen else ""), memory.path, memory.id


def _tail(material: StartMaterial, today: date) -> list[Given]:
    """Return what always has its place: open handoffs, the last episode, how many proposals wait."""
    tail: list[Given] = []
    if handoffs := material.handoffs[:_MOST_HANDOFFS]:
        lines = ("## Open handoffs", *(write_brief(one, today) for one in handoffs))
        tail.append(Given("\n".join(lines), tuple(one.id for one in handoffs)))
    if material.episode:
        tail.append(Given(f"## Last episode\n{write_brief(material.episode, today)}", (material.episode.id,)))
    if count := material.proposals:
        waiting = f"{count:,} proposal{'s wait' if count != 1 else ' waits'}"
        tail.append(Given(f"{waiting} for the person's review: `memory-kb review`."))
    return tail
