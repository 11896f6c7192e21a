"""Long texts of odd shapes: they teach nothing, and hold no session up.

What takes quadratic time does not end within the time that a test has.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memory_kb.episodes.trace import trace_session
from memory_kb.learning.capture import read_user_messages
from memory_kb.markdown.links import find_links
from memory_kb.store.session_events import Event

SIZE = 190_000
UNITS = (
    "  ",
    "\n",
    "\n ",
    "\t",
    "`",
    '"',
    "(",
    "a.",
    "a, ",
    "use ",
    "; ",
    "-- ",
    "> ",
    "| ",
    "no, ",
    "error: ",
    "[",
    "\\",
    "我",
    "x=1 ",
)


def said(role: str) -> Callable[[str], list[Event]]:
    return lambda text: [
        Event(role="user", content="Fix it."),
        Event(role="assistant", content="Shall I?"),
        Event(role=role, content=text),
    ]


def printed(text: str) -> list[Event]:
    return [*ran("a", "make x", text, ok=False), *ran("b", "make deps && make x", "ok", ok=True)]


def typed(text: str) -> list[Event]:
    return [*ran("a", text, "error: no such file", ok=False), *ran("b", f"{text} --force", "ok", ok=True)]


def ran(call: str, command: str, output: str, *, ok: bool) -> list[Event]:
    return [
        Event(type="tool_call", tool="Bash", call_id=call, args={"command": command}),
        Event(type="tool_result", tool="Bash", call_id=call, content=output, ok=ok),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [said("user"), said("assistant"), printed, typed], ids=["user", "assistant", "output", "command"]
)
@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_a_long_text_of_an_odd_shape_holds_nothing_up(unit: str, make: Callable[[str], list[Event]]) -> None:
    for lead, end in (("we use ", "."), ("", " x")):
        text = f"{lead}{unit * (SIZE // len(unit))}{end}"
        list(read_user_messages(make(text)))
        trace_session("s", make(text))


@pytest.mark.slow
@pytest.mark.parametrize("lead", ["[x](", "[x]:", "[x](a.md", "[[", "[x](<#a"])
@pytest.mark.parametrize("unit", [" ", "\n", "(", "[x](", "[x]: \n"], ids=repr)
def test_a_link_that_never_ends_holds_nothing_up(lead: str, unit: str) -> None:
    text = f"{lead}{unit * (SIZE // len(unit))}y [z](b.md)"
    assert [link.target for link in find_links(text, with_own=True)] == ["b.md"]
