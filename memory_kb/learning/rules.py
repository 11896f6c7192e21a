"""The verbs of rules: list, select, feedback, import, export and sweep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Unpack

from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.index.vault_index import VaultIndex
from memory_kb.learning import playbook
from memory_kb.learning.guards import AllowedChecks, Refusals, count_refusals
from memory_kb.learning.ingest import Ingested, Learning
from memory_kb.learning.memories import Memories
from memory_kb.learning.playbook_file import RuleImported, RulesImported, export_rules, parse_rules
from memory_kb.markdown.splice import Value
from memory_kb.memory import Memory
from memory_kb.model import EVERYTHING, FilterWords
from memory_kb.providers.models import Models
from memory_kb.reports import RunReport
from memory_kb.store.changes import Change, plan_fields
from memory_kb.store.writer import Writer
from memory_kb.vault import Vault


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep did or would do; `flagged` are all that are candidates now, new ones or not."""

    promoted: tuple[str, ...]
    demoted: tuple[str, ...]
    flagged: tuple[str, ...]
    run: RunReport


def plan_sweep(memories: Iterable[Memory], today: date) -> tuple[SweepReport, tuple[Change, ...]]:
    """Plan to move rules between their levels, and to flag those that are worth a look.

    The decay is computed and never stored, since it would compound from sweep to sweep. The day of a rule's last move
    is its `maturity_since`; it moves one level a day at most. A flag goes when its reason does; one that a person took
    away in the review comes back only after a new outcome.
    """
    promoted, demoted, flagged, changes = list[str](), list[str](), list[str](), list[Change | None]()
    for memory in filter(playbook.is_rule, memories):
        values, said, evidence = dict[str, Value](), list[str](), playbook.read_evidence(memory)
        level = playbook.mature(evidence, today, is_pinned=memory.is_pinned)
        if level != evidence.maturity and memory.day("maturity_since") != today:
            is_up = playbook.MATURITIES.index(level) > playbook.MATURITIES.index(evidence.maturity)
            (promoted if is_up else demoted).append(memory.id)
            values = {"maturity": level, "maturity_since": today.isoformat()}
            said.append(f"{'Promotion' if is_up else 'Demotion'} to {level}")
        flag = None if memory.is_pinned or playbook.was_reviewed(memory) else playbook.find_flag(evidence, today)
        flags = [word for word in memory.words("flags") if word not in (playbook.DEMOTION, playbook.REMOVAL)]
        if flag:
            flags.append(flag)
            flagged.append(memory.id)
        if tuple(flags) != memory.words("flags"):
            values["flags"] = flags
            said.append(f"Flagged as {flag}" if flag else "No candidate any more")
        numbers = f"confidence {evidence.decayed(today):.2f}, {evidence.described}"
        changes.append(plan_fields(memory, values, f"{'; '.join(said)}: {numbers}."))
    report = SweepReport(tuple(promoted), tuple(demoted), tuple(flagged), RunReport(None, "sweep"))
    return report, tuple(filter(None, changes))


def _say_imported(one: Ingested, line: int) -> RuleImported:
    rule = RuleImported(one.learning.entry_id, one.path, one.action, line, one.message)
    return rule._replace(action="known", message=f"{one.id} says the same") if one.action == "reinforced" else rule


@dataclass(frozen=True)
class Rules:
    """The verbs rules list, select, feedback, import and export, and sweep."""

    _vault: Vault
    _index: VaultIndex
    _writer: Writer
    _memories: Memories
    _models: Models

    def list(self, **filters: Unpack[FilterWords]) -> tuple[playbook.PlaybookRule, ...]:
        """Return the rules and pitfalls in force, the surest first; of one id at two scopes, the most specific."""
        rules = (playbook.make_rule(memory, self._vault.today()) for memory in self._in_force(**filters))
        return tuple(sorted(rules, key=lambda rule: (-rule.confidence, rule.id, rule.path)))

    def _in_force(self, **filters: Unpack[FilterWords]) -> tuple[Memory, ...]:
        chosen = self._index.filters(**filters)
        found = playbook.active_rules(self._memories.of_kinds(*playbook.RULE_KINDS, job=chosen.job, task=chosen.task))
        fitting = {(memory.path, memory.id) for memory in self._memories.all(chosen)} if filters else ()
        return tuple(one for one in found if (one.path, one.id) in fitting) if filters else found

    def select(
        self,
        labels: Sequence[str] = (),
        type: str | None = None,
        *,
        job: str | None = None,
        task: str | None = None,
        max_tokens: int | None = None,
        max_rules: int | None = None,
    ) -> playbook.Selection:
        """Return the rules and pitfalls for a task with these labels and of this type."""
        words = (labels,) if isinstance(labels, str) else tuple(labels)
        return playbook.select_rules(
            self._memories.of_kinds(*playbook.RULE_KINDS, job=job, task=task),
            words,
            type,
            self._vault.today(),
            max_tokens=playbook.MAX_TOKENS if max_tokens is None else max_tokens,
            max_rules=playbook.MAX_RULES if max_rules is None else max_rules,
            count=self._models.counter.count,
        )

    def feedback(self, wanted: str, outcome: str, *, reason: str | None = None, dry_run: bool = False) -> RunReport:
        """Count an outcome of one rule or pitfall: `success`, `failure` or `mixed`."""
        credit = playbook.parse_outcome(outcome)
        found = self._memories.find(wanted)
        if not playbook.is_rule(found):
            hint = "`memory-kb skills feedback` is for skills" if found.kind == "skill" else None
            raise UsageError(f"{found.id} is no rule in use", hint or f"`memory-kb show {found.id}` shows it")
        because = " ".join((reason or "").split())
        said = f"Feedback: {credit}, {because}." if because else f"Feedback: {credit}."
        today = self._vault.today()
        return self._memories.change_entries(
            "rules feedback", [found], lambda rule: playbook.plan_feedback(rule, credit, today, said), dry_run=dry_run
        )

    def sweep(self, *, dry_run: bool = False) -> SweepReport:
        """Move rules between their levels of maturity, and flag those worth a look."""
        today = self._vault.today()
        rules = EVERYTHING._replace(kinds=playbook.RULE_KINDS)
        found, _ = plan_sweep(self._memories.all(rules), today)
        run = self._memories.run_plan("sweep", lambda fresh: plan_sweep(fresh, today)[1], rules, dry_run=dry_run)
        return replace(found, run=run)

    def import_(
        self,
        source: str | Path,
        *,
        scope: str = "project",
        job: str | None = None,
        task: str | None = None,
        dry_run: bool = False,
    ) -> RulesImported:
        """Import rules of a YAML playbook, ours or one of cass, under their own ids; known ones stay as they are."""
        place = self._vault.place_for(scope, job, task)
        try:
            text = Path(source).expanduser().read_bytes().decode("utf-8", "replace")
        except OSError as exc:
            raise UnreadableInput(f"{source} cannot be read: {exc.strerror}", "name a playbook.yaml") from exc
        rules, problems = parse_rules(text, str(source))
        learnings = [Learning(one.draft, place, f"rule/{one.draft.text}", "Imported.", own_id=one.id) for one in rules]
        with self._writer.lock(dry_run=dry_run):
            plan = self._memories.plan_ingest(learnings, again=True)
            # What is known stays as it is.
            new = [change for change in plan.changes if change.planned is None]
            run = self._writer.run("rules import", new, dry_run=dry_run)
        done = (_say_imported(one, rule.line) for one, rule in zip(plan.results, rules, strict=True))
        return RulesImported(tuple(done), problems, run)

    def export(self, **filters: Unpack[FilterWords]) -> str:
        """Return the rules and pitfalls in force as a YAML playbook, which `rules_import` reads back."""
        return export_rules(self._in_force(**filters))

    def refusals(self, rule: str) -> Refusals:
        """Return in how many sessions of agents a rule refused an edit, and in how many it was broken all the same."""
        return count_refusals(self._vault, rule)

    def check_of(self, rule: Memory) -> tuple[str, bool]:
        """Return the command of a rule, "" where it has none, and whether it may be run here."""
        command = rule.word("check") or ""
        return command, bool(command) and AllowedChecks(self._vault).allows(command)

    def allow(self, rule: str, command: str) -> None:
        """Let the command of a rule be run here, that very text; another vault or machine does not know of it."""
        if not command or self._memories.find(rule).word("check") != command:
            raise UsageError(f"rule {rule} has no such check:", "add a command to its frontmatter")
        AllowedChecks(self._vault).allow(command)
