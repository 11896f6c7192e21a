"""A session is ended again with another word on how it went: the last word counts for its episode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from conftest import NOW, write_files
from planning import Tree, tree

from memory_kb import KnowledgeBase
from memory_kb.memory import Memory
from memory_kb.store.logs import format_time, log_shown
from memory_kb.store.session_events import Event

Open = Callable[..., KnowledgeBase]
RULE = "---\nid: r\nkind: rule\nconfidence: {confidence}\nlast_applied: '2026-11-21'\ncreated_at: '2026-11-01'\n---\nRun the linter before every push.\n"
PITFALL = "---\nid: p\nkind: pitfall\nconfidence: 0.6\nlast_applied: '2026-11-21'\ncreated_at: '2026-11-01'\n---\nNever edit the lock file by hand.\n"
SKILL = "---\nid: k\nkind: skill\ncreated_at: '2026-11-01'\n---\nRelease: tag, then push.\n"
SESSION = "s1"


def make(folder: Path, open_kb: Open, confidence: float = 0.6) -> KnowledgeBase:
    """Return a vault with a session whose agent was shown a rule, a pitfall and a skill, and used them."""
    files = {"rules/r": RULE.format(confidence=confidence), "rules/p": PITFALL, "skills/k": SKILL}
    write_files(folder, {f"memory/{name}.md": text for name, text in files.items()})
    kb = open_kb(folder)
    kb.sync()
    said = ("Mend the release script.", "Now its test, please.")
    kb.sessions.append([Event(ts=format_time(NOW), session=SESSION, role="user", content=text) for text in said])
    call = {
        "file_path": "release.py",
        "content": "run linter before every push; never edit lock file by hand; release tag push",
    }
    wrote = Event(ts=format_time(NOW), session=SESSION, type="tool_call", tool="Write", call_id="w", args=call)
    done = Event(
        ts=format_time(NOW), session=SESSION, type="tool_result", tool="Write", call_id="w", ok=True, content="ok"
    )
    kb.sessions.append([wrote, done])
    log_shown(kb.vault, "context", ["r", "p", "k"], session=SESSION, agent="coder", task="t", injected=True)
    return kb


def evidence(kb: KnowledgeBase, name: str = "r") -> tuple[float, int, int]:
    (memory,) = [memory for memory in kb.memories.all() if memory.id == name]
    return memory.share("confidence", 0.5), memory.count("success_count"), memory.count("failure_count")


def episode(kb: KnowledgeBase) -> Memory:
    (memory,) = [memory for memory in kb.memories.all() if memory.kind == "episode"]
    return memory


def notes(folder: Path) -> Tree:
    return {name: held for name, held in tree(folder / "memory").items() if ".memory-kb" not in name}


def test_another_outcome_corrects_the_episode_and_what_was_credited_stays(folder: Path, open_kb: Open) -> None:
    kb = make(folder, open_kb)
    kb.sessions.end(SESSION, outcome="success")
    assert (evidence(kb), evidence(kb, "p"), evidence(kb, "k")[1:]) == ((0.65, 1, 0), (0.65, 1, 0), (1, 0))
    done = kb.sessions.end(SESSION, outcome="failure", summary="It went bad.")
    assert done.action == "ended"
    assert (evidence(kb), evidence(kb, "p"), evidence(kb, "k")[1:]) == ((0.65, 1, 0), (0.65, 1, 0), (1, 0))
    assert episode(kb).word("outcome") == "failure"
    assert sum(event.event == "end" for event in kb.sessions.replay(SESSION)) == 2


def test_the_same_again_changes_nothing(folder: Path, open_kb: Open) -> None:
    kb = make(folder, open_kb)
    kb.sessions.end(SESSION, outcome="success")
    kb.sessions.end(SESSION, outcome="failure", summary="It went bad.")
    before, size = notes(folder), len(list(kb.sessions.replay(SESSION)))
    for outcome, summary in (("failure", "It went bad."), ("failure", None), (None, "It went bad."), (None, None)):
        done = kb.sessions.end(SESSION, outcome=outcome, summary=summary)
        assert (done.action, done.written, [step.name for step in done.steps if step.runs]) == ("unchanged", 0, [])
    assert notes(folder) == before
    assert len(list(kb.sessions.replay(SESSION))) == size


def test_closed_first_and_told_otherwise_later(folder: Path, open_kb: Open) -> None:
    kb = make(folder, open_kb)
    kb.sessions.end(SESSION, outcome="failure", only_close=True)
    assert kb.sessions.end(SESSION, outcome="success").action == "ended"
    assert evidence(kb) == (0.65, 1, 0)
    assert episode(kb).word("outcome") == "success"


def test_a_summary_alone_keeps_the_outcome(folder: Path, open_kb: Open) -> None:
    kb = make(folder, open_kb)
    kb.sessions.end(SESSION, outcome="failure")
    for summary in ("The disk was full.", "The disk was slow."):
        assert kb.sessions.end(SESSION, summary=summary).action == "ended"
    assert (episode(kb).word("outcome"), evidence(kb)) == ("failure", (0.4, 0, 1))
    assert [dict(event.args or {}) for event in kb.sessions.replay(SESSION) if event.event == "end"] == [
        {"outcome": "failure"}
    ] * 3


def test_both_ends_are_taken_back_together(folder: Path, open_kb: Open) -> None:
    kb = make(folder, open_kb)
    before = notes(folder)
    kb.sessions.end(SESSION, outcome="success")
    kb.sessions.end(SESSION, outcome="failure")
    assert all(not report.conflicts for report in kb.undo_session(SESSION))
    assert notes(folder) == before
    kb.sessions.end(SESSION, outcome="success")
    assert evidence(kb) == (0.65, 1, 0)


def test_work_goes_on_and_ends_otherwise(folder: Path, open_kb: Open) -> None:
    kb = make(folder, open_kb)
    kb.sessions.end(SESSION, outcome="success")
    kb.sessions.append(
        [Event(ts=format_time(NOW), session=SESSION, role="user", content="It fails again in production.")]
    )
    done = kb.sessions.end(SESSION, outcome="failure")
    assert done.action == "ended"
    assert evidence(kb) == (0.65, 1, 0)
    assert episode(kb).word("outcome") == "failure"
