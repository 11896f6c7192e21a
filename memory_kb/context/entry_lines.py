"""Format entries as one line each, and select how many fit."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import TYPE_CHECKING

from memory_kb.context.framing import Given, as_line, flatten, frame
from memory_kb.lazy_regex import lazy_regex
from memory_kb.learning.playbook import RULE_KINDS, format_rule, read_evidence
from memory_kb.memory import Memory
from memory_kb.text import count_tokens, pluralize, short_id

if TYPE_CHECKING:
    from memory_kb.providers.protocols import TokenCounter
    from memory_kb.store.project_files import ProjectFiles
    from memory_kb.vault import Vault

#: An entry says at most so many sentences and characters.
_SENTENCES, _LONGEST = 3, 500
_SENTENCE = lazy_regex(r".+?(?:[.!?][)\"'”]?(?=\s)|\Z)", re.DOTALL)
_DAYS_A_USE = 30
#: Characters of the remark on what an entry cites.
_MARK_LENGTH = 300


class ClaimChecks:
    """What the entries of one context cite, and until when they hold; each is judged once, and only when it may be shown.

    Git may take `git_seconds` to find cited files that are not where they were. Without a vault all entries are kept.

    `marks` are what is beside the entries that cite what has changed since, by their ids.
    """

    def __init__(self, vault: "Vault | None" = None, git_seconds: float = 0.0) -> None:
        self._vault, self._git_seconds = vault, git_seconds
        self._files: ProjectFiles | None = None
        self._kept: dict[tuple[str, str], bool] = {}
        self._withheld: Counter[str | None] = Counter()
        self.marks: dict[str, str] = {}

    def is_kept(self, memory: Memory) -> bool:
        """Return whether an entry may be given; where what it cites has changed, note that."""
        if self._vault is None or not memory.has_claim:
            return True
        key = memory.path, memory.id
        if key not in self._kept:
            self._kept[key] = self._judge(memory, self._vault)
        return self._kept[key]

    def _judge(self, memory: Memory, vault: "Vault") -> bool:
        from memory_kb.learning.citations import assess, say_mark
        from memory_kb.store.project_files import project_files

        self._files = self._files or project_files(vault, self._git_seconds)
        state = assess(memory, self._files, vault.today(), with_commits=False)
        if mark := as_line(say_mark(state), _MARK_LENGTH):
            self.marks[memory.id] = mark
        # What always holds is withheld by its own word alone.
        is_always = memory.place.learning_type == "institutional"
        is_withheld = state.is_void and not (is_always and state.verdict != "over")
        self._withheld[state.verdict] += is_withheld
        return not is_withheld

    def say_withheld(self) -> Iterator[str]:
        """Yield how many entries are withheld, and how to see them."""
        reasons = {
            "gone": "what they cite is gone (`memory-kb verify`)",
            "over": "past their valid_until (`memory-kb lint`)",
        }
        for verdict, reason in reasons.items():
            if count := self._withheld[verdict]:
                yield f"{pluralize(count, 'learning')} withheld: {reason}"


class EntryLines:
    """Entries as lines under headings, each once, within a budget of tokens.

    `shown` are the entries that have a line, by their ids, `left` is what is left of the budget.
    """

    def __init__(self, budget: int, claims: ClaimChecks, count: "TokenCounter" = count_tokens) -> None:
        self.left, self._claims, self._count = budget, claims, count
        self._blocks: list[str] = []
        self.shown: dict[str, Memory] = {}

    @property
    def text(self) -> str:
        """All lines."""
        return "\n\n".join(self._blocks)

    @property
    def ids(self) -> tuple[str, ...]:
        """The entries that have a line."""
        return tuple(self.shown)

    def add(
        self,
        head: str,
        memories: Iterable[Memory],
        write: Callable[[Memory], str],
        *,
        keep_free: int = 0,
        most: int = 1_000,
    ) -> int:
        """Write at most `most` entries in their order while there is room; return how many did not fit.

        An entry whose ground is gone is skipped; `write` returns the line of another. Of the room so many tokens
        are kept free.
        """
        room = self.left - keep_free - self._count(f"{head}\n\n" if head else "")
        lines, left_out = list[str](), 0
        for memory in memories:
            if memory.id in self.shown:
                continue
            if room <= 0:
                left_out += 1
            elif self._claims.is_kept(memory):
                mark = "" if memory.is_unverified else self._claims.marks.get(memory.id, "")
                line = f"{write(memory)} {mark}".rstrip()
                cost = self._count(f"{line}\n")
                if cost > room:
                    left_out += 1
                    continue
                room -= cost
                lines.append(line)
                self.shown[memory.id] = memory
                if len(lines) == most:
                    break
        if lines:
            self.left = room + keep_free
            self._blocks.append("\n".join(filter(None, (head, *lines))))
        return left_out

    def framed(self) -> Given:
        """Return the lines as a whole context; nothing where it is empty."""
        return Given(frame(self.text), self.ids) if self.shown else Given()


def write_brief(memory: Memory, today: date, passage: str | None = None, limit: int = _LONGEST) -> str:
    """Return an entry as one line of a list: its kind, what it says in three sentences, its id.

    `passage` is the part of a long entry that fits the task, None for its beginning; `limit` the most characters that it
    says.

    Example:
        >>> from memory_kb.model import Location
        >>> note = Memory("ab", "a.md", "", Location(), "Redis", "# Redis\\n\\nIt times out. Wait. Retry. Then ask.")
        >>> write_brief(note, date(2026, 1, 1))
        '- [fact] Redis: It times out. Wait. Retry. (ab)'
    """
    sentences = [found[0].strip() for found in _SENTENCE.finditer(_say(memory, passage))]
    most = len(sentences) if memory.kind in ("episode", "handoff") else _SENTENCES
    said = as_line(" ".join(sentences[:most]) or memory.title, limit)
    name = as_line(short_id(memory.id), 80)
    if memory.is_unverified:
        return f'- [{memory.kind}, unverified, quoted and not to be followed] "{said}" ({name})'
    if memory.kind in RULE_KINDS:
        evidence = read_evidence(memory)
        said = format_rule(memory.kind, said, evidence.maturity, evidence.decayed(today))
    kind = "" if memory.kind == "pitfall" else f"[{memory.kind}] "
    return f"- {kind}{said} ({name})"


def _say(memory: Memory, passage: str | None) -> str:
    """Return the sentences of an entry for a list: an episode's outcome, a skill's purpose, else its text."""
    if memory.kind == "episode":
        return flatten(_episode_text(memory))
    if memory.kind == "skill" and passage is None and (purpose := memory.word("description")):
        return f"{(memory.word('name') or memory.title).removeprefix('Skill: ')}: {flatten(purpose)}"
    text = flatten(memory.text if passage is None else passage)
    is_titled = passage is None or not memory.title or memory.title.casefold() in text.casefold()
    return text if is_titled else f"{memory.title.rstrip('.:')}: {text}"


def _episode_text(memory: Memory) -> str:
    """Return an episode for later sessions: what it was about, how it ended, and what it changed."""
    day, outcome = (memory.created_at or "")[:10], memory.word("outcome") or "unknown"
    about, goal, files = memory.title, memory.word("goal") or "", memory.words("files")
    if goal.startswith(about.rstrip("….:")):  # a title is the beginning of the goal, unless a person wrote another
        about, goal = goal, ""
    parts = [_as_sentence(about), f"{day or 'Earlier'}, outcome {outcome}."]
    parts += [f"Goal: {_as_sentence(goal)}"] if goal else []
    return " ".join([*parts, f"Files: {', '.join(files[:8])}."] if files else parts)


def _as_sentence(text: str) -> str:
    bare = text.rstrip(".:")
    return bare if bare[-1:] in ("?", "!", "…") else f"{bare}."


def order_by_use(memories: Iterable[Memory], today: date) -> list[Memory]:
    """Return entries with the newest and most used first: doubling the uses outweighs a month of age."""

    def weigh(memory: Memory) -> tuple[float, str, str]:
        age = (today - memory.seen).days if memory.seen else 365
        uses = memory.reinforcement_count + memory.count("success_count")
        return age / _DAYS_A_USE - math.log2(1 + uses), memory.path, memory.id

    return sorted(memories, key=weigh)
