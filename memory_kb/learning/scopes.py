"""The ten extraction scopes as data: what each reads, asks and creates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memory_kb.errors import UsageError

#: Importance at creation.
_HUMAN, _ERROR, _OTHER = 0.95, 0.8, 0.5


class Label(NamedTuple):
    """A line of a learning's body, and what it is to contain.

    Attributes:
        options: the only words for it.
        is_advice: whether it says what to do, rather than what happened.
    """

    name: str
    ask: str
    options: tuple[str, ...] = ()
    is_advice: bool = False

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
_IMPLICATION = Label("Implication", "what to do, or to leave, because of it", is_advice=True)
_LEARNING = Label("Learning", "what was learned, so that somebody who was not there can use it", is_advice=True)
_ACTION = Label("Action", "what to do next time", is_advice=True)
_CONTEXT = Label("Context", "when this matters")
_ASSUMPTIONS = ("Complexity", "Approach viability", "Preference model", "Scope")
_CRITERIA = ("Success Criteria Met", "Success Criteria Missed", "Boundary Deviation", "Intent Gap")
_OBSERVATIONS = ("Values", "Preferences", "Corrections", "Stated vs. Revealed")
_FORESEEN = ("Materialized", "Did not materialize", "Not anticipated")

_STABLE = "Name norms that are stable: stated or confirmed by at least two of the sources and contradicted by none."
_PATTERNS = "Name patterns that at least two of the sources share and that will come up again; three to five at most."
_IN_COMMON = "what the sources have in common that shows it"
_TEAM_NORMS = (Label("Pattern", "the norm, as one sentence"), Label("Why it holds", _IN_COMMON))
_PROJECT_NORMS = (Label("Convention", "the norm, as one sentence"), Label("Applies to", "the work it holds for"))
_GLOBAL_NORMS = (Label("Norm", "the norm, as one sentence"), Label("Evidence", _IN_COMMON))


def _preference(*labels: Label, looks_for: str) -> tuple[Pass, ...]:
    return (Pass("directive", "preference", labels, looks_for),)


def _fact(*labels: Label, looks_for: str) -> tuple[Pass, ...]:
    return (Pass("declarative", "fact", labels, looks_for),)


def _rollup(norms: tuple[Label, ...], only: str = "", also: str = "") -> tuple[Pass, ...]:
    """Return the two questions about the learnings of the level below: for norms, and for what to do."""
    return (
        Pass("directive", "preference", norms, f"{_STABLE}{only}", "norms", is_norm=True),
        Pass("procedural", "rule", (_CONTEXT, _LEARNING, _ACTION), f"{_PATTERNS}{also}", "tasks"),
    )


_WHAT_THE_PERSON_WANTS = _preference(
    Label("Category", "one of", _OBSERVATIONS),
    _SIGNAL,
    _IMPLICATION,
    looks_for="What do the person's own words show about how they want work to be done from now on? "
    "Lasting values, preferences and corrections only; not what this one task is about.",
)
_WHEN_TO_ASK = _preference(
    Label("Domain", "the sort of decision"),
    Label("Direction", "one of", ("More autonomous", "Escalate more")),
    _SIGNAL,
    Label("Threshold", "from where on to ask, or up to where not to", is_advice=True),
    looks_for="Where did the person show that the agent should ask more often before it acts, or should decide more by itself?",
)
_WHAT_WAS_MEANT = _fact(
    Label("Category", "one of", _CRITERIA),
    _SIGNAL,
    _IMPLICATION,
    looks_for="Hold the execution against the intent: which success criteria were met or missed, which boundaries were left, "
    "what does the intent not say?",
)
_WHAT_WAS_FEARED = _fact(
    Label("Pre-mortem Risk", "the risk as it was foreseen, or 'none'"),
    Label("Outcome", "one of", _FORESEEN),
    _LEARNING,
    _ACTION,
    looks_for="Hold the execution against the pre-mortem: which of its risks came true, which did not, what went wrong that it did not foresee?",
)
_WHAT_WAS_ASSUMED = _fact(
    Label("Assumption Type", "one of", _ASSUMPTIONS),
    Label("Pattern", "how the assumption and what happened went apart, or held"),
    _LEARNING,
    _ACTION,
    looks_for="Hold the execution against the assumptions made at its milestones: which held, which were wrong, and what would have shown it sooner?",
)
_WHAT_FAILED = Pass(
    "corrective",
    "pitfall",
    (
        Label("Error Pattern", "what fails, and how it shows"),
        Label("Recovery", "what made it work", is_advice=True),
        Label("Root Cause", "why it failed"),
        Label("Prevention", "what to do so that it does not happen again", is_advice=True),
    ),
    "Which failures will come up again here, and how are they prevented? Leave out typing mistakes and failures that the work was about.",
)
_ANYWHERE = _rollup(
    _GLOBAL_NORMS,
    " They must hold in any project: name no project, product, person or path.",
    " They must help in any project: name no project, product, person or path.",
)

SCOPES: tuple[Scope, ...] = (
    Scope("observations", "human", _HUMAN, "task", _WHAT_THE_PERSON_WANTS, "project", "proxy"),
    Scope("escalation", "human", _HUMAN, "task", _WHEN_TO_ASK, "project", "proxy"),
    Scope("intent-alignment", "intent", _OTHER, "task", _WHAT_WAS_MEANT),
    Scope("prospective", "premortem", _OTHER, "task", _WHAT_WAS_FEARED),
    Scope("in-flight", "assumptions", _OTHER, "task", _WHAT_WAS_ASSUMED),
    Scope("corrective", "errors", _ERROR, "task", (_WHAT_FAILED,)),
    Scope("team", "learnings", _OTHER, "team", _rollup(_TEAM_NORMS), "task", sources="task"),
    Scope("session", "learnings", _OTHER, "team", _rollup(_TEAM_NORMS), "job", sources="task"),
    Scope("project", "learnings", _OTHER, "task", _rollup(_PROJECT_NORMS), "project", sources="job"),
    Scope("global", "learnings", _OTHER, "team", _ANYWHERE, "global", sources="project"),
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
