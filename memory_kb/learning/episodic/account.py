"""What an episode tells: how the work ended, what was worth noting, and the body of its entry."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from memory_kb.credentials import redact
from memory_kb.learning.episodic.diary import SECTIONS
from memory_kb.learning.episodic.mishaps import Check, Mishap
from memory_kb.learning.episodic.trace import Trace
from memory_kb.learning.episodic.tracing import Step
from memory_kb.text import printable

#: The most items of a list.
MOST = 8
#: What sort of work a goal speaks of, by the word that comes first (S2-18).
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
    """The lists of an episode that say what it was worth."""

    accomplishments: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    challenges: tuple[str, ...] = ()
    key_learnings: tuple[str, ...] = ()


def judge_outcome(trace: Trace) -> str:
    """Return success, failure or mixed, or what the end of the session names.

    Where it names nothing: the last result of every test run, build, lint run and deployment
    decides, all well or none or some. Without any of those a commit with no open error is a
    success, with one mixed. Without a commit the person's last short message decides, if no error
    is open; else it is mixed. That message also turns a success it complains of, or a failure it
    is thankful for, into mixed.

    Example:
        >>> judge_outcome(Trace("s", checks=(Check("test", True),))), judge_outcome(Trace("s", checks=(Check("test", True),), mood=-1))
        ('success', 'mixed')
    """
    if trace.outcome:
        return trace.outcome
    is_open = any(mishap.resolution is None for mishap in trace.mishaps)
    if trace.checks:
        went = {check.is_ok for check in trace.checks}
        told = "mixed" if len(went) > 1 else "success" if went == {True} else "failure"
    elif trace.commits:
        told = "mixed" if is_open else "success"
    else:
        return {1: "mixed" if is_open else "success", -1: "failure", 0: "mixed"}[trace.mood]
    return "mixed" if (told, trace.mood) in (("success", -1), ("failure", 1)) else told


def infer_category(text: str) -> str:
    """Return what sort of work a goal speaks of.

    Example:
        >>> infer_category("Fix the flaky SSE test"), infer_category("Look around")
        ('debug', 'general')
    """
    found = {word: match.start() for word, shape in _CATEGORIES if (match := shape.search(text))}
    first = min(found, key=lambda word: found[word], default="general")
    return "debug" if first == "test" and "debug" in found else first


def write_diary(trace: Trace, outcome: str) -> Diary:
    """Return what a trace says of itself: what was reported, said and run, and nothing else.

    Example:
        >>> write_diary(Trace("s", lessons=("Always use UTC.",), done=("Added the job.",)), "success").key_learnings
        ('Always use UTC.',)
    """
    commits = [f"Committed `{commit.hash[:10]}`: {commit.subject}" for commit in trace.commits]
    passes = [f"{check.told}." for check in trace.checks if check.is_ok and _is_worth(check, trace)]
    links = [f"Opened {link}" for link in trace.links]
    done = trace.done if outcome == "success" else ()
    believed = trace.causes or ((trace.last_cause,) if trace.last_cause and outcome == "success" else ())
    suspected = [f"Held for the cause: “{trace.last_cause}”"] if trace.last_cause and not believed else []
    stuck = trace.stuck if outcome != "success" else ()
    return Diary(
        accomplishments=_first([*done, *commits, *passes[-3:], *links]),
        decisions=_first(trace.decisions),
        challenges=_first(
            [
                *_hard(trace.mishaps),
                *suspected,
                *stuck,
                *(f"The user corrected: “{text}”" for text in trace.corrections),
            ]
        ),
        key_learnings=_first([*trace.lessons, *believed]),
    )


def _is_worth(check: Check, trace: Trace) -> bool:
    """Tell whether it says something that a check went well: something was changed, or it had failed."""
    return check.told.endswith("had failed") or check.kind == "deploy" or (check.kind != "lint" and bool(trace.changed))


def _first(items: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))[:MOST]


def _hard(mishaps: Sequence[Mishap]) -> list[str]:
    return [
        f"{_name(mishap)} in `{mishap.shown.replace('`', '')}` {_end(mishap)}"
        for mishap in mishaps
        if mishap.resolution is None or mishap.count >= 3
    ]


def _end(mishap: Mishap) -> str:
    if mishap.is_left:
        return "was not tried again"
    return "was not solved" if mishap.resolution is None else f"came {mishap.count} times"


def _name(mishap: Mishap) -> str:
    return f"{mishap.fault.type}: {mishap.fault.message}".rstrip(": ")


def write_body(trace: Trace, diary: Diary) -> str:
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
    errors = [f"{_name(mishap)} => {_solution(mishap)}" for mishap in trace.mishaps]
    if trace.more_mishaps:
        errors.append(f"and {trace.more_mishaps} more of other sorts")
    lists = (lines, errors, *diary, (trace.summary,) if trace.summary else ())
    told = zip(SECTIONS, (lists[0], lists[1], *lists[2:]), strict=True)
    return "\n\n".join(
        f"## {name}\n\n" + "\n".join(f"- {tidy(item)}" for item in items) for name, items in told if items
    )


def _line(step: Step) -> str:
    action = step.action
    if step.targets:
        more = f" and {step.times - len(step.targets)} more" if step.times > len(step.targets) else ""
        action = f"{action} {', '.join(step.targets)}{more}"
    times = f" ({step.times} times)" if step.times > 1 and not step.targets else ""
    return f"t={step.t:.0f} {action}" + (f" -> {step.result}" if step.result else "") + times


def _solution(mishap: Mishap) -> str:
    if mishap.resolution is None:
        return "none"
    return f"“{mishap.cause}” {mishap.resolution}" if mishap.cause else mishap.resolution


def tidy(item: str) -> str:
    """Return an item as it may stand in a note: on one line, no credential, no link of the note's own.

    Example:
        >>> tidy("if [[ -f x ]]; then\\n  make")
        'if [ [ -f x ]]; then make'
    """
    return redact(printable(" ".join(item.split())).replace("[[", "[ [")).text
