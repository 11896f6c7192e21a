"""Steps of a session, for the tests of what they teach."""

from __future__ import annotations

from memory_kb.learning.intake import Offer
from memory_kb.learning.observation.findings import find_learnings
from memory_kb.model import Location
from memory_kb.notes.events import Event


def learned(*steps: tuple[str, ...]) -> list[Offer]:
    """Return what is learned of steps: `-` a command that fails, `+` one that works, `E` an edit."""
    made: list[Event] = [Event(seq=1, session="s", role="user", content="Have a look, please.")]
    for number, (what, text, *more) in enumerate(steps, 1):
        call = {"session": "s", "call_id": str(number), "tool": "Edit" if what == "E" else "Bash"}
        args = {"file_path": text, "old_string": "", "new_string": "x"} if what == "E" else {"command": text}
        made.append(Event(seq=2 * number, type="tool_call", role="assistant", args=args, **call))  # type: ignore[arg-type]
        said = "".join(more) or "done"
        made.append(Event(seq=2 * number + 1, type="tool_result", role="tool", ok=what != "-", content=said, **call))  # type: ignore[arg-type]
    return list(find_learnings(made, Location()))
