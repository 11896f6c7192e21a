"""Sessions of agents as test data, and vaults that hold them, for the tests of episodes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conftest import REPOSITORY

from memory_kb import KnowledgeBase
from memory_kb.episodes.diary_text import cut_sections, items_of
from memory_kb.errors import ProviderFailed
from memory_kb.store.session_events import Event, parse_event

SESSIONS = REPOSITORY / "tests" / "data" / "sessions"
CHECKOUT, WEBHOOK = "burst_20261120T090000_001", "burst_20261120T153000_002"
DEPLOY, REFACTOR, NOWHERE = (
    "burst_20261119T190000_001",
    "019a9c6e-rollout-refactor-pricing",
    "burst_20261117T203000_004",
)
INJECTED, SECRETS, TASKS = "burst_20261116T110000_001", "burst_20261115T140000_003", "burst_20261114T080000_001"


def events_of(session: str) -> list[Event]:
    """Return the events of a session of the test data."""
    return [parse_event(line) for line in (SESSIONS / f"{session}.jsonl").read_bytes().splitlines()]


def put_session(kb: KnowledgeBase, session: str, *, lines: int | None = None) -> Path:
    """Put a session of the test data, or its beginning, into a vault."""
    file = kb.vault.machine / "sessions" / f"{session}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    if lines is None:
        shutil.copyfile(SESSIONS / file.name, file)
    else:
        file.write_bytes(b"".join((SESSIONS / file.name).read_bytes().splitlines(keepends=True)[:lines]))
    return file


def write_session(kb: KnowledgeBase, session: str, *events: Mapping[str, Any]) -> None:
    """Write a session of a few events, ten seconds apart."""
    file = kb.vault.machine / "sessions" / f"{session}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = (
        {"ts": f"2026-11-20T10:{number // 6:02}:{number % 6}0.000Z", "seq": number + 1, "session": session}
        | dict(event)
        for number, event in enumerate(events)
    )
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def agent(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text}


def bash(command: str, output: str = "", *, ok: bool = True) -> dict[str, Any]:
    """Return a command as `session append --tool` logs it: call and result in one."""
    return {"type": "tool_result", "tool": "Bash", "args": {"command": command}, "content": output, "ok": ok} | (
        {} if ok else {"error": output}
    )


def edit(path: str) -> dict[str, Any]:
    return {
        "type": "tool_call",
        "tool": "Edit",
        "args": {"file_path": path, "old_string": "a", "new_string": "b"},
        "ok": True,
    }


class FakeLlm:
    """A language model that answers what it was told to, or fails."""

    def __init__(self, *answers: Mapping[str, object] | ProviderFailed) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    def complete(self, prompt: str, schema: Mapping[str, object], *, timeout: float) -> Mapping[str, object]:  # noqa: ARG002 - as the port has it
        self.asked.append(prompt)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, ProviderFailed):
            raise answer
        return answer


def use_llm(kb: KnowledgeBase, llm: FakeLlm) -> FakeLlm:
    """Give a knowledge base a language model."""
    kb.models.__dict__["llm"] = llm
    return llm


def episode_text(body: str = "", **fields: object) -> str:
    """Return an episode as a person writes one."""
    known: dict[str, object] = {"kind": "episode", "outcome": "success"} | fields
    return "---\n" + "".join(f"{name}: {json.dumps(value)}\n" for name, value in known.items()) + f"---\n{body}\n"


def sections_of(file: Path) -> dict[str, tuple[str, ...]]:
    """Return the sections of an episode by their headings."""
    body = file.read_text(encoding="utf-8").split("\n---\n", 1)[1]
    return {name: items_of(text) for name, text in cut_sections(body).items() if name}


def reflect(kb: KnowledgeBase, session: str) -> tuple[Path, dict[str, tuple[str, ...]], dict[str, Any]]:
    """Build the one episode of a session of the test data; return its file, sections and frontmatter."""
    put_session(kb, session)
    (one,) = kb.reflect(session).episodes
    assert one.action == "created"
    file = kb.vault.folder / one.path
    return file, sections_of(file), dict(kb.show(one.id).metadata)
