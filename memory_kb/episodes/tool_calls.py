"""Parse tool calls and their results: what a call does, whether it succeeded, and how it failed."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from memory_kb.credentials import redact
from memory_kb.episodes.session_facts import same_words
from memory_kb.episodes.shell import Command, split_line
from memory_kb.injected_text import is_own_call
from memory_kb.lazy_regex import lazy_regex
from memory_kb.store.session_events import Event, named_file
from memory_kb.text import shorten

#: What is run to see whether the work is right; their last results decide the outcome of a task.
CHECKS = ("test", "build", "lint", "deploy")
_LONGEST, _SHOWN = 20_000, 100
_EDITORS = lazy_regex(
    r"(?i)^(?:(?:multi|notebook)?_?edit|write(?!_?(?:todos|stdin))|create_?file|apply_?patch|update_?file|(?:str_|search_)?replace|patch|insert)"
)
_LOOKERS = lazy_regex(
    r"(?i)^(?:read|view|open|grep|glob|ls|list|search|find|fetch|web_?search|web_?fetch|notebook_?read|cat)(?:_?\w+)?$"
)
_PLANNERS = lazy_regex(
    r"(?i)^(?:todo|write_?todos|update_plan|exit_?plan_?mode|enter_?plan_?mode|ask_?user|write_stdin|kill_?|bash_?output)"
)
_TEXT_NAMES = ("pattern", "query", "url", "description", "name", "value")
_PATCHED = lazy_regex(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_WRITTEN = lazy_regex(r"^(?:cat|tee)\s*(?:>+)?\s*([\w./~-]+)\s*<<|^sed\s+(?:-\S+\s+)*-i\b.*?\s([\w./~-]+)\s*$")
#: What a command is for, by its family and first option; the first that fits counts.
_KINDS = {
    "commit": r"^git commit\b",
    "deploy": r"deploy|^kubectl (?:apply|set|rollout)\b|^helm (?:upgrade|install)|^terraform apply|^ansible-playbook",
    "test": r"^(?:pytest|py\.test|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|unittest|ava|playwright|cypress|nextest)\b"
    r"|^\S+(?: run)? (?:\S*test\S*|check|verify|jest|mocha)$|^(?:run[_-]?)?tests?(?:[_.-]\w+)*$",
    "lint": r"^(?:ruff|mypy|gofmt|actionlint|eslint|flake8|pylint|pyright|prettier|shellcheck|golangci-lint|black|tsc --noEmit)\b"
    r"|^cargo (?:check|clippy|fmt)|\b(?:lint|typecheck|type-check|vet)\b",
    "build": r"\b(?:build|compile|package|publish)\b|^(?:tsc|webpack|cmake|ninja|make(?: all)?)$",
    "install": r"^\S+(?: pip)? (?:install|add|i|ci|sync|remove)\b",
    "look": r"^\S+(?: \S+)? (?:list|ls|show|status|info|describe|version|--version|-version|-V|ps|logs|inspect|get|view|diff|log)\b"
    r"|^(?:ls|cat|head|tail|grep|rg|ag|find|fd|pwd|wc|tree|which|ps|top|df|du|env|printenv|stat|file|less|jq|awk|sed|diff|sort"
    r"|date|type|nl|id|whoami|uname|curl|test|\[|git (?:branch|blame|remote|fetch|rev-parse|ls-files|grep))(?:\s|$)",
}
_SHAPES_OF_KINDS = {kind: lazy_regex(pattern, re.IGNORECASE) for kind, pattern in _KINDS.items()}
_RANK = ("deploy", "test", "build", "commit", "lint", "install", "run", "edit", "look", "plan")
_COUNTS = lazy_regex(
    r"^\W*(?:Tests:?\s+|test result: \w+\. )?(\d[^\n]*? (?:passed|failed|passing|failing)\b.*?|Ran \d+ tests?|Found \d+ errors?[^\n]*?)"
    r"(?:;| in [\d.:]+ ?s.*)?\W*$",
    re.MULTILINE,
)
_TEST_FAILED = lazy_regex(
    r"\b[1-9]\d* (?:failed|failing|errors?)\b|^FAILED\b|^FAIL[: \t]|^--- FAIL|test result: FAILED|^Tests:.*\bfailed\b|^npm ERR!",
    re.MULTILINE,
)


class Call(NamedTuple):
    """What a call does; of a shell line with several commands, what the most informative of them does.

    Attributes:
        kind: edit, look, plan, run, install, commit, or one of `CHECKS`.
        family: what calls of one sort have in common, such as `git push` or `Edit`.
        targets: what it is done to; empty for everything or for nothing in particular; `made` are files it creates.
        line: what the commands of its shell line do, in their order, where there are several.
    """

    kind: str
    family: str
    targets: tuple[str, ...] = ()
    shown: str = ""
    made: tuple[str, ...] = ()
    command: Command | None = None
    line: tuple[Call, ...] = ()

    @property
    def parts(self) -> tuple[Call, ...]:
        """All that its line does, in order."""
        return self.line or (self,)


def read_tool_call(tool: str | None, args: Mapping[str, Any] | None, cwd: str | None = None) -> Call:
    """Return what a tool call does.

    Example:
        >>> read_tool_call("Bash", {"command": "cd api && uv run pytest -x tests/test_a.py 2>&1 | tail -5"})[:4]
        ('test', 'pytest', ('tests/test_a.py',), 'uv run pytest -x tests/test_a.py')
        >>> read_tool_call("Edit", {"file_path": "/home/ana/api/src/a.py", "old_string": "x"}, "/home/ana/api")[:3]
        ('edit', 'Edit', ('src/a.py',))
        >>> [read_tool_call(tool, {"path": "a.py"}).kind for tool in ("mcp__files__write_file", "write_todos")]
        ['edit', 'plan']
    """
    tool, args = tool or "tool", args or {}
    command = _command_of(args)
    if command is not None:
        return _read_command(command, cwd)
    path, name = named_file(args), tool.rpartition("__")[2]
    if _EDITORS.match(tool) or (path and _EDITORS.match(name)):
        if path:
            file = _short_path(path, cwd)
            is_whole = name.lower().startswith(("write", "create"))
            return Call("edit", tool, (file,), f"{tool} {file}", (file,) if is_whole else ())
        patch = "\n".join(text[:_LONGEST] for text in args.values() if isinstance(text, str))
        return _read_patch(patch, cwd) or Call("edit", tool, (), tool)
    kind = "plan" if _PLANNERS.match(tool) else "look" if _LOOKERS.match(tool) else _kind_of(tool.lower())
    text = next((args[name] for name in _TEXT_NAMES if isinstance(args.get(name), str)), "")
    target = _short_path(path, cwd) if path else _without_secrets(text)
    return Call(kind, tool, (target,) if target else (), f"{tool} {target}".strip())


def _command_of(args: Mapping[str, Any]) -> str | None:
    """Return the shell line of a tool call, also from a list such as `["bash", "-lc", "npm test"]`, or None."""
    found = args.get("command", args.get("cmd"))
    if isinstance(found, list):
        words = [str(word) for word in found]
        is_wrapped = len(words) > 2 and words[0].endswith("sh") and words[1].startswith("-")
        return words[2] if is_wrapped else " ".join(words)
    return found if isinstance(found, str) else None


@functools.lru_cache(maxsize=512)
def _read_command(line: str, cwd: str | None) -> Call:
    """Return what a shell line does: the most informative of its commands, with the others beside it."""
    line = line[:_LONGEST].strip()
    patched = _read_patch(line, cwd) if "*** " in line else None
    if patched:
        return patched
    commands = [one for one in split_line(line) if not one.is_aside]
    written = _WRITTEN.match(line)
    if written and (written[1] or len(commands) == 1):
        file = _short_path(written[1] or written[2], cwd)
        return Call("edit", "Edit", (file,), f"Edit {file}", (file,) if written[1] else ())
    calls = [_read_simple(one, cwd) for one in commands]
    if not calls:
        return Call("look", "cd", (), _without_secrets(line))
    first = min(reversed(calls), key=lambda call: _RANK.index(call.kind))
    return first._replace(line=tuple(calls)) if len(calls) > 1 else first


def _read_patch(patch: str, cwd: str | None) -> Call | None:
    found = [(what, _short_path(path.strip(), cwd)) for what, path in _PATCHED.findall(patch)]
    files = tuple(dict.fromkeys(path for _, path in found))
    made = tuple(path for what, path in found if what == "Add")
    return Call("edit", "Edit", files, f"Edit {', '.join(files[:3])}", made) if files else None


def _read_simple(command: Command, cwd: str | None) -> Call:
    option = next((word for word in command.words[1:2] if word.startswith("-")), "")
    kind = _kind_of(f"{command.family} {option}".strip())
    targets = command.targets if kind in (*CHECKS, "look", "run") else ()
    files = tuple(dict.fromkeys(_short_path(_without_secrets(word), cwd) for word in targets[:20]))
    return Call(kind, command.family, files, _without_secrets(command.text), (), command)


@functools.lru_cache(maxsize=512)
def _kind_of(words: str) -> str:
    return next((kind for kind, shape in _SHAPES_OF_KINDS.items() if shape.search(words)), "run")


def _short_path(path: str, cwd: str | None) -> str:
    path, base = path.strip().removeprefix("./"), f"{(cwd or '').rstrip('/')}/"
    path = path.removeprefix(base) if base != "/" else path
    return re.sub(r"^/(?:home|Users)/[^/]+/", "~/", path)[:200]


def _without_secrets(text: str) -> str:
    return shorten(redact(text[:2000]).text, _SHOWN)


# -- answers ------------------------------------------------------------------------------------

#: Characters read of an answer, from its beginning and from its end; the longest message that is kept.
_HEAD, _TAIL, _MESSAGE = 4_000, 12_000, 200
_ANSI = lazy_regex(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
_EXIT = lazy_regex(r"\b(?:process )?(?:exit(?:ed)?(?: with)?|return)[ _](?:code|status)[: ]+(-?\d+)", re.IGNORECASE)
_TYPE = r"(?P<type>(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Timeout|Failure|NotFound|DoesNotExist)|panic)"
#: From the most specific shape to the least; each gives a type, or a word for it, and a message.
_SHAPES = tuple(
    (word, lazy_regex(pattern, re.MULTILINE))
    for word, pattern in (
        ("", rf"^(?:(?:FAILED|ERROR) \S+(?: - |: )|E\s+){_TYPE}: (?P<message>.+)$"),
        ("AssertionError", r"^E\s+(?P<message>assert .+)$"),
        ("", r"(?:\berror |^error\[)(?P<type>TS\d{3,5}|E\d{4})\]?: (?P<message>.+)$"),
        ("", rf"^[ \t]*(?:Uncaught |Caused by: )?{_TYPE}(?: \[\w+\])?: (?P<message>.+)$"),
        ("command not found", r"^.*?(?P<message>[\w./-]+: (?:command )?not found)\s*$"),
        ("command not found", r"\bcommand not found: (?P<message>\S+)\s*$"),
        ("permission denied", r"^(?P<message>.*\b(?:[Pp]ermission denied|EACCES|access denied)\b.*)$"),
        ("no such file", r"^(?P<message>.*\b(?:No such file or directory|ENOENT|File does not exist)\b.*)$"),
        ("connection refused", r"^(?P<message>.*\b(?:[Cc]onnection refused|ECONNREFUSED)\b.*)$"),
        ("timeout", r"^(?P<message>.*\b(?:[Tt]imed? ?out|ETIMEDOUT|deadline exceeded)\b.*)$"),
        ("at a line", r"^(?P<message>\S+:\d+(?::\d+)?: (?:error: )?.+)$"),
        (
            "test failure",
            r"^[ \t]*(?:FAILED|--- FAIL:|FAIL\b:?|✕|●|not ok|test (?=\S+ \.\.\. FAILED))\s*(?P<message>.+)$",
        ),
        (
            "error",
            r"^[ \t]*(?:npm (?:ERR!|error)|[Ee]rror|ERROR|[Ff]atal|FATAL|CONFLICT|!\s+\[.*?rejected\])[:!]?\s+(?P<message>\S.*)$",
        ),
        ("error", r"^(?P<message>.*\b(?:[Ee]rror|ERROR|[Ff]ailed|fatal)\b: .+)$"),
    )
)
#: What harnesses answer when a tool is used the wrong way, or a person does not want it used.
_MISUSE = lazy_regex(
    r"has not been read yet|has been modified since read|String to replace not found|old_string|No changes to make"
    r"|<tool_use_error>|InputValidationError|Found \d+ matches of the string|exceeds maximum allowed|Invalid context"
    r"|apply_patch verification failed|is not a valid tool",
    re.IGNORECASE,
)
#: How the answer of a harness begins that did not run the call at all.
_NOT_RUN = "<tool_use_error>"
_REFUSED = lazy_regex(
    r"user (?:doesn't|does not|didn't) want|(?:denied|rejected) by (?:the )?user|[Pp]ermission to use \S+"
    r"|user (?:rejected|declined)|Tool permission request failed"
)
_BROKEN_OFF = lazy_regex(
    r"KeyboardInterrupt|\^C\b|Request interrupted|SIGINT|(?:exit|status) (?:code|status)?:? ?(?:130|137|143)\b",
    re.IGNORECASE,
)
#: What says nothing of the error, a folder that is not there, and an address whose content is piped into a program.
_NOISE = lazy_regex(
    r"://[^|\n]*\||A complete log of this run|^\w+: \((?:none|empty)\)$|^Process Group PGID: |\bcd:(?:\d+:)? |^npm (?:ERR!|error)\s*$"
    r"|^make(?:\[\d+\])?: \*\*\*|^\s*at \S+ \(",
    re.IGNORECASE,
)
_LABEL = lazy_regex(
    r"^(?:Output: |(?:/\S*/)?(?:ba|z|da)?sh: (?:line )?\d+: |npm (?:ERR!|error) +(?:code +)?"
    r"|(?:[\w.-]{1,20}: )?(?:[Ee]rror|[Ff]atal|ERROR|FATAL)[:!] +)+(?=\S)"
)
_HOME = lazy_regex(r"/(?:home|Users)/[^/\s]+/")


class CallFault(NamedTuple):
    """How a call failed.

    Attributes:
        type: an exception's name, or a word such as `timeout`.
        message: what was reported, without credentials.
        sort: `work` for what the work itself met, `misuse` for a tool used wrongly, `refused`
            where a person said no, `interrupt` where it was broken off.
    """

    type: str
    message: str
    sort: str = "work"

    @property
    def key(self) -> tuple[str, str]:
        """What makes two faults the same: type and message, whatever their numbers."""
        return self.type, same_words(self.message)

    @property
    def named(self) -> str:
        """Type and message on one line."""
        return f"{self.type}: {self.message}".rstrip(": ")


class ToolOutcome(NamedTuple):
    """The outcome of a call.

    `ok` is None where it is not known; `is_counted` is whether a test runner counted tests.
    """

    ok: bool | None
    fault: CallFault | None = None
    is_counted: bool = False


def read_answer(call: Call, content: str | None, error: str | None, *, ok: bool | None) -> ToolOutcome:
    """Return whether a call succeeded, and how it failed if it did not.

    A test run whose exit code was lost in a pipe is judged by what it printed; a search that found
    nothing has not failed.

    Example:
        >>> read_answer(Call("test", "pytest"), "FAILED tests/test_a.py::test_x - KeyError: 'id'\\n=== 1 failed in 0.21s ===", None, ok=True).ok
        False
        >>> read_answer(Call("look", "grep"), "Exit code 1", None, ok=False).fault is None
        True
    """
    text, failure = _both_ends(content or ""), _both_ends(error or "")
    whole = text if failure.strip() and failure.strip() in text else f"{failure}\n{text}".strip()
    is_counted = call.kind in ("test", "lint") and _COUNTS.search(text) is not None
    if ok is None:
        code = _EXIT.search(text[:400]) or _EXIT.search(text[-200:])
        ok = False if error else int(code[1]) == 0 if code else True if is_counted else None
    if call.kind == "test" and _TEST_FAILED.search(text):
        ok = False
    if ok is not False:
        return ToolOutcome(ok, None, is_counted)
    if call.kind == "look" and not _has_words(re.sub(r"(?i)exit code:? \d+", "", whole)):
        return ToolOutcome(True, None, is_counted)
    return ToolOutcome(False, read_fault(whole, call.kind), is_counted)


def read_fault(text: str, kind: str = "run") -> CallFault:
    """Return the error that an answer reports; `kind` is the sort of call.

    Example:
        >>> read_fault("FAILED tests/test_a.py::test_x - KeyError: 'id'")
        CallFault(type='KeyError', message="'id'", sort='work')
        >>> read_fault("The user doesn't want to proceed with this tool use.").sort
        'refused'
    """
    text = _both_ends(_ANSI.sub("", text))
    if _BROKEN_OFF.search(text):
        return CallFault("interrupted", "", "interrupt")
    is_refused, is_run = _REFUSED.search(text) is not None, not text.lstrip().startswith(_NOT_RUN)
    if is_refused or not is_run or (_MISUSE.search(text) and kind in ("edit", "look", "plan", "run")):
        sort = "refused" if is_refused else "misuse"
        first = next((line for line in text.splitlines() if _has_words(line)), text)
        return CallFault(sort, _tidy(re.sub(r"</?\w+>", "", first)), sort)
    text = "\n".join(line for line in text.splitlines() if not _NOISE.search(line))
    for word, shape in _SHAPES:
        found = shape.search(text)
        if found and _has_words(message := _tidy(found["message"])):
            named = (word or found["type"]).rpartition(".")[2]
            return CallFault(named, message, "misuse" if kind == "look" and named == "no such file" else "work")
    line = next((line for line in reversed(text.splitlines()) if _has_words(_EXIT.sub("", line))), "")
    code = _EXIT.search(text)
    return CallFault("error" if line else f"exit code {code[1]}" if code else "failed", _tidy(line))


def _both_ends(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"


def _has_words(text: str) -> bool:
    return any(sign.isalpha() for sign in text)


def _tidy(message: str) -> str:
    message = _HOME.sub("~/", redact(message[:2_000]).text)
    return shorten(_LABEL.sub("", message.strip(" -:")).replace("`", "'"), _MESSAGE)


# -- calls with their answers ---------------------------------------------------------------------


class Step(NamedTuple):
    """A call of a session with its answer, and their events; `ended` is None where there is no answer."""

    call: Call
    answer: ToolOutcome
    begun: Event
    ended: Event | None


class CallReader:
    """Reads the calls in the events of a session, which come one after another."""

    def __init__(self, cwd: str | None = None) -> None:
        self.cwd = cwd
        self._open: dict[str, Event] = {}

    def take(self, event: Event) -> Iterator[Step]:
        """Yield the calls that an event completes; one that another of its name replaces has no answer."""
        if event.event == "start":
            cwd = (event.args or {}).get("cwd")
            self.cwd = self.cwd or (cwd if isinstance(cwd, str) else None)
        elif event.type == "tool_call" and event.ok is None and not event.error:
            name = event.call_id or f"tool {event.tool}"
            if unanswered := self._open.pop(name, None):
                yield self._read(unanswered)
            self._open[name] = event
        elif event.type in ("tool_call", "tool_result"):
            begun = self._open.pop(event.call_id or "", None) or self._open.pop(f"tool {event.tool}", None) or event
            if event.injected != "whole":
                yield self._read(begun, event)

    def rest(self) -> Iterator[Step]:
        """Yield the calls that have no answer, when there are no more events."""
        return (self._read(begun) for begun in self._open.values())

    def _read(self, begun: Event, ended: Event | None = None) -> Step:
        call = read_tool_call(begun.tool, begun.args, self.cwd)
        if is_own_call(begun.tool, begun.args):
            call = call._replace(kind="plan")
        answer = read_answer(call, ended.content, ended.error, ok=ended.ok) if ended else ToolOutcome(None)
        return Step(call, answer, begun, ended)
