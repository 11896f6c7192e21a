"""Sessions in a few words, and what is learned of them, for the tests of what is found in sessions."""

from __future__ import annotations

from typing import Any

from memory_kb.learning.intake import Offer
from memory_kb.learning.observation.findings import find_learnings
from memory_kb.model import Location
from memory_kb.notes.events import Event


def session(*steps: tuple[str, ...]) -> list[Event]:
    """Return events: `-` a command that fails, `+` one that works, `E` an edit, `U` and `A` what is said, `X` a command refused."""
    made: list[Event] = []
    for number, (what, text, *more) in enumerate(steps):
        seq, more_text = 2 * number + 1, more[0] if more else ""
        if what in "UA":
            made.append(Event(seq=seq, session="s", role="user" if what == "U" else "assistant", content=text))
            continue
        edit = {"file_path": text, "old_string": "", "new_string": more_text or "x"}
        made.append(
            Event(
                seq=seq,
                session="s",
                type="tool_call",
                role="assistant",
                tool="Edit" if what == "E" else "Bash",
                call_id=f"c{number}",
                args=edit if what == "E" else {"command": text},
            )
        )
        said = {
            "-": f"Exit code 1\n{more_text}",
            "X": "The user doesn't want to proceed with this tool use. The tool use was rejected.",
        }.get(what, more_text)
        made.append(
            Event(
                seq=seq + 1,
                session="s",
                type="tool_result",
                role="tool",
                call_id=f"c{number}",
                ok=what in "+E",
                content=said,
            )
        )
    return made


def learned(*steps: tuple[str, ...], **how: Any) -> list[Offer]:
    """Return what is learned of a session of such steps."""
    return list(find_learnings(session(*steps), Location(), **how))
