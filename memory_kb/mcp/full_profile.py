"""The tools behind `--profile full`: rules, handoffs, working memory, repairs."""

from __future__ import annotations

from collections.abc import Sequence

from memory_kb.context.framing import as_block, as_line
from memory_kb.kb import KnowledgeBase
from memory_kb.mcp import answers
from memory_kb.mcp.arguments import Argument, chosen, declared, hidden
from memory_kb.mcp.tools import TOOLS, Caller, GivenArguments, recall_sessions, tool
from memory_kb.store.session_events import Event
from memory_kb.text import format_mapping

_DRY = Argument("dry_run", "Only show what would change.", "flag")
_ID = Argument("id", "An id or its beginning.", is_required=True)


@tool(
    *declared(kind="list", type="list", scope="list", tag="list", status="list"),
    Argument("limit", "Default 50.", "number"),
    *declared("job task"),
)
def memory_list(kb: KnowledgeBase, given: GivenArguments, _: Caller) -> str:
    """Entries in a line each."""
    found = kb.list(**chosen(given, "kind", "type", "scope", "tag", "status", "job", "task"))
    return answers.format_list(found, max(1, min(500, given.get("limit", 50))))


@tool(_ID, Argument("delete", "Take its text out of the file too.", "flag"), _DRY, effect="changes", is_idempotent=True)
def memory_forget(kb: KnowledgeBase, given: GivenArguments, _: Caller) -> str:
    """Retire an entry that is wrong or over; it can be undone."""
    gone = kb.forget(given["id"], **chosen(given, "delete", "dry_run"))
    done = f"Forgotten: {answers.format_id(gone.id)} ({as_line(gone.path, 200)}). memory_undo reverts it."
    said = "This would be forgotten." if given.get("dry_run") else done
    return answers.with_diff(said, gone.run.diff if gone.run else "")


@tool(Argument("run", "The name of a run; the last one without it."), _DRY, effect="changes")
def memory_undo(kb: KnowledgeBase, given: GivenArguments, _: Caller) -> str:
    """Revert the last change to the memories, or the run named."""
    run = kb.undo(given.get("run"), **chosen(given, "dry_run"))
    return answers.format_run(run, "Reverted.", "There is nothing to revert.")


@tool()
def memory_status(kb: KnowledgeBase, _: GivenArguments, __: Caller) -> str:
    """How fresh the index is, and what is wrong with notes."""
    status = kb.status()
    problems = [as_line(str(one), 300) for one in status.problems[:20]]
    counts = f"{status.files:,} files indexed, {status.pending:,} waiting, {len(status.problems):,} problems."
    return "\n- ".join((counts, *problems))


@tool(Argument("query", is_required=True), _ID)
def memory_why_not(kb: KnowledgeBase, given: GivenArguments, _: Caller) -> str:
    """Why a query does not find an entry."""
    answer = kb.why_not(given["query"], given["id"])
    details = (as_line(line, 300) for line in answer.details)
    return "\n- ".join((f"{answer.step}: {as_line(answer.reason, 600)}", *details))


@tool(*declared(labels="list", type="text"))
def rules_select(kb: KnowledgeBase, given: GivenArguments, _: Caller) -> str:
    """The rules and pitfalls for a task with these labels."""
    chosen = kb.rules.select(given.get("labels", ()), given.get("type"))
    rules = (*chosen.rules, *chosen.anti_patterns)
    lines = [f"- {answers.format_id(one.id)} ({one.kind}, {one.confidence:.2f}): {as_line(one.text)}" for one in rules]
    quoted = answers.quote_entries("Rules and pitfalls, best first.", ["\n".join(lines)])
    return quoted if rules else "No rule fits these labels."


@tool(
    _ID, Argument("outcome", "success, failure or mixed.", is_required=True), Argument("reason"), _DRY, effect="changes"
)
def rules_feedback(kb: KnowledgeBase, given: GivenArguments, _: Caller) -> str:
    """Count how one rule did."""
    run = kb.rules.feedback(given["id"], given["outcome"], **chosen(given, "reason", "dry_run"))
    return answers.format_run(run, "Counted.", "Nothing changed.")


_SKILL = Argument("name", "Its id or name.", is_required=True)
_WORKED = Argument("outcome", "success or failure.", is_required=True)


@tool(_SKILL, _WORKED, effect="changes")
def skills_feedback(kb: KnowledgeBase, given: GivenArguments, _: Caller) -> str:
    """Count whether a skill worked."""
    return answers.format_run(kb.skills.feedback(given["name"], given["outcome"]).run, "Counted.", "Nothing changed.")


@tool()
def review_list(kb: KnowledgeBase, _: GivenArguments, __: Caller) -> str:
    """What waits for a judgment."""
    items = kb.review.list()
    lines = [
        f"- {answers.format_id(one.id)} ({one.proposes}): {as_line(one.title, 160)}. {as_line(one.reason)}"
        for one in items[:100]
    ]
    quoted = answers.quote_entries(f"{len(items)} wait for a judgment.", ["\n".join(lines)])
    return quoted if items else "Nothing waits for a judgment."


@tool(Argument("ids", kind="list", is_required=True), Argument("reason"), _DRY, effect="changes", is_idempotent=True)
def review_reject(kb: KnowledgeBase, given: GivenArguments, _: Caller) -> str:
    """Reject proposals. Ask the person first."""
    run = kb.review.reject(*given["ids"], **chosen(given, "reason", "dry_run"))
    return answers.format_run(run, "Rejected.", "They were rejected before.")


@tool(
    Argument("to_agent", is_required=True),
    Argument("from_agent"),
    Argument("done", "What was done.", "list"),
    Argument("artifacts", "Files and other things made.", "list"),
    *declared(needs_testing="list", known_issues="list"),
    Argument("patterns", "Ids of entries that matter now.", "list"),
    *declared("job"),
    *hidden("task_id"),
    effect="adds",
    is_idempotent=True,
)
def handoff_create(kb: KnowledgeBase, given: GivenArguments, caller: Caller) -> str:
    """Leave word for the agent that goes on with the work."""
    words = chosen(given, "done", "artifacts", "needs_testing", "known_issues", "patterns", "job", "task_id")
    made = kb.handoffs.create(given.get("from_agent") or caller.agent, given["to_agent"], **words)
    return f"{made.handoff.id}: {made.action} ({as_line(made.handoff.path, 200)}).{_notes(made.notices)}"


@tool(*declared("to_agent job"), *hidden("task_id"))
def handoff_latest(kb: KnowledgeBase, given: GivenArguments, _: Caller) -> str:
    """The newest handoff, or the newest to an agent."""
    handoff = kb.handoffs.latest(given.get("to_agent"), given.get("job"), given.get("task_id"))
    if handoff is None:
        return "There is no handoff."
    who = f"from {as_line(handoff.from_agent or 'somebody')} to {as_line(handoff.to_agent or 'anybody')}"
    fields = {**handoff.as_mapping["context"], "what_was_done": handoff.done}
    head = f"{as_line(handoff.id)} {who}, {handoff.timestamp}."
    return answers.quote_entries(head, [as_block(format_mapping(fields))])


def _notes(notices: Sequence[str]) -> str:
    return "".join(f"\nNote: {as_line(one)}" for one in notices)


@tool(
    Argument("agent"),
    Argument("task", "What it works on."),
    Argument("goal"),
    Argument("completed", "Tasks that are done.", "list"),
    Argument("files", "Files it modified.", "list"),
    *declared(tech="list", patterns="list"),
    effect="changes",
    is_idempotent=True,
)
def ledger_set(kb: KnowledgeBase, given: GivenArguments, caller: Caller) -> str:
    """Record the state of an agent's work; fields left out keep their value."""
    names = ("task", "goal", "completed", "files", "tech", "patterns")
    made = kb.ledgers.set(given.get("agent") or caller.agent, **{name: given[name] for name in names if name in given})
    return f"{made.ledger.id}: {made.action}.{_notes(made.notices)}"


@tool(Argument("agent"))
def ledger_show(kb: KnowledgeBase, given: GivenArguments, caller: Caller) -> str:
    """The state of an agent's work."""
    ledger = kb.ledgers.show(given.get("agent") or caller.agent)
    return answers.quote_entries("The state of work.", [as_block(format_mapping(ledger.as_mapping))])


@tool(Argument("text", "The message, word for word.", is_required=True), effect="adds", is_idempotent=True)
def memory_capture(kb: KnowledgeBase, given: GivenArguments, _: Caller) -> str:
    """Keep what a person's message states: preferences, corrections, constraints."""
    report = kb.capture([given["text"]])
    return "\n".join(f"{one.action}: {as_line(one.reason)}" for one in report.messages) or "There is nothing to keep."


@tool(
    Argument("text", is_required=True),
    Argument("role", "user, assistant or system; default assistant."),
    Argument("event", "For an event: its name."),
    Argument("session"),
    Argument("agent", is_hidden=True),
    effect="adds",
)
def session_append(kb: KnowledgeBase, given: GivenArguments, caller: Caller) -> str:
    """Log a message or event of this session."""
    name, agent = given.get("event"), given.get("agent") or caller.agent
    role = None if name else given.get("role", "assistant")
    event = Event(type="event" if name else "message", event=name, role=role, content=given["text"], agent=agent)
    written = kb.sessions.append([event], session=given.get("session") or caller.session)
    return f"{written.action}: event {written.seq} of session {written.session}."


@tool(
    Argument("outcome", "success, failure, mixed or partial."),
    Argument("summary"),
    Argument("session"),
    effect="changes",
    is_idempotent=True,
)
def session_end(kb: KnowledgeBase, given: GivenArguments, caller: Caller) -> str:
    """End the session and learn from it."""
    written = kb.sessions.end(given.get("session") or caller.session, **chosen(given, "outcome", "summary"))
    shown = [step for step in written.steps if step.outcome in ("done", "failed") or step.conflicts]
    lines = [f"Session {written.session}: {written.action}.", *([answers.format_steps(shown)] if shown else [])]
    if failed := sum(step.outcome == "failed" for step in written.steps):
        of_all = f"{failed} of the {len(written.steps)} steps failed"
        lines.append(f"{of_all}; once that is fixed, session_end again does what is left.")
    return "\n".join(lines)


@tool(*declared("query", limit="number"), *declared("session agent since until outcome"))
def session_search(kb: KnowledgeBase, given: GivenArguments, _: Caller) -> str:
    """Search what was said and done in sessions."""
    return recall_sessions(kb, given)


_DEFAULT = ("context", "recall", "learn", "outcome", "episode", "procedure")
_default_tools = tuple(TOOLS[f"memory_{name}"] for name in _DEFAULT)
PROFILES = {"default": _default_tools, "full": tuple(dict.fromkeys((*_default_tools, *TOOLS.values())))}
