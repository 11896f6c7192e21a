"""Locate the memories and instructions that agents keep; they are read and never written.

Claude Code keeps `~/.claude/projects/<project>/memory/` (`MEMORY.md` with a line for each topic file beside it),
agents' own folders and rules; Codex keeps `~/.codex/memories/`; all read instructions in CLAUDE.md, AGENTS.md or
GEMINI.md.
"""

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from memory_kb.lazy_regex import lazy_regex
from memory_kb.regular_files import read_file, visible_files
from memory_kb.store.worktrees import find_repository, find_siblings
from memory_kb.text import count_tokens, load_json
from memory_kb.vault import Vault

#: A person's memory has tens of files; more than this is something else.
_MOST_FILES = 500
#: What consolidation of Codex reads: what it makes of that says it again, or it is about how to do it.
_LEFT_OUT = frozenset({"raw_memories.md", "phase2_workspace_diff.md", "instructions.md"})
#: The types of Claude Code's topic files, and the kinds of entries that they are.
KINDS_OF_TYPES = {"user": "preference", "feedback": "rule", "project": "fact", "reference": "fact"}
#: The index of Claude Code's memory, and what of it is loaded at the start of a session; comments do not count.
INDEX, _MOST_LINES, _MOST_BYTES = "MEMORY.md", 200, 25_000
#: What Codex loads of its memories, and how many tokens of it.
SUMMARY, _SUMMARY_TOKENS = "memory_summary.md", 2_500
#: The beginning of a rule that says for which files it holds, in bytes.
_RULE_HEAD = 4_000
_COMMENT = lazy_regex(r"<!--.*?-->\n?", re.DOTALL)
#: A line of a list that names another file, and what memory-kb wrote into a file.
POINTER = lazy_regex(r"^[ \t]*[-*][ \t]+\[[^\]\n]*\]\(([^)\s]+\.md)\).*$", re.MULTILINE)
_OURS = lazy_regex(r"<!--\s*memory-kb:(?:begin|start)\b[^>]*-->.*?(?:<!--\s*memory-kb:end\s*-->|\Z)", re.DOTALL)
_NO_WORD = lazy_regex(r"[^A-Za-z0-9]")


class AgentMemoryFile(NamedTuple):
    """A file of an agent's own memory, and whether the agent gives it to its model at every session."""

    shown: str
    file: Path
    agent: str
    is_given: bool


def find_agent_memory_files(vault: Vault) -> tuple[AgentMemoryFile, ...]:
    """Return the files that agents keep about a project and for its person, each once."""
    claude, home = claude_home(vault.environ)
    found: dict[str, AgentMemoryFile] = {}
    for one in _candidates(vault, claude, home):
        if not os.path.isfile(one.file):
            continue
        place = os.path.realpath(one.file)
        # A link in a clone, or the settings that came with it, may lead to any file of the person.
        if one.file.is_relative_to(vault.folder) and not _is_inside(one.file, vault.folder, claude):
            continue
        if place not in found and not _is_note(vault, one.file):
            found[place] = one._replace(shown=_shown_path(one.file, vault.folder, home))
        if len(found) == _MOST_FILES:
            break
    return tuple(found.values())


def _candidates(vault: Vault, claude: Path, home: Path) -> Iterator[AgentMemoryFile]:
    project, codex = vault.folder, codex_home(vault.environ)
    for folder in claude_memory_folders(project, claude, home):
        yield from _files_in(folder, "claude-code")
    own = (project / ".claude/agent-memory", project / ".claude/agent-memory-local", claude / "agent-memory")
    # Of a folder that cannot be entered, `Path.is_dir` is an error.
    for inner in (inner for folder in own for inner in sorted(folder.glob("*")) if os.path.isdir(inner)):
        yield from _files_in(inner, "claude-code")
    for file in (file for place in (project / ".claude", claude) for file in _note_files(place / "rules")):
        yield AgentMemoryFile("", file, "claude-code", _is_given(file))
    yield from _files_in(codex / "memories", "codex", SUMMARY)
    for name, agent, places in (
        ("CLAUDE.md", "claude-code", (project, project / ".claude", claude)),
        ("CLAUDE.local.md", "claude-code", (project,)),
        ("AGENTS.md", "codex", (project, codex)),
        ("GEMINI.md", "gemini-cli", (project, home / ".gemini")),
    ):
        yield from (AgentMemoryFile("", place / name, agent, is_given=True) for place in places)


def claude_home(environ: Mapping[str, str]) -> tuple[Path, Path]:
    """Return the folder of Claude Code's settings, and the person's home."""
    home = Path(environ.get("HOME") or "~").expanduser()
    return Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude").expanduser(), home


def codex_home(environ: Mapping[str, str]) -> Path:
    """Return the folder of Codex's settings."""
    return Path(environ.get("CODEX_HOME") or claude_home(environ)[1] / ".codex").expanduser()


def claude_memory_folders(project: Path, claude: Path, home: Path, *, others: bool = True) -> Iterator[Path]:
    """Yield Claude Code's memory folders of a project; with `others`, also of the repository's other working trees."""
    for settings in (project / ".claude/settings.local.json", claude / "settings.json"):
        try:
            named = load_json(read_file(settings)).get("autoMemoryDirectory")
        except (OSError, ValueError, AttributeError):
            continue
        if isinstance(named, str) and named:
            folder = home / named[2:] if named.startswith("~/") else project / named
            if settings.parent == claude or _is_inside(folder, project, claude):
                yield folder
    top = find_repository(project) or project
    for tree in dict.fromkeys((project, top, *(find_siblings(top) if others else ()))):
        yield claude / f"projects/{_NO_WORD.sub('-', str(tree))}/memory"


def _is_inside(place: Path, *folders: Path) -> bool:
    """Return whether a place is in one of some folders once all links are followed."""
    real = Path(os.path.realpath(place))
    return any(real.is_relative_to(os.path.realpath(folder)) for folder in folders)


def explain_excess(name: str, text: str) -> str:
    """Return how much more an index holds than its agent loads; "" where that is all of it."""
    if name == SUMMARY:
        size = count_tokens(text)
        return f"{size:,} tokens; Codex loads {_SUMMARY_TOKENS:,}" if size > _SUMMARY_TOKENS else ""
    counted = _COMMENT.sub("", text)
    lines = counted.count("\n") + (not counted.endswith("\n") and bool(counted))
    size = len(counted.encode())
    if lines <= _MOST_LINES and size <= _MOST_BYTES:
        return ""
    return f"{lines:,} lines and {size:,} bytes; Claude Code loads {_MOST_LINES} lines and {_MOST_BYTES:,}"


def _files_in(folder: Path, agent: str, given: str = "MEMORY.md") -> Iterator[AgentMemoryFile]:
    for file in _note_files(folder):
        if agent != "codex" or file.name not in _LEFT_OUT:
            yield AgentMemoryFile("", file, agent, is_given=file.parent == folder and file.name == given)


def _note_files(folder: Path) -> Iterator[Path]:
    return islice((file for file in visible_files(folder) if file.name.endswith(".md")), _MOST_FILES)


def _is_given(rule: Path) -> bool:
    try:
        return always_holds(rule.name, read_file(rule, _RULE_HEAD).decode("utf-8-sig", "replace"))
    except OSError:
        return True


def always_holds(name: str, rule: str) -> bool:
    """Return whether an agent gives its model a rule at every session, not only at some files.

    Example:
        >>> always_holds("a.md", "---\\npaths: src/**\\n---\\nUse tabs."), always_holds("b.mdc", "---\\nalwaysApply: true\\n---")
        (False, True)
    """
    if name.endswith(".mdc"):
        return "alwaysApply: true" in rule
    return not re.match(r"\ufeff?---\r?\n(?:.*\n)*?paths:", rule[:_RULE_HEAD])


def _is_note(vault: Vault, file: Path) -> bool:
    """Return whether the vault holds a file among its own notes."""
    folders = [vault.memory, vault.home] if vault.memory else [vault.home, vault.folder]
    return any(
        file.is_relative_to(folder) and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        for folder in folders
        if folder
    )


def _shown_path(file: Path, project: Path, home: Path) -> str:
    if file.is_relative_to(project):
        return file.relative_to(project).as_posix()
    return f"~/{file.relative_to(home).as_posix()}" if file.is_relative_to(home) else file.as_posix()


def without_ours(data: bytes, file: Path) -> bytes:
    """Return a file without what memory-kb put there and without pointers to files that are found by themselves."""

    def blank(found: re.Match[str]) -> str:
        return "" if (file.parent / found[1]).is_file() else found[0]

    text = _OURS.sub(lambda found: "\n" * found[0].count("\n"), data.decode("utf-8", "replace"))
    return POINTER.sub(blank, text).encode()
