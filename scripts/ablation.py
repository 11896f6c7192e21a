"""What the ranking consists of, and what it finds without each ingredient."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple


class Ablation(NamedTuple):
    """A ranking without one of its ingredients: other values of names in `memory_kb.search`, or other settings."""

    values: Mapping[str, Any] = {}
    settings: Mapping[str, str] = {}


def _no_stop_words(words: Sequence[str]) -> frozenset[str]:
    return frozenset(words[:0])


def _as_they_are(_: object, query: object) -> object:
    return query


INGREDIENTS = {
    "all of it": Ablation(),
    "title and headings as fields that count more": Ablation({"scoring.WEIGHTS": (1.0,) * 7}),
    "a title and headings like the query": Ablation({"scoring.HEADING_BONUS": 0.0}),
    "I and my where people speak": Ablation({"rewriting._PERSON": frozenset()}),
    "less for what an assistant says": Ablation({"scoring.ASSISTANT_LOSS": 0.0}),
    "neighbouring words as one": Ablation({"rewriting._add_joined_words": _as_they_are}),
    "beginnings of words beyond English": Ablation({"query._LEAST_STEM": 1_000}),
    "the query, literally": Ablation({"scoring.WHOLE_BONUS": 0.0, "scoring.SIGNS_BONUS": 0.0}),
    "words side by side": Ablation({"scoring.PAIR_SHARE": 0.0}),
    "length of a passage": Ablation({"passages._LENGTH": 0.0}),
    "the passage itself": Ablation({"scoring.PASSAGE_WEIGHT": 0.0}),
    "the section around a passage": Ablation({"scoring.PASSAGE_WEIGHT": 1.0}),
    "the whole entry": Ablation({"scoring.ENTRY_WEIGHT": 0.0}),
    "similarity to the best": Ablation({"scoring.SIMILARITY_WEIGHT": 0.0}),
    "title and headings above a passage": Ablation({"passages.TITLE_TIMES": 0.0, "passages.HEADING_TIMES": 0.0}),
    "less for further passages of a section": Ablation({"scoring.SAME_SECTION": 1.0}),
    "less for further passages of a short note": Ablation({"scoring.SAME_NOTE": 1.0}),
    "neighbouring passages as one hit": Ablation({"groups.JOIN_LIMIT": 0}),
    "repetitions further down": Ablation(settings={"MEMORY_KB_RANKING_MMR_LAMBDA": "1"}),
    "stop words": Ablation({"query.stop_words": _no_stop_words}),
    "stemming": Ablation(settings={"MEMORY_KB_INDEX_TOKENIZER": "unicode61 remove_diacritics 2"}),
}


@contextmanager
def without(values: Mapping[str, Any]) -> Iterator[None]:
    """Give names in `memory_kb.search` other values, wherever they were imported to."""
    old = []
    for path, value in values.items():
        room, name = path.split(".")
        usual = getattr(importlib.import_module(f"memory_kb.search.{room}"), name)
        for module in [module for known, module in sys.modules.items() if known.startswith("memory_kb.search.")]:
            # An equal constant of another module is another one; what was imported is the very object.
            if getattr(module, name, None) is usual:
                old.append((module, name, usual))
                setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, usual in reversed(old):
            setattr(module, name, usual)


def print_table(found: Mapping[str, Mapping[str, float]]) -> None:
    """Print what every ingredient is worth by collection, in points: what all of it has, and what each one's absence costs."""
    whole, plain = found["all of it"], found["plain"]
    print(f"| | {' | '.join(whole)} | mean |\n|---|{'---|' * (len(whole) + 1)}")
    for name, row in (("**all of it**", whole), ("ten lines of FTS5", plain)):
        print(f"| {name} | {' | '.join(f'{row[part]:.1f}' for part in whole)} | {sum(row.values()) / len(row):.1f} |")
    for name in [name for name in found if name not in ("all of it", "plain")]:
        costs = [whole[part] - found[name][part] for part in whole]
        print(f"| {name} | {' | '.join(f'{cost:+.1f}' for cost in costs)} | {sum(costs) / len(costs):+.1f} |")
