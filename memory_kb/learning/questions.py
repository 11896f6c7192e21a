"""Questions worth asking again and again, proposed from what was asked and from what the notes say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from memory_kb.credentials import find_secret
from memory_kb.learning.memories import Memory
from memory_kb.notes.queries import StandingQuery
from memory_kb.notes.retrievals import Retrieval
from memory_kb.retrieval.stopwords import stop_words
from memory_kb.text import has_cjk
from memory_kb.words import WORKING_KINDS

#: Words of a proposed question, and how many of them must tell something.
_WORDS, _FEWEST = 10, 3
_LONGEST_ASKED = 200
#: Sentences of a note, and words of a sentence, that are looked at; characters of a question in scripts without spaces.
_SENTENCES, _SCRIPT_LENGTH = 30, 12
_CODE = re.compile(r"```.*?```|`[^`\n]*`|https?://\S+|\[\[[^\]]*\]\]", re.DOTALL)
_WORD = re.compile(r"[^\W\d_][\w'-]+\w")
_TOKEN = re.compile(r"[^\W_](?:[\w'./-]*\w)?")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")


def propose_queries(
    memories: Sequence[Memory],
    retrievals: Iterable[Retrieval],
    frequency: Callable[[str], int],
    known: Sequence[StandingQuery],
    most: int,
) -> tuple[StandingQuery, ...]:
    """Return questions that are not standing yet, each with the entry that it should find.

    Those that people asked come first, the most often asked before the others, each with what
    stood first the last time. Then notes nobody has a question for, one kind after the other, by
    their rarest words and never by their title: that would be found by anything.

    Args:
        memories: all live entries.
        retrievals: what was shown to whom, oldest first.
        frequency: tells how many passages hold a word.
        known: the standing queries.
        most: how many to return at most.
    """
    # The queries are the team's, in the repository; a global home is one person's.
    ours = (one for one in memories if one.place.scope != "global")
    here = {one.id: one for one in ours if one.is_live and one.is_ours and not one.is_superseded}
    asked = {_plain(one.question) for one in known}
    covered = {
        entry_id for one in known for entry_id in here if any(entry_id.startswith(wanted) for wanted in one.expect)
    }
    found: list[StandingQuery] = []
    for query in (*_from_log(retrievals, here), *_from_notes(here, frequency)):
        is_new = _plain(query.question) not in asked and not covered & set(query.expect)
        if is_new and len(found) < most and find_secret(query.question) is None:
            found.append(query)
            asked.add(_plain(query.question))
            covered |= set(query.expect)
    return tuple(found)


def _plain(question: str) -> str:
    return " ".join(question.casefold().split())


def _from_log(retrievals: Iterable[Retrieval], here: Mapping[str, Memory]) -> Iterator[StandingQuery]:
    counts: Counter[str] = Counter()
    last: dict[str, tuple[str, str]] = {}
    for one in retrievals:
        first = next((entry_id for entry_id in one.ids if entry_id in here), None)
        if one.verb == "search" and not one.injected and one.query and len(one.query) <= _LONGEST_ASKED and first:
            counts[_plain(one.query)] += 1
            last[_plain(one.query)] = (" ".join(one.query.split()), first)
    for plain, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        question, entry_id = last[plain]
        if len(question.split()) > 1 or has_cjk(question):
            yield StandingQuery(question, (entry_id,))


def _from_notes(here: Mapping[str, Memory], frequency: Callable[[str], int]) -> Iterator[StandingQuery]:
    """Yield a question for each note that has enough words of its own, the most important of every kind in turn."""
    kinds: dict[str, list[Memory]] = {}
    for memory in sorted(here.values(), key=lambda one: (-one.importance, one.path, one.line)):
        if memory.place.learning_type == "task" and memory.kind not in WORKING_KINDS:
            kinds.setdefault(memory.kind, []).append(memory)
    while any(kinds.values()):
        for waiting in kinds.values():
            question = ask_for(waiting[0], frequency) if waiting else None
            if question:
                yield StandingQuery(question, (waiting[0].id,))
            del waiting[:1]


def ask_for(memory: Memory, frequency: Callable[[str], int]) -> str | None:
    """Return a note's most telling sentence, or its beginning, as people would ask for it.

    A sentence tells the more, the rarer its words are; stop words and those of the title tell
    nothing. None where no sentence has words enough.

    Example:
        >>> from memory_kb.model import Location
        >>> note = Memory("x", "a.md", "", Location(), "Uploads", "# Uploads\\n\\nThis is so. Uploads retry: *proxies* drop idle sockets.")
        >>> ask_for(note, lambda word: 1)
        'Uploads retry proxies drop idle sockets'
    """
    body = _CODE.sub(
        " ", "\n".join(line for line in memory.text.splitlines() if not line.lstrip().startswith(("#", "|", ">")))
    )
    sentences = [piece.strip(" 。！？-*") for piece in _SENTENCE.split(body)][:_SENTENCES]
    if has_cjk(body):
        fitting = [piece for piece in sentences if has_cjk(piece)]
        return (
            min(fitting, key=lambda piece: abs(len(piece) - _SCRIPT_LENGTH), default="")[: 2 * _SCRIPT_LENGTH] or None
        )
    titles = [
        memory.word("title") or memory.word("name") or "",
        *(line for line in memory.text.splitlines() if line.lstrip().startswith("#")),
    ]
    silent = {word.casefold() for title in titles for word in _WORD.findall(title)} | stop_words(
        [word.lower() for word in _WORD.findall(body)]
    )
    best = (0.0, "")
    for sentence in sentences:
        words = _TOKEN.findall(sentence)[:_WORDS]
        counts = {
            word: frequency(word)
            for word in dict.fromkeys(words)
            if _WORD.fullmatch(word) and word.casefold() not in silent
        }
        told = [count for count in counts.values() if count]
        if len(told) >= _FEWEST:
            best = max(best, (sum(1 / count for count in told), " ".join(words)), key=lambda one: one[0])
    return best[1] or None
