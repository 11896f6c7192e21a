"""Put what was found in a session into words that stand by themselves."""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_kb.credentials import find_secret, redact
from memory_kb.expressions import lazy_compile
from memory_kb.learning.lessons import OCCASION
from memory_kb.learning.observation.commandlines import TOOLS, Command
from memory_kb.learning.observation.corrections import Correction, Did
from memory_kb.learning.observation.forms import (
    FETCHED,
    SHOWN,
    cut,
    name,
    name_beside,
    show,
    show_options,
    show_setting,
)
from memory_kb.learning.observation.options import Option, added_options, flags_beside, is_of_one_thing, replaced_value
from memory_kb.learning.observation.remedies import Attempt, Fix, Step
from memory_kb.learning.observation.statements import Decision
from memory_kb.learning.remember import Draft
from memory_kb.learning.speech.clauses import without_orders_before
from memory_kb.learning.speech.wording import headline
from memory_kb.notes.splice import Value
from memory_kb.text import shorten

#: Characters of a learning and of its title; the most tags.
LONGEST, TITLE = 600, 80
_TAGS = 5
_CODE = 130
#: Characters of a command that worked; the first that fits is taken.
_COMMANDS = (300, 200, SHOWN)
#: Importance at creation (S3-11), and the type that a scope gives (S3-25).
_IMPORTANCE = {"observations": 0.95, "escalation": 0.95, "corrective": 0.8}
_TYPES = {"observations": "directive", "escalation": "directive", "corrective": "corrective"}
_LANGUAGES = {
    "py": "python",
    "ts": "typescript",
    "tsx": "typescript",
    "js": "javascript",
    "jsx": "javascript",
    "mjs": "javascript",
    "rs": "rust",
    "go": "go",
    "rb": "ruby",
    "java": "java",
    "kt": "kotlin",
    "sql": "sql",
    "sh": "shell",
    "tf": "terraform",
    "css": "css",
    "cs": "csharp",
    "cpp": "cpp",
    "c": "c",
    "swift": "swift",
    "php": "php",
    "ex": "elixir",
    "lua": "lua",
    "proto": "protobuf",
}
_LANGUAGE_OF_TOOL = {
    "pytest": "python",
    "uv": "python",
    "pip": "python",
    "alembic": "python",
    "ruff": "python",
    "mypy": "python",
    "cargo": "rust",
    "golangci-lint": "go",
    "tsc": "typescript",
}
_WORD = lazy_compile(r"[A-Za-z][\w+-]*")
_LEADING = lazy_compile(
    r"^(?:(?:ok(?:ay)?|so|then|and|but|also|yes|yeah|right|good|agreed|well|alright|great|fine|i (?:think|guess))[,.!:]?\s+)+",
    re.IGNORECASE,
)
# When it was decided, and how it comes up, is nothing for a title.
_PASSING = lazy_compile(
    r"(?:^|,? )(?:(?:last|this|the other) (?:week|month|year|sprint|quarter|time|day|(?:mon|tues|wednes|thurs|fri)day)|yesterday|this morning|"
    r"recently|(?:a few|two|three|some|a couple of) (?:days|weeks|months|years) ago|by the way|btw|fyi|as (?:you know|i said|we said|mentioned))\b",
    re.IGNORECASE,
)

_LABEL = lazy_compile(
    r"^(?:(?:ok(?:ay)?|so|yes|right)[, ]+)*(?:(?:the |design )?decision(?: is| was)?\s*:|decided\s*:)\s*", re.IGNORECASE
)


class Finding(NamedTuple):
    """Something worth keeping.

    Attributes:
        scope: the scope of extraction.
        lines: labels and what stands after them.
        seqs: the events it comes from; the first one names it.
        mark: tells findings apart that come from the same event.
    """

    scope: str
    kind: str
    title: str
    lines: tuple[tuple[str, str], ...]
    seqs: tuple[int, ...]
    reason: str
    tags: tuple[str, ...] = ()
    applies_to: tuple[str, ...] = ()
    is_proxy: bool = False
    mark: str = ""


def make_draft(finding: Finding, phase: str, task: str | None) -> Draft | None:
    """Return the learning that a finding becomes, or None where it may not be kept."""
    text = "\n".join(f"**{label}:** {words}" for label, words in finding.lines)
    if len(text) > LONGEST or find_secret(text) or find_secret(finding.title):
        return None
    fields: list[tuple[str, Value]] = [
        ("type", _TYPES.get(finding.scope, "declarative")),
        ("domain", "task"),
        ("importance", _IMPORTANCE.get(finding.scope, 0.5)),
        ("phase", phase),
        ("extraction_scope", finding.scope),
    ]
    if task and not find_secret(task):
        fields.append(("session_task", task))
    fields.append(("source_events", [str(seq) for seq in dict.fromkeys(finding.seqs)]))
    title = _cut_command(finding.title) if finding.scope == "corrective" else headline(finding.title)
    return Draft(text, finding.kind, title, finding.tags[:_TAGS], None, finding.applies_to, "extracted", tuple(fields))


def _cut_command(title: str) -> str:
    """Return a title with commands that is not too long; one that is cut within ends as code does.

    Example:
        >>> _cut_command("Run `docker compose -f docker-compose.test.yml up -d --wait` before `bundle exec rspec`")
        'Run `docker compose -f docker-compose.test.yml up -d --wait` before `bundle…`'
    """
    short = cut(title, TITLE - 1)
    return f"{short}`" if short.count("`") % 2 else cut(title, TITLE)


def from_fix(fix: Fix) -> Finding:
    """Return what a fix teaches, with the labels of the corrective scope."""
    first = _distinct(fix.attempts)[0]
    title, lines = next(
        told for limit in _COMMANDS if _is_short((told := _tell(fix, limit))[1]) or limit == _COMMANDS[-1]
    )
    lines = _fitted(lines)
    files = tuple(step.file for step in fix.steps if step.file)
    words = " ".join(
        (
            *(show(one.command) for one in fix.attempts),
            show(fix.worked) if fix.worked else "",
            fix.cause or "",
            *map(_show_step, fix.steps),
        )
    )
    reason = f"A command failed with {first.failure.sort} ({len(fix.attempts)}x){'' if fix.worked is None else ' and worked later'}."
    mark = {"form": "", "before": "/before", "edit": "/edit", "none": "/unfixed"}[fix.way]
    return Finding("corrective", "pitfall", title, tuple(lines), fix.seqs, reason, _tags(words, files), mark=mark)


def _tell(fix: Fix, limit: int) -> tuple[str, list[tuple[str, str]]]:
    """Return the title and the lines of a fix, in which what worked takes no more than so many characters."""
    first = _distinct(fix.attempts)[0]
    lines = [("Error Pattern", "; ".join(_pattern(one) for one in _distinct(fix.attempts)))]
    if fix.worked is None:
        lines.append(("Recovery", f"none was found, it failed {len(fix.attempts)} times for the same reason."))
        return f"`{name(first.command)}` does not run here: {first.failure.message}", lines
    whole = show(fix.worked, limit)
    if fix.way == "form":
        before = f"{_show_step(fix.steps[0], limit)}, then " if fix.steps else ""
        title, prevention = _tell_form(fix.past or fix.worked, first.command)
        lines.append(("Recovery", f"{show(fix.past, limit)} got past it." if fix.past else f"{before}{whole} worked."))
        lines += [("Prevention", prevention)] if prevention else []
    elif fix.way == "before":
        helped = _show_step(fix.steps[0], limit)
        whole = f"`{name(fix.worked)}`" if flags_beside(fix.worked, first.command) else whole
        title = f"Run {helped} before `{name(fix.worked)}`"
        lines += [
            ("Recovery", f"{helped}, then {whole} worked."),
            ("Prevention", f"Run {helped} before `{name(fix.worked)}`."),
        ]
    else:
        title = (
            f"`{name(fix.worked)}` fails with {first.failure.message}"
            if fix.cause is None
            else f"{first.failure.message} in `{name(fix.worked)}`"
        )
        lines.append(("Recovery", f"a change in {' and '.join(map(_show_step, fix.steps))}; then {whole} worked."))
        if fix.cause:
            lines.append(("Root Cause", fix.cause))
    return title, lines


def _tell_form(worked_command: Command, failed_command: Command) -> tuple[str, str]:
    """Return the title of what had to be written otherwise, and how to go about it next time, where that can be said in short."""
    failed, worked = f"`{name(failed_command)}`", f"`{name(worked_command)}`"
    setting = show_setting(worked_command, failed_command)
    if setting:
        plain = f"`{name(worked_command._replace(settings=()))}`"
        if any("://" in one for one in worked_command.settings if one not in failed_command.settings):
            return f"{plain} needs {_setting_names(worked_command, failed_command)}", ""
        is_cut = setting.strip("`") not in worked and "…" not in setting
        if "…" in setting and "…" not in show(worked_command, _COMMANDS[0]):
            return f"{plain} needs {setting}", ""
        title = f"{plain} needs {setting}"
        if len(title) > TITLE:
            title = f"{plain} needs {_setting_names(worked_command, failed_command)}"
        return title, f"Run {plain} with {setting}." if is_cut else f"Run {worked} instead of {failed}."
    if failed != worked:
        return f"{failed} fails here, {worked} works", f"Run {worked} instead of {failed}."
    options = added_options(worked_command, failed_command)
    if not options:
        return f"{failed} fails here, {worked} works", ""
    called = f"`{name_beside(worked_command, failed_command)}`"
    added = show_options(options)
    is_of_one = any(map(is_of_one_thing, options))
    if is_of_one and len(whole := show(failed_command)) + len(added) < TITLE:
        called = whole
    title = f"{called} works with {added}"
    if len(title) > TITLE and worked_command.settings == failed_command.settings:
        called = f"`{name_beside(worked_command._replace(settings=()), failed_command._replace(settings=()))}`"
        title = f"{called} works with {added}"
    if not added or len(title) > TITLE:
        title = f"{called} works with {'another ' * (replaced_value(failed_command, worked_command) is not None)}{_names(options)}"
    return title, f"Run {called} with {added}." if added and not is_of_one else ""


def _show_step(step: Step, limit: int = SHOWN) -> str:
    """Return a step as it stands in a learning."""
    if step.command:
        return show(step.command, limit)
    line = next((line.strip() for line in step.added.splitlines() if line.strip()), "")
    code = redact(shorten(line.replace("`", "'"), _CODE)).text
    return f"`{step.file}`: `{code}`" if code and not FETCHED.search(code) else f"`{step.file}`"


def _names(options: tuple[Option, ...]) -> str:
    """Return options without what they are given."""
    return " and ".join(dict.fromkeys(f"`{one.name}`" for one in options))


def _setting_names(worked: Command, failed: Command) -> str:
    """Return the settings that a command has and another one has not, without their values."""
    more = (one.partition("=") for one in worked.settings if one not in failed.settings)
    return " and ".join(f"`{name_}{'=…' if joined else ''}`" for name_, joined, _ in more)


def _is_short(lines: list[tuple[str, str]]) -> bool:
    return sum(len(label) + len(words) + 7 for label, words in lines) <= LONGEST


def from_correction(correction: Correction, seq: int, did: tuple[Did, ...]) -> Finding:
    """Return what a correction teaches: the words, and what they were said of."""
    files = tuple(dict.fromkeys(one.target for one in did if one.verb == "edited"))
    about = tuple(file for file in files if file.rpartition("/")[2].lower() in correction.signal.lower())
    tags = _tags(f"{correction.signal} {correction.context}", about)
    if correction.scope == "escalation":
        directions = correction.direction
        lines: tuple[tuple[str, str], ...] = (("Direction", directions), ("Signal", correction.signal))
        return Finding(
            "escalation",
            "preference",
            correction.title,
            lines,
            (seq,),
            "The user said when to ask.",
            tags,
            is_proxy=True,
        )
    category = (
        "Boundary Deviation"
        if correction.scope == "intent-alignment"
        else "Corrections"
        if correction.is_against
        else "Preferences"
    )
    lines = (
        ("Category", category),
        ("Signal", without_orders_before(correction.signal, correction.title.rstrip("…"))),
        *((("Context", f"{OCCASION}{correction.context}."),) if correction.context else ()),
    )
    seqs = (seq, *(one.seq for one in did if f"`{one.target}`" in correction.context))
    reason = (
        "The user rejected what the agent did and said what holds instead."
        if correction.is_against
        else "The user said what holds."
    )
    return Finding(
        correction.scope,
        "preference",
        correction.title,
        lines,
        seqs,
        reason,
        tags,
        _globs(correction.signal, about, files),
    )


def from_decision(decision: Decision, seq: int, who: str, task: str | None) -> Finding:
    """Return a decision, letter for letter, with the task in which it was made."""
    sentence = _unlabelled(decision.sentence)
    lines = [("Decision", f"{sentence} {decision.then}" if decision.then else sentence)]
    if decision.reason:
        lines.append(("Reason", decision.reason))
    lines.append(("Context", f"decided by {who}{f' in: {shorten(task, 100)}' if task else ''}"))
    tags = _tags(decision.sentence, ())
    return Finding(
        "intent-alignment",
        "decision",
        _decided(sentence),
        tuple(lines),
        (seq,),
        f"A decision stated by {who}, with its reason.",
        tags,
        mark="/decision",
    )


def _unlabelled(sentence: str) -> str:
    """Return a decision without the words that only call it one.

    Example:
        >>> _unlabelled("Decision: once_cell, because the MSRV is 1.77."), _unlabelled("decision is: no ORM, because it hides queries.")
        ('once_cell, because the MSRV is 1.77.', 'No ORM, because it hides queries.')
    """
    bare = _LABEL.sub("", sentence, count=1)
    first = bare.split(" ", maxsplit=1)[0].rstrip(",")
    return (
        bare[:1].upper() + bare[1:]
        if bare != sentence and first.replace("-", "").isalpha() and first not in TOOLS
        else bare
    )


def _decided(sentence: str) -> str:
    """Return the title of a decision: the sentence without the words that only lead to it.

    Example:
        >>> _decided("ok, so let's go with UUIDv7 for all new tables.")
        "Let's go with UUIDv7 for all new tables"
    """
    bare = _LEADING.sub("", _PASSING.sub("", sentence).strip(" ,")).rstrip(".")
    return bare[:1].upper() + bare[1:]


def _pattern(attempt: Attempt) -> str:
    return f"{show(attempt.command)} fails with `{attempt.failure.message}`"


def _distinct(attempts: tuple[Attempt, ...]) -> list[Attempt]:
    """Return one failure for each form of the command, at most two."""
    by_form = {name(one.command): one for one in attempts}
    return list(by_form.values())[:2]


def _fitted(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the lines without what can be spared, where they are too long."""
    for spared in ("Prevention", "Recovery"):
        if _is_short(lines):
            break
        lines = [
            (label, cut(words, 160)) if label == spared == "Recovery" else (label, words)
            for label, words in lines
            if label != spared or spared == "Recovery"
        ]
    return lines


def _globs(text: str, about: tuple[str, ...], files: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files that a correction is about, where its own words name them."""
    if about:
        return about[:3]
    words = {word.lower() for word in re.findall(r"(?<![\w/.-])[A-Za-z][\w-]*(?![\w/]|\.\w)", text)}
    folders = [part for file in files for part in file.split("/")[:-1] if part.lower() in words and len(part) > 3]
    return (f"**/{folders[0]}/**",) if len(set(folders)) == 1 else ()


def _tags(text: str, files: tuple[str, ...]) -> tuple[str, ...]:
    """Return tools and languages by name.

    Example:
        >>> _tags("`uv run pytest -q` worked", ("src/a.py",))
        ('uv', 'pytest', 'python')
    """
    words = [word.lower() for word in _WORD.findall(text)]
    tools = [word for word in words if word in TOOLS and word not in ("go", "next", "make")]
    tools += ["go"] if re.search(r"`go \w+", text) else []
    languages = [_LANGUAGES[end] for file in files if (end := file.rpartition(".")[2]) in _LANGUAGES]
    languages += [_LANGUAGE_OF_TOOL[tool] for tool in tools if tool in _LANGUAGE_OF_TOOL]
    return tuple(dict.fromkeys((*tools, *languages)))[:_TAGS]
