"""A year of a team: sessions of several jobs, with all that is said, done, learned and looked up in them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memory_kb import KnowledgeBase
from memory_kb.markdown.document import parse_document
from memory_kb.reports import SessionWritten
from memory_kb.store.session_events import Event

START = datetime(2026, 1, 1, 9, tzinfo=UTC)
SERVICES = (
    "billing",
    "search",
    "mailer",
    "ledger",
    "gateway",
    "reports",
    "auth",
    "catalogue",
    "media",
    "invoice",
    "pricing",
    "audit",
)
PARTS = (
    "schema",
    "queue",
    "cache",
    "retry policy",
    "health check",
    "time-out",
    "feature flag",
    "worker pool",
    "index",
    "webhook",
    "token",
    "export",
)
VERBS = (
    "needs",
    "must not share",
    "is built from",
    "logs to",
    "waits for",
    "is owned by",
    "falls back to",
    "is tested with",
    "runs beside",
)
THINGS = (
    "the nightly job",
    "a second region",
    "the old importer",
    "PostgreSQL 17",
    "the staging bucket",
    "a signed header",
    "the ops channel",
    "a dry run",
)
LESSONS = (
    "Run the migrations before the server starts, or the health check of the deployment fails.",
    "Build test data with factories; shared fixtures broke when two suites ran at once.",
    "Read the queue length before scaling workers, since the metric lags by five minutes.",
    "Pin the compiler image by digest, because the tag moved twice in one release.",
)
WISHES = (
    "Always use UTC for timestamps in the {} service.",
    "I prefer small pull requests in {}.",
    "Never log request bodies of {}.",
)


@dataclass(slots=True)
class Year:
    """What happens in a year, the same for the same seed.

    Attributes:
        ports: the port of each service as it was learned last, with the id of the entry.
        learned: the ids of all entries that somebody kept by hand.
    """

    folder: Path
    home: Path
    sessions: int
    entries: int
    ports: dict[str, int] = field(default_factory=dict)
    learned: set[str] = field(default_factory=set)
    _rng: random.Random = field(default_factory=lambda: random.Random(7))

    def now(self, number: int) -> datetime:
        return START + timedelta(days=365 * number / self.sessions)

    def open(self, number: int) -> KnowledgeBase:
        moment = self.now(number)
        environ = {"HOME": str(self.home.parent), "MEMORY_KB_SESSION": self.name(number)}
        return KnowledgeBase.open(self.folder, self.home, environ=environ, clock=lambda: moment)

    def name(self, number: int) -> str:
        return f"s{number:03}"

    def job(self, number: int) -> str:
        """Return the job of a session: three run beside each other, each for a month."""
        return f"job{number * 12 // self.sessions * 3 + number % 3:02}"

    def live(self, kb: KnowledgeBase, number: int) -> SessionWritten:
        """Let one session happen and end."""
        rng, job, session = self._rng, self.job(number), self.name(number)
        service = rng.choice(SERVICES)
        kb.sessions.start(session, job=job, task=f"t{number}", agent="coder")
        kb.context(
            f"change the {rng.choice(PARTS)} of the {service} service", labels=[service], agent="coder", session=session
        )
        for _ in range(3):
            kb.search(f"{rng.choice(SERVICES)} {rng.choice(PARTS)}")
        kb.sessions.append(self._events(service), session=session)
        for _ in range(self.entries // self.sessions):
            self._learn(kb, job)
        if number % 5 == 0:
            self._move(kb, service)
        return kb.sessions.end(session, outcome=rng.choice(("success", "success", "success", "mixed", "failure")))

    def _learn(self, kb: KnowledgeBase, job: str) -> None:
        rng = self._rng
        service, kind = (
            rng.choice(SERVICES),
            rng.choice(("fact", "fact", "fact", "decision", "rule", "pitfall", "architecture")),
        )
        text = f"The {rng.choice(PARTS)} of the {service} service {rng.choice(VERBS)} {rng.choice(THINGS)}, as ticket {rng.randrange(10_000)} showed."
        if rng.random() < 0.03:
            text = rng.choice(LESSONS)
            kb_job: str | None = job
        else:
            kb_job = job if rng.random() < 0.3 else None
        done = kb.learn(text, kind=kind, tags=[service], job=kb_job)
        self.learned.add(done.id)

    def _move(self, kb: KnowledgeBase, service: str) -> None:
        """Give a service another port, as somebody would note it."""
        port = self._rng.randrange(2_000, 9_000)
        self.learned.add(kb.learn(f"The {service} service listens on port {port}.", tags=[service]).id)
        self.ports[service] = port

    def _events(self, service: str) -> Iterator[Event]:
        rng = self._rng
        yield Event(role="user", content=f"Please change the {rng.choice(PARTS)} of {service}.")
        if rng.random() < 0.4:
            yield Event(role="user", content=rng.choice(WISHES).format(service))
        for number in range(8):
            call = f"c{number}"
            is_ok = rng.random() < 0.8
            yield Event(
                type="tool_call",
                tool="Bash",
                call_id=call,
                args={"command": f"pytest {service}/tests -k {rng.choice(PARTS).split()[0]}"},
            )
            yield Event(
                type="tool_result",
                tool="Bash",
                call_id=call,
                ok=is_ok,
                content="3 passed" if is_ok else f"E  AssertionError: {service} is slow",
            )
        yield Event(role="assistant", content=f"Done: the {service} service works again.")


def entries_of(folder: Path) -> dict[tuple[str, str], str]:
    """Return the bytes of every entry of a folder, by file and id."""
    found = {}
    for file in sorted(folder.rglob("*.md")):
        text = file.read_bytes().decode()
        for entry in parse_document(text, file.name).entries:
            found[str(file.relative_to(folder)), entry.id] = text[entry.span.start : entry.span.end]
    return found
