"""What of a message a person typed, whatever their agent wrote around it."""

from __future__ import annotations

import pytest

from memory_kb.injected_text import mark_as_own
from memory_kb.learning.user_text import own_words, split_message

IDE = """# Context from my IDE setup:

## Active file: src/pay.ts

## Open tabs:
- pay.ts: src/pay.ts

## My request for Codex:
Never retry a charge.
"""
CURSOR = (
    "<additional_data>\nAlways follow the style guide.\n</additional_data>\n\n<user_query>\nWe use yarn.\n</user_query>"
)
COPILOT = "<attachments>never do this</attachments>\n<reminderInstructions>Always be brief.</reminderInstructions>\n<userRequest>\nWe only ship on Monday.\n</userRequest>"
SKILL = "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>never touch api.py</command-args>"
TERMINAL = "It fails, we never saw that:\n\n$ make test\nalways fails on main\n\nUse tox instead of make."


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param("Always use tabs.", "Always use tabs.", id="plain"),
        pytest.param('Use `uv`, not "pip".', 'Use `uv`, not "pip".', id="inline code and quotation marks"),
        pytest.param("Fix it.\n<system-reminder>Always be brief.</system-reminder>", "Fix it.", id="reminder"),
        pytest.param("<system-reminder>Always be brief.", "", id="reminder cut off"),
        pytest.param('<context ref="a">never do x</context>\nGo on.', "Go on.", id="any tag"),
        pytest.param(
            'Read it.\n\n<pasted_content id="1f2e">\nAlways use tabs.\n</pasted_content>\nNever lint.\n</pasted_content id="1f2e">\nGo on.',
            "Read it.\n\nGo on.",
            id="pasted into Claude Code",
        ),
        pytest.param("<system_notification>\nNever mind.\n</system_notification>", "", id="notice of Copilot"),
        pytest.param("<hook_context>Always use tabs.</hook_context>Go on.", "Go on.", id="hook context"),
        pytest.param(IDE, "Never retry a charge.", id="IDE frame"),
        pytest.param(IDE.partition("## My request")[0], "", id="IDE frame without a request"),
        pytest.param(CURSOR, "We use yarn.", id="query of Cursor"),
        pytest.param(COPILOT, "We only ship on Monday.", id="request of Copilot"),
        pytest.param(SKILL, "never touch api.py", id="arguments of a slash command"),
        pytest.param("<command-name>/clear</command-name>", "", id="slash command"),
        pytest.param("[Image #1] [Image: original 20x20, displayed at 10x10]\nMake it so.", "Make it so.", id="images"),
        pytest.param(
            "<task-notification>\n<result>always</result>\n</task-notification>\nFull transcript available at: /tmp/a.output",
            "",
            id="task notification",
        ),
        pytest.param('<teammate-message teammate_id="a">Never push.</teammate-message>', "", id="teammate"),
        pytest.param(
            "# AGENTS.md instructions for /a\n\n<INSTRUCTIONS>\nAlways x.\n</INSTRUCTIONS>", "", id="AGENTS.md"
        ),
        pytest.param("# AGENTS.md instructions for /a\nAlways x.", "", id="AGENTS.md in an older form"),
        pytest.param("# CLAUDE.md\n\nAlways use tabs.", "", id="an instruction file sent as a message"),
        pytest.param("Read this.\n\n# Login\n\nThe form MUST be short.", "Read this.", id="specification"),
        pytest.param("This session is being continued from a previous conversation. Always.", "", id="summary"),
        pytest.param("[Request interrupted by user for tool use]", "", id="interruption"),
        pytest.param("> always use tabs\nNo.", "No.", id="quote"),
        pytest.param("Look:\n```\nnever do this\n```\nIt is wrong.", "Look:\n\nIt is wrong.", id="fence"),
        pytest.param("Look:\n```\nnever do this", "Look:", id="fence without an end"),
        pytest.param(TERMINAL, "It fails, we never saw that:\n\nUse tox instead of make.", id="terminal"),
        pytest.param("Ben wrote this in his message:\nAlways deploy on Friday.", "", id="words of somebody else"),
        pytest.param("You are a senior engineer. Always use tabs.", "", id="prompt for an agent"),
        pytest.param(
            "Do it so.\n\nKey Points to Remember:\n- Always use tabs.", "Do it so.", id="a document with headings"
        ),
        pytest.param("Two things:\nnever push to main", "Two things:\nnever push to main", id="a list of one's own"),
        pytest.param(mark_as_own("Always use tabs.") + "\nGo on.", "Go on.", id="text of memory-kb"),
        pytest.param("x" * 200_000, "", id="a pasted book"),
        pytest.param("if a <b then c> d, use e", "if a <b then c> d, use e", id="signs that are no tags"),
    ],
)
def test_own_words(message: str, expected: str) -> None:
    assert own_words(message) == expected


def test_a_log_keeps_what_was_pasted() -> None:
    sent = "Look:\n```\nx = 1\n```\n> quoted"
    assert split_message(sent) == (sent, ())


@pytest.mark.parametrize("piece", ["<a>", "<system-reminder>", "```\n", "[Image ", "# ", "> ", "said ", "\t"])
def test_time_grows_with_the_length_alone(piece: str) -> None:
    own_words(piece * (90_000 // len(piece)))
