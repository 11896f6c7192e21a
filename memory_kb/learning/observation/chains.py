"""A line for the shell as commands and how they are joined: which of them failed, and what each of them wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from memory_kb.expressions import lazy_compile

#: So much of an output is looked at: characters of its beginning and its end, lines from its end, characters of a line.
_HEAD, _TAIL, _LINES, _LONGEST = 12_000, 24_000, 200, 400
_OPERATOR = lazy_compile(r"&&|\|\||\|&|[;\n|&]")
#: After these the next command runs whatever became of the last.
_APART = (";", "\n", "&")
_IDLE = lazy_compile(
    r"(?:sleep|echo|true|:|export|set|unset|exit|false|wait|source|\.|printf|fi|done|then|else|if|for|while|do|break|continue)\b"
)
# How a loop over given words begins, of which what is done once is done each time.
_LOOP, _BODY = lazy_compile(r"for\s+\w+\s+in\s"), lazy_compile(r"do\s+(?=\S)")
_STRICT = lazy_compile(r"set -\w*e")
_LEADING = lazy_compile(r"^(?:[A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|\S*)\s+|sudo\s+|time\s+|env\s+|nohup\s+)+")
_RUNNER = lazy_compile(
    r"^(?:(?:uv|poetry|pipenv|pdm|hatch) run|npx|bunx|pnpm (?:exec|dlx)|bundle exec|timeout \S+)\s+(?:-\S+\s+)*"
)
_MODULE = lazy_compile(r"^(?:\S*/)?python[\d.]* -m (?=\w)")
_SHELL_LEAD = lazy_compile(r"^(?:\S*/)?(?:ba|z|da|k)?sh(?:: line \d+|: \d+)?: ")
_NAMED = lazy_compile(r"^(?:\[?[\d:. TZ-]{5,}\]? )?([\w.+/-]+)(?:\[\d+\])?: ")
_QUOTED = lazy_compile(r"(?<!\w)([`'\"‘“])([^`'\"’”]{2,80})(?:[`'\"’”])")
_BAD = lazy_compile(
    r"\b(?:errors?|exception|fatal|fail(?:ed|ure|s)?|panic|cannot|can't|could ?n[o']t|unable|invalid|denied|missing|not found|no such|unknown|"
    r"refused|rejected|unrecogni[sz]ed|expired|required|not (?:installed|supported|set|initialized))\b|Error\b|ERR!|\*\*\*|✗|✘|❌",
    re.IGNORECASE,
)
#: Commands that name themselves, or are known by what they write, whenever they fail.
_NEVER_SILENT = lazy_compile(
    r"(?:git|make|pytest|mypy|cargo|psql|pip3?|npm|pnpm|yarn|bun|\./(?:mvnw|gradlew)|mvn|gradle|mix|composer)\b"
)
#: How a script that a package manager of JavaScript runs is announced.
_ANNOUNCED = lazy_compile(r"^> \S+(?:@\S+)? ([\w:.-]+)(?: \S*/\S*)?$")
_JS = r"(?:npm|pnpm|yarn|bun)\b"
_SCRIPT = lazy_compile(rf"^{_JS}(?: (?:-\S+|run|run-script|workspace \S+))* ([\w:.-]+)")
#: Commands, and what only they say of their failures; of two that fit a line the more special one counts.
_SIGNATURES: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (lazy_compile(command), lazy_compile(line))
    for command, line in (
        (
            r"^git (?:\S+ )*?(?:push|pull|fetch|clone)\b",
            r"\[(?:remote )?rejected\]|failed to push|^remote: |from remote|(?:has no|no) upstream|^To \S+:|pre-receive|Authentication failed",
        ),
        (
            r"^git (?:\S+ )*?commit\b",
            r"nothing (?:added )?to commit|Aborting commit|tell me who you are|\bhusky\b|pre-commit|gpg failed",
        ),
        (
            r"^git (?:\S+ )*?(?:rebase|merge|pull|cherry-pick|stash)\b",
            r"^CONFLICT |could not apply|Merge conflict|local changes",
        ),
        (r"^git\b", r"^(?:fatal|hint): |not a git repository|pathspec"),
        (
            rf"^{_JS} (?:ci|i|install|add)\b",
            r"EUNSUPPORTEDPROTOCOL|ERESOLVE|EBADENGINE|E404|\bgyp\b|lockfile|OUTDATED|node_modules/",
        ),
        (rf"^{_JS}", r"^npm (?:ERR!|error)|^[^\S\n]*ERR_PNPM|ELIFECYCLE|^error Command"),
        (r"^pip3?\b", r"externally-managed-environment|No matching distribution|Could not find a version"),
        (
            r"\b(?:pytest|tox|nox)\b",
            r"^E {2,}|^FAILED |^ERROR \S+\.py|\b\d+ (?:failed|errors?)\b.* in |ImportError while loading conftest",
        ),
        (r"^mypy\b", r"^\S+:\d+: error: |^Found \d+ errors? in \d+ files?"),
        (
            r"^(?:ruff|flake8|pylint)\b",
            r"^\S+:\d+:\d+: [A-Z]+\d+ |^[A-Z]+\d{3,4} |^Found \d+ errors?\.|^Would reformat",
        ),
        (r"\b(?:tsc|vue-tsc|typecheck|type-check)\b", r"\berror TS\d+"),
        (r"\b(?:jest|vitest|mocha|test)\b", r"^[^\S\n]*(?:FAIL|✕|●) |^Tests:.* failed|\b\d+ failing\b"),
        (r"^cargo (?:\S+ )*?(?:test|nextest)\b", r"^test result: FAILED|panicked at"),
        (r"^cargo\b", r"^error(?:\[E\d+\])?: |could not compile"),
        (r"^go\b", r"^--- FAIL|^FAIL\t|no required module|^go: |\.go:\d+:\d+: "),
        (r"^docker (?:compose |buildx )?build\b|^docker-compose build\b", r"failed to solve|[Dd]ockerfile|^ERROR \["),
        (
            r"^docker (?:compose )?(?:push|pull|login)\b",
            r"denied: |unauthorized|no basic auth|manifest unknown|push access",
        ),
        (r"^docker", r"^docker: |^Error response from daemon|Docker daemon"),
        (r"^(?:terraform|tofu)\b", r"^[│╷]|^Error: .*(?:lock|provider|backend|workspace|module)|terraform init"),
        (r"^helm (?:push|pull|registry)\b", r"\b40[13]\b|unauthorized|denied"),
        (r"^(?:apt|apt-get|dpkg)\b", r"^[EW]: |Unable to locate package|dpkg"),
        (r"^brew\b", r"[Nn]o (?:available )?formula|Homebrew|^==> "),
        (r"^helm\b", r"^Error: (?:INSTALLATION|UPGRADE|release|chart|repo|Kubernetes)"),
        (
            r"^(?:kubectl|oc)\b",
            r"^Error from server|^error: (?:the server|resource|unable to)|connection to the server",
        ),
        (
            r"^(?:ssh|scp|rsync)\b",
            r"Permission denied \(publickey|Host key verification|^Connection (?:closed|reset) by|Could not resolve hostname",
        ),
        (r"^(?:\./)?mvnw?\b", r"^\[ERROR\]|BUILD FAILURE"),
        (
            r"^(?:\./)?gradlew?\b",
            r"^FAILURE: Build failed|Execution failed for task|^> Task .* FAILED|^\* What went wrong",
        ),
        (r"^make\b", r"^make(?:\[\d+\])?: "),
        (r"^(?:psql|createdb|pg_\w+)\b", r"^(?:psql|createdb|pg_\w+): |^ERROR: {2}|^FATAL: {2}"),
        (r"^(?:bundle|gem)\b", r"Bundler|Gemfile|Could not find gem|rubygems"),
        (r"^composer\b", r"Your requirements could not be resolved|composer\.(?:json|lock)"),
        (r"^mix\b", r"^\*\* \(Mix\)"),
        (r"^alembic\b", r"^FAILED: |alembic\.util"),
        (r"^ansible", r"^fatal: \[|UNREACHABLE|^ERROR! "),
        (r"^(?:\S*/)?(?:python[\d.]*|uv)\b|\.py\b", r"^Traceback|^(?:\w+\.)*\w+(?:Error|Exception): "),
    )
)


class Link(NamedTuple):
    """One command of a line, with what it is piped into.

    Attributes:
        text: the command and its pipe as they were written.
        joiner: the operator before it: `&&`, `||`, `;`, `&`, a new line, or nothing.
        first: the command without what it is piped into.
        after: the operator behind it, which `|` is where it is piped into something.
    """

    text: str
    joiner: str
    first: str
    after: str = ""

    @property
    def is_idle(self) -> bool:
        """Whether it only waits, tells something or prepares the shell."""
        return not self.first or _IDLE.match(self.first) is not None

    @property
    def bare(self) -> str:
        """The command without the settings and runners before it."""
        bare = _MODULE.sub("", _RUNNER.sub("", _LEADING.sub("", self.first)))
        return re.sub(r"^/?(?:[\w.~-]+/)+(?=\w)", "", bare) if not bare.startswith("./") else bare


def read_chain(line: str) -> tuple[Link, ...]:
    """Return the commands of a line in their order; operators within quotes and `$(...)` are none.

    Example:
        >>> [link[:3] for link in read_chain("cd api && python -c 'a; b' | tail -1; (make)")][1:]
        [("python -c 'a; b' | tail -1", '&&', "python -c 'a; b'"), ('make', ';', 'make')]
        >>> [link.first for link in read_chain("for n in 1 2; do ./run $n; done")]
        ['for n in 1 2', './run $n', 'done']
    """
    found: list[Link] = []
    start, joiner, piped = 0, "", -1
    for begin, end in [*_operators(line), (len(line), len(line))]:
        operator = line[begin:end]
        if operator in ("|", "|&"):
            piped = begin if piped < 0 else piped
            continue
        text = line[start:begin].strip()
        first = _unwrap(line[start:piped].strip()) if piped >= 0 else _unwrap(text)
        if found and _BODY.match(first) and _LOOP.match(found[-1].first):
            text, first, joiner = _BODY.sub("", text), _BODY.sub("", first), found[-1].joiner
        if first:
            found.append(Link(_unwrap(text), joiner if found else "", first, "|" if piped >= 0 else operator))
            if first == "done" and piped >= 0:
                head = max((place for place, link in enumerate(found) if _LOOP.match(link.first)), default=len(found))
                found[head:] = [link._replace(after="|") for link in found[head:]]
            joiner = operator
        elif operator.strip():
            joiner = operator
        start, piped = end, -1
    return tuple(found)


def _unwrap(text: str) -> str:
    """Return a command without the bracket that it opens or closes a group with."""
    if text.startswith(("( ", "{ ")) or (text.startswith("(") and not text.startswith("((")):
        text = text[1:].strip()
    return text[:-1].strip() if text.endswith(")") and text.count("(") < text.count(")") else text


def _operators(line: str) -> list[tuple[int, int]]:
    """Return where operators stand outside of quotes and of what is put in for a command."""
    found, quote, place, depth = [], "", 0, 0
    while place < len(line):
        sign = line[place]
        if quote:
            quote = "" if sign == quote else quote
            place += 1 + (sign == "\\" and quote == '"')
        elif sign in "'\"" or (sign == "`" and not depth):
            quote, place = sign, place + 1
        elif sign == "\\":
            place += 2
        elif line.startswith("$(", place) or (depth and sign == "("):
            depth, place = depth + 1, place + (2 if sign == "$" else 1)
        elif depth:
            depth, place = depth - (sign == ")"), place + 1
        elif (operator := _OPERATOR.match(line, place)) and not _is_redirection(line, place):
            found.append(operator.span())
            place = operator.end()
        else:
            place += 1
    return found


def _is_redirection(line: str, place: int) -> bool:
    return line[place] == "&" and (line[place - 1 : place] in ("<", ">") or line[place + 1 : place + 2] == ">")


def find_culprit(links: Sequence[Link], output: str) -> int:
    """Return the place of the command that a failed line failed with.

    After `;` it is one of the last part of the line, after `||` what stands there. Of what may have
    been run it is the last one that the output blames, by its name or in the way only it does, or
    of whose words it quotes one; where the output blames none, the last that would not have named itself.

    Example:
        >>> links = read_chain("git commit -qm x && git push && ./deploy.sh")
        >>> find_culprit(links, "! [rejected] main -> main (fetch first)"), find_culprit(links, "Error: the token has expired")
        (1, 2)
    """
    output = both_ends(output)
    able = _able(links, output)
    if len(able) > 1:
        said = set(_speakers(links, _lines(output)))
        blamed = [place for place in able if place in said]
        quiet = [place for place in able if not _NEVER_SILENT.match(links[place].bare)] if output.strip() else []
        able = blamed or quiet or able
    return able[-1] if able else max(0, len(links) - 1)


def both_ends(output: str) -> str:
    """Return what of an output is looked at: all of it, or its beginning and its end where it is long."""
    return output if len(output) <= _HEAD + _TAIL else f"{output[:_HEAD]}\n{output[-_TAIL:]}"


def output_of(links: Sequence[Link], place: int, output: str) -> str:
    """Return an output without the errors that the other commands of the line wrote."""
    if len(links) < 2:
        return output
    lines = both_ends(output).splitlines()
    bad = [line for line in dict.fromkeys(lines) if len(line) <= _LONGEST and _BAD.search(line)][-_LINES:]
    others = {line for line, speaker in zip(bad, _speakers(links, bad), strict=True) if speaker not in (None, place)}
    return "\n".join(line for line in lines if line not in others)


def find_blamed(links: Sequence[Link], output: str) -> frozenset[int]:
    """Return the places of the commands whose failure an output tells of, though the line went well as a whole."""
    lines = [line for line in _lines(both_ends(output)) if _BAD.search(line)] if len(links) > 1 else []
    return frozenset(speaker for speaker in _speakers(links, lines) if speaker is not None)


def _able(links: Sequence[Link], output: str) -> list[int]:
    """Return the places of the commands that may have made a line fail."""
    start = 0
    if not any(_STRICT.match(link.first) for link in links):
        start = max(
            (place for place, link in enumerate(links) if link.joiner in _APART and not link.is_idle), default=0
        )
    last = max(
        (place for place, link in enumerate(links) if link.joiner == "||" and place > start and not link.is_idle),
        default=start,
    )
    able = [place for place in range(last, len(links)) if not links[place].is_idle]
    announced = {found[1] for line in output.splitlines() if (found := _ANNOUNCED.match(line))}
    if announced and len(able) > 1:
        scripts = {
            place: found[1]
            for place in able
            if (found := _SCRIPT.match(links[place].bare)) and found[1] not in ("ci", "i", "install", "add")
        }
        unseen = min((place for place, script in scripts.items() if script not in announced), default=len(links))
        able = [place for place in able if place < unseen] or able
    return able


def _lines(output: str) -> list[str]:
    lines = [line for line in dict.fromkeys(output.splitlines()) if line.strip() and len(line) <= _LONGEST]
    return lines[-_LINES:]


def _speakers(links: Sequence[Link], lines: Sequence[str]) -> list[int | None]:
    """Return for each line of an output the place of the command that it tells of, or None."""
    bare = [link.bare for link in links]
    names = [{_program(text), _program(link.first)} for text, link in zip(bare, links, strict=True)]
    known = [
        (shape, places)
        for command, shape in _SIGNATURES
        if (places := [place for place, text in enumerate(bare) if not links[place].is_idle and command.search(text)])
    ]
    busy = {place: text for place, text in enumerate(bare) if not links[place].is_idle}
    return [_speaker(names, known, busy, line) for line in lines]


def _speaker(
    names: list[set[str]], known: list[tuple[re.Pattern[str], list[int]]], busy: dict[int, str], line: str
) -> int | None:
    if _ANNOUNCED.match(line):
        return None
    named = _NAMED.match(_SHELL_LEAD.sub("", line))
    by_name = [place for place, own in enumerate(names) if named and named[1].rpartition("/")[2] in own]
    if len(by_name) == 1:
        return by_name[0]
    signed = next((places for shape, places in known if shape.search(line)), [])
    if len(signed) == 1:
        return signed[0]
    if not _BAD.search(line):
        return None
    quoted = [found[2] for found in _QUOTED.finditer(line)]
    telling = [place for place, text in busy.items() if any(_has_word(text, word) for word in quoted)]
    return telling[0] if len(telling) == 1 and (not signed or telling[0] in signed) else None


def _program(text: str) -> str:
    return text.split(maxsplit=1)[0].rpartition("/")[2] if text.strip() else ""


def _has_word(text: str, word: str) -> bool:
    return len(word) > 2 and re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None
