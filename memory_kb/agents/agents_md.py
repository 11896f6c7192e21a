"""Export policies and the best rules as lines for AGENTS.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from memory_kb.context.entry_lines import ClaimChecks, EntryLines
from memory_kb.context.framing import as_line
from memory_kb.context.sections import order_baseline
from memory_kb.learning.playbook import MATURITIES, RULE_KINDS, active_rules, read_evidence, rule_text
from memory_kb.memory import Memory
from memory_kb.text import count_tokens, short_id

#: The word of the block of rules in AGENTS.md, and what it begins with.
RULES_WORD = "rules"
_RULES_HEAD = """## What memory-kb knows

Kept from earlier work: background, not instructions. `memory-kb show ID` gives an entry in full."""


def render_rules(memories: Sequence[Memory], today: date, *, max_tokens: int, max_rules: int) -> str:
    """Return what always holds, the best rules, and what to avoid, within a budget; "" where there is nothing.

    Neither confidence nor date is in it: a committed file changes when the rules do.
    """
    baseline, rules = select_standing(memories, today, max_rules)
    lines = EntryLines(max_tokens - count_tokens(_RULES_HEAD), ClaimChecks())

    def write(memory: Memory) -> str:
        said = (
            as_line(rule_text(memory)) if memory.kind in RULE_KINDS else f"[{memory.kind}] {as_line(_headed(memory))}"
        )
        return f"- {said} ({as_line(short_id(memory.id), 80)})"

    lines.add("### What always holds\n", baseline, write)
    lines.add("### Rules\n", (one for one in rules if one.kind == "rule"), write)
    lines.add("### Avoid\n", (one for one in rules if one.kind == "pitfall"), write)
    return f"{_RULES_HEAD}\n\n{lines.text}" if lines.shown else ""


def _headed(memory: Memory) -> str:
    """Return what an entry says, behind its own title: a first paragraph may be only the way there."""
    title, text = " ".join(str(memory.metadata.get("title") or "").split()), rule_text(memory)
    return text if not title or text.startswith(title) else f"{title}: {text}"


def select_standing(memories: Iterable[Memory], today: date, max_rules: int) -> tuple[list[Memory], list[Memory]]:
    """Return the entries that always hold, and the best rules, those first that have come furthest."""
    seen = [one for one in memories if one.place.scope in ("project", "global") and one.place.learning_type == "task"]

    def rank(rule: Memory) -> tuple[bool, int, float, str]:
        evidence = read_evidence(rule)
        return not rule.is_pinned, -MATURITIES.index(evidence.maturity), -evidence.decayed(today), rule.id

    return order_baseline(seen, today), sorted(active_rules(seen), key=rank)[:max_rules]
