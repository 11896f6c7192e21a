"""Update two marked sections of CONTINUITY.md; every other byte is the agent's."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import CannotSplice, MemoryKBError, UsageError
from memory_kb.injected_text import remove_injected
from memory_kb.learning.playbook import is_doubted
from memory_kb.markdown.managed_block import find, put
from memory_kb.memory import Memory
from memory_kb.model import EVERYTHING, KINDS, LIVE_STATUSES, WORKING_KINDS, make_filters
from memory_kb.reports import RunReport
from memory_kb.search.query import Request
from memory_kb.store.changes import Change, create_file, write_file
from memory_kb.store.file_edits import NoteText, find_note
from memory_kb.store.logs import log_shown
from memory_kb.text import on_one_line, shorten

if TYPE_CHECKING:
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.search.service import Searching
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault

CONTINUITY = "CONTINUITY.md"
#: The names of the two sections, with the headings that they have.
CONTINUITY_SECTIONS = {
    "relevant": "## Relevant Memories (Auto-Retrieved)",
    "avoid": "## Mistakes to Avoid (From Learnings)",
}
#: How long another process that writes is waited for, before CONTINUITY.md is left as it is.
_PATIENCE = 0.2
#: A summary is at most as long.
_SUMMARY = 120


class ContinuityView(NamedTuple):
    """CONTINUITY.md as it is; `text` is None where there is none, `problem` what is wrong with its marks."""

    path: str
    text: str | None
    problem: str | None = None


class ContinuityReport(NamedTuple):
    """What the two sections of CONTINUITY.md name now, and what was written for it."""

    path: str
    relevant: tuple[str, ...]
    avoid: tuple[str, ...]
    run: RunReport
    degraded: tuple[str, ...] = ()


def plan_continuity(
    path: str, note: NoteText | None, relevant: Sequence[Memory], avoid: Sequence[Memory]
) -> Change | None:
    """Plan to bring the two sections up to date; None where they say so already.

    Raises:
        CannotSplice: the marks in the file are damaged; nothing is to be written.
    """
    text = note.text if note else ""
    if not (relevant or avoid or any(find(path, text, name) for name in CONTINUITY_SECTIONS)):
        return None
    lines = {
        "relevant": [name_line(one) for one in relevant],
        "avoid": [f"- {safe_line(_said_of(one))}" for one in avoid],
    }
    for name, heading in CONTINUITY_SECTIONS.items():
        text = put(path, text, name, "\n".join([heading, *([""] if lines[name] else []), *lines[name]]))
    reason = "What fits the work at hand."
    if note is None:
        return create_file(path, text, reason)
    return write_file(note, text, reason) if text != note.text else None


def find_damage(path: str, text: str) -> str | None:
    """Return the fault in the marks of the two sections of a text; None if they are whole, or there are none."""
    try:
        for name in CONTINUITY_SECTIONS:
            find(path, text, name)
    except CannotSplice as exc:
        return exc.what
    return None


def name_line(one: Memory) -> str:
    """Return a line that names an entry, by an id that `show` finds."""
    return f"- [{'skill: ' if one.kind == 'skill' else ''}{safe_line(one.id)}] {safe_line(_said_of(one))}".rstrip()


def safe_line(text: str) -> str:
    """Return a text on one line, in which no comment begins or ends, so that no mark can be faked."""
    line = shorten(on_one_line(text), _SUMMARY)
    line = line.replace("<!--", "<! --").replace("-->", "-- >")
    return re.sub(r"memory-kb:(?=\s*(?:begin|end|start)\b)", "memory-kb ", line)


def first_own_words(text: str, limit: int) -> str:
    """Return the first words of a file that are the agent's own, as what it is working on."""
    lines = (line.strip().lstrip("#>-*").strip() for line in remove_injected(text.removeprefix("\ufeff")).splitlines())
    return " ".join(line for line in lines if line)[:limit].strip()


#: What one section holds at most, and the characters of a file that represent the task.
_LINES, _OWN_WORDS = 5, 600
#: Passages for each line: a long entry may be found by several, and some are left out.
_PASSAGES = 4


@dataclass(frozen=True)
class Continuity:
    """The verbs continuity show and continuity refresh."""

    _vault: Vault
    _index: VaultIndex
    _get_writer: Callable[[], Writer]
    _searching: Searching

    def show(self, job: str | None = None) -> ContinuityView:
        """Return CONTINUITY.md of the project, or of one of its jobs."""
        path, note = self.read(job)
        if note is None:
            return ContinuityView(path, None)
        return ContinuityView(path, note.data.decode("utf-8", "replace"), find_damage(path, note.text))

    def refresh(
        self, task: str | None = None, *, job: str | None = None, only_if_there: bool = False, dry_run: bool = False
    ) -> ContinuityReport:
        """Bring the two sections of CONTINUITY.md up to date: what fits the task, and what to avoid.

        Without a task the file's own first words say what it is. All else in the file stays byte for byte. With
        `only_if_there` nothing is done where there is no such file, or nothing in it to go by.
        """
        path, note = self.read(job)
        own = first_own_words(note.data.decode("utf-8", "replace"), _OWN_WORDS) if note else ""
        words = (task or "").strip() or own
        if only_if_there and (note is None or not words):
            return ContinuityReport(path, (), (), RunReport(None, "continuity"))
        if not words:
            raise UsageError(
                f"nothing says what is being done, and neither does {path}",
                'say it: memory-kb continuity refresh --task "fix the upload test"',
            )
        relevant, unsure = self._find_fitting(
            [kind for kind in KINDS if kind not in (*WORKING_KINDS, "pitfall")], words, job
        )
        avoid, _ = self._find_fitting(["pitfall"], words, job)

        def plan(_: str) -> list[Change | None]:
            return [plan_continuity(path, self.read(job)[1], relevant, avoid)]

        run = self._get_writer().run("continuity", plan(path), replan=plan, dry_run=dry_run)
        if run.conflicts and run.conflicts[0].code != "changed":
            raise CannotSplice(run.conflicts[0].message)
        if not (dry_run or only_if_there):
            log_shown(self._vault, "continuity", (one.id for one in (*relevant, *avoid)), query=words, injected=True)
        return ContinuityReport(path, tuple(one.id for one in relevant), tuple(one.id for one in avoid), run, unsure)

    def keep_up(self, task: str, job: str | None) -> tuple[str, ...]:
        """Bring CONTINUITY.md up to date for a task where there is one; return why it was not. Nobody waits for it.

        A plain folder of notes is only read.
        """
        if not self._vault.memory or not task.strip():
            return ()
        path, note = self.read(job)
        if note is None:
            return ()
        try:
            with self._get_writer().lock(patience=_PATIENCE):
                run = self.refresh(task, job=job, only_if_there=True).run
        except (MemoryKBError, OSError) as exc:
            return (f"{path} was left as it is: {exc}",)
        return tuple(f"{path} was left as it is: {conflict.message}" for conflict in run.conflicts)

    def read(self, job: str | None) -> tuple[str, NoteText | None]:
        """Return the path of CONTINUITY.md, and the file where there is one."""
        place = self._vault.place_for("project", job, None)
        path = f"{self._vault.folder_of(place)}{CONTINUITY}"
        return path, find_note(self._vault, path)

    def _find_fitting(
        self, kinds: list[str], words: str, job: str | None
    ) -> tuple[tuple[Memory, ...], tuple[str, ...]]:
        """Return the live entries of some kinds that fit some words best, and what was degraded."""
        request = Request(words, make_filters(kind=kinds, status=sorted(LIVE_STATUSES), job=job), _LINES * _PASSAGES)

        def read(index: SqliteIndex) -> tuple[tuple[Memory, ...], tuple[str, ...]]:
            result = self._searching.search_vault(request)
            named = dict.fromkeys((hit.id, hit.path) for hit in result.hits if not hit.path.endswith(CONTINUITY))
            entries = (
                one for entry_id, path in named for one in index.memories(EVERYTHING, path) if one.id == entry_id
            )
            given = (one for one in entries if one.may_be_given_unasked and not is_doubted(one, self._vault.today()))
            went_well = (one for one in given if not (one.is_failed_episode or one.is_mixed_episode))
            return tuple(islice(went_well, _LINES)), result.degraded

        return self._index.use(read)


def _said_of(memory: Memory) -> str:
    """Return what a line says of an entry: its title, or the description of a skill."""
    described = memory.word("description") if memory.kind == "skill" else None
    named = f"{memory.title}: {described}" if described and memory.title != memory.id else described
    return named or memory.title
