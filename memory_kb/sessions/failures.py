"""Read the error that a tool's answer reports: its type, its message, and whether the work itself failed."""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_kb.credentials import redact
from memory_kb.learning.error_text import generalise, same_words
from memory_kb.text import shorten

#: Characters read of an answer, from its beginning and from its end; the longest message that is kept.
_HEAD, _TAIL, _MESSAGE = 4_000, 12_000, 200
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
_EXIT = re.compile(r"\b(?:process )?(?:exit(?:ed)?(?: with)?|return)[ _](?:code|status)[: ]+(-?\d+)", re.IGNORECASE)
_TYPE = r"(?P<type>(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Timeout|Failure|NotFound|DoesNotExist)|panic)"
#: From the most specific shape to the least; each gives a type, or a word for it, and a message.
_SHAPES = tuple(
    (word, re.compile(pattern, re.MULTILINE))
    for word, pattern in (
        (None, rf"^(?:FAILED|ERROR) \S+(?: - |: ){_TYPE}: (?P<message>.+)$"),
        (None, rf"^E\s+{_TYPE}: (?P<message>.+)$"),
        ("AssertionError", r"^E\s+(?P<message>assert .+)$"),
        (None, r"\berror (?P<type>TS\d{3,5}): (?P<message>.+)$"),
        (None, r"^error\[(?P<type>E\d{4})\]: (?P<message>.+)$"),
        (None, rf"^[ \t]*(?:Uncaught |Caused by: )?{_TYPE}(?: \[\w+\])?: (?P<message>.+)$"),
        ("command not found", r"^.*?(?P<message>[\w./-]+: (?:command )?not found)\s*$"),
        ("permission denied", r"^(?P<message>.*\b(?:[Pp]ermission denied|EACCES|access denied)\b.*)$"),
        ("no such file", r"^(?P<message>.*\b(?:No such file or directory|ENOENT|File does not exist)\b.*)$"),
        ("connection refused", r"^(?P<message>.*\b(?:[Cc]onnection refused|ECONNREFUSED)\b.*)$"),
        ("timeout", r"^(?P<message>.*\b(?:[Tt]imed? ?out|ETIMEDOUT|deadline exceeded)\b.*)$"),
        ("at a line", r"^(?P<message>\S+:\d+(?::\d+)?: (?:error: )?.+)$"),
        (
            "test failure",
            r"^[ \t]*(?:FAILED|--- FAIL:|FAIL:?|✕|●|not ok|test (?=\S+ \.\.\. FAILED))\s*(?P<message>.+)$",
        ),
        (
            "error",
            r"^[ \t]*(?:npm (?:ERR!|error)|[Ee]rror|ERROR|[Ff]atal|FATAL|CONFLICT|!\s+\[.*?rejected\])[:!]?\s+(?P<message>\S.*)$",
        ),
        ("error", r"^(?P<message>.*\b(?:[Ee]rror|ERROR|[Ff]ailed|fatal)\b: .+)$"),
    )
)
#: What harnesses answer when a tool is used the wrong way, or a person does not want it used.
_MISUSE = re.compile(
    r"has not been read yet|has been modified since read|String to replace not found|old_string|No changes to make"
    r"|<tool_use_error>|InputValidationError|Found \d+ matches of the string|exceeds maximum allowed|Invalid context"
    r"|apply_patch verification failed|is not a valid tool",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"user (?:doesn't|does not|didn't) want|(?:denied|rejected) by (?:the )?user|[Pp]ermission to use \S+|user (?:rejected|declined)"
)
_BROKEN_OFF = re.compile(
    r"KeyboardInterrupt|\^C\b|Request interrupted|SIGINT|(?:exit|status) (?:code|status)?:? ?(?:130|137|143)\b",
    re.IGNORECASE,
)
#: What says nothing of the error, and an address whose content is piped into a program.
_NOISE = re.compile(
    r"://[^|\n]*\||A complete log of this run|^npm (?:ERR!|error)\s*$|^make(?:\[\d+\])?: \*\*\*|^\s*at \S+ \(",
    re.IGNORECASE,
)
_PLACES = re.compile(r"^(?:FAILED|ERROR|FAIL:?|✕|●|--- FAIL:)\s+([\w./@-]+\.\w{1,5})(?:::\S+)?", re.MULTILINE)
_LABEL = re.compile(
    r"^(?:(?:/\S*/)?(?:ba|z|da)?sh: (?:line )?\d+: |npm (?:ERR!|error) +(?:code +)?|(?:[\w.-]{1,20}: )?(?:[Ee]rror|[Ff]atal|ERROR|FATAL)[:!] +)+"
    r"(?=\S)"
)
_HOME = re.compile(r"/(?:home|Users)/[^/\s]+/")


class CallFault(NamedTuple):
    """How a call failed.

    Attributes:
        type: an exception's name, or a word such as `timeout`.
        message: what was reported, without credentials.
        places: files that are named as failing.
        sort: `work` for what the work itself met, `misuse` for a tool used wrongly, `refused`
            where a person said no, `interrupt` where it was broken off.
    """

    type: str
    message: str
    places: tuple[str, ...] = ()
    sort: str = "work"

    @property
    def key(self) -> tuple[str, str]:
        """What makes two faults the same: type and message, without what differs from run to run."""
        return self.type, same_words(generalise(self.message))

    @property
    def named(self) -> str:
        """Type and message on one line."""
        return f"{self.type}: {self.message}".rstrip(": ")


def read_fault(text: str, kind: str = "run") -> CallFault:
    """Return the error that an answer reports.

    `kind` is the sort of call, as in `tool_calls.Call`.

    Example:
        >>> read_fault("FAILED tests/test_a.py::test_x - KeyError: 'id'")
        CallFault(type='KeyError', message="'id'", places=('tests/test_a.py',), sort='work')
        >>> read_fault("The user doesn't want to proceed with this tool use.").sort
        'refused'
    """
    text = both_ends(_ANSI.sub("", text))
    if _BROKEN_OFF.search(text):
        return CallFault("interrupted", "", sort="interrupt")
    places = tuple(dict.fromkeys(found.removeprefix("./") for found in _PLACES.findall(text)))[:10]
    if _REFUSED.search(text) or (_MISUSE.search(text) and kind in ("edit", "look", "plan", "run")):
        sort = "refused" if _REFUSED.search(text) else "misuse"
        return CallFault(sort, _tidy(re.sub(r"</?\w+>", "", _first_line(text))), places, sort)
    text = "\n".join(line for line in text.splitlines() if not _NOISE.search(line))
    for word, shape in _SHAPES:
        found = shape.search(text)
        if found and _has_words(message := _tidy(found["message"])):
            named = (found.groupdict().get("type") or word or "error").rpartition(".")[2]
            is_misuse = kind == "look" and named == "no such file"
            return CallFault(named, message, places, "misuse" if is_misuse else "work")
    line = next((line for line in reversed(text.splitlines()) if _has_words(_EXIT.sub("", line))), "")
    code = _EXIT.search(text)
    return CallFault("error" if line else f"exit code {code[1]}" if code else "failed", _tidy(line), places)


def exit_code(text: str) -> int | None:
    """Return the exit code that a harness writes at the beginning or end of an answer.

    Example:
        >>> exit_code("Exit code 2\\nmake: no rule"), exit_code("all well")
        (2, None)
    """
    found = _EXIT.search(text[:400]) or _EXIT.search(text[-200:])
    return int(found[1]) if found else None


def both_ends(text: str) -> str:
    """Return what is read of an answer: all of it, or beginning and end where it is long."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if _has_words(line)), text)


def _has_words(text: str) -> bool:
    return any(sign.isalpha() for sign in text)


def _tidy(message: str) -> str:
    """Return a message on one line, without credentials and without the name of whoever works here."""
    message = _HOME.sub("~/", redact(message[:2_000]).text)
    return shorten(_LABEL.sub("", message.strip(" -:")).replace("`", "'"), _MESSAGE)
