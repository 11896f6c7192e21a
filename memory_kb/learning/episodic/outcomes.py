"""How a call went, and which part of its line that is about."""

from __future__ import annotations

from memory_kb.learning.episodic.answers import Answer, read_answer
from memory_kb.learning.episodic.toolcalls import Call, read_parts
from memory_kb.learning.observation.chains import find_culprit, output_of, read_chain


def read_outcome(
    call: Call,
    content: str | None,
    error: str | None,
    ok: bool | None,  # noqa: FBT001
    cwd: str | None = None,
) -> tuple[Call, Answer]:
    """Return a call and its answer; of a line that failed, the command that did, with what had gone well before it.

    Example:
        >>> from memory_kb.learning.episodic.toolcalls import read_command
        >>> call, answer = read_outcome(read_command("git commit -qm x && git push"), "! [rejected] main -> main (fetch first)", None, False)
        >>> call.shown, call.told, answer.fault.type
        ('git push', 'git commit -qm x && git push', 'rejected')
    """
    answer = read_answer(call.kind, content, error, ok)
    if not call.line or ok is not False or (answer.fault and answer.fault.sort != "work"):
        return call._replace(line=""), answer
    links, parts = read_chain(call.line), read_parts(call.line, cwd)
    place = find_culprit(links, f"{error or ''}\n{content or ''}")
    blamed = next((part for part in parts if part.place == place), None)
    if blamed is None:
        return call._replace(line=""), answer
    before = tuple(part for part in parts if part.place < place and part.kind != "look")[-8:]
    then = tuple(part.family for part in parts if part.place > place and part.kind != "look")
    told = [output_of(links, place, text) if text else text for text in (content, error)]
    return blamed._replace(also=before, then=then), read_answer(blamed.kind, told[0], told[1], ok)
