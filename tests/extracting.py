"""Sessions to learn from, and what a language model says about them, for the tests of extraction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import NOW, Files

from memory_kb import KnowledgeBase
from memory_kb.learning.extraction_scopes import EXTRACTION_SCOPES, ExtractionPass, choose_scopes
from memory_kb.memory import Memory
from memory_kb.store.session_events import Event

if TYPE_CHECKING:
    from fake_provider import FakeProvider

Open = Callable[..., KnowledgeBase]

#: What happens in the session, none of which a rule would find; the number of an event is its place here, after the start as 1.
SAID = "Timestamps in UTC are what people read here, and the schema is mine to decide."
FAILED = "redis refused the connection on port 6379"
MENDED = "The redis container was down, so I ran docker compose up redis and the suite passed."
EVENTS = (
    Event(role="user", content=SAID),
    Event(type="tool_call", tool="Bash", args={"command": "pytest tests/api"}, call_id="c1"),
    Event(type="tool_result", tool="Bash", ok=False, error=FAILED, call_id="c1"),
    Event(role="assistant", content=MENDED),
)

#: Scope -> a number and a quote that are in the record.
EVIDENCE = {
    "observations": (2, SAID[:30]),
    "escalation": (2, "the schema is mine to decide"),
    "corrective": (4, FAILED),
}
_TEXTS = {
    "observations": "Timestamps are always written in UTC.",
    "escalation": "The person decides about the schema and wants to be asked before it is touched.",
    "corrective": "The suite fails when redis refused the connection on port 6379.",
}


def variables(fake: FakeProvider, **more: str) -> dict[str, str]:
    """Return the environment of somebody who has chosen the fake model."""
    chosen = {"MEMORY_KB_LLM_PROVIDER": "openai", "MEMORY_KB_LLM_BASE_URL": fake.base_url, "MEMORY_KB_LLM_MODEL": "m"}
    return chosen | {"MEMORY_KB_EMBEDDINGS_PROVIDER": "none"} | more


def log_session(
    kb: KnowledgeBase, session: str = "s1", *events: Event, job: str | None = "api", task: str | None = "login"
) -> str:
    """Log a session that is over."""
    kb.sessions.start(session, job=job, task=task)
    kb.sessions.append(events or EVENTS, session=session)
    kb.sessions.end(session, outcome="success", only_close=True)
    return session


def step_of(scope: str, number: int = 0) -> ExtractionPass:
    return choose_scopes([scope])[0].passes[number]


def learning(scope: str, *evidence: tuple[int, str], step: int = 0, **fields: object) -> dict[str, Any]:
    """Return a learning as a model writes it, good unless `fields` say otherwise."""
    text = _TEXTS.get(scope, f"The {scope} of redis, docker compose and the suite, as it was learned.")
    labels = {
        label.key: label.options[0] if label.options else f"{text} ({label.name})"
        for label in step_of(scope, step).labels
    }
    quotes = evidence or (EVIDENCE.get(scope, (5, MENDED[:40])),)
    shown = [{"number": number, "quote": quote} for number, quote in quotes]
    return {"title": f"What {scope} shows", **labels, "tags": ["redis"], "quotes": shown} | fields


def answer(*learnings: Mapping[str, Any]) -> dict[str, Any]:
    return {"learnings": list(learnings)}


def entry_of(scope: str, number: int, place: str = "memory/jobs/api/tasks/login/learnings") -> dict[str, str]:
    """Return the file of a learning that a rollup reads."""
    body = f"Redis must run before the suite starts, as session {number} showed with docker compose."
    name = f"source-{scope}-{number}"
    head = f"id: {name}\nkind: rule\ntype: procedural\nimportance: 0.5\nstatus: active\ntitle: Redis first {number}"
    return {f"{place}/{name}.md": f"---\n{head}\n---\n{body}\n"}


ALL = [scope.name for scope in EXTRACTION_SCOPES]
INTENT = "# Intent\n\nStage: implementation\n\nDone when the suite passes with redis and docker compose.\n"


@pytest.fixture
def open_with(vault: Callable[[Files], Path], home: Path, fake: FakeProvider) -> Iterator[Open]:
    """A function that opens a vault of these files, with the fake provider as its model."""
    opened: list[KnowledgeBase] = []

    def open_one(files: Files = {}, environ: dict[str, str] | None = None, now: datetime = NOW) -> KnowledgeBase:  # noqa: B006
        folder = vault({"memory/config.yaml": "", "INTENT.md": INTENT} | dict(files))
        chosen = variables(fake) if environ is None else environ
        opened.append(KnowledgeBase.open(folder, home, environ={"HOME": str(home.parent)} | chosen, clock=lambda: now))
        return opened[-1]

    yield open_one
    for kb in opened:
        kb.close()


@pytest.fixture
def kb(open_with: Open) -> KnowledgeBase:
    return open_with()


def extracted(kb: KnowledgeBase) -> list[Memory]:
    """Return what was learned from sessions."""
    return [memory for memory in kb.memories.all() if memory.word("extraction_scope")]


def outcome_of(kb: KnowledgeBase, *scopes: str, **how: bool) -> list[tuple[str, str]]:
    """Learn from the session, and return what became of each scope."""
    report = kb.extract("s1", scopes=scopes or None, **how)
    return [(one.scope, one.outcome) for one in report.scopes]


def prompts(fake: FakeProvider) -> list[str]:
    """Return what the model was asked."""
    return [call.body["messages"][0]["content"] for call in fake.calls]


def record_of(fake: FakeProvider, number: int = -1) -> str:
    """Return what stands between the two lines of a prompt."""
    prompt = prompts(fake)[number]
    mark = next(line for line in prompt.splitlines() if line.startswith("====="))
    assert prompt.endswith(f"\n{mark}")
    return prompt.removesuffix(mark).rpartition(f"{mark}\n")[2]
