"""Select what hooks give an agent at a prompt and at a file that it opens: entries that bear on it, or none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import date
from typing import TYPE_CHECKING

from memory_kb.injected_text import remove_injected
from memory_kb.memory import Memory
from memory_kb.model import LIVE_STATUSES, Filters
from memory_kb.stop_words import is_stop_word, is_surely_english, stop_words
from memory_kb.terms import MARKED_NAME, has_cjk

# Most prompts get nothing: what looks for entries and writes a context is loaded for the others.
if TYPE_CHECKING:
    from memory_kb.context.entry_lines import ClaimChecks
    from memory_kb.context.framing import Given
    from memory_kb.context.relevance import PromptMatch, PromptMatches
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.reports import WhyNot

#: What a prompt gets at most, and what a file does, the frame left out.
_MOST_ENTRIES, _PROMPT_TOKENS, _FILE_TOKENS = 3, 600, 300
#: The part of a prompt that says what it is about, in characters.
_LONGEST = 2_000
#: Words of its own that a prompt needs, one more where it is not surely English.
_LEAST_SAID = 4
#: Letters that count as a word in scripts without spaces; of Chinese characters two do.
_LETTERS = 4
#: What a section this near in meaning says counts twice; so many are looked at.
_NEAR, _MOST_NEAR = 0.6, 60


def find_task(prompt: str) -> str:
    """Return what a prompt is about; "" for acknowledgements, short orders and messages of machines.

    Example:
        >>> find_task("yes"), find_task("<task-notification>the queue</task-notification>")
        ('', '')
        >>> find_task("Why does the upload queue lose messages?")
        'Why does the upload queue lose messages?'
    """
    from memory_kb.learning.user_text import MAX_MESSAGE, remove_paste_marks, split_message

    text = remove_injected(prompt) if len(prompt) <= MAX_MESSAGE else prompt
    if len(text) <= MAX_MESSAGE:
        text = remove_paste_marks(split_message(text).sent)
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST * 3 // 4]} {text[-_LONGEST // 4 :]}"
    return text if _says_enough(text) else ""


def _says_enough(text: str) -> bool:
    """Return whether a text has enough words that are no stop words; outside of English it needs one more."""
    words = content_words(text)
    if is_surely_english(MARKED_NAME.findall(text.casefold())):
        return len(words) >= _LEAST_SAID
    return sum(_count_words(word) for word in words if not is_stop_word(word)) > _LEAST_SAID


def _count_words(text: str) -> int:
    """Return how many words a text without spaces has, roughly; one of Korean is at least one.

    Example:
        >>> _count_words("quokka"), _count_words("再运行一次测试"), _count_words("もう一度実行してください"), _count_words("서버를")
        (1, 3, 3, 1)
    """
    if not has_cjk(text):
        return 1
    return max(1, len(text) // _LETTERS, sum("\u3400" <= letter <= "\u9fff" for letter in text) // 2)


def content_words(text: str) -> list[str]:
    """Return the words of a text that are no stop words and no numbers, each once.

    Example:
        >>> content_words("Push it to the quokka 2")
        ['push', 'quokka']
    """
    words = [
        word for word in dict.fromkeys(MARKED_NAME.findall(text.casefold())) if len(word) > 1 and not word.isdigit()
    ]
    common = stop_words(words)
    return [word for word in words if word not in common]


def match_task(index: SqliteIndex, vault_index: VaultIndex, task: str, floor: float, today: date) -> PromptMatches:
    """Look up what a prompt is about in an index, by its words and, where there are vectors, in meaning."""
    from memory_kb.context.relevance import PromptMatches

    near: list[int] = []
    if vault_index.may_embed:
        asked = vault_index.vector_search.embed_query(index, task)
        if asked.cosines:
            from memory_kb.search.vector_scores import find_nearest

            near = find_nearest(asked.cosines, _NEAR, _MOST_NEAR)
    return PromptMatches(index, task, floor, today, near)


def explain_silence(
    asked: WhyNot, matches: PromptMatches, keys: Collection[int], shown: Collection[str], floor: float
) -> WhyNot:
    """Return why an entry that is `asked` for, whose sections have these keys, does not come at a prompt."""
    if asked.id in shown:
        seen = "this session was shown it already; each entry comes once until a compaction or clear"
        return asked._replace(step="shown", reason=seen)
    bearing = max(map(matches.weigh, keys), key=lambda one: (one.is_enough, one.worth))
    words = f"it shares {', '.join(bearing.shared) or 'none'} of the rare words of the prompt"
    if len(bearing.shared) < bearing.least:
        return asked._replace(step="few-rare-words", reason=f"{words}; {bearing.least} are needed")
    if not bearing.is_enough:
        reason = f"{words}, too small a part of what the prompt is about (context.floor {floor:g})"
        return asked._replace(step="below-floor", reason=reason, score=bearing.worth, needed=bearing.needed)
    fitting = [one.memory.id for one in matches.find() if one.memory.id not in shown]
    if asked.id not in fitting:
        reason = f"{words}, but others say far more, or hooks give none of its kind, status or scope"
        return asked._replace(step="not-given", reason=reason)
    rank = fitting.index(asked.id) + 1
    if rank > _MOST_ENTRIES:
        reason = f"{words}, but {rank - 1} others fit better; {_MOST_ENTRIES} come at most"
        return asked._replace(step="budget", reason=reason, rank=rank)
    return asked._replace(step="found", reason=f"{words}, and comes at rank {rank}", rank=rank)


def build_prompt_context(
    found: Iterable[PromptMatch], shown: Collection[str], today: date, claims: ClaimChecks
) -> Given:
    """Return the entries that match a prompt and were not shown yet, as a text within a budget."""
    from memory_kb.context.entry_lines import EntryLines, write_brief
    from memory_kb.context.framing import frame

    passages: dict[str, str] = {}

    def take() -> Iterator[Memory]:
        for memory, passage in found:
            if memory.id not in shown:
                passages[memory.id] = passage
                yield memory

    def write(memory: Memory) -> str:
        return write_brief(memory, today, passages[memory.id])

    lines = EntryLines(_PROMPT_TOKENS - len(frame("")) // 4 - 1, claims)
    lines.add("", take(), write, most=_MOST_ENTRIES)
    return lines.framed()


def read_naming(index: SqliteIndex, file: str) -> list[Memory]:
    """Return the live entries whose `applies_to` covers a file of the project, or that cite it."""
    from memory_kb.learning.code_references import read_citations

    def is_citing(memory: Memory) -> bool:
        return any(one.reference.path == file for one in read_citations(memory))

    here = Filters(statuses=tuple(sorted(LIVE_STATUSES)), scopes=("project", "global"))
    found = list(index.memories(here._replace(file=file)))
    known = {one.id for one in found}
    for source in dict.fromkeys(one.path for one in index.entries(here, file) if one.id not in known):
        found += [one for one in index.memories(here, source) if one.id not in known and is_citing(one)]
    return [one for one in found if one.may_be_given_unasked]


def build_file_context(naming: Collection[Memory], shown: Collection[str], today: date, claims: ClaimChecks) -> Given:
    """Return the entries that name a file and were not shown yet, as a text, the most used first."""
    from memory_kb.context.entry_lines import EntryLines, order_by_use, write_brief

    fresh = [one for one in naming if one.id not in shown and one.kind not in ("episode", "handoff", "ledger")]
    lines = EntryLines(_FILE_TOKENS, claims)
    lines.add("", order_by_use(fresh, today), lambda one: write_brief(one, today), most=_MOST_ENTRIES)
    return lines.framed()
