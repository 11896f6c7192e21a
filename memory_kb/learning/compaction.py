"""The verbs compact and contradictions: archive what is retired, delete copies, merge what says the same."""

from __future__ import annotations

import functools
import itertools
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from memory_kb import similarity
from memory_kb.errors import CannotSplice, UnreadableInput, UsageError
from memory_kb.learning.contradictions import (
    ContradictionsReport,
    ask_cause,
    find_contradictions,
    is_machine_editable,
    plan_resolutions,
)
from memory_kb.learning.text_comparison import likeness, turning_words
from memory_kb.markdown.splice import Value
from memory_kb.memory import Memory
from memory_kb.model import SCOPE_ALIASES, SCOPES, Link, Location, make_place
from memory_kb.reports import RunReport
from memory_kb.store.changes import Change, move, plan_fields, remove, set_body, with_links, with_words
from memory_kb.text import parse_date, pluralize

if TYPE_CHECKING:
    from memory_kb.learning.memories import EntryVectors, Memories
    from memory_kb.providers.models import Models
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault

#: Entries with fewer words than this are never merged by the opt-in threshold, and what every
#: further entry adds to the importance then.
LEAST_WORDS, CLUSTER_BONUS = 4, 0.05
#: What is compacted when nobody says what: not the tasks, which end soon.
_USUAL = ("job", "project", "global")
_SUMS = ("usage_count", "success_count", "failure_count")
_LAST = ("last_reinforced", "last_applied")


def _find_clusters(
    memories: Sequence[Memory], vectors: EntryVectors | None, threshold: float | None
) -> Iterator[tuple[Memory, ...]]:
    """Yield the entries that say the same.

    All that a chain of near copies connects is one, so that another run finds nothing. What somebody
    noted to contradict another waits for a judgment.
    """
    groups: dict[object, list[Memory]] = {}
    for memory in memories:
        is_opposed = any(link.relation == "contradicts" for link in memory.links)
        if not (memory.is_superseded or is_opposed or memory.kind == "episode"):
            files, turning = frozenset(memory.applies_to), turning_words(memory.text)
            must_agree = memory.place, memory.kind, memory.type, memory.domain, files, turning
            groups.setdefault(must_agree, []).append(memory)
    for group in groups.values():
        if len(group) > 1:
            yield from _cluster(group, vectors, threshold)


def _cluster(
    group: Sequence[Memory], vectors: EntryVectors | None, threshold: float | None
) -> Iterator[tuple[Memory, ...]]:
    # A thousand times the same text is half a million pairs.
    same: dict[str, list[Memory]] = {}
    for memory in group:
        same.setdefault(" ".join(memory.text.split()), []).append(memory)
    copies, first = list(same.values()), [one[0] for one in same.values()]
    pairs = _near_copies(first, vectors) if threshold is None else _paraphrases(first, threshold)
    alone = (similarity.Pair(place, place, 1.0) for place in range(len(first)))
    for cluster in similarity.linked_clusters((*pairs, *alone)):
        joined = tuple(memory for place in cluster for memory in copies[place])
        if len(joined) > 1:
            yield joined


def _near_copies(group: Sequence[Memory], vectors: EntryVectors | None) -> Iterator[similarity.Pair]:
    """Yield the entries that are alike, one of which is the other with words added."""
    in_words = similarity.near_pairs([similarity.word_set(memory.text) for memory in group], similarity.MERGE_ABOVE)
    near = vectors.near_pairs(group, similarity.MERGE_COSINE) if vectors else ()
    for pair in (*(pair for pair in in_words if pair.similarity > similarity.MERGE_ABOVE), *near):
        # Where a model's vectors are close together, a cosine alone proves nothing.
        if likeness(group[pair.one].text, group[pair.other].text) >= similarity.CONTRADICTION_FROM:
            yield pair


def _paraphrases(group: Sequence[Memory], threshold: float) -> Iterator[similarity.Pair]:
    """Yield the entries of which one has so large a share of the other's stemmed words, but for those of a few words."""
    stems = [similarity.stemmed_set(memory.text) for memory in group]
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for here, words in enumerate(stems):
        if len(words) < LEAST_WORDS:
            continue
        # Only entries with a word in common are compared, which are few of all pairs.
        shared = Counter(itertools.chain.from_iterable(holders[word] for word in words))
        for other, count in shared.items():
            if (share := count / min(len(words), len(stems[other]))) >= threshold:
                yield similarity.Pair(other, here, share)
        for word in words:
            holders[word].append(here)


def longest_text(memories: Sequence[Memory]) -> Memory:
    """Return the entry with the longest text, the first of those."""
    return max(memories, key=lambda memory: len(memory.text.strip()))


def rank_for_merging(memories: Sequence[Memory]) -> tuple[Memory, ...]:
    """Return entries to merge, the primary first: the one of highest importance, then confidence, then age."""

    def rank(memory: Memory) -> tuple[float, float, date, str, int]:
        made = parse_date(memory.created_at) or date.max
        return -memory.importance, -memory.share("confidence", 0.5), made, memory.path, memory.line

    primary = min(memories, key=rank)
    return (primary, *(memory for memory in memories if memory is not primary))


def plan_archiving(memory: Memory, to: str, reason: str, *successors: str) -> tuple[Change, ...]:
    """Plan to move an entry to a file of its own in the archive, all or nothing, with links to what takes its place."""
    values: dict[str, Value] = {"status": "archived"}
    if successors:
        values["links"] = with_links(memory, *(Link(one, "superseded_by") for one in successors))
    marked, moved = plan_fields(memory, values, reason), move(memory, to, reason, memory.id)
    return tuple(change._replace(together=f"archive {memory.path} {memory.id}") for change in (marked, moved) if change)


def merge_entries(
    primary: Memory,
    others: Sequence[Memory],
    archive: Callable[[Memory], str],
    body_of: Callable[[Memory], str],
    reason: str,
    extra: Mapping[str, Value] | None = None,
) -> tuple[Change, ...]:
    """Plan to merge entries into one of them; all of it happens, or nothing.

    The others go to the archive with a link to the primary. `archive` names the file that an entry moves to, `body_of`
    returns its text below the frontmatter; the values in `extra` win over the merged ones.
    """
    everything = (primary, *others)
    together = f"merge {primary.path} {primary.id}"
    said = longest_text(everything)
    plan: list[Change | None] = []
    if said is not primary:
        plan.append(set_body(primary, primary.id, body_of(said).strip("\r\n"), f"{reason} The longest text stays."))
    plan.append(plan_fields(primary, merged_fields(primary, others) | dict(extra or {}), reason))
    for other in others:
        plan += plan_archiving(other, archive(other), f"Merged into {primary.id}.", primary.id)
    return tuple(change._replace(together=together) for change in plan if change)


def merged_fields(primary: Memory, others: Sequence[Memory]) -> dict[str, Value]:
    """Return the values that the primary of a merge gets."""
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


def archive_path(memory: Memory, folder: str, day: date) -> str:
    """Return the file in the archive of its scope that an entry moves to, named after its file and its id."""
    name, ending = os.path.splitext(memory.path.rpartition("/")[2])
    safe = "".join(sign if sign.isalnum() or sign in "-_" else "-" for sign in memory.id)[:36]
    is_named = name == safe or name.endswith((f"-{safe[:8]}", f"-{safe[-8:]}"))
    kind = "proxy-tasks/" if memory.place.learning_type == "proxy" else ""
    return f"{folder}archive/{day:%Y-%m}/{kind}{name}{'' if is_named else f'-{safe}'}{ending}"


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What compaction did, or would do, to the entries of the live files.

    They leave because they were `retired`, because another file is the same (`repeated`), or says the same (`merged`).
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
        return f"{pluralize(self.before, 'entry')}, {self.after:,} now: {gone}" if self.run.changes else ""


def _strengthened(cluster: Sequence[Memory]) -> dict[str, Value]:
    importance = max(memory.importance for memory in cluster) + CLUSTER_BONUS * (len(cluster) - 1)
    count = max(memory.reinforcement_count for memory in cluster) + 1
    return {"importance": round(min(1.0, importance), 6), "reinforcement_count": count}


@dataclass(frozen=True)
class Compactor:
    """Merges what says the same, and finds what contradicts each other."""

    _vault: Vault
    _writer: Writer
    _memories: Memories
    _models: Models

    def compact(
        self,
        scope: str | None = None,
        job: str | None = None,
        task: str | None = None,
        *,
        threshold: float | None = None,
        dry_run: bool = False,
    ) -> CompactReport:
        """Merge what is said twice, and move what is retired out of the live files.

        Without words it compacts jobs, project and home. Run twice, it changes nothing the second time. What is merged
        away goes to the archive, with a link to what stays. With a `threshold` paraphrases are merged too, whose
        stemmed words overlap by this much; 0.4 merges much.
        """
        if threshold is not None and not 0 < threshold <= 1:
            raise UsageError(
                f"the threshold {threshold} is not above 0 and at most 1",
                "0.4 merges paraphrases; leave it out to merge near copies",
            )
        is_meant = _choose(scope, job, task)
        with self._writer.lock(dry_run=dry_run):
            memories, vectors = self._memories.read_with_vectors(lambda memory: is_meant(memory.place))
            found, changes = self._plan(memories, vectors, threshold)
            # What somebody writes to in this moment is left for the next run, with all that belongs to it.
            run = self._writer.run("compact", changes, dry_run=dry_run)
        left = sum(change.action in ("move", "remove") for change in run.changes)
        return replace(found, after=found.before - left, run=run)

    def _plan(
        self, memories: Sequence[Memory], vectors: EntryVectors | None, threshold: float | None
    ) -> tuple[CompactReport, list[Change]]:
        """Plan to compact entries; a second time there is nothing to do.

        Retired ones go to the archive as they are, where they go on keeping their text from coming back; of files that
        are the same one stays; entries that say the same, or are paraphrases where there is a threshold, become one.
        They are compared with all entries, also those that stay as they are.
        """
        folder_of = self._vault.folder_of
        inside = (one for one in memories if not one.path.startswith(f"{folder_of(one.place)}archive/"))
        mine = list(filter(is_machine_editable, inside))
        live = [memory for memory in mine if memory.is_live]
        entries_in = Counter(memory.path for memory in memories)
        alone = sorted((memory for memory in live if entries_in[memory.path] == 1), key=lambda memory: memory.path)
        first: dict[object, Memory] = {}
        copies = [one for one in alone if first.setdefault((one.id, one.place, one.hash), one) is not one]
        left = {memory.path for memory in copies}
        staying = [memory for memory in memories if memory.path not in left]
        in_file = Counter((memory.path, memory.id) for memory in staying)
        in_scope = Counter((memory.place, memory.id) for memory in staying)
        gone = (memory for memory in mine if memory.status == "retired")
        retired = [memory for memory in gone if in_file[memory.path, memory.id] == 1]
        single = [memory for memory in live if memory.path not in left and in_scope[memory.place, memory.id] == 1]
        changes = [remove(memory, "Another file is the same, byte for byte.", memory.id) for memory in copies]
        changes += [move(memory, self._archive(memory), "It is retired.", memory.id) for memory in retired]
        merged = 0
        for cluster in _find_clusters(single, vectors, threshold):
            primary, *others = rank_for_merging(cluster)
            extra = {} if threshold is None else _strengthened(cluster)
            reason = f"{len(cluster)} entries {'say the same' if threshold is None else 'are paraphrases'}."
            changes += merge_entries(primary, others, self._archive, self._body_of, reason, extra)
            merged += len(others)
        before = len(live) + len(retired)
        return CompactReport(before, before, len(retired), len(copies), merged, RunReport(None, "compact")), changes

    def _archive(self, memory: Memory) -> str:
        return archive_path(memory, self._vault.folder_of(memory.place), self._vault.today())

    def _body_of(self, memory: Memory) -> str:
        try:
            return self._memories.read_from_file(memory).text
        except (CannotSplice, UnreadableInput):
            return memory.text

    def contradictions(
        self, *, resolve: bool = False, since: date | None = None, ask_model: bool = True, dry_run: bool = False
    ) -> ContradictionsReport:
        """Return which entries contradict each other, why, and what is to become of them.

        With `resolve` it is done: the older of two that are 90 days apart is retired in favour of the newer; two that
        contradict each other are linked, flagged for review, and lowered in importance once. The cause comes from a
        language model if one is configured, unless `ask_model` is false, else from a rule. With `since` only what was
        made or taken in on that day or later, or has no date, is held against all.
        """
        notices, failures = list[str](), list[str]()
        has_model = ask_model and self._models.has_llm
        classify = functools.partial(ask_cause, self._models, failures) if has_model else None
        made_since = self._memories.made_since(since) if since else frozenset[str]()

        def is_new(memory: Memory) -> bool:
            made = parse_date(memory.created_at)
            return since is not None and (made is None or made >= since or memory.id in made_since)

        with self._writer.lock(dry_run=dry_run or not resolve):
            found = find_contradictions(self._memories.all(), classify, is_new if since else None, notices)
            run = RunReport(None, "contradictions")
            if resolve:
                run = self._writer.run("contradictions", plan_resolutions(found), dry_run=dry_run)
        return ContradictionsReport(found, run, (*notices, *failures))


def _choose(scope: str | None, job: str | None, task: str | None) -> Callable[[Location], bool]:
    word = SCOPE_ALIASES.get(scope, scope) if scope else None
    if word is not None and word not in SCOPES:
        raise UsageError(f"unknown scope {scope!r}", f"it may be {', '.join(SCOPES)}")
    if job or task:
        wanted = make_place(word or "project", job, task)[:3]
        return lambda place: place[:3] == wanted
    return lambda place: place.scope == word if word else place.scope in _USUAL
