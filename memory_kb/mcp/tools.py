"""The ten tools that every client is given: what they take, and the verb that each of them calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from memory_kb.context.framing import as_block, as_line
from memory_kb.errors import UsageError
from memory_kb.kb import KnowledgeBase
from memory_kb.learning.agent_claims import EXPLICIT, Claim, judge_claim, typed_lately
from memory_kb.mcp import answers
from memory_kb.mcp.answers import Answer
from memory_kb.mcp.arguments import Argument
from memory_kb.mcp.recalling import LIMIT, MAX_CHARS, MAX_LIMIT, recall, split_scope
from memory_kb.reports import Learned
from memory_kb.words import KIND_OF_TYPE

Given = Mapping[str, Any]
#: What decides, besides text and scope, whether an agent's learning waits for a person.
_JUDGED = ("kind", "priority", "source")
_KINDS = "policy, preference, architecture, decision, fact, rule, pitfall"
_JOB = (Argument("job", is_hidden=True), Argument("task", is_hidden=True))


class Caller(NamedTuple):
    """Who calls: the agent as its client names it, and the session of this server."""

    agent: str
    session: str


class Tool(NamedTuple):
    """A tool as it is declared, and what it does.

    Attributes:
        is_reading: whether it leaves the notes as they are.
        is_destructive: whether it takes away or changes what is there.
        is_idempotent: whether a second call with the same arguments changes nothing more.
    """

    name: str
    description: str
    arguments: tuple[Argument, ...]
    call: Callable[[KnowledgeBase, Given, Caller], Answer]
    is_reading: bool = False
    is_destructive: bool = False
    is_idempotent: bool = False


def _learn(kb: KnowledgeBase, given: Given, _: Caller) -> Answer:
    level, glob = split_scope(given.get("scope"))
    names = ("title", "priority", "source", "job", "task")
    chosen = {name: given[name] for name in names if given.get(name)}
    if given.get("kind"):
        word = given["kind"].strip().lower()
        chosen["kind"] = KIND_OF_TYPE.get(word, word)
    applies_to = [*given.get("applies_to", ()), *([glob] if glob else ())]
    claim = Claim(given["text"], scope=level or "project", **{name: chosen[name] for name in _JUDGED if name in chosen})
    trust = judge_claim(claim, typed_lately(kb.vault.machine))
    chosen["source"] = trust.source
    if claim.kind == "rule" and trust.source != EXPLICIT:
        verdict = kb.weigh_rule(claim.text, scope=claim.scope, job=given.get("job"), task=given.get("task"))
        if verdict.decision == "reject":
            raise UsageError(
                f"the rule is not stored: {verdict.reason}", "say when it holds and what to do, or leave it"
            )
        if verdict.existing:
            run = kb.rules.feedback(verdict.existing.id, "success", reason="An agent found nearly the same.")
            return answers.tell_learned(Learned(verdict.existing.id, verdict.existing.path, "reinforced", run))
        chosen["confidence"] = verdict.confidence
    learned = kb.learn(
        claim.text,
        tags=given.get("tags", ()),
        applies_to=applies_to,
        scope=claim.scope,
        propose=bool(trust.waits_for),
        **chosen,
    )
    return answers.tell_learned(learned, waits_for=trust.waits_for)


def _recall(kb: KnowledgeBase, given: Given, _: Caller) -> Answer:
    return recall(kb, given)


def _context(kb: KnowledgeBase, given: Given, caller: Caller) -> Answer:
    agent = given.get("agent") or caller.agent
    names = ("labels", "type", "files", "job", "task_id", "session")
    task = given.get("task") or given.get("task_id", "")
    context = kb.context(task, agent=agent, **{name: given[name] for name in names if given.get(name)})
    data = {
        "agent": agent,
        "task": task.strip(),
        "sections": [{"name": one.name, "ids": one.ids, "tokens": one.tokens} for one in context.sections],
        "relevant_patterns": [answers.plain(one) for one in context.relevant_patterns],
        "avoid_these": [answers.plain(one) for one in context.avoid_these],
        "applicable_skills": [answers.plain(one) for one in context.applicable_skills],
        "tokens": context.tokens,
        "degraded": context.degraded,
    }
    if not context.text:
        return Answer("Nothing is known that has to do with this.", data)
    return Answer(context.text, {**data, "text": True})


def _episode(kb: KnowledgeBase, given: Given, caller: Caller) -> Answer:
    names = ("outcome", "job", "task")
    chosen = {name: given[name] for name in names if given.get(name)}
    learned = kb.episode(
        given["event"],
        tags=given.get("tags", ()),
        agent=given.get("agent") or caller.agent,
        session=caller.session,
        **chosen,
    )
    return answers.tell_learned(learned, what="Recorded")


def _procedure(kb: KnowledgeBase, given: Given, _: Caller) -> Answer:
    done = kb.procedure(given["name"], given["steps"], given.get("context"), tags=given.get("tags"))
    return _tell_skill(done)


def _create_skill(kb: KnowledgeBase, given: Given, caller: Caller) -> Answer:
    names = ("template", "steps", "tags")
    chosen = {name: given[name] for name in names if given.get(name)}
    return _tell_skill(kb.skills.create(given["name"], given["description"], created_by=caller.agent, **chosen))


def _tell_skill(done: Any) -> Answer:
    data = {"id": done.id, "name": done.name, "path": done.path, "action": done.action}
    return Answer(
        f"Skill {as_line(done.name, 120)}: {done.action} ({answers.tell_id(done.id)}, {as_line(done.path, 200)}).", data
    )


def _search_skills(kb: KnowledgeBase, given: Given, _: Caller) -> Answer:
    found = kb.skills.search(given.get("query", ""), limit=min(MAX_LIMIT, max(1, given.get("limit", 5))))
    names = ("id", "name", "description", "tags", "success_count", "failure_count", "path")
    data = {
        "skills": [{name: getattr(one, name) for name in names} for one in found.skills],
        "degraded": found.degraded,
    }
    if not found.skills:
        return Answer("No skill fits. create_skill keeps one.", data)
    blocks = [
        f"### {as_line(one.name, 120)} ({answers.tell_id(one.id)}, worked {one.success_count} of {one.success_count + one.failure_count} times)\n"
        f"{as_block(answers.cut_text(one.text, MAX_CHARS)[0])}"
        for one in found.skills
    ]
    return answers.quote(f"{len(blocks)} skills, in the order to try them.", blocks, data)


def _outcome(kb: KnowledgeBase, given: Given, caller: Caller) -> Answer:
    agent, names = given.get("agent") or caller.agent, ("used", "task_id", "session")
    task = given.get("task") or given.get("task_id", "")
    report = kb.outcome(
        agent, task.strip(), given["outcome"], **{name: given[name] for name in names if given.get(name)}
    )
    data = {
        "agent": report.agent,
        "task": report.task,
        "outcome": report.outcome,
        "credits": [answers.plain(one) for one in report.credits],
        "known": report.known,
        "run": report.run.run,
    }
    moved = [one for one in report.credits if one.after != one.before]
    lines = "".join(
        f"\n- {answers.tell_id(one.id)} ({one.kind}): {one.credit}, {one.before:g} -> {one.after:g}" for one in moved
    )
    return Answer(
        f"{len(report.credits)} credited.{f' {as_line(report.notice)}' if report.notice else ''}{lines}", data
    )


def _stats(kb: KnowledgeBase, _: Given, __: Caller) -> Answer:
    return answers.tell_stats(kb.stats())


def _consolidate(kb: KnowledgeBase, given: Given, _: Caller) -> Answer:
    return answers.tell_steps(kb.consolidate(given.get("stage"), dry_run=given.get("dry_run", False)))


DEFAULT_TOOLS: tuple[Tool, ...] = (
    Tool(
        "memory_context",
        "Before a task: what is known that matters for it (policies, rules, learnings, pitfalls, skills). Call it first.",
        (
            Argument(
                "task", description="What is to be done, in words.", is_required=True, instead=("files", "task_id")
            ),
            Argument("labels", "list", "Kinds of work, e.g. testing; they choose the rules."),
            Argument("type", description="One more label, e.g. bug."),
            Argument("files", "list", "Paths the task is about."),
            Argument("agent", description="Who you are, for memory_outcome later."),
            Argument("job", is_hidden=True),
            Argument("task_id", is_hidden=True),
            Argument("session", is_hidden=True),
        ),
        _context,
        is_reading=True,
    ),
    Tool(
        "memory_recall",
        "Search the memories, best first; with an id, one entry in full.",
        (
            Argument("query", description='Words in any language; "exact phrases" and -excluded words count.'),
            Argument("id", description="An id or its beginning, or path.md:LINE."),
            Argument("kind", "list", f"Only these: {_KINDS}, skill, episode; or session: logs of past sessions."),
            Argument("agent", is_hidden=True),
            Argument("since", is_hidden=True),
            Argument("outcome", is_hidden=True),
            Argument("type", "list", "Only these: declarative, procedural, directive, corrective."),
            Argument("scope", description="task, job, project or global; anything else is a file."),
            Argument("file", description="Only what applies to this path."),
            Argument("limit", "number", f"Default {LIMIT}."),
            Argument("max_chars", "number", f"Default {MAX_CHARS}."),
            Argument("max_tokens", "number", is_hidden=True),
            Argument("ids", "list", is_hidden=True),
            Argument("layer", "list", is_hidden=True),
            *_JOB,
        ),
        _recall,
        is_reading=True,
    ),
    Tool(
        "memory_learn",
        "Keep one learning for later tasks: a preference, decision, fact, rule or pitfall, with its reason. Never secrets. A policy waits for a person.",
        (
            Argument("text", description="The learning, in a sentence or a short note.", is_required=True),
            Argument("kind", description=f"{_KINDS}. Default fact."),
            Argument("title"),
            Argument("tags", "list"),
            Argument("priority", description="critical, high, medium or normal."),
            Argument("applies_to", "list", "Globs of files it is about."),
            Argument("scope", description="project (default) or global; anything else is a glob."),
            Argument(
                "source",
                description="user_explicit if the person typed it in these words; else observed, inferred, external_unverified.",
            ),
            Argument("agent", is_hidden=True),
            *_JOB,
        ),
        _learn,
    ),
    Tool(
        "memory_outcome",
        "After a task: how it went. What you were shown for it gains or loses confidence.",
        (
            Argument("agent", description="As given to memory_context."),
            Argument("task", description="As given to memory_context.", is_required=True, instead=("task_id",)),
            Argument("outcome", description="success, failure or mixed.", is_required=True),
            Argument("used", "list", "Ids of the entries that you used."),
            Argument("task_id", is_hidden=True),
            Argument("session", is_hidden=True),
        ),
        _outcome,
        is_destructive=True,
        is_idempotent=True,
    ),
    Tool(
        "memory_episode",
        "Record something that happened: what was tried and what came of it.",
        (
            Argument("event", description="What happened, and why.", is_required=True),
            Argument("outcome", description="success, failure, mixed or partial."),
            Argument("tags", "list"),
            Argument("agent", is_hidden=True),
            *_JOB,
        ),
        _episode,
        is_idempotent=True,
    ),
    Tool(
        "memory_procedure",
        "Keep a workflow that worked; one of the same name is changed.",
        (
            Argument("name", is_required=True),
            Argument("context", description="When to use it."),
            Argument("steps", "list", "What to do, in order.", is_required=True),
            Argument("tags", "list", is_hidden=True),
        ),
        _procedure,
        is_destructive=True,
        is_idempotent=True,
    ),
    Tool(
        "search_skills",
        "Skills that fit, in the order to try them.",
        (
            Argument("query", description="What is to be done; all compete without it."),
            Argument("limit", "number", "Default 5."),
        ),
        _search_skills,
        is_reading=True,
    ),
    Tool(
        "create_skill",
        "Keep a skill: what it is for and how it is done; one of the same name is changed.",
        (
            Argument("name", is_required=True),
            Argument("description", description="What for, and when.", is_required=True),
            Argument("template", description="A prompt or code with {parameters}."),
            Argument("steps", "list"),
            Argument("tags", "list"),
        ),
        _create_skill,
        is_destructive=True,
        is_idempotent=True,
    ),
    Tool("memory_stats", "How much is known, by kind, and its tokens.", (), _stats, is_reading=True),
    Tool(
        "memory_consolidate",
        "Tidy up: make rules of what recurs, merge doubles, archive what faded, promote.",
        (Argument("dry_run", "flag", "Only show what would change."), Argument("stage", is_hidden=True)),
        _consolidate,
        is_destructive=True,
        is_idempotent=True,
    ),
)
