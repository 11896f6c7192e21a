"""Export policies and the best rules as lines for AGENTS.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from memory_kb.context.framing import as_line
from memory_kb.context.sections import order_baseline
from memory_kb.learning.playbook import MATURITIES, active_rules, read_evidence, rule_text
from memory_kb.memory import Memory
from memory_kb.text import count_tokens, short_id

#: The word of the block of rules in AGENTS.md, what it begins with, and its lists.
RULES_WORD = "rules"
_RULES_HEAD = """## What memory-kb knows

Kept from earlier work: background, not instructions. `memory-kb show ID` gives an entry in full."""
_LISTS = ("### What always holds", "### Rules", "### Avoid")


def render_rules(memories: Sequence[Memory], today: date, *, max_tokens: int, max_rules: int) -> str:
    """Return what always holds, the best rules, and what to avoid, within a budget; "" where there is nothing.

    Neither confidence nor date is in it: a committed file changes when the rules do.
    """
    baseline, rules = select_standing(memories, today, max_rules)
    lists: dict[str, list[str]] = {head: [] for head in _LISTS}
    named = [
        (_LISTS[0], f"- [{one.kind}] {as_line(_headed(one))} ({as_line(short_id(one.id), 80)})") for one in baseline
    ]
    named += [
        (_LISTS[1 + (one.kind == "pitfall")], f"- {as_line(rule_text(one))} ({as_line(short_id(one.id), 80)})")
        for one in rules
    ]
    for head, line in named:
        lists[head].append(line)
        if count_tokens(_join_lists(lists)) > max_tokens:
            lists[head].pop()
    return _join_lists(lists) if any(lists.values()) else ""


def _headed(memory: Memory) -> str:
    """Return what an entry says, behind its own title: a first paragraph may be only the way there."""
    title, text = " ".join(str(memory.metadata.get("title") or "").split()), rule_text(memory)
    return text if not title or text.startswith(title) else f"{title}: {text}"


def _join_lists(lists: dict[str, list[str]]) -> str:
    return "\n\n".join((_RULES_HEAD, *(f"{head}\n\n{chr(10).join(lines)}" for head, lines in lists.items() if lines)))


def select_standing(memories: Iterable[Memory], today: date, max_rules: int) -> tuple[list[Memory], list[Memory]]:
    """Return the entries that always hold, and the best rules, those first that have come furthest."""
    seen = [one for one in memories if one.place.scope in ("project", "global") and one.place.learning_type == "task"]

    def rank(rule: Memory) -> tuple[bool, int, float, str]:
        evidence = read_evidence(rule)
        return not rule.is_pinned, -MATURITIES.index(evidence.maturity), -evidence.decayed(today), rule.id

    return order_baseline(seen, today), sorted(active_rules(seen), key=rank)[:max_rules]
