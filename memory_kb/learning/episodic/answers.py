"""What a tool's answer says: whether it failed, with what sort of error, and what it counted."""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_kb.credentials import redact
from memory_kb.learning.observation.failures import innermost, read_failure
from memory_kb.learning.observation.forms import without_home
from memory_kb.text import shorten

#: Characters looked at of an answer, from its beginning and from its end.
_HEAD, _TAIL = 4_000, 12_000
_MESSAGE = 200
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
_EXIT = re.compile(
    r"(?:^|\b)(?:process )?(?:exit(?:ed)?(?: with)?|return)[ _](?:code|status)[: ]+(-?\d+)", re.IGNORECASE
)

# What runners write when not all is well, though their exit code was swallowed by a pipe.
_TEST_FAILED = re.compile(
    r"\b[1-9]\d* (?:failed|failing|errors?)\b|^FAILED\b|^FAIL[: \t]|^--- FAIL|test result: FAILED|^Tests:.*\bfailed\b|^npm ERR!",
    re.MULTILINE,
)
_COUNTS = (
    re.compile(r"^=+ (.*?\b(?:passed|failed|errors?)\b.*?)(?: in [\d.:]+s?.*)? =+\s*$", re.MULTILINE),
    re.compile(
        r"^((?:\d+ (?:passed|failed|skipped|errors?|warnings?|xfailed|deselected),? ?)+?)(?: in [\d.]+s.*)?$",
        re.MULTILINE,
    ),
    re.compile(r"^[^\S\n]*Tests:?\s+(.*\b(?:passed|failed)\b.*)$", re.MULTILINE),
    re.compile(r"^test result: (?:ok|FAILED)\. (\d+ passed; \d+ failed)", re.MULTILINE),
    re.compile(r"^[^\S\n]*(\d+ (?:passing|failing))\b", re.MULTILINE),
    re.compile(r"^(Ran \d+ tests?)\b", re.MULTILINE),
    re.compile(r"^(Found \d+ errors?(?: in \d+ files?)?)", re.MULTILINE),
)
_PLACES = re.compile(r"^(?:FAILED|ERROR|FAIL:?|✕|●|--- FAIL:)\s+([\w./@-]+\.\w{1,5})(?:::\S+)?", re.MULTILINE)
# From the most telling shape to the least; each gives a type, or a word for it, and a message.
_NAMED = r"(?P<type>(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Timeout|Interrupt|Failure|Refused|NotFound|DoesNotExist)|panic)"
_SHAPES: tuple[tuple[str | None, re.Pattern[str]], ...] = tuple(
    (word, re.compile(pattern, re.MULTILINE))
    for word, pattern in (
        (None, rf"^(?:FAILED|ERROR) \S+(?: - |: ){_NAMED}: (?P<message>.+)$"),
        (None, rf"^E\s+{_NAMED}: (?P<message>.+)$"),
        ("AssertionError", r"^E\s+(?P<message>assert .+)$"),
        (None, r"\berror (?P<type>TS\d{3,5}): (?P<message>.+)$"),
        (None, r"^error\[(?P<type>E\d{4})\]: (?P<message>.+)$"),
        (None, rf"^\s*(?:Uncaught |Caused by: |Exception in thread \S+ )?{_NAMED}(?: \[\w+\])?: (?P<message>.+)$"),
        ("command not found", r"^.*?(?P<message>[\w./-]+: (?:command )?not found)\s*$"),
        (
            "access denied",
            r"^(?P<message>.*(?:\bdenied: |\bis denied|AccessDenied|[Uu]nauthorized|[Ff]orbidden|authentication failed).*)$",
        ),
        ("permission denied", r"^(?P<message>.*\b(?:[Pp]ermission denied|EACCES)\b.*)$"),
        ("no such file", r"^(?P<message>.*\b(?:No such file or directory|ENOENT|File does not exist)\b.*)$"),
        ("connection refused", r"^(?P<message>.*\b(?:[Cc]onnection refused|ECONNREFUSED)\b.*)$"),
        ("timeout", r"^(?P<message>.*\b(?:[Tt]imed? ?out|ETIMEDOUT|deadline exceeded)\b.*)$"),
        ("out of memory", r"^(?P<message>.*\b(?:[Oo]ut of memory|OOMKilled|heap limit)\b.*)$"),
        ("merge conflict", r"^(?P<message>CONFLICT .+)$"),
        ("lint", r"^(?P<message>\S+:\d+:\d+: [A-Z]+\d+ .+)$"),
        ("type check", r"^(?P<message>\S+:\d+: error: .+)$"),
        ("compile", r"^(?P<message>\S+:\d+:\d+: (?:error: )?.+)$"),
        ("panic", r"^thread '.+?' panicked at (?P<message>.+)$"),
        ("test failure", r"^test (?P<message>\S+) \.\.\. FAILED$"),
        ("test failure", r"^\s*(?:FAILED|--- FAIL:|FAIL:?|✕|●|not ok)\s+(?P<message>.+)$"),
        ("rejected", r"^\s*!\s+\[(?:remote )?rejected\]\s+(?P<message>.+)$"),
        ("error", r"^(?P<message>Error from server .+)$"),
        (
            "error",
            r"^\s*(?:npm (?:ERR!|error)|ERR_PNPM_\w+|[Ee]rror|ERROR|[Ff]atal|FATAL|remote: error)\b(?: response from \w+)?[:!]?\s+(?P<message>\S.*)$",
        ),
        ("error", r"^(?P<message>.*\b(?:[Ee]rror|ERROR|[Ff]ailed|fatal)\b: .+)$"),
    )
)
#: What harnesses answer when a tool is used the wrong way, or a person does not want it used.
_MISUSE = re.compile(
    r"has not been read yet|has been modified since read|String to replace not found|old_string|No changes to make"
    r"|<tool_use_error>|InputValidationError"
    r"|Found \d+ matches of the string|exceeds maximum allowed|Invalid context|apply_patch verification failed|is not a valid tool",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"user (?:doesn't|does not|didn't) want|(?:denied|rejected) by (?:the )?user|[Pp]ermission to use \S+|user (?:rejected|declined)"
)
#: A line that tells somebody to do something is no description of an error; a log is no place for it.
_ORDERS = re.compile(
    r"\b(?:ignore (?:all|any|previous|the)|disregard|you (?:must|should|need to|have to)\b|instructions?\b|agents?\b|assistants?\b|system prompt|"
    r"remember (?:that|to|this)|from now on|base64|rm -rf)|\b(?:curl|wget)\b.*\|",
    re.IGNORECASE,
)
_NOISE = re.compile(
    r"A complete log of this run|^npm (?:ERR!|error)\s*$|finished in \d|^make(?:\[\d+\])?: \*\*\*", re.IGNORECASE
)
_NPM = re.compile(r"^npm (?:ERR!|error) (?:code )?", re.MULTILINE)
_BROKEN_OFF = re.compile(
    r"KeyboardInterrupt|\^C\b|Request interrupted|SIGINT|(?:exit|status) (?:code|status)?:? ?(?:130|137|143)\b",
    re.IGNORECASE,
)
_VOLATILE = (
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b0x[0-9a-fA-F]{4,}\b"), "<address>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b"), "<hash>"),
    (re.compile(r"(?:/private)?/(?:tmp|var/folders)/\S+?(?=[\s:'\",)]|$)"), "<tmp>"),
    (re.compile(r"\b(?:in |after )?\d+(?:\.\d+)? ?(?:ms|s|sec|seconds)\b(?= *(?:$|[,;)]))"), "<duration>"),
)
_LABEL = re.compile(
    r"^(?:\[?\d\d:\d\d:\d\d\]?:? *|(?:/\S*/)?(?:ba|z|da)?sh: (?:line )?\d+: |\[(?:error|ERROR|fatal)\] *|npm (?:ERR!|error) +(?:code +)?"
    r"|(?:[\w.-]{1,20}: )?(?:[Ee]rror|[Ff]atal|denied|ERROR|FATAL)[:!] +)+(?=\S)"
)


class Fault(NamedTuple):
    """How a call failed.

    Attributes:
        type: an exception's name, or a word such as `timeout`.
        message: what it said, without what is different every time.
        places: files that it names as failing.
        sort: `work` for what the work itself met, `misuse` for a tool used wrongly, `refused`
            where a person said no.
    """

    type: str
    message: str
    places: tuple[str, ...] = ()
    sort: str = "work"

    @property
    def key(self) -> tuple[str, str]:
        """What makes two faults the same: type and message, numbers apart."""
        return self.type, same_words(self.message)


class Answer(NamedTuple):
    """What an answer comes to.

    `ok` is None where it does not tell; `counted` is what a runner of tests counted.
    """

    ok: bool | None
    fault: Fault | None = None
    counted: str = ""


def read_answer(kind: str, content: str | None, error: str | None, ok: bool | None) -> Answer:  # noqa: FBT001 - as the event has it
    """Tell whether a call succeeded, and how it failed if it did not.

    A test run whose exit code was lost in a pipe is told by what it wrote; a search that found
    nothing has not failed.

    Args:
        kind: of the call, as in `toolcalls.Call`.
        content: what it wrote.
        error: what the log says went wrong.
        ok: what the log says of its success.

    Example:
        >>> read_answer("test", "FAILED tests/test_a.py::test_x - KeyError: 'id'\\n=== 1 failed, 3 passed in 0.21s ===", None, True)
        Answer(ok=False, fault=Fault(type='KeyError', message="'id'", places=('tests/test_a.py',), sort='work'), counted='1 failed, 3 passed')
        >>> read_answer("look", "Exit code 1", None, False).fault is None
        True
    """
    text = _ANSI.sub("", _ends(content or ""))
    told = _ANSI.sub("", _ends(error or ""))
    whole = text if told.strip() and told.strip() in text else f"{told}\n{text}".strip()
    counted = _count(text) if kind in ("test", "lint") else ""
    if ok is None:
        code = _EXIT.search(text[:400]) or _EXIT.search(text[-200:])
        ok = (
            False
            if error
            else int(code[1]) == 0
            if code
            else True
            if counted and not _TEST_FAILED.search(text)
            else None
        )
    if ok is not False and kind == "test" and _TEST_FAILED.search(text):
        ok = False
    if ok is not False:
        return Answer(ok, None, counted)
    if kind == "look" and not _has_words(_EXIT.sub("", whole)):
        return Answer(True, None, counted)
    return Answer(False, _read_fault(kind, whole), counted)


def _ends(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"


def _has_words(text: str) -> bool:
    return any(sign.isalpha() for sign in text)


def _count(text: str) -> str:
    for shape in _COUNTS:
        found = shape.findall(text)
        if found:
            return shorten(str(found[-1]).strip().strip(",;"), 60)
    return ""


def _read_fault(kind: str, text: str) -> Fault:
    if _BROKEN_OFF.search(text):
        return Fault("broken off", "", (), "misuse")
    places = tuple(dict.fromkeys(found.removeprefix("./") for found in _PLACES.findall(text)))[:10]
    refused, misused = _REFUSED.search(text), _MISUSE.search(text)
    if refused or (misused and kind in ("edit", "look", "plan", "run")):
        line = next((line for line in text.splitlines() if _has_words(line)), text)
        return Fault(
            "refused" if refused else "misuse",
            _tidy(re.sub(r"</?\w+>", "", line)),
            places,
            "refused" if refused else "misuse",
        )
    text = "\n".join(line for line in text.splitlines() if not _ORDERS.search(line) and not _NOISE.search(line))
    plain = _NPM.sub("", text)
    for word, shape in _SHAPES:
        found = shape.search(text if word == "error" else plain)
        message = _tidy(found["message"]) if found else ""
        if found and _has_words(message):
            named = (found.groupdict().get("type") or word or "error").rpartition(".")[2]
            if named == "error":
                message = _told_better(text) or message
            return Fault(named, message, places, "misuse" if kind == "look" and named == "no such file" else "work")
    line = (
        _told_better(text)
        or _told_at_all(text)
        or next((line for line in reversed(text.splitlines()) if _has_words(_EXIT.sub("", line))), "")
    )
    code = _EXIT.search(text)
    return Fault("error" if line else f"exit code {code[1]}" if code else "failed", _tidy(line), places)


def _told_better(text: str) -> str | None:
    """Return the line that tells of machine, tools or set-up, if there is one."""
    found = read_failure(text)
    return _tidy(found.message) if found and found.is_about_setup else None


def _told_at_all(text: str) -> str | None:
    """Return the first line that names an error, where one is told apart from the rest."""
    found = read_failure(text)
    return _tidy(found.message) if found and found.message in text and not _GENERIC.search(found.message) else None


def _tidy(message: str) -> str:
    """Return a message on one line, without credentials and without what is different every time."""
    message = redact(message[:2_000]).text
    for shape, word in _VOLATILE:
        message = shape.sub(word, message)
    message = without_home(message.replace(" (<duration>)", ""))
    return shorten(innermost(_LABEL.sub("", message.strip(" -:")), _MESSAGE), _MESSAGE)


def same_words(message: str) -> str:
    """Return a message as it is compared: in lower case, any number like any other.

    Example:
        >>> same_words("Line 12: expected 3 items") == same_words("line 7: expected 4  items")
        True
    """
    return " ".join(re.sub(r"\d+", "#", message.casefold()).split())


def is_bare(type_: str) -> bool:
    """Tell whether the type of an error is just that it failed.

    Example:
        >>> is_bare("exit code 1"), is_bare("error"), is_bare("KeyError")
        (True, True, False)
    """
    return re.fullmatch(r"(?i)exit code -?\d+|failed|error", type_) is not None


_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_PATH = re.compile(r"\S*/\S*|\S+\.\w{1,5}(?=[\s:,;]|$)")
# What says that something failed, and not what.
_GENERIC = re.compile(
    r"^\W*(?:FAILURE: )?(?:the )?(?:build|tests?|command|process|job|task|check)s? (?:has )?failed(?: with an? (?:exception|error))?\W*$"
    r"|^\W*failed tests?\b|\berrors? occurred\b|\bsee (?:the )?(?:log|output|above)|\bexited with\b",
    re.IGNORECASE,
)
_COMPARING = frozenset(
    {
        "assert",
        "expected",
        "got",
        "received",
        "but",
        "was",
        "equal",
        "none",
        "true",
        "false",
        "null",
        "and",
        "not",
        "where",
    }
)


def is_telling(type_: str, message: str) -> bool:
    """Tell whether an error says anything to somebody who was not there; a bare exit code does not.

    Example:
        >>> is_telling("exit code 1", ""), is_telling("AssertionError", "assert 200 == 429")
        (False, False)
        >>> is_telling("ModuleNotFoundError", "No module named 'redis'")
        True
    """
    if _GENERIC.search(message) or same_words(message).strip(" .:!") == same_words(type_):
        return False
    plain = _PATH.sub(" ", _QUOTED.sub(" ", message))
    words = [word for word in re.findall(r"[^\W\d_]{3,}", plain) if word.casefold() not in _COMPARING]
    if is_bare(type_) or type_ in ("AssertionError", "test failure"):
        return len(words) >= 3
    return len(words) >= 2 or (bool(words) and type_[:1].isupper())
