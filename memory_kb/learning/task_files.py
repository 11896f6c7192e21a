"""The files beside a task that are no notes: the intent, the pre-mortem, the assumptions at milestones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from memory_kb.errors import UsageError
from memory_kb.learning import RECOMMENDATIONS
from memory_kb.learning.conversation import clean_text
from memory_kb.learning.render_entry import refuse_secrets
from memory_kb.markdown.splice import newline_of
from memory_kb.model import Location, make_place
from memory_kb.reports import RunReport
from memory_kb.store.changes import Change, Plan, create_file, write_file
from memory_kb.store.file_edits import NoteText, find_note
from memory_kb.store.session_events import cut
from memory_kb.store.writer import Writer
from memory_kb.text import load_json, printable, shorten
from memory_kb.vault import Vault

INTENT, PREMORTEM, ASSUMPTIONS = "INTENT.md", ".premortem.md", ".assumptions.jsonl"
#: The files that a session is compared with, by their names in `TaskFiles.documents`.
TASK_DOCUMENTS: Mapping[str, str] = {"intent": INTENT, "premortem": PREMORTEM, "assumptions": ASSUMPTIONS}
ASSUMED = ("complexity", "approach_viability", "preference_model", "scope")
#: Characters of a document that a session is held against.
_DOCUMENT_CHARS = 6_000


class Milestone(NamedTuple):
    """What was assumed when a milestone was reached, by the names of `ASSUMED`, and what was recommended then."""

    milestone: str
    timestamp: str
    assumptions: Mapping[str, str]
    recommendation: str = "continue"


class Milestones(NamedTuple):
    """The milestones of a file, and the numbers of its lines that hold none."""

    checkpoints: tuple[Milestone, ...]
    torn: tuple[int, ...]


def parse_milestones(text: str) -> Milestones:
    """Return the milestones of a file; anything else is skipped and reported."""
    found, torn = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = load_json(line)
        except ValueError:
            record = None
        if isinstance(record, dict) and isinstance(record.get("milestone"), str):
            found.append(_read_milestone(record))
        else:
            torn.append(number)
    return Milestones(tuple(found), tuple(torn))


def _read_milestone(record: Mapping[str, Any]) -> Milestone:
    held, advice = record.get("assumptions"), record.get("recommendation")
    assumed = {name: str(held.get(name) or "") if isinstance(held, dict) else "" for name in ASSUMED}
    time = str(record.get("timestamp") or "")
    return Milestone(record["milestone"], time, assumed, advice if advice in RECOMMENDATIONS else "continue")


def show_milestones(found: Milestones) -> str:
    """Return milestones as a model is shown them, one a line."""
    return "\n".join(
        f"{one.timestamp} {one.milestone}: "
        + "; ".join(f"{name.replace('_', ' ')}: {text}" for name, text in one.assumptions.items() if text)
        + f" ({one.recommendation})"
        for one in found.checkpoints
    )


@dataclass(frozen=True)
class TaskFiles:
    """The verbs premortem and assume, and the files of a scope that are no notes."""

    _vault: Vault
    _writer: Writer

    def premortem(
        self,
        text: str,
        *,
        title: str | None = None,
        job: str | None = None,
        task: str | None = None,
        dry_run: bool = False,
    ) -> RunReport:
        """Record a plan and its risks before the work begins; the title is by default the first line."""
        place = self._vault.place_for("project", job, task)
        if not text.strip():
            raise UsageError(
                "there is no plan", 'try: memory-kb premortem "The import may be too slow for 10,000 files."'
            )
        text = printable(text)
        first = next(line for line in text.splitlines() if line.strip())
        name = shorten(" ".join(printable(title or first).lstrip("#> ").split()), 100)
        refuse_secrets(text, name, allow=self._vault.allows_secrets)
        where = " ".join(filter(None, (place.job and f"job {place.job}", place.task and f"task {place.task}")))
        day = self._vault.today().isoformat()
        head = f"# Pre-mortem: {name}\n\nDate: {day}\nTask: {where or 'project'}\n"
        framed = f"{head}\n---\n\n{text.strip()}\n"

        def plan(held: NoteText | None, path: str) -> Change | None:
            if held is None:
                return create_file(path, framed, "The plan before the work begins.")
            lines = [
                [line for line in one.splitlines() if not line.startswith("Date: ")] for one in (held.text, framed)
            ]
            return None if lines[0] == lines[1] else write_file(held, framed, "The plan changed.")

        return self._write_beside("premortem", place, PREMORTEM, plan, dry_run=dry_run)

    def assume(
        self,
        milestone: str,
        *,
        complexity: str = "",
        approach: str = "",
        preferences: str = "",
        scope_note: str = "",
        recommendation: str = "continue",
        job: str | None = None,
        task: str | None = None,
        dry_run: bool = False,
    ) -> RunReport:
        """Record what is assumed at a milestone; the recommendation is continue, notify or escalate."""
        place = self._vault.place_for("project", job, task)
        given = (milestone, complexity, approach, preferences, scope_note)
        name, *texts = (" ".join(printable(text).split()) for text in given)
        if not name:
            raise UsageError("the milestone has no name", "try: memory-kb assume planned --complexity medium")
        if recommendation not in RECOMMENDATIONS:
            raise UsageError(f"unknown recommendation {recommendation!r}", f"it may be {', '.join(RECOMMENDATIONS)}")
        if not any(texts):
            raise UsageError("nothing is assumed", "say one of --complexity, --approach, --preferences, --scope-note")
        refuse_secrets(name, *texts, allow=self._vault.allows_secrets)
        made = Milestone(name, self._vault.timestamp(), dict(zip(ASSUMED, texts, strict=True)), recommendation)
        line, reason = json.dumps(made._asdict(), ensure_ascii=False), f"What is assumed at {name}."

        def plan(held: NoteText | None, path: str) -> Change | None:
            if held is None:
                return create_file(path, f"{line}\n", reason)
            known = parse_milestones(held.text).checkpoints
            if known and known[-1]._replace(timestamp=made.timestamp) == made:
                return None
            # A line that was left unfinished stays as it is, on a line of its own.
            end = newline_of(held.text)
            start = held.text if held.text.endswith("\n") or not held.text else held.text + end
            return write_file(held, f"{start}{line}{end}", reason)

        return self._write_beside("assume", place, ASSUMPTIONS, plan, dry_run=dry_run)

    def assumptions(self, *, job: str | None = None, task: str | None = None) -> Milestones:
        """Return what was assumed at the milestones so far."""
        return parse_milestones(self._text_beside(self._vault.place_for("project", job, task), ASSUMPTIONS))

    def _write_beside(
        self,
        verb: str,
        place: Location,
        name: str,
        plan: Callable[[NoteText | None, str], Change | None],
        *,
        dry_run: bool,
    ) -> RunReport:
        """Write a file of a scope that is no note; one that changes meanwhile is planned anew."""

        def make(path: str) -> Plan:
            return [plan(find_note(self._vault, path), path)]

        return self._writer.run(verb, make(f"{self._vault.folder_of(place)}{name}"), replan=make, dry_run=dry_run)

    def _text_beside(self, place: Location, name: str) -> str:
        note = find_note(self._vault, f"{self._vault.folder_of(place)}{name}")
        return note.data.decode("utf-8", "replace") if note else ""

    def documents(self, place: Location) -> Mapping[str, str]:
        """Return the texts to compare a session at a place with: its intent, its pre-mortem and its assumptions."""
        around = dict.fromkeys(((place.job, place.task), (place.job, None), (None, None)))
        intents = (self._text_beside(make_place("project", job, task), INTENT).strip() for job, task in around)
        intent = next(filter(None, intents), "")
        if not intent and (note := find_note(self._vault, INTENT)):
            intent = note.data.decode("utf-8", "replace")
        assumed = show_milestones(parse_milestones(self._text_beside(place, ASSUMPTIONS)))
        texts = {"intent": intent, "premortem": self._text_beside(place, PREMORTEM), "assumptions": assumed}
        return {name: cut(clean_text(text), _DOCUMENT_CHARS) for name, text in texts.items()}
