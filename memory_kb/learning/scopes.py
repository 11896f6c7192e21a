"""The ten extraction scopes as data: what each reads, what it looks for, and what it makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memory_kb.errors import UsageError

#: Importance at creation.
_HUMAN, _ERROR, _OTHER = 0.95, 0.8, 0.5


class Label(NamedTuple):
    """A line of a learning's body, and what is to stand on it; `options` are the only words for it."""

    name: str
    ask: str
    options: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The label as a field of a form.

        Example:
            >>> Label("Pre-mortem Risk", "").key
            'pre_mortem_risk'
        """
        return self.name.lower().replace("-", "_").replace(" ", "_")


class Pass(NamedTuple):
    """One question to a model.

    Attributes:
        name: `norms`, `tasks`, or empty where a scope asks one question only.
        looks_for: what is asked, as one instruction.
        is_norm: whether the answers are proposed as institutional norms, for a person to approve.
    """

    type: str
    kind: str
    labels: tuple[Label, ...]
    looks_for: str
    name: str = ""
    is_norm: bool = False


class Scope(NamedTuple):
    """A scope of extraction.

    Attributes:
        reads: `human` turns, the `intent` or a checkpoint file beside the execution, the `errors`
            of the execution, or the `learnings` of the level below.
        level: the scope its learnings go to; `session` is wherever the session worked.
        sources: for a rollup, the scope whose learnings it reads.
    """

    name: str
    reads: str
    importance: float
    domain: str
    passes: tuple[Pass, ...]
    level: str = "session"
    learning_type: str = "task"
    sources: str | None = None

    @property
    def is_rollup(self) -> bool:
        """Whether it reads learnings rather than a session."""
        return self.sources is not None


_SIGNAL = Label("Signal", "what the person said or did that shows it")
_IMPLICATION = Label("Implication", "what to do, or to leave, because of it")
_LEARNING = Label("Learning", "what was learned, so that somebody who was not there can use it")
_ACTION = Label("Action", "what to do next time")
_CONTEXT = Label("Context", "when this matters")
_SHARED = (_CONTEXT, _LEARNING, _ACTION)


def _norms(labels: tuple[Label, ...], looks_for: str) -> Pass:
    return Pass("directive", "preference", labels, looks_for, "norms", is_norm=True)


def _tasks(looks_for: str) -> Pass:
    return Pass("procedural", "rule", _SHARED, looks_for, "tasks")


_TEAM_NORMS = (
    Label("Pattern", "the norm, as one sentence"),
    Label("Why it holds", "what the sources have in common that shows it"),
)
_PROJECT_NORMS = (Label("Convention", "the norm, as one sentence"), Label("Applies to", "the work it holds for"))
_GLOBAL_NORMS = (
    Label("Norm", "the norm, as one sentence"),
    Label("Evidence", "what the sources have in common that shows it"),
)
_STABLE = "Name norms that are stable: stated or confirmed by at least two of the sources and contradicted by none."
_PATTERNS = "Name patterns that at least two of the sources share and that will come up again; three to five at most."

SCOPES: tuple[Scope, ...] = (
    Scope(
        "observations",
        "human",
        _HUMAN,
        "task",
        (
            Pass(
                "directive",
                "preference",
                (
                    Label("Category", "one of", ("Values", "Preferences", "Corrections", "Stated vs. Revealed")),
                    _SIGNAL,
                    _IMPLICATION,
                ),
                "What do the person's own words show about how they want work to be done from now on? "
                "Lasting values, preferences and corrections only; not what this one task is about.",
            ),
        ),
        "project",
        "proxy",
    ),
    Scope(
        "escalation",
        "human",
        _HUMAN,
        "task",
        (
            Pass(
                "directive",
                "preference",
                (
                    Label("Domain", "the sort of decision"),
                    Label("Direction", "one of", ("More autonomous", "Escalate more")),
                    _SIGNAL,
                    Label("Threshold", "from where on to ask, or up to where not to"),
                ),
                "Where did the person show that the agent should ask more often before it acts, or should decide more by itself?",
            ),
        ),
        "project",
        "proxy",
    ),
    Scope(
        "intent-alignment",
        "intent",
        _OTHER,
        "task",
        (
            Pass(
                "declarative",
                "fact",
                (
                    Label(
                        "Category",
                        "one of",
                        ("Success Criteria Met", "Success Criteria Missed", "Boundary Deviation", "Intent Gap"),
                    ),
                    _SIGNAL,
                    _IMPLICATION,
                ),
                "Hold the execution against the intent: which success criteria were met or missed, which boundaries were left, "
                "what does the intent not say?",
            ),
        ),
    ),
    Scope(
        "prospective",
        "premortem",
        _OTHER,
        "task",
        (
            Pass(
                "declarative",
                "fact",
                (
                    Label("Pre-mortem Risk", "the risk as it was foreseen, or 'none'"),
                    Label("Outcome", "one of", ("Materialized", "Did not materialize", "Not anticipated")),
                    _LEARNING,
                    _ACTION,
                ),
                "Hold the execution against the pre-mortem: which of its risks came true, which did not, what went wrong that it did not foresee?",
            ),
        ),
    ),
    Scope(
        "in-flight",
        "assumptions",
        _OTHER,
        "task",
        (
            Pass(
                "declarative",
                "fact",
                (
                    Label(
                        "Assumption Type", "one of", ("Complexity", "Approach viability", "Preference model", "Scope")
                    ),
                    Label("Pattern", "how the assumption and what happened went apart, or held"),
                    _LEARNING,
                    _ACTION,
                ),
                "Hold the execution against the assumptions made at its milestones: which held, which were wrong, and what would have told sooner?",
            ),
        ),
    ),
    Scope(
        "corrective",
        "errors",
        _ERROR,
        "task",
        (
            Pass(
                "corrective",
                "pitfall",
                (
                    Label("Error Pattern", "what fails, and how it shows"),
                    Label("Recovery", "what made it work"),
                    Label("Root Cause", "why it failed"),
                    Label("Prevention", "what to do so that it does not happen again"),
                ),
                "Which failures will come up again here, and how are they prevented? Leave out typing mistakes and failures that the work was about.",
            ),
        ),
    ),
    Scope(
        "team", "learnings", _OTHER, "team", (_norms(_TEAM_NORMS, _STABLE), _tasks(_PATTERNS)), "task", sources="task"
    ),
    Scope(
        "session", "learnings", _OTHER, "team", (_norms(_TEAM_NORMS, _STABLE), _tasks(_PATTERNS)), "job", sources="task"
    ),
    Scope(
        "project",
        "learnings",
        _OTHER,
        "task",
        (_norms(_PROJECT_NORMS, _STABLE), _tasks(_PATTERNS)),
        "project",
        sources="job",
    ),
    Scope(
        "global",
        "learnings",
        _OTHER,
        "team",
        (
            _norms(
                _GLOBAL_NORMS, f"{_STABLE} They must hold in any project: name no project, product, person or path."
            ),
            _tasks(f"{_PATTERNS} They must help in any project: name no project, product, person or path."),
        ),
        "global",
        sources="project",
    ),
)
NAMES = tuple(scope.name for scope in SCOPES)


def choose_scopes(wanted: Sequence[str] | None) -> tuple[Scope, ...]:
    """Return the scopes of these names in the order in which they run; all without names.

    Raises:
        UsageError: there is no scope of a name.

    Example:
        >>> [scope.name for scope in choose_scopes(["team", "observations"])]
        ['observations', 'team']
    """
    names = NAMES if not wanted else tuple(wanted)
    for name in names:
        if name not in NAMES:
            raise UsageError(f"unknown extraction scope {name!r}", f"it may be {', '.join(NAMES)}")
    return tuple(scope for scope in SCOPES if scope.name in names)
