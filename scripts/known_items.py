"""How prominence changes what is found: known items of a vault whose entries have counts and ages."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from memory_kb import KnowledgeBase
from memory_kb.model import Hit
from memory_kb.reports import EntryView

EXPONENTS = (0.0, 0.1, 0.15, 0.2, 0.25, 0.5, 1.0)
#: Days from now at which a stale entry is looked for.
DAYS = (0, 90, 180, 365)
WORDS, MOST, LIMIT = 4, 300, 20
_FRONTMATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"[^\W\d_]{3,}")

OpenVault = Callable[[Mapping[str, str]], KnowledgeBase]


class Item(NamedTuple):
    """An entry and words that it should be found by."""

    entry: str
    query: str


def known_items(entries: Sequence[EntryView], text_of: Callable[[str], str]) -> Iterator[Item]:
    """Yield some words, in their order, out of a sentence from the middle of each of up to `MOST` entries."""
    rng = random.Random(7)
    for entry in sorted(rng.sample(list(entries), min(MOST, len(entries))), key=lambda one: (one.path, one.line)):
        body = _FRONTMATTER.sub("", text_of(entry.id))
        lines = [line for line in _SENTENCE.split(body) if not line.lstrip().startswith(("#", "|", ">", "```"))]
        sentences = [words for line in lines if len(words := _WORD.findall(line)) > WORDS]
        if sentences:
            words = sentences[len(sentences) // 2]
            yield Item(entry.id, " ".join(words[place] for place in sorted(rng.sample(range(len(words)), WORDS))))


def measure_exponent(kb: KnowledgeBase, items: Sequence[Item], stale: Collection[str]) -> dict[str, float]:
    """Return where items are found, and how many pairs of hits break a rule of prominence.

    `far`: relevance of up to .45 above one of 1. `near`: within 5 % of relevance and in the same scope, the
    entry less than half as prominent first; variety is off, and only the first hit of each entry is looked at,
    none of what is superseded.
    """
    ranks: list[int | None] = []
    far = near = 0
    for item in items:
        if item.entry in stale:
            continue
        hits = kb.search(item.query, limit=LIMIT, sync=False).hits
        ranks.append(next((hit.rank for hit in hits if hit.id == item.entry), None))
        first: dict[str, Hit] = {}
        for hit in hits:
            first.setdefault(hit.id, hit)
        live = [hit for hit in first.values() if hit.id not in stale]
        pairs = [(above, below) for place, above in enumerate(live) for below in live[place + 1 :]]
        far += sum(above.parts.relevance <= 0.45 and below.parts.relevance >= 1.0 for above, below in pairs)
        near += sum(_is_upside_down(above, below) for above, below in pairs)
    count = max(1, len(ranks))
    found = {f"in {most}": sum(rank is not None and rank <= most for rank in ranks) / count for most in (1, 3, 10)}
    mrr = sum(1 / rank for rank in ranks if rank) / count
    return {**found, "MRR": mrr, "far": float(far), "near": float(near)}


def _is_upside_down(above: Hit, below: Hit) -> bool:
    is_alike = above.scope == below.scope and above.id != below.id
    is_near = below.parts.relevance >= 0.95 * above.parts.relevance
    return is_alike and is_near and below.parts.prominence >= 2 * above.parts.prominence


def successors(entries: Sequence[EntryView]) -> dict[str, str]:
    """Return the entries that say they are superseded, with the entry that did."""
    here = {entry.id for entry in entries}
    links = [
        (entry.id, link) for entry in entries for link in entry.metadata.get("links") or () if isinstance(link, dict)
    ]
    return {
        old: str(link.get("to"))
        for old, link in links
        if link.get("relation") == "superseded_by" and link.get("to") in here
    }


def measure_prominence(open_vault: OpenVault) -> dict[str, Any]:
    """Return the figures of every exponent, and the stale entries found above their successors within a year."""
    with open_vault({}) as kb:
        kb.sync()
        entries = kb.listing.list()
        items = list(known_items(entries, lambda wanted: kb.listing.show(wanted).text or ""))
        today = dt.datetime.now(dt.UTC)
    replaced = successors(entries)
    table = {}
    for exponent in EXPONENTS:
        with open_vault(
            {"MEMORY_KB_RANKING_PROMINENCE_EXPONENT": str(exponent), "MEMORY_KB_RANKING_MMR_LAMBDA": "1"}
        ) as kb:
            table[str(exponent)] = measure_exponent(kb, items, replaced)
    asked = [item for item in items if item.entry in replaced] or [
        Item(entry.id, entry.title) for entry in entries if entry.id in replaced
    ]
    stale = []
    for days in DAYS:
        with open_vault({"MEMORY_KB_NOW": (today + dt.timedelta(days)).isoformat()}) as kb:
            for item in asked:
                ids = [hit.id for hit in kb.search(item.query, limit=LIMIT, sync=False).hits]
                if item.entry in ids and replaced[item.entry] in ids[ids.index(item.entry) :]:
                    stale.append(f"day {days}: {item.entry} above {replaced[item.entry]} for: {item.query}")
    return {"entries": len(entries), "items": len(items), "exponents": table, "superseded": len(asked), "stale": stale}


def print_prominence(report: Mapping[str, Any]) -> None:
    """Print what was measured for people."""
    print(f"{report['items']} known items of {report['entries']} entries\n")
    names = list(next(iter(report["exponents"].values())))
    print(f"{'exponent':10}" + "".join(f"{name:>8}" for name in names))
    for exponent, row in report["exponents"].items():
        shown = "".join(
            f"{value:8.0f}" if name in ("far", "near") else f"{100 * value:8.1f}" for name, value in row.items()
        )
        print(f"{exponent:10}{shown}")
    print(
        f"\nstale above its successor: {len(report['stale'])} of {report['superseded']} searches at {len(DAYS)} days of a year"
    )
    for line in report["stale"]:
        print(f"  {line}")
