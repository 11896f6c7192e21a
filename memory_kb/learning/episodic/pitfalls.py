"""Pitfalls from the errors of episodes: what fails, why, and what prevents it (S2-24)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memory_kb.learning.episodic.answers import is_bare, is_telling, same_words
from memory_kb.learning.episodic.diary import ErrorLine, cut_sections, items_of
from memory_kb.learning.episodic.patterns import Told
from memory_kb.learning.episodic.toolcalls import bare_command
from memory_kb.learning.memories import Memory
from memory_kb.learning.observation.chains import read_chain
from memory_kb.learning.observation.commandlines import parse_line
from memory_kb.learning.observation.failures import generalise, quote, read_failure
from memory_kb.learning.observation.forms import KNOWN, name
from memory_kb.text import shorten

_CAUSE = re.compile(r"^“(?P<cause>[^”]+)”\s*")
_END = re.compile(
    r";? ?(?:then )?`(?P<call>[^`]+)` (?:went through|failed with something else)(?: later| when it was run again, nothing was changed)?\.?$"
)
_RUN = re.compile(r"\bran `([^`]+)`")
_INSTEAD = re.compile(r"^`([^`]+)` went through instead$")
# What came over the network and was run is nothing to pass on.
_FETCHED = re.compile(r"\b(?:curl|wget|iwr|Invoke-WebRequest)\b|https?://")
_LOGGED = re.compile(r"t=\d+ (?P<command>.+) -> fail: (?P<message>.+)")
#: So much of a message or a command is enough to know it again.
_KNOWN_BY = 60
_DIGITS = 6


class Pitfall(NamedTuple):
    """One error, told by at least one episode; `seen` are the episodes and how they tell it."""

    type: str
    message: str
    seen: tuple[tuple[Told, ErrorLine], ...]

    @property
    def key(self) -> str:
        """What makes it this pitfall and no other."""
        return f"pitfall/{self.type.casefold()}/{same_words(self.message)}"

    @property
    def episodes(self) -> tuple[Told, ...]:
        """The episodes it was seen in, oldest first."""
        return tuple({one.memory.id: one for one, _ in self.seen}.values())

    def is_told_by(self, memory: Memory) -> bool:
        """Tell whether an entry warns of this already: it quotes the message, or tells of the same events."""
        text = memory.text
        told = {
            message: same_words(make(text))
            for make in (str, generalise)
            for message in (make(self.message), make(quote(self.message)))
        }
        return any(same_words(_uncut(message)) in said for message, said in told.items()) or any(
            memory.word("session_id") == one.diary.session_id is not None and _tells_of(text, error.resolution)
            for one, error in self.seen
        )

    @property
    def command(self) -> str:
        """What fails with it, as it was run last, or an empty text where no action log tells."""
        return next((command for one, error in reversed(self.seen) if (command := _failing(one, error))), "")

    @property
    def confidence(self) -> float:
        """How far it is trusted."""
        return pitfall_confidence(len(self.episodes))

    @property
    def title(self) -> str:
        """What to call it: what fails, and with what."""
        return shorten(f"`{_short(self.command)}` fails with {self.name}" if self.command else self.name, 80)

    @property
    def name(self) -> str:
        """The error in words; a type that only says that it failed, or what the message says, is none."""
        is_said = is_bare(self.type) or same_words(self.type) in same_words(self.message)
        return self.message if is_said else f"{self.type}: {self.message}"


def pitfall_confidence(episodes: int) -> float:
    """Return the confidence of a pitfall: min(0.4 + 0.1 n, 0.8).

    Example:
        >>> pitfall_confidence(1), pitfall_confidence(9)
        (0.5, 0.8)
    """
    return round(min(0.4 + 0.1 * episodes, 0.8), _DIGITS)


def find_pitfalls(episodes: Iterable[Told]) -> tuple[Pitfall, ...]:
    """Return the errors that are worth a warning, one for each type and message.

    An error must say something; a bare exit code does not. Those of an episode that a person
    wrote count when they were seen in two episodes or have a resolution. Of those that a log
    tells, mistakes of the very change that was being made count only when they were seen in two
    episodes and their cause was named; what comes and goes, in two and with a resolution; what
    tells of machine, tools and set-up, in two or with something that was run; all the rest, in two.
    Where nothing is known to have helped there is nothing to pass on, nor where a program was
    missing until everything was installed.
    """
    found: dict[tuple[str, str], list[tuple[Told, ErrorLine]]] = {}
    for one in episodes:
        for error in _last_for_each(one.diary.errors):
            if error.type and is_telling(error.type, error.message):
                found.setdefault((error.type.casefold(), same_words(error.message)), []).append((one, error))
    pitfalls = (Pitfall(seen[0][1].type, seen[0][1].message, tuple(seen)) for seen in found.values())
    return tuple(pitfall for pitfall in pitfalls if _is_worth(pitfall))


def _last_for_each(errors: Sequence[ErrorLine]) -> list[ErrorLine]:
    """Return the errors but for those that went away with a later one, by the same means."""
    last = {error.resolution: error for error in errors}
    return [
        error
        for error in errors
        if not (error.resolution and _RUN.search(what_helped(error.resolution))) or last[error.resolution] is error
    ]


def _failing(told: Told, error: ErrorLine) -> str:
    """Return the command that failed with an error, as the action log has it."""
    message = same_words(error.message)[:_KNOWN_BY]
    for line in items_of(cut_sections(told.memory.text)[1].get("Action log", "")):
        found = _LOGGED.fullmatch(line)
        if found and message in same_words(found["message"]):
            return next((link.text for link in reversed(read_chain(found["command"]))), "").replace("`", "")
    return ""


def _short(command: str) -> str:
    """Return a command in the fewest words."""
    return next((name(one) for one in reversed(parse_line(command))), command)


def _tells_of(text: str, resolution: str | None) -> bool:
    """Tell whether a text names both what was run about an error and what went through then."""
    again = _END.search(resolution or "")
    ran = _RUN.findall(what_helped(resolution or ""))
    if again is None or not ran:
        return False
    return all(any(bare_command(_uncut(one))[:_KNOWN_BY] in text for one in group) for group in ([again["call"]], ran))


def _uncut(text: str) -> str:
    return text.removesuffix("…").rstrip()


def _is_worth(pitfall: Pitfall) -> bool:
    recurs = len(pitfall.episodes) > 1
    if any(one.memory.metadata.get("built_from") is None for one, _ in pitfall.seen):
        return recurs or any(error.resolution for _, error in pitfall.seen)
    solved = [error.resolution for _, error in pitfall.seen if error.resolution]
    fault = read_failure(f"{pitfall.type}: {pitfall.message}")
    if fault is None:
        return False
    if fault.sort == "change":
        return recurs and any(_CAUSE.match(one) for one in solved)
    if fault.sort == "passing":
        return recurs and any(what_helped(one) for one in solved)
    helped = [what_helped(one) for one in solved]
    was_run = any(
        "ran `" in done and " went through instead" not in one for done, one in zip(helped, solved, strict=True)
    )
    is_fresh = fault.sort in ("missing program", "missing package") and any(map(_is_set_up, helped))
    return (recurs and any(helped)) or (fault.is_about_setup and was_run and not is_fresh)


def _is_set_up(done: str) -> bool:
    """Tell whether what helped was what everybody runs in a fresh checkout.

    Example:
        >>> _is_set_up("ran `npm install`"), _is_set_up("ran `npm install vite`"), _is_set_up("ran `make up`")
        (True, False, False)
    """
    return any(KNOWN.fullmatch(run) for run in _RUN.findall(done))


def what_helped(resolution: str) -> str:
    """Return what was done about an error, without how that was seen.

    Example:
        >>> what_helped("“It was stale.” changed a.py; ran `make gen`; then `pytest` went through")
        'changed a.py; ran `make gen`'
    """
    done = _END.sub("", _CAUSE.sub("", resolution)).strip(" ;")
    instead = _INSTEAD.match(done)
    done = f"ran `{instead[1]}` instead" if instead else done
    return "" if _FETCHED.search(done) else done


def write_pitfall(pitfall: Pitfall) -> str:
    """Return the text of a pitfall, with the most frequent resolution, the newest of those."""
    solved = [error.resolution for _, error in pitfall.seen if error.resolution]
    counts = Counter(what_helped(one) for one in solved)
    best = max(
        (one for one in reversed(solved) if what_helped(one)), key=lambda one: counts[what_helped(one)], default=None
    )
    causes = [match["cause"] for one in reversed(solved) if (match := _CAUSE.match(one))]
    sort = "" if is_bare(pitfall.type) else f" with {pitfall.type}"
    fails = (
        f"`{pitfall.command}` fails{sort}"
        if pitfall.command
        else pitfall.name
        if is_bare(pitfall.type)
        else pitfall.type
    )
    lead = f"`{_short(pitfall.command)}` fails with {pitfall.name}" if pitfall.command else f"Avoid: {pitfall.name}"
    why = _sentence(pitfall.message) + (f" {causes[0]}" if causes else "")
    is_log = any(one.memory.metadata.get("built_from") is not None for one, _ in pitfall.seen)
    helped = (f"What helped: {what_helped(best)}" if is_log else what_helped(best)) if best else "None is known yet"
    parts = (
        _sentence(lead),
        "## What fails",
        _sentence(fails),
        "## Why",
        why,
        "## Prevention",
        _sentence(helped[:1].upper() + helped[1:]),
    )
    return "\n\n".join(parts)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def tags_of(episodes: Sequence[Told]) -> tuple[str, ...]:
    """Return the tags that at least two of some episodes have, or the only one."""
    counts = Counter(tag for one in episodes for tag in one.memory.tags)
    return tuple(tag for tag, count in counts.items() if count >= min(2, len(episodes)))
