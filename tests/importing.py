"""What other tools left behind, and its way into a vault, for the tests of imports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import write_files

from memory_kb.importers.service import ImportReport

BASIC_MEMORY = {
    "coffee/Coffee Brewing Methods.md": """---
title: Coffee Brewing Methods
type: note
tags: [coffee, brewing]
permalink: coffee/coffee-brewing-methods
created: 2025-10-24
---

# Coffee Brewing Methods

A summary in prose, see [[Tea Brewing Methods]].

## Observations
- [method] Pour over provides more flavor clarity than French press
- [decision] Use water of 92 degrees #brewing #water (based on own tests)
- [preference] Lighter roasts are better
- A line with a #tag but no category
- [ ] buy beans
- [link](https://example.com)

## Relations
- relates_to [[Tea Brewing Methods]]
- requires [[Proper Grinding Technique]]
- "based on" [[tea/tea-brewing-methods]] (an interview)
""",
    "tea/Tea Brewing Methods.md": """---
title: Tea Brewing Methods
type: guide
permalink: tea/tea-brewing-methods
---
- [technique] Green tea wants 70 degrees
- [status] active
""",
    "people/Ada.md": "---\ntitle: Ada\ntype: Person\npermalink: people/ada\n---\n- [status] active\n- works_at [[Nowhere]]\n",
    "schema/Person.md": "---\ntitle: Person\ntype: schema\npermalink: schema/person\nentity: Person\n---\nA person.\n",
}
OBSIDIAN = {
    ".obsidian/app.json": "{}",
    ".obsidian/hidden.md": "Not a note.",
    "Daily/2026-01-02.md": "Worked on [[Deploy guide#Steps]].\n",
    "Deploy guide.md": """---
aliases: [Releasing, deploys]
tags:
  - ops
created: 2026-02-03
---
# Deploy guide

Start at [[Servers]], or ![[Servers#^prod]]. #deploy/prod `#not-a-tag`

![[diagram.png|400]] and [[Missing note]].

1. Tag. ^first
""",
    "Servers.md": "---\ntitle: Our servers\n---\nThree of them. ^prod\n",
    "Empty.md": "---\ntags: [x]\n---\n",
    "Board.md": "---\nkanban-plugin: board\n---\n## Doing\n",
    "diagram.png": b"\x89PNG",
}
DAILY = {
    "MEMORY.md": "# Memory\n\n## Preferences\n- Answers should be short.\n\n"
    "## Facts\n- Staging runs Postgres 15.\n- Never deploy on Fridays.\n\nSome prose.\n",
    "memory/2026-03-01.md": "# 2026-03-01\n\n## 09:30 Deploy\n- Rolled back v2.\n- Cause: a missing index.\n\n## Lunch\n\n",
    "memory/2026-03-02-api.md": "Talked about the API <!-- secret comment --> design.\n",
    "memory/.dreams/state.md": "machine\n",
    "AGENTS.md": "- You are an assistant.\n",
}
AGENTS = {
    "AGENTS.md": """# Agents

@docs/rules.md

This project is a service.

## Code style
- Use tabs.
  They are shorter.
- You MUST run the linter.
- Prefer composition over inheritance

## Commands
- `make test` runs the tests

<!-- memory-kb:begin rules -->
- This is ours.
<!-- memory-kb:end -->

<!-- - commented out -->

```
- not a rule
```
""",
    "web/CLAUDE.md": "- Keep components small\n",
    "docs/other.md": "- no rule\n",
}
CLAUDE = [
    {
        "uuid": "11111111-aaaa",
        "name": "Validation",
        "created_at": "2026-01-05T10:00:00.000000Z",
        "chat_messages": [
            {
                "uuid": "m1",
                "sender": "human",
                "text": "",
                "content": [{"type": "text", "text": "Always use zod for validation."}],
                "created_at": "2026-01-05T10:00:01Z",
            },
            {
                "uuid": "m2",
                "sender": "assistant",
                "text": "I always use zod for validation, then.",
                "created_at": "2026-01-05T10:00:02Z",
            },
            {
                "uuid": "m3",
                "sender": "human",
                "text": "Can you show me an example of that, please?",
                "created_at": "2026-01-05T10:00:03Z",
            },
        ],
    },
    {"uuid": "22222222-bbbb", "name": "", "created_at": "2026-01-06T10:00:00Z", "chat_messages": []},
]
CHATGPT = [
    {
        "conversation_id": "c-1",
        "title": "Style",
        "create_time": 1767225600.0,
        "current_node": "n4",
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["n0"]},
            "n0": {
                "id": "n0",
                "parent": "root",
                "children": ["n1"],
                "message": {
                    "id": "n0",
                    "author": {"role": "system"},
                    "content": {"content_type": "text", "parts": [""]},
                    "create_time": None,
                },
            },
            "n1": {
                "id": "n1",
                "parent": "n0",
                "children": ["n2", "x2"],
                "message": {
                    "id": "n1",
                    "author": {"role": "user"},
                    "content": {"content_type": "text", "parts": ["Hello, a question about Python style."]},
                    "create_time": 1767225601.5,
                },
            },
            "x2": {
                "id": "x2",
                "parent": "n1",
                "children": [],
                "message": {
                    "id": "x2",
                    "author": {"role": "user"},
                    "content": {"content_type": "text", "parts": ["Never use single quotes in this project."]},
                    "create_time": 1767225602.0,
                },
            },
            "n2": {
                "id": "n2",
                "parent": "n1",
                "children": ["n3"],
                "message": {
                    "id": "n2",
                    "author": {"role": "assistant"},
                    "content": {"content_type": "text", "parts": ["Yes?"]},
                    "create_time": 1767225602.0,
                },
            },
            "n3": {
                "id": "n3",
                "parent": "n2",
                "children": ["n4"],
                "message": {
                    "id": "n3",
                    "author": {"role": "user"},
                    "content": {
                        "content_type": "multimodal_text",
                        "parts": [{"asset_pointer": "x"}, "I prefer double quotes in Python code."],
                    },
                    "create_time": 1767225603.0,
                },
            },
            "n4": {
                "id": "n4",
                "parent": "n3",
                "children": [],
                "message": {
                    "id": "n4",
                    "author": {"role": "assistant"},
                    "content": {"content_type": "text", "parts": ["Noted."]},
                    "create_time": 1767225604.0,
                },
            },
        },
    }
]
MEM0 = {
    "count": 3,
    "results": [
        {
            "id": "a1",
            "memory": "Dev works at TechCorp",
            "user_id": "dev",
            "hash": "x",
            "metadata": {"type": "professional"},
            "categories": ["work"],
            "created_at": "2024-09-03T10:16:05.490548-07:00",
            "updated_at": None,
        },
        {
            "id": "a2",
            "memory": "Arjun prefers morning meetings",
            "user_id": "arjun",
            "metadata": None,
            "categories": ["user_preferences"],
        },
        {"id": "a3", "memory": "  "},
    ],
}


@pytest.fixture
def source(tmp_path: Path) -> Callable[..., Path]:
    def make(files: dict[str, Any], name: str = "source") -> Path:
        return write_files(
            tmp_path / name,
            {path: text if isinstance(text, str | bytes) else json.dumps(text) for path, text in files.items()},
        )

    return make


def counts(report: ImportReport) -> dict[tuple[str, str], int]:
    """Count what became of the pieces of an import."""
    return report.count()
