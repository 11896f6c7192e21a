"""Pitfalls from logs: recurring errors of episodes, commands that worked after a change, changes that were reverted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memory_kb.episodes.diary_text import EpisodeRecord, ErrorLine
from memory_kb.learning.error_text import generalise, is_bare, is_informative, same_words
from memory_kb.learning.ingest import Learning
from memory_kb.learning.render_entry import Draft
from memory_kb.markdown.splice import Value
from memory_kb.memory import Memory
from memory_kb.model import Location
from memory_kb.session_facts import Trace
from memory_kb.text import shorten

#: How an episode that was built from a log reports a command that worked with a small change.
_INSTEAD = re.compile(r"^`([^`]+)` went through instead$")
# What came over the network and was run is nothing to pass on.
_FETCHED = re.compile(r"\b(?:curl|wget|iwr|Invoke-WebRequest)\b|https?://")
_DIGITS = 6
TITLE = 80


class Pitfall(NamedTuple):
    """One error that at least one episode has; `seen` are the episodes and their wording of it."""

    type: str
    message: str
    seen: tuple[tuple[EpisodeRecord, ErrorLine], ...]

    @property
    def key(self) -> str:
        """What makes it this pitfall and no other."""
        return f"pitfall/{self.type.casefold()}/{same_words(self.message)}"

    @property
    def episodes(self) -> tuple[EpisodeRecord, ...]:
        """The episodes it was seen in, oldest first."""
        return tuple({one.memory.id: one for one, _ in self.seen}.values())

    def is_stated_by(self, memory: Memory) -> bool:
        """Return whether an entry warns of this already: it quotes the message."""
        words = same_words(generalise(memory.text))
        return same_words(generalise(self.message.removesuffix("…").rstrip())) in words

    @property
    def solutions(self) -> list[str]:
        """What helped each time; of what a log reports only a small change of the command, which may be passed on."""
        found = (
            what_helped(error.resolution or "") if _is_built(one) else error.resolution for one, error in self.seen
        )
        return list(filter(None, found))

    @property
    def name(self) -> str:
        """The error in words; a type that only says that it failed, or what the message says, is none."""
        is_said = is_bare(self.type) or same_words(self.type) in same_words(self.message)
        return self.message if is_said else f"{self.type}: {self.message}"


def pitfall_confidence(episodes: int) -> float:
    """Return the confidence of a pitfall: min(0.4 + 0.1 n, 0.8)."""
    return round(min(0.4 + 0.1 * episodes, 0.8), _DIGITS)


def find_pitfalls(episodes: Iterable[EpisodeRecord]) -> tuple[Pitfall, ...]:
    """Return the errors that are worth a warning, one for each type and message.

    Those of an episode that a person wrote count when they were seen in two episodes or have a resolution. Those that a
    log reports count when they were seen in two episodes and a small change of the command made it work.
    """
    found: dict[tuple[str, str], list[tuple[EpisodeRecord, ErrorLine]]] = {}
    for one in episodes:
        for error in one.diary.errors:
            if error.type and is_informative(error.type, error.message):
                found.setdefault((error.type.casefold(), same_words(error.message)), []).append((one, error))
    pitfalls = (Pitfall(seen[0][1].type, seen[0][1].message, tuple(seen)) for seen in found.values())
    return tuple(pitfall for pitfall in pitfalls if _is_worth(pitfall))


def _is_worth(pitfall: Pitfall) -> bool:
    recurs, solved = len(pitfall.episodes) > 1, bool(pitfall.solutions)
    is_from_logs = all(_is_built(one) for one, _ in pitfall.seen)
    return recurs and solved if is_from_logs else recurs or any(error.resolution for _, error in pitfall.seen)


def _is_built(one: EpisodeRecord) -> bool:
    """Return whether an episode was built from a log, rather than written by a person."""
    return one.memory.metadata.get("built_from") is not None


def what_helped(resolution: str) -> str:
    """Return the small change that a log reports as what made a command work, "" where it reports none.

    Example:
        >>> what_helped("`pytest -p no:x` went through instead"), what_helped("`pytest` went through after something was changed or run")
        ('Run `pytest -p no:x`', '')
    """
    instead = _INSTEAD.match(resolution)
    return f"Run `{instead[1]}`" if instead and not _FETCHED.search(instead[1]) else ""


def write_pitfall(pitfall: Pitfall) -> str:
    """Return the text of a pitfall, with the most frequent resolution, the newest of those."""
    solved = pitfall.solutions
    counts = Counter(solved)
    best = max(reversed(solved), key=lambda one: counts[one], default="None is known yet")
    parts = (
        _sentence(f"Avoid: {pitfall.name}"),
        "## What fails",
        _sentence(pitfall.name if is_bare(pitfall.type) else pitfall.type),
        "## Why",
        _sentence(pitfall.message),
        "## Prevention",
        _sentence(best[:1].upper() + best[1:]),
    )
    return "\n\n".join(parts)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def tags_of(episodes: Sequence[EpisodeRecord]) -> tuple[str, ...]:
    """Return the tags that at least two of some episodes have, or the only one."""
    counts = Counter(tag for one in episodes for tag in one.memory.tags)
    return tuple(tag for tag, count in counts.items() if count >= min(2, len(episodes)))


def find_hard_events(traces: Iterable[Trace], place: Location) -> list[Learning]:
    """Return the hard events of a session as proposals, one for each cause.

    A cause that was seen before has the same key or text.
    """
    found = []
    for trace in traces:
        for retry in trace.retries:
            failed, worked, error = (text.replace("`", "'") for text in (retry.failed, retry.worked, retry.error))
            text = f"**Error Pattern:** `{failed}` fails with `{error}`\n**Prevention:** Run `{worked}`."
            key = f"retry/{failed}/{worked}/{same_words(generalise(error))}"
            found.append(_make_learning(f"`{failed}` fails, `{worked}` works", text, key, retry.seq, trace, place))
        for reverted in trace.reverted:
            title = f"A change to {', '.join(f'`{file}`' for file in reverted.files)} was reverted"
            text, key = f"{title} on request: “{reverted.request}”", f"reverted/{trace.session}/{reverted.seq}"
            found.append(_make_learning(title, text, key, reverted.seq, trace, place))
    return list({learning.key: learning for learning in reversed(found)}.values())[::-1]


def _make_learning(title: str, text: str, key: str, seq: int, trace: Trace, place: Location) -> Learning:
    fields: dict[str, Value] = {"status": "proposed", "session_id": trace.session, "source_events": [str(seq)]}
    draft = Draft(text, "pitfall", shorten(title, TITLE), source="observed", fields=fields)
    return Learning(draft, place, key, f"Seen in session {trace.session}, event {seq}.", trace.session)
