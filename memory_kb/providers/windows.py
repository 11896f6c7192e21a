"""Texts as the numbers a model reads, in windows where they are longer than it reads at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import ProviderFailed
from memory_kb.providers.recipe import Recipe
from memory_kb.text import printable

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class Window(NamedTuple):
    """Tokens that are read together.

    `text` is the place of the text they are of, `weight` how many tokens of it they hold, and
    `skipped` how many of the first belong to a prompt.
    """

    text: int
    tokens: list[int]
    weight: int
    skipped: int


class Windows:
    """The tokenizer of a model."""

    def __init__(self, recipe: Recipe) -> None:
        self._tokenizer = _load_tokenizer(recipe.folder / "tokenizer.json", is_lowered=recipe.is_lowered)
        probe = self._tokenizer.encode("a")
        is_frame = probe.special_tokens_mask
        first = is_frame.index(0) if 0 in is_frame else len(is_frame)
        last = len(is_frame) - is_frame[::-1].index(0) if 0 in is_frame else len(is_frame)
        self._before, self._after = probe.ids[:first], probe.ids[last:]
        self._room = recipe.max_tokens - len(self._before) - len(self._after)
        self._padding = recipe.shape.padding
        if self._room < 1:
            raise ProviderFailed(
                f"{recipe.folder} reads only {recipe.max_tokens} tokens at once", "choose another model"
            )

    def cut(self, texts: Sequence[str], prompt: str) -> Iterator[Window]:
        """Yield the windows of all texts, each with the prompt before it."""
        readable = [printable(prompt + text) for text in texts]
        plain = self._tokenizer.encode_batch_fast(readable, add_special_tokens=False)
        skipped = len(self._before) + len(self._tokenizer.encode(prompt, add_special_tokens=False).ids) if prompt else 0
        for place, encoding in enumerate(plain):
            tokens = encoding.ids if encoding.ids or self._before else [self._padding]
            if len(tokens) <= self._room:
                yield self._frame(place, [], tokens, skipped)
                continue
            # Where the prompt ends is only known from the text with it, as the two may share a token.
            head = self._count_prompt(readable[place], len(prompt)) if prompt else 0
            for start, stop in split_evenly(len(tokens) - head, max(self._room - head, 1)):
                yield self._frame(place, tokens[:head], tokens[head + start : head + stop], skipped)

    def _frame(self, place: int, head: list[int], tokens: list[int], skipped: int) -> Window:
        return Window(place, [*self._before, *head, *tokens, *self._after], max(len(tokens), 1), skipped)

    def _count_prompt(self, text: str, length: int) -> int:
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        head = next((number for number, (_, stop) in enumerate(offsets) if stop > length), 0)
        return min(head, self._room // 2)


def _load_tokenizer(file: Path, *, is_lowered: bool) -> Tokenizer:
    if not file.is_file():
        raise ProviderFailed(f"the model has no {file}", "fetch the model again")
    try:
        from tokenizers import Tokenizer, normalizers
    except ImportError as exc:
        raise ProviderFailed("local models need the package tokenizers", "pip install 'memory-kb[local]'") from exc
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as exc:  # the package raises nothing narrower
        raise ProviderFailed(
            f"{file} is not a tokenizer: {' '.join(str(exc).split())[:200]}", "fetch the model again"
        ) from exc
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if is_lowered:
        lower = normalizers.Lowercase()
        tokenizer.normalizer = normalizers.Sequence([lower, tokenizer.normalizer] if tokenizer.normalizer else [lower])
    return tokenizer


def split_evenly(length: int, room: int) -> list[tuple[int, int]]:
    """Cut a length into as few pieces of at most `room` as will do, all about as long.

    Example:
        >>> split_evenly(10, 4), split_evenly(4, 4)
        ([(0, 3), (3, 6), (6, 10)], [(0, 4)])
    """
    count = -(-length // room)
    edges = [length * number // count for number in range(count + 1)]
    return list(pairwise(edges))


def gather(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Put places into groups of about one length, the longest first.

    A group with all of its members as long as its longest holds at most `budget`.

    Example:
        >>> gather([3, 9, 4, 4, 20], 12)
        [[4], [1], [2, 3, 0]]
    """
    groups: list[list[int]] = []
    longest = 0
    for place in sorted(range(len(lengths)), key=lambda place: (-lengths[place], place)):
        if not groups or (len(groups[-1]) + 1) * longest > budget:
            groups.append([])
            longest = lengths[place]
        groups[-1].append(place)
    return groups
