"""The playbook: listing, choosing, feedback, the sweep, import and export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.filters import EVERYTHING, FilterWords, make_filters, make_place

if TYPE_CHECKING:
    from typing import Unpack

    from memory_kb.index.keeper import VaultIndex
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.memories import Memory
    from memory_kb.learning.rules.playbook import Rule, Selection
    from memory_kb.learning.rules.rulefile import Imported, ImportReport
    from memory_kb.learning.rules.sweeping import SweepReport
    from memory_kb.model import Filters
    from memory_kb.notes.plans import Change
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.providers.models import Models
    from memory_kb.reports import RunReport


class Rules:
    """The verbs rules list, select, feedback, import and export, and sweep."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer, store: EntryStore, models: Models) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer
        self._store = store
        self._models = models

    def list(self, **filters: Unpack[FilterWords]) -> tuple[Rule, ...]:
        """Return the rules and pitfalls in force, the surest first.

        The filters are those of `search`. Of the same id at two scopes the most specific is listed.
        """
        from memory_kb.learning.rules.playbook import load_merged, make_rule

        chosen = self._index.filters(**filters)
        fitting = {(memory.path, memory.id) for memory in self._store.all(chosen)} if filters else None
        rules = (
            make_rule(memory, self._vault.today())
            for memory in load_merged(self._store.all(_visible(chosen)))
            if fitting is None or (memory.path, memory.id) in fitting
        )
        return tuple(sorted(rules, key=lambda rule: (-rule.confidence, rule.id, rule.path)))

    def select(
        self,
        labels: Sequence[str] = (),
        type: str | None = None,
        *,
        job: str | None = None,
        task: str | None = None,
        max_tokens: int | None = None,
        max_rules: int | None = None,
    ) -> Selection:
        """Return the rules and pitfalls for a task with these labels and of this type (S0-46).

        Both lists together cost at most 500 tokens and hold at most 10 rules. Candidates for removal, and
        rules whose inversion is proposed, wait for a person's judgment.

        Raises:
            UsageError: a task is named without its job.
        """
        from memory_kb.learning.rules.doubting import set_aside
        from memory_kb.learning.rules.playbook import MAX_RULES, MAX_TOKENS, select_rules

        words = (labels,) if isinstance(labels, str) else tuple(labels)
        return select_rules(
            set_aside(self._store.all(_visible(make_filters(job=job, task=task))), self._vault.today()),
            words,
            type,
            self._vault.today(),
            max_tokens=MAX_TOKENS if max_tokens is None else max_tokens,
            max_rules=MAX_RULES if max_rules is None else max_rules,
            count=self._models.counter.count,
        )

    def feedback(self, wanted: str, outcome: str, *, reason: str | None = None, dry_run: bool = False) -> RunReport:
        """Count an outcome of one rule or pitfall: `success`, `failure` or `mixed` (S0-22, S0-23).

        Each call is one more outcome. `helpful` and `harmful` mean success and failure.

        Raises:
            UnknownEntry: there is no such entry.
            UsageError: it is no rule in use, or there is no such outcome.
        """
        from memory_kb.learning.rules.playbook import is_rule, plan_feedback

        credit = read_outcome(outcome)
        with self._store.planning(dry_run=dry_run):
            found = self.find(wanted)
            if not is_rule(found):
                what = f"a {found.kind}, not a rule" if found.kind not in ("rule", "pitfall") else "no rule in use"
                hint = (
                    "`memory-kb skills feedback` is for skills"
                    if found.kind == "skill"
                    else f"`memory-kb show {found.id}` shows it"
                )
                raise UsageError(f"{found.id} is {what}", hint)
            because = " ".join((reason or "").split())
            said = f"Feedback: {credit}, {because}." if because else f"Feedback: {credit}."
            today = self._vault.today()
            return self._store.carry_out(
                "rules feedback",
                lambda memories: [
                    change
                    for memory in memories
                    if (memory.path, memory.id) == (found.path, found.id)
                    and (change := plan_feedback(memory, credit, today, said))
                ],
                dry_run=dry_run,
            )

    def sweep(self, *, dry_run: bool = False) -> SweepReport:
        """Move rules between their levels of maturity, and flag those worth a look (S0-29).

        A rule moves one level a day at most. Nothing is deleted; the decay itself is never written.
        """
        from memory_kb.learning.rules.sweeping import SweepReport, plan_sweep

        today = self._vault.today()
        with self._store.planning(dry_run=dry_run):
            found = plan_sweep(self._store.all(_visible(EVERYTHING)), today)
            run = self._store.carry_out(
                "sweep", lambda memories: plan_sweep(memories, today).changes, found.changes, dry_run=dry_run
            )
        left = {conflict.id for conflict in run.conflicts}
        promoted, demoted = (tuple(one for one in ids if one not in left) for ids in (found.promoted, found.demoted))
        return SweepReport(promoted, demoted, found.flagged, run)

    def import_(
        self,
        source: str | Path,
        *,
        scope: str = "project",
        job: str | None = None,
        task: str | None = None,
        dry_run: bool = False,
    ) -> ImportReport:
        """Bring in the rules of a YAML playbook, ours or one of cass, under their own ids.

        What is known stays as it is, so importing a file again changes nothing.

        Raises:
            UnreadableInput: the file cannot be read, or holds no list of rules.
            UsageError: the place makes no sense.
        """
        from memory_kb.learning.rules.rulefile import ImportReport, Room, parse_rules, plan_import

        place = make_place(scope, job, task)
        if place.job and not self._vault.memory:
            raise UsageError(
                f"{self._vault.folder} is a plain folder and has no jobs", "`memory-kb init` makes a vault that has"
            )
        try:
            text = Path(source).expanduser().read_bytes().decode("utf-8", "replace")
        except OSError as exc:
            raise UnreadableInput(f"{source} cannot be read: {exc.strerror}", "name a playbook.yaml") from exc
        file = parse_rules(text, str(source))
        folder = self._vault.folder_of(place)
        with self._store.planning(dry_run=dry_run):

            def plan(index: SqliteIndex) -> tuple[Sequence[Imported], Sequence[Change]]:
                taken = frozenset(entry.source for entry in index.entries(EVERYTHING))
                return plan_import(file.rules, index, Room(place, folder, taken), self._vault.clock())

            done, changes = self._index.read(plan)
            run = self._writer.run("rules import", changes, dry_run=dry_run)
        return ImportReport(tuple(done), file.problems, run)

    def export(self, **filters: Unpack[FilterWords]) -> str:
        """Return the rules and pitfalls in force as a YAML playbook, which `rules_import` reads back."""
        from memory_kb.learning.rules.playbook import load_merged
        from memory_kb.learning.rules.rulefile import export_rules

        listed = {(rule.path, rule.id) for rule in self.list(**filters)}
        return export_rules(
            memory
            for memory in load_merged(self._store.all(_visible(EVERYTHING)))
            if (memory.path, memory.id) in listed
        )

    def find(self, wanted: str) -> Memory:
        """Return the entry that an id, its unique beginning or `path.md:LINE` names.

        Raises:
            UnknownEntry: there is none.
            AmbiguousId: there are several.
        """
        from memory_kb.index import inventory
        from memory_kb.learning.memories import make_memory

        def find(index: SqliteIndex) -> Memory:
            entry = inventory.find(self._vault, index, wanted)
            return next(
                one for one in map(make_memory, index.memories(EVERYTHING, entry.source)) if one.id == entry.entry_id
            )

        return self._index.read(find)


def _visible(filters: Filters) -> Filters:
    """Return filters for the rules that a job and task see, of any status: a retired one hides one of a wider scope."""
    from memory_kb.learning.rules.playbook import RULE_KINDS

    return EVERYTHING._replace(kinds=RULE_KINDS, job=filters.job, task=filters.task)


def read_outcome(word: str) -> str:
    """Return the outcome that a word means.

    Raises:
        UsageError: none.

    Example:
        >>> read_outcome("helpful"), read_outcome("partial")
        ('success', 'mixed')
    """
    from memory_kb.learning.rules.confidence import OUTCOMES

    known = {"helpful": "success", "harmful": "failure", "partial": "mixed"} | {one: one for one in OUTCOMES}
    if word.lower() not in known:
        raise UsageError(f"unknown outcome {word!r}", f"it may be {', '.join(OUTCOMES)}")
    return known[word.lower()]
