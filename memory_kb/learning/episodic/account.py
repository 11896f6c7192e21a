"""What an episode reports: how the work ended, and the body of its entry."""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_kb.credentials import redact
from memory_kb.learning.episodic.diary import SECTIONS
from memory_kb.model import Step, Trace
from memory_kb.text import printable

#: The most items of a list.
MOST = 8
#: What sort of work a goal speaks of, by the word that comes first .
_CATEGORIES = tuple(
    (word, re.compile(rf"\b(?:{pattern})", re.IGNORECASE))
    for word, pattern in (
        ("deploy", r"deploy|release|roll ?out|ship\b|publish|staging|production"),
        ("debug", r"fix|bug|debug|fail|error|broken|crash|flaky|red\b|hang|regression|investigate|why\b|mend|repair"),
        ("test", r"tests?\b|coverage|spec\b|specs\b"),
        ("refactor", r"refactor|clean ?up|rename|extract|split|simplify|restructure|move\b|migrate|upgrade"),
        ("doc", r"docs?\b|document|readme|changelog|comment"),
        ("review", r"review|audit|check\b"),
        ("architecture", r"architect|design|schema|structure"),
        ("implement", r"implement|add\b|build|create|write|support|introduce|make\b|feature"),
    )
)


class Diary(NamedTuple):
    """The lists of an episode that need judgment: a language model, an agent or a person fills them in."""

    accomplishments: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    challenges: tuple[str, ...] = ()
    key_learnings: tuple[str, ...] = ()


def judge_outcome(trace: Trace) -> str:
    """Return success, failure or mixed, or what the end of the session states.

    Where it states nothing: the last result of every test run, build, lint run and deployment
    decides, all well or none or some. Without any of those a commit with no open error is a
    success. Everything else is mixed.

    Example:
        >>> from memory_kb.model import Check
        >>> judge_outcome(Trace("s", checks=(Check("test", True),))), judge_outcome(Trace("s"))
        ('success', 'mixed')
    """
    if trace.outcome:
        return trace.outcome
    if trace.checks:
        went = {check.is_ok for check in trace.checks}
        return "mixed" if len(went) > 1 else "success" if went == {True} else "failure"
    is_open = any(failure.resolution is None for failure in trace.failures)
    return "success" if trace.commits and not is_open else "mixed"


def infer_category(text: str) -> str:
    """Return what sort of work a goal speaks of.

    Example:
        >>> infer_category("Fix the flaky SSE test"), infer_category("Look around")
        ('debug', 'general')
    """
    found = {word: match.start() for word, shape in _CATEGORIES if (match := shape.search(text))}
    first = min(found, key=lambda word: found[word], default="general")
    return "debug" if first == "test" and "debug" in found else first


def write_body(trace: Trace, diary: Diary = Diary()) -> str:  # noqa: B008 - it is immutable
    """Return the body of an episode; a section with nothing in it is left out.

    Example:
        >>> print(write_body(Trace("s", steps=(Step(120, "run_test", "fail: missing return type"),)), Diary(decisions=("Use mypy.",))))
        ## Action log
        <BLANKLINE>
        - t=120 run_test -> fail: missing return type
        <BLANKLINE>
        ## Decisions
        <BLANKLINE>
        - Use mypy.
    """
    lines = [_line(step) for step in trace.steps]
    if trace.missing:
        lines.insert(trace.head, f"… {trace.missing} more")
    errors = [f"{failure.named} => {failure.resolution or 'none'}" for failure in trace.failures]
    if trace.more_failures:
        errors.append(f"and {trace.more_failures} more of other sorts")
    lists = (lines, errors, _results(trace), *diary, (trace.summary,) if trace.summary else ())
    return "\n\n".join(
        f"## {name}\n\n" + "\n".join(f"- {tidy(item)}" for item in items)
        for name, items in zip(SECTIONS, lists, strict=True)
        if items
    )


def _results(trace: Trace) -> list[str]:
    """Return what came of the task: commits, checks that passed, requests to merge."""
    commits = [f"Committed `{commit.hash[:10]}`: {commit.subject}" for commit in trace.commits]
    passed = [f"{check.told}." for check in trace.checks if check.is_ok]
    return [*commits[-MOST:], *passed[-3:], *(f"Opened {link}" for link in trace.links[:MOST])]


def _line(step: Step) -> str:
    action = step.action
    if step.targets:
        more = f" and {step.times - len(step.targets)} more" if step.times > len(step.targets) else ""
        action = f"{action} {', '.join(step.targets)}{more}"
    times = f" ({step.times} times)" if step.times > 1 and not step.targets else ""
    return f"t={step.t:.0f} {action}" + (f" -> {step.result}" if step.result else "") + times


def tidy(item: str) -> str:
    """Return an item as it may stand in a note: on one line, no credential, no link of the note's own.

    Example:
        >>> tidy("if [[ -f x ]]; then\\n  make")
        'if [ [ -f x ]]; then make'
    """
    return redact(printable(" ".join(item.split())).replace("[[", "[ [")).text
