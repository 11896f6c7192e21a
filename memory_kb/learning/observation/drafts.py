"""Put what was found in a session into words that stand by themselves."""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_kb.credentials import find_secret
from memory_kb.expressions import lazy_compile
from memory_kb.learning.observation.commandlines import TOOLS
from memory_kb.learning.observation.corrections import Correction, Did
from memory_kb.learning.observation.fixes import Attempt, Fix, show_step
from memory_kb.learning.observation.forms import name, show, show_more, show_setting
from memory_kb.learning.observation.statements import Decision
from memory_kb.learning.remember import Draft
from memory_kb.notes.splice import Value
from memory_kb.text import shorten

#: Characters of a learning and of its title; the most tags.
LONGEST, TITLE = 600, 80
_TAGS = 5
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
    r"^(?:(?:ok(?:ay)?|so|then|and|but|also|yes|yeah|right|good|agreed|well|alright|great|fine|i (?:think|guess))[,.!:]?\s+)+", re.IGNORECASE
)
# When it was decided, and how it comes up, is nothing for a title.
_PASSING = lazy_compile(
    r"(?:^|,? )(?:(?:last|this|the other) (?:week|month|year|sprint|quarter|time|day|(?:mon|tues|wednes|thurs|fri)day)|yesterday|this morning|"
    r"recently|(?:a few|two|three|some|a couple of) (?:days|weeks|months|years) ago|by the way|btw|fyi|as (?:you know|i said|we said|mentioned))\b",
    re.IGNORECASE,
)

_LABEL = lazy_compile(r"^(?:(?:ok(?:ay)?|so|yes|right)[, ]+)*(?:(?:the |design )?decision(?: is| was)?\s*:|decided\s*:)\s*", re.IGNORECASE)


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
    return Draft(text, finding.kind, shorten(finding.title, TITLE), finding.tags[:_TAGS], None, finding.applies_to, "extracted", tuple(fields))


def from_fix(fix: Fix) -> Finding:
    """Return what a fix teaches, with the labels of the corrective scope."""
    first = _distinct(fix.attempts)[0]
    lines = [("Error Pattern", "; ".join(_pattern(one) for one in _distinct(fix.attempts)))]
    if fix.worked is None:
        title = f"`{name(first.command)}` does not run here: {first.failure.message}"
        lines.append(("Recovery", f"none was found, it failed {len(fix.attempts)} times for the same reason."))
    elif fix.way == "form":
        failed, worked = f"`{name(first.command)}`", f"`{name(fix.worked)}`"
        title = f"{failed} fails here, {worked} works"
        before = f"{show_step(fix.steps[0])}, then " if fix.steps else ""
        lines.append(("Recovery", f"{before}{show(fix.worked)} worked."))
        setting = show_setting(fix.worked, first.command)
        if setting:
            title = f"`{name(fix.worked._replace(settings=()))}` needs {setting}"
            is_cut = "…" in worked and "…" not in setting
            lines.append(
                ("Prevention", f"Run `{name(fix.worked._replace(settings=()))}` with {setting}." if is_cut else f"Run {worked} instead of {failed}.")
            )
        elif failed != worked:
            lines.append(("Prevention", f"Run {worked} instead of {failed}."))
        elif added := show_more(fix.worked, first.command):
            title = f"{worked} works with {added}"
            lines.append(("Prevention", f"Run {worked} with {added}."))
    elif fix.way == "before":
        helped = show_step(fix.steps[0])
        title = f"Run {helped} before `{name(fix.worked)}`"
        lines += [("Recovery", f"{helped}, then {show(fix.worked)} worked."), ("Prevention", f"Run {helped} before `{name(fix.worked)}`.")]
    else:
        title = (
            f"`{name(fix.worked)}` fails with {first.failure.message}" if fix.cause is None else f"{first.failure.message} in `{name(fix.worked)}`"
        )
        lines.append(("Recovery", f"a change in {' and '.join(map(show_step, fix.steps))}; then {show(fix.worked)} worked."))
        if fix.cause:
            lines.append(("Root Cause", fix.cause))
    lines = _fitted(lines)
    files = tuple(step.file for step in fix.steps if step.file)
    words = " ".join(
        (*(show(one.command) for one in fix.attempts), show(fix.worked) if fix.worked else "", fix.cause or "", *map(show_step, fix.steps))
    )
    reason = f"A command failed with {first.failure.sort} ({len(fix.attempts)}x){'' if fix.worked is None else ' and worked later'}."
    mark = {"form": "", "before": "/before", "edit": "/edit", "none": "/unfixed"}[fix.way]
    return Finding("corrective", "pitfall", title, tuple(lines), fix.seqs, reason, _tags(words, files), mark=mark)


def from_correction(correction: Correction, seq: int, did: tuple[Did, ...]) -> Finding:
    """Return what a correction teaches: the words, and what they were said of."""
    files = tuple(dict.fromkeys(one.target for one in did if one.verb == "edited"))
    about = tuple(file for file in files if file.rpartition("/")[2].lower() in correction.signal.lower())
    tags = _tags(f"{correction.signal} {correction.context}", about)
    if correction.scope == "escalation":
        directions = correction.direction
        lines: tuple[tuple[str, str], ...] = (("Direction", directions), ("Signal", correction.signal))
        return Finding("escalation", "preference", correction.title, lines, (seq,), "The user said when to ask.", tags, is_proxy=True)
    category = "Boundary Deviation" if correction.scope == "intent-alignment" else "Corrections" if correction.is_against else "Preferences"
    lines = (
        ("Category", category),
        ("Signal", correction.signal),
        *((("Context", f"said when the agent had {correction.context}."),) if correction.context else ()),
    )
    lines = tuple((label, words.replace("had refused: ", "was refused to ")) for label, words in lines)
    seqs = (seq, *(one.seq for one in did if f"`{one.target}`" in correction.context))
    reason = "The user rejected what the agent did and said what holds instead." if correction.is_against else "The user said what holds."
    return Finding(correction.scope, "preference", correction.title, lines, seqs, reason, tags, _globs(correction.signal, about, files))


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
    return bare[:1].upper() + bare[1:] if bare != sentence and first.replace("-", "").isalpha() and first not in TOOLS else bare


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
        if sum(len(label) + len(words) + 7 for label, words in lines) <= LONGEST:
            break
        lines = [
            (label, shorten(words, 160)) if label == spared == "Recovery" else (label, words)
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
