"""Plan compaction: archive retired entries, resolve repeated ids, and merge duplicates."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from memory_kb.learning.archiving import archive_path
from memory_kb.learning.duplicates import comparable, likeness, turning_words
from memory_kb.learning.negation import marked_words, names, signs
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.fields import parse_date
from memory_kb.markdown.splice import Value, newline_of, set_values, yaml_span
from memory_kb.model import KIND_ALIASES, KINDS, TYPES, WORKING_KINDS, Entry, Link, Location
from memory_kb.reports import RunReport
from memory_kb.similarity import (
    CONTRADICTION_FROM,
    MERGE_ABOVE,
    MERGE_COSINE,
    Pair,
    cosine_pairs,
    linked_clusters,
    near_pairs,
    overlap_pairs,
    stemmed_set,
    word_set,
)
from memory_kb.store.files import NoteText
from memory_kb.store.plan import (
    Change,
    Memory,
    create_file,
    move,
    plan_fields,
    remove,
    set_body,
    with_links,
    with_words,
    write_file,
)
from memory_kb.text import jaccard

if TYPE_CHECKING:
    from memory_kb.providers.base import Vectors


#: The text of an entry as it is in its file, below the frontmatter.
BodyOf = Callable[[Memory], str]
_SUMS = ("usage_count", "success_count", "failure_count")
_LAST = ("last_reinforced", "last_applied")


def choose_primary(memories: Sequence[Memory]) -> Memory:
    """Return the entry that the others merge into: of highest importance, then confidence, then the oldest.

    Example:
        >>> from memory_kb.model import Location
        >>> light, heavy = (Memory(name, "a.md", "", Location(), "T", "", importance=weight) for name, weight in (("a", 0.4), ("b", 0.9)))
        >>> choose_primary([light, heavy]).id
        'b'
    """

    def rank(memory: Memory) -> tuple[float, float, date, str, int]:
        return (
            -memory.importance,
            -memory.share("confidence", 0.5),
            parse_date(memory.created_at) or date.max,
            memory.path,
            memory.line,
        )

    return min(memories, key=rank)


def longest(memories: Sequence[Memory]) -> Memory:
    """Return the entry with the longest text, the first of those."""
    return max(memories, key=lambda memory: len(memory.text.strip()))


def by_rank(memories: Sequence[Memory]) -> tuple[Memory, ...]:
    """Return entries that are to be merged, the primary first."""
    primary = choose_primary(memories)
    return (primary, *(memory for memory in memories if memory is not primary))


def merge(
    primary: Memory,
    others: Sequence[Memory],
    archive: Callable[[Memory], str],
    body_of: BodyOf,
    reason: str,
    extra: Mapping[str, Value] | None = None,
) -> tuple[Change, ...]:
    """Plan to merge entries into one of them; all of it happens, or nothing.

    The primary keeps its id and its fields, and gets the longest body, the most reinforcements,
    the sum of usage, successes and failures, all tags, sources and links, the latest `last_*`
    and the earliest `created_at`. The others go to the archive with a link to it.

    Args:
        primary: the one that stays, as `choose_primary` says.
        others: those that go.
        archive: names the file that one of them moves to.
        body_of: the texts as they are in their files.
        reason: why, for the log.
        extra: values of the primary that win over the merged ones.
    """
    everything = (primary, *others)
    together = f"merge {primary.path} {primary.id}"
    said = longest(everything)
    plan: list[Change | None] = []
    if said is not primary:
        plan.append(set_body(primary, primary.id, body_of(said).strip("\r\n"), f"{reason} The longest text stays."))
    plan.append(plan_fields(primary, merged_fields(primary, others) | dict(extra or {}), reason))
    for other in others:
        plan += _plan_leaving(other, archive(other), f"Merged into {primary.id}.", primary.id)
    return tuple(change.joined(together) for change in plan if change)


def _plan_leaving(memory: Memory, to: str, reason: str, successor: str) -> tuple[Change, ...]:
    fields = plan_fields(
        memory, {"status": "archived", "links": with_links(memory, Link(successor, "superseded_by"))}, reason
    )
    moved = move(memory, to, reason, memory.id)
    return (fields, moved) if fields else (moved,)


def merged_fields(primary: Memory, others: Sequence[Memory]) -> dict[str, Value]:
    """Return the values that the primary of a merge gets; a field that nobody has is not among them.

    Example:
        >>> from memory_kb.model import Location
        >>> def make(name: str, uses: int) -> Memory:
        ...     return Memory(name, "a.md", "", Location(), "T", "", reinforcement_count=uses, metadata={"id": name, "usage_count": uses})
        >>> merged = merged_fields(make("a", 2), [make("b", 3)])
        >>> merged["reinforcement_count"], merged["usage_count"], merged["status"]
        (3, 5, 'compacted')
    """
    everything = (primary, *others)
    values: dict[str, Value] = {"status": "compacted"}
    count = max(memory.reinforcement_count for memory in everything)
    if count > primary.reinforcement_count:
        values["reinforcement_count"] = count
    values |= {
        name: sum(memory.count(name) for memory in everything)
        for name in _SUMS
        if any(name in memory.metadata for memory in everything)
    }
    for name in _LAST:
        known = [text for memory in everything if memory.day(name) and (text := memory.word(name))]
        if known:
            values[name] = max(known, key=lambda text: (parse_date(text) or date.min, text))
    created = [memory.created_at for memory in everything if memory.created_at]
    if created:
        values["created_at"] = min(created, key=lambda text: (parse_date(text) or date.max, text))
    sources = [
        *(word for memory in others for word in memory.words("sources")),
        *(word for memory in others if (word := memory.word("session_id"))),
    ]
    for name, words in (("tags", [tag for memory in others for tag in memory.tags]), ("sources", sources)):
        union: list[str] = with_words(primary, name, *words)
        if len(union) > len(primary.words(name)):
            values[name] = union
    own = {memory.id for memory in everything}
    links = [link for memory in others for link in memory.links if link.to not in own]
    values["links"] = with_links(primary, *links, *(Link(memory.id, "supersedes") for memory in others))
    return values


_NAMESPACE = uuid.UUID("0c7d7a5e-7a86-5f0e-8f0c-3f1f7f0b6b1d")


def find_repeats(memories: Iterable[Memory]) -> list[tuple[Memory, ...]]:
    """Return the entries that are versions of one: same id, scope, learning type and kind, and text in common.

    The one that stays is first: of highest importance, then the newest, then the first. Entries
    that share an id by mistake alone, as a file does that was copied to begin another, share few
    words; they all stay, and `lint` reports them. So do pinned ones.
    """
    groups: dict[object, list[Memory]] = {}
    for memory in memories:
        if memory.metadata.get("id") is not None:
            groups.setdefault((memory.id, memory.place, memory.kind), []).append(memory)
    found = []
    for group in groups.values():
        if len(group) > 1:
            kept = min(
                group,
                key=lambda memory: (
                    not memory.is_pinned,
                    -memory.importance,
                    date.max - _newest(memory),
                    memory.path,
                    memory.line,
                ),
            )
            words = word_set(kept.text)
            gone = [memory for memory in group if memory is not kept and not memory.is_pinned]
            alike = [memory for memory in gone if jaccard(words, word_set(memory.text)) >= CONTRADICTION_FROM]
            if alike:
                found.append((kept, *alike))
    return found


def _newest(memory: Memory) -> date:
    return max(filter(None, (memory.seen, parse_date(memory.created_at))), default=date.min)


def new_id(memory: Memory) -> str:
    """Return the id that an entry gets in place of the one it shared, the same in every run."""
    return str(uuid.uuid5(_NAMESPACE, f"{memory.id}\n{memory.path}\n{memory.text}"))


def plan_repeats(
    repeats: Sequence[tuple[Memory, ...]], archive: Callable[[Memory, str], str], note_of: Callable[[str], NoteText]
) -> tuple[Change, ...]:
    """Plan to move all but the first of each group to the archive.

    Two entries may not share an id, not even with one of them archived: a link to it would lead
    to either. So whoever moves gets a new id there, and a link to the one that keeps the old.
    Its text, and every byte of the entries around it, stay as they are.

    Args:
        repeats: the groups that `find_repeats` gives.
        archive: names the file that an entry of an id moves to.
        note_of: reads a file.
    """
    leaving: dict[str, list[Memory]] = {}
    plan: list[Change] = []
    for group in repeats:
        for memory in group[1:]:
            leaving.setdefault(memory.path, []).append(memory)
    for path, memories in leaving.items():
        note = note_of(path)
        if note.hash != memories[0].hash:
            continue
        text = note.text
        entries = parse_document(text, path).entries
        taken = [(memory, entry) for memory in memories if (entry := _entry_of(memory, entries, text))]
        together = f"repeated ids of {path}"
        for memory, entry in taken:
            piece = _under_new_id(text[entry.span.start : entry.span.end], memory)
            reason = f"The id {memory.id} occurs here more than once; this one becomes {new_id(memory)}."
            plan.append(
                create_file(
                    archive(memory, new_id(memory)), piece.rstrip("\r\n") + newline_of(text), reason, new_id(memory)
                ).joined(together)
            )
        if len(taken) == len(entries):
            plan.append(remove(note, "All of it went to the archive.").joined(together))
        elif taken:
            rest = _without(text, [entry for _, entry in taken])
            reason = f"{', '.join(dict.fromkeys(memory.id for memory, _ in taken))}: all but one of this id went to the archive."
            plan.append(write_file(note, rest, reason).joined(together))
    return tuple(plan)


def _entry_of(memory: Memory, entries: Sequence[Entry], text: str) -> Entry | None:
    """Return the entry that a memory was made from, told from others of its id by its place."""
    same = [entry for entry in entries if entry.id == memory.id]
    at = [
        entry
        for entry in same
        if entry.line <= memory.line <= entry.line + text.count("\n", entry.span.start, entry.span.end)
    ]
    return at[-1] if at else None


def _under_new_id(piece: str, memory: Memory) -> str:
    values: dict[str, Value] = {
        "status": "archived",
        "links": with_links(memory, Link(memory.id, "superseded_by")),
        "id": new_id(memory),
    }
    return set_values(piece, yaml_span(piece, parse_document(piece, memory.path).entries[0]), values)


def _without(text: str, entries: Sequence[Entry]) -> str:
    for entry in sorted(entries, key=lambda entry: -entry.span.start):
        text = text[: entry.span.start] + text[entry.span.end :]
    return text


#: Entries with fewer words than this are never merged by the opt-in threshold, and what every
#: further entry adds to the importance then.
LEAST_WORDS, CLUSTER_BONUS = 4, 0.05


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
        folder_of: the folder of a scope, as paths are written in output.
        note_of: reads a file.
        body_of: the text of an entry as it is in its file.
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
        before: how many entries were in the live files.
        retired: how many of them leave because they were retired.
        repeated: how many leave because their id is there again.
        merged: how many leave because another says the same.
    """

    changes: tuple[Change, ...] = ()
    before: int = 0
    retired: int = 0
    repeated: int = 0
    merged: int = 0


def takes_part(memory: Memory) -> bool:
    """Return whether an entry is one that steps without a person may rewrite.

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
        threshold: merge paraphrases too, whose stemmed words overlap by this much.
    """
    mine = [memory for memory in memories if takes_part(memory)]
    day = around.now.astimezone(UTC).date()

    def archive(memory: Memory, entry_id: str | None = None) -> str:
        return archive_path(memory, around.folder_of(memory.place), day, entry_id)

    mine = [one for one in mine if not one.path.startswith(f"{around.folder_of(one.place)}archive/")]
    live = [memory for memory in mine if memory.is_live]
    repeats = find_repeats(live)
    left = {id(memory) for group in repeats for memory in group[1:]}
    staying = [memory for memory in memories if id(memory) not in left]
    in_file, in_scope = (
        Counter((memory.path, memory.id) for memory in staying),
        Counter((memory.place, memory.id) for memory in staying),
    )
    retired = (memory for memory in mine if memory.status == "retired")
    gone = [memory for memory in retired if in_file[memory.path, memory.id] == 1]
    single = [memory for memory in live if id(memory) not in left and in_scope[memory.place, memory.id] == 1]
    # Files are written anew where ids repeat in them; whatever else is changed there comes after that.
    changes = list(plan_repeats(repeats, archive, around.note_of))
    changes += [move(memory, archive(memory), "It is retired.", memory.id) for memory in gone]
    clusters = list(find_clusters(single, around.meanings, threshold))
    for cluster in clusters:
        changes += _plan_merge(by_rank(cluster), archive, around, threshold)
    merged = sum(len(cluster) - 1 for cluster in clusters)
    return Compaction(tuple(changes), len(live) + len(gone), len(gone), len(left), merged)


def _plan_merge(
    cluster: Sequence[Memory], archive: Callable[[Memory], str], around: Surroundings, threshold: float | None
) -> tuple[Change, ...]:
    primary, *others = cluster
    if threshold is None:
        return merge(primary, others, archive, around.body_of, f"{len(cluster)} entries say the same.")
    importance = round(min(1.0, max(memory.importance for memory in cluster) + CLUSTER_BONUS * len(others)), 6)
    count = max(memory.reinforcement_count for memory in cluster) + 1
    extra = {"importance": importance, "reinforcement_count": count}
    return merge(primary, others, archive, around.body_of, f"{len(cluster)} entries are paraphrases.", extra)


def find_clusters(
    memories: Sequence[Memory], meanings: Meanings | None = None, threshold: float | None = None
) -> Iterator[tuple[Memory, ...]]:
    """Yield the entries that say the same.

    They share scope, job, task, learning type, kind, type, domain and the files they apply to;
    their numbers, negations and words such as `avoid` and `before` are the same. Within that, all
    that a chain of near copies connects is one, so that another run finds nothing. What somebody
    noted to contradict another waits for a judgment.
    """
    groups: dict[object, list[Memory]] = {}
    for memory in memories:
        is_opposed = any(link.relation == "contradicts" for link in memory.links)
        if not (memory.is_superseded or is_opposed or memory.kind == "episode"):
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
    same: dict[str, list[Memory]] = {}
    for memory in group:
        same.setdefault(" ".join(comparable(memory.text).split()), []).append(memory)
    members = [one for text, one in same.items() if text]
    speakers = [longest(one) for one in members]
    pairs = _pairs(speakers, meanings) if threshold is None else _paraphrases(speakers, threshold)
    alone = (Pair(place, place, 1.0) for place in range(len(members)))
    for cluster in linked_clusters((*pairs, *alone)):
        joined = tuple(memory for place in cluster for memory in members[place])
        if len(joined) > 1:
            yield joined


def _paraphrases(speakers: Sequence[Memory], threshold: float) -> Iterator[Pair]:
    sets = [stemmed_set(memory.said) for memory in speakers]
    return overlap_pairs([one if len(one) >= LEAST_WORDS else frozenset() for one in sets], threshold)


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
        # Where a model's vectors are close together, a cosine alone proves nothing.
        is_near = jaccard(sets[one], sets[other]) >= CONTRADICTION_FROM
        if is_near and _say_the_same(speakers[one], speakers[other], sets[one] ^ sets[other]):
            yield Pair(one, other, near.similarity)


def _say_the_same(one: Memory, other: Memory, differing: frozenset[str]) -> bool:
    """Return whether nothing that matters differs: order, numbers, negations, names, code."""
    if likeness(one.text, other.text) == 0.0 or signs(one.said) != signs(other.said):
        return False
    return differing.isdisjoint(names(one.said) | names(other.said))


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What compaction did, or would do.

    Attributes:
        before: how many entries were in the live files that it looked at.
        after: how many are left there.
        retired: of those that were to leave, the ones that were retired.
        repeated: those whose id was repeated.
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
