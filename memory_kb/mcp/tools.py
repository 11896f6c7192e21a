"""The default tools, `memory_recall` among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from memory_kb.context.framing import as_block, as_line
from memory_kb.errors import UsageError
from memory_kb.kb import KnowledgeBase
from memory_kb.mcp import answers
from memory_kb.mcp.arguments import Argument, chosen, hidden
from memory_kb.model import KIND_ALIASES, KIND_OF_TYPE, KINDS, SCOPE_ALIASES, SCOPES, TYPES
from memory_kb.text import pluralize

#: Hits and characters of a recall that names neither.
LIMIT, MAX_LIMIT, MAX_CHARS = 8, 100, 8_000
_LAYERS = tuple(dict.fromkeys(kind.layer for kind in KINDS.values()))


def split_scope(word: str | None) -> tuple[str | None, str | None]:
    """Return the level that a scope names, or the glob of files.

    Example:
        >>> split_scope("global"), split_scope("src/api/**"), split_scope("all")
        (('global', None), (None, 'src/api/**'), (None, None))
    """
    level = (word or "").strip().lower()
    if level in ("", "all"):
        return None, None
    return (level, None) if level in (*SCOPES, *SCOPE_ALIASES) else (None, (word or "").strip())


def sort_words(kinds: Sequence[str], types: Sequence[str], layers: Sequence[str]) -> dict[str, list[str]]:
    """Return the kinds and types that are wanted; a kind given as a type counts as a kind, and a layer means its kinds.

    Example:
        >>> sort_words(["workflow", "rule"], [], ["procedural"])
        {'kind': ['skill']}
    """
    wanted = [word.strip().lower() for word in (*kinds, *types)]
    named = [KIND_ALIASES.get(word, word) for word in wanted if word != "all" and word not in TYPES]
    chosen = [layer for word in layers if (layer := word.strip().lower())]
    unknown = [layer for layer in chosen if layer not in (*_LAYERS, "all")]
    if unknown:
        raise UsageError(f"unknown layer {unknown[0][:40]!r}", f"it may be all, {', '.join(_LAYERS)}")
    if chosen and "all" not in chosen:
        within = [name for name, kind in KINDS.items() if kind.layer in chosen]
        fitting = [name for name in named if name in within or name not in KINDS] if named else within
        if not fitting:
            raise UsageError(
                f"nothing of kind {', '.join(named)} is in layer {', '.join(chosen)}", f"there are {', '.join(within)}"
            )
        named = fitting
    found = {"kind": named, "type": [word for word in wanted if word in TYPES]}
    return {name: words for name, words in found.items() if words}


def recall_sessions(kb: KnowledgeBase, given: Mapping[str, Any]) -> str:
    """Return past sessions that fit a query, each with its best event."""
    filters = chosen(given, "session", "agent", "since", "until", "outcome", "job", "task")
    found = kb.sessions.search(given.get("query", ""), limit=max(1, min(MAX_LIMIT, given.get("limit", 10))), **filters)
    if not found.hits:
        return "No session fits."
    lines = (
        f"- {hit.session} {hit.seq} {hit.ts[:10]} ({as_line(hit.role or hit.event or hit.type, 40)}): {as_line(hit.content_snippet)}"
        for hit in found.hits
    )
    return answers.quote_entries(f"{pluralize(len(found.hits), 'past session')}.", ["\n".join(lines)])


GivenArguments = Mapping[str, Any]
_KINDS = ("fact", "decision", "preference", "rule", "pitfall", "architecture", "policy")
_OUTCOMES = ("success", "failure", "mixed")
_SOURCES = ("user_explicit", "observed", "inferred", "external_unverified")
_RECALLED = (*_KINDS, "skill", "episode", "session")
_JOB = hidden("job task")


class Caller(NamedTuple):
    """Who calls: the agent as its client names it, and the session of this server, which searches these vaults."""

    agent: str
    session: str
    vaults: tuple[str, ...] = ()


_Call = Callable[[KnowledgeBase, GivenArguments, Caller], str]


class Tool(NamedTuple):
    """A tool, or a prompt, as it is declared, and what it does.

    Attributes:
        effect: it `reads` the notes, `adds` to them, or `changes` and removes what is there.
        is_idempotent: whether a second call with the same arguments changes nothing more.
    """

    name: str
    description: str
    arguments: tuple[Argument, ...]
    call: _Call
    effect: str = "reads"
    is_idempotent: bool = False


#: All tools by their names.
TOOLS: dict[str, Tool] = {}


def tool(
    *arguments: Argument, effect: str = "reads", is_idempotent: bool = False, among: dict[str, Tool] = TOOLS
) -> Callable[[_Call], _Call]:
    """Make a function a tool, whose name and description are those of the function."""

    def add(call: _Call) -> _Call:
        among[call.__name__] = Tool(call.__name__, call.__doc__ or "", arguments, call, effect, is_idempotent)
        return call

    return add


@tool(
    Argument("text", "In a sentence or a short note.", is_required=True),
    Argument("kind", "Default fact.", choices=_KINDS),
    Argument("title"),
    Argument("tags", kind="list"),
    Argument("priority", choices=("critical", "high", "medium", "normal")),
    Argument("applies_to", "Globs of files it is about.", "list"),
    Argument("scope", "project (default) or global."),
    Argument("source", "user_explicit: the person typed it in these words.", choices=_SOURCES),
    *hidden("agent"),
    *_JOB,
    effect="adds",
)
def memory_learn(kb: KnowledgeBase, given: GivenArguments, _: Caller) -> str:
    """Keep one learning for later tasks: a preference, decision, fact, rule or pitfall, with its reason. Never secrets. A policy waits for a person."""
    level, glob = split_scope(given.get("scope"))
    words = chosen(given, "title", "tags", "priority", "source", "job", "task")
    if given.get("kind"):
        word = given["kind"].strip().lower()
        words["kind"] = KIND_OF_TYPE.get(word, word)
    applies_to = [*given.get("applies_to", ()), *([glob] if glob else ())]
    learned = kb.learn_from_agent(given["text"], applies_to=applies_to, scope=level or "project", **words)
    return answers.format_learned(learned)


@tool(
    Argument("query", 'Words, "exact phrases" and -excluded words, or a sentence.'),
    Argument("id", "An id or its beginning, or path.md:LINE."),
    Argument("kind", "Only these; session: logs of past sessions.", "list", choices=_RECALLED),
    *hidden("agent since outcome", type="list"),
    *hidden("scope"),
    Argument("file", "Only what applies to this path."),
    Argument("limit", f"Default {LIMIT}.", "number"),
    *hidden(max_chars="number", layer="list"),
    *_JOB,
)
def memory_recall(kb: KnowledgeBase, given: GivenArguments, caller: Caller) -> str:
    """Search the memories, best first; with an id, one entry in full."""
    if named := given.get("id", "").strip():
        return answers.format_entry(kb.show(named), max(0, given.get("max_chars", 0)))
    if [word.strip().lower() for word in given.get("kind", ())] == ["session"]:
        return recall_sessions(kb, given)
    level, glob = split_scope(given.get("scope"))
    file, query = given.get("file") or glob, given.get("query", "").strip()
    filters = chosen(given, "job", "task") | chosen({"scope": level, "file": file}, "scope", "file")
    filters |= sort_words(given.get("kind", ()), given.get("type", ()), given.get("layer", ()))
    limit = min(MAX_LIMIT, max(1, given.get("limit", LIMIT)))
    if query or file:
        most = max(0, given.get("max_chars", 0)) or MAX_CHARS
        result = kb.search(query, limit=limit, max_chars=most, vaults=caller.vaults, **filters)
        return answers.format_search(result, query or str(file))
    if not filters:
        raise UsageError("there is nothing to look for", "give a query in words, an id, or a file")
    return answers.format_list(kb.list(**filters), limit)


@tool(
    Argument("task", "What is to be done, in words.", is_required=True, instead=("files", "task_id")),
    Argument("labels", "Kinds of work, e.g. testing.", "list"),
    *hidden("type"),
    Argument("files", "Paths the task is about.", "list"),
    *hidden("agent job task_id session"),
)
def memory_context(kb: KnowledgeBase, given: GivenArguments, caller: Caller) -> str:
    """Before a task: the policies, rules, learnings, pitfalls and skills that matter for it. Ask where none of it is before you."""
    agent = given.get("agent") or caller.agent
    words = chosen(given, "labels", "type", "files", "job", "task_id", "session")
    task = given.get("task") or given.get("task_id", "")
    shown = kb.hooks.shown_now()
    context = kb.context(task, agent=agent, without=shown, **words)
    if not context.text:
        more = " besides what this session was shown already" if shown else ""
        return f"Nothing is known{more} that has to do with this."
    rules = [answers.format_id(one.id) for one in (*context.rules.rules, *context.rules.anti_patterns)]
    body, _, end = context.text.rpartition("\n")
    ids = f"Ids of the guidelines and patterns, in order: {', '.join(rules)}."
    return f"{body}\n\n{ids}\n{end}" if rules else context.text


@tool(
    Argument("event", is_required=True),
    Argument("outcome", choices=(*_OUTCOMES, "partial")),
    Argument("tags", kind="list"),
    *hidden("agent"),
    *_JOB,
    effect="adds",
    is_idempotent=True,
)
def memory_episode(kb: KnowledgeBase, given: GivenArguments, caller: Caller) -> str:
    """Record something that happened: what was tried and what came of it."""
    words = chosen(given, "tags", "outcome", "job", "task")
    agent = given.get("agent") or caller.agent
    learned = kb.episode(given["event"], agent=agent, session=caller.session, **words)
    return answers.format_learned(learned, what="Recorded")


@tool(
    Argument("name", is_required=True),
    Argument("context", "When to use it."),
    Argument("steps", kind="list", is_required=True),
    Argument("tags", kind="list", is_hidden=True),
    effect="changes",
    is_idempotent=True,
)
def memory_procedure(kb: KnowledgeBase, given: GivenArguments, _: Caller) -> str:
    """Keep a workflow that worked; one of the same name is changed."""
    done = kb.procedure(given["name"], given["steps"], given.get("context"), tags=given.get("tags"))
    return _format_skill(done)


@tool(
    Argument("name", is_required=True),
    Argument("description", "What for, and when.", is_required=True),
    Argument("template", "A prompt or code with {parameters}."),
    Argument("steps", kind="list"),
    Argument("tags", kind="list"),
    effect="changes",
    is_idempotent=True,
)
def create_skill(kb: KnowledgeBase, given: GivenArguments, caller: Caller) -> str:
    """Keep a skill: what it is for and how it is done; one of the same name is changed."""
    words = chosen(given, "template", "steps", "tags")
    return _format_skill(kb.skills.create(given["name"], given["description"], created_by=caller.agent, **words))


def _format_skill(done: Any) -> str:
    where = f"{answers.format_id(done.id)}, {as_line(done.path, 200)}"
    return f"Skill {as_line(done.name, 120)}: {done.action} ({where})."


@tool(Argument("query", "What is to be done; all compete without it."), Argument("limit", "Default 5.", "number"))
def search_skills(kb: KnowledgeBase, given: GivenArguments, _: Caller) -> str:
    """Skills that fit, in the order to try them."""
    found = kb.skills.search(given.get("query", ""), limit=min(MAX_LIMIT, max(1, given.get("limit", 5))))
    if not found.skills:
        return "No skill fits. create_skill keeps one."
    blocks = [
        f"### {as_line(one.name, 120)} ({answers.format_id(one.id)}, worked {one.success_count} of {one.success_count + one.failure_count} times)\n"
        f"{as_block(answers.cut_text(one.text, MAX_CHARS)[0])}"
        for one in found.skills
    ]
    return answers.quote_entries(f"{len(blocks)} skills, in the order to try them.", blocks)


@tool(
    *hidden("agent"),
    Argument("task", "As given to memory_context.", is_required=True, instead=("task_id",)),
    Argument("outcome", is_required=True, choices=_OUTCOMES),
    Argument("used", "Ids of the entries you used.", "list"),
    *hidden("task_id session"),
    effect="changes",
    is_idempotent=True,
)
def memory_outcome(kb: KnowledgeBase, given: GivenArguments, caller: Caller) -> str:
    """After a task: how it went. What you used of the memories gains or loses confidence."""
    agent, words = given.get("agent") or caller.agent, chosen(given, "used", "task_id", "session")
    task = given.get("task") or given.get("task_id", "")
    report = kb.outcome(agent, task.strip(), given["outcome"], **words)
    lines = [
        f"\n- {answers.format_id(one.id)} ({one.kind}): {one.credit}, {one.before:g} -> {one.after:g}"
        for one in report.credits
        if one.after != one.before
    ]
    notice = f" {as_line(report.notice)}" if report.notice else ""
    return f"{len(report.credits)} credited.{notice}{''.join(lines)}"


@tool()
def memory_stats(kb: KnowledgeBase, _: GivenArguments, __: Caller) -> str:
    """How much is known, by kind, and its tokens."""
    return answers.format_stats(kb.stats())


@tool(
    Argument("dry_run", "Only show what would change.", "flag"),
    Argument("stage", is_hidden=True),
    effect="changes",
    is_idempotent=True,
)
def memory_consolidate(kb: KnowledgeBase, given: GivenArguments, _: Caller) -> str:
    """Tidy up: make rules of what recurs, merge doubles, archive what faded, promote."""
    return answers.format_steps(kb.consolidate(given.get("stage"), dry_run=given.get("dry_run", False)))
