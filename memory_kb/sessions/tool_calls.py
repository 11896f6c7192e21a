"""Parse tool calls and their results."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from memory_kb.credentials import redact
from memory_kb.sessions.failures import CallFault, both_ends, exit_code, read_fault
from memory_kb.sessions.shell import Command, split_line
from memory_kb.text import shorten

#: What is run to see whether the work is right; their last results decide the outcome of a task.
CHECKS = ("test", "build", "lint", "deploy")
_LONGEST, _SHOWN = 20_000, 100
_EDITORS = re.compile(
    r"(?i)^(?:(?:multi|notebook)?_?edit\w*|write\w*|create_?file|apply_?patch|update_?file|(?:str_)?replace\w*|patch|insert\w*)$"
)
_LOOKERS = re.compile(
    r"(?i)^(?:read|view|open|grep|glob|ls|list|search|find|fetch|web_?search|web_?fetch|notebook_?read|cat)(?:_?\w+)?$"
)
_SHELLS = re.compile(
    r"(?i)^(?:bash|sh|shell|local_shell|exec\w*|terminal|run_?(?:shell_?|terminal_?)?(?:cmd|command)|container\.exec|powershell)$"
)
_PLANNERS = re.compile(
    r"(?i)^(?:todo_?\w*|update_plan|exit_?plan_?mode|enter_?plan_?mode|ask_?user\w*|write_stdin|kill_?\w*|bash_?output)$"
)
_PATH_NAMES = ("file_path", "notebook_path", "path", "target_file", "filename", "file")
_TEXT_NAMES = ("pattern", "query", "url", "description", "name", "value")
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_WRITTEN = re.compile(r"^(?:cat|tee)\s*(?:>+)?\s*([\w./~-]+)\s*<<|^sed\s+(?:-\S+\s+)*-i\b.*?\s([\w./~-]+)\s*$")
#: What a command is for, by its family and first option; the first that fits counts.
_KINDS = tuple(
    (word, re.compile(pattern, re.IGNORECASE))
    for word, pattern in (
        ("commit", r"^git commit\b"),
        (
            "deploy",
            r"deploy|^kubectl (?:apply|set|rollout)\b|^helm (?:upgrade|install)|^terraform apply|^ansible-playbook",
        ),
        (
            "test",
            (
                r"^(?:pytest|py\.test|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|unittest|ava|playwright|cypress|nextest)\b"
                r"|^\S+(?: run)? (?:\S*test\S*|check|verify|jest|mocha)$|^(?:run[_-]?)?tests?(?:[_.-]\w+)*$"
            ),
        ),
        (
            "lint",
            (
                r"^(?:ruff|mypy|gofmt|actionlint|eslint|flake8|pylint|pyright|prettier|shellcheck|golangci-lint|black|tsc --noEmit)\b"
                r"|^cargo (?:check|clippy|fmt)|\b(?:lint|typecheck|type-check|vet)\b"
            ),
        ),
        ("build", r"\b(?:build|compile|package|publish)\b|^(?:tsc|webpack|cmake|ninja|make(?: all)?)$"),
        ("install", r"^\S+(?: pip)? (?:install|add|i|ci|sync|remove)\b"),
        (
            "look",
            (
                r"^\S+(?: \S+)? (?:list|ls|show|status|info|describe|version|--version|-version|-V|ps|logs|inspect|get|view|diff|log)\b"
                r"|^(?:ls|cat|head|tail|grep|rg|ag|find|fd|pwd|wc|tree|which|ps|top|df|du|env|printenv|stat|file|less|jq|awk|sed|diff|sort"
                r"|date|type|nl|id|whoami|uname|curl|test|\[|git (?:branch|blame|remote|fetch|rev-parse|ls-files|grep))(?:\s|$)"
            ),
        ),
    )
)
_RANK = ("deploy", "test", "build", "commit", "lint", "install", "run", "edit", "look", "plan")
_COUNTS = re.compile(
    r"^\W*(?:Tests:?\s+|test result: \w+\. )?(\d[^\n]*? (?:passed|failed|passing|failing)\b.*?|Ran \d+ tests?|Found \d+ errors?[^\n]*?)"
    r"(?:;| in [\d.:]+ ?s.*)?\W*$",
    re.MULTILINE,
)
_TEST_FAILED = re.compile(
    r"\b[1-9]\d* (?:failed|failing|errors?)\b|^FAILED\b|^FAIL[: \t]|^--- FAIL|test result: FAILED|^Tests:.*\bfailed\b|^npm ERR!",
    re.MULTILINE,
)


class Call(NamedTuple):
    """What a call does.

    Attributes:
        kind: edit, look, plan, run, install, commit, or one of `CHECKS`.
        family: what calls of one sort have in common, such as `git push` or `Edit`.
        targets: what it is done to; empty for everything or for nothing in particular.
        shown: the call in a few words.
        made: files that it creates.
        commands: the commands of a shell line, those that only prepare the shell left out.
        also: what the other commands of the line do.
    """

    kind: str
    family: str
    targets: tuple[str, ...] = ()
    shown: str = ""
    made: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    also: tuple[Call, ...] = ()

    @property
    def parts(self) -> tuple[Call, ...]:
        """All that the line does, most informative first."""
        return (self._replace(also=()), *self.also)


class Answer(NamedTuple):
    """What an answer comes to.

    `ok` is None where it is not known; `counted` is what a test runner counted.
    """

    ok: bool | None
    fault: CallFault | None = None
    counted: str = ""


def read_call(tool: str | None, args: Mapping[str, Any] | None, cwd: str | None = None) -> Call:
    """Return what a tool call does.

    Example:
        >>> read_call("Bash", {"command": "cd api && uv run pytest -x tests/test_a.py 2>&1 | tail -5"})[:4]
        ('test', 'pytest', ('tests/test_a.py',), 'uv run pytest -x tests/test_a.py')
        >>> read_call("Edit", {"file_path": "/home/ana/api/src/a.py", "old_string": "x"}, "/home/ana/api")[:3]
        ('edit', 'Edit', ('src/a.py',))
    """
    tool, args = tool or "tool", args or {}
    command = command_of(args)
    if command is None and _SHELLS.match(tool) and isinstance(args.get("value"), str):
        command = args["value"]
    if command is not None:
        return read_command(command, cwd)
    path = next((args[name] for name in _PATH_NAMES if isinstance(args.get(name), str)), None)
    if _EDITORS.match(tool):
        if path:
            file = short_path(path, cwd)
            is_whole = tool.lower().startswith(("write", "create"))
            return Call("edit", tool, (file,), f"{tool} {file}", (file,) if is_whole else ())
        patch = "\n".join(text[:_LONGEST] for text in args.values() if isinstance(text, str))
        return _read_patch(patch, cwd) or Call("edit", tool, (), tool)
    kind = "plan" if _PLANNERS.match(tool) else "look" if _LOOKERS.match(tool) else _kind_of(tool.lower())
    text = path or next((args[name] for name in _TEXT_NAMES if isinstance(args.get(name), str)), "")
    target = short_path(text, cwd) if path else _clean(text)
    return Call(kind, tool, (target,) if target else (), f"{tool} {target}".strip())


def command_of(args: Mapping[str, Any] | None) -> str | None:
    """Return the shell line of a tool call, or None.

    Example:
        >>> command_of({"command": ["bash", "-lc", "npm test"]}), command_of({"file_path": "a.py"})
        ('npm test', None)
    """
    found = (args or {}).get("command", (args or {}).get("cmd"))
    if isinstance(found, list):
        words = [str(word) for word in found]
        is_wrapped = len(words) > 2 and words[0].endswith("sh") and words[1].startswith("-")
        return words[2] if is_wrapped else " ".join(words)
    return found if isinstance(found, str) else None


@functools.lru_cache(maxsize=512)
def read_command(line: str, cwd: str | None = None) -> Call:
    """Return what a shell line does: the most informative of its commands.

    Example:
        >>> read_command("git add -A && git commit -m 'Fix the login' && git push").family
        'git commit'
        >>> read_command("cat > notes.txt <<'EOF'\\ntests\\nEOF").made
        ('notes.txt',)
    """
    line = line[:_LONGEST].strip()
    patched = _read_patch(line, cwd) if "*** " in line else None
    if patched:
        return patched
    commands = tuple(one for one in split_line(line) if not one.is_aside)
    written = _WRITTEN.match(line)
    if written and (written[1] or len(commands) == 1):
        file = short_path(written[1] or written[2], cwd)
        return Call("edit", "Edit", (file,), f"Edit {file}", (file,) if written[1] else ())
    calls = [_read_simple(one, cwd) for one in commands]
    if not calls:
        return Call("look", "cd", (), _clean(line))
    first = min(reversed(calls), key=lambda call: _RANK.index(call.kind))
    return first._replace(commands=commands, also=tuple(call for call in calls if call is not first)[:8])


def _read_patch(patch: str, cwd: str | None) -> Call | None:
    found = [(what, short_path(path.strip(), cwd)) for what, path in _PATCHED.findall(patch)]
    files = tuple(dict.fromkeys(path for _, path in found))
    made = tuple(path for what, path in found if what == "Add")
    return Call("edit", "Edit", files, f"Edit {', '.join(files[:3])}", made) if files else None


def _read_simple(command: Command, cwd: str | None) -> Call:
    option = next((word for word in command.words[1:2] if word.startswith("-")), "")
    kind = _kind_of(f"{command.family} {option}".strip())
    targets = command.targets if kind in (*CHECKS, "look", "run") else ()
    files = tuple(dict.fromkeys(short_path(_clean(word), cwd) for word in targets[:20]))
    return Call(kind, command.family, files, _clean(command.text), (), (command,))


@functools.lru_cache(maxsize=512)
def _kind_of(words: str) -> str:
    return next((kind for kind, shape in _KINDS if shape.search(words)), "run")


def short_path(path: str, cwd: str | None = None) -> str:
    """Return a path from the folder that the session works in.

    Example:
        >>> short_path("/home/ana/api/src/a.py", "/home/ana/api"), short_path("./a.py")
        ('src/a.py', 'a.py')
    """
    path = path.strip().removeprefix("./")
    base = (cwd or "").rstrip("/")
    if base and path.startswith(base + "/"):
        path = path[len(base) + 1 :]
    return re.sub(r"^/(?:home|Users)/[^/]+/", "~/", path)[:200]


def _clean(text: str) -> str:
    """Return a command on one line, without credentials, cut."""
    return shorten(redact(text[:2000]).text, _SHOWN)


def read_answer(call: Call, content: str | None, error: str | None, *, ok: bool | None) -> Answer:
    """Return whether a call succeeded, and how it failed if it did not.

    A test run whose exit code was lost in a pipe is judged by what it printed; a search that found
    nothing has not failed.

    Example:
        >>> read_answer(Call("test", "pytest"), "FAILED tests/test_a.py::test_x - KeyError: 'id'\\n=== 1 failed in 0.21s ===", None, ok=True).ok
        False
        >>> read_answer(Call("look", "grep"), "Exit code 1", None, ok=False).fault is None
        True
    """
    text, failure = both_ends(content or ""), both_ends(error or "")
    whole = text if failure.strip() and failure.strip() in text else f"{failure}\n{text}".strip()
    counted = _count(text) if call.kind in ("test", "lint") else ""
    if ok is None and error:
        ok = False
    elif ok is None and (code := exit_code(text)) is not None:
        ok = code == 0
    elif ok is None and counted:
        ok = True
    if ok is not False and call.kind == "test" and _TEST_FAILED.search(text):
        ok = False
    if ok is not False:
        return Answer(ok, None, counted)
    if call.kind == "look" and not any(sign.isalpha() for sign in re.sub(r"(?i)exit code:? \d+", "", whole)):
        return Answer(True, None, counted)
    return Answer(False, read_fault(whole, call.kind), counted)


def _count(text: str) -> str:
    found = _COUNTS.findall(text)
    return shorten(found[-1].strip().strip(",;"), 60) if found else ""
