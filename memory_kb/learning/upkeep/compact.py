"""Compaction: what is retired leaves the live files, what is said twice is said once (S3-52 to S3-54)."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from memory_kb.learning.lessons import comparable
from memory_kb.learning.memories import Memory
from memory_kb.learning.twins import likeness, turning_words
from memory_kb.learning.upkeep.merging import BodyOf, by_rank, longest, merge
from memory_kb.learning.upkeep.opposites import marked_words, names, signs
from memory_kb.learning.upkeep.repeats import find_repeats, plan_repeats
from memory_kb.model import Location
from memory_kb.notes.plans import Change, NoteText, hash_of, move
from memory_kb.reports import RunReport
from memory_kb.retrieval.similarity import (
    CONTRADICTION_FROM,
    MERGE_ABOVE,
    MERGE_COSINE,
    Pair,
    cosine_pairs,
    linked_clusters,
    near_pairs,
    overlap_pairs,
    seeded_clusters,
    stemmed_set,
    word_set,
)
from memory_kb.text import jaccard, slugify
from memory_kb.words import KIND_ALIASES, KINDS, TYPES, WORKING_KINDS

if TYPE_CHECKING:
    from memory_kb.ports import Vectors

#: Entries with fewer words than this are never merged by the opt-in threshold, and what every
#: further entry adds to the importance then (S3-67).
LEAST_WORDS, CLUSTER_BONUS = 4, 0.05
_OWN_NAMES = frozenset({"institutional.md", "proxy.md", "MEMORY.md"})


@dataclass(frozen=True, slots=True)
class Meanings:
    """The vectors of entries: `row_of` names the row of the entry at a path and line."""

    rows: Vectors
    row_of: Mapping[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What compaction needs to know beside the entries.

    Attributes:
        now: the time.
        folder_of: the folder of a scope, as paths stand in output.
        note_of: reads a file.
        body_of: the text of an entry as it stands in its file.
        meanings: vectors, where there are any.
    """

    now: datetime
    folder_of: Callable[[Location], str]
    note_of: Callable[[str], NoteText]
    body_of: BodyOf
    meanings: Meanings | None = None


@dataclass(frozen=True, slots=True)
class Compaction:
    """A plan, and what it comes to.

    Attributes:
        before: how many entries stood in the live files.
        retired: how many of them leave because they were retired.
        repeated: how many leave because their id stands there again.
        merged: how many leave because another says the same.
    """

    changes: tuple[Change, ...] = ()
    before: int = 0
    retired: int = 0
    repeated: int = 0
    merged: int = 0

    @property
    def after(self) -> int:
        """How many entries are left in the live files."""
        return self.before - self.retired - self.repeated - self.merged


def takes_part(memory: Memory) -> bool:
    """Tell whether an entry is one that steps without a person may rewrite.

    Its kind or type is one of the format's: an `id`, or a type of their own, have other people's
    pages too. `proxy.md`, MEMORY.md and work in progress stay as they are, and so does what waits
    for a judgment.
    """
    kind, type_ = (str(memory.metadata.get(name, "")).strip().lower() for name in ("kind", "type"))
    is_known = kind in KINDS or kind in KIND_ALIASES or type_ in TYPES
    is_free = memory.path.rpartition("/")[2] not in ("MEMORY.md", "proxy.md") and not memory.is_pinned
    return is_known and is_free and memory.kind not in WORKING_KINDS


def plan_compaction(memories: Sequence[Memory], around: Surroundings, threshold: float | None = None) -> Compaction:
    """Plan to compact some entries; a second time there is nothing to do.

    In this order: retired ones go to the archive as they are, where they go on keeping their text
    from coming back; of entries that share an id one stays; entries that say the same become one.

    Args:
        memories: all entries of the scopes to compact, those that take no part included.
        around: the time, and how to read and name files.
        threshold: merge paraphrases too, whose stemmed words overlap by this much (S3-67).
    """
    mine = [memory for memory in memories if takes_part(memory)]
    archive = _Archive(memories, around)
    live = [memory for memory in mine if memory.is_live and not archive.holds(memory)]
    repeats = find_repeats(live)
    left = {id(memory) for group in repeats for memory in group[1:]}
    staying = [memory for memory in memories if id(memory) not in left]
    in_file, in_scope = (
        Counter((memory.path, memory.id) for memory in staying),
        Counter((memory.place, memory.id) for memory in staying),
    )
    retired = (memory for memory in mine if memory.status == "retired" and not archive.holds(memory))
    gone = [memory for memory in retired if in_file[memory.path, memory.id] == 1]
    single = [memory for memory in live if id(memory) not in left and in_scope[memory.place, memory.id] == 1]
    # Files are written anew where ids repeat in them; whatever else is changed there comes after that.
    changes = list(plan_repeats(repeats, archive.name, around.note_of))
    changes += [move(memory, archive.name(memory), "It is retired.", memory.id) for memory in gone]
    clusters = list(find_clusters(single, around.meanings, threshold))
    for cluster in clusters:
        changes += _plan_merge(by_rank(cluster), archive, around, threshold)
    merged = sum(len(cluster) - 1 for cluster in clusters)
    return Compaction(tuple(changes), len(live) + len(gone), len(gone), len(left), merged)


def _plan_merge(
    cluster: Sequence[Memory], archive: _Archive, around: Surroundings, threshold: float | None
) -> tuple[Change, ...]:
    primary, *others = cluster
    if threshold is None:
        return merge(primary, others, archive.name, around.body_of, f"{len(cluster)} entries say the same.")
    importance = round(min(1.0, max(memory.importance for memory in cluster) + CLUSTER_BONUS * len(others)), 6)
    count = max(memory.reinforcement_count for memory in cluster) + 1
    extra = {"importance": importance, "reinforcement_count": count}
    return merge(primary, others, archive.name, around.body_of, f"{len(cluster)} entries are paraphrases.", extra)


def find_clusters(
    memories: Sequence[Memory], meanings: Meanings | None = None, threshold: float | None = None
) -> Iterator[tuple[Memory, ...]]:
    """Yield the entries that say the same.

    They share scope, job, task, learning type, kind, type, domain and the files they apply to;
    their numbers, negations and words such as `avoid` and `before` are the same. Within that, the
    first takes all that are like its text, and so on; then once more with the texts that the
    merged ones have, until there is nothing left to merge, so that another run finds nothing.
    """
    groups: dict[object, list[Memory]] = {}
    for memory in memories:
        if not memory.is_superseded and memory.kind != "episode":
            groups.setdefault(_what_must_agree(memory), []).append(memory)
    for group in groups.values():
        if len(group) > 1:
            yield from _cluster(group, meanings, threshold)


def _what_must_agree(memory: Memory) -> tuple[object, ...]:
    turning = turning_words(memory.text) | marked_words(comparable(memory.text))
    return memory.place, memory.kind, memory.type, memory.domain, frozenset(memory.applies_to), turning


def _cluster(
    group: Sequence[Memory], meanings: Meanings | None, threshold: float | None
) -> Iterator[tuple[Memory, ...]]:
    same: dict[tuple[str, str], list[Memory]] = {}
    for memory in group:
        # What somebody noted to contradict another is held against each by itself.
        alone = memory.id if any(link.relation == "contradicts" for link in memory.links) else ""
        same.setdefault((" ".join(comparable(memory.text).split()), alone), []).append(memory)
    members = [tuple(one) for (text, _), one in same.items() if text]
    while len(members) > 1:
        speakers = [longest(by_rank(one)) for one in members]
        clusters = (
            _paraphrases(speakers, threshold) if threshold is not None else seeded_clusters(_pairs(speakers, meanings))
        )
        if not clusters:
            break
        joined = {cluster[0]: tuple(memory for place in cluster for memory in members[place]) for cluster in clusters}
        left = {place for cluster in clusters for place in cluster[1:]}
        members = [joined.get(place, one) for place, one in enumerate(members) if place not in left]
    yield from (one for one in members if len(one) > 1)


def _paraphrases(speakers: Sequence[Memory], threshold: float) -> list[tuple[int, ...]]:
    sets = [stemmed_set(memory.said) for memory in speakers]
    sets = [one if len(one) >= LEAST_WORDS else frozenset() for one in sets]
    pairs = overlap_pairs(sets, threshold)
    return linked_clusters(pair for pair in pairs if not _are_opposed(speakers[pair.one], speakers[pair.other]))


def _pairs(speakers: Sequence[Memory], meanings: Meanings | None) -> Iterator[Pair]:
    sets = [word_set(memory.said) for memory in speakers]
    for pair in near_pairs(sets, MERGE_ABOVE, is_strict=True):
        if _say_the_same(speakers[pair.one], speakers[pair.other], sets[pair.one] ^ sets[pair.other]):
            yield pair
    if meanings is None:
        return
    places = [place for place, memory in enumerate(speakers) if (memory.path, memory.line) in meanings.row_of]
    rows = meanings.rows[[meanings.row_of[speakers[place].path, speakers[place].line] for place in places]]
    for near in cosine_pairs(rows, MERGE_COSINE):
        one, other = places[near.one], places[near.other]
        # Where a model's vectors lie close together, a cosine alone proves nothing.
        is_near = jaccard(sets[one], sets[other]) >= CONTRADICTION_FROM
        if is_near and _say_the_same(speakers[one], speakers[other], sets[one] ^ sets[other]):
            yield Pair(one, other, near.similarity)


def _say_the_same(one: Memory, other: Memory, differing: frozenset[str]) -> bool:
    """Tell whether nothing that matters differs: order, numbers, negations, names, code."""
    if likeness(one.text, other.text) == 0.0 or signs(one.said) != signs(other.said) or _are_opposed(one, other):
        return False
    return differing.isdisjoint(names(one.said) | names(other.said))


def _are_opposed(one: Memory, other: Memory) -> bool:
    """Tell whether somebody noted that the two contradict each other."""
    links = ((one, other.id), (other, one.id))
    return any(link.relation == "contradicts" and link.to == to for memory, to in links for link in memory.links)


class _Archive:
    """Names for the files that entries get in the archive of their scope, each given once."""

    def __init__(self, memories: Sequence[Memory], around: Surroundings) -> None:
        self._inside = Counter(memory.path for memory in memories)
        self._taken = set(self._inside)
        self._folder_of = functools.cache(around.folder_of)
        self._month = f"{around.now.astimezone(UTC):%Y-%m}"

    def holds(self, memory: Memory) -> bool:
        """Tell whether an entry stands in the archive already."""
        return memory.path.startswith(f"{self._folder_of(memory.place)}archive/")

    def name(self, memory: Memory) -> str:
        """Return the path for an entry; one of people's preferences stays one of these there."""
        stem = memory.path.rpartition("/")[2].removesuffix(".md")
        if self._inside[memory.path] > 1 or f"{stem}.md" in _OWN_NAMES:
            stem = f"{slugify(memory.title)}-{slugify(memory.id[:8])}"
        folder = f"{self._folder_of(memory.place)}archive/{self._month}/{'proxy-tasks/' if memory.place.learning_type == 'proxy' else ''}"
        path = f"{folder}{stem}.md"
        if path in self._taken:
            path = f"{folder}{stem}-{hash_of(f'{memory.path} {memory.id} {memory.line}'.encode())[:8]}.md"
        self._taken.add(path)
        return path


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What compaction did, or would do.

    Attributes:
        before: how many entries stood in the live files that it looked at.
        after: how many are left there.
        retired: of those that were to leave, the ones that were retired.
        repeated: the ones whose id stood there again.
        merged: the ones that others say as well.
    """

    before: int
    after: int
    retired: int
    repeated: int
    merged: int
    run: RunReport

    @property
    def sentence(self) -> str:
        """What left the live files, in words; "" where nothing did."""
        counts = (("merged", self.merged), ("repeated", self.repeated), ("retired", self.retired))
        gone = ", ".join(f"{count:,} {word}" for word, count in counts if count)
        return (
            f"{self.before:,} {'entry' if self.before == 1 else 'entries'}, {self.after:,} now: {gone}"
            if self.run.changes
            else ""
        )
